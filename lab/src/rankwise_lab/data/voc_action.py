"""VOC 2011 action: persons and their actions as the devkit lists them, and your features; anything unclear is an error.

ImageSets/Action/<set>.txt has one person per line: the image and the person's number in it; <class>_<set>.txt adds 1 or
−1 to each. ActionFeatures/<set>.npy, which is not part of the devkit, is a float array (n, d): row k describes line k
of <set>.txt. Labels of test are not published: its class files may be absent, or have 0 or ? for every person.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise_lab.data.folder import MissingDataError

YEAR = "VOC2011"
FEATURES = "ActionFeatures"
_LISTS = Path("ImageSets", "Action")
# Persons whose action is not among the classes.
_NOT_JUDGED = {"other"}
_PERSON = re.compile(r"([\w.-]{1,100})\s+(\d{1,9})", re.ASCII)
_LABELS = {"1": True, "+1": True, "-1": False}
_UNKNOWN = {"0", "?"}
# Squares of larger numbers overflow 32 bits.
_LARGEST = 1e18

Person = tuple[str, int]


class VocAction(NamedTuple):
    """X (n, d) and X_test, features as they are; Y (n, k), whether a person does each of the classes; the two sets."""

    X: NDArray[np.float32]
    Y: NDArray[np.bool_]
    X_test: NDArray[np.float32]
    Y_test: NDArray[np.bool_]
    classes: tuple[str, ...]
    sets: tuple[str, str]


def find_voc_action(folder: Path) -> Path | None:
    """Return the year's folder, which has ActionFeatures: in that folder, its VOCdevkit, or itself; else None."""
    for year in (folder, folder / YEAR, folder / "VOCdevkit" / YEAR):
        if (year / FEATURES).is_dir():
            return year
    return None


def read_voc_action(year: Path) -> VocAction:
    """Read trainval and test of a year's folder if test has labels; otherwise train and val."""
    sets = ("trainval", "test") if _has_labels(year, "test") else ("train", "val")
    persons = [_persons(year / _LISTS / f"{name}.txt") for name in sets]
    both = persons[0].keys() & persons[1].keys()
    if both:
        raise ValueError(f"{year / _LISTS}: {_shown(min(both))} is in {sets[0]}.txt and {sets[1]}.txt; keep it in one")
    classes = _classes(year, sets[0])
    if not classes:
        raise MissingDataError(f"{year / _LISTS} has no file <class>_{sets[0]}.txt; unpack the devkit's files there")
    Y, Y_test = (
        np.array([_labels(year, name, part, of) for name in classes], np.bool_).T.copy()
        for part, of in zip(sets, persons, strict=True)
    )
    X, X_test = (_features(year, part, of) for part, of in zip(sets, persons, strict=True))
    if X.shape[1] != X_test.shape[1]:
        paths = " and ".join(str(year / FEATURES / f"{name}.npy") for name in sets)
        raise ValueError(
            f"{paths} have {X.shape[1]} and {X_test.shape[1]} columns; use the same features for both sets"
        )
    return VocAction(X, Y, X_test, Y_test, classes, sets)


def _classes(year: Path, part: str) -> tuple[str, ...]:
    names = (path.name.removesuffix(f"_{part}.txt") for path in (year / _LISTS).glob(f"[A-Za-z]*_{part}.txt"))
    return tuple(sorted(set(names) - _NOT_JUDGED))


def _has_labels(year: Path, part: str) -> bool:
    """Whether any file of a class says what any person of a set does."""
    paths = (year / _LISTS / f"{name}_{part}.txt" for name in _classes(year, part))
    return any(label not in _UNKNOWN for path in paths for _, _, label in _lines(path, labelled=True))


def _lines(path: Path, *, labelled: bool) -> list[tuple[int, Person, str]]:
    """Return (number, person, rest) of every line; without labels there must be no rest."""
    if not path.is_file():
        raise MissingDataError(f"{path}: no such file; unpack the devkit's {_LISTS} there")
    try:
        lines = path.read_bytes().decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; unpack it again") from None
    form = "an image, a person's number" + (" and 1 or -1" if labelled else "")
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        words = line.split()
        person = _PERSON.fullmatch(" ".join(words[:2]))
        if person is None or len(words) != (3 if labelled else 2):
            raise ValueError(f"{path}, line {number}: {line.strip()[:60]!r} is not {form}; correct the line")
        found.append((number, (person[1], int(person[2])), words[-1]))
    if not found:
        raise ValueError(f"{path} is empty; unpack it again")
    return found


def _persons(path: Path) -> dict[Person, int]:
    """The persons of a set, each with its line."""
    return {person: number for person, (number, _) in _each_once(path, labelled=False).items()}


def _each_once(path: Path, *, labelled: bool) -> dict[Person, tuple[int, str]]:
    found: dict[Person, tuple[int, str]] = {}
    for number, person, label in _lines(path, labelled=labelled):
        if person in found:
            raise ValueError(
                f"{path}, line {number}: {_shown(person)} is also on line {found[person][0]}; list each person once"
            )
        found[person] = number, label
    return found


def _labels(year: Path, name: str, part: str, persons: dict[Person, int]) -> list[bool]:
    """Whether the persons of a set, in its order, do the action of the class."""
    path, of = year / _LISTS / f"{name}_{part}.txt", year / _LISTS / f"{part}.txt"
    found = _each_once(path, labelled=True)
    for person, (number, label) in found.items():
        if person not in persons:
            raise ValueError(f"{path}, line {number}: {_shown(person)} is not in {of}; list it in both, or in neither")
        if label not in _LABELS:
            raise ValueError(f"{path}, line {number}: {label[:20]!r} is neither 1 nor -1; correct it")
    for person, number in persons.items():
        if person not in found:
            raise ValueError(f"{of}, line {number}: {_shown(person)} is not in {path}; list it in both, or in neither")
    labels = [_LABELS[found[person][1]] for person in persons]
    if all(labels) or not any(labels):
        raise ValueError(f"{path}: every person has the label {'1' if labels[0] else '-1'}; both are needed")
    return labels


def _features(year: Path, part: str, persons: dict[Person, int]) -> NDArray[np.float32]:
    path, of = year / FEATURES / f"{part}.npy", year / _LISTS / f"{part}.txt"
    if not path.is_file():
        raise MissingDataError(f"{path}: no such file; save an array there with numpy.save, one row per line of {of}")
    try:
        found = np.array(np.load(path, mmap_mode="r", allow_pickle=False))  # mapped: reads no more than the file has
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path}: {error}; save it again with numpy.save") from None
    if found.dtype.kind != "f" or found.ndim != 2 or found.shape[1] == 0:
        raise ValueError(f"{path}: an array of {found.dtype} and shape {found.shape}; save floats, persons × features")
    if len(found) != len(persons):
        raise ValueError(f"{path} has {len(found)} rows, but {of} has {len(persons)} persons; save one row per person")
    found = found if found.itemsize > 2 else found.astype(np.float32)
    bad = np.argwhere(~(np.abs(found) <= _LARGEST))
    if bad.size:
        row, column = bad[0]
        number = list(persons.values())[row]
        raise ValueError(
            f"{path}, row {row}, column {column} ({of}, line {number}): {found[row, column]} is not a number up to "
            f"{_LARGEST:g}; correct it"
        )
    return np.ascontiguousarray(found, np.float32)


def _shown(person: Person) -> str:
    return f"{person[0]}, person {person[1]},"
