"""What the demonstration found, the checks that it must pass, and all of it as plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise_lab.figures import Curve
from rankwise_lab.intervals import Interval, student

# How closely numbers must agree that are the same but for rounding, relative to their size.
_ROUNDING = 1e-9


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
        return np.array([fit.ap for fit in self.fits])

    @property
    def ndcg(self) -> NDArray[np.float64]:
        return np.array([fit.ndcg for fit in self.fits])

    @property
    def errors(self) -> NDArray[np.float64]:
        return np.array([fit.errors for fit in self.fits])

    @property
    def Cs(self) -> list[float]:
        """The C that were chosen, lowest first."""
        return sorted(fit.C for fit in self.fits if fit.C is not None)

    @property
    def certificates(self) -> list[Certificate]:
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
class Ranked:
    """Test images in the order of a model's scores, best first.

    scores: (n,). images: (n,) where each is in the data. digits: (n,) what each shows. pixels: (n, 8, 8) from 0 (paper)
    to 1 (ink). sought: the digit to be found.
    """

    scores: NDArray[np.float64]
    images: NDArray[np.intp]
    digits: NDArray[np.intp]
    pixels: NDArray[np.float64]
    sought: int

    @property
    def hits(self) -> NDArray[np.intp]:
        """Ranks of the images that show the digit; the first rank is 1."""
        return np.flatnonzero(self.digits == self.sought) + 1

    @property
    def errors(self) -> NDArray[np.intp]:
        """Ranks of the images that do not."""
        return np.flatnonzero(self.digits != self.sought) + 1

    @property
    def ap(self) -> float:
        """Average precision, counted from the list: the mean of the share of hits down to each hit."""
        return float(np.mean(np.arange(1, self.hits.size + 1) / self.hits))


@dataclass(frozen=True)
class Shown:
    """The split whose images are shown. number: 0 for the first. trained: (m,) images that the models learnt from."""

    number: int
    trained: NDArray[np.intp]
    ours: Ranked
    baseline: Ranked
    curves: list[Curve]


@dataclass(frozen=True)
class Comparison:
    """The two models on every split, the baseline with its default settings, and the split that is shown."""

    ours: Model
    baseline: Model
    untuned: Model
    shown: Shown

    @property
    def gain(self) -> NDArray[np.float64]:
        return self.ours.ap - self.baseline.ap

    @property
    def interval(self) -> Interval:
        """The mean gain and its 95 % interval by Student's t: where the mean over all splits of these data may lie."""
        return student(self.gain)

    @property
    def pairs(self) -> list[tuple[Model, Ranked]]:
        return [(self.ours, self.shown.ours), (self.baseline, self.shown.baseline)]

    def checks(self, settings: Settings, data: Data) -> dict[str, bool]:
        fits = [*self.ours.fits, *self.baseline.fits, *self.untuned.fits]
        lists, chance = [ranked for _, ranked in self.pairs], data.n_test_pos / data.n_test
        return {
            "average precision is that of scikit-learn, on every split": all(
                _same(fit.ap, fit.ap_sklearn) for fit in fits
            ),
            f"all models rank better than chance, an AP of {chance:.3f}": all(fit.ap > chance for fit in fits),
            "the split shown is the one whose gain is closest to the mean": self.shown.number == typical(self.gain),
            "images are shown in the order of their scores": all(
                bool(np.all(np.diff(ranked.scores) <= 0.0)) for ranked in lists
            ),
            "average precision, counted from the ranked images, is that of the scores": all(
                _same(model.fits[self.shown.number].ap, ranked.ap) for model, ranked in self.pairs
            ),
            f"errors among the first {settings.first} images are as many as precision at {settings.first} tells": all(
                _same(model.fits[self.shown.number].errors, int(np.sum(ranked.errors <= settings.first)))
                for model, ranked in self.pairs
            ),
            "both models rank the same images, each once, and learnt from none of them": all(
                sorted(ranked.images) == sorted(set(lists[0].images) - set(self.shown.trained)) for ranked in lists
            ),
        }


def typical(gain: NDArray[np.float64]) -> int:
    """The split whose gain is closest to the mean gain, the earliest of several."""
    return int(np.argmin(np.abs(gain - gain.mean())))


@dataclass(frozen=True)
class Demo:
    """Everything the demonstration shows. models: structured SVMs. curves, histories: theirs, on the split shown."""

    settings: Settings
    data: Data
    comparison: Comparison
    models: list[Model]
    races: list[Race]
    machine: Mapping[str, Any] = field(default_factory=dict)
    curves: list[Curve] = field(default_factory=list)
    histories: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict)

    @property
    def comparison_checks(self) -> dict[str, bool]:
        return self.comparison.checks(self.settings, self.data)

    @property
    def structured_checks(self) -> dict[str, bool]:
        """What must hold of structured SVMs and of methods of inference, and whether it does."""
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
            "average precision of structured SVMs is that of scikit-learn": all(
                _same(fit.ap, fit.ap_sklearn) for fit in fits
            ),
            f"every structured SVM ranks better than chance, an AP of {chance:.3f}": all(
                fit.ap > chance for fit in fits
            ),
        }

    @property
    def checks(self) -> dict[str, bool]:
        return {**self.comparison_checks, **self.structured_checks}

    @property
    def holds(self) -> bool:
        return all(self.checks.values())


def as_dict(demo: Demo) -> dict[str, Any]:
    """The demonstration as plain data; of the images, where they are in the data."""
    both = demo.comparison
    return {
        "settings": dataclasses.asdict(demo.settings),
        "data": dataclasses.asdict(demo.data),
        "machine": dict(demo.machine),
        "comparison": {
            "ours": dataclasses.asdict(both.ours),
            "baseline": dataclasses.asdict(both.baseline),
            "untuned": dataclasses.asdict(both.untuned),
            "gain": dataclasses.asdict(both.interval),
            "ahead": int(np.sum(both.gain > 0.0)),
            "shown": {
                "split": both.shown.number,
                "trained": both.shown.trained.tolist(),
                "ours": _ranked(both.shown.ours),
                "baseline": _ranked(both.shown.baseline),
                "curves": [_plain(curve._asdict()) for curve in both.shown.curves],
            },
        },
        "models": [dataclasses.asdict(model) for model in demo.models],
        "races": [dataclasses.asdict(race) for race in demo.races],
        "curves": [_plain(curve._asdict()) for curve in demo.curves],
        "histories": {name: _plain(history) for name, history in demo.histories.items()},
        "checks": demo.checks,
        "holds": demo.holds,
    }


def _ranked(ranked: Ranked) -> dict[str, Any]:
    return _plain({"images": ranked.images, "digits": ranked.digits, "scores": ranked.scores})


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}


def _same(one: float, other: float) -> bool:
    """Whether numbers are the same but for rounding."""
    return abs(one - other) <= _ROUNDING * max(1.0, abs(one))
