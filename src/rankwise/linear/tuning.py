"""The search behind LinearRanker: starts along C, their mean refined along strengths, all compared by folds.

1. Logistic regression, the squared hinge and the structured hinge of the loss, on small data also balanced
   versions of the first two, are fitted for ascending C in every fold.
2. The mean of the best of each, weighted as in 4, is refined by the smooth loss, in two ways, with falling strength.
   With grades this is done twice: by grades and by relevance. Starts use relevance only.
3. A path ends after two candidates in a row that are clearly worse than the best, measured in standard errors.
4. The ranker is the mean of all candidates, fitted to all samples and weighted by exp(−z/τ), where z tells how many
   standard errors a candidate is below the best. If positives are few, the choice of one candidate would depend on
   chance; the mean hardly does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rankwise.linear.candidates import HINGE, STRENGTHS, Part, Samples, Way
from rankwise.linear.cross_validation import Fold, Stop, judges, together
from rankwise.linear.features import Vector
from rankwise.linear.path import NoSlopeError, grid_of_C
from rankwise.linear.ranker_data import RankerData
from rankwise.linear.standardising import RowSpace
from rankwise.metrics import Metric

REFINED = "refined"
_CS = {
    "logistic": tuple(4.0**e for e in range(-5, 4)),
    "squared hinge": tuple(4.0**e for e in range(-6, 3)),
    "balanced logistic": tuple(4.0**e for e in range(-5, 4)),
    "balanced squared hinge": tuple(4.0**e for e in range(-6, 3)),
}
# Two ways to refine a start: how it is held near it, and the width of the ramp.
_WAYS = (Way("weights", 0.3), Way("scores", 3.0))
# A path ends after two candidates in a row that are worse by this many standard errors.
_GIVE_UP = 1.0
_SHARPNESS, _NEGLIGIBLE = 1.0 / 0.75, 0.05
# Number of values of C on the path to the final fits.
_APPROACH = 3
# Every fold gets its own copy of the features up to this many entries in total (256 MB).
_COPIED = 1 << 25
# How many C of the structured hinge are tried, and the ends of their grid, in powers of ten times the natural C. With
# several queries the structured hinge is often the best start and deserves a finer grid.
_ONE_QUERY, _QUERIES = (4, (1.0, 4.0)), (6, (0.0, 4.0))
# Differences below this do not count.
_NONE = 1e-6

# From coefficients to the scores of the samples that a fold leaves out.
Scores = Callable[[Vector], Vector]
# From coefficients and these scores to the values of a candidate on the fold.
Values = Callable[[Vector, Vector], Vector]


def values_of(metric: Metric, data: RankerData, folds: Sequence[Fold]) -> list[Values]:
    """Return what judges candidates on each fold by values whose mean is the metric.

    They are the precision at each positive (for AUC, the share of negatives below it), or the metric of each query. Two
    candidates differ by the mean difference of their values, whose standard error is much smaller than that of either.
    """
    by_query = judges(metric, data.judged, data.qid, folds)
    of_positives = None
    if data.qid is None and data.judged.dtype == np.bool_:
        of_positives = {"ap": precisions, "auc": overtaken}.get(metric.name)

    def on(fold: Fold, judge: Callable[[Vector], Vector]) -> Values:
        truth = data.judged[fold.test]
        if of_positives is None or not 0 < truth.sum() < truth.size:
            return lambda coef, scores: judge(scores)
        return lambda coef, scores: of_positives(scores, truth)

    return [on(fold, judge) for fold, judge in zip(folds, by_query, strict=True)]


def precisions(scores: Vector, relevant: NDArray[np.bool_]) -> Vector:
    """Return the precision at each positive, in the order of rows; tied samples count as one step."""
    everyone, positives = np.sort(scores), np.sort(scores[relevant])
    above = everyone.size - np.searchsorted(everyone, scores[relevant], side="left")
    right = positives.size - np.searchsorted(positives, scores[relevant], side="left")
    return np.asarray(right / above)


def overtaken(scores: Vector, relevant: NDArray[np.bool_]) -> Vector:
    """Return the fraction of negatives below each positive, in the order of rows; a tie counts half."""
    negatives = np.sort(scores[~relevant])
    below = np.searchsorted(negatives, scores[relevant], side="left")
    until = np.searchsorted(negatives, scores[relevant], side="right")
    return np.asarray(0.5 * (below + until) / negatives.size)


def shares(z: Vector, negligible: float = 0.0) -> Vector:
    """Return weights exp(−z/τ) that add up to 1; weights below `negligible` are set to 0."""
    weight = np.exp(-z * _SHARPNESS)
    weight[weight < negligible] = 0.0
    return np.asarray(weight / weight.sum())


@dataclass(eq=False)
class Tried:
    """A candidate. at: its C or strength. way: how it was refined. values, folds: its scores on left-out samples.

    z: by how many standard errors it is worse than the best. share: its weight. coef: fitted to all samples.
    """

    name: str
    at: float
    way: Way | None
    values: Vector
    folds: Vector
    z: float = 0.0
    share: float = 0.0
    coef: Vector | None = None


@dataclass(eq=False)
class Search:
    """Search over candidates on all folds, followed by final fits to all samples.

    values: judges of the folds. repeats: how often the folds were drawn. starts: names of the classifiers. say: called
    with progress texts.
    """

    samples: Samples
    folds: list[Fold]
    values: list[Values]
    repeats: int
    starts: tuple[str, ...]
    n_jobs: int
    say: Callable[[str], None]
    tried: list[Tried] = field(default_factory=list)
    _stop: Stop = field(default_factory=Stop)

    def __post_init__(self) -> None:
        self.whole = Part(self.samples, None, self._stop)
        own = self.samples.surrogate
        ways = _WAYS if own is None else tuple(way._replace(width=own.width or np.nan) for way in _WAYS)
        by_relevance = [] if self.samples.data.labels.grades is None else [way._replace(graded=False) for way in ways]
        self._ways = (*ways, *by_relevance)
        self._Cs = {name: _CS[name] for name in self.starts}
        n_Cs, ends = _QUERIES if self.whole.n_queries > 1 else _ONE_QUERY
        with suppress(NoSlopeError):
            self._Cs[HINGE] = tuple(grid_of_C(n_Cs, self.whole.risk(), ends).tolist())

    def widen(self, samples: Samples) -> None:
        """Do the final fits on these samples."""
        self.samples, self.whole = samples, Part(samples, None, self._stop)

    def run(self) -> bool:
        """Try all candidates; return whether this was interrupted. Candidates tried by then count."""
        if not self.folds:
            return False
        try:
            parts, held = self._parts()
            best = [self._best_start(name, parts, held) for name in self._Cs]
            weight = self._start_shares()
            means = [_average(weight, models) for models in zip(*best, strict=True)]
            starts = [part.unit(mean) for part, mean in zip(parts, means, strict=True)]
            for way in self._ways:
                paths = [part.refined(start, way) for part, start in zip(parts, starts, strict=True)]
                for tried, _ in self._follow(paths, held, way):
                    self.tried.append(tried)
        except KeyboardInterrupt:
            return True
        return False

    def _parts(self) -> tuple[list[Part], list[Scores]]:
        """Return the training part of each fold, and scorers of its left-out samples: copies, unless too large."""
        folds, samples, features = self.folds, self.samples, self.samples.features

        def scores(rows: NDArray[np.int64], coef: Vector) -> Vector:
            return features.scores(coef)[rows]

        if isinstance(features, RowSpace) or len(folds) * features.n_entries > _COPIED:
            parts = [Part(samples, fold.train, self._stop) for fold in folds]
            return parts, [partial(scores, fold.test) for fold in folds]
        parts = [Part(samples.copy_of(fold.train), None, self._stop) for fold in folds]
        return parts, [features.rows(fold.test).scores for fold in folds]

    def _best_start(self, name: str, parts: list[Part], held: list[Scores]) -> list[Vector]:
        """Try a start for ascending C; return the best coefficients, by fold. After Ctrl-C, the best so far counts."""
        paths = [part.starts(name, self._Cs[name]) for part in parts]
        found: list[tuple[Tried, list[Vector]]] = []
        try:
            for pair in self._follow(paths, held, name):
                found.append(pair)
        finally:
            if found:
                best, models = max(found, key=lambda pair: float(np.nansum(pair[0].values)))
                self.tried.append(best)
        return models

    def _follow(
        self, paths: list[Iterator[Vector]], held: list[Scores], of: str | Way
    ) -> Iterator[tuple[Tried, list[Vector]]]:
        """Yield candidates along a path, in all folds at once, until two in a row are clearly worse than the best.

        of: the start, whose rivals are on the path, or the way to refine, whose rivals are all that was tried.
        """
        way = of if isinstance(of, Way) else None
        name, values, seen = (of, self._Cs[of], []) if isinstance(of, str) else (REFINED, STRENGTHS, self.tried.copy())

        def judged(number: int) -> Iterator[tuple[Vector, Vector]]:
            for coef in paths[number]:
                yield coef, self.values[number](coef, held[number](coef))

        on_folds = [judged(number) for number in range(len(paths))]
        for k, (at, found) in enumerate(zip(values, together(on_folds, self.n_jobs, self._stop), strict=False)):
            by_fold = [of_fold for _, of_fold in found]
            tried = Tried(name, at, way, np.concatenate(by_fold), np.array([mean_of_known(one) for one in by_fold]))
            if not np.isfinite(tried.folds).any():
                raise ValueError(
                    "no fold of cv leaves out samples that the metric can judge; use folds that leave out both classes"
                )
            self.say(f"{name}, {'C' if way is None else 'strength'} {at:.3g}: {mean_of_known(tried.folds):.4f}")
            yield tried, [coef for coef, _ in found]
            seen.append(tried)
            if k >= (1 if way else 2) and self._worse_by(seen)[-2:].min() > _GIVE_UP:
                return

    def _worse_by(self, tried: Sequence[Tried]) -> Vector:
        """Return by how many standard errors of the difference each candidate is worse than the best."""
        seen = np.array([one.values for one in tried])
        fine = np.isfinite(seen).all(axis=0)
        if not fine.any():
            return np.zeros(len(seen))
        n_independent = max(float(np.isfinite(seen[0]).sum()) / self.repeats, 1.0)
        seen = seen[:, fine]
        gap = seen[np.argmax(seen.mean(axis=1))] - seen
        error = gap.std(axis=1) / np.sqrt(n_independent)
        return np.asarray(gap.mean(axis=1) / (error + _NONE))

    def _start_shares(self) -> Vector:
        """Return the weights of the starts in the mean that is refined."""
        starts = [tried for tried in self.tried if tried.way is None]
        return shares(self._worse_by(starts))

    def conclude(self) -> Iterator[Vector]:
        """Fit the candidates that count to all samples; yield their mean whenever one more is fitted."""
        self._weigh()
        self._stop.clear()  # an interrupt of the search does not stop the final fits
        starts = [tried for tried in self.tried if tried.way is None]
        for tried in starts:
            Cs = tuple(C for C in self._Cs[tried.name] if tried.at >= C)[-_APPROACH:]
            *_, tried.coef = self.whole.starts(tried.name, Cs)
            yield self._mean_of_fitted()
        start = self.whole.unit(_average(self._start_shares(), [tried.coef for tried in starts]))
        for way in self._ways:
            wanted = {tried.at: tried for tried in self.tried if tried.way == way and tried.share > 0.0}
            for strength, coef in zip(STRENGTHS if wanted else (), self.whole.refined(start, way), strict=False):
                self.say(f"all samples, {way.pull}, strength {strength:.3g}")
                if strength in wanted:
                    wanted[strength].coef = coef
                    yield self._mean_of_fitted()
                if strength <= min(wanted):
                    break

    def _weigh(self) -> None:
        """Set the weight of every candidate."""
        if not self.tried:  # nothing was judged: use the starts with medium C
            first = {name: Cs[-1] if name == HINGE else Cs[len(Cs) // 2] for name, Cs in self._Cs.items()}
            self.tried = [Tried(name, at, None, np.empty(0), np.empty(0)) for name, at in first.items()]
        z = self._worse_by(self.tried)
        for tried, worse, share in zip(self.tried, z, shares(z, _NEGLIGIBLE), strict=True):
            tried.z, tried.share = float(worse), float(share)

    def _mean_of_fitted(self) -> Vector:
        """Return the mean of the candidates fitted so far."""
        used = [tried for tried in self.tried if tried.coef is not None]
        weight = np.array([tried.share for tried in used])
        weight = weight if weight.any() else np.ones(len(used))
        return _average(weight / weight.sum(), [tried.coef for tried in used])


def mean_of_known(values: Vector) -> float:
    """Return the mean of the values that are not NaN; NaN if there are none."""
    seen = values[~np.isnan(values)]
    return float(seen.mean()) if seen.size else np.nan


def _average(weights: Vector, models: Sequence[Vector | None]) -> Vector:
    """Return the weighted sum of coefficients."""
    return np.asarray(sum(weight * coef for weight, coef in zip(weights, models, strict=True)))
