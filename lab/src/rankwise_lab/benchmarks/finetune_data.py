"""Rare classes of CIFAR-10 for `rankwise bench finetune`: which images, which labels, and some labels wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankwise_lab.data.cifar10 import ARCHIVE, Cifar10, load_cifar10
from rankwise_lab.data.folder import data_folder, existing

__all__ = ["Part", "Problem", "Sizes", "archive", "draw", "load"]

Images = NDArray[np.uint8]
Labels = NDArray[np.bool_]


@dataclass(frozen=True)
class Sizes:
    """Images of each rare class and of each common one, to train with and to validate with; number of rare classes."""

    train_rare: int = 500
    train_common: int = 4000
    validation_rare: int = 125
    validation_common: int = 1000
    rare_classes: int = 5


@dataclass(frozen=True, eq=False)
class Part:
    """Images (n, 3, 32, 32), labels (n, C), one per rare class, and weights of images in a metric (n,)."""

    images: Images
    labels: Labels
    weight: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """The parts of one draw and the names of its rare classes; the labels of `test` are right, whatever the noise."""

    rare: tuple[str, ...]
    train: Part
    validation: Part
    test: Part


def archive(data_dir: Path | None = None) -> Path:
    """Return the path of the archive; raise MissingDataError if it is not there."""
    return existing(data_folder(data_dir) / ARCHIVE)


def load(data_dir: Path | None = None, cache_dir: Path | None = None) -> Cifar10:
    """Load CIFAR-10 from the data folder; raise MissingDataError if it is not there."""
    return load_cifar10(archive(data_dir), cache_dir)


def draw(cifar: Cifar10, sizes: Sizes, noise: float, seed: int) -> Problem:
    """Draw the rare classes, then the images of every class, then which negative labels are made positive.

    noise: the part of the negative labels of each rare class that are wrong, in training and validation alike. Images
    do not depend on it. The whole test set is kept; an image of a rare class weighs there as much less than one of a
    common class as it is rarer in training.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(cifar.classes))
    rare = order[: sizes.rare_classes]
    train, validation = [], []
    for label in order:
        rows = rng.permutation(np.flatnonzero(cifar.train_labels == label))
        is_rare = label in rare
        a = sizes.train_rare if is_rare else sizes.train_common
        b = a + (sizes.validation_rare if is_rare else sizes.validation_common)
        if b > rows.size:
            raise ValueError(f"class {cifar.classes[label]} has {rows.size} images, but {b} are needed")
        train.append(rows[:a])
        validation.append(rows[a:b])
    learnt, validated = (_part(cifar, np.concatenate(rows), rare, noise, rng) for rows in (train, validation))
    truth = _one_hot(cifar.test_labels, rare)
    weight = np.where(truth.any(axis=1), sizes.train_rare / sizes.train_common, 1.0)
    names = tuple(cifar.classes[label] for label in rare)
    return Problem(names, learnt, validated, Part(cifar.test_images, truth, weight))


def _part(
    cifar: Cifar10, rows: NDArray[np.intp], rare: NDArray[np.int64], noise: float, rng: np.random.Generator
) -> Part:
    """Rows of the training images, with labels partly wrong."""
    labels = _flip(_one_hot(cifar.train_labels[rows], rare), noise, rng)
    return Part(cifar.train_images[rows], labels, np.ones(rows.size))


def _one_hot(labels: NDArray[np.int64], rare: NDArray[np.int64]) -> Labels:
    found: Labels = labels[:, None] == rare
    return found


def _flip(truth: Labels, noise: float, rng: np.random.Generator) -> Labels:
    """A part `noise` of each column's negatives made positive."""
    labels = truth.copy()
    for column, right in zip(labels.T, truth.T, strict=True):
        negatives = np.flatnonzero(~right)
        column[rng.permutation(negatives)[: round(noise * negatives.size)]] = True
    return labels
