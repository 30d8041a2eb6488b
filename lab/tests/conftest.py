"""What tests of the laboratory share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that a test is run in, on a machine without data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKWISE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("RANKWISE_DATA", str(tmp_path / "data"))
    return tmp_path
