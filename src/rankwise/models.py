"""Load model files of every kind."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from rankwise.extras import LABORATORY
from rankwise.io.models import ModelFile, ModelFileError, read_model
from rankwise.io.quoting import shown

# The class that reads each kind of model.
_KINDS = {
    "linear-ranker": ("rankwise.linear.linear_ranker", "LinearRanker"),
    "rank-svm": ("rankwise.linear.rank_svm", "RankSVM"),
    "rank-svm-cv": ("rankwise.linear.rank_svm_cv", "RankSVMCV"),
    "latent-rank-svm": ("rankwise.latent.latent_svm", "LatentRankSVM"),
    "latent-rank-svm-cv": ("rankwise.latent.latent_svm", "LatentRankSVMCV"),
}
# Other packages add kinds by entry points of this group, named after them: a class with `from_file`.
_OTHERS = "rankwise.models"
# Files of the same format that are not models, and what reads them.
_CHECKPOINTS = {"lwsvm-checkpoint": "LWSVM(checkpoint=)", "latent-checkpoint": "LatentRankSVM(checkpoint=)"}


def load(path: str | Path) -> Any:
    """Load a model from a file that its `save` method wrote. Nothing in it is executed: files from others are safe.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    estimator
        The model: a `LinearRanker`, `RankSVM`, `LatentRankSVM`, …, or that of another package.

    Raises
    ------
    ModelFileError
        If the file is missing, damaged, written by a newer version, or not a model.

    See Also
    --------
    RankSVM.save : Write a model to a file.
    io.read_model : Read the contents of a model file.

    Examples
    --------
    >>> import tempfile
    >>> import rankwise as rw
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rw.RankSVM().fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]).save(f"{folder}/model.rw")
    ...     rw.load(f"{folder}/model.rw")
    RankSVM()
    """
    return from_file(read_model(path), path)


def from_file(file: ModelFile, path: str | Path) -> Any:
    """Return the model in a file that was read; path: the name of the file in errors."""
    if file.kind in _CHECKPOINTS:
        raise ModelFileError(f"{path} is a checkpoint, not a model; pass its folder to {_CHECKPOINTS[file.kind]}")
    if file.kind in _KINDS:
        module, name = _KINDS[file.kind]
        return getattr(import_module(module), name).from_file(file, path)
    for point in entry_points(group=_OTHERS):
        if point.name == file.kind:
            return point.load().from_file(file, path)
    if file.kind == "plcnn":
        raise ModelFileError(f"{path} holds a network of rankwise-lab; to read it, {LABORATORY}")
    raise ModelFileError(f"{path} holds a model of unknown kind {shown(file.kind)}; upgrade rankwise to read it")
