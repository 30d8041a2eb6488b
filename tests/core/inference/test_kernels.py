"""The compiled parts one by one: selection, sorting, bucket maps and their edges, ties, grouping."""

from __future__ import annotations

from collections.abc import Callable
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import rankwise as rw
from rankwise.kernels import algorithm1
from rankwise.kernels.buckets import choosing
from rankwise.kernels.buckets.maps import FOLDED, KEYED, LINEAR, BucketMap, cells_of, edge, place, third
from rankwise.kernels.buckets.passes import COPIES, OWN, count
from rankwise.kernels.buckets.places import settle
from rankwise.kernels.compiled import kernel
from rankwise.kernels.flags import all_within, positions
from rankwise.kernels.half import from_half, to_half
from rankwise.kernels.sorting import move_apart, order_by_key, order_descending
from rankwise.kernels.walk import share_among_ties

# Elements moved by Algorithm 1, at most so many times N·log2(P + 2).
MOVES = 12

Draw = Callable[[np.random.Generator, int, int], np.ndarray]
Family = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def select(values: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, int]:
    val, idx, work = values.copy(), np.arange(values.size), np.zeros(3, np.int64)
    algorithm1.select(val, idx, 0, values.size - 1, k, work)
    return val, idx, int(work[1])


def assert_selected(values: np.ndarray, k: int, told: str) -> None:
    val, idx, _ = select(values, k)
    assert np.array_equal(values[idx], val), told
    assert val[k] == np.sort(values)[::-1][k], told
    assert val[:k].min(initial=np.inf) >= val[k] >= val[k + 1 :].max(initial=-np.inf), told


@pytest.mark.parametrize("n", [1, 2, 23, 24, 25, 100, 5000])
def test_select_puts_one_element_in_its_place(n: int, families: dict[str, Family], rng: np.random.Generator) -> None:
    for name, family in families.items():
        values = family(rng, np.zeros(n, bool))
        for k in {0, n // 3, (n - 1) // 2, n - 1}:
            assert_selected(values, k, name)


def test_select_sorts_what_resists_it(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    sorted_now: list[int] = []
    sort = algorithm1.merge_run
    monkeypatch.setattr(algorithm1, "merge_run", lambda *args: sorted_now.append(args[3] - args[2]) or sort(*args))
    values = rng.normal(size=2000)
    assert_selected(values, 999, "as usual")
    assert not sorted_now
    monkeypatch.setattr(algorithm1, "PATIENCE", 1)
    assert_selected(values, 999, "impatient")
    assert len(sorted_now) == 1
    assert sorted_now[0] < 2000


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


@pytest.mark.parametrize("n", [0, 1, 2, 31, 32, 33, 49, 511, 512, 1000, 30_000, 32_767, 32_768, 100_000])
def test_sorting_agrees_with_numpy_and_is_stable(n: int, rng: np.random.Generator) -> None:
    for kind, draw in UNEVEN.items():
        values = draw(rng, n)
        found, order = order_descending(values)
        assert np.array_equal(found, np.sort(values)[::-1]), kind
        assert np.array_equal(order, np.argsort(-values, kind="stable")), kind


@pytest.mark.parametrize("n_keys", [1, 2, 7, 1000])
@pytest.mark.parametrize("n", [1, 10, 3000])
def test_a_counting_sort_is_a_stable_argsort(n: int, n_keys: int, rng: np.random.Generator) -> None:
    keys = rng.integers(0, n_keys, n)
    order, ends = order_by_key(keys, n_keys)
    assert np.array_equal(order, np.argsort(keys, kind="stable"))
    assert np.array_equal(ends, np.cumsum(np.bincount(keys, minlength=n_keys)))


@pytest.mark.parametrize("n", [2, 40, 20_000])
def test_negatives_come_first_then_positives_as_they_are(n: int, rng: np.random.Generator) -> None:
    for share in (0.05, 0.5, 0.95):
        values, relevant = rng.normal(size=n).astype(np.float32), rng.random(n) < share
        found, order = np.empty(n), np.empty(n, np.int64)
        separate(values, relevant, found, order)
        assert np.array_equal(order, np.concatenate([np.flatnonzero(~relevant), np.flatnonzero(relevant)]))
        assert np.array_equal(found, values[order])


@kernel
def separate(scores, relevant, val, idx):
    move_apart(scores, relevant, val, idx)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 63, 64, 1000, 1003])
