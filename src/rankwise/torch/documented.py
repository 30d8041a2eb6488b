"""Arguments that several losses take are described once; the docstrings of others refer to that place."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TypeVar

_Thing = TypeVar("_Thing", bound=Callable[..., object])
_REFERENCE = re.compile(r"^( *)As in `(\w+)`: ([\w, \n]+)\.$", re.MULTILINE)


def documented_like(*origins: Callable[..., object]) -> Callable[[_Thing], _Thing]:
    """Replace "As in `function`: mask, qid." in a docstring by what that of this origin says of mask and qid."""
    described = {origin.__name__: _entries(inspect.getdoc(origin) or "") for origin in origins}

    def complete(match: re.Match[str]) -> str:
        indent, origin, names = match.groups()
        entries = [described[origin][name] for name in re.split(r",\s+", names)]
        return "\n".join(indent + line for entry in entries for line in entry)

    def document(thing: _Thing) -> _Thing:
        if thing.__doc__ is not None:  # python -OO has none
            thing.__doc__ = _REFERENCE.sub(complete, thing.__doc__)
        return thing

    return document


def _entries(docstring: str) -> dict[str, list[str]]:
    """By name, the lines about an argument or a result: its name with its type, and what is indented below."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in docstring.splitlines():
        if line.startswith("    "):
            current.append(line)
        else:
            current = found.setdefault(line.split(" : ")[0], [line])
    return found
