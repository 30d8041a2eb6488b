"""Detectors in model files: the ranker, and a note of its class and of the features it is for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rankwise.detection.store import FeatureStore
from rankwise.io.models import read_model
from rankwise.linear.model_file import write_linear
from rankwise.models import from_file

# Settings that say what a row of features is; others, such as the number of windows, may differ.
_ROW = ("dim", "model", "weights", "crop", "context")


class Detector(NamedTuple):
    """A ranker of windows, the class that it detects, and how the features it was trained on were prepared."""

    model: Any
    name: str
    features: dict[str, Any]
    note: dict[str, Any]

    def check(self, store: FeatureStore) -> None:
        """Refuse features of another kind than those it was trained on."""
        settings = store.settings
        differ = [key for key in _ROW if self.features.get(key) != settings.get(key)]
        if differ:
            key = differ[0]
            raise ValueError(
                f"{store.folder} was prepared with {key} {_shown(settings.get(key))}, and the model was trained with "
                f"{_shown(self.features.get(key))}; prepare the images alike, or train a model on these features"
            )


def write_detector(
    path: str | Path, model: Any, name: str, features: Mapping[str, Any], note: Mapping[str, Any] | None = None
) -> None:
    """Write a detector of class `name`; features: the settings of its store. Whole or not at all."""
    checkpoint, model.checkpoint = model.checkpoint, None  # of this machine, and of no use to others
    try:
        write_linear(path, model._kind, model, {**(note or {}), "class": name, "features": dict(features)})
    finally:
        model.checkpoint = checkpoint


def read_detector(path: str | Path) -> Detector:
    """The detector in a file that `write_detector` wrote."""
    file = read_model(path)
    note = file.header.get("note")
    note = note if isinstance(note, dict) else {}
    name, features = note.get("class"), note.get("features")
    if not isinstance(name, str) or not isinstance(features, dict) or not file.kind.startswith("latent-rank-svm"):
        raise ValueError(f"{path} is no detector; make one by `rankwise detect train`")
    model = from_file(file, path)
    return Detector(model, name, features, note)


def _shown(value: Any) -> str:
    text = "nothing of the kind" if value is None else str(value)
    return text if len(text) <= 24 else f"{text[:12]}…"
