"""What the experiments' parts of the report are seen in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rankwise_lab.reproduce.report import Part, write_index, write_part


@pytest.fixture
def page_of(tmp_path: Path, read_page: Any) -> Callable[[Part], Any]:
    """Writes a part into the test's folder, and reads the page that has it."""

    def write(part: Part) -> Any:
        pytest.importorskip("matplotlib")
        write_part(tmp_path, part)
        page = read_page(write_index(tmp_path).read_text(encoding="utf-8"))
        assert not page.open
        return page

    return write
