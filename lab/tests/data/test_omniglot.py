"""Omniglot's small sets, read from small archives of the same layout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from archives import encoded, write_archive

pytest.importorskip("PIL.Image")

from rankwise_lab.data import omniglot
from rankwise_lab.data.omniglot import load_omniglot


def drawing(ink: int, size: int = 105) -> bytes:
    """Black on white: the first rows are ink."""
    pixels = np.ones((size, size), np.bool_)
    pixels[:ink] = False
    return encoded(pixels)


def members() -> dict[str, bytes]:
    first, second = "images_background_small1", "images_background_small2"
    return {
        f"{first}/Greek/character02/0002_01.png": drawing(30),
        f"{first}/Greek/character01/0001_02.png": drawing(15),
        f"{first}/Greek/character01/0001_01.png": drawing(0),
        f"{second}/Greek/character01/0001_01.png": drawing(0),
        f"{second}/Japanese_(katakana)/character01/0500_01.png": drawing(105),
        "LICENSE-omniglot/LICENSE": b"",
    }


def test_drawings_are_inverted_shrunk_sorted_by_alphabet_and_character_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_archive(tmp_path / "o.tar.xz", members())
    found = load_omniglot(path, tmp_path / "cache")
    assert list(found) == ["Greek", "Japanese_(katakana)"]
    greek, katakana = found.values()
    assert greek.images.shape == (3, 28, 28)
    assert greek.images.dtype == np.uint8
    assert greek.characters.tolist() == [1, 1, 2]
    expected = [0, 255 * 15 / 105, 255 * 30 / 105]
    np.testing.assert_allclose(greek.images.mean(axis=(1, 2)), expected, atol=1)
    assert (katakana.images == 255).all()
    assert (greek.images[2, :7] == 255).all()
    assert (greek.images[2, 9:] == 0).all()
    monkeypatch.setattr(omniglot, "_read", lambda archive: pytest.fail("it was read again"))
    again = load_omniglot(path, tmp_path / "cache")
    for name in found:
        np.testing.assert_array_equal(found[name].images, again[name].images)
        np.testing.assert_array_equal(found[name].characters, again[name].characters)


GREEK = "images_background_small1/Greek/character01/0001_01.png"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({GREEK: drawing(0, 28)}, r"0001_01\.png has 28 × 28 pixels instead of 105 × 105"),
        ({GREEK: b"GIF89a"}, r"0001_01\.png is not a JPEG or PNG picture"),
        ({GREEK: bytes(20_000)}, r"0001_01\.png has 20000 bytes, too many for a drawing of 105 × 105 pixels"),
        ({"images_background_small1/../0001_01.png": drawing(0)}, "has no drawing images_background_small1/"),
        (members(), "over 3 drawings"),
    ],
    ids=["size", "no picture", "huge", "nothing", "many"],
)
def test_a_bad_archive_is_refused_and_not_kept(
    content: dict[str, bytes], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(omniglot, "_MOST", 3)
    with pytest.raises(ValueError, match=message):
        load_omniglot(write_archive(tmp_path / "bad.tar.xz", content), tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
