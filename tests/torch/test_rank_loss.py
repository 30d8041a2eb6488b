"""Every metric × surrogate × layout × backend against the NumPy core, one query at a time; and the names of losses."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from queries_alone import FALLING, ONE_GAIN

import rankwise as rw
from rankwise.metrics.registry import as_loss

torch = pytest.importorskip("torch")

from torch_cases import Case, Everywhere, draw  # noqa: E402

import rankwise.torch as rwt  # noqa: E402
from rankwise.torch import functional  # noqa: E402
from rankwise.torch.functional import rank_loss  # noqa: E402

METRICS: dict[str, rw.Loss | str] = {
    **{name: name for name in ("ap", "ndcg", "mrr", "auc", "zero-one", "ndcg@3", "ap@4", "precision@3")},
    "own": rw.DiscountedLoss(lambda k: 1 / (1 + k), lambda m: 0.7**m + 0.1 / m, name="own"),
    "own@5": rw.DiscountedLoss(lambda i: 1.0 / i, lambda m: 1.0 / (2.0 + m), k=5, gain=lambda y: y**2),
    "falling": FALLING,
}
SURROGATES: dict[str, rw.Surrogate] = {
    "hinge": rw.Hinge(),
    "hinge, scaled": rw.Hinge(scale=5.0),
    "smooth": rw.Smooth(width=0.5),
    "smooth, by thresholds": rw.Smooth(width=0.5, soft_ranks=False),
    "error-driven": rw.ErrorDriven(width=0.5),
    "error-driven, as it is": rw.ErrorDriven(width=0.5, interpolate=False),
    "direct": rw.Direct(0.5),
    "direct, negative": rw.Direct(-2.0),
    "own": Everywhere(),
}
# What a number of each precision can be trusted for; computation is in float32 at least.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 3e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}
LAYOUTS = (
    "flat", "rows", "cube", "columns", "middle", "masked", "ignored", "masked columns", "ragged", "ragged masked"
)  # fmt: skip


def accepts(surrogate: rw.Surrogate, metric: rw.Loss | str) -> bool:
    try:
        surrogate.accepts(metric)
    except ValueError:
        return False
    return True


PAIRS = [(metric, how) for how, one in SURROGATES.items() for metric in METRICS if accepts(one, METRICS[metric])]


def in_tensors(metric: str, how: str, graded: bool) -> bool:
    """Whether there are tensor operations: for losses with a discount, where (C2) holds or is not needed."""
    if metric == "zero-one" or how in ("own", "direct", "direct, negative"):
        return False
    if graded and how == "smooth" and not as_loss(METRICS[metric]).is_uniform:
        return False
    return not ("@" in metric and how.startswith("hinge"))


def has_grades(metric: str, how: str) -> bool:
    return metric != "zero-one" and not how.startswith("direct")


def reference(case: Case, surrogate: rw.Surrogate, metric: rw.Loss | str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The value of each query, its gradient by sample (flat), and whether the query has something to rank."""
    flat = case.scores.detach().double() if case.scores.dtype == torch.float64 else case.scores.detach().float()
    scores, truth = flat.reshape(-1).numpy(), case.target.reshape(-1).double().numpy()
    gradient, values, filled = np.zeros(scores.size), [], []
    for members in case.queries:
        found = rw.evaluate(surrogate, scores[members], truth[members], metric)
        gradient[members] = found.gradient
        values.append(found.value)
        filled.append(np.unique(truth[members]).size > 1)
    return np.array(values), gradient, np.array(filled, dtype=bool)


