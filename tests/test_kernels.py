"""The compiled parts one by one: selection, sorting, bucket maps and their edges, ties, grouping."""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import log2

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import rankwise as rw
from rankwise.inference import charts, quicksort
from rankwise.inference.bucketed import range_map
from rankwise.inference.buckets import BucketMap, all_within, count, log_edge
from rankwise.inference.grouping import order_by_key
from rankwise.inference.large import positions
from rankwise.inference.positives import order_descending
from rankwise.inference.regions import share_among_ties

# Elements moved by Algorithm 1, at most so many times N·log2(P + 2).
MOVES = 12
# Reads of an element by a selection, at most so many a number: quickselect alone needs n/5 of them on its worst input.
READS = 40
EDGE_RTOL = 1e-12  # of the largest score: edges are exact up to rounding

Draw = Callable[[np.random.Generator, int, int], np.ndarray]
Family = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def select(values: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, int]:
    val, idx, work = values.copy(), np.arange(values.size), np.zeros(3, np.int64)
    quicksort.select(val, idx, 0, values.size - 1, k, work)
    return val, idx, int(work[1])


@functools.total_ordering
class Undecided:
    """A number that McIlroy's adversary (1999) fixes as late as it can, and always to the algorithm's harm."""

    fixed = 0
    candidate: Undecided | None = None

    def __init__(self) -> None:
        self.value: int | None = None

    def __eq__(self, other: object) -> bool:
        return self is other

    def __lt__(self, other: Undecided) -> bool:
        if self is other:
            return False
        if self.value is None and other.value is None:
            (self if self is Undecided.candidate else other).fix()
        if self.value is None:
            Undecided.candidate = self
        elif other.value is None:
            Undecided.candidate = other
        return (-self.value if self.value is not None else -np.inf) < (
            -other.value if other.value is not None else -np.inf
        )

    def fix(self) -> None:
        Undecided.fixed += 1
        self.value = Undecided.fixed


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Selection in plain Python, on any list."""
    for name, value in vars(quicksort).copy().items():
        if hasattr(value, "py_func"):
            monkeypatch.setattr(quicksort, name, value.py_func)


def killer(n: int) -> list[float]:
    """Numbers on which selecting the median goes as badly as it can, made by playing against the selection itself."""
    Undecided.fixed, Undecided.candidate = 0, None
    numbers = [Undecided() for _ in range(n)]
    quicksort.select(list(numbers), list(range(n)), 0, n - 1, (n - 1) // 2, np.zeros(3, np.int64))
    return [float(-n if number.value is None else -number.value) for number in numbers]


class Counted(list):
    """A list that counts how often it is read."""

    reads = 0

    def __getitem__(self, k):  # type: ignore[no-untyped-def]
        self.reads += 1
        return super().__getitem__(k)


def assert_selected(values: np.ndarray, k: int) -> int:
    val, idx, moves = select(values, k)
    assert np.array_equal(values[idx], val)
    assert val[k] == np.sort(values)[::-1][k]
    assert val[:k].min(initial=np.inf) >= val[k] >= val[k + 1 :].max(initial=-np.inf)
    return moves


@pytest.mark.parametrize("n", [1, 2, 23, 24, 25, 100, 5000])
def test_select_puts_one_element_in_its_place(n: int, family: Family, rng: np.random.Generator) -> None:
    values = family(rng, np.zeros(n, bool))
    for k in {0, n // 3, (n - 1) // 2, n - 1}:
        assert_selected(values, k)


@pytest.mark.parametrize("n", [500, 2000, 4000])
@pytest.mark.usefixtures("uncompiled")
def test_select_is_linear_against_an_adversary(n: int) -> None:
    values = Counted(killer(n))
    assert len(set(values)) > n // 4  # the adversary has decided something
    quicksort.select(values, list(range(n)), 0, n - 1, (n - 1) // 2, np.zeros(3, np.int64))
    assert values.reads <= READS * n


@pytest.mark.parametrize("n_neg", [2000, 20_000, 200_000])
def test_algorithm_1_stays_within_its_bound_on_adversarial_scores(
    n_neg: int, adversary: Family, rng: np.random.Generator, draw_relevant: Draw
) -> None:
    for n_pos in (1, 10, 300):
        relevant = draw_relevant(rng, n_pos, n_neg)
        work = rw.inference.count_work(adversary(rng, relevant), relevant)
        assert work.moves <= MOVES * n_neg * log2(n_pos + 2)
        assert work.evaluated <= min(n_neg, 2 * n_pos * log2(n_neg) + 2)


def test_the_trace_covers_every_negative_once(family: Family, rng: np.random.Generator, draw_relevant: Draw) -> None:
    relevant = draw_relevant(rng, 15, 400)
    scores = family(rng, relevant)
    steps = rw.inference.trace(scores, relevant)
    covered = sorted(j for s in steps for j in ([s.m] if s.m else range(s.left, s.right + 1)))
    assert covered == list(range(1, 401))
    assert all(s.low <= s.opt <= s.high for s in steps)
    assert sum(s.m > 0 for s in steps) == rw.inference.count_work(scores, relevant).evaluated


UNEVEN: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "one outlier": lambda rng, n: np.where(np.arange(n) == n // 2, 1e12, rng.normal(size=n)),
    "exponents": lambda rng, n: 10.0 ** rng.uniform(-300, 299, n),
    "few values": lambda rng, n: rng.integers(0, 3, n) * 1.0,
    "constant": lambda rng, n: np.full(n, -2.5),
    "subnormal": lambda rng, n: rng.integers(0, 9, n) * 5e-324,
    "ascending": lambda rng, n: np.arange(n) * 1.0,
    "zeros of both signs": lambda rng, n: rng.choice([0.0, -0.0, 1.0], n),
    "huge": lambda rng, n: rng.uniform(-1e300, 1e300, n),
}


@pytest.mark.parametrize("kind", UNEVEN)
@pytest.mark.parametrize("n", [0, 1, 2, 24, 25, 49, 1000, 30_000])
def test_sorting_agrees_with_numpy_and_is_stable(n: int, kind: str, rng: np.random.Generator) -> None:
    values = UNEVEN[kind](rng, n)
    found, order = order_descending(values)
    assert np.array_equal(found, np.sort(values)[::-1])
    assert np.array_equal(order, np.argsort(-values, kind="stable"))


@pytest.mark.parametrize("n_keys", [1, 2, 7, 1000])
@pytest.mark.parametrize("n", [1, 10, 3000])
def test_a_counting_sort_is_a_stable_argsort(n: int, n_keys: int, rng: np.random.Generator) -> None:
    keys = rng.integers(0, n_keys, n)
    order, ends = order_by_key(keys, n_keys)
    assert np.array_equal(order, np.argsort(keys, kind="stable"))
    assert np.array_equal(ends, np.cumsum(np.bincount(keys, minlength=n_keys)))


@pytest.mark.parametrize("n", [1, 7, 8, 9, 63, 64, 1000, 1003])
def test_positions_of_positives_are_all_found(n: int, rng: np.random.Generator) -> None:
    for share in (0.0, 0.05, 0.5, 1.0):
        relevant = rng.random(n) < share
        found = positions(relevant, np.empty(int(relevant.sum()), np.int64))
        assert np.array_equal(found, np.flatnonzero(relevant))


def buckets_of(scores: np.ndarray, chart: BucketMap) -> np.ndarray:
    bucket, hist = np.empty(scores.size, np.uint64), np.zeros(chart.n_buckets + 1, np.uint32)
    assert count(scores, np.inf, chart, bucket, hist)
    assert np.array_equal(hist[:-1], np.bincount(bucket.astype(np.int64), minlength=chart.n_buckets))
    return bucket.astype(np.int64)


def edge_of(chart: BucketMap, b: int) -> float:
    if chart.zoom == 0.0:
        return chart.centre + (b - chart.offset) * chart.width
    return float(log_edge(chart, float(b)))


def assert_chart_is_sound(scores: np.ndarray, chart: BucketMap) -> None:
    """Buckets rise with scores, and each edge divides the scores as the buckets do."""
    scores = np.sort(scores)
    bucket = buckets_of(scores, chart)
    assert (bucket >= 0).all()
    assert (bucket < chart.n_buckets).all()
    assert (np.diff(bucket) >= 0).all()
    slack = EDGE_RTOL * np.abs(scores).max()
    for b in np.unique(bucket):
        inside = scores[bucket == b]
        if b > 0:
            assert inside[0] >= edge_of(chart, int(b)) - slack
        if b + 1 < chart.n_buckets:
            assert inside[-1] <= edge_of(chart, int(b) + 1) + slack


finite = st.floats(-1e6, 1e6, width=64) | st.integers(-5, 5).map(float)


@settings(max_examples=300, deadline=None)
@given(hnp.arrays(np.float64, st.integers(2, 60), elements=finite), st.sampled_from([16, 64, 1024]))
def test_a_linear_map_of_the_range_is_sound(scores: np.ndarray, n_buckets: int) -> None:
    assert_chart_is_sound(scores, BucketMap(*range_map(scores.min(), scores.max(), n_buckets)))


@settings(max_examples=300, deadline=None)
@given(hnp.arrays(np.float64, st.integers(2, 60), elements=finite), st.sampled_from([1 << 10, 1 << 14]))
def test_the_chosen_chart_is_sound(scores: np.ndarray, n_buckets: int) -> None:
    assume(np.ptp(scores) > 1e-9 * np.abs(scores).max())
    assert_chart_is_sound(scores, charts.choose(np.unique(scores), n_buckets))


@settings(max_examples=300, deadline=None)
@given(
    hnp.arrays(np.float64, st.integers(2, 60), elements=finite),
    st.sampled_from([0.0, -3.5, 1000.0]),
    st.sampled_from([1e-3, 1.0, 1e5]),
)
def test_a_logarithmic_map_is_sound(scores: np.ndarray, centre: float, zoom: float) -> None:
    y = (np.array([scores.min(), scores.max()]) - centre) * zoom
    low, high = np.copysign(np.log2(1 + np.abs(y)), y)
    assume(high - low > 1e-3)
    assert_chart_is_sound(scores, charts._logarithmic(centre, zoom, float(low), float(high), 1 << 12))


def test_heavy_tails_get_a_logarithmic_chart_and_even_scores_a_linear_one(rng: np.random.Generator) -> None:
    assert charts.choose(np.sort(rng.normal(size=2000)), 1 << 12).zoom == 0.0
    heavy = np.sort(rng.standard_cauchy(2000))
    chart = charts.choose(heavy, 1 << 12)
    assert chart.zoom > 0.0
    equal_widths = charts._linear(heavy[0], heavy[-1], 1 << 12)
    fullest, fullest_of_equal = (np.bincount(buckets_of(heavy, c)).max() for c in (chart, equal_widths))
    assert 10 * fullest < fullest_of_equal


def test_zeros_of_both_signs_share_a_bucket() -> None:
    zeros = np.array([0.0, -0.0])
    for octaves in range(10, 40):
        chart = charts._logarithmic(0.0, 16.0, -float(octaves), float(octaves), 1 << 14)
        assert np.unique(buckets_of(zeros, chart)).size == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_score_beyond_the_limit_is_seen(dtype: type, bad: float) -> None:
    for n, k in [(1, 0), (17, 16), (5000, 2048), (5000, 4999)]:
        scores = np.zeros(n, dtype)
        assert all_within(scores, 1e30)
        scores[k] = bad
        assert not all_within(scores, 1e30)


def test_ties_across_ranks_share_their_mean_gradient() -> None:
    # Ranks 1 1 2 2 3 4: the score 5 spans ranks 1 and 2, the score 3 spans 2, 3 and 4; in no order within a rank.
    mixed = np.array([5.0, 7.0, 3.0, 5.0, 3.0, 3.0])
    rank = np.array([1, 1, 2, 2, 3, 4])
    index, unit, worst = np.array([4, 0, 2, 1, 3, 5]), 0.5, 5
    gradient = np.empty(6)
    gradient[index] = unit * (worst - rank)
    share_among_ties(mixed, index, rank, 0, 6, unit, worst, gradient)
    expected = {5.0: unit * (5 - (1 + 2) / 2), 7.0: unit * (5 - 1), 3.0: unit * (5 - (2 + 3 + 4) / 3)}
    assert gradient[index].tolist() == [expected[score] for score in mixed]
