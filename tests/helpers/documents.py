"""The Python blocks of a document, and what they print."""

from __future__ import annotations

import re
from typing import NamedTuple

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    """A Python block, the line its code begins on, and what it must print (None: nothing is claimed)."""

    code: str
    line: int
    printed: str | None


def examples(text: str) -> list[Example]:
    """Python blocks in order; a text block that follows with nothing but blank lines between is their output."""
    fences = list(FENCE.finditer(text))
    found = []
    for at, fence in enumerate(fences):
        if fence[1] != "python":
            continue
        printed = None
        if at + 1 < len(fences):
            after = fences[at + 1]
            if after[1] == "text" and not text[fence.end() : after.start()].strip():
                printed = after[2]
        found.append(Example(fence[2], text.count("\n", 0, fence.start()) + 2, printed))
    return found
