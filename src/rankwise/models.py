"""Model files of every kind, by one call."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from rankwise.io.models import ModelFileError, read_model

__all__ = ["load"]

# Which class reads a kind of model.
_KINDS = {
    "rank-svm": ("rankwise.linear.rank_svm", "RankSVM"),
    "rank-svm-cv": ("rankwise.linear.rank_svm_cv", "RankSVMCV"),
    "latent-rank-svm": ("rankwise.latent.latent_svm", "LatentRankSVM"),
    "plcnn": ("rankwise.torch.layerwise.network", "PLCNN"),
    "latent-rank-svm-cv": ("rankwise.latent.latent_svm_cv", "LatentRankSVMCV"),
}


def load(path: str | Path) -> Any:
    """The model in a file that `save` wrote. Nothing in the file is executed; a damaged one is refused."""
    file = read_model(path)
    if file.kind not in _KINDS:
        raise ModelFileError(f"{path}: holds a model of unknown kind {file.kind!r}; upgrade rankwise to read it")
    module, name = _KINDS[file.kind]
    return getattr(import_module(module), name).from_file(file, path)
