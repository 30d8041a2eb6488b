"""From a VOC folder to a features folder: windows and features of every image, resumable at any moment."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise.detection.proposals import SEARCHES, find_segmentation, windows_of
from rankwise.detection.store import FORMAT, VERSION, FeatureStore
from rankwise.detection.voc import Annotated, Devkit, VocError, read_voc
from rankwise.detection.writing import StoreWriter

if TYPE_CHECKING:
    from PIL import Image
    from torch import nn

# Images that may be finished before their turn to be written, beyond those in work.
_AHEAD = 2

_Windows = tuple[NDArray[np.float64], NDArray[np.float32]]


def prepare(
    devkit_path: str | Path,
    folder: str | Path,
    *,
    year: str | None = None,
    sets: Sequence[str] | None = None,
    proposals: str = "fast",
    max_windows: int = 500,
    min_side: int = 12,
    model: nn.Module | str = "efficientnet-lite0",
    crop: int = 64,
    context: float = 0.0,
    workers: int = 1,
    progress: Callable[[int, int], object] | None = None,
) -> FeatureStore:
    """Find windows in every image of a VOC folder and write their features to a folder; see FeatureStore.

    proposals: "fast" or "quality" (selective search), or "sliding"; at most max_windows an image, of at least
    min_side pixels a side. model, crop, context: see CropFeatures. workers: images in work at a time, a thread each;
    what torch.set_num_threads says is for each of them, and 1 is best. A module of your own is then called from
    several threads at once.

    progress(done, total) is called with the images finished before, then after each image. A run that ends early is
    taken up by the same call, which skips finished images; the files do not depend on that, nor on workers.
    """
    if proposals not in SEARCHES:
        raise ValueError(f"proposals must be one of {', '.join(SEARCHES)}, got {proposals!r}")
    for name, value in (("workers", workers), ("max_windows", max_windows), ("min_side", min_side)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    if proposals != "sliding":
        find_segmentation()
    from rankwise.detection.cnn import CropFeatures

    devkit = read_voc(devkit_path, year, sets)
    network = CropFeatures(model, crop=crop, context=context)
    settings = {
        "proposals": proposals,
        "max_windows": max_windows,
        "min_side": min_side,
        "model": network.name,
        "weights": network.digest,
        "crop": crop,
        "context": context,
        "dim": network.dim,
    }

    def describe(image: Annotated) -> _Windows:
        pixels = _pixels(image.path)
        boxes = windows_of(pixels, proposals, max_windows, min_side)
        try:
            return boxes, network(pixels, boxes)
        except ValueError as error:
            raise ValueError(f"{image.path}: {error}") from error

    with StoreWriter(folder, _manifest(devkit, settings)) as writer:
        left = devkit.images[writer.done :]
        if progress is not None:
            progress(writer.done, len(devkit.images))
        with _one_thread_each():
            for boxes, features in _in_order(describe, left, workers):
                writer.append(boxes, features)
                if progress is not None:
                    progress(writer.done, len(devkit.images))
        writer.finish()
    return FeatureStore.open(folder)


def _in_order(
    describe: Callable[[Annotated], _Windows], images: Sequence[Annotated], workers: int
) -> Iterator[_Windows]:
    """The windows of each image, in order, a few computed ahead."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="windows")
    ahead: deque[Future[_Windows]] = deque()
    try:
        for image in images:
            ahead.append(pool.submit(describe, image))
            if len(ahead) >= workers + _AHEAD:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """OpenCV without threads of its own, where it is installed: the workers are the threads."""
    try:
        import cv2
    except ModuleNotFoundError:
        yield
        return
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(before)


def _manifest(devkit: Devkit, settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "devkit": devkit.name,
        "settings": settings,
        "classes": list(devkit.classes),
        "sets": {name: list(ids) for name, ids in devkit.sets.items()},
        "images": [_described(image) for image in devkit.images],
    }


def _described(image: Annotated) -> dict[str, Any]:
    """An image of the manifest: its size is that of the file, whatever the XML says."""
    with _opened(image.path) as picture:
        width, height = picture.size
    for thing in image.objects:
        if thing.box[2] > width or thing.box[3] > height:
            raise VocError(
                f"{image.path} has {width} × {height} pixels, and a box of its XML ({thing.name}) is not inside; "
                "correct one of them"
            )
    objects = [{"name": o.name, "box": list(o.box), "difficult": o.difficult} for o in image.objects]
    return {"id": image.image_id, "width": width, "height": height, "objects": objects}


def _pixels(path: Path) -> NDArray[np.uint8]:
    """Red, green and blue, (height, width, 3); as they are in the file, as boxes are counted there."""
    with _opened(path) as picture:
        return np.array(picture.convert("RGB"))


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path, formats=("JPEG", "PNG")) as picture:
            yield picture
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        said = "not a picture" if isinstance(error, UnidentifiedImageError) else " ".join(str(error).split())
        raise VocError(f"{path} cannot be read ({said}); replace it by a whole JPEG or PNG file") from error
