"""The candidates that LinearRanker tried, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.linear.candidates import BY_RELEVANCE, HINGE
from rankwise.linear.tuning import REFINED, Tried, mean_of_known

_NAMES = ("logistic", "squared hinge", HINGE, REFINED, "balanced logistic", "balanced squared hinge")
_PULLS = ("", "weights", "scores", f"weights{BY_RELEVANCE}", f"scores{BY_RELEVANCE}")
_FOLD = "fold"


def columns_of(tried: Sequence[Tried]) -> dict[str, NDArray[Any]]:
    """Return the candidates as columns of numbers, for a model file."""
    columns: dict[str, NDArray[Any]] = {
        "model": np.array([_NAMES.index(t.name) for t in tried]),
        "pull": np.array([_PULLS.index("" if t.way is None else t.way.held) for t in tried]),
        "width": np.array([np.nan if t.way is None else t.way.width for t in tried]),
        "at": np.array([t.at for t in tried]),
        "worse_by": np.array([t.z for t in tried]),
        "share": np.array([t.share for t in tried]),
    }
    for k in range(tried[0].folds.size):
        columns[f"{_FOLD}{k}"] = np.array([t.folds[k] for t in tried])
    return columns


def check_columns(columns: Mapping[str, NDArray[Any]]) -> None:
    """Refuse columns of equal length that no ranker has, such as those of a damaged file."""
    for name, known in (("model", _NAMES), ("pull", _PULLS)):
        codes = columns.get(name)
        if codes is None or codes.dtype.kind != "i" or not ((codes >= 0) & (codes < len(known))).all():
            raise ValueError(f"the column {name} of the history does not hold integers from 0 to {len(known) - 1}")
    for name in ("width", "at", "worse_by", "share", *(name for name in columns if name.startswith(_FOLD))):
        values = columns.get(name)
        if values is None or values.dtype != np.float64 or not values.size or np.isinf(values).any():
            raise ValueError(f"the column {name} of the history does not hold finite numbers")
    if not np.isfinite(columns["share"]).all():
        raise ValueError("the column share of the history has a NaN")


def _name(model: int, pull: int, width: float, at: float) -> str:
    """Return the description of a candidate in words."""
    if _NAMES[int(model)] != REFINED:
        return f"{_NAMES[int(model)]}, C = {at:.3g}"
    held = _PULLS[int(pull)]
    refined = "refined by relevance" if held.endswith(BY_RELEVANCE) else "refined"
    of = "" if np.isnan(width) else f", width {width:g}"  # a surrogate of one's own need not have a width
    return f"{refined}{of}, pull on {held.removesuffix(BY_RELEVANCE)} {at:g}"


class TuningReport:
    """The candidates that a `LinearRanker` tried. Print it for a table.

    columns: `LinearRanker.history_`. metric: the name of what was scored. names: candidates in words. folds:
    (n_candidates, n_folds), their scores. scores: (n_candidates,), the means; NaN without folds. shares: their weights
    in the ranker, which add up to 1.
    """

    def __init__(self, columns: Mapping[str, NDArray[Any]], metric: str) -> None:
        self.columns, self.metric = columns, metric
        rows = zip(*(columns[name] for name in ("model", "pull", "width", "at")), strict=True)
        self.names = [_name(*row) for row in rows]
        self.shares = columns["share"]
        by_fold = [values for name, values in columns.items() if name.startswith(_FOLD)]
        self.folds = np.array(by_fold).reshape(len(by_fold), len(self.names)).T
        self.scores = np.array([mean_of_known(row) for row in self.folds])

    @property
    def best_score(self) -> float:
        """Highest mean score; NaN without folds."""
        return float(np.nanmax(self.scores)) if np.isfinite(self.scores).any() else float("nan")

    def __repr__(self) -> str:
        width = max(len(name) for name in self.names)
        head = f"{'candidate':<{width}}  {self.metric:>8}  {'± folds':>8}  {'share':>6}"
        rows = [head, "-" * len(head)]
        best = int(np.nanargmax(self.scores)) if np.isfinite(self.scores).any() else -1
        for k, (name, score) in enumerate(zip(self.names, self.scores, strict=True)):
            is_scored = bool(np.isfinite(score))
            spread = f"{np.nanstd(self.folds[k]):.4f}" if is_scored else "–"
            mean = (f"{score:.4f}" if is_scored else "–") + ("*" if k == best else " ")
            rows.append(f"{name:<{width}}  {mean:>9} {spread:>8}  {100 * self.shares[k]:5.1f} %")
        what = (
            f"* best of {len(rows) - 2} candidates" if best >= 0 else f"– none of {len(rows) - 2} candidates was scored"
        )
        return "\n".join([*rows, f"{what}; the ranker is their mean, weighted by share"])
