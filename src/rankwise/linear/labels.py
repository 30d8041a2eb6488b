"""Labels: two classes, or grades of relevance."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from rankwise.arguments import as_grades
from rankwise.queries import Truth

__all__ = ["Labels", "as_labels", "two_classes"]

# scikit-learn's names for labels of more than two numbers.
_GRADED = ("multiclass", "continuous")


class Labels(NamedTuple):
    """Labels, (n,) each: which samples are relevant, and their grades, or None if there are two classes.

    With grades, samples above the lowest grade are relevant.
    """

    relevant: NDArray[np.bool_]
    grades: NDArray[np.float64] | None = None

    @property
    def truth(self) -> Truth:
        """What rankings are trained on: the grades if there are any, otherwise the relevance."""
        return self.relevant if self.grades is None else self.grades

    def part(self, rows: NDArray[np.int64]) -> Labels:
        """Return the labels of some samples."""
        return Labels(self.relevant[rows], None if self.grades is None else self.grades[rows])


def as_labels(y: NDArray[Any], has_queries: bool, name: str = "y") -> tuple[NDArray[Any], Labels]:
    """Return the two classes and the labels from y, (n,), which scikit-learn has checked.

    With queries, more than two different numbers are grades, and the classes are 0 and 1. name: of y in errors.
    """
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if has_queries and kind in _GRADED and y.dtype.kind in "fiu":
        grades = as_grades(y, y.size, name, "X")
        return np.array([0, 1]), Labels(grades > grades.min(), grades)
    classes, relevant = two_classes(y)
    return classes, Labels(relevant)


def two_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the two classes, and which samples are of the second one, the greater label."""
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind != "binary":
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}. For grades, pass qid, the "
            "query of each sample; for several classes, use sklearn.multiclass.OneVsRestClassifier"
        )
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size != 2:
        raise ValueError(
            f"Classifier can't train when only one class is present: every label is {classes.tolist()[0]!r}; "
            "pass positives and negatives"
        )
    return classes, codes == 1
