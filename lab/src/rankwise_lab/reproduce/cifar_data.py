"""The images of the CIFAR-10 experiment: drawn for training, validation and test, and scaled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.io import fingerprint
from rankwise_lab.data.cifar10 import Cifar10

_AT_ONCE = 1000


class Part(NamedTuple):
    """Images (n, 3, 32, 32), scaled, and labels (n,), positions in the list of classes."""

    images: NDArray[np.float32]
    labels: NDArray[np.int64]


class Parts(NamedTuple):
    """The images to train, validate and test."""

    train: Part
    val: Part
    test: Part


def split(cifar: Cifar10, n_train: int, n_val: int, seed: int, n_test: int | None = None) -> Parts:
    """Draw n_train and n_val of the training images, as evenly over classes as possible; test images are not drawn.

    Every pixel is centred and divided by its deviation, both of the n_train images. n_test: only this many of the test
    images, evenly spaced; all if None.
    """
    n = cifar.train_labels.size
    if n_train + n_val > n:
        raise ValueError(f"{n_train:,} + {n_val:,} images to train and validate are too many: there are {n:,}")
    if n_test is not None and n_test > cifar.test_labels.size:
        raise ValueError(f"{n_test:,} test images are too many: there are {cifar.test_labels.size:,}")
    rows = in_turn(cifar.train_labels, np.random.default_rng([seed, 0]))
    train, val = rows[:n_train], rows[n_train : n_train + n_val]
    test = spaced(cifar.test_labels.size, n_test)
    mean, deviation = _moments(cifar.train_images[train])
    return Parts(
        *(
            Part(_scaled(images[rows], mean, deviation), labels[rows])
            for images, labels, rows in (
                (cifar.train_images, cifar.train_labels, train),
                (cifar.train_images, cifar.train_labels, val),
                (cifar.test_images, cifar.test_labels, test),
            )
        )
    )


def in_turn(labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return all rows in random order, with the classes taking turns while they last."""
    turn = np.empty(labels.size, np.int64)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        turn[rows] = rng.permutation(rows.size)
    found: NDArray[np.int64] = np.lexsort((rng.random(labels.size), turn))
    return found


def spaced(n: int, most: int | None) -> NDArray[np.int64]:
    """Return all of n positions, or the given number of them, evenly spaced."""
    wanted = n if most is None else min(n, most)
    return np.arange(wanted) * n // wanted


def _moments(images: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(3, 32, 32) Mean and deviation of every pixel; a pixel that never changes has deviation 1."""
    total, squares = (np.zeros(images.shape[1:], np.int64) for _ in range(2))
    for start in range(0, len(images), _AT_ONCE):
        some = images[start : start + _AT_ONCE].astype(np.int64)
        total += some.sum(axis=0)
        squares += (some**2).sum(axis=0)
    n = len(images)
    deviation = np.sqrt((n * squares - total**2).astype(np.float64)) / n
    return (total / n).astype(np.float32), np.where(deviation > 0.0, deviation, 1.0).astype(np.float32)


def _scaled(
    images: NDArray[np.uint8], mean: NDArray[np.float32], deviation: NDArray[np.float32]
) -> NDArray[np.float32]:
    scaled: NDArray[np.float32] = images.astype(np.float32)
    scaled -= mean
    scaled /= deviation
    return scaled


def digest(cifar: Cifar10) -> str:
    """Return a digest of these images and labels."""
    return fingerprint({"classes": list(cifar.classes)}, list(cifar[:4]))
