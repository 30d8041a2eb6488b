"""A fit that is interrupted keeps the best model so far, one that is killed the old one or the new."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import COMMAND, Capture, run
from scipy.sparse import csr_array

import rankwise as rw
from rankwise.io import read_model, write_data

Interrupt = Callable[[int], list[int]]
SVM = "fit --model rank-svm train.svm -o m.rw"


@pytest.mark.parametrize("options", ["", "--standardize"])
def test_an_interrupt_keeps_the_best_model_so_far(
    folder: Path, capsys: Capture, interrupt_at: Interrupt, options: str
) -> None:
    interrupt_at(5)
    run(f"{SVM} --C 10 --quiet --json fit.json {options}", status=130)
    stored = rw.load("m.rw")
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"rankwise: interrupted: m.rw contains the best model so far (relative gap {stored.gap_:.1e})"
    assert not stored.converged_
    assert json.loads(Path("fit.json").read_text())["interrupted"] is True
    assert read_model("m.rw").header["note"]["interrupted"] is True
    run("predict m.rw test.svm -o scores.txt")


@pytest.mark.parametrize("C", ["10", "auto"])
def test_an_interrupt_before_anything_is_learnt_writes_nothing(
    folder: Path, capsys: Capture, interrupt_at: Interrupt, C: str
) -> None:
    interrupt_at(1)
    run(f"{SVM} --C {C} --quiet", status=130)
    assert capsys.readouterr().err == "rankwise: interrupted before anything was learnt; m.rw was not written\n"
    assert not Path("m.rw").exists()


def test_an_interrupt_while_C_is_chosen_ends_the_choice(folder: Path, capsys: Capture, interrupt_at: Interrupt) -> None:
    interrupt_at(40)
    run(f"{SVM} --cv 2", status=130)
    stored, printed = rw.load("m.rw"), capsys.readouterr()
    assert np.isnan(stored.scores_).any()
    assert stored.converged_
    assert printed.out.count("\n*") == 1
    assert "interrupted: m.rw contains the best model so far" in printed.err


posix = pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")


LONG = {
    "": b"LinearRanker",  # kernels may be compiled first
    "--model rank-svm --C 1e6 --tol 1e-12": b"planes",
}


@pytest.mark.kill
@posix
@pytest.mark.parametrize("options", LONG)
def test_ctrl_c_in_a_long_fit_leaves_a_model(folder: Path, at_a_terminal: Callable[..., Any], options: str) -> None:
    rng = np.random.default_rng(0)
    write_data("long.csv", rng.normal(size=(4000, 150)), (rng.random(4000) < 0.3).astype(float))
    process, read = at_a_terminal(*COMMAND, "fit", "long.csv", "-o", "m.rw", *options.split())
    read(until=LONG[options])
    process.send_signal(signal.SIGINT)
    err = read().decode()
    out, _ = process.communicate(timeout=240)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    stored = rw.load("m.rw")
    gap = f" (relative gap {stored.gap_:.1e})" if options else ""
    assert f"interrupted: m.rw contains the best model so far{gap}" in err
    assert out.endswith(b"model: m.rw\n")
    assert np.isfinite(stored.coef_).all()


KILLED = """
import os, signal, sys
import numpy as np, rankwise
from rankwise.cli.main import main

def fit(name):
    main(["fit", name + ".svm", "--model", "rank-svm", "-o", "m.rw", "--C", "1", "--tol", "0.5", "--quiet"])

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
total, found = at_each_moment(lambda counts: None), []
for part in "fit", "file":
    for moment in np.linspace(1, total[part], 5).astype(int):
        fit("a")
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
    X = csr_array(np.maximum(np.random.default_rng(0).random((40, 20_000)) - 0.99, 0.0))
    for k, name in enumerate("ab"):
        write_data(f"{name}.svm", X, (np.arange(40) % 3 == k).astype(float))
    process = start(sys.executable, "-c", KILLED, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=120)
    found = out.decode().strip()
    assert len(found) == 10, f"a file that is neither: {err.decode()}"
    assert "ab" in found[:5]
    assert "ab" in found[5:]
