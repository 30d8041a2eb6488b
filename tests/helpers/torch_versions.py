"""What the versions of PyTorch that we support cannot do."""

from __future__ import annotations

NO_COMPILER = "torch.compile of PyTorch 2.8 and earlier cannot make one graph of this"


def compiles_losses() -> bool:
    """Whether this PyTorch is newer than the newest that is known to fail."""
    import torch

    major, minor = torch.__version__.split(".")[:2]
    return (int(major), int(minor)) > (2, 8)
