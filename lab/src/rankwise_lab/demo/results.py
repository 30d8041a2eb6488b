"""What the demonstration found, the checks that it must pass, and all of it as plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.figures import Curve
from rankwise_lab.demo.comparison import Comparison, Ranked
from rankwise_lab.demo.fits import ROUNDING, Data, Model, Race, Settings, same

__all__ = ["Demo", "as_dict"]


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
        """What must hold of the ranker and the baseline, and whether it does."""
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
                same(one.objective, one.objective_again) for one in certificates
            ),
            "J is at least the loss of the ranking, after every fit": all(
                one.hinge >= one.loss - ROUNDING for one in certificates
            ),
            "all methods reach the same minimum, within their certified gaps": all(
                max(one.dual for one in race.timed) <= (1 + ROUNDING) * min(one.objective for one in race.timed)
                for race in self.races
            ),
            f"all methods find the same J for the same scores, to {ROUNDING:g}": all(
                same(one.hinge, race.timed[0].hinge) for race in self.races for one in race.timed
            ),
            "average precision of structured SVMs is that of scikit-learn": all(
                same(fit.ap, fit.ap_sklearn) for fit in fits
            ),
            f"every structured SVM ranks better than chance, an AP of {chance:.3f}": all(
                fit.ap > chance for fit in fits
            ),
        }

    @property
    def checks(self) -> dict[str, bool]:
        """All checks."""
        return {**self.comparison_checks, **self.structured_checks}

    @property
    def holds(self) -> bool:
        """Whether all checks hold."""
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
