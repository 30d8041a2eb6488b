"""A file of results: a line that says what was run, then a record a line; a run goes on where it was stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["begun", "not_ours"]


def begun(path: Path, head: dict[str, Any], what: str) -> list[dict[str, Any]]:
    """The records in a file, which is begun if it is not there; a last line cut short is taken off it.

    head: what the first line must say; what: what differs where it says something else.
    """
    if not path.exists() or path.stat().st_size == 0:
        path.write_text(json.dumps(head) + "\n", encoding="utf-8")
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    try:
        lines = [json.loads(line) for line in whole.splitlines()]
    except ValueError:
        raise not_ours(path) from None
    found = lines[0] if lines else "no head"
    if not all(isinstance(line, dict) for line in lines):
        raise not_ours(path)
    if found != json.loads(json.dumps(head)):
        raise ValueError(f"{path}: results of {what} ({found}): name another file")
    if len(whole) < len(content):
        with path.open("r+b") as file:
            file.truncate(len(whole))
    return lines[1:]


def not_ours(path: Path) -> ValueError:
    """What is said of a file that holds something else."""
    return ValueError(f"{path}: not a file of results of this benchmark: name another file")
