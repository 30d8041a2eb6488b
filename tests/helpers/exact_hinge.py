"""The structured hinge of one query in whole numbers, and what a result is worth against it.

Every float is a whole number of units of 2^−1074, so J of a ranking is a fraction, and differences of rankings are
exact. What is not dyadic (1/m, 1/C) is cut off at 2^−300. From docs/theory.md only the definition is used,

    J = 2/(PN) · max Σ_k h_k(c_k),   0 ≤ c_1 ≤ … ≤ c_P ≤ N,
    h_k(c) = Σ_{j ≤ c} (s*_j − s⁺_k) + scale·(PN/2C)·w_k·(D(k) − D(k + c)).

Two ways to the maximum: `best` halves the range of c, in O(P log N) for concave h_k; `by_enumeration` needs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from itertools import accumulate, combinations
from math import frexp, fsum
from typing import NamedTuple

import numpy as np

import rankwise as rw

BITS = 300  # after the point, of numbers that are no dyadic fractions


def units(values: np.ndarray, bits: int) -> list[int]:
    """Floats in units of 2^−bits, rounded down."""
    mantissas, exponents = np.frexp(values)
    wholes, shifts = (mantissas * 2.0**53).astype(np.int64).tolist(), (exponents - 53 + bits).tolist()
    return [whole << by if by >= 0 else whole >> -by for whole, by in zip(wholes, shifts, strict=True)]


class _Discounts(dict[int, int]):
    """D(1), …, D(size) in units of 2^−300, each when it is first asked for."""

    def __init__(self, loss: rw.DiscountedLoss, size: int) -> None:
        self.of = loss.discounts(np.arange(1, size + 1), size)

    def __missing__(self, m: int) -> int:
        mantissa, exponent = frexp(self.of[m - 1])
        shift, whole = exponent - 53 + BITS, int(mantissa * 2.0**53)
        self[m] = found = whole << shift if shift >= 0 else whole >> -shift
        return found


_discounts = cache(_Discounts)


class ExactHinge:
    """One query with positives and negatives, in units of 2^−bits; a ranking is told by c_1, …, c_P."""

    def __init__(self, scores: np.ndarray, relevant: np.ndarray, loss: rw.DiscountedLoss, scale: float) -> None:
        exact = scores.astype(np.float64)
        _, exponents = np.frexp(exact[exact != 0.0])
        self.bits = max(BITS, 53 - int(exponents.min(initial=0)))
        self.pos, self.neg = (units(np.sort(exact[of])[::-1], self.bits) for of in (relevant, ~relevant))
        self.n_pos, self.n_neg = len(self.pos), len(self.neg)
        self.highest = [0, *accumulate(self.neg)]  # sums of the c highest negatives
        self.discount: _Discounts | None = None
        self.harmonic = isinstance(loss, rw.AveragePrecision | rw.ReciprocalRank)
        self._worth: dict[bytes, tuple[Fraction, Fraction]] = {}
        if isinstance(loss, rw.AveragePrecision):
            self.weight, norm = list(range(1, self.n_pos + 1)), Fraction(self.n_pos)
        elif isinstance(loss, rw.ReciprocalRank):
            self.weight, norm = [1] + [0] * (self.n_pos - 1), Fraction(1)
        elif isinstance(loss, rw.AUC):
            self.weight, norm = [1] * self.n_pos, Fraction(self.n_pos * self.n_neg)
        else:
            n = scores.size
            self.weight = units(loss.tables(self.n_pos, n).weight[: self.n_pos], BITS)
            discount = self.discount = _discounts(loss, 1 << n.bit_length())
            norm = Fraction(sum(w * discount[k] for k, w in enumerate(self.weight, 1)), 1 << 2 * BITS)
        pairs = Fraction(self.n_pos * self.n_neg, 2)
        self.per_loss = int((1 << BITS) * pairs / norm)  # PN/2C
        self.factor = int((1 << BITS) * pairs / norm * Fraction(scale))

    def felt(self, k: int, first: int, last: int, factor: int) -> int:
        """factor·w_k·(D(k + first) − D(k + last)), k from 1."""
        w, shift = self.weight[k - 1], self.bits - BITS
        if w == 0 or first == last:
            return 0
        if self.harmonic:
            return (w * (last - first) * factor << shift) // ((k + first) * (k + last))
        if self.discount is None:
            return (last - first) * factor << shift
        return w * (self.discount[k + first] - self.discount[k + last]) * factor << self.bits >> 3 * BITS

    def step(self, k: int, j: int) -> int:
        """h_k(j) − h_k(j − 1)."""
        return self.neg[j - 1] - self.pos[k - 1] + self.felt(k, j - 1, j, self.factor)

    def h(self, k: int, c: int) -> int:
        return self.highest[c] - c * self.pos[k - 1] + self.felt(k, 0, c, self.factor)

    def _normalised(self, total: int) -> Fraction:
        return Fraction(2 * total, self.n_pos * self.n_neg << self.bits)

    def objective(self, above: Iterable[int]) -> Fraction:
        """J of a ranking in which each class is in score order."""
        return self._normalised(sum(self.h(k, c) for k, c in enumerate(above, 1)))

    def lost(self, above: Iterable[int]) -> Fraction:
        """Δ of a ranking."""
        return self._normalised(sum(self.felt(k, 0, c, self.per_loss) for k, c in enumerate(above, 1)))

    def worth(self, above: np.ndarray) -> tuple[Fraction, Fraction]:
        """J and Δ of a ranking, computed once for all methods that find it."""
        if (key := above.tobytes()) not in self._worth:
            self._worth[key] = self.objective(above.tolist()), self.lost(above.tolist())
        return self._worth[key]

    def best(self) -> list[int]:
        """c of a most violating ranking: of a block of positives, the end of largest gain takes the upper half."""
        above = [0] * self.n_pos
        blocks = [(1, self.n_pos + 1, 0, self.n_neg)]
        while blocks:
            first, end, low, high = blocks.pop()
            if low == high:
                above[first - 1 : end - 1] = [low] * (end - first)
                continue
            middle = (low + high) // 2
            total = most = 0
            cut = end
            for k in range(end - 1, first - 1, -1):
                total += self.step(k, middle + 1)
                if total > most:
                    most, cut = total, k
            halves = (first, cut, low, middle), (cut, end, middle + 1, high)
            blocks += [half for half in halves if half[0] < half[1]]
        return above

    def by_enumeration(self) -> Fraction:
        """J by a look at every interleaving."""
        every = combinations(range(self.n_pos + self.n_neg), self.n_pos)
        return max(self.objective(place - k for k, place in enumerate(places)) for places in every)


def gradient_of(scores: np.ndarray, relevant: np.ndarray, above: np.ndarray) -> np.ndarray:
    """(n,) 2(P + 1 − r_j)/(PN) of negatives and −2 c_k/(PN) of positives, shared by ties of one class; in float64."""
    n_pos, n_neg = above.size, scores.size - above.size
    rank = 1 + np.searchsorted(above, np.arange(n_neg), side="right")
    gradient = np.empty(scores.size)
    for of, whole in ((relevant, -above), (~relevant, n_pos + 1 - rank)):
        where = np.flatnonzero(of)
        where = where[np.argsort(-scores[where], kind="stable")]
        begins = np.flatnonzero(np.concatenate([[True], scores[where[1:]] != scores[where[:-1]]]))
        sizes = np.diff(begins, append=where.size)
        mean = np.add.reduceat(whole, begins) / sizes  # of whole numbers: one rounding
        gradient[where] = np.repeat(2.0 * mean / (float(n_pos) * float(n_neg)), sizes)
    return gradient


class Judgement(NamedTuple):
    """How far a result is from what it claims to be; 0 is perfect."""

    value: float  # |value − J of the ranking|
    regret: float  # best J − J of the ranking
    lost: float  # |loss − Δ of the ranking|
    gradient: float  # furthest from that of the ranking, relative, in units of the dtype's eps
    sum: float  # |Σ gradient| in units of eps·Σ |gradient|
    sign: int  # negatives with a gradient below 0, positives with one above
    disorder: int  # negatives ranked above one of a higher score
    best: float  # J


def judge(
    problem: ExactHinge, best: Fraction, scores: np.ndarray, relevant: np.ndarray, found: rw.HingeResult
) -> Judgement:
    ranking = found.interleaving
    above = ranking.above
    attained, lost = problem.worth(above)
    expected, gradient = gradient_of(scores, relevant, above), found.gradient.astype(np.float64)
    eps, off = float(np.finfo(found.gradient.dtype).eps), gradient != expected
    with np.errstate(divide="ignore"):
        ulps = np.abs(gradient - expected)[off] / (eps * np.abs(expected[off]))
    by_score = np.lexsort((ranking.ranks, -scores[ranking.negatives]))
    return Judgement(
        value=_distance(found.value, attained),
        regret=float(best - attained),
        lost=_distance(found.loss, lost),
        gradient=float(ulps.max(initial=0.0)),
        sum=abs(fsum(gradient)) / (eps * max(float(np.abs(gradient).sum()), 1e-300)),
        sign=int((np.where(relevant, -gradient, gradient) < 0).sum()),
        disorder=int((np.diff(ranking.ranks[by_score]) < 0).sum()),
        best=float(best),
    )


def _distance(number: float, exact: Fraction) -> float:
    return float(abs(Fraction(number) - exact)) if np.isfinite(number) else np.inf