def test_positions_of_positives_are_all_found(n: int, rng: np.random.Generator) -> None:
    for share in (0.0, 0.05, 0.5, 1.0):
        relevant = rng.random(n) < share
        where = np.empty(int(relevant.sum()) + 1, np.int64)
        assert np.array_equal(where[: positions(relevant, where)], np.flatnonzero(relevant))


def test_positions_stay_within_their_room() -> None:
    where = np.full(4, -7, np.int64)
    assert positions(np.ones(100, bool), where[:3]) == 2
    assert where[3] == -7


@kernel
def cells_and_buckets(scores, chart, last, pivot):
    """The cell of each score as a chunk has it, its bucket as a chunk and as a single score has it."""
    cells, chunk, single = (
        np.empty(scores.size, np.int32),
        np.empty(scores.size, np.int64),
        np.empty(scores.size, np.int64),
    )
    cells_of(scores, chart, last, cells)
    for k in range(scores.size):
        at = np.uint32(cells[k])
        chunk[k] = np.int64(third(at, scores[k], pivot[at])) if pivot.size > 0 else np.int64(at)
        single[k] = place(scores[k], chart, pivot)
    return cells, chunk, single


@kernel
def edges_of(chart, pivot, buckets):
    return np.array([edge(chart, pivot, b) for b in buckets])


@kernel
def made(kind, ordered, n_cells, scores):
    """A map of one kind for scores in descending order."""
    if kind == FOLDED:
        return choosing.folded_map(ordered, np.int64(ordered.size), n_cells, scores)
    if kind == LINEAR:
        return choosing.range_map(ordered[-1], ordered[0], n_cells, scores)
    return choosing.keyed_map(ordered[-1], ordered[0], n_cells, scores)


def chart_of(kind: int, scores: np.ndarray, n_cells: int) -> BucketMap:
    """A map of one kind for these scores, in their own type."""
    chart = made(kind, np.sort(scores).astype(np.float64)[::-1].copy(), n_cells, scores)
    own = scores.dtype.type
    return BucketMap(int(chart[0]), *(own(value) for value in chart[1:5]), *(int(value) for value in chart[5:]))


def assert_map_is_sound(scores: np.ndarray, chart: BucketMap, pivot: np.ndarray) -> None:
    """Buckets never fall as scores rise, a chunk and a single score agree, and an edge divides as the buckets do."""
    scores = np.sort(scores)
    cells, chunk, single = cells_and_buckets(scores, chart, scores.dtype.type(chart.last), pivot)
    assert cells.min() >= 0
    assert cells.max() <= chart.last
    assert np.array_equal(chunk, single)
    assert (np.diff(chunk) >= 0).all()
    found = np.unique(chunk[chunk > 0])
    for b, x in zip(found, edges_of(chart, pivot, found), strict=True):
        assert scores[chunk < b].max(initial=-np.inf) < x <= scores[chunk >= b].min()


def near(values: np.ndarray) -> np.ndarray:
    """Numbers and their neighbours."""
    with np.errstate(over="ignore", under="ignore"):
        return np.concatenate([values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)])


