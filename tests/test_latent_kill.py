"""A fit that is killed, by kill -9 or Ctrl-C, and begun again ends with the same model: in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

KILLED = """
import json, os, signal, sys, time
import numpy as np
import rankwise as rw
from rankwise.latent import Bags, cccp

cccp._SMALL = 0
folder = sys.argv[1]
bags = Bags(np.load(folder + "/x.npy", mmap_mode="r"), np.arange(1001) * 100)
y = np.arange(1000) % 8 == 0
rng = np.random.default_rng(int(sys.argv[2]))

def fit(checkpoint):
    model = rw.LatentRankSVM("zero-one", 30.0, self_paced=0.2, tol=1e-6, outer_tol=1e-9, checkpoint=checkpoint)
    model.fit(bags, y)
    return {"coef": model.coef_.tolist(), "passes": model.timing_["passes"], "converged": model.converged_,
            "history": {name: part.tolist() for name, part in model.history_.items() if name != "seconds"}}

def changes(n):
    seen = set()
    while len(seen) < n and os.waitpid(pid, os.WNOHANG) == (0, 0):
        for name in os.listdir(folder):
            if name.startswith("latent-"):
                seen.add(os.stat(folder + "/" + name).st_mtime_ns)
        time.sleep(0.001)

whole = fit(None)
killed = 0
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        fit(folder)
        os._exit(0)
    changes(int(rng.integers(1, 5)))
    time.sleep(rng.uniform(0.0, 0.03))
    try:
        os.kill(pid, signal.SIGKILL)
        killed += os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    except (ProcessLookupError, ChildProcessError):
        pass
pid = os.fork()
if pid == 0:  # Ctrl-C
    try:
        fit(folder)
    except KeyboardInterrupt:
        os._exit(7)
    os._exit(0)
changes(2)
try:
    os.kill(pid, signal.SIGINT)
    stopped = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
except (ProcessLookupError, ChildProcessError):
    stopped = -1
print(json.dumps({"whole": whole, "resumed": fit(folder), "killed": killed, "stopped": stopped}))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made by fork here")
def test_a_fit_killed_at_any_moment_goes_on_to_the_same_model(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(100_000, 24)).astype(np.float32)
    features[np.arange(0, 100_000, 800) + 40, :2] += 4.0
    np.save(tmp_path / "x.npy", features)
    command = [sys.executable, "-c", KILLED, str(tmp_path), "5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["killed"] >= 2
    assert found["stopped"] == 7
    assert found["whole"]["converged"]
    assert np.any(found["whole"]["coef"])
    assert len(found["whole"]["history"]["changed"]) > 1
    assert found["resumed"]["coef"] == found["whole"]["coef"]
    assert found["resumed"]["history"] == found["whole"]["history"]
    assert len(list(tmp_path.glob("latent-*.rw"))) == 1
