"""Bags of candidates: what a sample is when its place, pose or witness is not known.

A bag is a range of rows of one feature matrix, which may lie in memory, sparse or dense, in a memory map (`.npy`), or
in an HDF5 or Zarr dataset. Nothing is copied: parts of bags are bags over the same matrix, and a pass over the
candidates reads a block at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse, vstack

from rankwise.inputs import as_array, first_true
from rankwise.latent.blocks import candidate_scores, read_rows, take_rows

Indices = NDArray[np.int64]
_KINDS = "fiub"


class Bags:
    """Bags over a feature matrix: bag i is the rows offsets[i] : offsets[i + 1].

    features: (n, d) array, memory map, CSR matrix, or a dataset of h5py or Zarr. offsets: (bags + 1,), from 0 to n,
    rising: no bag is empty. bags[i] of a number is the array of one bag; of a slice, a mask or numbers, bags again.

    >>> bags = Bags(np.arange(10.0).reshape(5, 2), [0, 2, 5])
    >>> len(bags), bags.width, bags.sizes.tolist(), bags[1].shape, len(bags[[1]])
    (2, 2, [2, 3], (3, 2), 1)
    """

    def __init__(self, features: Any, offsets: ArrayLike) -> None:
        self.features = _as_matrix(features)
        bounds = _as_offsets(offsets, int(self.features.shape[0]))
        self.starts, self.stops = bounds[:-1], bounds[1:]

    @classmethod
    def _of(cls, features: Any, starts: Indices, stops: Indices) -> Bags:
        bags = cls.__new__(cls)
        bags.features, bags.starts, bags.stops = features, starts, stops
        return bags

    def __len__(self) -> int:
        return int(self.starts.size)

    @property
    def shape(self) -> tuple[int]:
        """(bags,)."""
        return (len(self),)

    @property
    def width(self) -> int:
        """Features of a candidate."""
        return int(self.features.shape[1])

    @property
    def sizes(self) -> Indices:
        """Candidates by bag."""
        return self.stops - self.starts

    @property
    def n_candidates(self) -> int:
        """Candidates of all bags."""
        return int(self.sizes.sum())

    @property
    def offsets(self) -> Indices:
        """Where each bag begins among the candidates of all of them, (bags + 1,)."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):  # scikit-learn asks for bags[rows, ...]
            if len(key) != 2 or key[1] is not Ellipsis:
                raise IndexError("bags have one index: pass numbers, a slice or a mask")
            key = key[0]
        if isinstance(key, int | np.integer):
            start, stop = int(self.starts[key]), int(self.stops[key])
            return self.features[start:stop]
        key = key if isinstance(key, slice) else np.asarray(key)
        if isinstance(key, np.ndarray):
            if key.ndim != 1:
                raise IndexError(f"an index of shape {key.shape}; pass numbers in one dimension, a slice or a mask")
            key = key.astype(np.int64) if key.size == 0 else key
        return Bags._of(self.features, self.starts[key], self.stops[key])

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Bags({len(self)} bags, {self.n_candidates} candidates, {self.width} features)"

    def rows(self) -> Indices:
        """The row of every candidate, bag after bag, (candidates,)."""
        sizes = self.sizes
        return np.repeat(self.starts - self.offsets[:-1], sizes) + np.arange(int(sizes.sum()))

    def scores(self, coef: NDArray[np.float64], n_threads: int = 1) -> NDArray[np.float64]:
        """φ·coef of every candidate, bag after bag, (candidates,), read block by block; an error names a bad bag."""
        scores = candidate_scores(self.features, self.starts, self.stops, coef, n_threads)
        if not np.isfinite(scores).all():
            self._refuse(int(np.argmin(np.isfinite(scores))))
        return scores

    def read(self, i: int) -> NDArray[np.float64]:
        """The candidates of one bag as a new array, (n_i, d); of a memory map, no more than that stays in memory."""
        return read_rows(self.features, int(self.starts[i]), int(self.stops[i]))

    def take(self, rows: Indices) -> Any:
        """Some rows of the matrix, (k, d): an array, or a CSR matrix if the features are one."""
        return take_rows(self.features, rows)

    def _refuse(self, candidate: int) -> None:
        """Say what is wrong with a candidate whose score is no number."""
        offsets = self.offsets
        bag = int(np.searchsorted(offsets, candidate, side="right")) - 1
        row = int(self.starts[bag]) + candidate - int(offsets[bag])
        found = self.take(np.array([row]))
        values = np.asarray(found.toarray() if issparse(found) else found, np.float64)[0]
        where = f"bag {bag}, candidate {candidate - int(offsets[bag])}"
        if (k := first_true(~np.isfinite(values))) is not None:
            raise ValueError(f"{where}: feature {k} is {values[k]}; replace it by a number, or drop the candidate")
        raise ValueError(f"{where}: its features are too large to be summed; scale them first")


