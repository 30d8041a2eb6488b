"""Detectors learnt from labels of whole images: which classes an image has, never where.

An image is a bag of windows, and its score that of its best window. In training, boxes of objects are not looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.detection.boxes import as_boxes, iou, nms
from rankwise.detection.evaluation import Detections, Kind, VocAP, average_precision
from rankwise.detection.store import FeatureStore
from rankwise.latent import LatentRankSVM, LatentRankSVMCV
from rankwise.latent.latent_svm_cv import grid_of_bags
from rankwise.linear.posing import pose
from rankwise.losses import LossLike, as_loss
from rankwise.metrics import average_precision as ranking_average_precision

Sets = str | Sequence[str]
Folder = str | os.PathLike[str]
STARTS = ("mean", "whole", "centre", "random")


@dataclass(frozen=True)
class Recipe:
    """How a detector is trained; but for `starts` and `seed`, as `LatentRankSVM` has it.

    starts: where positive images begin, of several the lowest objective wins: at the best window under a ranker of the
    images' mean windows ("mean"), at the whole image, at the centre (see `central_window`), or at random.
    """

    loss: LossLike = "ap"
    starts: tuple[str, ...] = ("mean",)
    self_paced: float | None = None
    method: str = "auto"
    tol: float = 1e-3
    outer_tol: float = 1e-3
    max_outer: int = 50
    n_threads: int = 1
    seed: int = 0

    def parameters(self, store: FeatureStore, images: NDArray[np.intp]) -> dict[str, Any]:
        """As the estimators take them, for these images."""
        names = ("loss", "self_paced", "method", "tol", "outer_tol", "max_outer", "n_threads")
        shared = {name: getattr(self, name) for name in names}
        return shared | {"init": _init(self.starts, store, images), "random_state": self.seed}


class Labelled(NamedTuple):
    """Images by index, (m,), and whether the class is in each, (m,)."""

    images: NDArray[np.intp]
    relevant: NDArray[np.bool_]

    def without(self, images: NDArray[np.intp]) -> Labelled:
        """All but some images."""
        keep = ~np.isin(self.images, images)
        return Labelled(self.images[keep], self.relevant[keep])


class Choice(NamedTuple):
    """The C chosen, and the image-level AP of every C tried."""

    C: float
    Cs: NDArray[np.float64]
    scores: NDArray[np.float64]


def labelled(store: FeatureStore, name: str, sets: Sets) -> Labelled:
    """The images of the sets that say whether they have the class; refused if all do, or none does.

    Images whose only objects of the class are difficult say neither.
    """
    images, y = store.labels(name, sets)
    _check_both(y == 1, name, sets)
    return Labelled(images, y == 1)


def train(
    store: FeatureStore,
    name: str,
    sets: Sets = "trainval",
    recipe: Recipe | None = None,
    *,
    C: float | None = None,
    checkpoint: Folder | None = None,
    verbose: int = 0,
) -> LatentRankSVM:
    """A detector of class `name`. C, checkpoint: as in `LatentRankSVM`."""
    return _fit(store, labelled(store, name, sets), recipe or Recipe(), C, checkpoint, verbose)


def train_cv(
    store: FeatureStore,
    name: str,
    sets: Sets = "trainval",
    recipe: Recipe | None = None,
    *,
    Cs: int | ArrayLike = 6,
    cv: Any = 5,
    checkpoint: Folder | None = None,
    verbose: int = 0,
) -> LatentRankSVMCV:
    """A detector whose C is chosen on folds of the images, by the average precision of their ranking."""
    known = labelled(store, name, sets)
    parameters = (recipe or Recipe()).parameters(store, known.images)
    model = LatentRankSVMCV(Cs=Cs, cv=cv, scoring="ap", checkpoint=checkpoint, verbose=verbose, **parameters)
    return model.fit(store.bags[known.images], known.relevant)


def grid(store: FeatureStore, name: str, sets: Sets, recipe: Recipe, n: int) -> NDArray[np.float64]:
    """Values of C, (n,), laid out around the natural one of the images' mean windows."""
    known = labelled(store, name, sets)
    return grid_of_bags(n, store.bags[known.images], pose(known.relevant, as_loss(recipe.loss)))


def choose_C(
    store: FeatureStore,
    name: str,
    sets: Sets,
    val: Sets,
    Cs: ArrayLike,
    recipe: Recipe | None = None,
    *,
    checkpoint: Folder | None = None,
    progress: Callable[[float, float], None] | None = None,
) -> Choice:
    """The C whose detector, trained on images of `sets` that are not in `val`, ranks the images of `val` best.

    The measure is average precision over images: labels of whole images are all that is used. Of equal ones, the least
    C. progress: called with C and the measure when they are known.
    """
    values = np.asarray(Cs, np.float64)
    held = labelled(store, name, val)
    known = labelled(store, name, sets).without(held.images)
    _check_both(known.relevant, name, f"{_listed(sets)} without {_listed(val)}")
    scores = np.zeros(values.size)
    for k, C in enumerate(values.tolist()):
        model = _fit(store, known, recipe or Recipe(), C, checkpoint, 0)
        scores[k] = _ranked(model, store, held)
        if progress is not None:
            progress(C, float(scores[k]))
    return Choice(float(values[int(np.argmax(scores))]), values, scores)


