"""The two kinds of model that `rankwise fit` trains: how each is made from the arguments, and what is said of it."""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from rankwise.cli.inputs import Samples, counted
from rankwise.cli.output import Voice
from rankwise.metrics import as_loss, as_metric

FOLDS = 5
# Of two samples, every candidate separates one from the other, and nothing can judge it.
_LEAST = 3


class Ranker:
    """A LinearRanker."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        arguments.metric = "ap" if arguments.metric is None else arguments.metric
        as_metric("ap" if arguments.metric == "map" else arguments.metric)
        self._arguments = arguments

    def check(self, samples: Samples) -> None:
        """Refuse data that a model cannot be trained on."""
        if samples.n < _LEAST:
            raise ValueError(f"{samples.source}: {samples.n} samples are too few to learn from; add samples")
        if self._arguments.metric == "map" and samples.data.qid is None:
            raise ValueError(
                f"{samples.source} has no queries, but map is the mean of AP over queries; use --metric ap"
            )

    def estimator(self, voice: Voice) -> Any:
        """The model, to be fitted."""
        from rankwise import LinearRanker

        given = self._arguments
        return LinearRanker(
            given.metric,
            cv=given.cv or FOLDS,
            n_jobs=given.jobs,
            random_state=given.seed,
            verbose=0 if given.quiet else 1,
        )

    def doubt(self, model: Any, source: str) -> str | None:
        """What to be warned of."""
        if math.isfinite(model.best_score_):
            return None
        return (
            f"{source}: too few samples for cross-validation, so it is not known how well the model ranks; add "
            "samples, or measure the model on others with rankwise evaluate"
        )

    def kept(self, model: Any) -> str:
        """What an interrupt has left."""
        return "the best model so far"

    def summary(self, model: Any) -> list[str]:
        """What was tried."""
        report, timing = model.report_, model.timing_
        n = report.folds.shape[1]
        on = f"scores by {n}-fold cross-validation" if n else "not scored: too few samples for cross-validation"
        return [
            f"metric {report.metric}, {on}:",
            *str(report).splitlines(),
            f"{timing['total']:.2f} s in total, {timing['search']:.2f} s of it for cross-validation",
        ]

    def document(self, model: Any) -> dict[str, Any]:
        """The same as plain data."""
        report, timing = model.report_, model.timing_
        rows = zip(report.names, report.scores, report.folds, report.columns["worse_by"], report.shares, strict=True)
        keys = ("name", "score", "folds", "worse_by", "share")
        return {
            "metric": report.metric,
            "candidates": [dict(zip(keys, row, strict=True)) for row in rows],
            "best_score": model.best_score_,
            "seconds": {name: timing[name] for name in ("total", "search", "fit")},
        }


class SVM:
    """A RankSVM, or a RankSVMCV if C is to be chosen."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        if arguments.scoring is not None:
            as_metric(arguments.scoring)
        self._arguments, self._chooses_C = arguments, arguments.C is None

    def check(self, samples: Samples) -> None:
        """Refuse fewer samples or queries than folds, as each must have both classes."""
        if not self._chooses_C:
            return
        cv = self._arguments.cv or FOLDS
        what, n = "samples of the rarer class", min(samples.positives, samples.n - samples.positives)
        if samples.n_queries > 1:
            what, n = "queries with both classes", samples.n_queries - samples.one_class
        if n < cv:
            remedy = f"--cv {n} or lower" if n > 1 else "--C NUMBER"
            raise ValueError(f"{samples.source}: only {n} {what} for {cv} folds; use {remedy}")

    def estimator(self, voice: Voice) -> Any:
        """The model, to be fitted."""
        from rankwise import RankSVM, RankSVMCV

        given = self._arguments
        common: dict[str, Any] = {
            "solver": given.solver,
            "method": given.method,
            "tol": given.tol,
            "max_iter": given.max_iter,
            "n_threads": given.threads,
            "random_state": given.seed,
            "verbose": 0 if given.quiet else 1,
        }
        if not self._chooses_C:
            return RankSVM(given.loss, given.C, **common)
        model = RankSVMCV(given.loss, cv=given.cv or FOLDS, scoring=given.scoring, n_jobs=given.jobs, **common)
        voice.progress(f"choosing C among {model.Cs} on {model.cv} folds …")
        return model

    def doubt(self, model: Any, source: str) -> str | None:
        """Nothing that the fit has not warned of."""
        return None

    def kept(self, model: Any) -> str:
        """What an interrupt has left."""
        return f"the best model so far (relative gap {model.gap_:.1e})"

    def summary(self, model: Any) -> list[str]:
        """What was minimised, how surely, and at what cost."""
        given, timing = self._arguments, model.timing_
        share = f" ({timing['inference'] / timing['total']:.0%} in inference)" if given.jobs in (None, 1) else ""
        return [
            *(self._choice(model) if self._chooses_C else [f"loss {given.loss}, C = {model.C:g}"]),
            f"objective {model.objective_:.6g}, within {model.gap_:.1e} of the minimum (relative gap)",
            f"{counted(model.n_iter_, 'iteration')}{' in the last fit' if self._chooses_C else ''}, "
            f"{counted(timing['calls'], 'inference call')}, {timing['total']:.2f} s{share}",
        ]

    def _choice(self, model: Any) -> list[str]:
        """The scores of every C, the chosen one marked."""
        metric = self._judge()
        lines = [f"loss {self._arguments.loss}, C = {model.C_:.4g} chosen by cross-validated {metric}:"]
        lines.append(f"  {'C':>12}  {metric:>8}  std over {model.scores_.shape[2]} folds")
        for C, scores in zip(model.Cs_[0], model.scores_[0], strict=True):
            found = scores[np.isfinite(scores)]
            text = f"{found.mean():8.4f}  {found.std():9.4f}" if found.size else f"{'-':>8}  {'-':>9}"
            aside = f"  {found.size} folds" if found.size < scores.size else ""
            lines.append(f"{'*' if model.C_ == C else ' '} {C:12.4g}  {text}{aside}")
        return lines

    def _judge(self) -> str:
        """The name of the metric that C is chosen by, as RankSVMCV has it."""
        loss = as_loss(self._arguments.loss)
        return as_metric(self._arguments.scoring or (loss if loss.has_grades else "ap")).name

    def document(self, model: Any) -> dict[str, Any]:
        """The same and more as plain data."""
        given, timing, choice = self._arguments, model.timing_, None
        if self._chooses_C:
            scores = {"C": model.Cs_[0], "scores": model.scores_[0], "best_score": model.best_score_}
            choice = {"metric": self._judge(), **scores}
        return {
            "loss": given.loss,
            "C": model.C_ if self._chooses_C else model.C,
            "choice": choice,
            "solver": given.solver,
            "objective": model.objective_,
            "dual": model.dual_,
            "gap": model.gap_,
            "tol": model.tol,
            "converged": model.converged_,
            "iterations": model.n_iter_,
            "inference_calls": timing["calls"],
            "seconds": {name: timing[name] for name in ("total", "inference", "products")},
        }
