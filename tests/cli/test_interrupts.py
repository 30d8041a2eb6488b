"""A fit that is interrupted keeps the best model so far, one that is killed the old one or the new."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import COMMAND
from samples import write_samples

import rankwise as rw

posix = pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")


@pytest.mark.kill
@posix
def test_ctrl_c_in_a_long_fit_leaves_a_model(folder: Path, at_a_terminal: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    write_samples("long.csv", rng.normal(size=(4000, 150)), (rng.random(4000) < 0.3).astype(float))
    process, read = at_a_terminal(*COMMAND, "fit", "long.csv", "-o", "m.rw")
    read(until=b"LinearRanker")  # kernels may be compiled first
    process.send_signal(signal.SIGINT)
    err = read().decode()
    out, _ = process.communicate(timeout=240)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    stored = rw.load("m.rw")
    assert "interrupted: m.rw contains the best model so far" in err
    assert out.endswith(b"model: m.rw\n")
    assert np.isfinite(stored.coef_).all()


KILLED = """
import os, shutil, signal, sys
import numpy as np, rankwise
from rankwise.cli.main import main

def fit(name):
    main(["fit", name + ".csv", "-o", "m.rw", "--quiet"])

# A moment is a call or a return in the fit, or in its writing of the file alone: a busy machine changes nothing.
def at_each_moment(act):
    counts = {"fit": 0, "file": 0}
    def note(frame, event, argument):
        counts["fit"] += 1
        if counts["file"] or frame.f_code.co_name == "open_atomic":
            counts["file"] += 1
        act(counts)
    sys.setprofile(note)
    fit("b")
    sys.setprofile(None)
    return counts

models = {}
for name in "ab":
    fit(name)
    models[name] = rankwise.load("m.rw").coef_
    shutil.copy("m.rw", name + ".rw")
total, found = at_each_moment(lambda counts: None), []
for part in "fit", "file":
    for moment in np.linspace(1, total[part], 5).astype(int):
        shutil.copy("a.rw", "m.rw")
        child = os.fork()
        if child == 0:
            at_each_moment(lambda counts: counts[part] < moment or os.kill(os.getpid(), signal.SIGKILL))
            os._exit(0)
        os.waitpid(child, 0)
        coef = rankwise.load("m.rw").coef_
        found += [name for name, whole in models.items() if np.array_equal(coef, whole)]
print("".join(found))
"""


@pytest.mark.kill
@posix
def test_a_kill_at_any_moment_leaves_the_old_or_the_new_model(
    folder: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    X = np.random.default_rng(0).normal(size=(40, 300))
    for k, name in enumerate("ab"):
        write_samples(f"{name}.csv", X, (np.arange(40) % 3 == k).astype(float))
    process = start(sys.executable, "-c", KILLED, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=120)
    found = out.decode().strip()
    assert len(found) == 10, f"a file that is neither: {err.decode()}"
    assert "ab" in found[:5]
    assert "ab" in found[5:]