LARGEST = {np.float32: float(np.finfo(np.float32).max), np.float64: 1e300}
HARD: dict[str, Callable[[np.random.Generator, float], np.ndarray]] = {
    "powers of two": lambda rng, m: near(2.0 ** rng.integers(-30, 30, 200) * rng.choice([-1.0, 1.0], 200)),
    "an octave's edge": lambda rng, m: near(524288.0 + rng.integers(-8, 8, 200) / 8),
    "both extremes": lambda rng, m: np.concatenate([[m, -m], rng.normal(size=300)]),
    "denormals": lambda rng, m: rng.integers(-500, 500, 400) * (5e-324 if m < 1e301 and m > 1e200 else 1e-45),
    "an offset": lambda rng, m: 1e8 + rng.normal(size=400),
    "a large offset": lambda rng, m: 1e15 + rng.normal(size=400) * 8,
    "all magnitudes": lambda rng, m: rng.choice([-1.0, 1.0], 400) * 10.0 ** rng.uniform(-37, 37, 400),
    "saturated": lambda rng, m: 1 / (1 + np.exp(-12 * rng.normal(size=400))),
    "few values": lambda rng, m: rng.integers(0, 4, 400) / 3,
    "zeros of both signs": lambda rng, m: rng.choice([0.0, -0.0, 1.0, -1.0], 50),
    "one value": lambda rng, m: np.full(20, 0.1),
    "all but alike": lambda rng, m: near(near(np.full(20, 0.1))),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [LINEAR, KEYED, FOLDED], ids=["linear", "keyed", "folded"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("family", HARD)
def test_every_kind_of_map_is_sound(family: str, dtype: type, kind: int, rng: np.random.Generator) -> None:
    for n_cells in (16, 256, 1 << 14):
        with np.errstate(under="ignore"):
            scores = HARD[family](rng, LARGEST[dtype]).astype(dtype)
        chart = chart_of(kind, scores, n_cells)
        asked = np.concatenate([scores, near(scores.astype(dtype)), rng.normal(size=50).astype(dtype)])
        asked = asked[np.abs(asked) <= LARGEST[dtype]]
        assert_map_is_sound(asked, chart, np.empty(0, dtype))
        pivot = np.full(chart.last + 2, LARGEST[dtype], dtype)
        cells = cells_and_buckets(scores, chart, dtype(chart.last), np.empty(0, dtype))[0]
        pivot[cells] = scores
        assert_map_is_sound(asked, chart, pivot)


finite = st.floats(-1e6, 1e6, width=32) | st.integers(-5, 5).map(float) | st.integers(-20, 20).map(lambda e: 2.0**e)


@settings(max_examples=120, deadline=None)
@given(
    hnp.arrays(np.float64, st.integers(2, 60), elements=finite),
    st.sampled_from([LINEAR, KEYED, FOLDED]),
    st.sampled_from([16, 64, 1 << 14]),
)
def test_a_map_of_any_scores_is_sound(scores: np.ndarray, kind: int, n_cells: int) -> None:
    assert_map_is_sound(scores, chart_of(kind, scores, n_cells), np.empty(0))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [LINEAR, KEYED, FOLDED], ids=["linear", "keyed", "folded"])
def test_no_map_leaves_its_cells_whatever_it_is_given(kind: int, bad: float, rng: np.random.Generator) -> None:
    chart = chart_of(kind, rng.normal(size=100), 64)
    cells = cells_and_buckets(np.array([bad, 1.7e308, -1.7e308]), chart, float(chart.last), np.empty(0))[0]
    assert ((cells >= 0) & (cells <= chart.last)).all()


def test_the_map_suits_the_scores(rng: np.random.Generator) -> None:
    def kind_of(scores: np.ndarray) -> tuple[int, int]:
        chart, pivot = choosing.choose(scores, 100, 1e300)
        return int(chart[0]), pivot.size

    normal = rng.normal(size=100_000)
    assert kind_of(normal) == (LINEAR, 0)
    assert kind_of(10.0 ** rng.uniform(-300, 299, 100_000)) == (KEYED, 0)
    saturated = (1 / (1 + np.exp(-12 * normal))).astype(np.float32)
    assert kind_of(saturated) == (FOLDED, 0), "what is tied is alone in its bucket"
    assert kind_of(normal.astype(np.float16).astype(np.float32)) == (LINEAR, 0), "few are tied with any one"
    assert kind_of(np.round(normal, 1))[1] > 0


def test_frequent_scores_have_buckets_of_their_own(rng: np.random.Generator) -> None:
    scores = rng.choice(rng.normal(size=20), 50_000)
    chart, pivot = choosing.choose(scores, 100, 1e300)
    hist = np.zeros((COPIES, 3 * (chart.last + 1) + OWN), np.uint32)
    assert count(scores, 0, scores.size, np.empty(0, np.int64), 1e300, chart, pivot, hist)
    equal = hist[0][1::3]
    assert equal.sum() == scores.size
    assert np.array_equal(np.sort(equal[equal > 0]), np.sort(np.unique(scores, return_counts=True)[1]))


def test_a_tie_that_is_alone_in_its_bucket_is_settled_by_counts(rng: np.random.Generator) -> None:
    """A tenth of the negatives is tied at 1, where positives have their places: nothing of it is gathered."""
    s = np.r_[1 / (1 + np.exp(-12 * rng.normal(size=100_000))), np.full(5, 1 - 2.0**-10)].astype(np.float32)
    s[:10_000] = 1.0
    buckets, pivot = choosing.choose(s, 5, 1e30)
    n_buckets = buckets.last + 1
    hist, where = np.zeros((1, n_buckets + OWN), np.uint32), np.arange(100_000, 100_005)
    assert count(s, 0, s.size, where, 1e30, buckets, pivot, hist)
    above = np.r_[np.cumsum(hist[0, :n_buckets][::-1].astype(np.int64))[::-1], 0]
    home = np.full(5, cells_and_buckets(np.ones(1, np.float32), buckets, np.float32(buckets.last), pivot)[2][0])
    value, at_rank = np.empty(n_buckets + OWN, np.float32), np.zeros(7, np.int64)
    pos, none = np.full(5, 1 - 2.0**-10), np.zeros(1)
    regions, _ = settle(np.ones(5), none, 0, pos, 1, 6, 1, buckets, pivot, above, home, 1.0, 1.0, value, at_rank)
    assert hist[0, home[0]] >= 10_000
    assert regions.size == 0
    assert at_rank.sum() == 100_000


def test_half_precision_is_converted_as_numpy_does(rng: np.random.Generator) -> None:
    every = np.arange(1 << 16).astype(np.uint16).view(np.float16)
    assert np.array_equal(from_half(every).view(np.uint32), every.astype(np.float32).view(np.uint32))
    some = from_half(every[np.isfinite(every)])
    values = np.concatenate([near(some), (some[1:] + some[:-1]) / 2, rng.normal(size=10_000) * 1e-6]).astype(np.float32)
    values = values[np.abs(values) <= 65_504]
    assert np.array_equal(to_half(values).view(np.uint16), values.astype(np.float16).view(np.uint16))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_score_beyond_the_limit_is_seen(dtype: type, bad: float) -> None:
    for n, k in [(1, 0), (17, 16), (5000, 2048), (5000, 4999)]:
        scores = np.zeros(n, dtype)
        assert all_within(scores, 1e30)
        scores[k] = bad
        assert not all_within(scores, 1e30)


def test_ties_across_ranks_share_their_mean_gradient() -> None:
    # Of four positives the first is below 2 members, the second below 4, then 5 and 6: ranks are 1 1 2 2 3 4. The score
    # 5 spans ranks 1 and 2, the score 3 spans 2, 3 and 4.
    mixed, rank, places = np.array([7.0, 5.0, 5.0, 3.0, 3.0, 3.0]), np.array([1, 1, 2, 2, 3, 4]), np.array([2, 4, 5, 6])
    index, unit, worst = np.array([4, 0, 2, 1, 3, 5]), 0.5, 5
    gradient = np.empty(6)
    gradient[index] = unit * (worst - rank)
    share_among_ties(mixed, index, places, 4, 0, unit, gradient)
    expected = {5.0: unit * (5 - (1 + 2) / 2), 7.0: unit * (5 - 1), 3.0: unit * (5 - (2 + 3 + 4) / 3)}
    assert gradient[index].tolist() == [expected[score] for score in mixed]
