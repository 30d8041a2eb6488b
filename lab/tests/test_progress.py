"""How far something has come, on a terminal and elsewhere."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator

import pytest
from rankwise_lab.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    @property
    def shown(self) -> str:
        """What stands on the line now."""
        return self.getvalue().rstrip("\r").rpartition("\r")[2].strip()


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    with Terminal() as stream:
        yield stream


def test_elsewhere_than_on_a_terminal_it_is_one_line_a_section() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    progress.section("4. Something", 2)
    progress.step("first")
    progress.clear()
    progress.step("second")
    progress.close()
    progress.follow("5. More", ["a", "b"], 2)
    assert stream.getvalue() == "4. Something\n5. More\n"


def test_on_a_terminal_a_bar_is_drawn_taken_away_and_brought_back(terminal: Terminal) -> None:
    before, progress = threading.active_count(), Progress(terminal)
    progress.section("4. Something", 4, done=1)
    assert terminal.shown == ""
    progress.step("second")
    assert "1/4" in terminal.shown
    assert terminal.shown.endswith("second")
    progress.clear()
    assert terminal.shown == ""
    progress.at(3, "nearly")
    assert "3/4" in terminal.shown
    assert (progress.done, progress.total) == (3, 4)
    for _ in range(2):
        progress.close()
        assert terminal.shown == ""
    assert threading.active_count() == before, "a bar has no thread"


def test_steps_are_counted_when_they_are_done_until_one_fails(terminal: Terminal) -> None:
    progress = Progress(terminal)
    seen = []

    def labels() -> Iterator[str]:
        for label in ("one", "two"):
            seen.append(terminal.shown)
            yield label
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        progress.follow("Both", labels(), 2)
    assert seen[0] == ""
    assert "1/2" in seen[1]
    assert seen[1].endswith("one")
    assert terminal.shown == ""
