"""Section 4.1 of the paper: seconds in inference while the models of ten classes are trained (Tables 1 and 2).

For every class, and at the C that the experiment `action` chose for it, the same model is trained with each method of
inference in turn, several times over; the least of its times counts. One thread throughout, for inference and for
products. Between two calls, training reads all features once or twice; so that inference can also be seen without what
that does to a processor's caches, the calls of a training are replayed, one after the other, with each method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from rankwise import RankSVM, structured_hinge
from rankwise.linear import INTERCEPT, Objective, Settings, as_features, cutting_plane, pose
from rankwise.metrics import LossLike, as_loss
from rankwise_lab import pieces
from rankwise_lab.measuring.opponents import LogarithmicNDCG
from rankwise_lab.measuring.timing import THREADS, compare, no_collection, unconverged
from rankwise_lab.reproduce.action import ActionExperiment

# Rounds in which the replays of all methods take turns.
ROUNDS = 5


class Method(NamedTuple):
    """A method of inference. loss, metric: which choice of C to train with."""

    name: str
    loss: str
    metric: str
    how: str
    evaluate_logarithms: bool = False

    def trained_for(self) -> LossLike:
        """The loss as it is trained for."""
        return LogarithmicNDCG() if self.evaluate_logarithms else self.loss


# By key: "published" is as its authors wrote it, with a logarithm at each step.
METHODS = {
    "zero_one": Method("0-1", "zero-one", "ap", "auto"),
    "ap": Method("AP, Yue et al. 2007", "ap", "ap", "yue"),
    "ap_qs": Method("AP_QS, Algorithm 1", "ap", "ap", "quicksort"),
    "ap_2014": Method("AP, Mohapatra et al. 2014", "ap", "ap", "mohapatra2014"),
    "ap_bucketed": Method("AP, our engine", "ap", "ap", "bucketed"),
    "ndcg": Method("NDCG, Chakrabarti et al. 2008", "ndcg", "ndcg", "chakrabarti", evaluate_logarithms=True),
    "ndcg_tabulated": Method("NDCG, Chakrabarti et al. 2008, tabulated", "ndcg", "ndcg", "chakrabarti"),
    "ndcg_qs": Method("NDCG_QS, Algorithm 1", "ndcg", "ndcg", "quicksort"),
    "ndcg_bucketed": Method("NDCG, our engine", "ndcg", "ndcg", "bucketed"),
}


@dataclass(frozen=True)
class Plan(pieces.Plan):
    """repeats: trainings with each method, in turn. tol: the relative duality gap to train to."""

    repeats: int = 3
    tol: float = 1e-3

    @classmethod
    def quick(cls) -> Plan:
        return cls(repeats=2)


class TimingExperiment:
    """The experiment, on the classes of `action`; finished pieces, one file per class, are in `folder`."""

    def __init__(
        self,
        action: ActionExperiment,
        folder: Path,
        plan: Plan | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.action, self.plan, self._say = action, plan or Plan(), say
        self.pieces = pieces.Pieces(folder, self.plan, {"samples": action.data.digest}, after=action.plan)

    def run(self) -> list[dict[str, Any]]:
        """The times of every class, by method."""
        for k in self.action.classes:
            for method in METHODS.values():
                self.action.chosen(k, method.loss, method.metric)
        return [self.pieces.kept(self.action.name(k, "timing"), partial(self._timed, k)) for k in self.action.classes]

    def _timed(self, k: int, checkpoint: Path) -> dict[str, Any]:
        """Time every method after a warm-up, each once per repeat, so that a slow phase affects all of them."""
        relevant = self.action.relevant(k)
        found: dict[str, Any] = {}
        with threadpool_limits(limits=THREADS), unconverged():
            for method in METHODS.values():
                scores = np.linspace(-1.0, 1.0, relevant.size)
                structured_hinge(scores, relevant, method.trained_for(), method=method.how)
            with no_collection():
                for _ in range(self.plan.repeats):
                    for key in METHODS:
                        self._train(k, key, found)
            calls = {method.loss: self._calls(k, method) for method in METHODS.values()}
            tasks = {key: self._replay(k, method, calls[method.loss]) for key, method in METHODS.items()}
            replayed = compare(tasks, ROUNDS)
        name = self.action.data.classes[k]
        for key, method in METHODS.items():
            part = found[key]
            part["replayed"] = {"seconds": replayed[key], "calls": len(calls[method.loss])}
            part["inference"] = min(part["seconds"])
            part["per_call"] = part["inference"] / part["calls"]
            self._say(f"{name}, {method.name}: {part['inference']:.4f} s in {part['calls']} calls of inference")
        positives = int(relevant.sum())
        return {"class": name, "positives": positives, "negatives": relevant.size - positives, "methods": found}

    def _calls(self, k: int, method: Method) -> list[NDArray[np.float64]]:
        """The scores that inference is called with while a model is trained as `_train` does, in order."""
        loss = as_loss(method.loss)
        features = as_features(self.action.X, INTERCEPT if method.loss == "zero-one" else 0.0)
        objective = _Listener(features, pose(self.action.relevant(k), loss))
        C = self.action.chosen(k, method.loss, method.metric)
        cutting_plane(objective, C, Settings(self.plan.tol))
        return objective.heard

    def _replay(self, k: int, method: Method, calls: list[NDArray[np.float64]]) -> Callable[[], None]:
        """Time all calls of a training, with nothing in between."""
        relevant, loss = self.action.relevant(k), method.trained_for()

        def replay() -> None:
            for scores in calls:
                structured_hinge(scores, relevant, loss, method=method.how, n_threads=THREADS)

        return replay

    def _train(self, k: int, key: str, found: dict[str, Any]) -> None:
        """Train once with a method, and add its time to the results."""
        method = METHODS[key]
        C = self.action.chosen(k, method.loss, method.metric)
        model = RankSVM(method.trained_for(), C, method=method.how, tol=self.plan.tol, n_threads=THREADS)
        model.fit(self.action.X, self.action.relevant(k))
        part = found.setdefault(key, {"C": C, "seconds": [], "training": []})
        part["seconds"].append(model.timing_["inference"])
        part["training"].append(model.timing_["total"])
        part |= {"calls": model.timing_["calls"], "objective": model.objective_, "dual": model.dual_, "gap": model.gap_}


@dataclass(eq=False)
class _Listener(Objective):
    """An objective that keeps the scores at which it is evaluated."""

    heard: list[NDArray[np.float64]] = field(default_factory=list)

    def scores(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        found = super().scores(v)
        self.heard.append(found)
        return found
