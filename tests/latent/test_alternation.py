"""The alternation: the objective never rises, every convex step has a true certificate, both routes end alike."""

from __future__ import annotations

import itertools
import warnings
from copy import copy
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import rankwise as rw
from rankwise.latent import bags as bags_module
from rankwise.latent import cccp, training
from rankwise.latent.bags import Bags, as_bags
from rankwise.latent.cccp import State, WorkingSet, best_of

Array = NDArray[np.float64]
LOSSES = ["ap", "ndcg", "mrr", "auc", "zero-one"]
INITS = ["mean", "first", "centre", "random"]
ROUNDING = 1e-9
TENS = 10.0
ROUTES = ["all candidates", "working set"]
# Zeros may be a minimum: it is said, and not what these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore:LatentRankSVM found only coefficients of 0")


def draw(rng: np.random.Generator, n: int = 24, most: int = 8, width: int = 4) -> tuple[list[Array], NDArray[np.bool_]]:
    relevant = rng.permutation(np.arange(n) < rng.integers(2, n // 2))
    bags = [rng.normal(size=(rng.integers(1, most + 1), width)) for _ in relevant]
    for bag, positive in zip(bags, relevant, strict=True):
        bag[rng.integers(len(bag)), 0] += 4.0 * positive
    return bags, relevant


@pytest.fixture(params=ROUTES)
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(cccp, "_SMALL", 0 if request.param == "working set" else 1 << 21)
    return str(request.param)


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> list[State]:
    """Every state a fit goes through: where it begins, and after each round."""
    seen: list[State] = []
    real = training.minimise

    def minimise(problem: Any, state: State, after: Any) -> None:
        def noted(now: State) -> None:
            seen.append(copy(now))
            seen[-1].history = list(now.history)
            after(now)

        seen.append(copy(state))
        seen[-1].history = list(state.history)
        real(problem, state, noted)

    monkeypatch.setattr(training, "minimise", minimise)
    return seen


def objective(bags: list[Array], relevant: Any, loss: str, C: float, v: Array, fixed: Any = None) -> float:
    """F at v; fixed: candidates of positives, for the bound of F that they give."""
    width, starts = bags[0].shape[1], as_bags(bags).starts
    every = np.concatenate(bags) @ v[:width] + (TENS * v[width] if v.size > width else 0.0)
    scores = np.maximum.reduceat(every, starts)
    if fixed is not None:
        scores = np.where(relevant, every[starts + fixed], scores)
    return 0.5 * float(v @ v) + C * rw.structured_hinge(scores, relevant, loss).value


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_the_objective_never_rises_and_every_bound_is_true(
    loss: str, route: str, states: list[State], rng: np.random.Generator
) -> None:
    steps = changed = learnt = 0
    for number in range(4):
        bags, relevant = draw(rng)
        starts = as_bags(bags).starts
        C = float(rng.choice([0.1, 1.0, 30.0]))
        options = {"init": INITS[number % 4], "random_state": number, "max_outer": 100}
        states.clear()
        model = rw.LatentRankSVM(loss, C, outer_tol=1e-6, **options).fit(bags, relevant)
        assert model.converged_
        others = [state.coef for state in states[:: 1 + len(states) // 12]]
        ends = [states[0].coef]
        last = np.inf
        if INITS[number % 4] == "mean":
            last = objective(bags, relevant, loss, C, states[0].coef)
        for before, now in itertools.pairwise(states):
            imputed = before.fixed - starts
            closed = len(now.history) > len(before.history)
            inner = [objective(bags, relevant, loss, C, v, imputed) for v in others]
            if not closed:
                assert now.primal <= before.primal
                assert now.dual >= before.dual
                here = objective(bags, relevant, loss, C, now.coef, imputed)
                assert now.primal == pytest.approx(here, rel=ROUNDING)
            dual, primal = (now.history[-1].dual, now.history[-1].primal) if closed else (now.dual, now.primal)
            assert dual <= min(inner) * (1 + ROUNDING)
            assert dual <= primal * (1 + ROUNDING)
            if not closed:
                continue
            value = objective(bags, relevant, loss, C, now.coef)
            assert now.history[-1].objective == pytest.approx(value, rel=ROUNDING)
            assert now.history[-1].primal >= value * (1 - ROUNDING)
            assert now.history[-1].gap <= 1e-3
            assert value <= last * (1 + ROUNDING)
            last = value
            steps += 1
            changed += now.history[-1].changed
            ends.append(now.coef)
        earlier, final = (objective(bags, relevant, loss, C, v) for v in ends[-2:])
        assert model.objective_ == pytest.approx(final, rel=ROUNDING)
        assert model.history_["changed"][-1] == 0 or earlier - final <= 1e-6 * final * (1 + ROUNDING)
        learnt += bool(model.coef_.any())
        assert model.n_iter_ == len(model.history_["objective"]) == len(states[-1].history)
    assert steps > 5
    assert changed > 0
    assert learnt >= 3


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.3, 30.0])
def test_a_working_set_ends_where_all_candidates_do(
    loss: str, C: float, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    for _ in range(3):
        bags, relevant = draw(rng, n=40, most=12)
        found = []
        for small in (1 << 21, 0):
            monkeypatch.setattr(cccp, "_SMALL", small)
            model = rw.LatentRankSVM(loss, C, init="first", tol=1e-7, max_outer=1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                found.append(model.fit(bags, relevant))
        whole, part = found
        assert whole.history_["rounds"][0] == 1
        assert part.history_["rounds"][0] > 1
        assert part.history_["primal"][0] == pytest.approx(whole.history_["primal"][0], rel=3e-7)
        radius = sum(np.sqrt(2e-7 * model.history_["primal"][0]) for model in found)
        assert np.linalg.norm(whole.coef_ - part.coef_) <= radius


def test_a_working_set_holds_few_of_the_candidates(states: list[State], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cccp, "_SMALL", 0)
    passes, real = [], bags_module.candidate_scores
    monkeypatch.setattr(bags_module, "candidate_scores", lambda *args: passes.append(None) or real(*args))
    bags, relevant = draw(np.random.default_rng(7), n=200, most=60)
    model = rw.LatentRankSVM(C=3.0).fit(bags, relevant)
    n = sum(map(len, bags))
    assert model.converged_
    assert max(state.working.size for state in states) < n / 4
    for state in states:
        assert set(state.owner) == set(range(200))
        np.testing.assert_array_equal(np.bincount(state.owner)[relevant], 1)
        starts = as_bags(bags).starts
        np.testing.assert_array_equal(np.searchsorted(starts, state.working, side="right") - 1, state.owner)
        np.testing.assert_array_equal(state.working[relevant[state.owner]], np.sort(state.fixed[relevant]))
    assert model.timing_["passes"] == len(passes) > 3


def test_candidates_of_no_use_for_five_rounds_are_dropped() -> None:
    bags = Bags(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [5.0, 5.0]]), [0, 3, 4])
    working = WorkingSet(bags, np.array([0, 1, 2, 3]), np.array([0, 0, 0, 1]), np.zeros(4, np.int64))
    for working.round in range(1, 6):
        np.testing.assert_array_equal(working.scores(np.array([1.0, 0.0])), [1.0, 5.0])
        assert working.add(np.array([0]), np.array([0])) == 0
        assert working.rows.tolist() == ([0, 1, 2, 3] if working.round < 5 else [0, 3])
    assert working.add(np.array([2, 0]), np.array([0, 0])) == 1
    assert working.rows.tolist() == [0, 2, 3]
    np.testing.assert_array_equal(working.scores(np.array([0.0, -1.0])), [1.0, -5.0])
    np.testing.assert_array_equal(working.combine(np.array([2.0, 1.0])), [3.0, 3.0])
    working.fix(np.array([1]), np.array([0]))
    assert working.rows.tolist() == [1, 3]
    np.testing.assert_array_equal(working.scores(np.array([0.0, -1.0])), [-1.0, -5.0])


def test_repeated_bags_have_candidates_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    listed, relevant = draw(np.random.default_rng(8), n=12)
    twice = np.r_[np.arange(12), np.arange(12)]
    bags = as_bags(listed)[twice]
    init = np.r_[np.zeros(12, int), bags.sizes[:12] - 1]
    models = []
    for small in (1 << 21, 0):
        monkeypatch.setattr(cccp, "_SMALL", small)
        models.append(rw.LatentRankSVM(C=30.0, init=init, tol=1e-6).fit(bags, relevant[twice]))
    assert models[0].converged_
    assert models[1].converged_
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=3e-6)


def test_of_equal_candidates_the_first_is_the_best() -> None:
    best, where = best_of(np.array([1.0, 3.0, 3.0, 2.0, 2.0, -1.0]), np.array([0, 3, 5]))
    assert best.tolist() == [3.0, 2.0, -1.0]
    assert where.tolist() == [1, 3, 5]


def test_a_tolerance_no_rounding_allows_ends_with_a_warning(route: str) -> None:
    bags, relevant = draw(np.random.default_rng(9))
    bags = [bag + 1e5 for bag in bags]  # differences of candidates lose five digits
    with pytest.warns(ConvergenceWarning, match=r"gap of \d.*tol=1e-17: rounding errors prevent progress") as caught:
        model = rw.LatentRankSVM("zero-one", C=30.0, tol=1e-17).fit(bags, relevant)
    assert caught[0].filename == __file__
    assert not model.converged_
    assert 0.0 < model.gap_ < 1e-4


def test_too_few_steps_or_iterations_are_said(route: str) -> None:
    bags, relevant = draw(np.random.default_rng(10), n=60)
    with pytest.warns(ConvergenceWarning, match="max_outer=1 reached; raise it"):
        model = rw.LatentRankSVM("zero-one", C=30.0, init="first", max_outer=1).fit(bags, relevant)
    assert model.n_iter_ == 1
    with pytest.warns(ConvergenceWarning, match="max_iter=1 reached; raise it"):
        model = rw.LatentRankSVM(C=30.0, max_iter=1).fit(bags, relevant)
    assert not model.converged_
    assert model.gap_ > model.tol


def test_a_model_of_zeros_is_said(route: str) -> None:
    rng = np.random.default_rng(12)
    bags = [rng.normal(size=(8, 3)) for _ in range(40)]  # nothing to be learnt, and a way up in every direction
    with pytest.warns(ConvergenceWarning, match="found only coefficients of 0") as caught:
        model = rw.LatentRankSVM(C=1.0, init="first").fit(bags, np.arange(40) < 10)
    assert caught[0].filename == __file__
    assert not model.coef_.any()
    assert model.converged_
