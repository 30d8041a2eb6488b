"""The demonstration, run once with little of everything, and ways to spoil it."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from rankwise_lab.demo import experiment
from rankwise_lab.demo.results import Demo, Fit, Settings
from rankwise_lab.progress import Progress

SMALL = Settings(train=0.2, splits=3, folds=2, first=60, n_Cs=2, n_baseline_Cs=3, fits=1)


@pytest.fixture(scope="session")
def said() -> io.StringIO:
    return io.StringIO()


@pytest.fixture(scope="session")
def found(said: io.StringIO) -> Demo:
    return experiment.run(SMALL, Progress(said))


@pytest.fixture(scope="session")
def spoil_fit(found: Demo) -> Callable[..., Demo]:
    """With other numbers in the last fit of the AP loss; those of its certificate by their names."""

    def spoil(**changes: Any) -> Demo:
        model = found.models[1]
        fit, known = model.fits[-1], Fit.__dataclass_fields__
        assert fit.certificate is not None
        certificate = replace(fit.certificate, **{name: value for name, value in changes.items() if name not in known})
        fit = replace(fit, certificate=certificate, **{name: value for name, value in changes.items() if name in known})
        models = [found.models[0], replace(model, fits=[*model.fits[:-1], fit]), *found.models[2:]]
        return replace(found, models=models)

    return spoil


@pytest.fixture(scope="session")
def spoil_timed(found: Demo) -> Callable[..., Demo]:
    """With other numbers for the last method of the first race."""

    def spoil(**changes: Any) -> Demo:
        race, *others = found.races
        timed = [*race.timed[:-1], replace(race.timed[-1], **changes)]
        return replace(found, races=[replace(race, timed=timed), *others])

    return spoil


@pytest.fixture(scope="session")
def with_ap(found: Demo) -> Callable[[list[float], list[float]], Demo]:
    """With another test AP of the ranker and of the baseline on each split; not tuned, the baseline is 0.05 worse."""

    def make(ours: list[float], baseline: list[float]) -> Demo:
        both = found.comparison
        first, second, third = (
            replace(model, fits=[replace(model.fits[0], ap=ap, ap_sklearn=ap) for ap in values])
            for model, values in (
                (both.ours, ours),
                (both.baseline, baseline),
                (both.untuned, [ap - 0.05 for ap in baseline]),
            )
        )
        settings = replace(found.settings, splits=len(ours))
        shown = replace(both.shown, number=0)
        both = replace(both, ours=first, baseline=second, untuned=third, shown=shown)
        return replace(found, settings=settings, comparison=both)

    return make
