"""RankSortLoss against the published loop, query by query, on both backends and in every precision."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from rank_sort_loop import rank_sort_by_loop

torch = pytest.importorskip("torch")

from torch_cases import Case, draw  # noqa: E402
from torch_versions import needs_a_recent_compiler  # noqa: E402

import rankwise.torch as rwt  # noqa: E402
from rankwise.torch.functional import rank_sort_loss  # noqa: E402

# PyTorch's notices to itself, while it compiles.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")

ATOL = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 4e-3}
BACKENDS = ("core", "tensor")


def by_loop(case: Case, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Values (2, Q) and gradients (2, n)."""
    scores, target = case.scores.double().numpy(), case.target.double().numpy()
    values, gradients = np.zeros((2, len(case.queries))), np.zeros((2, scores.size))
    for q, at in enumerate(case.queries):
        values[:, q], gradients[:, at] = rank_sort_by_loop(scores[at], target[at], width)
    return values, gradients


def draw_qualities(rng: np.random.Generator, layout: str, dtype: Any) -> Case:
    """A batch of qualities, which tie now and then."""
    case = draw(rng, layout, dtype)
    quality = torch.tensor(
        rng.integers(1, 5, case.target.shape) / 4 if rng.random() < 0.5 else 1.0 - rng.random(case.target.shape)
    )
    target = case.target.double()
    return case._replace(target=torch.where(target == 1, quality, target))


def call(case: Case, **options: Any) -> tuple[Any, Any]:
    """Both parts (2, …), and gradients (2, n) of a sum of them with weights."""
    weights = options.pop("weights", None)
    scores = case.scores.clone().requires_grad_()
    parts = rank_sort_loss(scores, case.target, **case.options, **options)
    rows = [torch.autograd.grad(part, scores, weights, retain_graph=True)[0] for part in parts]
    return torch.stack(parts).detach(), torch.stack(rows)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ATOL, ids=str)
def test_values_and_gradients_are_those_of_the_published_loop(dtype: Any, backend: str) -> None:
    rng = np.random.default_rng(1)
    for layout in ("flat", "ragged", "ragged masked") * 20:
        case, width = draw_qualities(rng, layout, dtype), float(rng.choice([0.1, 0.5, 1.0, 4.0]))
        values, gradients = by_loop(case, width)
        empty, reduction = str(rng.choice(["zero", "skip"])), str(rng.choice(["mean", "sum", "none"]))
        filled = [bool((case.target.numpy()[at] > 0).any()) for at in case.queries]
        n = max(sum(filled) if empty == "skip" else len(filled), 1) if reduction == "mean" else 1
        each = rng.normal(size=len(case.queries)) if reduction == "none" else np.ones(len(case.queries))
        weights = torch.tensor(each if "qid" in case.options else each[0]) if reduction == "none" else None
        weights = None if weights is None else weights.to(torch.float64 if dtype == torch.float64 else torch.float32)
        found = call(case, width=width, empty=empty, reduction=reduction, backend=backend, weights=weights)
        assert found[0].dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        assert found[1].dtype == dtype
        expected = values if reduction == "none" else values.sum(1) / n
        assert np.abs(found[0].numpy() - expected.reshape(found[0].shape)).max() <= min(ATOL[dtype], 1e-5)
        for weight, at in zip(each, case.queries, strict=True):
            gradients[:, at] *= weight / n
        tolerance = ATOL[dtype] * max(1.0, np.abs(gradients).max(initial=0.0))
        assert np.abs(found[1].double().numpy() - gradients).max(initial=0.0) <= tolerance


def detections(n: int = 60) -> tuple[Any, Any]:
    """Scores, and qualities (0 of negatives)."""
    generator = torch.Generator().manual_seed(3)
    numbers = torch.rand(3, n, generator=generator, dtype=torch.float64)
    return 4.0 * numbers[0], numbers[1] * (numbers[2] < 0.4)


def test_modules_are_their_functional_twins() -> None:
    scores, quality = detections()
    qid, mask = torch.arange(60) % 4, torch.arange(60) > 3
    assert rwt.RankSortLoss(0.3)(scores, quality, mask=mask, qid=qid) == rank_sort_loss(
        scores, quality, width=0.3, mask=mask, qid=qid
    )
    assert "width=0.5" in repr(rwt.RankSortLoss())


def test_qualities_may_hang_on_a_graph_of_their_own_which_is_left_alone() -> None:
    scores, quality = detections()
    leaf, boxes = scores.clone().requires_grad_(), quality.clone().requires_grad_()
    overlap = boxes.square()
    sum(rank_sort_loss(leaf, overlap)).backward()
    assert boxes.grad is None


def test_a_binary_target_has_nothing_to_sort() -> None:
    scores, quality = detections()
    for target in (quality > 0, (quality > 0).long()):
        ranking, sorting = rank_sort_loss(scores, target)
        assert sorting == 0.0
        assert ranking > 0.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_negatives_there_is_still_something_to_sort(backend: str) -> None:
    scores, quality = torch.tensor([3.0, 0.0]), torch.tensor([0.2, 0.8])
    ranking, sorting = rank_sort_loss(scores, quality, backend=backend, empty="error")
    assert ranking == 0.0
    # (0.8·1 + 0.2·½)/1½ − 0.2 = 0.4 of the second positive, nothing of the first
    torch.testing.assert_close(sorting, torch.tensor(0.4 / 2), rtol=0.0, atol=ATOL[torch.float32])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("qid", [None, torch.zeros(0, dtype=torch.int64)], ids=["one query", "no queries"])
