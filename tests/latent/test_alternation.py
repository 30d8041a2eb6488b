"""The alternation: the objective never rises, every convex step has a true certificate, both routes end alike."""

from __future__ import annotations

import itertools
import warnings
from copy import copy
from typing import Any

import numpy as np
import pytest
from bag_problems import LOSSES, ROUNDING, ROUTES, ZEROS, objective, planted
from sklearn.exceptions import ConvergenceWarning

import rankwise as rw
from rankwise.latent import bags as bags_module
from rankwise.latent import cccp, training
from rankwise.latent.bags import Bags, as_bags
from rankwise.latent.cccp import State, WorkingSet, best_of

pytestmark = pytest.mark.filterwarnings(ZEROS)


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> list[State]:
    """Every state a fit goes through: where it begins, and after each round."""
    seen: list[State] = []
    real = training.minimise

    def note(state: State) -> None:
        seen.append(copy(state))
        seen[-1].history, seen[-1].working = list(state.history), copy(state.working)

    def minimise(problem: Any, state: State, after: Any) -> None:
        note(state)
        real(problem, state, lambda now: (note(now), after(now)))

    monkeypatch.setattr(training, "minimise", minimise)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_the_objective_never_rises_and_every_bound_is_true(
    loss: str, route: str, states: list[State], rng: np.random.Generator
) -> None:
    steps = changed = learnt = 0
    for number, init in enumerate(("mean", "first", "mean", "random")):
        bags, y, _ = planted(24, number, 4.0, 4, 8, int(rng.integers(2, 12)))
        starts, C = as_bags(bags).starts, float(rng.choice([0.1, 1.0, 30.0]))
        states.clear()
        model = rw.LatentRankSVM(loss, C, init=init, random_state=number, max_outer=100, outer_tol=1e-6).fit(bags, y)
        assert model.converged_
        others = [state.coef for state in states[:: 1 + len(states) // 12]]
        ends = [states[0].coef]
        last = objective(bags, y, loss, C, states[0].coef) if init == "mean" else np.inf
        for before, now in itertools.pairwise(states):
            imputed = before.fixed - starts
            inner = [objective(bags, y, loss, C, v, imputed) for v in others]
            closed = len(now.history) > len(before.history)
            bounds = now.history[-1] if closed else now
            assert bounds.dual <= min(*inner, bounds.primal) * (1 + ROUNDING)
            if not closed:
                assert now.primal <= before.primal
                assert now.dual >= before.dual
                assert now.primal == pytest.approx(objective(bags, y, loss, C, now.coef, imputed), rel=ROUNDING)
                continue
            value = objective(bags, y, loss, C, now.coef)
            assert now.history[-1].objective == pytest.approx(value, rel=ROUNDING)
            assert now.history[-1].primal >= value * (1 - ROUNDING)
            assert now.history[-1].gap <= 1e-3
            assert value <= last * (1 + ROUNDING)
            last, steps, changed = value, steps + 1, changed + now.history[-1].changed
            ends.append(now.coef)
        earlier, final = (objective(bags, y, loss, C, v) for v in ends[-2:])
        assert model.objective_ == pytest.approx(final, rel=ROUNDING)
        assert model.history_["changed"][-1] == 0 or earlier - final <= 1e-6 * final * (1 + ROUNDING)
        assert model.n_iter_ == len(model.history_["objective"]) == len(states[-1].history)
        learnt += bool(model.coef_.any())
    assert steps > 5
    assert changed > 0
    assert learnt >= 3


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.3, 30.0])
def test_a_working_set_ends_where_all_candidates_do(loss: str, C: float, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(3):
        bags, y, _ = planted(40, seed, 4.0, 4, 12)
        found = []
        for small in ROUTES.values():
            monkeypatch.setattr(cccp, "_SMALL", small)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                found.append(rw.LatentRankSVM(loss, C, init="first", tol=1e-7, max_outer=1).fit(bags, y))
        whole, part = found
        assert part.history_["rounds"][0] > 1 == whole.history_["rounds"][0]
        assert part.history_["primal"][0] == pytest.approx(whole.history_["primal"][0], rel=3e-7)
        radius = sum(np.sqrt(2e-7 * model.history_["primal"][0]) for model in found)
        assert np.linalg.norm(whole.coef_ - part.coef_) <= radius


def test_a_working_set_holds_few_of_the_candidates(states: list[State], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cccp, "_SMALL", 0)
    passes, real = [], bags_module.candidate_scores
    monkeypatch.setattr(bags_module, "candidate_scores", lambda *args: passes.append(None) or real(*args))
    bags, y, _ = planted(200, 7, 4.0, 4, 60)
    starts = as_bags(bags).starts
    model = rw.LatentRankSVM(C=3.0).fit(bags, y)
    assert model.converged_
    assert max(state.working.rows.size for state in states) < sum(map(len, bags)) / 4
    for state in states:
        assert set(state.working.owner) == set(range(200))
        np.testing.assert_array_equal(np.bincount(state.working.owner)[y], 1)
        np.testing.assert_array_equal(
            np.searchsorted(starts, state.working.rows, side="right") - 1, state.working.owner
        )
        np.testing.assert_array_equal(state.working.rows[y[state.working.owner]], np.sort(state.fixed[y]))
    assert model.timing_["passes"] == len(passes) > 3


def test_candidates_of_no_use_for_five_rounds_are_dropped() -> None:
    bags = Bags(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [5.0, 5.0]]), [0, 3, 4])
    working = WorkingSet(bags, np.array([0, 1, 2, 3]), np.array([0, 0, 0, 1]), np.zeros(4, np.int64))
    for working.round in range(1, 6):
        np.testing.assert_array_equal(working.scores(np.array([1.0, 0.0])), [1.0, 5.0])
        assert working.add(np.array([0]), np.array([0])) == 0
        assert working.rows.tolist() == ([0, 1, 2, 3] if working.round < 5 else [0, 3])
    assert working.add(np.array([2, 0]), np.array([0, 0])) == 1
    np.testing.assert_array_equal(working.scores(np.array([0.0, -1.0])), [1.0, -5.0])
    np.testing.assert_array_equal(working.combine(np.array([2.0, 1.0])), [3.0, 3.0])
    best, where = best_of(np.array([1.0, 3.0, 3.0, 2.0, 2.0, -1.0]), np.array([0, 3, 5]))
    assert (best.tolist(), where.tolist()) == ([3.0, 2.0, -1.0], [1, 3, 5])  # of equal ones the first