def check(case: Case, pair: tuple[Any, rw.Surrogate], rng: np.random.Generator, backend: str, rtol: float) -> None:
    """One reduction and one policy, drawn at random, against the reference."""
    metric, surrogate = pair
    reduction, empty = str(rng.choice(["mean", "sum", "none"])), str(rng.choice(["zero", "skip", "error"]))
    values, gradient, filled = reference(case, surrogate, metric)
    scores = case.scores.clone().requires_grad_()
    options = {**case.options, "reduction": reduction, "empty": empty, "backend": backend}
    if empty == "error" and not filled.all():
        with pytest.raises(ValueError, match=r"has no (positives or no negatives|two different grades)"):
            rank_loss(scores, case.target, metric, surrogate, **options)
        return
    found = rwt.RankLoss(metric, surrogate, **{k: v for k, v in options.items() if k not in ("mask", "qid")})(
        scores, case.target, **{k: v for k, v in options.items() if k in ("mask", "qid")}
    )
    weights = np.ones(len(values))
    if reduction == "none":
        assert found.shape == case.shape
        weights = rng.normal(size=len(values))
    elif reduction == "mean":
        weights /= max(filled.sum() if empty == "skip" else filled.size, 1)
    assert found.dtype == (torch.float64 if scores.dtype == torch.float64 else torch.float32)
    expected = values if reduction == "none" else np.array([values @ weights])
    np.testing.assert_allclose(found.detach().numpy().ravel(), expected, rtol=rtol, atol=rtol)
    (found.reshape(-1) * torch.tensor(weights if reduction == "none" else [1.0])).sum().backward()
    for members, weight in zip(case.queries, weights, strict=True):
        gradient[members] *= weight
    assert scores.grad.dtype == scores.dtype
    rtol = max(rtol, TOLERANCE[scores.dtype])
    np.testing.assert_allclose(scores.grad.double().reshape(-1).numpy(), gradient, rtol=rtol, atol=rtol)


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "how"), PAIRS)
def test_value_and_gradient_are_those_of_each_query_alone(metric: str, how: str) -> None:
    pair, others = (METRICS[metric], SURROGATES[how]), list(TOLERANCE)[1:]
    for number, layout in enumerate(LAYOUTS):
        for graded in (False, True)[: 1 + has_grades(metric, how)]:
            for dtype in (torch.float64, others[number % 3]):
                rng = np.random.default_rng([number, len(metric), graded])
                rtol = 1e-12 if dtype == torch.float64 else 3e-6
                check(draw(rng, layout, dtype, graded), pair, rng, "core", rtol)
                if in_tensors(metric, how, graded):  # of ties, another ranking may be as violating
                    check(draw(rng, layout, dtype, graded, ties=False), pair, rng, "tensor", max(rtol, 1e-9))


@pytest.mark.parametrize(("metric", "how"), PAIRS)
def test_what_tensors_cannot_solve_is_refused_by_name_and_auto_takes_the_core(metric: str, how: str) -> None:
    scores, pair = torch.tensor([2.0, 1.0, 0.5, 0.0]), (METRICS[metric], SURROGATES[how])
    for graded in (False, True)[: 1 + has_grades(metric, how)]:
        target = torch.tensor([0, 1 + graded, 0, 1])
        expected = rank_loss(scores, target, *pair).item()
        assert rank_loss(scores, target, *pair, backend="core").item() == expected
        if in_tensors(metric, how, graded):
            assert rank_loss(scores, target, *pair, backend="tensor").item() == pytest.approx(expected, rel=1e-5)
        else:
            kind = type(SURROGATES[how]).__name__
            with pytest.raises(ValueError, match=f"'tensor' has no operations for {kind} of .*; use backend='auto'"):
                rank_loss(scores, target, *pair, backend="tensor")


# A loss with a name of its own: its module with options, its function, and what they stand for.
NAMED: list[tuple[str, dict[str, Any], str, Any, rw.Surrogate]] = [
    ("RankHingeLoss", {"loss": "mrr", "scale": 3.0}, "structured_hinge", "mrr", rw.Hinge(3.0)),
    ("APHingeLoss", {}, "structured_hinge", "ap", rw.Hinge()),
    ("NDCGHingeLoss", {}, "structured_hinge", "ndcg", rw.Hinge()),
    ("NDCGHingeLoss", {"k": 3, "gain": "linear"}, "structured_hinge", rw.NDCG(k=3, gain="linear"), rw.Hinge()),
    ("SmoothRankLoss", {"loss": "ndcg", "width": 0.4}, "smooth_loss", "ndcg", rw.Smooth(0.4)),
    ("ErrorDrivenLoss", {"width": 0.4, "interpolate": False}, "error_driven_loss", "ap", rw.ErrorDriven(0.4, False)),
    ("DirectLoss", {"epsilon": 5.0}, "direct_loss", "ap", rw.Direct(5.0)),
    ("DirectLoss", {"update": "negative"}, "direct_loss", "ap", rw.Direct(-1.0)),
]


@pytest.mark.parametrize(("name", "own", "function_name", "metric", "surrogate"), NAMED)
def test_named_losses_are_a_metric_and_a_surrogate_with_the_same_options(
    name: str, own: dict[str, Any], function_name: str, metric: Any, surrogate: rw.Surrogate, rng: np.random.Generator
) -> None:
    module, pair = partial(getattr(rwt, name), **own), (metric, surrogate)
    of_surrogate = {key: value for key, value in own.items() if key not in ("loss", "k", "gain")}
    function = partial(getattr(functional, function_name), loss=metric, **of_surrogate)
    scores, target = torch.tensor(rng.normal(size=(12, 4))), torch.tensor(rng.random((12, 4)) < 0.4)
    mask, qid = torch.tensor(rng.random((12, 4)) < 0.8), torch.arange(12) % 2
    options: dict[str, Any] = {"dim": 0, "reduction": "none", "empty": "skip", "ignore_index": 9}
    made = module(**options)
    assert isinstance(made, rwt.RankLoss)
    assert "dim=0" in str(made)
    assert repr(pair[1]) in str(made)
    expected = rank_loss(scores, target, *pair, mask=mask, **options)
    assert torch.equal(made(scores, target, mask=mask), expected)
    assert torch.equal(function(scores, target, mask=mask, **options), expected)
    assert torch.equal(rwt.RankLoss(*pair, **options)(scores, target, mask=mask), expected)
    ragged = module()(scores[:, 0], target[:, 0], qid=qid)
    assert torch.equal(ragged, function(scores[:, 0], target[:, 0], qid=qid))


