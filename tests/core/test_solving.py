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
from rankwise.arguments import NotFiniteError
from rankwise.kernels import engine
from rankwise.kernels.contract import METHODS
from rankwise.linear import task as task_module
from rankwise.metrics.registry import as_loss
from rankwise.queries import Queries, as_queries, single_query
from rankwise.surrogates.hinge import Hinge

PACKAGE = str(Path(rw.__file__).parent)
STEPS = rw.StepLoss(lambda i, j, n_pos, n_neg: -1.0 / (n_pos * n_neg) + 0.0 * (i + j), name="steps")
LOSSES = [*map(as_loss, ("ap", "ndcg", "mrr", "auc", "zero-one")), STEPS]
STARTS = np.array([0, 6, 7, 7, 15, 24])  # the second has one sample, the third none


def made(seed: int = 0) -> tuple[np.ndarray, Queries]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=24), as_queries(rng.random(24) < 0.4, STARTS)


@pytest.mark.parametrize("method", ["auto", "dynamic"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_queries_together_are_as_each_alone(loss: rw.Loss, method: str) -> None:
    if not loss.has_grades and method != "auto":
        return
    hinge = Hinge(0.7, method)
    scores, queries = made()
    together = hinge.solve(scores, queries, loss)
    assert together.ranking is None
    for q in range(STARTS.size - 1):
        part = slice(STARTS[q], STARTS[q + 1])
        alone = hinge.solve(scores[part], single_query(queries.relevant[part]), loss)
        assert together.value[q] == alone.value[0]
        assert together.loss[q] == alone.loss[0]
        assert (together.n_pos[q], together.n_neg[q]) == (alone.n_pos[0], alone.n_neg[0])
        np.testing.assert_array_equal(together.gradient[part], alone.gradient)
        assert (alone.ranking is None) == (min(alone.n_pos[0], alone.n_neg[0]) == 0)


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


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e301])
@pytest.mark.parametrize("at", [0, 6, 20])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_what_is_not_finite_fails_in_one_way(loss: rw.Loss, at: int, bad: float) -> None:
    scores, queries = made()
    scores[at] = bad
    why = "too large" if np.isfinite(bad) else "not finite"
    for method in ["auto", "dynamic", "yue"] if loss.has_grades else ["auto"]:
        for given in (queries, single_query(queries.relevant)):
            with pytest.raises(NotFiniteError, match=rf"^scores\[{at}\] is .*{why}"):
                Hinge(method=method).solve(scores, given, loss)


@pytest.mark.parametrize("at", [5, 50_000, 99_999])
def test_a_large_query_among_others_names_the_score_by_its_place_among_all(at: int) -> None:
    rng = np.random.default_rng(0)
    scores, relevant = rng.normal(size=100_000), rng.random(100_000) < 0.01
    scores[at] = np.nan
    with pytest.raises(NotFiniteError, match=rf"^scores\[{at}\] is nan"):
        Hinge().solve(scores, as_queries(relevant, np.array([0, 10, 20_000, 99_000, 100_000])), as_loss("ap"))


def test_the_hinge_names_a_score_by_its_place_as_it_was_given() -> None:
    scores = [0.0, 1.0, np.nan, 2.0, np.inf, 3.0]
    with pytest.raises(ValueError, match=r"^scores\[2\] is nan"):
        rw.structured_hinge(scores, [0, 1, 0, 1, 0, 1], qid=[2, 1, 2, 1, 1, 2])


def test_a_cutoff_belongs_to_its_method() -> None:
    assert Hinge(method="chakrabarti", cutoff=3).cutoff == 3
    for name in set(METHODS) - {"chakrabarti"}:
        with pytest.raises(ValueError, match=rf"^cutoff=3 works only with method='chakrabarti', not '{name}'"):
            Hinge(method=name, cutoff=3)


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
    """The functions of rankwise on the stack when a kernel is called from below `through`; the shortest of such."""
    walks: list[list[str]] = []
    kernel = engine.solve_small

    def watch(*args: Any) -> Any:
        frame: types.FrameType | None = sys._getframe(1)
        names = []
        while frame is not None:
            if frame.f_code.co_filename.startswith(PACKAGE):
                names.append(frame.f_code.co_name)
            frame = frame.f_back
        if through in names:
            walks.append(names[::-1])
        return kernel(*args)

    monkeypatch.setattr(engine, "solve_small", watch)
    call()
    monkeypatch.undo()
    return min(walks, key=len)


def test_the_hinge_is_five_calls_from_its_kernel(monkeypatch: Any) -> None:
    scores, queries = made()
    for options in ({}, {"qid": np.arange(24) // 6}):
        walk = shortest_walk(
            monkeypatch, "structured_hinge", lambda o=options: rw.structured_hinge(scores, queries.relevant, **o)
        )
        assert walk[:4] == ["structured_hinge", "evaluate", "solve", "solve_binary"]
        assert len(walk) == 5


def test_an_evaluation_in_training_is_seven_calls_from_the_kernel(monkeypatch: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.random(60) < 0.4
    for qid in (None, np.arange(60) % 3):
        walk = shortest_walk(monkeypatch, "evaluate", lambda q=qid: rw.RankSVM("ap", C=1.0).fit(X, y, qid=q))
        assert walk[:5] == ["fit", "_fit_to", "cutting_plane", "evaluate", "solve"]
        assert len(walk) == 7


def test_an_evaluation_in_latent_training_is_ten_calls_from_the_kernel(monkeypatch: Any) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(40) < 10
    bags = [rng.normal(size=(3, 4)) + 2.0 * positive for positive in y]
    walk = shortest_walk(monkeypatch, "_round", lambda: rw.LatentRankSVM("ap", C=1.0, init="first").fit(bags, y))
    assert len(walk) <= 10


def test_a_loss_of_tensors_is_nine_calls_from_the_kernel(monkeypatch: Any) -> None:
    torch = pytest.importorskip("torch")
    from rankwise.torch import APHingeLoss

    scores, queries = made()
    batch = torch.from_numpy(scores), torch.from_numpy(queries.relevant)
    assert len(shortest_walk(monkeypatch, "loss_of_batch", lambda: APHingeLoss()(*batch))) <= 9
