"""Options of commands, told in one order."""

from __future__ import annotations

from typing import Any


def add_option(parser: Any, flag: str, kind: Any, default: Any, metavar: str, help: str) -> None:
    """Add an option, or an argument if the flag has no dashes; kind: a type, or a list of choices."""
    told: dict[str, Any] = {"help": help} | ({"default": default} if flag.startswith("-") else {})
    told |= {"choices": kind} if isinstance(kind, list) else {"type": kind, "metavar": metavar}
    parser.add_argument(flag, **told)
