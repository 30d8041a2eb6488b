"""What a loss of rankings says of itself: its form, its steps, and whether it is QS-suitable.

A ranking of P positives and N negatives is given by c_k = the number of negatives above the k-th positive. A loss takes
one of two forms, a weight and a discount (discounted_loss.py) or a step function (step_loss.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum, IntEnum, auto
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.gains import Gain

__all__ = ["ROUNDING", "TINY", "Form", "Loss", "LossTables", "NotQSSuitableError", "Tail", "breaks_c2"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# A second difference this small against the discount is rounding, not a breach of (C2).
ROUNDING = 8 * np.finfo(np.float64).eps
TINY = 1e-300  # nor is one where values underflow


class NotQSSuitableError(ValueError):
    """A loss breaks a condition under which its most violating ranking is found fast; `.i`, `.j` say where."""

    def __init__(self, message: str, i: int | None = None, j: int | None = None) -> None:
        super().__init__(message)
        self.i = i
        self.j = j


class Tail(IntEnum):
    """Closed form of a discount beyond its table."""

    NONE = 0
    RECIPROCAL = 1  # 1/m
    LOG2 = 2  # 1/log2(1 + m)
    LINEAR = 3  # −m
    ZERO = 4  # nothing: of a discount that is cut off


class Form(Enum):
    """What a loss is made of, which decides who can find its most violating output."""

    DISCOUNT = auto()  # a weight and a discount: it has `tables`, and every method serves
    STEPS = auto()  # a ranking's, known by its steps alone
    THRESHOLD = auto()  # a ranking's, judged at its best threshold: no sum over negatives, a method of its own
    LABELS = auto()  # a labelling's, not a ranking's: no ranking method serves


class LossTables(NamedTuple):
    """A loss as kernels see it: data. Weights w_1.., discounts D(0).., and whether C = PN."""

    weight: FloatArray
    discount: FloatArray
    tail: int
    per_pair: bool


class Loss(ABC):
    """A loss Δ(R*, R) of a ranking of positives and negatives.

    It states what others need to know of it. form: what it is made of. learns_intercept: whether it depends on a common
    offset of all scores. proven: whether (C2) is known to hold, so that there is nothing to check. step: its step
    function, if that takes arrays and tensors alike. k: the last place that counts, None where all do. gain: what a
    grade is worth, see `rankwise.gains`.
    """

    name: str
    form: Form = Form.STEPS
    learns_intercept: bool = False
    proven: bool = False
    k: int | None = None
    gain: Gain = "linear"
    step: Callable[[Any, Any, int, int], Any] | None = None

    @property
    def qs_suitable(self) -> bool | None:
        """Whether (C2) holds for queries of every size; None where `check_qs_suitable` must look at sizes."""
        return None

    @abstractmethod
    def steps(self, i: ArrayLike, j: ArrayLike, n_pos: int, n_neg: int) -> FloatArray:
        """δ_j(i+1) − δ_j(i), for 1 ≤ i ≤ n_pos and 1 ≤ j ≤ n_neg, broadcast over i and j."""

    @abstractmethod
    def of_counts(self, above: ArrayLike, n_neg: int) -> FloatArray:
        """Δ of rankings, above[..., k−1] being the number of negatives above the k-th positive."""

    @abstractmethod
    def check(self, n_pos: int, n_neg: int, thorough: bool = True) -> None:
        """Raise `NotQSSuitableError` unless (C1) and (C2) hold for these counts.

        Where that takes a look at every (i, j) and there are very many, thorough=False looks at every j of some i only.
        """

    def check_many(self, n_pos: IntArray, n_neg: IntArray) -> None:
        """`check` for queries of these counts (Q,); those without positives or negatives are passed over."""
        if self.proven:
            return
        both = (n_pos > 0) & (n_neg > 0)
        pairs = np.unique(np.stack([n_pos[both], n_neg[both]], axis=1), axis=0)
        for p, n in pairs[np.argsort(-pairs.sum(axis=1), kind="stable")]:  # the largest first: it settles the others
            self.check(int(p), int(n))

    def tables(self, n_pos: int, n: int) -> LossTables:
        """Weights for at least n_pos positives and discounts for n places, of a loss of the form DISCOUNT."""
        raise TypeError(f"{self.name} has no weight and no discount")

    def normaliser(self, n_pos: int, n_neg: int) -> float:
        """C, what Δ is divided by; raises `ValueError` where it is not positive."""
        return 1.0

    def normalisers(self, n_pos: IntArray, n_neg: IntArray) -> FloatArray:
        """C of queries of these counts, (Q,), all with positives."""
        return np.array([self.normaliser(int(p), int(n)) for p, n in zip(n_pos, n_neg, strict=True)])

    def of_scores(self, scores: NDArray[np.floating], relevant: NDArray[np.bool_], worst: bool) -> float:
        """Δ of the output that finite scores induce; a tie of a positive and a negative counts as wrong if worst."""
        pos, neg = np.sort(scores[relevant])[::-1], np.sort(scores[~relevant])
        above = neg.size - np.searchsorted(neg, pos, side="left" if worst else "right")
        return float(self.of_counts(above, neg.size))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def breaks_c2(name: str, i: int, j: int, now: float, then: float) -> NotQSSuitableError:
    """The error that says where (C2) breaks: step_{j+1}(i) = then < step_j(i) = now."""
    return NotQSSuitableError(
        f"{name} breaks (C2) at (i, j) = ({i}, {j}): step_{j + 1}({i}) = {then:.6g} < step_{j}({i}) = {now:.6g}; "
        "the discount must be convex there (steps must not fall as j grows)",
        i,
        j,
    )
