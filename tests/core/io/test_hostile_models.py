"""Model files that are damaged, forged or of another kind end in one clear line, whoever reads them."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankwise as rw
from rankwise.cli.main import main
from rankwise.io import ModelFileError, read_model, write_model

Document, Arrays = dict[str, Any], dict[str, Any]

SEED, DRAWN = 7, 30
X = np.random.default_rng(0).normal(size=(24, 3))
Y = np.arange(24) % 2


def npy_bytes(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def write_raw(path: Path, document: Document, arrays: Arrays) -> None:
    """A file of any header whatever, its sums right; an array that cannot be written as one is written as bytes."""
    parts = {name: part if isinstance(part, bytes) else npy_bytes(part) for name, part in arrays.items()}
    if isinstance(document.get("arrays"), list):
        listed = []
        for name, content in parts.items():
            part = np.zeros(1) if isinstance(arrays[name], bytes) else arrays[name]
            entry = {"name": name, "dtype": part.dtype.str, "shape": list(part.shape)}
            listed.append(entry | {"sha256": hashlib.sha256(content).hexdigest()})
        document = document | {"arrays": listed}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("rankwise.json", json.dumps(document))
        for name, content in parts.items():
            archive.writestr(f"arrays/{name}.npy", content)


def opened(path: Path) -> tuple[Document, Arrays]:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("rankwise.json")), read_model(path).arrays


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of every kind that is written, and samples."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "x.csv").write_text(
        "label,a,b,c\n" + "".join(f"{y},{','.join(map(str, x))}\n" for x, y in zip(X, Y, strict=True))
    )
    assert main(f"fit {folder}/x.csv --quiet -o {folder}/linear-ranker.rw --cv 2".split()) == 0
    rw.RankSVM(C=1.0).fit(X, Y).save(folder / "rank-svm.rw")
    rw.RankSVMCV(Cs=[0.1, 1.0], cv=2).fit(X, Y).save(folder / "rank-svm-cv.rw")
    bags = [X[k : k + 2] for k in range(0, 24, 2)]
    y = np.arange(12) % 2
    rw.LatentRankSVM(C=1.0).fit(bags, y).save(folder / "latent-rank-svm.rw")
    rw.LatentRankSVMCV(Cs=[1.0], cv=2).fit(bags, y).save(folder / "latent-rank-svm-cv.rw")
    for kind in ("lwsvm-checkpoint", "latent-checkpoint"):
        write_model(folder / f"{kind}.rw", kind, {"settings": {}}, {"numbers": np.zeros(3)})
    if importlib.util.find_spec("torch"):
        from rankwise_lab.layerwise import PLCNN
        from torch import nn

        PLCNN(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).save(folder / "plcnn.rw")
    return folder


def commands(folder: Path, path: Path) -> Iterator[list[str]]:
    yield ["predict", str(path), str(folder / "x.csv")]
    yield ["predict", str(path), str(folder / "x.csv"), "--labels"]
    yield ["evaluate", str(path), str(folder / "x.csv"), "--metrics", "ap", "--resamples", "0"]


def tried(folder: Path, path: Path, capsys: pytest.CaptureFixture[str], *, drawn: bool = False) -> list[str]:
    """What is said of a file by load and by each command, one line each; nothing where it is read."""
    said = []
    try:
        rw.load(path)
    except ModelFileError as error:
        said.append(str(error))
    plot = ["--plot", str(folder / "pr.png")] if drawn else []
    for arguments in commands(folder, path):
        status = main([*arguments, *(plot if arguments[0] == "evaluate" else [])])
        error = capsys.readouterr().err
        assert status in (0, 2)
        assert (status == 2) == error.startswith("rankwise: ")
        said += error.splitlines()
    for line in said:
        assert path.name in line or "x.csv: no label is at least" in line, line
        assert len(line) < 400 + len(str(path)), line
        assert ";" in line or ":" in line, line  # what to do
    assert len(said) <= 4
    return said


OTHER_KINDS = {
    **{
        kind: f"holds a {kind}, which does not score rows of a file; use it in Python"
        for kind in ("plcnn", "latent-rank-svm", "latent-rank-svm-cv")
    },
    "lwsvm-checkpoint": "is a checkpoint, not a model; pass its folder to LWSVM(checkpoint=)",
    "latent-checkpoint": "is a checkpoint, not a model; pass its folder to LatentRankSVM(checkpoint=)",
}


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_models_of_other_kinds_are_refused_by_the_commands(
    kind: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / f"{kind}.rw"
    if not path.exists():
        pytest.skip("PyTorch is not installed")
    for arguments in commands(folder, path):
        assert main(arguments) == 2
        assert f"{path} {OTHER_KINDS[kind]}" in capsys.readouterr().err


NO_TABLE = "not a table of names and values; copy it again, or save the model again"
NOTES: list[tuple[Any, str, int]] = [
    *((note, NO_TABLE, 4) for note in ("", [], "words", 3, None, [["first_index", 0]], True)),
    # These are models all the same, to whoever does not ask.
    ({"relevant_from": "1"}, "relevant_from is '1', not a finite number", 3),
    ({"relevant_from": 10**400}, "relevant_from is 1000000000000000000000000000000000000000…, not a finite number", 3),
    ({"relevant_from": True}, "relevant_from is True", 3),
    ({"first_index": 2}, "first_index is 2, neither 0, 1 nor null", 3),
    ({"first_index": [0]}, "first_index is [0], neither", 3),
    ({"first_index": "x" * 50_000}, "…, neither", 3),
]


@pytest.mark.parametrize(("note", "said", "times"), NOTES, ids=lambda part: str(part)[:40])
def test_what_a_note_says_is_checked(
    note: Any, said: str, times: int, folder: Path, tmp_path: Path, capsys: Any
) -> None:
    path = tmp_path / "m.rw"
    document, arrays = opened(folder / "linear-ranker.rw")
    document["header"]["note"] = note
    write_raw(path, document, arrays)
    found = tried(folder, path, capsys)
    assert len(found) == times
    assert all(said in line for line in found)


def test_an_empty_note_is_as_in_files_of_the_python_interface(folder: Path, capsys: Any) -> None:
    assert read_model(folder / "rank-svm.rw").header["note"] == {}
    assert tried(folder, folder / "rank-svm.rw", capsys) == []


def test_classes_that_are_words_are_written_as_words(folder: Path, tmp_path: Path, capsys: Any) -> None:
    rw.RankSVM(C=1.0).fit(X, np.where(Y, "good", "bad")).save(tmp_path / "m.rw")
    assert main(["predict", str(tmp_path / "m.rw"), str(folder / "x.csv"), "--labels"]) == 0
    assert set(capsys.readouterr().out.split()) == {"good", "bad"}


# Mutations

STRANGE: list[Any] = [
    "", "x" * 100_000, [], {}, None, True, -1, 0, 3, 0.5, 1e308, 10**400, [["a", 1]], {"a": {"b": []}}, [None] * 1000,
    json.loads("[" * 400 + "]" * 400),
]  # fmt: skip
ARRAYS: dict[str, Callable[[Any], Any]] = {
    "float32": lambda a: a.astype(np.float32) if a.dtype.kind != "U" else a.astype("U1"),
    "integers": lambda a: np.zeros(a.shape, np.int8),
    "words": lambda a: np.full(a.shape, "word"),
    "booleans": lambda a: np.ones(a.shape, bool),
    "flat": lambda a: np.append(a.ravel(), a.ravel()[:1]),
    "deep": lambda a: a.reshape(1, *a.shape, 1),
    "nothing": lambda a: a.ravel()[:0],
    "one": lambda a: a.ravel()[:1].reshape(()) if a.size else np.zeros(()),
    "nan": lambda a: np.full(a.shape, np.nan),
    "inf": lambda a: np.full(a.shape, -np.inf),
    "wide": lambda a: np.zeros((1, 100_000)),
    "no array": lambda a: b"\x93NUMPY\x01\x00\xff\xff{}",
    "objects": lambda a: b"\x93NUMPY\x01\x00\x40\x00"
    + b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(64),
    "huge": lambda a: b"\x93NUMPY\x01\x00\x50\x00"
    + b"{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 9), }".ljust(80),
}  # fmt: skip


def places(part: Any, depth: int = 4) -> Iterator[tuple[Any, Any]]:
    """Every table or list within plain data, with each of its keys."""
    keys = list(part) if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else []
    for key in keys:
        yield part, key
        if depth:
            yield from places(part[key], depth - 1)


def mutated(rng: np.random.Generator, document: Document, arrays: Arrays) -> tuple[str, Document, Arrays]:
    """One thing about a file changed."""
    document, arrays = json.loads(json.dumps(document)), dict(arrays)
    if rng.random() < 0.6:
        found = [place for place in places(document) if place[1] != "sha256"]
        holder, key = found[rng.integers(len(found))]
        if rng.random() < 0.2:
            del holder[key]
            return f"no {key}", document, arrays
        value = STRANGE[rng.integers(len(STRANGE))]
        holder[key] = value
        return f"{key} = {str(value)[:40]}", document, arrays
    name = [*arrays][rng.integers(len(arrays))]
    change = [*ARRAYS, "absent", "another"][rng.integers(len(ARRAYS) + 2)]
    if change == "absent":
        del arrays[name]
    elif change == "another":
        arrays[f"another.{name}"[:100]] = arrays[name]
    else:
        arrays[name] = ARRAYS[change](arrays[name])
    return f"{name}: {change}", document, arrays


KINDS = ["linear-ranker", "rank-svm", "rank-svm-cv", "latent-rank-svm", "latent-rank-svm-cv"]
KINDS += ["plcnn", "lwsvm-checkpoint"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numbers that are too large to be drawn
@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_are_read_or_refused_in_one_clear_line(
    kind: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not (folder / f"{kind}.rw").exists():
        pytest.skip("PyTorch is not installed")
    rng = np.random.default_rng(SEED)
    original = opened(folder / f"{kind}.rw")
    path, refused = tmp_path / "m.rw", 0
    for k in range(DRAWN):
        what, document, arrays = mutated(rng, *original)
        write_raw(path, document, arrays)
        drawn = k % 15 == 0 and bool(importlib.util.find_spec("matplotlib"))
        try:
            refused += bool(tried(folder, path, capsys, drawn=drawn))
        except Exception as error:
            raise AssertionError(f"{kind}, {k}: {what}") from error
    assert refused > DRAWN // 4
