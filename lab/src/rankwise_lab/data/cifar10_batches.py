"""CIFAR-10 as it was published: pickles of Python 2, read without an unpickler.

A pickle is a program that may name any function and call it. The few opcodes that these files need are followed here:
they make containers, numbers and strings. What is named and called becomes a record of the call, and an array is made
of the bytes in such a record. Nothing else is known, so nothing else can happen.
"""

from __future__ import annotations

import pickletools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["FILES", "MOST_BYTES", "Batches", "read_batches"]

_TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
_TEST, _META = "test_batch", "batches.meta"
FILES = (*_TRAIN, _TEST, _META)
# A file of 10,000 images has 31 MB and some 40,000 opcodes.
MOST_BYTES = 1 << 26
_MOST_OPCODES = 1 << 18
_PIXELS = 3 * 32 * 32
_CLASS = re.compile(r"[A-Za-z]\w{0,63}", re.ASCII)

_RECONSTRUCT, _NDARRAY, _DTYPE, _ENCODE = "_reconstruct", "ndarray", "dtype", "encode"
_NAMES = {
    "numpy.core.multiarray _reconstruct": _RECONSTRUCT,
    "numpy._core.multiarray _reconstruct": _RECONSTRUCT,
    "numpy ndarray": _NDARRAY,
    "numpy dtype": _DTYPE,
    "_codecs encode": _ENCODE,
}
_AGAIN = "fetch CIFAR-10 for Python again"

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
    """CIFAR-10 of the contents of its seven files, by name; ValueError says what is wrong, and in which."""
    missing = [name for name in FILES if name not in files]
    if missing:
        raise ValueError(f"{where} lacks {', '.join(missing)}; {_AGAIN}")
    classes = _classes(_document(files[_META], f"{where}/{_META}"), f"{where}/{_META}")
    parts = {name: _batch(files[name], len(classes), f"{where}/{name}") for name in (*_TRAIN, _TEST)}
    images, labels = (np.concatenate([parts[name][k] for name in _TRAIN]) for k in (0, 1))
    return Batches(images, labels, *parts[_TEST], classes)


class _RefusedError(ValueError):
    """What the file asks for, and is not given."""


@dataclass(frozen=True)
class _Name:
    """One of the functions and types that the files name."""

    name: str


@dataclass(eq=False)
class _Call:
    """What would come of calling that name: only what it is called with, and the state it is given."""

    name: str
    arguments: tuple[Any, ...]
    state: Any = None


class _Stack:
    """The values that a pickle puts together; every method is an opcode, and raises if it does not fit."""

    def __init__(self, most: int) -> None:
        self._values: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        # Bytes that may yet be made of text: no more than the file has.
        self._left = most

    def push(self, value: Any) -> None:
        self._values.append(value)

    def pop(self) -> Any:
        return self._values.pop()

    def mark(self) -> None:
        self._marks.append(len(self._values))

    def since_mark(self) -> list[Any]:
        start = self._marks.pop()
        found = self._values[start:]
        del self._values[start:]
        return found

    def tuple_of(self, n: int) -> None:
        items = [self.pop() for _ in range(n)]
        self.push(tuple(reversed(items)))

    def append(self, values: list[Any]) -> None:
        self._top(list).extend(values)

    def set_items(self, values: list[Any]) -> None:
        for key, value in zip(values[::2], values[1::2], strict=True):
            self._top(dict)[_text(key)] = value

    def put(self, number: int | None) -> None:
        self._memo[len(self._memo) if number is None else number] = self._values[-1]

    def get(self, number: int) -> None:
        self.push(self._memo[number])

    def name(self, name: str) -> None:
        if name not in _NAMES:
            shown = name.replace(" ", ".", 1)[:80]
            raise _RefusedError(f"names {shown!r}, which no batch of CIFAR-10 needs, and which was not looked up")
        self.push(_Name(_NAMES[name]))

    def name_of_stack(self) -> None:
        name, module = self.pop(), self.pop()
        self.name(f"{_text(module)} {_text(name)}")

    def call(self) -> None:
        arguments, named = self.pop(), self.pop()
        if type(arguments) is not tuple or type(named) is not _Name:
            raise TypeError("a call of something else than a name")
        self.push(self._encoded(*arguments) if named.name == _ENCODE else _Call(named.name, arguments))

    def build(self) -> None:
        state = self.pop()
        self._top(_Call).state = state

    def _top(self, kind: type[Any]) -> Any:
        if type(self._values[-1]) is not kind:
            raise TypeError(f"no {kind.__name__.strip('_').lower()} where one is added to")
        return self._values[-1]

    def _encoded(self, text: Any, encoding: Any) -> bytes:
        """Bytes as Python 3 writes them for Python 2: text of Latin-1, and the name of that."""
        if type(text) is not str or encoding not in ("latin1", b"latin1") or len(text) > self._left:
            raise TypeError("bytes made of something else than their text")
        self._left -= len(text)
        return text.encode("latin-1")


def _text(value: Any) -> str:
    if type(value) is bytes:
        return value.decode("latin-1")
    if type(value) is not str:
        raise TypeError("a name that is no text")
    return value


