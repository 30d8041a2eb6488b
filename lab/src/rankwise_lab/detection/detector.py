"""Detectors learnt from labels of whole images: which classes an image has, but not where.

An image is a bag of windows, and its score is that of its best window. Training does not use the boxes of objects.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.latent import LatentRankSVM, LatentRankSVMCV, bag_means
from rankwise.linear import Objective, as_features, grid_of_C, pose
from rankwise.metrics import LossLike, as_loss
from rankwise.metrics import average_precision as ranking_average_precision
from rankwise_lab.detection.boxes import as_boxes, iou, nms
from rankwise_lab.detection.evaluation import Detections, Kind, VocAP, average_precision
from rankwise_lab.detection.store import FeatureStore

Sets = str | Sequence[str]
Folder = str | os.PathLike[str]
STARTS = ("mean", "whole", "centre", "random")
# The grid of C reaches so far from the natural C, in powers of ten.
_GRID = (-2.0, 2.0)


@dataclass(frozen=True)
class Recipe:
    """
    Settings for training a detector.

    Parameters
    ----------
    loss : str or Loss, default "ap"
        Rank loss of the images: a name such as "ap" or "auc", or a `rankwise.Loss`.
    start : {"mean", "whole", "centre", "random"}, default "mean"
        Which window represents a positive image at the start: the best window under a ranker of the images' mean
        windows ("mean"), the whole image ("whole"), the window nearest the centre ("centre"), or a random one
        ("random").
    method : str, default "auto"
        How the most violating ranking is found, as in `rankwise.RankSVM`.
    tol : float, default 1e-3
        Relative duality gap of each convex problem.
    outer_tol : float, default 1e-3
        Training ends when a step lowers the objective by less than this fraction, or changes no window.
    max_outer : int, default 50
        Largest number of steps, each of which chooses the windows of positive images and then solves a convex problem.
    n_threads : int, default 1
        Number of threads.
    seed : int, default 0
        Seed for the start "random".

    See Also
    --------
    train : Trains a detector by a recipe.
    rankwise.latent.LatentRankSVM : The estimator, with details of these settings.

    Examples
    --------
    >>> from rankwise_lab.detection import Recipe, train
    >>> from rankwise_lab.detection.shapes import shapes_store
    >>> recipe = Recipe(start="centre", max_outer=20)
    >>> model = train(shapes_store(), "disc", recipe=recipe, C=10.0)
    """

    loss: LossLike = "ap"
    start: str = "mean"
    method: str = "auto"
    tol: float = 1e-3
    outer_tol: float = 1e-3
    max_outer: int = 50
    n_threads: int = 1
    seed: int = 0


class Labelled(NamedTuple):
    """Indices of images, (m,), and whether the class is in each, (m,)."""

    images: NDArray[np.intp]
    relevant: NDArray[np.bool_]

    def without(self, images: NDArray[np.intp]) -> Labelled:
        """All except some images."""
        keep = ~np.isin(self.images, images)
        return Labelled(self.images[keep], self.relevant[keep])


class Choice(NamedTuple):
    """The chosen C, and the average precision over images for every C tried."""

    C: float
    Cs: NDArray[np.float64]
    scores: NDArray[np.float64]


def labelled(store: FeatureStore, name: str, sets: Sets) -> Labelled:
    """The images of some sets with their labels for a class; those with only difficult objects of it are left out."""
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
    """
    Train a detector of one class from labels of whole images.

    An image is a bag of windows, and its score is that of its best window. The ranking of the images is optimised;
    boxes of objects are not used.

    Parameters
    ----------
    store : FeatureStore
        Images with the features of their windows.
    name : str
        Class to detect.
    sets : str or sequence of str, default "trainval"
        One or several sets of the store; "trainval" is train and val.
    recipe : Recipe, optional
        Settings of training. None takes the defaults.
    C : float, optional
        Weight of the loss against the norm of the weights. None takes a value from the data, as in
        `rankwise.latent.LatentRankSVM`.
    checkpoint : path-like, optional
        Folder for the state of training, from which an interrupted run resumes.
    verbose : int, default 0
        Level of progress output.

    Returns
    -------
    LatentRankSVM
        The trained detector, a ranker of windows.

    See Also
    --------
    choose_C : Chooses C on validation images.
    detect : Applies a detector.
    evaluate : Evaluates a detector by the rules of VOC.

    Examples
    --------
    >>> from rankwise_lab.detection import train
    >>> from rankwise_lab.detection.shapes import shapes_store
    >>> train(shapes_store(), "disc", C=10.0).coef_.shape
    (1, 3)
    """
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
    """Train a detector whose C is chosen on folds of the images, by the average precision of their ranking."""
    known = labelled(store, name, sets)
    parameters = _parameters(recipe or Recipe(), store, known.images)
    model = LatentRankSVMCV(Cs=Cs, cv=cv, scoring="ap", checkpoint=checkpoint, verbose=verbose, **parameters)
    return model.fit(store.bags[known.images], known.relevant)


def grid(store: FeatureStore, name: str, sets: Sets, recipe: Recipe, n: int) -> NDArray[np.float64]:
    """Values of C, (n,), spread around the natural one for the mean windows of the images."""
    known = labelled(store, name, sets)
    means = as_features(bag_means(store.bags[known.images]))
    return grid_of_C(n, Objective(means, pose(known.relevant, as_loss(recipe.loss))), _GRID)


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
    """
    Choose C by the average precision of the ranking of validation images.

    For each C, a detector is trained on the images of sets that are not in val, and ranks the images of val. Only
    labels of whole images are used.

    Parameters
    ----------
    store : FeatureStore
        Images with the features of their windows.
    name : str
        Class to detect.
    sets : str or sequence of str
        One or several sets of the store; "trainval" is train and val.
    val : str or sequence of str
        Validation images, as sets of the store.
    Cs : array-like of shape (k,)
        Values of C to try.
    recipe : Recipe, optional
        Settings of training. None takes the defaults.
    checkpoint : path-like, optional
        Folder for the state of training, from which an interrupted run resumes.
    progress : callable, optional
        Function that is called with C and its average precision as soon as they are known.

    Returns
    -------
    Choice
        Named tuple of C, the best value (of equal ones, the first), Cs, the values tried, and scores, their average
        precisions.

    See Also
    --------
    train : Trains a detector with a given C.

    Examples
    --------
    >>> from rankwise_lab.detection import choose_C
    >>> from rankwise_lab.detection.shapes import shapes_store
    >>> choice = choose_C(shapes_store(), "disc", "train", "val", [1.0, 10.0])
    >>> choice.C, choice.scores.tolist()
    (1.0, [1.0, 1.0])
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
    parameters = _parameters(recipe, store, known.images)
    model = LatentRankSVM(C=C, checkpoint=checkpoint, verbose=verbose, **parameters)
    return model.fit(store.bags[known.images], known.relevant)


