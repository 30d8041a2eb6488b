"""Detection learnt from labels of whole images: windows, their features, PASCAL VOC files and rules, pictures.

Importing this imports neither torch nor OpenCV nor Pillow: they are imported by what needs them, when it is used.
"""

from typing import TYPE_CHECKING, Any

from rankwise.detection.boxes import area, iou, nms
from rankwise.detection.evaluation import Detections, VocAP, average_precision
from rankwise.detection.pictures import contact_sheet, draw
from rankwise.detection.voc import Annotated, Devkit, Object, VocError, read_voc

if TYPE_CHECKING:
    from rankwise.detection.cnn import CropFeatures
    from rankwise.detection.proposals import selective_search, sliding_windows
    from rankwise.detection.store import FeatureStore

__all__ = [
    "Annotated",
    "CropFeatures",
    "Detections",
    "Devkit",
    "FeatureStore",
    "Object",
    "VocAP",
    "VocError",
    "area",
    "average_precision",
    "contact_sheet",
    "draw",
    "iou",
    "nms",
    "read_voc",
    "selective_search",
    "sliding_windows",
]

_LAZY = {
    "CropFeatures": "rankwise.detection.cnn",
    "FeatureStore": "rankwise.detection.store",
    "selective_search": "rankwise.detection.proposals",
    "sliding_windows": "rankwise.detection.proposals",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'rankwise.detection' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
