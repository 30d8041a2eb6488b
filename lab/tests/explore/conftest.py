"""The interactive page, on the disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from rankwise_lab.explore.page import write_page


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the page, which no test changes."""
    return write_page(tmp_path_factory.mktemp("site") / "explorer").parent
