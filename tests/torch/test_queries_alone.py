"""In PyTorch, too, the loss of a query depends on that query alone, in all layouts and on both backends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from queries_alone import LOSSES, ONE_GAIN, mixed_queries

torch = pytest.importorskip("torch")

from rankwise.torch.functional import error_driven_loss, smooth_loss, structured_hinge  # noqa: E402

RTOL, ATOL = 1e-9, 1e-12
BACKENDS = ("core", "tensor")
FUNCTIONS: dict[str, Any] = {"hinge": structured_hinge, "smooth": smooth_loss, "error-driven": error_driven_loss}
CASES = [
    (kind, loss, backend)
    for kind in FUNCTIONS
    for loss in LOSSES
    for backend in BACKENDS
    if (backend == "core" or kind != "hinge" or loss != "ndcg@3")  # a cut-off breaks (C2)
    and (loss != "f1" or (backend == "core" and kind != "error-driven"))
]


def solved(function: Any, scores: Any, target: Any, loss: Any, **options: Any) -> tuple[Any, Any]:
    leaf = torch.tensor(scores, requires_grad=True)
    value = function(leaf, torch.tensor(target), loss, **options)
    value.sum().backward()
    return value.detach().numpy(), leaf.grad.numpy()


@pytest.mark.parametrize(("kind", "loss", "backend"), CASES, ids=str)
def test_each_query_of_a_graded_batch_is_as_by_itself(
    kind: str, loss: str, backend: str, rng: np.random.Generator
) -> None:
    function = FUNCTIONS[kind]
    s, grades, qid = mixed_queries(rng)
    names = np.unique(qid)
    width = int(np.bincount(qid).max())
    rows, target, mask = (np.zeros((names.size, width), dtype) for dtype in (float, float, bool))
    for q in names:
        own = np.flatnonzero(qid == q)
        rows[q, : own.size], target[q, : own.size], mask[q, : own.size] = s[own], grades[own], True
    flat: dict[str, Any] = {"qid": torch.tensor(qid), "reduction": "none", "backend": backend}
    padded: dict[str, Any] = {"mask": torch.tensor(mask), "dim": 1, "reduction": "none", "backend": backend}
    values, gradient = solved(function, s, grades, LOSSES[loss], **flat)
    of_rows, gradient_of_rows = solved(function, rows, target, LOSSES[loss], **padded)
    mean, gradient_of_mean = solved(function, s, grades, LOSSES[loss], qid=torch.tensor(qid), backend=backend)
    assert mean == pytest.approx(values.mean(), rel=RTOL)
    np.testing.assert_allclose(gradient_of_mean * names.size, gradient, rtol=RTOL, atol=ATOL)
    for q in names:
        own = qid == q
        value, slope = solved(function, s[own], grades[own], LOSSES[loss], backend=backend)
        np.testing.assert_allclose((values[q], of_rows[q]), value, rtol=RTOL, atol=ATOL)
        np.testing.assert_allclose(gradient[own], slope, rtol=RTOL, atol=ATOL)
        np.testing.assert_allclose(gradient_of_rows[q, mask[q]], slope, rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize(("kind", "loss", "backend"), [case for case in CASES if case[1] in ("ap", "ndcg@3")], ids=str)
def test_one_grade_beside_0_is_as_1_whatever_it_is_worth(
    kind: str, loss: str, backend: str, rng: np.random.Generator
) -> None:
    s, y = rng.normal(size=(4, 12)), rng.random((4, 12)) < 0.4
    expected = solved(FUNCTIONS[kind], s, y, loss, dim=1, backend=backend)
    found = solved(FUNCTIONS[kind], s, y * np.array([[2], [1], [3], [2]]), loss, dim=1, backend=backend)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("backend", BACKENDS)
def test_batches_of_both_kinds_name_queries_and_scores_by_their_place(backend: str, rng: np.random.Generator) -> None:
    scores, target = torch.tensor(rng.normal(size=(4, 5))), torch.tensor([[0, 1, 2, 3, 0]] * 4)
    target[1:3] = torch.tensor([0, 2, 0, 0, 2])  # two binary queries
    for q in range(4):
        bad, label = scores.clone(), target.clone()
        bad[q, 3], label[q] = torch.nan, 2
        with pytest.raises(ValueError, match=f"scores of query {q} at 3 is nan"):
            smooth_loss(bad, target, "ndcg", dim=1, backend=backend)
        with pytest.raises(ValueError, match=f"query {q} has no two different grades"):
            smooth_loss(scores, label, "ndcg", dim=1, empty="error", backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_grades_that_a_gain_makes_equal_are_one_grade(backend: str, rng: np.random.Generator) -> None:
    s, grades = rng.normal(size=40), rng.integers(0, 4, 40)
    expected = solved(smooth_loss, s, grades > 1, ONE_GAIN, backend=backend)
    for one, other in zip(solved(smooth_loss, s, grades, ONE_GAIN, backend=backend), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert solved(smooth_loss, s, grades + 2, ONE_GAIN, backend=backend)[0] == 0.0
