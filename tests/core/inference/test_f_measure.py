"""The F-measure at the best threshold: exact against every ranking and against every level, and at the edges."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rank_losses import slack

import rankwise as rw
from rankwise.kernels import engine
from rankwise.metrics.registry import as_loss

Array = NDArray[Any]
RTOL, GRADIENT_RTOL = 1e-12, 1e-11
SCORES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "normal": lambda rng, n: rng.normal(size=n) * rng.choice([0.01, 0.1, 1.0]),
    "ties": lambda rng, n: rng.integers(-2, 3, n) * 0.1,
    "offset": lambda rng, n: 1e10 + rng.integers(-3, 4, n) * 0.25,
    "all scales": lambda rng, n: np.sign(rng.normal(size=n)) * 10.0 ** rng.uniform(-8, 8, n),
    "one score": lambda rng, n: np.full(n, 0.3),
    "float32": lambda rng, n: rng.normal(size=n).astype(np.float32),
}


def f_loss(above: Array) -> float:
    """Δ by precision and recall: the k-th positive is called positive with c_k negatives."""
    n_pos = above.size
    called = [(k / (k + c), k / n_pos) for k, c in enumerate(above.tolist(), 1)]
    return 1.0 - max(2 * precision * recall / (precision + recall) for precision, recall in called)


def assert_consistent(found: rw.HingeResult, s: Array, y: Array, scale: float) -> None:
    """The ranking has the loss; J = scale·Δ + gradient·scores; the gradient is that of the ranking, ties sharing it."""
    ranking, s = found.interleaving, s.astype(np.float64)
    n_pos, n_neg = ranking.n_pos, ranking.n_neg
    assert found.loss == pytest.approx(f_loss(ranking.above), rel=RTOL, abs=RTOL)
    unit = 2.0 / (n_pos * n_neg)
    by_ranking = np.empty(s.size)
    by_ranking[ranking.positives] = -unit * ranking.above
    by_ranking[ranking.negatives] = unit * (n_pos + 1 - ranking.ranks)
    for side in (y, ~y):
        for score in np.unique(s[side]):
            tied = side & (s == score)
            by_ranking[tied] = by_ranking[tied].mean()
    eps = float(np.finfo(found.gradient.dtype).eps)
    np.testing.assert_allclose(found.gradient, by_ranking, rtol=8 * eps, atol=1e-15)
    ref = float(np.median(s[y]))
    rounding = slack(found.value) + eps * 8 * np.abs(s - ref).sum()
    assert abs(scale * found.loss + float(by_ranking @ (s - ref)) - found.value) <= rounding


@pytest.mark.parametrize("scores", SCORES)
def test_it_is_exact_against_every_ranking(scores: str, rng: np.random.Generator) -> None:
    for number in range(160):
        n_pos, n_neg = int(rng.integers(1, 6)), int(rng.integers(1, 8))
        y = rng.permutation(np.arange(n_pos + n_neg) < n_pos)
        s = SCORES[scores](rng, y.size)
        s = s + (y * rng.choice([0.0, 0.5, 2.0])).astype(s.dtype)
        scale = (0.0, 1.0, 1e-6, 1e6)[number % 8] if number % 8 < 4 else 10.0 ** rng.uniform(-6, 6)
        found = rw.structured_hinge(s, y, "f1", scale=scale)
        expected = rw.structured_hinge(s, y, "f1", scale=scale, method="exhaustive")
        assert abs(found.value - expected.value) <= slack(expected.value), (s, y, scale)
        assert_consistent(found, s, y, scale)
        assert found.value >= scale * rw.ranking_loss(s, y, "f1") - slack(found.value)


def best_of_all_levels(s: Array, y: Array, scale: float) -> float:
    """J by every t = (c + P)/k in whole numbers, with c_k = max(c*_k, ⌈k·t⌉ − P)."""
    pos, neg = (np.sort(s[side].astype(np.float64))[::-1] for side in (y, ~y))
    n_pos, n_neg, k = pos.size, neg.size, np.arange(1, pos.size + 1)
    by_score = n_neg - np.searchsorted(neg[::-1], pos, side="right")
    gained = np.pad(np.cumsum(neg - pos[:, None], axis=1), ((0, 0), (1, 0)))  # (P, N + 1)
    num, den = (part.ravel() for part in np.meshgrid(np.arange(n_neg + 1) + n_pos, k))
    _, first = np.unique(num / den, return_index=True)  # equal fractions, and no others, have equal quotients
    fits = first[num[first] * n_pos <= (n_neg + n_pos) * den[first]]
    best = -np.inf
    for part in np.array_split(fits, 1 + fits.size // 2000):
        c = np.maximum(by_score, -(-k * num[part, None] // den[part, None]) - n_pos)
        lost = ((c + n_pos - k) / (c + n_pos + k)).min(axis=1)
        best = max(best, float((scale * lost + 2.0 / (n_pos * n_neg) * gained[k - 1, c].sum(axis=1)).max()))
    return best


@pytest.mark.parametrize("kind", ["normal", "ties", "offset", "float32", "far off"])
def test_larger_queries_agree_with_every_level(kind: str, rng: np.random.Generator) -> None:
    for _ in range(40):
        n_pos, n_neg = int(rng.integers(1, 60)), int(rng.integers(1, 500))
        y = rng.permutation(np.arange(n_pos + n_neg) < n_pos)
        s = rng.normal(size=y.size) + y * rng.choice([-1.0, 0.0, 1.0, 3.0])
        s = {"ties": np.round(s, 1), "offset": 1e10 + np.round(4 * s) / 4, "float32": s.astype(np.float32)}.get(kind, s)
        if kind == "far off":
            s[rng.integers(s.size, size=3)] *= 1e12
        scale = 10.0 ** rng.uniform(-3, 3)
        found, expected = rw.structured_hinge(s, y, "f1", scale=scale), best_of_all_levels(s, y, scale)
        assert abs(found.value - expected) <= 1e-11 * max(1.0, abs(expected)), (n_pos, n_neg, scale)
        assert_consistent(found, s, y, scale)


def test_many_positives_agree_with_every_level(rng: np.random.Generator) -> None:
    """Where the search has thousands of steps to look at."""
    for n_pos, n_neg, scale in ((200, 600, 1.0), (300, 300, 0.2), (120, 2000, 20.0), (450, 350, 0.05)):
        y = np.arange(n_pos + n_neg) < n_pos
        s = rng.normal(size=y.size) + 3.0 * y
        expected = best_of_all_levels(s, y, scale)
        assert rw.structured_hinge(s, y, "f1", scale=scale).value == pytest.approx(expected, rel=RTOL)


@pytest.mark.parametrize(("n_pos", "n_neg"), [(1, 1), (1, 9), (9, 1), (1, 70_000), (40_000, 2), (300, 40_000)])
def test_equal_scores_are_ranked_worst_and_a_wide_margin_first(n_pos: int, n_neg: int) -> None:
    """All negatives first have F₁ = 2P/(2P + N)."""
    y = np.arange(n_pos + n_neg) < n_pos
    worst = n_neg / (2 * n_pos + n_neg)
    for scale in (1e-6, 1.0, 1e300):
        tied = rw.structured_hinge(np.zeros(y.size), y, "f1", scale=scale)
        assert tied.loss == pytest.approx(worst, rel=RTOL)
        assert tied.value == pytest.approx(scale * worst, rel=RTOL)
    apart = rw.structured_hinge(np.where(y, 1e6, 0.0), y, "f1")
    assert (apart.value, apart.loss, np.abs(apart.gradient).max()) == (0.0, 0.0, 0.0)
    enormous = rw.structured_hinge(np.where(y, 1e6, 0.0), y, "f1", scale=1e300)
    assert enormous.loss == pytest.approx(worst, rel=RTOL)


@pytest.mark.parametrize("scores", [*SCORES, "float16", "saturated"])
def test_a_large_query_is_solved_as_a_small_one(
    scores: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    for n_pos, scale in ((1, 1.0), (50, 0.05), (300, 1.0), (300, 20.0)):
        y = rng.permutation(np.arange(70_000) < n_pos)
        normal = rng.normal(size=y.size) + y
        s = {
            "float16": normal.astype(np.float16).astype(np.float32),
            "saturated": (1 / (1 + np.exp(-8 * normal))).astype(np.float32),
        }.get(scores)
        s = SCORES[scores](rng, y.size) if s is None else s
        large = rw.structured_hinge(s, y, "f1", scale=scale)
        with monkeypatch.context() as patch:
            patch.setattr(engine, "_LARGE_F", s.size)
            small = rw.structured_hinge(s, y, "f1", scale=scale)
        assert large.value == pytest.approx(small.value, rel=RTOL)
        assert np.array_equal(large.interleaving.above, small.interleaving.above)
        np.testing.assert_allclose(large.gradient, small.gradient, rtol=GRADIENT_RTOL)
        assert_consistent(large, s, y, scale)


PEAK = """
import numpy as np
import rankwise as rw
def status(field):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(field)) * 1024
s = np.random.default_rng(0).normal(size=2_000_000).astype(np.float32)
y = np.arange(s.size) % 2000 == 0
rw.structured_hinge(s[:100_000], y[:100_000], "f1")
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
rw.structured_hinge(s, y, "f1")
print((status("VmHWM") - before) / s.nbytes)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is measured as Linux counts it")
def test_a_large_query_takes_no_more_memory_than_four_times_its_scores() -> None:
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    assert 1.0 <= float(done.stdout) <= 4.0, "the gradient takes 1"


