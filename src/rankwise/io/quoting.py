"""What errors quote, of files or of arguments: fit to be printed, in one line, and never long."""

from __future__ import annotations

import re

_SHOWN = 40
_TOLD = 160
_QUOTED = re.compile(rf"'([^']{{{_SHOWN}}})[^']{{8,}}'")


def shown(value: object) -> str:
    """A value as an error quotes it: escaped, and of a few dozen characters."""
    if isinstance(value, bytes):
        value = value[: 4 * _SHOWN].decode("utf-8", "replace")
    if isinstance(value, str):
        return repr(value[:_SHOWN]) + ("…" if len(value) > _SHOWN else "")
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, a list in a list in a list …
        return f"a very long {type(value).__name__}"
    return text[:_SHOWN] + ("…" if len(text) > _SHOWN else "")


def told(error: BaseException) -> str:
    """What another library's error says: in one line, cut where it quotes much."""
    text = shorten(" ".join(str(error).split())) or type(error).__name__
    return text if len(text) <= _TOLD else f"{text[:_TOLD]}…"


def shorten(message: str) -> str:
    """A message with its long quotations cut."""
    return _QUOTED.sub(r"'\1'…", message)
