"""Samples of LW-SVM: a fixed partition into blocks, the same from arrays, tensors and data sets; bad ones refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rankwise_lab.layerwise.blocks import Blocks  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402


def samples(n: int = 23, dtype: str = "float32") -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2, 3, 3)).astype(dtype), np.arange(n) % 4


@pytest.mark.parametrize(("n", "block_size"), [(1, 1), (7, 7), (23, 5), (23, 6), (23, 100), (24, 1)])
def test_blocks_part_the_samples_into_sizes_that_differ_by_at_most_one(n: int, block_size: int) -> None:
    images, labels = samples(n)
    images[:, 0, 0, 0] = np.arange(n)
    blocks = Blocks(images, labels, 4, block_size=block_size, seed=3)
    sizes = [blocks.size(b) for b in range(len(blocks))]
    assert len(blocks) == -(-n // block_size)
    assert max(sizes) <= block_size
    assert max(sizes) - min(sizes) <= 1
    assert sum(blocks.share(b) for b in range(len(blocks))) == pytest.approx(1.0, abs=1e-12)
    found = torch.cat([blocks.images(b)[:, 0, 0, 0] for b in range(len(blocks))]).long()
    assert sorted(found.tolist()) == list(range(n))
    assert torch.equal(torch.cat([blocks.labels(b) for b in range(len(blocks))]), found % 4)


def test_the_partition_is_drawn_by_the_seed_alone() -> None:
    images, labels = samples()
    first, again, other = (Blocks(images, labels, 4, block_size=6, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.images(0), again.images(0))
    assert not torch.equal(first.images(0), other.images(0))


def test_blocks_come_in_the_dtype_asked_for_with_labels_as_int64() -> None:
    images, labels = samples()
    blocks = Blocks(images, labels.astype(np.uint8), 4, dtype=torch.float64)
    assert blocks.images(0).dtype == torch.float64
    assert blocks.labels(0).dtype == torch.int64
    assert torch.equal(blocks.take(np.arange(23))[0], torch.from_numpy(images).double())


class Items:
    """A data set of (image, label) that is neither a list nor a tensor."""

    def __init__(self, images: Any, labels: Any) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, k: int) -> tuple[Any, int]:
        return self.images[k], int(self.labels[k])


def test_pairs_and_data_sets_of_the_same_samples_are_the_same_blocks() -> None:
    images, labels = samples()
    tensors = torch.from_numpy(images), torch.from_numpy(labels)
    given = {
        "pair": (images, labels),
        "list": [images, labels.tolist()],
        "tensors": tensors,
        "data set": TensorDataset(*tensors),
        "items": Items(images, labels),
        "list of pairs": list(zip(images, labels, strict=True)),
    }
    digests = {name: Blocks.of(data, 4).digest() for name, data in given.items()}
    assert len(set(digests.values())) == 1, digests


def test_a_list_of_two_pairs_is_two_samples() -> None:
    images, _ = samples(2)
    blocks = Blocks.of([(images[0], 1), (images[1], 3)], 4)
    assert blocks.n == 2
    assert blocks.all_labels.tolist() == [1, 3]


@pytest.mark.parametrize("layout", ["read-only", "reversed", "big-endian", "strided", "half"])
def test_arrays_of_any_layout_are_taken(layout: str) -> None:
    images, labels = samples(6)
    given = {
        "read-only": images.copy(),
        "reversed": images[::-1].copy()[::-1],
        "big-endian": images.astype(">f4"),
        "strided": np.repeat(images, 2, axis=0)[::2],
        "half": images.astype(np.float16),
    }[layout]
    given.flags.writeable = layout != "read-only"
    found = Blocks(given, labels, 4).take(np.arange(6))[0]
    assert torch.equal(found, torch.from_numpy(given.astype(np.float32)))


def test_the_digest_tells_images_labels_and_dtypes_apart() -> None:
    images, labels = samples()
    other = images.copy()
    other[5, 1, 2, 2] += 1e-3
    digests = {
        Blocks(images, labels, 4).digest(),
        Blocks(other, labels, 4).digest(),
        Blocks(images, labels[::-1], 4).digest(),
        Blocks(images, labels, 4, dtype=torch.float64).digest(),
        Blocks(images.reshape(23, 18), labels, 4).digest(),
    }
    assert len(digests) == 5


def with_value(value: float) -> Any:
    images, _ = samples(9)
    images[7, 1, 0, 2] = value
    return images


IMAGES, LABELS = samples(9)
BAD = {
    "negative": ((IMAGES, np.where(np.arange(9) == 4, -1, LABELS)), ValueError, r"val: labels\[4\] is -1"),
    "too large": ((IMAGES, np.where(np.arange(9) == 5, 4, LABELS)), ValueError, r"labels\[5\] is 4, .*0 to 3"),
    "float labels": ((IMAGES, LABELS.astype(float)), TypeError, "labels have dtype torch.float64"),
    "bool labels": ((IMAGES, LABELS > 1), TypeError, "labels have dtype torch.bool"),
    "word labels": ((IMAGES, ["cat"] * 9), TypeError, "labels must be an array or a tensor of numbers"),
    "lengths": ((IMAGES, LABELS[:8]), ValueError, r"9 images but labels have shape \(8,\)"),
    "two labels": ((IMAGES, np.eye(9, dtype=int)), ValueError, r"labels have shape \(9, 9\)"),
    "bytes": (((IMAGES * 9).astype(np.uint8), LABELS), TypeError, r"images have dtype torch.uint8; scale them"),
    "complex": ((IMAGES * 1j, LABELS), TypeError, "images have dtype torch.complex64"),
    "nan": ((with_value(np.nan), LABELS), ValueError, "val: image 7 has a value that is NaN"),
    "infinite": ((with_value(-np.inf), LABELS), ValueError, "image 7"),
    "overflow": ((with_value(1).astype(np.float64) * 1e39, LABELS), ValueError, "image 0 .* too large for"),
    "flat": ((IMAGES[:, 0, 0, 0], LABELS), ValueError, r"shape \(n, …\)"),
    "empty": ((IMAGES[:0], LABELS[:0]), ValueError, "there are no images"),
    "empty data set": ([], ValueError, "empty"),
    "array alone": (IMAGES, TypeError, "a pair .* got ndarray"),
    "nothing": (None, TypeError, "got NoneType"),
    "triples": ([(IMAGES[0], 1, 2)] * 3, TypeError, "item 0 is tuple"),
    "shapes": ([(IMAGES[0], 1), (IMAGES[1], 1), (IMAGES[2, :1], 1)], ValueError, "image 2 has shape"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_samples_are_refused_by_name(case: str) -> None:
    data, error, match = BAD[case]
    with pytest.raises(error, match=match) as caught:
        Blocks.of(data, 4, name="val")
    assert str(caught.value).startswith("val")


@pytest.mark.parametrize("block_size", [0, -3, 2.5, True, "all"])
def test_a_block_size_that_is_no_count_is_refused(block_size: Any) -> None:
    with pytest.raises(ValueError, match="block_size must be an integer"):
        Blocks(IMAGES, LABELS, 4, block_size=block_size)
