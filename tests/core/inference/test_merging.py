"""Large queries of many positives: sorting both classes gives what the gaps between edges give, in less memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from soft_losses import LOSSES, ramp, smooth_by_formula

import rankwise as rw
from rankwise.kernels import soft
from rankwise.kernels.soft.large import conclude_gaps, count_gaps, draw_gaps, draw_sorted, sum_negatives
from rankwise.queries import single_query

RTOL = 1e-12
Array = NDArray[Any]

FAMILIES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "ties": lambda rng, n: rng.integers(-40, 50, n) / 8.0,
    "offset": lambda rng, n: 1e8 + rng.normal(size=n),
    "magnitudes": lambda rng, n: np.sign(rng.normal(size=n)) * 10.0 ** rng.uniform(-8, 8, n),
    "constant": lambda rng, n: np.full(n, 0.3),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_sums_over_sorted_classes_equal_the_sums_over_all_pairs(family: str, rng: np.random.Generator) -> None:
    for _ in range(60):
        n_pos, n_neg = rng.integers(1, 60, 2)
        scores = FAMILIES[family](rng, n_pos + n_neg)
        level, order = np.sort(scores[:n_pos]), n_pos + np.argsort(scores[n_pos:], kind="stable")
        width = (float(np.ptp(scores)) or 1.0) * 10.0 ** rng.uniform(-3, 1)
        x = scores[order][None, :] - level[:, None]
        above, near, weight = np.zeros(n_pos), np.empty(n_pos), rng.random(n_pos)
        sum_negatives(scores[order], np.ones(n_neg), level, width, above, near)
        np.testing.assert_allclose(above, ramp(x, width).sum(axis=1), rtol=RTOL, atol=RTOL * n_neg)
        np.testing.assert_array_equal(near, (np.abs(x) < width).sum(axis=1))
        for is_ramp, each in ((True, ramp(x, width)), (False, (np.abs(x) < width) * (0.5 / width))):
            gradient = np.zeros(scores.size)
            draw_sorted(scores, order.astype(np.int32), level, width, is_ramp, weight, gradient)
            expected = weight @ each
            np.testing.assert_allclose(gradient[order], expected, rtol=RTOL, atol=RTOL * each.max() * n_pos)
            assert not gradient[:n_pos].any()


@pytest.mark.parametrize("n_pos", [5000, 20_000, 39_999])
@pytest.mark.parametrize("family", FAMILIES)
def test_both_ways_give_the_same_counts_and_gradients(family: str, n_pos: int, rng: np.random.Generator) -> None:
    y = rng.permutation(np.arange(40_000) < n_pos)
    s = FAMILIES[family](rng, y.size)
    width, where, gaps = 0.1 * (float(np.ptp(s)) or 1.0), np.flatnonzero(y), np.empty(y.size, np.int32)
    found = soft.soften(s, single_query(y), width, 1)
    np.testing.assert_array_equal(np.sort(found.gaps[: y.size - n_pos]), np.flatnonzero(~y))
    np.testing.assert_array_equal(found.level, np.sort(s[y]))
    np.testing.assert_array_equal(s[found.order], found.level)
    above, near = np.empty(n_pos), np.empty(n_pos)
    conclude_gaps(found.level, width, count_gaps(s, where, found.level, width, gaps, 1), above, near)
    np.testing.assert_allclose(found.above, above, rtol=RTOL, atol=RTOL * y.size)
    np.testing.assert_array_equal(found.near, near)
    weight = rng.random(n_pos)
    for is_ramp in (True, False):
        gradient = np.empty(s.size)
        draw_gaps(s, gaps, found.level, width, is_ramp, weight, gradient, 1)
        other = soft.spread(s, single_query(y), found, weight, np.zeros(n_pos), is_ramp, 1)
        np.testing.assert_allclose(other, gradient, rtol=RTOL, atol=RTOL * np.abs(gradient).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ap", "ndcg"])
def test_the_smooth_loss_of_many_positives_equals_the_formula(name: str, rng: np.random.Generator) -> None:
    y = rng.permutation(np.arange(33_000) >= 100)
    s = rng.normal(size=y.size) + y
    for width in (0.01, 1.0):
        value, gradient = smooth_by_formula(s, y, LOSSES[name], width)
        found = rw.smooth_loss(s, y, name, width=width)
        assert abs(found.value - value) <= RTOL
        np.testing.assert_allclose(found.gradient, gradient, rtol=0, atol=RTOL * np.abs(gradient).max())


@pytest.mark.usefixtures("threads_for_few")
@pytest.mark.parametrize("function", [rw.smooth_loss, rw.error_driven_loss])
def test_threads_change_no_bit_where_both_classes_are_sorted(function: Any, rng: np.random.Generator) -> None:
    y = rng.random(40_000) < 0.5
    s = rng.normal(size=y.size) + y
    one, two = (function(s, y, n_threads=t) for t in (1, 2))
    assert one.value == two.value
    np.testing.assert_array_equal(one.gradient, two.gradient)


GROWTH = """
import json
from pathlib import Path
import numpy as np
import rankwise as rw
def read(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))
rng = np.random.default_rng(0)
y = rng.random(2_000_000) < 0.5
s = rng.standard_normal(y.size, dtype=np.float32) + y.astype(np.float32)
found = {}
for function in (rw.structured_hinge, rw.smooth_loss, rw.error_driven_loss):
    function(s[:100_000].copy(), y[:100_000].copy(), "ap")
    before = read("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    function(s, y, "ap")
    found[function.__name__] = read("VmHWM") - before
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is measured as Linux counts it")
def test_as_many_positives_as_negatives_take_at_most_twice_the_memory_of_the_hinge() -> None:
    done = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True)
    hinge, *others = json.loads(done.stdout).values()
    assert hinge > 40_000, "kilobytes: its sort alone"
    for growth in others:
        assert growth <= 2 * hinge