def test_surrogates_go_by_name_too_and_what_is_none_is_refused() -> None:
    scores, target = torch.tensor([2.0, 1.0, 0.0]), torch.tensor([0, 1, 0])
    assert rank_loss(scores, target, "ap", "smooth") == rank_loss(scores, target, "ap", rw.Smooth())
    for make in (rwt.RankLoss, partial(rank_loss, scores, target)):
        with pytest.raises(ValueError, match="unknown surrogate 'triplet'; use one of 'hinge'"):
            make("ap", "triplet")
        with pytest.raises(ValueError, match="unknown loss 'map'"):
            make("map")
        with pytest.raises(TypeError, match="unexpected keyword argument 'margin'"):
            make("ap", margin=1.0)
        with pytest.raises(ValueError, match="zero-one has no discount, so it cannot be smoothed"):
            make("zero-one", rw.ErrorDriven())


@pytest.mark.parametrize("backend", ["core", "tensor"])
def test_grades_that_a_gain_makes_equal_are_one_grade(backend: str, rng: np.random.Generator) -> None:
    scores, grades = torch.tensor(rng.normal(size=40)), torch.tensor(rng.integers(0, 4, 40))
    value = rank_loss(scores, grades, ONE_GAIN, rw.Smooth(), backend=backend)
    assert value.item() == pytest.approx(rank_loss(scores, grades > 1, ONE_GAIN, rw.Smooth()).item(), rel=1e-12)
    assert rank_loss(scores, grades + 2, ONE_GAIN, rw.Smooth(), backend=backend).item() == 0.0


@pytest.mark.parametrize("backend", ["core", "tensor"])
@pytest.mark.parametrize("how", ["hinge", "smooth, by thresholds", "error-driven"])
def test_what_is_no_grade_is_refused_and_named(how: str, backend: str) -> None:
    def run(target: list[float], scores: tuple[float, ...] = (1.0, 2.0, 3.0), metric: str = "ndcg") -> Any:
        return rank_loss(torch.tensor(scores), torch.tensor(target), metric, SURROGATES[how], backend=backend)

    for target, said in (
        ([0.0, -1.0, 2.0], r"target\[1\] is -1.0; grades must be finite and at least 0"),
        ([0.0, 2.0, float("nan")], r"target\[2\] is nan; grades must be finite"),
        ([0.0, 2.0, float("inf")], r"target\[2\] is inf; grades must be finite"),
        ([0.0, 2.0, 5000.0], "the gain of grade 5000, is beyond float64; pass gain='linear'"),
    ):
        with pytest.raises(ValueError, match=said):
            run(target)
    with pytest.raises(ValueError, match=r"scores\[1\] is nan"):
        run([2.0, 2.0, 2.0], (1.0, float("nan"), 2.0))
    with pytest.raises(ValueError, match="1000 different grades"):
        run([0.01 * k for k in range(1000)], tuple(map(float, range(1000))), "ap")


def test_losses_of_labels_and_direct_losses_take_no_grades() -> None:
    scores, grades = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0, 1, 2])
    with pytest.raises(ValueError, match="takes binary relevance, not grades; pass relevant > 0"):
        functional.direct_loss(scores, grades)
    with pytest.raises(ValueError, match="zero-one takes labels, not grades"):
        functional.structured_hinge(scores, grades, "zero-one")


@pytest.mark.parametrize("backend", ["core", "tensor"])
def test_errors_name_queries_and_scores_by_their_place(backend: str, rng: np.random.Generator) -> None:
    scores, target = torch.tensor(rng.normal(size=(4, 5))), torch.tensor([[0, 1, 2, 3, 0]] * 4)
    target[1:3] = torch.tensor([0, 2, 0, 0, 2])  # two binary queries
    run = partial(rank_loss, metric="ndcg", surrogate=SURROGATES["error-driven"], dim=1, backend=backend)
    for q in range(4):
        bad, label = scores.clone(), target.clone()
        bad[q, 3], label[q] = torch.nan, 2
        with pytest.raises(ValueError, match=f"scores of query {q} at 3 is nan"):
            run(bad, target)
        with pytest.raises(ValueError, match=f"query {q} has no two different grades"):
            run(scores, label, empty="error")
