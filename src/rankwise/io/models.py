"""Model files of every kind: a header of plain data and named arrays in one archive. See docs/model_format.md.

Nothing in a file is unpickled or executed, and no more than twice its size is taken in memory.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.lib.format import write_array
from numpy.typing import NDArray

from rankwise.io.files import open_atomic
from rankwise.io.quoting import message_of, shown

FORMAT, VERSION = "rankwise-model", 1
_HEADER = "rankwise.json"
_TYPES = {"rankwise": str, "kind": str, "header": dict, "arrays": list}
_LARGEST_HEADER = 64 << 20
_ARRAY_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
# bool, integers and floats up to 8 bytes, and strings; and how the bytes of an array begin, in NumPy's format 1.0.
_DTYPE = re.compile(r"[<|](b1|[iu][1248]|f[248]|U\d{1,7})")
_NPY = b"\x93NUMPY\x01\x00"
# What zipfile, zlib, json and NumPy raise for bytes that are not theirs.
_DAMAGED = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, OverflowError, RuntimeError,
    MemoryError,
)  # fmt: skip
_AGAIN = "copy it again, or train the model again"


class ModelFileError(ValueError):
    """Error for a model file that cannot be read; it names the file, the reason, and what to do.

    See Also
    --------
    read_model : Read a model file.

    Examples
    --------
    >>> issubclass(ModelFileError, ValueError)
    True
    """


@dataclass(frozen=True, eq=False)
class ModelFile:
    """Contents of a model file.

    Parameters
    ----------
    kind : str
        Kind of model, such as "rank-svm".
    header : dict
        Settings and other plain data.
    arrays : dict of str to ndarray
        The arrays by name.
    written_by : str
        Version of rankwise that wrote the file.

    See Also
    --------
    read_model : Read a model file.

    Examples
    --------
    >>> ModelFile("example", {"C": 1.0}, {"coef": np.zeros(2)}, "0.1.0").kind
    'example'
    """

    kind: str
    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    written_by: str


def write_model(path: str | Path, kind: str, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a model file atomically; equal contents give equal bytes.

    To save an estimator, use its `save` method instead.

    Parameters
    ----------
    path : str or Path
        The file.
    kind : str
        Kind of model.
    header : dict
        Plain data: strings, finite numbers, booleans, None, and lists and dicts of these.
    arrays : dict of str to ndarray
        Arrays of booleans, integers, floats up to 64 bits, or strings.

    See Also
    --------
    read_model : Read a model file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model(f"{folder}/model", "example", {"C": 1.0}, {"coef": np.array([0.5, -1.0])})
    ...     read_model(f"{folder}/model").arrays
    {'coef': array([ 0.5, -1. ])}
    """
    listed, members = [], {}
    for name, given in sorted(arrays.items()):
        array = _storable(name, given)
        file = io.BytesIO()
        write_array(file, array, version=(1, 0), allow_pickle=False)
        content = members[f"arrays/{name}.npy"] = file.getvalue()
        digest = hashlib.sha256(content).hexdigest()
        listed.append({"name": name, "dtype": array.dtype.str, "shape": list(array.shape), "sha256": digest})
    document = {"format": FORMAT, "format_version": VERSION, "rankwise": _version(), "kind": kind}
    text = _as_json({**document, "header": dict(header), "arrays": listed})
    with open_atomic(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, content in {_HEADER: text, **members}.items():
            info = zipfile.ZipInfo(name)  # always dated 1980, for equal bytes
            info.create_system, info.external_attr = 3, 0o644 << 16
            archive.writestr(info, content)


def fingerprint(settings: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> str:
    """Compute a short digest of settings and arrays, by which checkpoints recognise the run they belong to.

    Parameters
    ----------
    settings : dict
        Plain data that JSON can hold.
    arrays : sequence of ndarray
        Arrays of numbers or strings.

    Returns
    -------
    str
        The digest: 16 hexadecimal digits.

    See Also
    --------
    write_model : Write a model file.

    Examples
    --------
    >>> fingerprint({"C": 1.0}, [np.zeros(2)]) == fingerprint({"C": 2.0}, [np.zeros(2)])
    False
    """
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for part in arrays:
        array = np.ascontiguousarray(part)
        digest.update(f"{array.dtype.str}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()[:16]


def _storable(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as it is stored: little-endian, in C order."""
    if not _ARRAY_NAME.fullmatch(name):
        raise ValueError(f"arrays: {shown(name)} is not a valid array name; use letters, digits and ._-")
    array = np.asarray(array, order="C")
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if not _DTYPE.fullmatch(array.dtype.str):
        raise ValueError(
            f"arrays: {shown(name)} has dtype {array.dtype}; only numbers of up to 64 bits and strings can be stored"
        )
    return array


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("rankwise")
    except metadata.PackageNotFoundError:
        return "unknown"


def _as_json(document: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(document, sort_keys=True, indent=1, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the header of a model must be plain data with finite numbers: {error}") from None
    if json.loads(text) != document:
        raise ValueError("the header of a model must be plain data: strings as keys of dicts, and lists, not tuples")
    if len(text) > _LARGEST_HEADER:
        raise ValueError(f"the header of a model has {len(text)} bytes; put large parts into arrays")
    return text.encode("ascii")


def read_model(path: str | Path) -> ModelFile:
    """Read a model file.

    Nothing in the file is executed. To load an estimator, use `rankwise.load` instead.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    ModelFile
        The contents. What is damaged, foreign or of a newer version is refused with a ModelFileError.

    See Also
    --------
    write_model : Write a model file.
    rankwise.load : Load a model.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model(f"{folder}/model", "example", {"C": 1.0}, {})
    ...     read_model(f"{folder}/model").header
    {'C': 1.0}
    """
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            raise ModelFileError(f"{path} is not a file; name a model file")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if file.read(4) != b"PK\x03\x04":
                raise ModelFileError(
                    f"{path} is not a rankwise model, or it is damaged; name a file that rankwise wrote"
                )
            with zipfile.ZipFile(file) as archive:
                return _read(str(path), archive, size)
    except ModelFileError:
        raise
    except FileNotFoundError:
        raise ModelFileError(f"{path}: no such file; check the name and the folder") from None
    except PermissionError:
        raise ModelFileError(f"{path}: no permission to read it; change its mode or its owner") from None
    except _DAMAGED as error:
        raise ModelFileError(f"{path}: damaged ({message_of(error)}); {_AGAIN}") from None


def _read(path: str, archive: zipfile.ZipFile, size: int) -> ModelFile:
    members = archive.infolist()
    if not members or members[0].filename != _HEADER:
        raise ModelFileError(f"{path} is not a rankwise model: it has no {_HEADER}; name a file that rankwise wrote")
    for info in members:
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size or info.flag_bits & 1:
            raise ModelFileError(f"{path}: {shown(info.filename)} is compressed or encrypted; {_AGAIN}")
    if sum(info.file_size for info in members) > size:
        raise ModelFileError(f"{path}: its members are larger than the file; {_AGAIN}")
    if members[0].file_size > _LARGEST_HEADER:
        raise ModelFileError(f"{path}: {_HEADER} is larger than {_LARGEST_HEADER >> 20} MB; {_AGAIN}")
    document = _document(path, archive.read(members[0]))
    listed = document["arrays"]
    if [info.filename for info in members[1:]] != [f"arrays/{entry['name']}.npy" for entry in listed]:
        raise ModelFileError(f"{path}: its arrays differ from those listed in {_HEADER}; {_AGAIN}")
    arrays = {}
    for entry, info in zip(listed, members[1:], strict=True):
        content, name = archive.read(info), entry["name"]
        try:
            if hashlib.sha256(content).hexdigest() != entry["sha256"]:
                raise ValueError("has changed since it was written")
            arrays[name] = _array(content, entry["dtype"], entry["shape"])
        except ValueError as error:
            raise ModelFileError(f"{path}: array {shown(name)} {error}; {_AGAIN}") from None
    return ModelFile(document["kind"], document["header"], arrays, document["rankwise"])


def _array(content: bytes, dtype: Any, shape: Any) -> NDArray[Any]:
    """Return the array in .npy bytes, in native byte order; a ValueError unless they are of just this dtype and shape.

    Their header is compared, not read: NumPy would evaluate it, and allocate whatever it claims.
    """
    if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype):
        raise ValueError(f"has dtype {shown(dtype)}; only numbers of up to 64 bits and strings are read")
    if not isinstance(shape, list) or not all(type(k) is int and k >= 0 for k in shape):
        raise ValueError(f"has no shape, but {shown(shape)}")
    header = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    start = 10 + int.from_bytes(content[8:10], "little")
    n = math.prod(shape)
    if (
        not content.startswith(_NPY)
        or content[10:start].strip() != header.encode()
        or len(content) != start + n * np.dtype(dtype).itemsize
    ):
        raise ValueError(f"is not a plain array of dtype {dtype} and shape {shown(shape)}")
    array = np.ndarray(tuple(shape), dtype, content, start)
    if array.dtype.kind == "b" and array.view("u1").max(initial=0) > 1:
        raise ValueError("has booleans other than 0 and 1")
    if array.dtype.kind == "U" and np.frombuffer(content, "<u4", offset=start).max(initial=0) > 0x10FFFF:
        raise ValueError("has strings that are not valid Unicode")
    return array.astype(array.dtype.newbyteorder("="))


def _document(path: str, text: bytes) -> dict[str, Any]:
    """Return the contents of rankwise.json, with everything checked that is relied on."""
    document = json.loads(text, parse_constant=_refuse_constant)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not a rankwise model: its format is not {FORMAT}")
    version, by = document.get("format_version"), document.get("rankwise")
    if type(version) is int and version > VERSION:
        raise ModelFileError(
            f"{path} was written by a newer rankwise ({shown(by)}, format {shown(version)}): upgrade rankwise"
        )
    plain = all(isinstance(document.get(key), kind) for key, kind in _TYPES.items())
    if version != VERSION or not plain or not all(map(_is_entry, document["arrays"])):
        raise ModelFileError(f"{path}: {_HEADER} lacks its version, kind, header or arrays; {_AGAIN}")
    return document


def _is_entry(entry: Any) -> bool:
    """Whether this lists an array."""
    if not isinstance(entry, dict) or not {"name", "dtype", "shape", "sha256"} <= {*entry}:
        return False
    return isinstance(entry["name"], str) and _ARRAY_NAME.fullmatch(entry["name"]) is not None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{_HEADER} holds {name}, which is not a JSON number")
