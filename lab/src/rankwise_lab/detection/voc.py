"""PASCAL VOC folders: images, their objects in XML, and sets of images; anything doubtful raises an error.

A devkit holds years (VOC2007, …). A year holds JPEGImages, Annotations (one XML file per image) and ImageSets/Main (one
text file per set, with one image name per line). Files such as aeroplane_train.txt, with −1, 0 or 1 after each name,
label the images of a set for one class. They follow from the XML and are not read as sets.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

_MAIN = Path("ImageSets", "Main")
_FIRST_SETS = ("train", "val", "trainval", "test")
_IMAGES = (".jpg", ".jpeg", ".png")
_LARGEST = 1e8
_SIDES = ("xmin", "ymin", "xmax", "ymax")
_LABELS = {"-1", "0", "1", "+1"}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
# Characters that would leave the folder, or cannot be printed.
_BAD_ID = re.compile(r"[/\\:\x00-\x1f\x7f]")


class VocError(ValueError):
    """Error in a VOC folder: which file, what is wrong with it, and what to do."""


@dataclass(frozen=True)
class Object:
    """An object of a class in a box x1, y1, x2, y2; difficult ones do not count in evaluation."""

    name: str
    box: tuple[float, float, float, float]
    difficult: bool


@dataclass(frozen=True)
class Annotated:
    """An image with its objects. width, height: by the XML, 0 if it does not say."""

    image_id: str
    path: Path
    width: int
    height: int
    objects: tuple[Object, ...]


@dataclass(frozen=True)
class Devkit:
    """One year of a devkit. images: each once, in the order of the sets. sets: ids by name. classes: sorted."""

    name: str
    images: tuple[Annotated, ...]
    sets: Mapping[str, tuple[str, ...]]
    classes: tuple[str, ...]


def read_voc(devkit: str | Path, year: str | None = None, sets: Sequence[str] | None = None) -> Devkit:
    """Read a VOCdevkit folder, or one of its years.

    year: such as "VOC2007" or "2007", needed if there are several. sets: names of files in ImageSets/Main without .txt;
    None reads all: train, val, trainval and test, then others by name.

    >>> import tempfile
    >>> from rankwise_lab.detection.shapes import write_shapes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     devkit = read_voc(write_shapes(folder, {"train": 4, "test": 2}))
    >>> devkit.name, devkit.classes, devkit.sets["test"]
    ('VOC2007', ('disc', 'square'), ('000004', '000005'))
    """
    root = _find_year(Path(devkit), year)
    ids = _read_sets(root / _MAIN, sets)
    files = _Files(root)
    images = tuple(files.read(image_id, place) for image_id, place in _each_once(root / _MAIN, ids))
    classes = sorted({thing.name for image in images for thing in image.objects})
    return Devkit(root.resolve().name, images, ids, tuple(classes))


def _find_year(devkit: Path, year: str | None) -> Path:
    if not devkit.is_dir():
        raise VocError(f"{devkit}: no such folder; pass a VOCdevkit folder, or its VOC2007")
    wanted = None if year is None else year if year.startswith("VOC") else f"VOC{year}"
    if (devkit / _MAIN).is_dir():
        if wanted not in (None, devkit.resolve().name):
            raise VocError(f"{devkit} is one year, but not {wanted}; leave out the year, or pass the folder above it")
        return devkit
    years = sorted(folder.name for folder in devkit.iterdir() if (folder / _MAIN).is_dir())
    if not years:
        raise VocError(f"neither {devkit} nor a folder in it has {_MAIN}; pass a VOCdevkit folder, or its VOC2007")
    if wanted is None and len(years) > 1:
        raise VocError(f"{devkit} has several years; choose one of {', '.join(years)}")
    if wanted is not None and wanted not in years:
        raise VocError(f"{devkit} has no year {wanted}; choose one of {', '.join(years)}")
    return devkit / (wanted or years[0])


def _read_sets(folder: Path, names: Sequence[str] | None) -> dict[str, tuple[str, ...]]:
    """The ids in each set of that folder, for the given sets or all."""
    present = {path.stem: path for path in sorted(folder.glob("*.txt")) if not path.name.startswith(".")}
    if names is None:
        first = [name for name in _FIRST_SETS if name in present]
        read = {name: _read_set(present[name]) for name in [*first, *(name for name in present if name not in first)]}
        sets = {name: ids for name, ids in read.items() if ids is not None}
        if not sets:
            raise VocError(f"{folder} has no set; write a file such as train.txt there, with one image name per line")
        return sets
    if isinstance(names, str):
        raise TypeError(f"sets must be a sequence of names, got {names!r}; pass [{names!r}]")
    if not names:
        raise VocError("sets is empty; pass at least one name, or None for all")
    sets = {}
    for name in names:
        if name not in present:
            raise VocError(f"{folder} has no {name}.txt; choose from {', '.join(present) or 'nothing (it is empty)'}")
        ids = _read_set(present[name])
        if ids is None:
            raise VocError(f"{present[name]} labels images for one class and is not a set; pass the set that it labels")
        sets[name] = ids
    return sets


def _read_set(path: Path) -> tuple[str, ...] | None:
    """The ids in a file of ImageSets/Main; None if it labels the images of a set for one class."""
    try:
        lines = _bytes_of(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise VocError(f"{path} is not UTF-8 text; write one image name per line") from None
    rows = {number: line.split() for number, line in enumerate(lines, 1) if line.strip()}
    if not rows:
        raise VocError(f"{path} is empty; write one image name per line, or remove the file")
    if all(len(row) == 2 and row[1] in _LABELS for row in rows.values()):
        return None
    line_of: dict[str, int] = {}
    for number, row in rows.items():
        image_id, where = row[0], f"{path}, line {number}"
        if len(row) > 1:
            raise VocError(
                f"{where}: {' '.join(row)[:60]!r} is more than the name of an image; write one name per line"
            )
        if _BAD_ID.search(image_id) or image_id.startswith("."):
            raise VocError(f"{where}: {image_id[:60]!r} is outside JPEGImages; write the name of an image in it")
        if image_id in line_of:
            raise VocError(f"{where}: {image_id!r} is also on line {line_of[image_id]}; write each image once")
        line_of[image_id] = number
    return tuple(line_of)


def _each_once(folder: Path, sets: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Path]]:
    """Every image of the sets once, with the file that named it first."""
    seen: set[str] = set()
    for name, ids in sets.items():
        for image_id in ids:
            if image_id not in seen:
                seen.add(image_id)
                yield image_id, folder / f"{name}.txt"


class _Files:
    """The images of a year and their annotations."""

    def __init__(self, root: Path) -> None:
        self._annotations, folder = root / "Annotations", root / "JPEGImages"
        for needed in (self._annotations, folder):
            if not needed.is_dir():
                raise VocError(f"{needed}: no such folder; unpack the devkit again, with its images and annotations")
        self._images: dict[str, list[Path]] = {}
        for path in sorted(folder.iterdir()):
            if path.suffix.lower() in _IMAGES:
                self._images.setdefault(path.stem, []).append(path)
        self._folder = folder

    def read(self, image_id: str, named_by: Path) -> Annotated:
        """The image with that id and its annotation; named_by: the set that names it."""
        found = self._images.get(image_id, [])
        if not found:
            raise VocError(
                f"{self._folder / image_id}.jpg: no such image, but {named_by} names it; add it, or remove it there"
            )
        if len(found) > 1:
            raise VocError(f"{found[0]} and {found[1].name} have the same name; remove one of them")
        xml = self._annotations / f"{image_id}.xml"
        if not xml.exists():
            raise VocError(f"{xml}: no such file, but {named_by} names its image; add it, or read other sets")
        width, height, objects = _read_xml(xml)
        return Annotated(image_id, found[0], width, height, objects)


class _NoDoctype(ElementTree.TreeBuilder):
    """Builds a tree, and raises for a document type, which can declare entities that expand or read files."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise _DoctypeError


