"""Section 4.1 of the paper: ten classes, each ranked by a linear model for 0-1, AP and NDCG loss (Tables 3 and 4).

For every class and loss: cross-validation on the training samples chooses C, by the measure that is reported later (AP
or NDCG); the model is then trained on all of them and judged on test. The folds of 0-1 loss, which is compared with
both others, are trained once and scored by both measures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from rankwise import RankSVM, RankSVMCV, load
from rankwise.linear import Objective, as_features, grid_of_C, pose
from rankwise.metrics import as_loss, as_metric, resampled
from rankwise_lab import pieces
from rankwise_lab.intervals import LEVEL, percentile
from rankwise_lab.measuring.machine import n_cores
from rankwise_lab.measuring.timing import unconverged
from rankwise_lab.reproduce.action_data import ActionData

# The measures that a loss is chosen and judged by. A measure's own loss has its name.
MEASURES = {"zero-one": ("ap", "ndcg"), "ap": ("ap",), "ndcg": ("ndcg",)}


@dataclass(frozen=True)
class Plan(pieces.Plan):
    """What all losses share.

    Cs: how many values of C to choose from, between powers of ten of the data's natural C: ends, or ends_zero_one. tol:
    the relative duality gap to train to. draws: of test samples, for intervals. seed: of folds and draws.
    """

    Cs: int = 9
    ends: tuple[float, float] = (0.0, 4.0)
    ends_zero_one: tuple[float, float] = (-1.5, 2.5)
    folds: int = 5
    tol: float = 1e-3
    draws: int = 1000
    seed: int = 0

    @classmethod
    def quick(cls) -> Plan:
        return cls(Cs=5, ends=(0.0, 3.0), ends_zero_one=(-1.0, 2.0), folds=3, draws=200)


class ActionExperiment:
    """The experiment on samples of several classes; finished pieces, one file per class and loss, are in `folder`.

    classes: positions of the classes with enough positives and negatives; left_out: names of the others.
    """

    def __init__(
        self, data: ActionData, folder: Path, plan: Plan | None = None, say: Callable[[str], None] = lambda line: None
    ) -> None:
        self.data, self.plan = data, plan or Plan()
        self._say = say
        least = [min(self._least(Y) for Y in pair) for pair in zip(data.Y.T, data.Y_test.T, strict=True)]
        self.classes = [k for k, count in enumerate(least) if count >= self.plan.folds]
        self.left_out = [data.classes[k] for k, count in enumerate(least) if count < self.plan.folds]
        if not self.classes:
            raise ValueError(
                f"no class has {self.plan.folds} positives and {self.plan.folds} negatives in both training and test"
            )
        self.pieces = pieces.Pieces(folder, self.plan, {"samples": data.digest})

    @staticmethod
    def _least(relevant: NDArray[np.bool_]) -> int:
        return min(int(relevant.sum()), int((~relevant).sum()))

    @cached_property
    def X(self) -> NDArray[np.float64]:
        """The training samples in the layout in which training is fastest."""
        return np.ascontiguousarray(self.data.X, np.float64)

    def relevant(self, k: int) -> NDArray[np.bool_]:
        """(n,) Which training samples are of class k."""
        return np.ascontiguousarray(self.data.Y[:, k])

    def run(self) -> list[dict[str, Any]]:
        """The results of every class, by loss."""
        return [
            {
                "class": self.data.classes[k],
                "positives": {"train": int(self.data.Y[:, k].sum()), "test": int(self.data.Y_test[:, k].sum())},
                **{loss: self._trained(k, loss) for loss in MEASURES},
            }
            for k in self.classes
        ]

    def described(self) -> dict[str, Any]:
        """The samples, as plain data."""
        data = self.data
        return {
            "what": data.what,
            "stand_in": data.stand_in,
            "digest": data.digest,
            "samples": {"train": len(data.X), "test": len(data.X_test)},
            "features": data.X.shape[1],
            "classes": [data.classes[k] for k in self.classes],
            "left_out": self.left_out,
        }

    def chosen(self, k: int, loss: str, metric: str) -> float:
        """Return the C of class k for a loss, chosen by a measure; it is kept with its model."""
        return float(self._trained(k, loss)[metric]["C"])

    def model(self, k: int, loss: str, metric: str) -> Any:
        """The model of class k, once it is trained."""
        return load(self._model_file(k, loss, metric))

    def name(self, k: int, part: str) -> str:
        """Return the name of a piece of class k."""
        return f"{k:02d}-{self.data.classes[k]}-{part}"

    def _model_file(self, k: int, loss: str, metric: str) -> Path:
        return self.pieces.path(self.name(k, f"{loss}-by-{metric}"), ".rw")

    def difference(self) -> dict[str, Any]:
        """Return, by measure, intervals of its own loss minus 0-1 loss: per class, and for the mean over classes."""
        return self.pieces.kept("difference", lambda _: self._difference())

    def _trained(self, k: int, loss: str) -> dict[str, Any]:
        return self.pieces.kept(self.name(k, loss), lambda _: self._train(k, loss))

    def _train(self, k: int, loss: str) -> dict[str, Any]:
        """Run the folds; return by measure the chosen C, with its model and its value on test."""
        plan, relevant = self.plan, self.relevant(k)
        ends = plan.ends_zero_one if loss == "zero-one" else plan.ends
        grid = grid_of_C(plan.Cs, Objective(as_features(self.X), pose(relevant, as_loss(loss))), ends)
        folds: dict[str, Any] = {"cv": plan.folds, "n_jobs": min(n_cores(), plan.folds), "random_state": plan.seed}
        found: dict[str, Any] = {"Cs": grid.tolist()}
        with threadpool_limits(limits=1), unconverged():  # folds have threads of their own
            for metric in MEASURES[loss]:
                model = RankSVMCV(loss, grid, scoring=metric, tol=plan.tol, **folds).fit(self.X, relevant)
                choice = {"C": model.C_, "at_edge": model.C_ in (grid[0], grid[-1]), "cv": model.best_score_}
                found[metric] = {**choice, "folds": model.scores_.tolist(), **self._judged(k, loss, metric, model.C_)}
        return found

    def _judged(self, k: int, loss: str, metric: str, C: float) -> dict[str, Any]:
        """Train on all training samples, write the model, and judge it on test."""
        model = RankSVM(loss, C, tol=self.plan.tol)
        with unconverged():
            model.fit(self.X, self.relevant(k))
        model.save(self._model_file(k, loss, metric))
        value = as_metric(metric)(model.decision_function(self.data.X_test), self.data.Y_test[:, k])
        name = self.data.classes[k]
        self._say(f"{name}, {loss} loss, C = {C:.3g}: {metric.upper()} on test {100.0 * value:.2f} %")
        return {
            "test": value,
            "objective": model.objective_,
            "gap": model.gap_,
            "converged": bool(model.converged_),
            "calls": model.timing_["calls"],
        }

    def _difference(self) -> dict[str, Any]:
        """Test samples are redrawn, the same for all classes and losses."""
        n = len(self.data.X_test)
        rng = np.random.default_rng(self.plan.seed)
        counts = np.array([np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(self.plan.draws)])
        found: dict[str, Any] = {"level": LEVEL, "draws": self.plan.draws}
        for metric in MEASURES["zero-one"]:
            drawn = {}
            for k in self.classes:
                models = (self.model(k, loss, metric) for loss in ("zero-one", metric))
                scores = (model.decision_function(self.data.X_test) for model in models)
                theirs, ours = (resampled(metric, s, self.data.Y_test[:, k], counts) for s in scores)
                drawn[self.data.classes[k]] = ours - theirs
                self._say(f"{self.data.classes[k]}, {metric.upper()}: test samples redrawn {len(counts):,} times")
            intervals = {name: percentile(values) for name, values in drawn.items()}
            found[metric] = {"classes": intervals, "mean": percentile(np.mean(list(drawn.values()), axis=0))}
        return found