def detect(
    model: Any, store: FeatureStore, sets: Sets = "test", *, threshold: float = 0.3, max_per_image: int = 100
) -> Detections:
    """
    Find the windows of images that a detector scores highest, after non-maximum suppression.

    Parameters
    ----------
    model : LatentRankSVM
        Detector of the class, such as `train` returns.
    store : FeatureStore
        Images with the features of their windows.
    sets : str or sequence of str, default "test"
        One or several sets of the store.
    threshold : float, default 0.3
        Largest IoU of a detection with a better one in its image, as in `nms`.
    max_per_image : int, default 100
        Largest number of detections per image.

    Returns
    -------
    Detections
        Boxes and scores. The image of a detection is its position in `store.members(sets)`, as in `store.truth`.

    See Also
    --------
    evaluate : Evaluates the detections.
    draw : Draws detections on an image.

    Examples
    --------
    >>> from rankwise_lab.detection import detect, train
    >>> from rankwise_lab.detection.shapes import shapes_store
    >>> store = shapes_store()
    >>> found = detect(train(store, "disc", C=10.0), store, "test", max_per_image=2)
    >>> found.image.tolist(), found.boxes.shape
    ([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7], (16, 4))
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
    """
    Compute the average precision of a detector by the rules of PASCAL VOC.

    Parameters
    ----------
    model : LatentRankSVM
        Detector of the class, such as `train` returns.
    store : FeatureStore
        Images with the features of their windows.
    name : str
        Class to detect.
    sets : str or sequence of str, default "test"
        One or several sets of the store.
    overlap : float, default 0.5
        Smallest IoU of a true detection with its object.
    kind : {"area", "2007"}, default "area"
        How precision is averaged over recall, as in `average_precision`.
    threshold : float, default 0.3
        Largest IoU of a detection with a better one in its image, as in `nms`.
    max_per_image : int, default 100
        Largest number of detections per image.

    Returns
    -------
    VocAP
        Average precision, with the precision-recall curve.

    See Also
    --------
    detect : Returns the detections themselves.

    Examples
    --------
    >>> from rankwise_lab.detection import evaluate, train
    >>> from rankwise_lab.detection.shapes import shapes_store
    >>> store = shapes_store()
    >>> model = train(store, "disc", C=10.0)
    >>> round(evaluate(model, store, "disc", overlap=0.3).value, 2)
    0.79
    """
    found = detect(model, store, sets, threshold=threshold, max_per_image=max_per_image)
    return average_precision(found, store.truth(name, sets), overlap=overlap, kind=kind)


def image_ap(model: Any, store: FeatureStore, name: str, sets: Sets = "test") -> float:
    """Average precision of images, ranked by the score of their best window: which have the class, not where."""
    return _ranked(model, store, labelled(store, name, sets))


def localised(model: Any, store: FeatureStore, name: str, sets: Sets = "trainval", *, overlap: float = 0.5) -> float:
    """CorLoc: the share of positive images whose best window overlaps an object of the class by at least `overlap`."""
    known = labelled(store, name, sets)
    images = known.images[known.relevant]
    best = model.best_candidate(store.bags[images])
    hits = 0
    for i, candidate in zip(images.tolist(), best, strict=True):
        boxes = np.array([thing.box for thing in store.objects(i) if thing.name == name])
        hits += bool((iou(store.windows(i)[candidate : candidate + 1], boxes) >= overlap).any())
    return hits / images.size


def central_window(boxes: ArrayLike, width: int, height: int) -> int:
    """Return the window with the highest IoU with the middle half of the image, half as wide and half as high.

    >>> central_window([[1, 1, 100, 80], [1, 1, 50, 40], [30, 25, 70, 60]], 100, 80)
    2
    """
    left, top = 0.25 * width + 1.0, 0.25 * height + 1.0
    middle = [[left, top, max(0.75 * width, left), max(0.75 * height, top)]]
    return int(np.argmax(iou(as_boxes(boxes), middle)[:, 0]))


def _parameters(recipe: Recipe, store: FeatureStore, images: NDArray[np.intp]) -> dict[str, Any]:
    """The keyword arguments of `LatentRankSVM`; images (m,): those of training, on which a start may depend."""
    names = ("loss", "method", "tol", "outer_tol", "max_outer", "n_threads")
    shared = {name: getattr(recipe, name) for name in names}
    return shared | {"init": _init(recipe.start, store, images), "random_state": recipe.seed}


def _init(start: str, store: FeatureStore, images: NDArray[np.intp]) -> Any:
    """A start in the form that `LatentRankSVM` takes."""
    if start not in STARTS:
        raise ValueError(f"unknown start {start!r}; use {', '.join(STARTS)}")
    if start != "centre":
        return "first" if start == "whole" else start
    windows = (store.windows(int(i)) for i in images)
    sizes = store.sizes[images].tolist()
    return np.array([central_window(part, *size) for part, size in zip(windows, sizes, strict=True)])


def _ranked(model: Any, store: FeatureStore, held: Labelled) -> float:
    return ranking_average_precision(model.decision_function(store.bags[held.images]), held.relevant)


def _check_both(relevant: NDArray[np.bool_], name: str, sets: Sets) -> None:
    if relevant.any() and not relevant.all():
        return
    which = "every image" if relevant.size and relevant.all() else "no image"
    raise ValueError(f"{which} of {_listed(sets)} has {name!r}; a detector needs images with and without it")


def _listed(sets: Sets) -> str:
    return sets if isinstance(sets, str) else " and ".join(sets)
