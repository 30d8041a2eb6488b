"""Against brute force over candidates and rankings: the risk of a convex step, its minimum, and where alternation ends.

Everything here is by the definition: a ranking is a permutation of the bags, a labelling a sign for each.
"""

from __future__ import annotations

import itertools
import warnings
from functools import cache
from typing import Any

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from bag_problems import LOSSES, ROUNDING, TENS, ZEROS, Planted, planted
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import rankwise as rw
from rankwise.latent import cccp
from rankwise.latent.bags import as_bags
from rankwise.linear.objective import Clock
from rankwise.linear.task import pose
from rankwise.metrics.registry import as_loss

Array = NDArray[np.float64]
RTOL = 1e-6  # of clarabel's optimum
pytestmark = pytest.mark.filterwarnings(ZEROS)


def draw(seed: int, n_pos: int, n_neg: int) -> Planted:
    return planted(n_pos + n_neg, seed, 1.5, 2, 3, n_pos)


def delta(loss: str, truth: NDArray[np.bool_]) -> float:
    """1 − the measure of relevance read from the top."""
    ranks = 1 + np.flatnonzero(truth)
    n_pos = ranks.size
    if loss == "ap":
        return 1.0 - float(np.mean(np.arange(1, n_pos + 1) / ranks))
    if loss == "ndcg":
        return 1.0 - float(np.sum(1 / np.log2(1 + ranks)) / np.sum(1 / np.log2(1 + np.arange(1, n_pos + 1))))
    if loss == "mrr":
        return 1.0 - 1.0 / float(ranks[0])
    return 1.0 - float(np.mean([rank < other for rank in ranks for other in 1 + np.flatnonzero(~truth)]))


@cache
def outputs(loss: str, truth: tuple[bool, ...]) -> tuple[Array, Array]:
    """Δ of every output, and the factor of each bag's features in F(output) − F(truth)."""
    relevant = np.array(truth)
    n, n_pairs = relevant.size, int(relevant.sum() * (~relevant).sum())
    found = []
    if loss == "zero-one":
        y = np.where(relevant, 1.0, -1.0)
        for said in itertools.product([1.0, -1.0], repeat=n):
            found.append([np.mean(said != y), *((said - y) / (2 * n))])
    else:
        for order in itertools.permutations(range(n)):
            place = np.argsort(order)
            factor = np.zeros(n)
            for x, z in itertools.product(np.flatnonzero(relevant), np.flatnonzero(~relevant)):
                ahead = 1.0 if place[x] < place[z] else -1.0
                factor[x] += (ahead - 1.0) / n_pairs
                factor[z] -= (ahead - 1.0) / n_pairs
            found.append([delta(loss, relevant[list(order)]), *factor])
    table = np.unique(np.round(found, 14), axis=0)
    return table[:, 0], table[:, 1:]


def planes(tiny: Planted, loss: str, imputed: NDArray[np.int64], scale: float = 1.0) -> tuple[Array, Array]:
    """Offset and normal for every output and every choice of the negatives' candidates."""
    deltas, factors = outputs(loss, tuple(tiny.y.tolist()))
    bags = [np.pad(bag, [(0, 0), (0, 1)], constant_values=TENS) for bag in tiny.bags] if loss == "zero-one" else None
    choices = [
        bag[[pick]] if positive else bag for bag, pick, positive in zip(bags or tiny.bags, imputed, tiny.y, strict=True)
    ]
    normals = [factors @ np.array(chosen) for chosen in itertools.product(*choices)]
    return scale * np.tile(deltas, len(normals)), np.concatenate(normals)


def minimum(offsets: Array, normals: Array, C: float) -> float:
    """min ½‖v‖² + C ξ with ξ ≥ offset + normal·v for every plane."""
    d = normals.shape[1]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    solution = clarabel.DefaultSolver(
        sp.csc_matrix(np.diag([*np.ones(d), 0.0])),
        np.append(np.zeros(d), 1.0),
        sp.csc_matrix(np.column_stack([np.sqrt(C) * normals, -np.ones(offsets.size)])),
        -offsets,
        [clarabel.NonnegativeConeT(offsets.size)],
        settings,
    ).solve()
    assert str(solution.status) in ("Solved", "AlmostSolved")
    return float(C * solution.obj_val)


def fitted(tiny: Planted, loss: str, C: float, init: Any, **options: Any) -> rw.LatentRankSVM:
    model = rw.LatentRankSVM(loss, C, init=init, tol=1e-8, outer_tol=1e-9, **options)
    with warnings.catch_warnings():
        if "max_outer" in options:
            warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(tiny.bags, tiny.y)


