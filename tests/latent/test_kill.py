"""A fit that is killed, by kill -9 or Ctrl-C, and begun again ends with the same model: in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

KILLED = """
import json, os, signal, sys
import numpy as np
import rankwise as rw
from rankwise.latent import Bags, cccp, training

cccp._SMALL = 0
folder = sys.argv[1]
bags = Bags(np.load(folder + "/x.npy", mmap_mode="r"), np.arange(201) * 50)
y = np.arange(200) % 8 == 0
rng = np.random.default_rng(int(sys.argv[2]))

def fit(checkpoint):
    model = rw.LatentRankSVM("zero-one", 30.0, tol=1e-6, outer_tol=1e-9, checkpoint=checkpoint)
    model.fit(bags, y)
    return {"coef": model.coef_.tolist(), "passes": model.timing_["passes"], "converged": model.converged_,
            "history": {name: part.tolist() for name, part in model.history_.items() if name != "seconds"}}

# In this process: the signal, when a checkpoint has been written for the n-th time.
def after_saves(n, signal_):
    write, count = training.write_state, [0]

    def counted(path, state):
        write(path, state)
        count[0] += 1
        if count[0] == n:
            os.kill(os.getpid(), signal_)

    training.write_state = counted

# In this process: kill -9 when a new checkpoint is whole but not yet in the place of the old one.
def before_replacing():
    os.replace = lambda *paths: os.kill(os.getpid(), signal.SIGKILL)

# How a process ends that is prepared so and fits; 7 after Ctrl-C.
def ended(prepare):
    pid = os.fork()
    if pid == 0:
        prepare()
        try:
            fit(folder)
        except KeyboardInterrupt:
            os._exit(7)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

# In this process: kill -9 at some moment; it may come too late.
def at_random():
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.01, 0.3))

whole = fit(None)
ends = [ended(lambda n=n: after_saves(n, signal.SIGKILL)) for n in (1, 3)]
ends += [ended(before_replacing), ended(lambda: after_saves(2, signal.SIGINT))]
for _ in range(2):
    ended(at_random)
print(json.dumps({"whole": whole, "resumed": fit(folder), "ends": ends}))
"""


@pytest.mark.kill
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made by fork here")
def test_a_fit_killed_at_any_moment_goes_on_to_the_same_model(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(10_000, 24)).astype(np.float32)
    features[np.arange(0, 10_000, 400) + 20, :2] += 4.0
    np.save(tmp_path / "x.npy", features)
    command = [sys.executable, "-c", KILLED, str(tmp_path), "5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["ends"] == [-signal.SIGKILL, -signal.SIGKILL, -signal.SIGKILL, 7]
    assert found["whole"]["converged"]
    assert np.any(found["whole"]["coef"])
    assert len(found["whole"]["history"]["changed"]) > 1
    assert found["resumed"]["coef"] == found["whole"]["coef"]
    assert found["resumed"]["history"] == found["whole"]["history"]
    assert len(list(tmp_path.glob("latent-*.rw"))) == 1
