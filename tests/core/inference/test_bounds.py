"""No kernel reads or writes beyond an array: hostile queries, batches and NaN with every index checked.

The kernels run as the Python they are written in, so that NumPy checks what machine code takes on trust, and nothing is
compiled for it. To compile the checks in, and run any other test so:

    NUMBA_BOUNDSCHECK=1 .venv/bin/python -m pytest tests/core -k exactness
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import hostile
import pytest

TIMEOUT = 900  # seconds

CHILD = """
import sys, warnings
warnings.simplefilter("error")
sys.path.append(sys.argv[1])
import numpy as np
import rankwise as rw
from rankwise.kernels.sorting import order_by_key
from rankwise.kernels.engine import predict
from rankwise.queries import single_query
from rankwise.surrogates.rank_sort import solve_rank_sort
from hostile import FAMILIES, LOSSES, SWITCHES, problem

METHODS = "quicksort", "mohapatra2014", "dynamic", "yue", "chakrabarti"
np.seterr(all="ignore")  # machine code says nothing of an overflow either

def attempt(told, function, **options):
    print(told, flush=True)
    try:
        function(**options)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
    else:
        print("solved", flush=True)

attempt("a key too large", lambda: order_by_key(np.array([5]), 2))
for k, family in enumerate(FAMILIES):
    # Python takes a second for the largest, so that not every family has them.
    switches = SWITCHES if k % 24 == 0 else SWITCHES[:-1] if k % 6 == 0 else SWITCHES[:-3]
    most_positives = 9000 if k % 24 == 0 else 300
    sizes = [switches[(k + t * 5) % len(switches)] + (k + t) % 3 - 1 for t in range(3)]
    for seed, n in enumerate([None, None, *sizes]):
        one = problem(family, seed, most=3000, n=n, most_positives=most_positives)
        attempt(one.told, one.solve, n_threads=1 + k % 2)
    small = problem(family, 7, most=200)
    attempt(small.told, small.solve, method=METHODS[k % len(METHODS)])
    others = "ndcg@3", "ap@20", "zero-one"
    for n in (small.scores.size, 20_000) if k % 7 == 0 else (small.scores.size,):
        one = problem(family, 7, most=n, n=n, most_positives=300)
        loss = others[(k + n // 20_000) % 3]
        attempt(f"{loss} {one.told}", lambda: rw.structured_hinge(one.scores, one.relevant, loss))
    graded = small.relevant * (1 + np.arange(small.scores.size) % 4)
    for function, loss in ((rw.structured_hinge, "ndcg"), (rw.smooth_loss, "ndcg"), (rw.error_driven_loss, "ap")):
        attempt(f"grades, {function.__name__} {small.told}", lambda: function(small.scores, graded, loss))
    half = np.clip(small.scores, -6e4, 6e4).astype(np.float16)
    attempt(f"float16 {small.told}", lambda: rw.structured_hinge(half, small.relevant))
    attempt(f"predict {small.told}", lambda: predict(small.scores, single_query(small.relevant), LOSSES["ap"]))
for loss in LOSSES:
    for dtype in (np.float32, np.float64):
        each = [one for seed in range(4) for f in FAMILIES if (one := problem(f, seed, 300)).scores.dtype == dtype]
        scores, relevant = (np.concatenate([one[field] for one in each]) for field in (0, 1))
        qid = np.repeat(np.arange(len(each)), [one.scores.size for one in each])
        batch = {"qid": qid, "n_threads": 2, "loss": LOSSES[loss]}
        attempt(f"{len(each)} queries, {loss}", lambda: rw.structured_hinge(scores, relevant, **batch))
for k, family in enumerate(FAMILIES):
    for n in (40, 700, 33_000) if k % 10 == 0 else (40, 700):  # large ones, by either function, are slow
        one = problem(family, k, most=n, n=n, most_positives=3000 if k % 25 == 0 else 300)
        spread = float(np.ptp(one.scores.astype(np.float64))) or 1.0
        width = min(max(spread * 10.0 ** (k % 7 - 5), 1e-100), 1e100)
        function = (rw.smooth_loss, rw.error_driven_loss)[k % 2]
        attempt(f"{function.__name__} {one.told}", lambda: function(one.scores, one.relevant, width=width))
        given = one.scores, single_query(one.relevant), np.where(one.relevant, (np.arange(1, n + 1) % 7 + 1) / 7, 0.0)
        attempt(f"rank_sort {one.told}", lambda: solve_rank_sort(*given, width))
for k, n in enumerate([5, 17, 64, 257, 1025, 4097, 65_535, 65_536, 70_000, 131_073] * 4):
    rng = np.random.default_rng(k)
    scores, relevant = rng.normal(size=n).astype((np.float32, np.float64)[k % 2]), rng.random(n) < 0.1
    at = int(rng.integers(n))
    relevant[at], relevant[at - 1] = k // 20, not k // 20
    scores[at] = (np.nan, np.inf, -np.inf)[k % 3]
    attempt(f"refuse {at} of {n}", lambda: rw.structured_hinge(scores, relevant, n_threads=1 + k % 2))
"""


@pytest.mark.slow
def test_no_kernel_leaves_its_arrays() -> None:
    command = [sys.executable, "-c", CHILD, str(Path(hostile.__file__).parent)]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"ended with {done.returncode} at {lines[-1:]}\n{done.stderr[-2000:]}"
    attempts = list(zip(lines[::2], lines[1::2], strict=True))
    assert attempts[0] == ("a key too large", "IndexError: index 5 is out of bounds for axis 0 with size 2")
    expected = {"refuse": "NotFiniteError: scores[{}] is"}
    wrong = []
    for told, came in attempts[1:]:
        first, second = told.split()[:2]
        if not came.startswith(expected.get(first, "solved").format(second)):
            wrong.append(f"{came}: {told}")
    assert len(attempts) > 600
    assert not wrong, "\n".join([f"{len(wrong)} of {len(attempts)} went wrong", *wrong[:20]])
