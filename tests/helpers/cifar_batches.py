"""CIFAR-10 as published, with few images: pickles as Python 2 writes them."""

from __future__ import annotations

import struct

import numpy as np
from rankwise_lab.data.cifar10_batches import FILES

CLASSES = ("emu", "cat", "dog")
N = 20


# Pickles as Python 2 writes them: its strings have opcodes of their own.


def string(text: bytes) -> bytes:
    return b"U" + bytes([len(text)]) + text if len(text) < 256 else b"T" + struct.pack("<i", len(text)) + text


def array(content: bytes, n: int, width: int = 3072, dtype: bytes = b"u1", fortran: bytes = b"\x89") -> bytes:
    made = b"cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00\x85q\x09U\x01b\x87Rq\x0a"
    shape = b"J" + struct.pack("<i", n) + b"J" + struct.pack("<i", width) + b"\x86"
    state = b"K\x00K\x01\x87R(K\x03U\x01|NNN" + 2 * b"J\xff\xff\xff\xff" + b"K\x00tb"
    kind = b"cnumpy\ndtype\n" + string(dtype) + state
    return made + b"(K\x01" + shape + kind + fortran + string(content) + b"tb"


def labels_of(labels: list[int]) -> bytes:
    return b"]q\x05(" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"


def batch(data: bytes, labels: bytes) -> bytes:
    names = b"".join(string(b"emu_s_%06d.png" % k) + b"r" + struct.pack("<I", 300 + k) for k in range(3))
    entries = {b"batch_label": string(b"training batch 1 of 5"), b"labels": labels, b"data": data}
    entries[b"filenames"] = b"]q\x0b(" + names + b"e"
    return b"\x80\x02}q\x01(" + b"".join(string(key) + value for key, value in entries.items()) + b"u."


def meta(names: tuple[str, ...] = CLASSES) -> bytes:
    listed = b"]q\x03(" + b"".join(string(name.encode()) for name in names) + b"e"
    return b"\x80\x02}q\x01(" + string(b"num_cases_per_batch") + b"M\x10'" + string(b"label_names") + listed + b"u."


RNG = np.random.default_rng(0)
PIXELS = {name: RNG.integers(0, 256, (N, 3072), dtype=np.uint8) for name in FILES if name != "batches.meta"}
LABELS = {name: RNG.integers(0, len(CLASSES), N).tolist() for name in PIXELS}


def published() -> dict[str, bytes]:
    files = {name: batch(array(PIXELS[name].tobytes(), N), labels_of(LABELS[name])) for name in PIXELS}
    return {**files, "batches.meta": meta()}
