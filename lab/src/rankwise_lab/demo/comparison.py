"""The ranker and the baseline side by side: test AP by split, and the ranked images of one split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankwise.figures import Curve
from rankwise_lab.demo.fits import Data, Model, Settings, same
from rankwise_lab.intervals import Interval, student

__all__ = ["Comparison", "Ranked", "Shown", "typical"]


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
        """Test AP of ours less that of the baseline, by split."""
        return self.ours.ap - self.baseline.ap

    @property
    def interval(self) -> Interval:
        """The mean gain and its 95 % interval by Student's t: where the mean over all splits of these data may lie."""
        return student(self.gain)

    @property
    def pairs(self) -> list[tuple[Model, Ranked]]:
        """Both models, each with its ranked images."""
        return [(self.ours, self.shown.ours), (self.baseline, self.shown.baseline)]

    def checks(self, settings: Settings, data: Data) -> dict[str, bool]:
        """What must hold, and whether it does."""
        fits = [*self.ours.fits, *self.baseline.fits, *self.untuned.fits]
        lists, chance = [ranked for _, ranked in self.pairs], data.n_test_pos / data.n_test
        return {
            "average precision is that of scikit-learn, on every split": all(
                same(fit.ap, fit.ap_sklearn) for fit in fits
            ),
            f"all models rank better than chance, an AP of {chance:.3f}": all(fit.ap > chance for fit in fits),
            "the split shown is the one whose gain is closest to the mean": self.shown.number == typical(self.gain),
            "images are shown in the order of their scores": all(
                bool(np.all(np.diff(ranked.scores) <= 0.0)) for ranked in lists
            ),
            "average precision, counted from the ranked images, is that of the scores": all(
                same(model.fits[self.shown.number].ap, ranked.ap) for model, ranked in self.pairs
            ),
            f"errors among the first {settings.first} images are as many as precision at {settings.first} tells": all(
                same(model.fits[self.shown.number].errors, int(np.sum(ranked.errors <= settings.first)))
                for model, ranked in self.pairs
            ),
            "both models rank the same images, each once, and learnt from none of them": all(
                sorted(ranked.images) == sorted(set(lists[0].images) - set(self.shown.trained)) for ranked in lists
            ),
        }


def typical(gain: NDArray[np.float64]) -> int:
    """The split whose gain is closest to the mean gain, the earliest of several."""
    return int(np.argmin(np.abs(gain - gain.mean())))