def test_no_samples_are_no_loss(backend: str, qid: Any) -> None:
    nothing = torch.zeros(0, requires_grad=True)
    parts = rank_sort_loss(nothing, torch.zeros(0), qid=qid, backend=backend)
    assert parts == (0.0, 0.0)
    sum(parts).backward()


@needs_a_recent_compiler
def test_compiled_it_is_one_graph_with_the_same_numbers() -> None:
    scores, quality = detections()
    qid = torch.arange(60) % 3
    weight = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)

    def total(scores: Any) -> Any:
        parts = rank_sort_loss(scores, quality, qid=qid, reduction="none")
        return parts[0] @ weight + 3.0 * parts[1] @ weight

    found = []
    for function in (total, torch.compile(total, backend="aot_eager", fullgraph=True)):
        leaf = scores.clone().requires_grad_()
        value = function(leaf)
        value.backward()
        found.append([value.detach(), leaf.grad])
    for plain, compiled in zip(*found, strict=True):
        torch.testing.assert_close(compiled, plain, rtol=0.0, atol=ATOL[torch.float64])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("qualities", [2, 40, 0], ids=["two qualities", "forty", "all different"])
@pytest.mark.parametrize("spread", [0.01, 1.0, 1e9])
def test_the_backends_agree_on_large_queries(spread: float, qualities: int, dtype: Any) -> None:
    rng = np.random.default_rng(9)
    rtol, atol = (1e-12, 1e-12) if dtype == torch.float64 else (1e-5, 1e-7)
    for n_pos in (1, 700, 3000):
        quality = np.where(np.arange(3000) < n_pos, 1.0 - rng.random(3000), 0.0)
        quality = np.ceil(quality * qualities) / qualities if qualities else quality
        scores = np.where(rng.random(3000) < 0.1, spread, 1.0) * rng.normal(size=3000)
        options = {"qid": torch.tensor(rng.integers(0, 3, 3000)), "mask": torch.tensor(rng.random(3000) < 0.9)}
        case = Case(torch.tensor(scores).to(dtype), torch.tensor(quality), options, [], ())
        for core, tensor in zip(*(call(case, backend=backend) for backend in BACKENDS), strict=True):
            torch.testing.assert_close(tensor, core, rtol=rtol, atol=atol)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a quality above 1": ({"target": torch.tensor([0.0, 1.2, 0.5])}, r"\[1\] is 1.2\d*, but the quality.* clamp it"),
    "a quality below 0": ({"target": torch.tensor([0.0, 0.5, -1.0])}, r"target\[2\] is -1.0, but .* ignore_index="),
    "a quality that is no number": ({"target": torch.tensor([torch.nan, 0.5, 0.0])}, r"target\[0\] is nan"),
    "a score that is no number": ({"scores": torch.tensor([0.0, torch.inf, 0.0])}, r"scores\[1\] is inf.*mask it"),
    "scores in rows": ({"scores": torch.zeros(1, 3)}, r"must be flat, \(n,\); pass scores.flatten\(\).*qid="),
    "shapes": ({"target": torch.zeros(2)}, r"target has shape \(2,\) but scores have \(3,\)"),
    "option width": ({"width": 0.0}, "width must be a positive number"),
    "no positives": ({"target": torch.zeros(3), "empty": "error"}, "query 0 has no positives and so no loss.*empty"),
    "no positives in an image": (
        {"qid": torch.tensor([5, 5, 9]), "target": torch.tensor([0.0, 0.5, 0.0]), "empty": "error"},
        "the query with qid 9 has no positives"
    )
}  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_loss_is_refused_and_bad_options_when_a_module_is_made(name: str, backend: str) -> None:
    given, says = REFUSED[name]
    usual = {"scores": torch.zeros(3), "target": torch.tensor([0.0, 0.5, 1.0]), "backend": backend}
    with pytest.raises((TypeError, ValueError), match=says):
        rank_sort_loss(**{**usual, **given})
    if name.startswith("option"):
        with pytest.raises((TypeError, ValueError), match=says):
            rwt.RankSortLoss(**given)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_images_of_one_size_can_be_mapped(reduction: str, backend: str) -> None:
    scores, quality = (one.view(4, 15) for one in detections())
    loss = partial(rank_sort_loss, backend=backend)
    mapped = torch.vmap(lambda s, q: torch.stack(loss(s, q, reduction=reduction)))(scores, quality)
    each = [torch.stack(rank_sort_loss(*one)) for one in zip(scores, quality, strict=True)]
    torch.testing.assert_close(mapped, torch.stack(each))
    slope = torch.vmap(torch.func.grad(lambda s, q: sum(loss(s, q))))(scores, quality)
    leaf = scores.clone().requires_grad_()
    sum(sum(rank_sort_loss(*one)) for one in zip(leaf, quality, strict=True)).backward()
    torch.testing.assert_close(slope, leaf.grad)
