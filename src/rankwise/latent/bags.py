"""Bags of candidates: samples whose position, pose or decisive part is not known, as rows of one feature matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse, vstack

from rankwise.arguments import as_array, first_true
from rankwise.documenting import documented
from rankwise.latent.blocks import Indices, candidate_scores, read_rows


@documented
class Bags:
    """Bags of candidates, as ranges of rows of one feature matrix.

    A bag is a set of candidates, such as the windows of an image, that together make one sample. Index bags with a
    number to get the candidates of one bag, or with a slice, a mask or an array of numbers to get a subset of the
    bags. Nothing is copied.

    Parameters
    ----------
    features : array-like, memory map, CSR matrix or dataset of shape (n_candidates, n_features)
        Features of the candidates, bag after bag. Memory maps and datasets of h5py and Zarr are read block by block,
        so they may be larger than memory.
    offsets : array-like of int of shape (n_bags + 1,)
        First row of each bag, followed by the number of candidates. No bag may be empty.

    Attributes
    ----------
    starts, stops : ndarray of int of shape (n_bags,)
        First row of each bag, and the row after its last one.

    See Also
    --------
    LatentRankSVM : Linear ranker of bags.

    Examples
    --------
    >>> bags = Bags(np.arange(10.0).reshape(5, 2), [0, 2, 5])
    >>> len(bags), bags.width, bags.sizes.tolist(), bags[1].shape, len(bags[[1]])
    (2, 2, [2, 3], (3, 2), 1)
    """

    def __init__(self, features: Any, offsets: ArrayLike) -> None:
        self.features = _as_matrix(features, "features")
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
        """Shape of the bags, as scikit-learn asks for it."""
        return (len(self),)

    @property
    def width(self) -> int:
        """Number of features of a candidate."""
        return int(self.features.shape[1])

    @property
    def sizes(self) -> Indices:
        """Number of candidates in each bag."""
        return self.stops - self.starts

    @property
    def n_candidates(self) -> int:
        """Number of candidates in all bags."""
        return int(self.sizes.sum())

    @property
    def offsets(self) -> Indices:
        """Where each bag begins if the candidates of all bags are concatenated."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def __getitem__(self, key: Any) -> Any:
        starts, stops = self.starts[key], self.stops[key]
        if np.ndim(starts) == 0:
            return self.features[int(starts) : int(stops)]
        if starts.ndim != 1:
            raise IndexError("the index has several dimensions; pass a number, an array of numbers, a slice or a mask")
        return Bags._of(self.features, starts, stops)

    def __repr__(self) -> str:
        return f"Bags({len(self)} bags, {self.n_candidates} candidates, {self.width} features)"

    def scores(self, coef: NDArray[np.float64], n_threads: int = 1) -> NDArray[np.float64]:
        """Score every candidate by its features times coefficients, and refuse features that are not finite.

        Parameters
        ----------
        coef : ndarray of shape (n_features,)
            Coefficients.
        {n_threads}

        Returns
        -------
        ndarray of shape (n_candidates,)
            Scores, bag after bag.
        """
        scores = candidate_scores(self.features, self.starts, self.stops, coef, n_threads)
        if not np.isfinite(scores).all():
            self._refuse(int(np.argmin(np.isfinite(scores))))
        return scores

    def _refuse(self, candidate: int) -> None:
        """Raise an error about a candidate whose score is not finite."""
        offsets = self.offsets
        bag = int(np.searchsorted(offsets, candidate, side="right")) - 1
        number = candidate - int(offsets[bag])
        row = int(self.starts[bag]) + number
        values = read_rows(self.features, row, row + 1)[0]
        where = f"bag {bag}, candidate {number}"
        if (k := first_true(~np.isfinite(values))) is not None:
            raise ValueError(
                f"{where}: feature {k} is {values[k]}; replace it by a finite number, or drop the candidate"
            )
        raise ValueError(f"{where}: the features are too large to be summed; scale them first")


def as_bags(bags: Any) -> Bags:
    """Return bags as they are, or build them from a sequence of (n_i, d) arrays or sparse matrices."""
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
            raise ValueError(
                f"bag {i} has {part.shape[1]} features, but bag 0 has {width}; give all bags the same features"
            )
    sparse = any(issparse(part) for part in parts)
    features = vstack([csr_matrix(part) for part in parts]).tocsr() if sparse else np.concatenate(parts)
    return Bags(features, np.concatenate([[0], np.cumsum([part.shape[0] for part in parts])]))


def _as_bag(bag: Any, i: int) -> Any:
    """Return one bag of a list as a matrix."""
    name = f"bag {i}"
    part = _as_matrix(bag if issparse(bag) else as_array(bag, name), name)
    if part.shape[0] == 0:
        raise ValueError(f"bag {i} is empty; remove it, or add a candidate")
    return part


def _as_matrix(values: Any, name: str) -> Any:
    """Return a matrix whose rows can be read."""
    if issparse(values):
        values = values.tocsr()
        try:
            values.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"{name}: not a valid CSR matrix: {error}; build it again") from None
    elif isinstance(values, np.ma.MaskedArray) or not (hasattr(values, "shape") and hasattr(values, "dtype")):
        values = as_array(values, name)
    if len(values.shape) != 2 or values.shape[1] == 0:
        raise ValueError(f"{name} must be a matrix of shape (candidates, features), got shape {tuple(values.shape)}")
    if np.dtype(values.dtype).kind not in "fiub" or np.dtype(values.dtype).itemsize > 8:
        raise TypeError(f"{name} must be real numbers of at most 64 bits, got dtype {values.dtype}")
    return values


def _as_offsets(offsets: ArrayLike, n: int) -> Indices:
    bounds = as_array(offsets, "offsets")
    if bounds.ndim != 1 or bounds.size < 2 or bounds.dtype.kind not in "iu":
        raise ValueError(
            "offsets must be integers, one more than there are bags; bag i consists of the rows offsets[i]:offsets[i+1]"
        )
    bounds = bounds.astype(np.int64)
    if bounds[0] != 0 or bounds[-1] != n:
        raise ValueError(
            f"offsets go from {bounds[0]} to {bounds[-1]}; they must go from 0 to {n}, the number of rows of features"
        )
    if (i := first_true(np.diff(bounds) <= 0)) is not None:
        what = "is empty" if bounds[i] == bounds[i + 1] else "ends before it begins"
        raise ValueError(f"bag {i} {what}: offsets[{i}:{i + 2}] is {bounds[i : i + 2].tolist()}; remove this bag")
    return bounds


def bag_means(bags: Bags) -> Any:
    """Compute the mean of the candidates of each bag.

    Parameters
    ----------
    bags : Bags
        Bags of candidates.

    Returns
    -------
    ndarray or CSR matrix of shape (n_bags, n_features)
        Mean features of each bag, as a CSR matrix if the features are one.

    See Also
    --------
    rankwise.Bags : Bags of candidates.

    Examples
    --------
    >>> bag_means(Bags(np.arange(8.0).reshape(4, 2), [0, 2, 4])).tolist()
    [[1.0, 2.0], [5.0, 6.0]]
    """
    means = np.empty((len(bags), bags.width))
    for i, size in enumerate(bags.sizes):
        if issparse(bags.features):
            means[i] = np.asarray(bags[i].mean(axis=0)).ravel()
        else:
            np.matmul(np.full(size, 1.0 / size), read_rows(bags.features, bags.starts[i], bags.stops[i]), out=means[i])
    if not np.isfinite(means).all():
        bags.scores(np.zeros(bags.width))  # raises an error that names the candidate
    return csr_matrix(means) if issparse(bags.features) else means
