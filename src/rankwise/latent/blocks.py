"""Products of features that may be far larger than memory, block by block.

Every thread reads a block and multiplies it, so reading and multiplying overlap. Sums are in float64. The pages of a
memory map are released once a block is multiplied, so a pass holds only a few blocks in memory.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from rankwise.linear.features import Vector, as_features, one_thread_each

Indices = NDArray[np.int64]
# Bytes of a block as stored, large enough for a disk.
_BLOCK = 4 << 20
# Scattered rows that are read from a memory map before its pages are released. Each row may load its neighbours too.
_AT_ONCE = 1 << 6


def candidate_scores(features: Any, starts: Indices, stops: Indices, coef: Vector, n_threads: int) -> Vector:
    """Return features[rows]·coef for the rows of the ranges starts[i]:stops[i], one range after another."""
    scores = np.empty(int((stops - starts).sum()))
    blocks = list(_blocks(features, starts, stops))

    def work(block: tuple[int, int, int]) -> None:
        start, stop, at = block
        scores[at : at + stop - start] = _product(features, start, stop, coef)

    with one_thread_each():
        if n_threads == 1 or len(blocks) == 1:
            for block in blocks:
                work(block)
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                for _ in pool.map(work, blocks):  # an error cancels the blocks that have not begun
                    pass
    return scores


def read_rows(features: Any, start: int, stop: int) -> Vector:
    """Return features[start:stop] as a new dense array in float64."""
    rows = features[start:stop]
    values: Vector = np.array(rows.toarray() if issparse(rows) else rows, np.float64)
    if isinstance(features, np.memmap):
        _release(features, start, stop)
    return values


def take_rows(features: Any, rows: Indices) -> Any:
    """Return features[rows], (k, d), in the order of `rows`: an array, or CSR."""
    if isinstance(features, np.memmap):
        taken = np.empty((rows.size, features.shape[1]), features.dtype)
        for start in range(0, rows.size, _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            taken[part] = features[rows[part]]
            _release(features, 0, features.shape[0])
        return taken
    if isinstance(features, np.ndarray) or issparse(features):
        return features[rows]
    order = np.argsort(rows, kind="stable")  # datasets are read forwards, in runs of rows
    taken = np.empty((rows.size, features.shape[1]), features.dtype)
    ordered = rows[order]
    cuts = np.flatnonzero(np.diff(ordered) > 1) + 1
    for run in np.split(np.arange(rows.size), cuts):
        if run.size:
            first, last = int(ordered[run[0]]), int(ordered[run[-1]])
            taken[order[run]] = np.asarray(features[first : last + 1])[ordered[run] - first]
    return taken


def _blocks(features: Any, starts: Indices, stops: Indices) -> Iterator[tuple[int, int, int]]:
    """Yield first and last row of each block, and where its scores begin; neighbouring ranges are joined."""
    width = max(features.shape[1] * np.dtype(features.dtype).itemsize, 1)
    step = max(_BLOCK // width, 1)
    apart = starts[1:] != stops[:-1]
    begins, ends = np.append(starts[:1], starts[1:][apart]), np.append(stops[:-1][apart], stops[-1:])
    at = 0
    for begin, end in zip(begins, ends, strict=True):
        for start in range(int(begin), int(end), step):
            stop = min(start + step, int(end))
            yield start, stop, at
            at += stop - start


def _product(features: Any, start: int, stop: int, coef: Vector) -> Vector:
    rows = features[start:stop]
    if issparse(rows):
        return np.asarray(rows.astype(np.float64, copy=False) @ coef)
    product = as_features(np.asarray(rows), whole=False).scores(coef)
    if isinstance(features, np.memmap):
        _release(features, start, stop)
    return product


def _release(features: np.memmap[Any, Any], start: int, stop: int) -> None:
    """Release the pages of rows of a read-only map. They are read again when needed."""
    mapping = getattr(features, "_mmap", None)
    if mapping is None or features.mode != "r" or not features.flags.c_contiguous or not hasattr(mapping, "madvise"):
        return
    begin = features.ctypes.data - np.frombuffer(mapping, np.uint8).ctypes.data
    width = features.strides[0]
    first = -(-(begin + start * width) // mmap.PAGESIZE) * mmap.PAGESIZE
    last = (begin + stop * width) // mmap.PAGESIZE * mmap.PAGESIZE
    if last > first:
        mapping.madvise(mmap.MADV_DONTNEED, first, last - first)
