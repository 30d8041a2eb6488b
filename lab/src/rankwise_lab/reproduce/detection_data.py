"""The images of the detection experiment: a given VOC folder, or the one in the data folder."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rankwise_lab.data.folder import MissingDataError, cache_folder, data_folder
from rankwise_lab.detection.store import FeatureStore
from rankwise_lab.detection.voc import Devkit, read_voc
from rankwise_lab.reproduce.cifar_data import spaced

ARCHIVE = "underwater-voc.tar.xz"
SETS = ("train", "val", "test")
_YEAR = "VOC2007"


def find_devkit(given: Path | None = None, data: Path | None = None) -> Path:
    """Return the given VOC folder, else VOCdevkit in the data folder, else the unpacked underwater set."""
    if given is not None:
        return given
    folder = data_folder(data)
    if years_of(folder / "VOCdevkit"):
        return folder / "VOCdevkit"
    archive = folder / ARCHIVE
    if not archive.is_file():
        raise MissingDataError(
            f"no images: {folder} has neither VOCdevkit nor {ARCHIVE}; pass --devkit VOCdevkit, or set RANKWISE_DATA "
            "to the folder that has one of them"
        )
    return _unpacked(archive)


def years_of(devkit: Path) -> list[str]:
    """Return the years in a VOC folder that have lists of images to train, validate and test."""
    lists = [f"ImageSets/Main/{name}.txt" for name in SETS]
    found = devkit.glob("VOC*") if devkit.is_dir() else []
    return sorted(year.name for year in found if all((year / path).is_file() for path in lists))


def default_year(devkit: Path) -> str | None:
    """Return the paper's year if a VOC folder has it, or the only year with all lists; else None."""
    years = years_of(devkit)
    return _YEAR if _YEAR in years else years[0] if len(years) == 1 else None


def _unpacked(archive: Path) -> Path:
    """Return the VOCdevkit of an archive, unpacked once."""

    def unpack(folder: Path) -> None:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")

    digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:12]
    return _made_once(f"{ARCHIVE.partition('.')[0]}-{digest}", unpack) / "VOCdevkit"


def _made_once(name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder of the cache, created if necessary; it is moved into place when it is complete."""
    target = cache_folder() / name
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
        try:
            make(temporary)
            os.rename(temporary, target)
        except OSError:
            if not target.is_dir():  # another run may just have made it
                raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return target


def smaller(devkit: Path, year: str | None, sizes: dict[str, int]) -> Path:
    """Return a copy, in the cache, of this many images of each set, evenly spaced."""
    whole = read_voc(devkit, year, SETS)
    chosen = {name: [whole.sets[name][k] for k in spaced(len(whole.sets[name]), n)] for name, n in sizes.items()}
    name = f"voc-part-{_digest_of({'devkit': str(devkit.resolve()), 'images': chosen})}"
    return _made_once(name, lambda folder: _copy(whole, chosen, folder / "VOC2007"))


def _copy(whole: Devkit, chosen: dict[str, list[str]], root: Path) -> None:
    """Images, annotations and sets of a part."""
    for part in ("JPEGImages", "Annotations", "ImageSets/Main"):
        (root / part).mkdir(parents=True)
    for name, ids in chosen.items():
        (root / "ImageSets" / "Main" / f"{name}.txt").write_text("".join(f"{i}\n" for i in ids), encoding="utf-8")
    wanted = {image_id for ids in chosen.values() for image_id in ids}
    for image in whole.images:
        if image.image_id in wanted:
            annotation = image.path.parents[1] / "Annotations" / f"{image.image_id}.xml"
            shutil.copyfile(image.path, root / "JPEGImages" / image.path.name)
            shutil.copyfile(annotation, root / "Annotations" / annotation.name)


def featured(
    devkit: Path,
    year: str | None,
    folder: Path | None,
    *,
    workers: int = 1,
    progress: Callable[[int, int], object] | None = None,
    **settings: Any,
) -> FeatureStore:
    """Return the features of a VOC folder, computed if necessary, in a given folder or in the cache.

    settings: of `prepare`; the features depend on them.
    """
    from rankwise_lab.detection import prepare

    if folder is None:
        folder = cache_folder() / f"features-{_digest_of({'devkit': str(devkit.resolve()), 'year': year, **settings})}"
        folder.parent.mkdir(parents=True, exist_ok=True)
    return prepare(devkit, folder, year=year, sets=SETS, workers=workers, progress=progress, **settings)


def _digest_of(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]
