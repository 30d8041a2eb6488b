"""Object detection learnt from labels of whole images: windows, features, PASCAL VOC files and rules, pictures.

Importing this package imports neither torch nor OpenCV nor Pillow. They are imported when they are first needed.
"""

from rankwise_lab.detection.boxes import iou, nms
from rankwise_lab.detection.detector import Recipe, choose_C, detect, evaluate, train
from rankwise_lab.detection.detector_file import Detector, read_detector, write_detector
from rankwise_lab.detection.evaluation import Detections, VocAP, average_precision
from rankwise_lab.detection.preparing import prepare

__all__ = [
    "Detections",
    "Detector",
    "Recipe",
    "VocAP",
    "average_precision",
    "choose_C",
    "detect",
    "evaluate",
    "iou",
    "nms",
    "prepare",
    "read_detector",
    "train",
    "write_detector",
]
