"""Quotations in error messages, from files or arguments: printable, in one line, and short."""

from __future__ import annotations

import re

# For packages that extend rankwise.
__all__ = ["message_of", "shown"]

_SHOWN = 40
_LONGEST = 160
_QUOTED = re.compile(rf"'([^']{{{_SHOWN}}})[^']{{8,}}'")


def shown(value: object) -> str:
    """Return a value as an error quotes it: escaped, with at most a few dozen characters."""
    if isinstance(value, bytes):
        value = value[: 4 * _SHOWN].decode("utf-8", "replace")
    if isinstance(value, str):
        return repr(value[:_SHOWN]) + ("…" if len(value) > _SHOWN else "")
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, a list in a list in a list …
        return f"a very long {type(value).__name__}"
    return text[:_SHOWN] + ("…" if len(text) > _SHOWN else "")


def printable(text: str) -> str:
    """Return text in one line, with what a terminal would act upon escaped."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def message_of(error: BaseException) -> str:
    """Return the message of another library's error in one line, with long quotations cut."""
    text = shorten(" ".join(str(error).split())) or type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def shorten(message: str) -> str:
    """Return a message with its long quotations cut."""
    return _QUOTED.sub(r"'\1'…", message)