class _DoctypeError(Exception):
    pass


def _read_xml(path: Path) -> tuple[int, int, tuple[Object, ...]]:
    """Width, height and objects of an annotation."""
    try:
        root = ElementTree.fromstring(_bytes_of(path), ElementTree.XMLParser(target=_NoDoctype()))
    except _DoctypeError:
        raise VocError(
            f"{path} has a <!DOCTYPE>, which no annotation needs and which can be harmful; remove it"
        ) from None
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise VocError(f"{path} is not XML ({error}); write or unpack it again") from None
    if root.tag != "annotation":
        raise VocError(f"{path} begins with <{root.tag[:60]}> instead of <annotation>; write it as in VOC")
    sides = []
    for side in ("width", "height"):
        text = root.findtext(f"size/{side}", "").strip()
        value = _number(path, f"the {side}", text) if text else 0.0
        if value < 0.0 or value != int(value):
            raise VocError(f"{path}: the {side} is {text}; write whole pixels, or 0 if it is unknown")
        sides.append(int(value))
    things = (_read_object(path, number, thing, *sides) for number, thing in enumerate(root.findall("object"), 1))
    return sides[0], sides[1], tuple(things)


def _read_object(path: Path, number: int, thing: ElementTree.Element, width: int, height: int) -> Object:
    name = thing.findtext("name", "").strip()
    if not name or not name.isprintable():
        raise VocError(f"{path}, object {number} has {'no' if not name else 'an unprintable'} <name>; write its class")
    where = f"object {number} ({name[:60]})"
    box = thing.find("bndbox")
    if box is None:
        raise VocError(f"{path}, {where} has no <bndbox>; add one, or remove the object")
    x1, y1, x2, y2 = (_number(path, f"<{side}> of {where}", box.findtext(side, "").strip()) for side in _SIDES)
    shown = f"{path}, {where}: the box {x1:g}, {y1:g}, {x2:g}, {y2:g}"
    if x2 < x1 or y2 < y1:
        raise VocError(f"{shown} is inverted; write xmin ≤ xmax and ymin ≤ ymax")
    # Tools that count from 0 write a 0 for the first pixel.
    if x1 < 0.0 or y1 < 0.0 or (width and x2 > width) or (height and y2 > height):
        size = f"{width} × {height}" if width and height else "image"
        raise VocError(f"{shown} is not inside the {size}; correct the box, or the <size>")
    difficult = thing.findtext("difficult", "").strip() or "0"
    if difficult not in ("0", "1"):
        raise VocError(f"{path}, {where}: <difficult> is {difficult[:60]!r}; write 0 or 1, or leave it out")
    return Object(name, (x1, y1, x2, y2), difficult == "1")


def _number(path: Path, what: str, text: str) -> float:
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not abs(value) <= _LARGEST:
        raise VocError(f"{path}: {what} is {text[:60]!r}, not a number of pixels; correct it")
    return value


def _bytes_of(path: Path) -> bytes:
    if not path.is_file():
        raise VocError(f"{path} is not a file; remove it, or put a file in its place")
    try:
        return path.read_bytes()
    except OSError as error:
        raise VocError(f"{path} cannot be read ({error.strerror}); check its permissions") from None