def _fit(
    store: FeatureStore, known: Labelled, recipe: Recipe, C: float | None, checkpoint: Folder | None, verbose: int
) -> LatentRankSVM:
    parameters = recipe.parameters(store, known.images)
    model = LatentRankSVM(C=C, checkpoint=checkpoint, verbose=verbose, **parameters)
    return model.fit(store.bags[known.images], known.relevant)


def detect(
    model: Any, store: FeatureStore, sets: Sets = "test", *, threshold: float = 0.3, max_per_image: int = 100
) -> Detections:
    """The windows of the images of the sets by score, after non-maximum suppression within each image.

    Detections.image: the place of an image in `store.members(sets)`, as `store.truth` has them. threshold: of `nms`.
    """
    images = store.members(sets)
    bags = store.bags[images]
    scores, offsets = model.candidate_scores(bags), bags.offsets
    found = []
    for k, i in enumerate(images):
        part = scores[offsets[k] : offsets[k + 1]]
        windows = np.asarray(store.windows(int(i)), np.float64)
        kept = nms(windows, part, threshold)[:max_per_image]
        found.append((np.full(kept.size, k), windows[kept], part[kept]))
    image, boxes, kept_scores = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Detections(image, boxes, kept_scores)


def evaluate(
    model: Any,
    store: FeatureStore,
    name: str,
    sets: Sets = "test",
    *,
    overlap: float = 0.5,
    kind: Kind = "area",
    threshold: float = 0.3,
    max_per_image: int = 100,
) -> VocAP:
    """Average precision of the detections of class `name` in the images of the sets, by the rules of VOC."""
    found = detect(model, store, sets, threshold=threshold, max_per_image=max_per_image)
    return average_precision(found, store.truth(name, sets), overlap=overlap, kind=kind)


def image_ap(model: Any, store: FeatureStore, name: str, sets: Sets = "test") -> float:
    """Average precision of the images of the sets, ranked by the score of their best window; no box is looked at."""
    return _ranked(model, store, labelled(store, name, sets))


def localised(model: Any, store: FeatureStore, name: str, sets: Sets = "trainval", *, overlap: float = 0.5) -> float:
    """The share of images with the class whose best window has an IoU of at least `overlap` with an object of it."""
    known = labelled(store, name, sets)
    images = known.images[known.relevant]
    best = model.best_candidate(store.bags[images])
    hits = 0
    for i, candidate in zip(images.tolist(), best, strict=True):
        boxes = np.array([thing.box for thing in store.objects(i) if thing.name == name])
        hits += bool((iou(store.windows(i)[candidate : candidate + 1], boxes) >= overlap).any())
    return hits / images.size


def central_window(boxes: ArrayLike, width: int, height: int) -> int:
    """The window that has the highest IoU with the middle half of the image, half as wide and half as high.

    >>> central_window([[1, 1, 100, 80], [1, 1, 50, 40], [30, 25, 70, 60]], 100, 80)
    2
    """
    left, top = 0.25 * width + 1.0, 0.25 * height + 1.0
    middle = [[left, top, max(0.75 * width, left), max(0.75 * height, top)]]
    return int(np.argmax(iou(as_boxes(boxes), middle)[:, 0]))


def _init(starts: Sequence[str], store: FeatureStore, images: NDArray[np.intp]) -> Any:
    """Starts as `LatentRankSVM` takes them."""
    unknown = [start for start in starts if start not in STARTS]
    if unknown or not starts:
        raise ValueError(f"unknown start {unknown[0] if unknown else starts!r}; use {', '.join(STARTS)}")
    init: list[Any] = []
    for start in starts:
        if start == "centre":
            sizes = store.sizes[images].tolist()
            windows = (store.windows(int(i)) for i in images)
            init.append(np.array([central_window(part, *size) for part, size in zip(windows, sizes, strict=True)]))
        else:
            init.append("first" if start == "whole" else start)
    return init[0] if len(init) == 1 else init


def _ranked(model: Any, store: FeatureStore, held: Labelled) -> float:
    return ranking_average_precision(model.decision_function(store.bags[held.images]), held.relevant)


def _check_both(relevant: NDArray[np.bool_], name: str, sets: Sets) -> None:
    if relevant.any() and not relevant.all():
        return
    which = "every image" if relevant.size and relevant.all() else "no image"
    raise ValueError(f"{which} of {_listed(sets)} has {name!r}; a detector needs images with and without it")


def _listed(sets: Sets) -> str:
    return sets if isinstance(sets, str) else " and ".join(sets)