@pytest.mark.usefixtures("threads_for_few")
def test_queries_in_one_call_are_as_each_by_itself(rng: np.random.Generator) -> None:
    sizes = np.concatenate([rng.integers(1, 40, 200), [30_000, 1, 2]])
    qid = np.repeat(np.arange(sizes.size), sizes)
    y, s = rng.random(qid.size) < 0.1, np.round(rng.normal(size=qid.size), 2)
    one, two = (rw.structured_hinge(s, y, "f1", qid=qid, n_threads=t) for t in (1, 2))
    assert one.value == two.value
    np.testing.assert_array_equal(one.gradient, two.gradient)
    assert one.per_query is not None
    for q in range(sizes.size):
        alone = rw.structured_hinge(s[qid == q], y[qid == q], "f1")
        assert one.per_query.value[q] == pytest.approx(alone.value, rel=RTOL, abs=RTOL)
        np.testing.assert_allclose(one.gradient[qid == q] * sizes.size, alone.gradient, rtol=GRADIENT_RTOL)


def test_it_is_convex_and_an_upper_bound(rng: np.random.Generator) -> None:
    for _ in range(60):
        y = rng.permutation(np.arange(60) < 15)
        a, b = rng.normal(size=(2, 60))
        at_a, at_b = (rw.structured_hinge(s, y, "f1") for s in (a, b))
        assert at_a.value >= rw.ranking_loss(a, y, "f1") - slack(at_a.value)
        assert at_b.value >= at_a.value + float(at_a.gradient @ (b - a)) - slack(at_b.value)