_STEPS: dict[str, Callable[[_Stack, Any], None]] = {
    **dict.fromkeys(("PROTO", "FRAME"), lambda stack, argument: None),
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1"), _Stack.push),
    **dict.fromkeys(("BINBYTES", "SHORT_BINBYTES", "BINUNICODE", "SHORT_BINUNICODE"), _Stack.push),
    # Strings of Python 2 are bytes, which pickletools shows as text.
    **dict.fromkeys(("BINSTRING", "SHORT_BINSTRING"), lambda stack, text: stack.push(text.encode("latin-1"))),
    "NONE": lambda stack, _: stack.push(None),
    "NEWTRUE": lambda stack, _: stack.push(True),
    "NEWFALSE": lambda stack, _: stack.push(False),
    "EMPTY_DICT": lambda stack, _: stack.push({}),
    "EMPTY_LIST": lambda stack, _: stack.push([]),
    "EMPTY_TUPLE": lambda stack, _: stack.push(()),
    "MARK": lambda stack, _: stack.mark(),
    "TUPLE": lambda stack, _: stack.push(tuple(stack.since_mark())),
    "TUPLE1": lambda stack, _: stack.tuple_of(1),
    "TUPLE2": lambda stack, _: stack.tuple_of(2),
    "TUPLE3": lambda stack, _: stack.tuple_of(3),
    "APPEND": lambda stack, _: stack.append([stack.pop()]),
    "APPENDS": lambda stack, _: stack.append(stack.since_mark()),
    "SETITEM": lambda stack, _: stack.set_items([stack.pop(), stack.pop()][::-1]),
    "SETITEMS": lambda stack, _: stack.set_items(stack.since_mark()),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT", "MEMOIZE"), _Stack.put),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _Stack.get),
    "GLOBAL": _Stack.name,
    "STACK_GLOBAL": lambda stack, _: stack.name_of_stack(),
    "REDUCE": lambda stack, _: stack.call(),
    "BUILD": lambda stack, _: stack.build(),
}


def _document(content: bytes, where: str) -> dict[str, Any]:
    """The dictionary in a file, its keys as text."""
    if len(content) > MOST_BYTES:
        raise ValueError(f"{where} has {len(content):,} bytes, more than any batch of CIFAR-10; {_AGAIN}")
    try:
        found = _followed(content)
    except _RefusedError as error:
        raise ValueError(f"{where} {error}; {_AGAIN}") from None
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{where} is not a whole pickle ({error}); {_AGAIN}") from None
    if type(found) is not dict:
        raise ValueError(f"{where} holds no dictionary; {_AGAIN}")
    return found


def _followed(content: bytes) -> Any:
    """What a pickle leaves on the stack."""
    stack = _Stack(len(content))
    for number, (opcode, argument, _) in enumerate(pickletools.genops(content)):
        if opcode.name == "STOP":
            return stack.pop()
        if opcode.name not in _STEPS:
            raise _RefusedError(f"has the opcode {opcode.name}, which no batch of CIFAR-10 needs")
        if number >= _MOST_OPCODES:
            raise _RefusedError("has more parts than any batch of CIFAR-10")
        _STEPS[opcode.name](stack, argument)
    raise ValueError("it has no end")


def _get(document: dict[str, Any], key: str, where: str) -> Any:
    if key not in document:
        raise ValueError(f"{where} has no {key!r}; {_AGAIN}")
    return document[key]


def _classes(meta: dict[str, Any], where: str) -> tuple[str, ...]:
    names = _get(meta, "label_names", where)
    if type(names) is not list or not names:
        raise ValueError(f"{where}: label_names is not a list of names; {_AGAIN}")
    found = [name.decode("latin-1") if type(name) is bytes else name for name in names]
    if not all(type(name) is str and _CLASS.fullmatch(name) for name in found) or len(set(found)) < len(found):
        raise ValueError(f"{where}: label_names are not names of classes, each once; {_AGAIN}")
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
            raise ValueError(f"{where}: label {number} is none of 0 to {n_classes - 1}, by {_META}; {_AGAIN}")
    return images, np.array(labels, np.int64)


def _pixels(array: Any, where: str) -> Images:
    """(n, 3, 32, 32) From the record of an array of bytes, n × 3072."""
    state = array.state if type(array) is _Call and array.name == _RECONSTRUCT else None
    if type(state) is not tuple or len(state) != 5:
        raise ValueError(f"{where}: data is not an array; {_AGAIN}")
    _, shape, dtype, fortran, content = state
    if type(dtype) is not _Call or dtype.name != _DTYPE or dtype.arguments[:1] not in ((b"u1",), ("u1",)):
        raise ValueError(f"{where}: data is not an array of bytes (dtype u1); {_AGAIN}")
    if type(shape) is not tuple or len(shape) != 2 or any(type(extent) is not int for extent in shape):
        raise ValueError(f"{where}: data is not an array of images × pixels; {_AGAIN}")
    if type(content) is not bytes or shape[1] != _PIXELS or shape[0] < 1 or len(content) != shape[0] * _PIXELS:
        raise ValueError(f"{where}: data is not an array of n × {_PIXELS} bytes, or lacks some of them; {_AGAIN}")
    order: Any = "F" if fortran in (1, True) else "C"
    return np.ascontiguousarray(np.frombuffer(content, np.uint8).reshape(shape, order=order)).reshape(-1, 3, 32, 32)
