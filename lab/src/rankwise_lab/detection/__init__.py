"""Object detection learnt from labels of whole images: windows, features, PASCAL VOC files and rules, pictures.

Importing this package imports neither torch nor OpenCV nor Pillow. They are imported when they are first needed.
"""

from typing import TYPE_CHECKING, Any

from rankwise_lab.detection.boxes import area, iou, nms
from rankwise_lab.detection.evaluation import Detections, VocAP, average_precision
from rankwise_lab.detection.pictures import contact_sheet, draw, encode
from rankwise_lab.detection.voc import Annotated, Devkit, Object, VocError, read_voc

if TYPE_CHECKING:
    from rankwise_lab.detection.cnn import CropFeatures
    from rankwise_lab.detection.detector import (
        Recipe,
        choose_C,
        detect,
        evaluate,
        image_ap,
        labelled,
        localised,
        train,
    )
    from rankwise_lab.detection.detector_file import Detector, read_detector, write_detector
    from rankwise_lab.detection.preparing import prepare
    from rankwise_lab.detection.proposals import selective_search, sliding_windows
    from rankwise_lab.detection.store import FeatureStore

__all__ = [
    "Annotated",
    "CropFeatures",
    "Detections",
    "Detector",
    "Devkit",
    "FeatureStore",
    "Object",
    "Recipe",
    "VocAP",
    "VocError",
    "area",
    "average_precision",
    "choose_C",
    "contact_sheet",
    "detect",
    "draw",
    "encode",
    "evaluate",
    "image_ap",
    "iou",
    "labelled",
    "localised",
    "nms",
    "prepare",
    "read_detector",
    "read_voc",
    "selective_search",
    "sliding_windows",
    "train",
    "write_detector",
]

_MODULES = {
    "cnn": ("CropFeatures",),
    "detector": ("Recipe", "choose_C", "detect", "evaluate", "image_ap", "labelled", "localised", "train"),
    "detector_file": ("Detector", "read_detector", "write_detector"),
    "preparing": ("prepare",),
    "proposals": ("selective_search", "sliding_windows"),
    "store": ("FeatureStore",),
}
_LAZY = {name: f"rankwise_lab.detection.{module}" for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'rankwise_lab.detection' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