@pytest.mark.parametrize("scale", [1.0, 0.3])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("n_pos", "n_neg"), [(3, 3), (2, 4)])
def test_the_risk_of_a_convex_step_is_the_highest_over_candidates_and_rankings(
    n_pos: int, n_neg: int, loss: str, scale: float, rng: np.random.Generator
) -> None:
    tiny = draw(n_pos, n_pos, n_neg)
    bags = as_bags(tiny.bags)
    imputed = rng.integers(0, bags.sizes)
    task, intercept = pose(tiny.y, as_loss(loss), surrogate=rw.Hinge(scale)), TENS if loss == "zero-one" else 0.0
    problem = cccp.Problem(bags, tiny.y, task, 2.0, intercept, 1e-3, 1e-3, 5, 100)
    state = cccp.begin(problem, bags.starts + imputed, None)
    objective = cccp._objective(problem, state)
    offsets, normals = planes(tiny, loss, imputed, scale)
    points = 3.0 * rng.normal(size=(20, normals.shape[1]))
    for v in points:
        risk, cut = objective.evaluate(v)
        heights = offsets + normals @ v
        assert risk == pytest.approx(heights.max(), rel=ROUNDING, abs=ROUNDING)
        assert cut.offset + cut.normal @ v == pytest.approx(risk, rel=ROUNDING, abs=ROUNDING)
        everywhere = (offsets[:, None] + normals @ points.T).max(axis=0)
        assert (cut.offset + points @ cut.normal <= everywhere + ROUNDING).all()
        best, best_rows, fixed = cccp._pass(problem, v, state.fixed)
        for i, bag in enumerate(tiny.bags):
            scores = bag @ v[:2] + (TENS * v[2] if loss == "zero-one" else 0.0)
            assert best[i] == pytest.approx(scores.max(), rel=ROUNDING, abs=ROUNDING)
            assert best_rows[i] == bags.starts[i] + np.argmax(scores)
            assert fixed[i] == pytest.approx(scores[imputed[i]], rel=ROUNDING, abs=ROUNDING)
        bound = problem.value(v, np.where(tiny.y, fixed, best), Clock())
        assert bound == pytest.approx(0.5 * v @ v + 2.0 * heights.max(), rel=ROUNDING)


@pytest.mark.parametrize("C", [0.1, 30.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_convex_step_ends_at_the_minimum_of_the_programme_with_every_plane(
    loss: str, C: float, route: str, rng: np.random.Generator
) -> None:
    for seed in range(2):
        tiny = draw(seed, 2, 3)
        imputed = np.array([rng.integers(len(bag)) for bag in tiny.bags])
        optimum = minimum(*planes(tiny, loss, imputed), C)
        model = fitted(tiny, loss, C, imputed, max_outer=1)
        assert model.history_["primal"][0] == pytest.approx(optimum, rel=RTOL)
        assert model.history_["dual"][0] == pytest.approx(optimum, rel=RTOL)
        assert model.gap_ <= 1e-8
        assert model.history_["objective"][0] <= model.history_["primal"][0]


def by_definition(tiny: Planted, loss: str, C: float, model: rw.LatentRankSVM) -> float:
    """½‖v‖² + C·risk with every positive at its best candidate."""
    v = model.coef_[0] if loss != "zero-one" else np.append(model.coef_[0], model.intercept_ / TENS)
    best = np.array([np.argmax(bag @ model.coef_[0]) for bag in tiny.bags])
    offsets, normals = planes(tiny, loss, best)
    return 0.5 * float(v @ v) + C * float(np.max(offsets + normals @ v))


@cache
def optima(seed: int, loss: str, C: float) -> tuple[Planted, dict[tuple[int, ...], float]]:
    """A tiny problem, and the minimum for every choice of the positives' candidates."""
    tiny = draw(seed, 2, 3)
    ranges = [range(len(bag)) if positive else range(1) for bag, positive in zip(tiny.bags, tiny.y, strict=True)]
    return tiny, {pick: minimum(*planes(tiny, loss, np.array(pick)), C) for pick in itertools.product(*ranges)}


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_alternation_ends_at_a_minimum_of_its_own_candidates_and_the_best_of_all_starts_at_the_global_one(
    loss: str, route: str
) -> None:
    below = 0
    for seed in (2, 3):
        tiny, values = optima(seed, loss, 5.0)
        lowest = min(values.values())
        models = {pick: fitted(tiny, loss, 5.0, np.array(pick)) for pick in values}
        names: dict[Any, Any] = {init: fitted(tiny, loss, 5.0, init) for init in ("mean", "first", "random")}
        for start, model in (models | names).items():
            assert model.converged_
            best = tuple(np.where(tiny.y, model.best_candidate(tiny.bags), 0).tolist())
            assert model.objective_ == pytest.approx(values[best], rel=RTOL)
            assert model.objective_ == pytest.approx(by_definition(tiny, loss, 5.0, model), rel=ROUNDING)
            assert model.objective_ <= values.get(start, np.inf) * (1 + RTOL)
        reached = [model.objective_ for model in models.values()]
        assert min(reached) == pytest.approx(lowest, rel=RTOL)
        below += int(np.ptp(reached) > RTOL)
    assert below, "no start was worse than another: the problems are too easy to tell"
