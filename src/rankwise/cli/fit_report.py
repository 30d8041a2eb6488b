"""What `rankwise fit` reports about a model: as lines of text, and as JSON."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from rankwise.cli.fit_models import is_ranker
from rankwise.cli.inputs import Counts, counted, facts
from rankwise.io import Dataset
from rankwise.metrics import Metric
from rankwise.metrics.registry import as_loss


def summary(model: Any, arguments: argparse.Namespace) -> list[str]:
    """What was learnt, how surely, and at what cost."""
    lines = _tried(model) if is_ranker(arguments) else _minimum(model, arguments)
    return [*lines, f"model: {arguments.output}"]


def kept(model: Any, arguments: argparse.Namespace) -> str:
    """What an interrupt has left."""
    how = "" if is_ranker(arguments) else f" (relative gap {model.gap_:.1e})"
    return f"interrupted: {arguments.output} contains the best model so far{how}"


def _tried(model: Any) -> list[str]:
    """What a LinearRanker tried."""
    report, timing = model.report_, model.timing_
    n = report.folds.shape[1]
    on = f"scores by {n}-fold cross-validation" if n else "not scored: too few samples for cross-validation"
    return [
        f"metric {report.metric}, {on}:",
        *str(report).splitlines(),
        f"{timing['total']:.2f} s in total, {timing['search']:.2f} s of it for cross-validation",
    ]


def _minimum(model: Any, arguments: argparse.Namespace) -> list[str]:
    """What a RankSVM has minimised."""
    timing = model.timing_
    averaged = arguments.refit == "average"
    of = " (worst fold)" if averaged else ""
    share = f" ({timing['inference'] / timing['total']:.0%} in inference)" if arguments.jobs in (None, 1) else ""
    lines = [f"loss {arguments.loss}, C = {model.C:g}"] if arguments.C is not None else _choice(model, arguments)
    return [
        *lines,
        f"objective {model.objective_:.6g}, within {model.gap_:.1e} of the minimum (relative gap){of}",
        f"{counted(model.n_iter_, 'iteration')}{'' if arguments.C is not None else ' in the last fit'}, "
        f"{counted(timing['calls'], 'inference call')}, {timing['total']:.2f} s{share}",
    ]


def _choice(model: Any, arguments: argparse.Namespace) -> list[str]:
    """The scores of every C, the chosen one marked."""
    metric = chosen_by(arguments).name
    lines = [f"loss {arguments.loss}, C = {model.C_:.4g} chosen by cross-validated {metric}:"]
    lines.append(f"  {'C':>12}  {metric:>8}  std over {model.scores_.shape[2]} folds")
    for C, scores in zip(model.Cs_[0], model.scores_[0], strict=True):
        found = scores[np.isfinite(scores)]
        text = f"{found.mean():8.4f}  {found.std():9.4f}" if found.size else f"{'-':>8}  {'-':>9}"
        mark = "*" if model.C_ == C else " "
        aside = f"  {found.size} folds" if found.size < scores.size else ""
        lines.append(f"{mark} {C:12.4g}  {text}{aside}")
    return lines


def chosen_by(arguments: argparse.Namespace) -> Metric:
    """The measure that C is chosen by, as RankSVMCV has it."""
    from rankwise.linear.cross_validation import metric_for

    return metric_for(as_loss(arguments.loss), arguments.scoring)


def document(
    model: Any,
    arguments: argparse.Namespace,
    data: Dataset,
    counts: Counts,
    relevant_from: float,
    interrupted: bool,
    notes: list[str],
) -> dict[str, Any]:
    """The same and more as plain data."""
    found = _candidates(model) if is_ranker(arguments) else _problem(model, arguments)
    return {
        "model": arguments.output,
        "kind": model._kind,
        "data": {**facts(data, counts, relevant_from), "queries_left_out": counts.one_class},
        **found,
        "interrupted": interrupted,
        "notes": notes,
    }


def _candidates(model: Any) -> dict[str, Any]:
    """What a LinearRanker tried."""
    report, timing = model.report_, model.timing_
    rows = zip(report.names, report.scores, report.folds, report.columns["worse_by"], report.shares, strict=True)
    keys = ("name", "score", "folds", "worse_by", "share")
    return {
        "metric": report.metric,
        "candidates": [dict(zip(keys, row, strict=True)) for row in rows],
        "best_score": model.best_score_,
        "seconds": {name: timing[name] for name in ("total", "search", "fit")},
    }


def _problem(model: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    """What a RankSVM has minimised."""
    choice = None
    if arguments.C is None:
        choice = {
            "metric": chosen_by(arguments).name,
            "refit": arguments.refit or "last",
            "C": model.Cs_[0],
            "scores": model.scores_[0],
            "best_score": model.best_score_,
        }
    timing = model.timing_
    return {
        "loss": arguments.loss,
        "C": model.C_ if arguments.C is None else model.C,
        "choice": choice,
        "prior": arguments.prior,
        "standardize": bool(arguments.standardize),
        "solver": arguments.solver,
        "objective": model.objective_,
        "dual": model.dual_,
        "gap": model.gap_,
        "tol": model.tol,
        "converged": model.converged_,
        "iterations": model.n_iter_,
        "inference_calls": timing["calls"],
        "seconds": {name: timing[name] for name in ("total", "inference", "products")},
    }
