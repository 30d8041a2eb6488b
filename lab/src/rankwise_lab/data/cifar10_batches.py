"""CIFAR-10 as published: pickles of Python 2, read without running anything in them.

A pickle is a program that may name any function and call it. Here Python's unpickler finds only the names that batches
use, and each of them merely records its arguments; the array is made from these records. Opcodes are checked first,
because a file can make an unpickler allocate more than the file contains.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
_TEST, _META = "test_batch", "batches.meta"
FILES = (*_TRAIN, _TEST, _META)
# A file of 10,000 images has 31 MB and about 40,000 opcodes.
MOST_BYTES = 1 << 26
_MOST_OPCODES = 1 << 18
_NUMBERS = {"NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1"}
_TEXTS = {"BINBYTES", "SHORT_BINBYTES", "BINUNICODE", "SHORT_BINUNICODE", "BINSTRING", "SHORT_BINSTRING"}
_CONTAINERS = {"EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "MARK", "APPEND", "APPENDS", "SETITEM", "SETITEMS"}
_TUPLES = {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"}
_PUTS, _GETS = {"BINPUT", "LONG_BINPUT", "MEMOIZE"}, {"BINGET", "LONG_BINGET"}
_FRAMES, _NAMING, _CALLS = {"PROTO", "FRAME", "STOP"}, {"GLOBAL", "STACK_GLOBAL"}, {"REDUCE", "BUILD"}
_OPCODES = _NUMBERS | _TEXTS | _CONTAINERS | _TUPLES | _PUTS | _GETS | _FRAMES | _NAMING | _CALLS
# Tuples that are neither arguments of a call nor a state: a batch has two, both of them shapes.
_MOST_TUPLES = 8
_PIXELS = 3 * 32 * 32
_CLASS = re.compile(r"[A-Za-z]\w{0,63}", re.ASCII)

# Names that batches use, of NumPy 1 and 2 and of Python 3, which writes bytes for Python 2 as a call of encode.
_NAMES = {
    *((f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core")),
    *(("numpy", name) for name in ("ndarray", "dtype")),
    ("_codecs", "encode"),
}
# What pickletools and the unpickler raise for a file that is incomplete or not a batch.
_DAMAGED = (pickle.UnpicklingError, EOFError, LookupError, AttributeError, TypeError, ValueError, OverflowError)
_AGAIN = "download CIFAR-10 for Python again"

Images = NDArray[np.uint8]
Labels = NDArray[np.int64]


class Batches(NamedTuple):
    """Images (n, 3, 32, 32) and labels (n,), in the order of the files; the classes in their own order."""

    train_images: Images
    train_labels: Labels
    test_images: Images
    test_labels: Labels
    classes: tuple[str, ...]


def read_batches(files: Mapping[str, bytes], where: str) -> Batches:
    """Read CIFAR-10 from the contents of its seven files, by name; a ValueError says what is wrong and where."""
    missing = [name for name in FILES if name not in files]
    if missing:
        raise ValueError(f"{where} lacks {', '.join(missing)}; {_AGAIN}")
    classes = _classes(_document(files[_META], f"{where}/{_META}"), f"{where}/{_META}")
    parts = {name: _batch(files[name], len(classes), f"{where}/{name}") for name in (*_TRAIN, _TEST)}
    images, labels = (np.concatenate([parts[name][k] for name in _TRAIN]) for k in (0, 1))
    return Batches(images, labels, *parts[_TEST], classes)


class _RefusedError(ValueError):
    """The file asks for something that it is refused."""


class _Record:
    """A record in place of what a file names, calls or sets: the name, the arguments and the state; nothing is run."""

    __slots__ = ("arguments", "name", "state")

    def __init__(self, name: str, *arguments: Any) -> None:
        self.name, self.arguments = name, arguments
        self.state: Any = None

    def __call__(self, *arguments: Any) -> _Record:
        return _Record(self.name, *arguments)

    def __setstate__(self, state: Any) -> None:
        self.state = state


def _is_record(value: Any, name: str) -> bool:
    return type(value) is _Record and value.name == name


def _bytes(value: Any) -> Any:
    """The bytes that a record of encode stands for; any other value as it is."""
    if not _is_record(value, "encode") or [type(one) for one in value.arguments[:1]] != [str]:
        return value
    return value.arguments[0].encode("latin-1", "ignore")


def _text(value: Any) -> Any:
    """Text for bytes; any other value as it is."""
    value = _bytes(value)
    return value.decode("latin-1") if type(value) is bytes else value


class _Unpickler(pickle.Unpickler):
    """Python's own unpickler, except for names; it already refuses persistent objects."""

    def find_class(self, module: str, name: str, /) -> Any:
        if (module, name) not in _NAMES:
            shown = f"{module}.{name}"[:80]
            raise _RefusedError(f"names {shown!r}, which no batch of CIFAR-10 needs; it was not looked up")
        return _Record(name)


