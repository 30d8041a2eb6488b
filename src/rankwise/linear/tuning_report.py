"""The candidates that LinearRanker tried, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.linear.tuning import HINGE, REFINED, Tried

__all__ = ["TuningReport", "check_columns", "columns_of"]

_NAMES = ("logistic", "squared hinge", HINGE, REFINED, "balanced logistic", "balanced squared hinge")
_BY_RELEVANCE = ", by relevance"
_PULLS = ("", "weights", "scores", f"weights{_BY_RELEVANCE}", f"scores{_BY_RELEVANCE}")
_FOLD = "fold"


def columns_of(tried: Sequence[Tried]) -> dict[str, NDArray[Any]]:
    """Return the candidates as columns of numbers, for a model file."""
    columns: dict[str, NDArray[Any]] = {
        "model": np.array([_NAMES.index(t.name) for t in tried]),
        "pull": np.array([_PULLS.index(_pull_of(t)) for t in tried]),
        "width": np.array([np.nan if t.way is None else t.way.width for t in tried]),
        "at": np.array([t.at for t in tried]),
        "worse_by": np.array([t.z for t in tried]),
        "share": np.array([t.share for t in tried]),
    }
    for k in range(tried[0].folds.size):
        columns[f"{_FOLD}{k}"] = np.array([t.folds[k] for t in tried])
    return columns


def _pull_of(tried: Tried) -> str:
    """Return the pull on a refined candidate, and whether relevance replaced its grades."""
    if tried.way is None:
        return ""
    return tried.way.pull if tried.way.graded else f"{tried.way.pull}{_BY_RELEVANCE}"


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


class TuningReport:
    """Table of the candidates that a `LinearRanker` tried.

    Print it for a table of scores and weights.

    Parameters
    ----------
    columns : mapping of str to ndarray
        Columns of the table, from `LinearRanker.history_`.
    metric : str
        Name of the metric of the scores.
    """

    def __init__(self, columns: Mapping[str, NDArray[Any]], metric: str) -> None:
        self.columns, self.metric = columns, metric

    @property
    def names(self) -> list[str]:
        """Description of each candidate, in words."""
        c = self.columns
        return [self._name(*row) for row in zip(c["model"], c["pull"], c["width"], c["at"], strict=True)]

    @staticmethod
    def _name(model: int, pull: int, width: float, at: float) -> str:
        if _NAMES[int(model)] != REFINED:
            return f"{_NAMES[int(model)]}, C = {at:.3g}"
        held = _PULLS[int(pull)]
        refined = "refined by relevance" if held.endswith(_BY_RELEVANCE) else "refined"
        of = "" if np.isnan(width) else f", width {width:g}"  # a surrogate of one's own need not have a width
        return f"{refined}{of}, pull on {held.removesuffix(_BY_RELEVANCE)} {at:g}"

    @property
    def folds(self) -> NDArray[np.float64]:
        """Scores by candidate and fold, (n_candidates, n_folds)."""
        found = [values for name, values in self.columns.items() if name.startswith(_FOLD)]
        return np.array(found).T if found else np.empty((self.shares.size, 0))

    @property
    def scores(self) -> NDArray[np.float64]:
        """Mean score of each candidate over the folds, (n_candidates,); NaN without folds."""
        folds = self.folds
        judged = np.isfinite(folds)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(judged, folds, 0.0).sum(axis=1) / judged.sum(axis=1))

    @property
    def shares(self) -> NDArray[np.float64]:
        """Weight of each candidate in the ranker, (n_candidates,). The weights add up to 1."""
        return np.asarray(self.columns["share"])

    @property
    def best_score(self) -> float:
        """Highest mean score; NaN without folds."""
        found = self.scores[np.isfinite(self.scores)]
        return float(found.max()) if found.size else float("nan")

    def __str__(self) -> str:
        names, scores, folds = self.names, self.scores, self.folds
        width = max(len(name) for name in names)
        head = f"{'candidate':<{width}}  {self.metric:>8}  {'± folds':>8}  {'share':>6}"
        rows = [head, "-" * len(head)]
        best = int(np.nanargmax(scores)) if np.isfinite(scores).any() else -1
        for k, name in enumerate(names):
            spread = f"{np.nanstd(folds[k]):.4f}" if np.isfinite(folds[k]).any() else "–"
            score = (f"{scores[k]:.4f}" if np.isfinite(scores[k]) else "–") + ("*" if k == best else " ")
            rows.append(f"{name:<{width}}  {score:>9} {spread:>8}  {100 * self.shares[k]:5.1f} %")
        what = f"* best of {len(names)} candidates" if best >= 0 else f"– none of {len(names)} candidates was scored"
        return "\n".join([*rows, f"{what}; the ranker is their mean, weighted by share"])

    def __repr__(self) -> str:
        best = f"best {self.metric} {self.best_score:.4f}" if np.isfinite(self.best_score) else "none scored"
        return f"<TuningReport: {len(self.names)} candidates, {best}>"
