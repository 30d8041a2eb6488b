"""Omniglot's two small background sets, from their archive: drawings of characters by alphabet."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise_lab.data.archives import Bound, digest_of_file, members, picture
from rankwise_lab.data.folder import cached

ARCHIVE = "omniglot-small.tar.xz"
# Pixels per side, as drawn and as stored.
_DRAWN, SIZE = 105, 28
_PATH = re.compile(r"(?:\./)?images_background_small[12]/([\w()-]{1,64})/(character\d{2})/(\d{4}_\d{2})\.png", re.ASCII)
_BOUND = Bound(1 << 14, f"drawing of {_DRAWN} × {_DRAWN} pixels")
# The sets have 5,480 drawings; Greek and Latin are in both.
_MOST = 1 << 14
# Increased whenever the arrays of the same files change.
_VERSION = 1


class Drawings(NamedTuple):
    """Images (n, 28, 28), 0 where the paper is and up to 255 where the ink is, and the character of each, (n,)."""

    images: NDArray[np.uint8]
    characters: NDArray[np.int64]


Omniglot = dict[str, Drawings]


def load_omniglot(archive: Path, cache_dir: Path | None = None) -> Omniglot:
    """Drawings by alphabet, from images_background_small1/<alphabet>/characterNN/NNNN_NN.png and …small2.

    An alphabet that is in both sets counts once. Arrays are kept in cache_dir (else RANKWISE_CACHE_DIR, else the user's
    cache folder), by the archive's content; the first reading needs Pillow.
    """
    kept = cached(f"omniglot-{digest_of_file(archive)}-v{_VERSION}.npz", lambda: _read(archive), cache_dir)
    images, alphabets, characters = (kept[name] for name in ("images", "alphabets", "characters"))
    return {
        str(name): Drawings(images[alphabets == name], characters[alphabets == name]) for name in np.unique(alphabets)
    }


def _read(archive: Path) -> dict[str, NDArray[Any]]:
    """Images, and the alphabet and the character of each, sorted by these; characters are numbered in an alphabet."""
    found: dict[tuple[str, str, str], tuple[str, bytes]] = {}
    for path, content in members(archive, lambda path: _BOUND if _PATH.fullmatch(path) else None):
        match = _PATH.fullmatch(path)
        assert match is not None
        alphabet, character, drawing = match.groups()
        found[alphabet, character, drawing] = path, content
        if len(found) > _MOST:
            raise ValueError(f"{archive}: over {_MOST:,} drawings, too many for Omniglot's small sets")
    if not found:
        raise ValueError(f"{archive} has no drawing images_background_small1/<alphabet>/characterNN/NNNN_NN.png")
    keys = sorted(found)
    images = np.stack([_shrunk(found[key][1], f"{archive}: {found[key][0]}") for key in keys])
    characters = np.array([int(character.removeprefix("character")) for _, character, _ in keys], np.int64)
    alphabets = np.array([alphabet for alphabet, _, _ in keys])
    return {"images": images, "alphabets": alphabets, "characters": characters}


def _shrunk(encoded: bytes, where: str) -> NDArray[np.uint8]:
    """Invert a drawing and reduce it to 28 × 28 pixels, each the mean of those it covers."""
    from PIL import Image

    pixels, _ = picture(encoded, _DRAWN, "L", where)
    return np.asarray(Image.fromarray(255 - pixels).resize((SIZE, SIZE), Image.Resampling.BOX))
