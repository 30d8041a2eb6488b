"""What the demonstration found: data without behaviour but for the checks that it must pass."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.figures import Curve

__all__ = ["Certificate", "Data", "Demo", "Fit", "Model", "Race", "Settings", "Timed", "as_dict"]

# How closely numbers must agree that are the same but for rounding, relative to their size.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Settings:
    """What is trained, and how often. train: the share of images. fits: how often each method is timed."""

    digit: int = 8
    train: float = 0.3
    splits: int = 5
    folds: int = 3
    n_Cs: int = 6
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
    """A model on one split. ap, ndcg: on the test samples; ap_sklearn: by scikit-learn, to compare."""

    C: float
    ap: float
    ap_sklearn: float
    ndcg: float
    seconds: float
    certificate: Certificate | None = None


@dataclass(frozen=True)
class Model:
    """A model on every split; loss is None for the one to compare with."""

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


@dataclass(frozen=True)
class Demo:
    """Everything the demonstration shows. curves, histories: of the first split."""

    settings: Settings
    data: Data
    models: list[Model]
    races: list[Race]
    machine: Mapping[str, Any] = field(default_factory=dict)
    curves: list[Curve] = field(default_factory=list)
    histories: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict)

    @property
    def checks(self) -> dict[str, bool]:
        """What must hold, and whether it does."""
        fits = [fit for model in self.models for fit in model.fits]
        certificates = [certificate for model in self.models for certificate in model.certificates]
        gaps = [*(one.gap for one in certificates), *(one.gap for race in self.races for one in race.timed)]
        chance = self.data.n_test_pos / self.data.n_test
        return {
            f"every certified gap is at most {self.settings.tol:g}": all(
                0.0 <= gap <= self.settings.tol for gap in gaps
            ),
            "objectives, computed again from the coefficients, are as reported": all(
                _same(one.objective, one.objective_again) for one in certificates
            ),
            "J is at least the loss of the ranking, after every fit": all(
                one.hinge >= one.loss - _ROUNDING for one in certificates
            ),
            "all methods reach the same minimum, within their certified gaps": all(
                max(one.dual for one in race.timed) <= (1 + _ROUNDING) * min(one.objective for one in race.timed)
                for race in self.races
            ),
            f"all methods find the same J for the same scores, to {_ROUNDING:g}": all(
                _same(one.hinge, race.timed[0].hinge) for race in self.races for one in race.timed
            ),
            "average precision is that of scikit-learn": all(_same(fit.ap, fit.ap_sklearn) for fit in fits),
            f"every model ranks better than chance, an AP of {chance:.3f}": all(fit.ap > chance for fit in fits),
        }

    @property
    def holds(self) -> bool:
        """Whether all checks hold."""
        return all(self.checks.values())


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= _ROUNDING * max(1.0, abs(one))


def as_dict(demo: Demo) -> dict[str, Any]:
    """The demonstration as plain data."""
    return {
        "settings": dataclasses.asdict(demo.settings),
        "data": dataclasses.asdict(demo.data),
        "machine": dict(demo.machine),
        "models": [dataclasses.asdict(model) for model in demo.models],
        "races": [dataclasses.asdict(race) for race in demo.races],
        "curves": [_plain(curve._asdict()) for curve in demo.curves],
        "histories": {name: _plain(history) for name, history in demo.histories.items()},
        "checks": demo.checks,
        "holds": demo.holds,
    }


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}
