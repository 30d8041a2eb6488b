"""The samples of the action experiments: VOC 2011 action if available, else images that replace it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.io import fingerprint, open_atomic
from rankwise_lab.data.cifar10 import Cifar10, find_cifar10, load_cifar10
from rankwise_lab.data.folder import MissingDataError, cache_folder, data_folder
from rankwise_lab.data.voc_action import find_voc_action, read_voc_action
from rankwise_lab.reproduce.cifar_data import in_turn, spaced
from rankwise_lab.reproduce.patches import activations, learn_detectors

# The paper's samples to train and to test with, and its 2,404 features: detectors × quadrants.
_SIZES = (3_347, 3_363)
_DETECTORS = 601
_QUICK_SIZES = (800, 800)
_QUICK_DETECTORS = 101
_CIFAR = {
    "original": "CIFAR-10",
    "png": "CIFAR-10 (PNG files)",
    "jpeg": "CIFAR-10 (JPEG files, so slightly lossy)",
}
_SEED = 0
# Increased whenever the same images get other features.
_VERSION = 1

Floats = NDArray[np.float32]


class ActionData(NamedTuple):
    """X (n, d), each column centred and divided by its deviation in training; Y (n, k), whether of each class.

    what: the data in a sentence; stand_in: whether they replace the paper's; digest: identifies them.
    """

    X: Floats
    Y: NDArray[np.bool_]
    X_test: Floats
    Y_test: NDArray[np.bool_]
    classes: tuple[str, ...]
    what: str
    stand_in: bool
    digest: str


def find_action(given: Path | None = None, *, quick: bool = False) -> ActionData:
    """Find VOC 2011 action with features, or CIFAR-10, in the given path or the data folder; else use the digits.

    quick: fewer samples and features. Raises MissingDataError if a given path has neither.
    """
    year = find_voc_action(data_folder(given))
    if year is not None:
        return _voc(year, quick)
    try:
        cifar = find_cifar10(given)
    except MissingDataError:
        if given is not None:
            raise MissingDataError(
                f"{given} has neither VOC 2011 action with ActionFeatures/ nor CIFAR-10: name a folder with the "
                "layout in docs/data.md, or omit it to use the digits of scikit-learn"
            ) from None
        return _described(*_digits(quick), quick)
    return _described(*_cifar(cifar, quick), quick)


def _voc(year: Path, quick: bool) -> ActionData:
    """Return the persons of the sets with their features; quick: some of both, evenly spaced."""
    found = read_voc_action(year)
    train, test = (
        spaced(len(X), n if quick else None) for X, n in zip((found.X, found.X_test), _QUICK_SIZES, strict=True)
    )
    columns = spaced(found.X.shape[1], 4 * _QUICK_DETECTORS if quick else None)
    published = found.sets == ("trainval", "test")
    why = "" if published else "; test has no labels here, so these are not the paper's persons"
    what = (
        f"VOC 2011 action: {train.size:,} persons of {found.sets[0]} to train and {test.size:,} of {found.sets[1]} to "
        f"test with, described by {columns.size:,} features of ActionFeatures/{why}"
    )
    return _data(
        found.X[np.ix_(train, columns)],
        found.X_test[np.ix_(test, columns)],
        found.Y[train],
        found.Y_test[test],
        found.classes,
        what,
        stand_in=not published,
    )


def _cifar(path: Path, quick: bool) -> tuple[Cifar10, str, int]:
    """Return as many images as the paper has samples, evenly over classes; their name and the side of a patch."""
    cifar = load_cifar10(path)
    n_train, n_test = _QUICK_SIZES if quick else _SIZES
    train = in_turn(cifar.train_labels, np.random.default_rng([_SEED, 0]))[:n_train]
    test = in_turn(cifar.test_labels, np.random.default_rng([_SEED, 1]))[:n_test]
    samples = cifar.train_images[train], cifar.train_labels[train], cifar.test_images[test], cifar.test_labels[test]
    return Cifar10(*samples, cifar.classes), _CIFAR[cifar.form], 6


def _digits(quick: bool) -> tuple[Cifar10, str, int]:
    """Return one half to train and one to test; quick: fewer."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = np.rint(digits.images * (255.0 / 16.0)).astype(np.uint8)[:, None]
    labels = digits.target.astype(np.int64)
    rows = in_turn(labels, np.random.default_rng([_SEED, 2]))
    half = labels.size // 2
    train, test = rows[:half], rows[half:]
    if quick:
        train, test = train[: _QUICK_SIZES[0]], test[: _QUICK_SIZES[1]]
    classes = tuple(f"digit {name}" for name in digits.target_names)
    samples = images[train], labels[train], images[test], labels[test]
    return Cifar10(*samples, classes), "The 8 × 8 digits of scikit-learn", 3


def _described(images: Cifar10, name: str, side: int, quick: bool) -> ActionData:
    """Describe images by patch features, in place of persons by poselet activations."""
    k = _QUICK_DETECTORS if quick else _DETECTORS
    what = (
        f"{name}: {len(images.train_images):,} images to train and {len(images.test_images):,} to test with, "
        f"described by {4 * k:,} features, {k} patch detectors in 4 quadrants; they replace the persons of VOC "
        "2011 action and their poselet activations"
    )
    numbers = np.arange(len(images.classes))
    return _data(
        *_features(images.train_images, images.test_images, k, side),
        images.train_labels[:, None] == numbers,
        images.test_labels[:, None] == numbers,
        images.classes,
        what,
        stand_in=True,
    )


def _features(train: NDArray[np.uint8], test: NDArray[np.uint8], k: int, side: int) -> tuple[Floats, Floats]:
    """Return activations of k detectors learnt from the training images; cached by content."""
    settings = {"detectors": k, "side": side, "seed": _SEED, "version": _VERSION}
    kept = cache_folder() / f"action-{fingerprint(settings, [train, test])}.npz"
    if kept.exists():
        with np.load(kept) as stored:
            return stored["train"], stored["test"]
    detectors = learn_detectors(train, k, side, _SEED)
    found = activations(train, detectors), activations(test, detectors)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with open_atomic(kept) as file:
        np.savez(file, train=found[0], test=found[1])
    return found


def _data(
    X: Floats,
    X_test: Floats,
    Y: NDArray[np.bool_],
    Y_test: NDArray[np.bool_],
    classes: tuple[str, ...],
    what: str,
    *,
    stand_in: bool,
) -> ActionData:
    """Centre and scale by training columns (constant ones become 0), and add a digest."""
    mean, deviation = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    constant = (X.max(axis=0) == X.min(axis=0)) | (deviation == 0.0)
    factor = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, deviation))
    with np.errstate(over="ignore"):
        X, X_test = (np.ascontiguousarray((part - mean) * factor, np.float32) for part in (X, X_test))
    if not np.isfinite(X_test).all():
        column = np.argwhere(~np.isfinite(X_test))[0, 1]
        raise ValueError(f"feature {column} hardly varies in training, but widely in test; leave it out or correct it")
    digest = fingerprint({"classes": list(classes)}, [X, Y, X_test, Y_test])
    return ActionData(X, Y, X_test, Y_test, classes, what, stand_in, digest)
