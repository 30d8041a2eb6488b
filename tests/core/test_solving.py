"""The waist: queries that are built once, one way to fail, and few calls between what users call and the kernels."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankwise as rw
from rankwise.kernels import engine
from rankwise.kernels.contract import METHODS
from rankwise.linear import task as task_module
from rankwise.queries import Queries, as_queries, single_query
from rankwise.surrogates.hinge import Hinge

PACKAGE = str(Path(rw.__file__).parent)
STEPS = rw.StepLoss(lambda i, j, n_pos, n_neg: -1.0 / (n_pos * n_neg) + 0.0 * (i + j), name="steps")
STARTS = np.array([0, 6, 7, 7, 15, 24])  # the second has one sample, the third none


def made(seed: int = 0) -> tuple[np.ndarray, Queries]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=24), as_queries(rng.random(24) < 0.4, STARTS)


def test_queries_know_their_counts() -> None:
    _, queries = made()
    n_pos, n_neg = queries.counts
    for q in range(STARTS.size - 1):
        part = queries.relevant[STARTS[q] : STARTS[q + 1]]
        assert (n_pos[q], n_neg[q]) == (part.sum(), (~part).sum())
    assert queries.n_pos == n_pos.sum()
    np.testing.assert_array_equal(queries.sizes, [6, 1, 0, 8, 9])
    alone = single_query(queries.relevant)
    np.testing.assert_array_equal(alone.counts.ravel(), [queries.n_pos, 24 - queries.n_pos])


@pytest.mark.parametrize("name", METHODS)
def test_a_loss_of_labels_takes_no_ranking_method(name: str) -> None:
    if name in ("auto", "exhaustive"):
        assert Hinge(method=name).accepts("zero-one").name == "zero-one"
    else:
        with pytest.raises(rw.NotQSSuitableError, match=r"breaks \(C1\)"):
            Hinge(method=name).accepts("zero-one")


def test_a_loss_of_neither_form_is_solved_by_its_steps() -> None:
    class Own(rw.Loss):
        name = "own"

        def steps(self, i: Any, j: Any, n_pos: int, n_neg: int) -> Any:
            return STEPS.steps(i, j, n_pos, n_neg)

        def of_counts(self, above: Any, n_neg: int) -> Any:
            return STEPS.of_counts(above, n_neg)

        def check(self, n_pos: int, n_neg: int, thorough: bool = True) -> None:
            pass

    scores, queries = made()
    for method in ("auto", "quicksort", "dynamic"):
        own, given = (Hinge(method=method).solve(scores, queries, loss) for loss in (Own(), STEPS))
        np.testing.assert_array_equal(own.value, given.value)
        np.testing.assert_array_equal(own.loss, given.loss)
        np.testing.assert_array_equal(own.gradient, given.gradient)


def test_a_fit_groups_its_queries_once(monkeypatch: Any) -> None:
    calls = []
    group = task_module.group
    monkeypatch.setattr(task_module, "group", lambda *args: calls.append(None) or group(*args))
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(60, 3)), rng.random(60) < 0.4, rng.integers(0, 5, 60)
    assert rw.RankSVM("ap", C=1.0).fit(X, y, qid).n_iter_ > 1
    assert len(calls) == 1
    bags = [rng.normal(size=(3, 4)) for _ in range(60)]
    assert rw.LatentRankSVM("ap", C=1.0).fit(bags, y, qid).timing_["calls"] > 10
    assert len(calls) == 2


# --- the walk from a public call to the kernel


def shortest_walk(monkeypatch: Any, through: str, call: Callable[[], Any]) -> list[str]:
    """The functions of rankwise outside the kernels when one is called from below `through`; the shortest of such."""
    walks: list[list[str]] = []
    kernel = engine.solve_small

    def watch(*args: Any) -> Any:
        frame: types.FrameType | None = sys._getframe(1)
        names = []
        while frame is not None:
            if frame.f_code.co_filename.startswith(PACKAGE) and Path(frame.f_code.co_filename).parent.name != "kernels":
                names.append(frame.f_code.co_name)
            frame = frame.f_back
        if through in names:
            walks.append(names[::-1])
        return kernel(*args)

    monkeypatch.setattr(engine, "solve_small", watch)
    call()
    monkeypatch.undo()
    return min(walks, key=len)


@pytest.mark.parametrize("qid", [None, np.arange(60) % 3], ids=["one query", "queries"])
def test_few_calls_lead_to_the_kernel(qid: Any, monkeypatch: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.random(60) < 0.4
    walk = shortest_walk(monkeypatch, "structured_hinge", lambda: rw.structured_hinge(X[:, 0], y, qid=qid))
    assert walk[:4] == ["structured_hinge", "evaluate", "solve", "solve_binary"]
    assert len(walk) == 4
    walk = shortest_walk(monkeypatch, "evaluate", lambda: rw.RankSVM("ap", C=1.0).fit(X, y, qid))
    assert walk[:5] == ["fit", "_fit_to", "cutting_plane", "evaluate", "solve"]
    assert len(walk) <= 7


def test_few_calls_lead_to_the_kernel_in_latent_training(monkeypatch: Any) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(40) < 10
    bags = [rng.normal(size=(3, 4)) + 2.0 * positive for positive in y]
    walk = shortest_walk(monkeypatch, "_round", lambda: rw.LatentRankSVM("ap", C=1.0, init="first").fit(bags, y))
    assert len(walk) <= 9


def test_few_calls_lead_from_tensors_to_the_kernel(monkeypatch: Any) -> None:
    torch = pytest.importorskip("torch")
    from rankwise.torch import APHingeLoss

    scores, queries = made()
    batch = torch.from_numpy(scores), torch.from_numpy(queries.relevant)
    assert len(shortest_walk(monkeypatch, "loss_of_batch", lambda: APHingeLoss()(*batch))) <= 7