def test_repeated_bags_have_candidates_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    listed, y, _ = planted(12, 8, 4.0, 4, 8)
    twice = np.r_[np.arange(12), np.arange(12)]
    bags = as_bags(listed)[twice]
    init = np.r_[np.zeros(12, int), bags.sizes[:12] - 1]
    models = []
    for small in ROUTES.values():
        monkeypatch.setattr(cccp, "_SMALL", small)
        models.append(rw.LatentRankSVM(C=30.0, init=init, tol=1e-6).fit(bags, y[twice]))
    assert all(model.converged_ for model in models)
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=3e-6)


def test_what_ends_too_early_or_with_zeros_is_said(route: str) -> None:
    bags, y, _ = planted(24, 9, 4.0, 4, 8)
    offset = [bag + 1e5 for bag in bags]  # differences of candidates lose five digits
    with pytest.warns(ConvergenceWarning, match=r"gap of \d.*tol=1e-17: rounding errors prevent progress") as caught:
        model = rw.LatentRankSVM("zero-one", C=30.0, tol=1e-17).fit(offset, y)
    assert caught[0].filename == __file__
    assert not model.converged_
    assert 0.0 < model.gap_ < 1e-4
    bags, y, _ = planted(60, 10, 4.0, 4, 8)
    with pytest.warns(ConvergenceWarning, match="max_outer=1 reached; raise it"):
        model = rw.LatentRankSVM("zero-one", C=30.0, init="first", max_outer=1).fit(bags, y)
    assert model.n_iter_ == 1
    with pytest.warns(ConvergenceWarning, match="max_iter=1 reached; raise it"):
        model = rw.LatentRankSVM(C=30.0, max_iter=1).fit(bags, y)
    assert not model.converged_
    assert model.gap_ > model.tol
    rng = np.random.default_rng(12)
    bags = [rng.normal(size=(8, 3)) for _ in range(40)]  # nothing to be learnt, and a way up in every direction
    with pytest.warns(ConvergenceWarning, match="found only coefficients of 0") as caught:
        model = rw.LatentRankSVM(C=1.0, init="first").fit(bags, np.arange(40) < 10)
    assert caught[0].filename == __file__
    assert not model.coef_.any()
    assert model.converged_
