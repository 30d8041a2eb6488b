"""The problem of `rankwise bench latent`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rankwise_lab.benchmarks import latent_scale


def test_one_window_of_each_positive_bag_is_shifted(tmp_path: Path) -> None:
    sizes = latent_scale.Sizes(windows=2000, features=8, bags=100, positives=10, repeats=1)
    problem = latent_scale._problem(sizes, str(tmp_path))
    assert (len(problem.bags), problem.bags.n_candidates, int(problem.y.sum())) == (100, 2000, 10)
    plain = np.random.default_rng(0)
    plain.choice(100, 10, replace=False)
    plain.standard_normal(8)
    plain.integers(0, np.full(10, 20))
    moved = np.asarray(problem.bags.features) - plain.standard_normal((2000, 8), np.float32)
    shifted = np.flatnonzero(np.abs(moved).max(axis=1) > 1e-3)
    assert np.array_equal(shifted // 20, np.flatnonzero(problem.y))
    np.testing.assert_allclose(np.linalg.norm(moved[shifted], axis=1), 5.0, rtol=1e-4)
