"""What tests of the laboratory share."""

from __future__ import annotations

from pathlib import Path

import pytest
from dying import killed_by


@pytest.fixture
def dying() -> str:
    """Code after which a program is killed at the n-th piece or document that is written, n its first argument."""
    return killed_by("rankwise_lab", "pieces", "write_bytes")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that a test is run in, on a machine without data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKWISE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("RANKWISE_DATA", str(tmp_path / "data"))
    return tmp_path
