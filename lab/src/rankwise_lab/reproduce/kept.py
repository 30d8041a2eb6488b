"""What an experiment has finished, in a folder: a file a part, and one that says which plan they are of."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rankwise.io import write_bytes

__all__ = ["check_plan", "kept"]


def check_plan(folder: Path, plan: Any, version: int, data: str, digest: str) -> None:
    """Make the folder, and refuse one with results of another plan, a dataclass, or of other data, told by a digest."""
    folder.mkdir(parents=True, exist_ok=True)
    head = {"version": version, data: digest, "plan": json.loads(json.dumps(asdict(plan)))}
    path = folder / "plan.json"
    if not path.exists():
        write_bytes(path, _encoded(head))
    elif json.loads(path.read_bytes()) != head:
        raise ValueError(f"{folder} has results of another plan or of other {data}; name another --out")


def kept(path: Path, compute: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """A part from its file, or computed and then put there; compute is given a folder for checkpoints until then."""
    checkpoint = path.with_suffix(".checkpoint")
    if not path.exists():
        write_bytes(path, _encoded(compute(checkpoint)))
    shutil.rmtree(checkpoint, ignore_errors=True)
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


def _encoded(document: Any) -> bytes:
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()
