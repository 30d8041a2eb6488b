"""Model files of every kind, by one call."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from rankwise.io.models import ModelFile, ModelFileError, read_model
from rankwise.io.quoting import shown

# Which class reads a kind of model.
_KINDS = {
    "linear-ranker": ("rankwise.linear.linear_ranker", "LinearRanker"),
    "rank-svm": ("rankwise.linear.rank_svm", "RankSVM"),
    "rank-svm-cv": ("rankwise.linear.rank_svm_cv", "RankSVMCV"),
    "latent-rank-svm": ("rankwise.latent.latent_svm", "LatentRankSVM"),
    "plcnn": ("rankwise.torch.layerwise.network", "PLCNN"),
    "latent-rank-svm-cv": ("rankwise.latent.latent_svm_cv", "LatentRankSVMCV"),
}
# Files that are written alike and are no models: who reads them.
_CHECKPOINTS = {"lwsvm-checkpoint": "LWSVM(checkpoint=)", "latent-checkpoint": "LatentRankSVM(checkpoint=)"}


def load(path: str | Path) -> Any:
    """The model in a file that `save` wrote. Nothing in the file is executed; a damaged one is refused."""
    return from_file(read_model(path), path)


def from_file(file: ModelFile, path: str | Path) -> Any:
    """The model in a file that was read; path: what errors call it."""
    if file.kind in _CHECKPOINTS:
        raise ModelFileError(f"{path} is a checkpoint, not a model; pass its folder to {_CHECKPOINTS[file.kind]}")
    if file.kind not in _KINDS:
        raise ModelFileError(f"{path}: holds a model of unknown kind {shown(file.kind)}; upgrade rankwise to read it")
    module, name = _KINDS[file.kind]
    return getattr(import_module(module), name).from_file(file, path)
