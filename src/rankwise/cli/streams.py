"""Standard streams that are closed."""

from __future__ import annotations

import os
import sys


def replace_closed() -> None:
    """Put the null device where standard input, output or error is closed, and drop what is said on closed error.

    Otherwise the next file that is opened would get the number of the closed stream, and so whatever other libraries
    write there; and `print` would take standard output for a standard error that is None.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
            os.set_inheritable(opened, True)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # as long as the process