def as_bags(bags: Any) -> Bags:
    """Bags as they are, or made of a sequence of (n_i, d) arrays or sparse matrices, one a bag."""
    if isinstance(bags, Bags):
        return bags
    if isinstance(bags, np.ndarray) and bags.dtype != object:
        if bags.ndim != 3:
            raise ValueError(
                f"bags is an array of shape {bags.shape}; pass a list of (n_i, d) arrays, or Bags(features, offsets)"
            )
        n, size, width = bags.shape
        if not n:
            raise ValueError("bags is empty; pass at least one bag")
        return Bags(bags.reshape(n * size, width), np.arange(n + 1) * size)
    if isinstance(bags, str | bytes) or not isinstance(bags, Sequence | np.ndarray):
        raise TypeError(f"bags must be a list of (n_i, d) arrays or Bags(features, offsets), got {type(bags).__name__}")
    parts = [_as_bag(bag, i) for i, bag in enumerate(bags)]
    if not parts:
        raise ValueError("bags is empty; pass at least one bag")
    width = parts[0].shape[1]
    for i, part in enumerate(parts):
        if part.shape[1] != width:
            raise ValueError(f"bag {i} has {part.shape[1]} features and bag 0 has {width}; make them equally wide")
    sparse = [issparse(part) for part in parts]
    features = vstack([csr_matrix(part) for part in parts]).tocsr() if any(sparse) else np.concatenate(parts)
    return Bags(features, np.concatenate([[0], np.cumsum([part.shape[0] for part in parts])]))


def _as_bag(bag: Any, i: int) -> Any:
    """One bag of a list, as a matrix with rows."""
    part = bag.tocsr() if issparse(bag) else as_array(bag, f"bag {i}")
    if part.ndim != 2:
        raise ValueError(f"bag {i} has shape {part.shape}; a bag is (candidates, features)")
    if part.shape[0] == 0:
        raise ValueError(f"bag {i} is empty; leave it out, or give it a candidate")
    if part.dtype.kind not in _KINDS:
        raise TypeError(f"bag {i} has dtype {part.dtype}; features must be real numbers")
    return part


def _as_matrix(features: Any) -> Any:
    """A matrix that rows can be read of."""
    if issparse(features):
        features = features.tocsr()
        try:
            features.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"features are not a valid CSR matrix: {error}; build it again") from None
    elif not hasattr(features, "shape") or not hasattr(features, "dtype"):
        features = as_array(features, "features")
    if isinstance(features, np.ma.MaskedArray):
        features = as_array(features, "features")
    if len(features.shape) != 2:
        raise ValueError(f"features have shape {tuple(features.shape)}; pass (candidates, features)")
    if np.dtype(features.dtype).kind not in _KINDS or np.dtype(features.dtype).itemsize > 8:
        raise TypeError(f"features have dtype {features.dtype}; pass real numbers of at most 64 bits")
    if features.shape[1] == 0:
        raise ValueError("features have no columns; a candidate needs at least one feature")
    return features


def _as_offsets(offsets: ArrayLike, n: int) -> Indices:
    bounds = as_array(offsets, "offsets")
    if bounds.ndim != 1 or bounds.size < 2 or bounds.dtype.kind not in "iu":
        raise ValueError("offsets must be integers, one more than there are bags: bag i is offsets[i]:offsets[i+1]")
    bounds = bounds.astype(np.int64)
    if bounds[0] != 0 or bounds[-1] != n:
        raise ValueError(
            f"offsets go from {bounds[0]} to {bounds[-1]}; they must go from 0 to {n}, the rows of features"
        )
    if (i := first_true(np.diff(bounds) <= 0)) is not None:
        what = "is empty" if bounds[i] == bounds[i + 1] else "ends before it begins"
        raise ValueError(f"bag {i} {what}: offsets[{i}:{i + 2}] is {bounds[i : i + 2].tolist()}; leave it out")
    return bounds
