"""Detectors in model files: the ranker, with a note of its class and its features."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rankwise import load
from rankwise.io import read_model
from rankwise_lab.detection.store import FeatureStore

# Settings that determine a row of features; others, such as the number of windows, may differ.
_ROW = ("dim", "model", "weights", "crop", "context")


class Detector(NamedTuple):
    """
    Ranker of windows for one class, with the settings of its features.

    Parameters
    ----------
    model : LatentRankSVM
        Ranker of windows.
    name : str
        Class that it detects.
    features : dict
        Settings of the store that it was trained on.
    note : dict
        Everything that the file says about the detector.

    See Also
    --------
    read_detector : Reads a detector from a file.
    detect : Applies a ranker to the windows of images.

    Examples
    --------
    >>> from rankwise_lab.detection import Detector, train
    >>> from rankwise_lab.detection.shapes import shapes_store
    >>> store = shapes_store()
    >>> detector = Detector(train(store, "disc", C=10.0), "disc", store.settings, {})
    >>> detector.check(store)  # raises if the features differ
    """

    model: Any
    name: str
    features: dict[str, Any]
    note: dict[str, Any]

    def check(self, store: FeatureStore) -> None:
        """Raise unless a store has features of the kind that the detector was trained on.

        Parameters
        ----------
        store : FeatureStore
            Images with the features of their windows.
        """
        settings = store.settings
        differ = [key for key in _ROW if self.features.get(key) != settings.get(key)]
        if differ:
            key = differ[0]
            raise ValueError(
                f"{store.folder} was prepared with {key} {_shown(settings.get(key))}, but the model was trained with "
                f"{_shown(self.features.get(key))}; prepare the images with the same settings, or train a model on "
                "these features"
            )


def write_detector(
    path: str | Path, model: Any, name: str, features: Mapping[str, Any], note: Mapping[str, Any] | None = None
) -> None:
    """
    Write a detector to a file, atomically.

    Parameters
    ----------
    path : str or Path
        File to write.
    model : LatentRankSVM
        Ranker of windows.
    name : str
        Class that it detects.
    features : mapping
        Settings of the store that it was trained on, `store.settings`.
    note : mapping, optional
        More to keep in the file, as plain data.

    See Also
    --------
    read_detector : Reads the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise_lab.detection import read_detector, train, write_detector
    >>> from rankwise_lab.detection.shapes import shapes_store
    >>> store = shapes_store()
    >>> model = train(store, "disc", C=10.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_detector(Path(folder, "disc.rw"), model, "disc", store.settings)
    ...     detector = read_detector(Path(folder, "disc.rw"))
    >>> detector.name, detector.features
    ('disc', {'dim': 3, 'model': 'mean colour'})
    """
    checkpoint, model.checkpoint = model.checkpoint, None  # a folder of this machine, of no use elsewhere
    try:
        model.save(path, {**(note or {}), "class": name, "features": dict(features)})
    finally:
        model.checkpoint = checkpoint


def read_detector(path: str | Path) -> Detector:
    """
    Read a detector that `write_detector` wrote.

    Parameters
    ----------
    path : str or Path
        File to read.

    Returns
    -------
    Detector
        The ranker, its class and the settings of its features.

    Raises
    ------
    ValueError
        If the file is not a detector.

    See Also
    --------
    write_detector : Writes the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise_lab.detection import read_detector, train, write_detector
    >>> from rankwise_lab.detection.shapes import shapes_store
    >>> store = shapes_store()
    >>> model = train(store, "disc", C=10.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_detector(Path(folder, "disc.rw"), model, "disc", store.settings)
    ...     detector = read_detector(Path(folder, "disc.rw"))
    >>> detector.name, detector.features
    ('disc', {'dim': 3, 'model': 'mean colour'})
    """
    file = read_model(path)
    note = file.header.get("note")
    note = note if isinstance(note, dict) else {}
    name, features = note.get("class"), note.get("features")
    if not isinstance(name, str) or not isinstance(features, dict) or not file.kind.startswith("latent-rank-svm"):
        raise ValueError(f"{path} is not a detector; create one with `rankwise detect train`")
    return Detector(load(path), name, features, note)


def _shown(value: Any) -> str:
    text = "no value" if value is None else str(value)
    return text if len(text) <= 24 else f"{text[:12]}…"
