"""A query all of whose samples are masked has nothing to rank: `empty=` says what it counts, in every form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_versions import needs_a_recent_compiler  # noqa: E402

import rankwise.torch as rwt  # noqa: E402
from rankwise.torch import functional  # noqa: E402

BACKENDS = ("core", "tensor")
IGNORED = -1
Q, N = 5, 6
OUT = (1, 4)  # the queries that are masked, one of them the last
LOSSES: dict[str, Callable[..., Any]] = {
    "hinge": functional.structured_hinge,
    "direct": functional.direct_loss,
    "smooth": functional.smooth_loss,
    "error-driven": functional.error_driven_loss,
}
CASES = [(name, backend) for name in LOSSES for backend in (("core",) if name == "direct" else BACKENDS)]
ORDER = torch.randperm(Q * N, generator=torch.Generator().manual_seed(5))
QID = torch.arange(Q * N) // N * 7 - 3


def rows(graded: bool = False) -> tuple[Any, Any, Any]:
    """Scores, target and mask of rows that have something to rank; masked scores are not numbers."""
    rng = np.random.default_rng(8)
    scores, target = torch.tensor(rng.normal(size=(Q, N))), torch.tensor(rng.integers(0, 4 if graded else 2, (Q, N)))
    target[:, 0], target[:, 1] = 0, 1
    mask = torch.ones(Q, N, dtype=torch.bool)
    mask[:, 3] = False
    mask[list(OUT)] = False
    return scores.masked_fill(~mask, torch.nan), target, mask


def forms(function: Any, way: str, graded: bool, **options: Any) -> dict[str, tuple[Any, Any]]:
    """Value and gradient (Q, N) of the same queries as rows, as columns and by qid in any order."""
    scores, target, mask = rows(graded)
    marked: dict[str, Any] = {"mask": mask}
    if way == "ignore_index":
        target, marked = torch.where(mask, target, IGNORED), {}
        options["ignore_index"] = IGNORED

    def call(change: Any, undo: Any, **rest: Any) -> tuple[Any, Any]:
        leaf = change(scores).clone().requires_grad_()
        masks = {name: change(one) for name, one in marked.items()}
        value = function(leaf, change(target), **masks, **rest, **options)
        value.sum().backward()
        return value.detach(), undo(leaf.grad)

    def back(gradient: Any) -> Any:
        return torch.zeros_like(gradient).index_copy_(0, ORDER, gradient).view(Q, N)

    return {
        "rows": call(lambda one: one, lambda one: one, dim=1),
        "columns": call(lambda one: one.T, lambda one: one.T, dim=0),
        "qid": call(torch.flatten, lambda one: one.view(Q, N), qid=QID),
        "qid in any order": call(lambda one: one.flatten()[ORDER], back, qid=QID[ORDER]),
    }


@pytest.mark.parametrize("way", ["mask", "ignore_index"])
@pytest.mark.parametrize(("name", "backend"), CASES)
def test_a_masked_query_counts_alike_in_rows_in_columns_and_by_qid(name: str, backend: str, way: str) -> None:
    graded = name == "error-driven" or (name, backend) == ("smooth", "core")
    for reduction, empty, counted in (
        ("mean", "zero", Q),
        ("mean", "skip", Q - 2),
        ("sum", "zero", 1),
        ("none", "zero", 1),
    ):
        found = forms(LOSSES[name], way, graded, backend=backend, reduction=reduction, empty=empty)
        each = forms(LOSSES[name], way, graded, backend=backend, reduction="none")["rows"]
        assert each[0].shape == (Q,)
        assert each[0][list(OUT)].tolist() == [0.0, 0.0]
        assert not each[1][list(OUT)].any()
        expected = each[0] if reduction == "none" else each[0].sum() / counted
        for form, (value, gradient) in found.items():
            torch.testing.assert_close(value, expected, rtol=1e-12, atol=0.0, msg=form)
            torch.testing.assert_close(gradient, each[1] / counted, rtol=1e-12, atol=1e-15, msg=form)


@pytest.mark.parametrize(("name", "backend"), CASES)
def test_a_masked_query_is_refused_by_name_if_empty_ones_are(name: str, backend: str) -> None:
    scores, target, mask = rows()
    options: dict[str, Any] = {"empty": "error", "backend": backend}
    with pytest.raises(ValueError, match="query 1 has no positives or no negatives"):
        LOSSES[name](scores, target, mask=mask, dim=1, **options)
    with pytest.raises(ValueError, match="the query with qid 4 has no positives or no negatives"):
        LOSSES[name](scores.flatten(), target.flatten(), mask=mask.flatten(), qid=QID, **options)


@pytest.mark.parametrize("backend", BACKENDS)
def test_masked_images_of_detectors_count_too(backend: str) -> None:
    scores, target, mask = (one.flatten()[ORDER] for one in rows())
    qid, quality = QID[ORDER], 0.5 * target

    def call(**options: Any) -> tuple[Any, Any]:
        leaf = scores.clone().requires_grad_()
        parts = functional.rank_sort_loss(leaf, quality, mask=mask, qid=qid, backend=backend, **options)
        sum(part.sum() for part in parts).backward()
        return torch.stack(parts).detach(), leaf.grad

    values, gradient = call(reduction="none")
    assert values.shape == (2, Q)
    assert not values[:, list(OUT)].any()
    for empty, counted in (("zero", Q), ("skip", Q - 2)):
        mean, slope = call(empty=empty)
        torch.testing.assert_close(mean, values.sum(1) / counted)
        torch.testing.assert_close(slope, gradient / counted)
    with pytest.raises(ValueError, match="the query with qid 4 has no positives"):
        call(empty="error")


def test_a_memory_without_samples_of_an_output_counts_it_as_the_rows_do() -> None:
    scores, target, mask = (one.T for one in rows())
    values = functional.smooth_loss(scores, target, mask=mask, dim=0, reduction="none")
    for empty, counted in (("zero", Q), ("skip", Q - 2)):
        memory = rwt.ScoreMemory(N, n_outputs=Q).double()
        for index in torch.arange(N).split(3):
            given: dict[str, Any] = {"mask": mask[index], "index": index, "memory": memory}
            found = functional.smooth_loss(scores[index], target[index], dim=0, empty=empty, **given)
        assert found.item() == pytest.approx(values.sum().item() / counted, rel=1e-12)


@needs_a_recent_compiler
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")  # PyTorch's notices to itself
def test_a_masked_query_counts_in_compiled_and_in_mapped_calls() -> None:
    torch._dynamo.reset()
    scores, target, mask = rows()
    expected = functional.structured_hinge(scores, target, mask=mask, dim=1)
    mapped = torch.vmap(lambda s, y, m: functional.structured_hinge(s, y, mask=m))(scores, target, mask)
    assert mapped.mean().item() == pytest.approx(expected.item(), rel=1e-12)
    run = torch.compile(
        lambda s, y, m: functional.structured_hinge(s, y, mask=m, qid=QID), fullgraph=True, backend="aot_eager"
    )
    found = run(*(one.flatten() for one in (scores, target, mask)))
    torch._dynamo.reset()
    assert found.item() == pytest.approx(expected.item(), rel=1e-12)
