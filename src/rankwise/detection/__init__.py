"""Detection learnt from labels of whole images: windows, their features, PASCAL VOC files and rules, pictures.

Importing this imports neither torch nor OpenCV nor Pillow: they are imported by what needs them, when it is used.
"""

from typing import TYPE_CHECKING, Any

from rankwise.detection.boxes import area, iou, nms
from rankwise.detection.evaluation import Detections, VocAP, average_precision
from rankwise.detection.pictures import contact_sheet, draw, encode
from rankwise.detection.voc import Annotated, Devkit, Object, VocError, read_voc

if TYPE_CHECKING:
    from rankwise.detection.cnn import CropFeatures
    from rankwise.detection.detector import (
        Recipe,
        choose_C,
        detect,
        evaluate,
        image_ap,
        labelled,
        localised,
        train,
    )
    from rankwise.detection.detector_file import Detector, read_detector, write_detector
    from rankwise.detection.preparing import prepare
    from rankwise.detection.proposals import selective_search, sliding_windows
    from rankwise.detection.store import FeatureStore

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

_LAZY = {
    "CropFeatures": "rankwise.detection.cnn",
    "Detector": "rankwise.detection.detector_file",
    "FeatureStore": "rankwise.detection.store",
    "Recipe": "rankwise.detection.detector",
    "choose_C": "rankwise.detection.detector",
    "detect": "rankwise.detection.detector",
    "evaluate": "rankwise.detection.detector",
    "image_ap": "rankwise.detection.detector",
    "labelled": "rankwise.detection.detector",
    "localised": "rankwise.detection.detector",
    "prepare": "rankwise.detection.preparing",
    "read_detector": "rankwise.detection.detector_file",
    "selective_search": "rankwise.detection.proposals",
    "sliding_windows": "rankwise.detection.proposals",
    "train": "rankwise.detection.detector",
    "write_detector": "rankwise.detection.detector_file",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'rankwise.detection' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
