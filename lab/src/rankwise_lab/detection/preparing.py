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

from rankwise_lab.detection.proposals import SEARCHES, find_segmentation, windows_of
from rankwise_lab.detection.store import FORMAT, VERSION, FeatureStore
from rankwise_lab.detection.voc import Annotated, Devkit, VocError, read_voc
from rankwise_lab.detection.writing import StoreWriter

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
    """
    Find windows in every image of a VOC folder, and write their features to a folder.

    A run that ends early is continued by the same call, which skips finished images. The files do not depend on that,
    or on `workers`.

    Parameters
    ----------
    devkit_path : str or Path
        Folder in the layout of PASCAL VOC: a VOCdevkit, or one of its years.
    folder : str or Path
        Features folder to write.
    year : str, optional
        Year to read, such as "VOC2007". Needed if there are several.
    sets : sequence of str, optional
        Names of image sets to read, such as "train". Default: all.
    proposals : {"fast", "quality", "sliding"}, default "fast"
        How windows are found: one of the two modes of selective search, or sliding windows.
    max_windows : int, default 500
        Most windows per image.
    min_side : int, default 12
        Smallest side of a window in pixels.
    model : torch.nn.Module or str, default "efficientnet-lite0"
        Network that describes a window; see `CropFeatures`.
    crop : int, default 64
        Side in pixels to which a window is resized for the network.
    context : float, default 0.0
        Margin around a window, as a fraction of its size.
    workers : int, default 1
        Images processed at a time, one thread each. A network of your own is then called from several threads at once.
        `torch.set_num_threads` holds for each of them; 1 is best.
    progress : callable, optional
        Called as progress(done, total), first with the images that were finished before, then after each image.

    Returns
    -------
    FeatureStore
        Features folder, opened.

    Raises
    ------
    ValueError
        If a setting is out of range, or the folder does not have the layout of VOC.

    See Also
    --------
    FeatureStore : Reads a features folder.
    train : Trains a detector on the features.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import torch
    >>> from rankwise_lab.detection import prepare
    >>> from rankwise_lab.detection.shapes import write_shapes
    >>> network = torch.nn.AdaptiveAvgPool2d(1)  # the mean colour of a window
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kit = write_shapes(Path(folder, "kit"), {"train": 2}, 0)
    ...     store = prepare(kit, Path(folder, "features"), proposals="sliding", max_windows=20, model=network)
    ...     print(store.features.shape)
    (40, 3)
    """
    if proposals not in SEARCHES:
        raise ValueError(f"proposals must be one of {', '.join(SEARCHES)}, got {proposals!r}")
    for name, value in (("workers", workers), ("max_windows", max_windows), ("min_side", min_side)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    if proposals != "sliding":
        find_segmentation()
    from rankwise_lab.detection.cnn import CropFeatures

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

    writer = StoreWriter(folder, _manifest(devkit, settings))
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
