"""Section 4.2 of the paper: detectors learnt from labels of whole images, for 0-1 loss and for AP loss (Table 5).

For every class and loss: C is the value whose detector, trained on the images of train, ranks those of val best (by
average precision over images, so no boxes are used); the detector is then trained on train and val, and judged on test
by the rules of VOC. For AP loss, this last training is repeated with other methods of inference to time them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rankwise import structured_hinge
from rankwise_lab import pieces
from rankwise_lab.detection.detector import Recipe, choose_C, evaluate, image_ap, labelled, localised, train
from rankwise_lab.detection.detector_file import read_detector, write_detector
from rankwise_lab.detection.store import FeatureStore
from rankwise_lab.measuring.timing import unconverged

LOSSES = ("zero-one", "ap")
# Inference of the paper's competitor, of the paper, and of our own choice.
METHODS = ("yue", "quicksort", "auto")
TRAIN = ("train", "val")


@dataclass(frozen=True)
class Plan(pieces.Plan):
    """What both losses share. Cs: values of C to choose from. least: the fewest images of train with a class."""

    Cs: tuple[float, ...] = (1e2, 3e2, 1e3, 3e3, 1e4, 3e4)
    start: str = "mean"
    tol: float = 1e-3
    least: int = 10
    seed: int = 0

    @classmethod
    def quick(cls) -> Plan:
        return cls(Cs=(1e2, 1e3), least=2)

    def recipe(self, loss: str, method: str = "auto") -> Recipe:
        """How a detector is trained."""
        return Recipe(loss, self.start, method, self.tol, seed=self.seed)


class Experiment:
    """The experiment on a features folder; finished pieces, one file per class and loss, are in `folder`."""

    def __init__(
        self,
        store: FeatureStore,
        folder: Path,
        plan: Plan | None = None,
        *,
        n_threads: int = 1,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.store, self.plan = store, plan or Plan()
        self._threads, self._say = n_threads, say
        self.classes, self.left_out = self._classes()
        self.pieces = pieces.Pieces(folder, self.plan, {"features": store.digest})

    def _classes(self) -> tuple[list[str], list[str]]:
        """Classes that can be learnt and judged, and the others."""
        known: list[str] = []
        others: list[str] = []
        for name in self.store.classes:
            counts = [self.store.labels(name, part)[1] for part in ("train", "val", "test")]
            both = all(0 < int(y.sum()) < y.size for y in counts)
            (known if both and int(counts[0].sum()) >= self.plan.least else others).append(name)
        if not known:
            raise ValueError(
                f"{self.store.folder} has no class that is in {self.plan.least} images of train and in val and test"
            )
        return known, others

    def run(self) -> list[dict[str, Any]]:
        """The results of every class: of both losses, and of inference."""
        found = []
        for name in self.classes:
            parts: dict[str, Any] = {loss: self._kept(name, loss, self._trained) for loss in LOSSES}
            inference = self._kept(name, "inference", self._timed)
            found.append({"class": name, **parts, "inference": inference})
        return found

    def model(self, name: str, loss: str) -> Any:
        """The detector of a class, once it is trained."""
        return read_detector(self._model_file(name, loss)).model

    def _name(self, name: str, part: str) -> str:
        """Return the name of a piece of a class."""
        return f"{self.store.classes.index(name):02d}-{name}-{part}"

    def _model_file(self, name: str, loss: str) -> Path:
        return self.pieces.path(self._name(name, loss), ".rw")

    def _kept(self, name: str, part: str, compute: Callable[[str, str, Path], dict[str, Any]]) -> dict[str, Any]:
        """Return a part from its file, or compute and write it."""
        with unconverged():
            return self.pieces.kept(self._name(name, part), partial(compute, name, part))

    def _trained(self, name: str, loss: str, checkpoint: Path) -> dict[str, Any]:
        """Choose C, train, write the detector, and judge it."""
        store, plan = self.store, self.plan
        recipe = replace(plan.recipe(loss), n_threads=self._threads)

        def progress(C: float, ap: float) -> None:
            self._say(f"{name}, {loss} loss, C = {C:g}: AP of val images {100.0 * ap:.2f} %")

        choice = choose_C(store, name, "train", "val", plan.Cs, recipe, checkpoint=checkpoint, progress=progress)
        model = train(store, name, TRAIN, recipe, C=choice.C, checkpoint=checkpoint)
        write_detector(self._model_file(name, loss), model, name, store.settings, {"sets": list(TRAIN)})
        result = {
            "C": choice.C,
            "Cs": choice.Cs.tolist(),
            "val": choice.scores.tolist(),
            "ap_2007": evaluate(model, store, name, "test", kind="2007").value,
            "ap_area": evaluate(model, store, name, "test").value,
            "ap_images": image_ap(model, store, name, "test"),
            "localised": localised(model, store, name, TRAIN),
            "objective": model.objective_,
            "gap": model.gap_,
            "converged": bool(model.converged_),
            "outer_steps": model.n_iter_,
            "timing": model.timing_,
        }
        self._say(f"{name}, {loss} loss, C = {choice.C:g}: detection AP on test {100.0 * result['ap_2007']:.2f} %")
        return result

    def _timed(self, name: str, part: str, checkpoint: Path) -> dict[str, Any]:
        """Time in inference while the same detector is trained, by method."""
        known = labelled(self.store, name, TRAIN)
        C = self._kept(name, "ap", self._trained)["C"]
        timings = {}
        for method in METHODS:
            # Compile before timing.
            structured_hinge(np.arange(known.relevant.size, dtype=float), known.relevant, "ap", method=method)
            recipe = self.plan.recipe("ap", method)
            model = train(self.store, name, TRAIN, recipe, C=C, checkpoint=checkpoint)
            timings[method] = model.timing_
            timing = model.timing_
            self._say(f"{name}, AP loss, {method}: {timing['inference']:.3f} s in {timing['calls']} calls of inference")
        positives = int(known.relevant.sum())
        return {"positives": positives, "negatives": known.relevant.size - positives, "methods": timings}
