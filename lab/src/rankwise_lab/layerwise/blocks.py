"""Images and labels, checked once and divided into fixed blocks; each plane of LW-SVM belongs to one block."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankwise.arguments import is_whole

# Number of images checked, hashed or scored at a time.
_AT_ONCE = 500


class Blocks:
    """Images (n, …) and labels (n,) divided at random into ⌈n/block_size⌉ fixed blocks, sizes differing by at most one.

    Images are kept as they are; blocks are moved to device and dtype when needed. name: of the samples, in errors.
    """

    def __init__(
        self,
        images: Any,
        labels: Any,
        n_classes: int,
        *,
        block_size: int = 200,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        name: str = "train",
    ) -> None:
        if not is_whole(block_size) or block_size < 1:
            raise ValueError(f"block_size must be an integer, at least 1, got {block_size!r}")
        self.name, self.n_classes = name, int(n_classes)
        self.dtype, self.device = dtype, torch.device(device)
        self._images = as_images(images, name)
        self._labels = _as_labels(labels, len(self._images), self.n_classes, name)
        self.n = len(self._images)
        self._check_finite()
        order = np.random.default_rng([int(seed), 0]).permutation(self.n)
        self._rows = [np.sort(part) for part in np.array_split(order, -(-self.n // int(block_size)))]

    def __len__(self) -> int:
        return len(self._rows)

    def size(self, b: int) -> int:
        """The number of samples of a block, n_b."""
        return len(self._rows[b])

    def share(self, b: int) -> float:
        """The weight of a block in the risk, n_b/n."""
        return len(self._rows[b]) / self.n

    def images(self, b: int) -> Tensor:
        """The images of a block, (n_b, …)."""
        return self.take(self._rows[b])[0]

    def labels(self, b: int) -> Tensor:
        """The labels of a block, (n_b,), int64."""
        return self._labels[torch.from_numpy(self._rows[b])].to(self.device)

    def take(self, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """The images (m, …) and labels (m,) of some samples, by their positions in the data."""
        at = torch.from_numpy(np.ascontiguousarray(rows, np.int64))
        images = self._images[at.to(self._images.device)].to(self.device, self.dtype)
        return images, self._labels[at].to(self.device)

    @property
    def all_labels(self) -> NDArray[np.int64]:
        """Labels of all samples, (n,), in the order of the data."""
        return self._labels.numpy()

    def runs(self) -> list[NDArray[np.int64]]:
        """The positions of all samples in runs of a few hundred, for `take`."""
        return np.array_split(np.arange(self.n), -(-self.n // _AT_ONCE))

    def digest(self) -> str:
        """SHA-256 of all images and labels, in the type in which they are used."""
        found = hashlib.sha256(f"{tuple(self._images.shape)}{self.dtype}".encode())
        for rows in self.runs():
            found.update(self.take(rows)[0].cpu().contiguous().view(torch.uint8).numpy().tobytes())
        found.update(self.all_labels.tobytes())
        return found.hexdigest()

    def _check_finite(self) -> None:
        for rows in self.runs():
            finite = self.take(rows)[0].flatten(1).isfinite().all(dim=1)
            if not bool(finite.all()):
                k = int(rows[int((~finite).int().argmax())])
                raise ValueError(
                    f"{self.name}: image {k} has a value that is NaN, infinite or too large for {self.dtype}; remove "
                    "or correct it"
                )


def as_images(images: Any, name: str) -> Tensor:
    """Images as a floating-point tensor (n, …), n at least 1; not yet checked to be finite."""
    found = _as_tensor(images, f"{name}: images")
    if not found.is_floating_point():
        raise TypeError(
            f"{name}: images have dtype {found.dtype}; scale them to floats, for example images.astype('float32') / 255"
        )
    if found.dim() < 2:
        raise ValueError(
            f"{name}: images must have shape (n, …) with at least two dimensions, got {tuple(found.shape)}"
        )
    if not len(found):
        raise ValueError(f"{name}: there are no images; pass at least one")
    return found


def _as_labels(labels: Any, n: int, n_classes: int, name: str) -> Tensor:
    found = _as_tensor(labels, f"{name}: labels").cpu()
    if found.is_floating_point() or found.is_complex() or found.dtype == torch.bool:
        raise TypeError(f"{name}: labels have dtype {found.dtype}; they must be integers, from 0 to {n_classes - 1}")
    if found.shape != (n,):
        raise ValueError(
            f"{name}: there are {n} images but labels have shape {tuple(found.shape)}; pass one label per image"
        )
    found = found.to(torch.int64, copy=True)
    wrong = (found < 0) | (found >= n_classes)
    if bool(wrong.any()):
        k = int(wrong.int().argmax())
        raise ValueError(
            f"{name}: labels[{k}] is {int(found[k])}, but the network's {n_classes} classes are 0 to {n_classes - 1}"
        )
    return found


def _as_tensor(values: Any, what: str) -> Tensor:
    if isinstance(values, Tensor):
        return values.detach()
    array = np.asarray(values)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"{what} must be an array or a tensor of numbers, got {type(values).__name__} of {array.dtype}")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = array.astype(np.int64)
    if not array.flags.writeable or not array.dtype.isnative or min(array.strides, default=0) < 0:
        array = array.astype(array.dtype.newbyteorder("="), copy=True)
    return torch.from_numpy(array)
