"""The store of finished pieces: what it keeps, what it refuses and how it says so, kills, and several processes."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import archives
import pytest
from archives import content
from rankwise_lab import pieces
from rankwise_lab.pieces import Pieces
from rankwise_lab.progress import Progress


@dataclass(frozen=True)
class Inner:
    size: int = 3


@dataclass(frozen=True)
class Plan(pieces.Plan):
    width: int = 2
    ends: tuple[float, float] = (0.5, 1e-9)
    inner: Inner = Inner()

    @classmethod
    def quick(cls) -> Plan:
        return cls(width=1)


class Raised(Plan):
    version = 2


DATA = {"samples": "abc"}


def test_a_plan_is_quick_or_whole_and_its_head_is_plain_data() -> None:
    assert (Plan.sized(True), Plan.sized(False)) == (Plan(width=1), Plan())
    plain = {"version": 1, "plan": {"width": 2, "ends": [0.5, 1e-9], "inner": {"size": 3}}}
    assert json.loads(json.dumps(Plan().head())) == plain
    with pytest.raises(TypeError, match="abstract"):
        pieces.Plan()  # type: ignore[abstract]


def test_a_piece_is_computed_once_and_read_from_then_on(tmp_path: Path) -> None:
    store = Pieces(tmp_path / "new" / "r", Plan(), DATA)
    seen: list[Path] = []

    def compute(checkpoint: Path) -> dict[str, Any]:
        seen.append(checkpoint)
        checkpoint.mkdir()
        (checkpoint / "half").touch()
        return {"pair": (1, 2.5)}

    assert "a piece" not in store
    assert store.kept("a piece", compute) == store.kept("a piece", compute) == {"pair": [1, 2.5]}
    assert "a piece" in store
    assert len(seen) == 1
    assert sorted(path.name for path in store.folder.iterdir()) == ["a-piece.json", "plan.json"]
    assert Pieces(store.folder, Plan(), DATA).read("a piece") == {"pair": [1, 2.5]}


def test_a_checkpoint_stays_until_its_piece_is_finished(tmp_path: Path) -> None:
    def cut_off(checkpoint: Path) -> dict[str, Any]:
        checkpoint.mkdir()
        raise KeyboardInterrupt

    def go_on(checkpoint: Path) -> dict[str, Any]:
        return {"went_on": checkpoint.is_dir()}

    with pytest.raises(KeyboardInterrupt):
        Pieces(tmp_path, Plan()).kept("one", cut_off)
    assert Pieces(tmp_path, Plan()).kept("one", go_on) == {"went_on": True}
    assert not list(tmp_path.glob("*.checkpoint"))


@pytest.mark.parametrize(
    ("plan", "data", "after", "told"),
    [
        (Plan(width=3), DATA, Plan(), "plan.width is 2 there, 3 here"),
        (Plan(inner=Inner(4)), DATA, Plan(), "plan.inner.size is 3 there, 4 here"),
        (Raised(), DATA, Plan(), "version is 1 there, 2 here"),
        (Plan(), {"samples": "abd"}, Plan(), "samples is abc there, abd here"),
        (Plan(), DATA, Plan(ends=(0.5, 1.0)), "after.plan.ends is [0.5, 1e-09] there, [0.5, 1.0] here"),
        (Plan(), DATA, Raised(), "after.version is 1 there, 2 here"),
    ],
    ids=["plan", "inner", "version", "data", "after", "version after"],
)
def test_a_store_of_something_else(plan: Plan, data: dict[str, str], after: Plan, told: str, tmp_path: Path) -> None:
    Pieces(tmp_path, Plan(), DATA, after=Plan()).write("one", {})
    before = content(tmp_path)
    with pytest.raises(ValueError, match="results of another plan") as refused:
        Pieces(tmp_path, plan, data, after=after, option="--results")
    said = f"{tmp_path} has results of another plan or of other samples ({told}): name another --results"
    assert str(refused.value) == said
    assert content(tmp_path) == before


def test_a_file_and_a_folder_of_other_things_are_refused_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text("kept\n")
    with pytest.raises(ValueError, match=r"r\.jsonl is a file, but pieces need a folder: name another --results"):
        Pieces(file, Plan(), option="--results")
    with pytest.raises(ValueError, match=r"has other files but no plan\.json: name another --out"):
        Pieces(tmp_path, Plan())
    assert [path.read_text() for path in tmp_path.iterdir()] == ["kept\n"]


@pytest.mark.parametrize("text", ["", "{", "[1]", "\udcff"])
def test_a_piece_that_cannot_be_read_is_named_with_the_remedy(text: str, tmp_path: Path) -> None:
    (tmp_path / ".plan.json.1234").write_text('{"vers')  # left by a write that was killed: in nobody's way
    store = Pieces(tmp_path, Plan())
    store.path("one").write_bytes(os.fsencode(text))
    for read in (store.read, lambda name: store.kept(name, lambda _: {}), lambda name: store.record(name, Inner)):
        with pytest.raises(ValueError, match=r"one\.json is not a finished piece: delete it, or name another --out"):
            read("one")


def test_a_piece_becomes_a_record_of_its_fields(tmp_path: Path) -> None:
    store = Pieces(tmp_path, Plan())
    store.write("one", {"size": 7})
    store.write("two", {"sized": 7})
    assert store.record("one", Inner) == Inner(7)
    with pytest.raises(ValueError, match=r"two\.json is not a finished piece"):
        store.record("two", Inner)


# Killed when it has written the n-th piece or document, n its first argument.
KILLED = """
import os, signal, sys
from rankwise_lab import pieces

write, left = pieces.write_bytes, [int(sys.argv[1])]

def counted(*given):
    write(*given)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)

pieces.write_bytes = counted
sys.path[:0] = sys.argv[2:]
import test_pieces as tests
store = tests.Pieces(tests.Path("r"), tests.Plan())
for k in range(4):
    store.kept(f"piece {k}", lambda _: {"k": k})
"""


@pytest.mark.kill
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_run_that_is_killed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    modules = [str(Path(file).parent) for file in (__file__, archives.__file__)]
    before: dict[str, tuple[bytes, int]] = {}
    for writes, files in ((1, 1), (2, 3), (1, 4)):
        command = [sys.executable, "-c", KILLED, str(writes), *modules]
        killed = subprocess.run(command, check=False)
        assert killed.returncode == -signal.SIGKILL
        now = content(Path("r"))
        assert len(now) == files
        assert before.items() <= now.items()
        before = now


def _work(store: Pieces, order: list[str]) -> str:
    for name in order:
        store.kept(name, lambda _: {"numbers": list(range(2000))})
    return order[0]


@pytest.mark.distributed
def test_several_processes_may_finish_pieces_the_same_ones_too(tmp_path: Path) -> None:
    store, said = Pieces(tmp_path, Plan(), option="--results"), io.StringIO()
    names = [f"piece-{k}" for k in range(20)]
    store.finish("Twenty", _work, [(order,) for order in (names, names[::-1], names[::2])], 2, Progress(said))
    assert said.getvalue() == "Twenty\n"
    assert all(store.read(name) == {"numbers": list(range(2000))} for name in names)
    assert len(list(tmp_path.iterdir())) == 21