def test_grades_are_a_mean_over_thresholds(rng: np.random.Generator) -> None:
    for _ in range(20):
        grades, s = rng.permutation([0, 0, 0, 1, 1, 2, 2, 2, 4]), rng.normal(size=9)
        steps = {1: 1.0, 2: 1.0, 4: 2.0}  # what each grade is worth beyond the one before
        parts = [(step / 4.0, rw.structured_hinge(s, grades >= grade, "f1")) for grade, step in steps.items()]
        found = rw.structured_hinge(s, grades, "f1")
        assert found.value == pytest.approx(sum(share * part.value for share, part in parts), rel=RTOL)
        np.testing.assert_allclose(found.gradient, sum(share * part.gradient for share, part in parts), atol=1e-15)
        expected = sum(step / 4.0 * rw.ranking_loss(s, grades >= grade, "f1") for grade, step in steps.items())
        assert rw.ranking_loss(s, grades, "f1") == pytest.approx(expected, rel=RTOL)


def test_it_says_that_it_breaks_c1_and_methods_that_need_that_refuse_it() -> None:
    s, y = [3.0, 2.0, 1.0, 0.0], [False, True, False, True]
    assert as_loss("f1").qs_suitable is False
    assert repr(rw.FMeasure()) == "FMeasure()"
    with pytest.raises(rw.NotQSSuitableError, match=r"f1 breaks \(C1\).*method='auto'"):
        rw.check_qs_suitable("f1", 2, 2)
    for method in ("bucketed", "quicksort", "yue", "mohapatra2014", "dynamic", "chakrabarti"):
        with pytest.raises(rw.NotQSSuitableError, match=r"f1 breaks \(C1\).*'exhaustive'"):
            rw.structured_hinge(s, y, rw.FMeasure(), method=method)
    with pytest.raises(ValueError, match="scale must be finite and at least 0"):
        rw.structured_hinge(s, y, "f1", scale=-1.0)


@pytest.mark.parametrize("n", [5, 50_000])
def test_a_score_that_is_not_finite_is_named(n: int) -> None:
    s, y = np.arange(n) * 1.0, np.arange(n) < 2
    s[3] = np.nan
    for qid in (None, np.zeros(n, int)):
        with pytest.raises(ValueError, match=r"scores\[3\] is nan"):
            rw.structured_hinge(s, y, "f1", qid=qid)


def test_empty_queries_count_0() -> None:
    found = rw.structured_hinge([1.0, 2.0, 0.5, 0.0], [True, True, False, True], "f1", qid=[1, 1, 2, 2])
    assert found.per_query is not None
    assert found.per_query.value[0] == 0.0
    assert np.abs(found.gradient[:2]).max() == 0.0
