"""Ctrl-C in a fit keeps the best model so far."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from commands import COMMAND
from samples import write_samples

import rankwise as rw


@pytest.mark.kill
@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_ctrl_c_in_a_long_fit_leaves_a_model(folder: Path, start: Callable[..., subprocess.Popen[bytes]]) -> None:
    rng = np.random.default_rng(0)
    write_samples("long.csv", rng.normal(size=(4000, 150)), rng.random(4000) < 0.3)
    leader, follower = os.openpty()  # at a terminal, progress is seen at once
    process = start(*COMMAND, "fit", "long.csv", "-o", "m.rw", stderr=follower)
    os.close(follower)
    said = b""
    while b"LinearRanker" not in said:
        said += os.read(leader, 4096)
    process.send_signal(signal.SIGINT)
    with suppress(OSError):  # what Linux says of a terminal that nobody writes to any more
        while part := os.read(leader, 4096):
            said += part
    os.close(leader)
    out, _ = process.communicate(timeout=240)
    assert process.returncode == 130, said
    assert b"Traceback" not in said
    assert b"interrupted: m.rw contains the best model so far" in said
    assert out.endswith(b"model: m.rw\n")
    assert np.isfinite(rw.load("m.rw").coef_).all()