def _check_opcodes(content: bytes) -> None:
    """Refuse opcodes that no batch needs, and those that would take more memory than the file has content."""
    before, n_tuples = "", 0
    for number, (opcode, argument, _) in enumerate(pickletools.genops(content)):
        name = opcode.name
        if name not in _OPCODES:
            raise _RefusedError(f"has the opcode {name}, which no batch of CIFAR-10 needs")
        # The memo is a list as long as its largest index.
        if number >= _MOST_OPCODES or (name in _PUTS and (argument or 0) >= _MOST_OPCODES):
            raise _RefusedError("has more parts than any batch of CIFAR-10")
        if name not in _PUTS and name != "FRAME":
            n_tuples += before in _TUPLES and name not in _CALLS
            before = name
        if n_tuples > _MOST_TUPLES:
            raise _RefusedError("has more tuples than any batch of CIFAR-10")


def _document(content: bytes, where: str) -> dict[str, Any]:
    """The dictionary in a file, its keys as text."""
    if len(content) > MOST_BYTES:
        raise ValueError(f"{where} has {len(content):,} bytes, more than any batch of CIFAR-10; {_AGAIN}")
    try:
        _check_opcodes(content)
        found = _Unpickler(io.BytesIO(content), encoding="bytes").load()
    except _RefusedError as error:
        raise ValueError(f"{where} {error}; {_AGAIN}") from None
    except _DAMAGED as error:
        raise ValueError(f"{where} is not a complete pickle ({error}); {_AGAIN}") from None
    if type(found) is not dict:
        raise ValueError(f"{where} contains no dictionary; {_AGAIN}")
    document = {_text(key): value for key, value in found.items()}
    if not all(type(key) is str for key in document):
        raise ValueError(f"{where} has a key that is not text; {_AGAIN}")
    return document


def _get(document: dict[str, Any], key: str, where: str) -> Any:
    if key not in document:
        raise ValueError(f"{where} has no {key!r}; {_AGAIN}")
    return document[key]


def _classes(meta: dict[str, Any], where: str) -> tuple[str, ...]:
    names = _get(meta, "label_names", where)
    if type(names) is not list or not names:
        raise ValueError(f"{where}: label_names is not a list of names; {_AGAIN}")
    found = [_text(name) for name in names]
    if not all(type(name) is str and _CLASS.fullmatch(name) for name in found) or len(set(found)) < len(found):
        raise ValueError(f"{where}: label_names are not distinct class names; {_AGAIN}")
    return tuple(found)


def _batch(content: bytes, n_classes: int, where: str) -> tuple[Images, Labels]:
    document = _document(content, where)
    images = _pixels(_get(document, "data", where), where)
    labels = _get(document, "labels", where)
    if type(labels) is not list or any(type(label) is not int for label in labels):
        raise ValueError(f"{where}: labels is not a list of whole numbers; {_AGAIN}")
    if len(labels) != len(images):
        raise ValueError(f"{where} has {len(images)} images and {len(labels)} labels; {_AGAIN}")
    for number, label in enumerate(labels):
        if not 0 <= label < n_classes:
            raise ValueError(
                f"{where}: label {number} is not one of the classes 0 to {n_classes - 1} of {_META}; {_AGAIN}"
            )
    return images, np.array(labels, np.int64)


def _pixels(array: Any, where: str) -> Images:
    """(n, 3, 32, 32) from the record of an array of bytes, n × 3072."""
    state = array.state if _is_record(array, "_reconstruct") else None
    if type(state) is not tuple or len(state) != 5:
        raise ValueError(f"{where}: data is not an array; {_AGAIN}")
    _, shape, dtype, fortran, content = (*state[:-1], _bytes(state[-1]))
    if not _is_record(dtype, "dtype") or [_text(one) for one in dtype.arguments[:1]] != ["u1"]:
        raise ValueError(f"{where}: data is not an array of bytes (dtype u1); {_AGAIN}")
    if type(shape) is not tuple or len(shape) != 2 or any(type(extent) is not int for extent in shape):
        raise ValueError(f"{where}: data is not an array of images × pixels; {_AGAIN}")
    if type(content) is not bytes or shape[1] != _PIXELS or shape[0] < 1 or len(content) != shape[0] * _PIXELS:
        raise ValueError(f"{where}: data is not an array of n × {_PIXELS} bytes, or lacks some of them; {_AGAIN}")
    order: Any = "F" if fortran in (1, True) else "C"
    return np.ascontiguousarray(np.frombuffer(content, np.uint8).reshape(shape, order=order)).reshape(-1, 3, 32, 32)
