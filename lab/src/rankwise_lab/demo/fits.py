"""What is measured of models and of methods of inference: data without behaviour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ROUNDING", "Certificate", "Data", "Fit", "Model", "Race", "Settings", "Timed", "same"]

# How closely numbers must agree that are the same but for rounding, relative to their size.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Settings:
    """What is trained, and how often.

    train: the share of images. first: how many images of a ranked list are shown, and judged by their errors. n_Cs: of
    each structured SVM. n_baseline_Cs: of the baseline, about as many as LinearRanker has candidates. fits: how often
    each method is timed.
    """

    digit: int = 8
    train: float = 0.3
    splits: int = 6
    folds: int = 3
    first: int = 100
    n_Cs: int = 6
    n_baseline_Cs: int = 16
    tol: float = 1e-3
    fits: int = 10


@dataclass(frozen=True)
class Data:
    """Sizes: all samples, and those of each split."""

    n: int
    n_pos: int
    n_features: int
    n_train: int
    n_train_pos: int
    n_test: int
    n_test_pos: int


@dataclass(frozen=True)
class Certificate:
    """What a fit says of itself, and what was found at its coefficients again: the objective, J and the loss."""

    objective: float
    dual: float
    gap: float
    n_iter: int
    planes: int
    objective_again: float
    hinge: float
    loss: float


@dataclass(frozen=True)
class Fit:
    """A model on one split.

    C: None if the model has many. ap, ndcg: on the test samples; ap_sklearn: by scikit-learn, to compare. errors: among
    the first images, from precision at that rank, so that it is a mean where scores tie.
    """

    C: float | None
    ap: float
    ap_sklearn: float
    ndcg: float
    errors: float
    seconds: float
    certificate: Certificate | None = None


@dataclass(frozen=True)
class Model:
    """A model on every split; loss is None if it is no structured SVM."""

    name: str
    loss: str | None
    fits: list[Fit]

    @property
    def ap(self) -> NDArray[np.float64]:
        """Test AP by split."""
        return np.array([fit.ap for fit in self.fits])

    @property
    def ndcg(self) -> NDArray[np.float64]:
        """Test NDCG by split."""
        return np.array([fit.ndcg for fit in self.fits])

    @property
    def errors(self) -> NDArray[np.float64]:
        """Errors among the first images, by split."""
        return np.array([fit.errors for fit in self.fits])

    @property
    def Cs(self) -> list[float]:
        """The C that were chosen, lowest first."""
        return sorted(fit.C for fit in self.fits if fit.C is not None)

    @property
    def certificates(self) -> list[Certificate]:
        """Those of the fits that have one."""
        return [fit.certificate for fit in self.fits if fit.certificate is not None]


@dataclass(frozen=True)
class Timed:
    """The fit with the least time in inference, in seconds, of those by one method. hinge: J at the same scores."""

    method: str
    calls: int
    inference: float
    total: float
    objective: float
    dual: float
    gap: float
    hinge: float

    @property
    def per_call(self) -> float:
        """Seconds of one call."""
        return self.inference / self.calls


@dataclass(frozen=True)
class Race:
    """The same model trained with several methods of inference, ours first."""

    name: str
    loss: str
    C: float
    timed: list[Timed]

    def ratio(self, timed: Timed) -> float:
        """Its time in inference over ours."""
        return timed.inference / self.timed[0].inference


def same(one: float, other: float) -> bool:
    """Whether numbers are the same but for rounding."""
    return abs(one - other) <= ROUNDING * max(1.0, abs(one))
