"""Grades and losses of the first places in PyTorch: both implementations equal the core, whatever the layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rankwise as rw

torch = pytest.importorskip("torch")

from rankwise.torch import ErrorDrivenLoss, NDCGHingeLoss, RankHingeLoss, SmoothRankLoss  # noqa: E402
from rankwise.torch.functional import (  # noqa: E402
    direct_loss,
    error_driven_loss,
    smooth_loss,
    structured_hinge,
)

RTOL, RTOL_FLOAT32, ATOL = 1e-9, 3e-5, 1e-12
BACKENDS = ("core", "tensor")
NAMES = ("ndcg", "ap", "mrr", "auc", "ndcg@3", "ap@4", "mrr@2", "precision@3")
OWN = rw.DiscountedLoss(lambda i: 1.0 / i, lambda m: 1.0 / (2.0 + m), k=5, gain=lambda y: y**2)
PAIRS: dict[str, tuple[Any, Any]] = {
    "hinge": (structured_hinge, rw.structured_hinge),
    "smooth": (smooth_loss, rw.smooth_loss),
    "error-driven": (error_driven_loss, rw.error_driven_loss),
}


CASES = [
    pytest.param(kind, loss, backend, id=f"{kind}, {loss if isinstance(loss, str) else 'own'}, {backend}")
    for kind in PAIRS
    for loss in [*NAMES, OWN]
    for backend in BACKENDS
    if backend == "core" or kind != "hinge" or loss in ("ndcg", "ap", "mrr", "auc")  # a cut-off breaks (C2)
]


def both(function: Any, scores: Any, target: Any, loss: Any, **options: Any) -> tuple[Any, Any]:
    """The value and the gradient of its sum, as arrays."""
    given = scores.clone().requires_grad_()
    value = function(given, target, loss, **options)
    value.sum().backward()
    return value.detach().numpy(), given.grad.numpy()


@pytest.mark.parametrize(("kind", "loss", "backend"), CASES)
def test_grades_have_the_values_and_gradients_of_the_core(
    kind: str, loss: Any, backend: str, rng: np.random.Generator
) -> None:
    in_torch, in_core = PAIRS[kind]
    for number in (1, 2, 4):
        n = int(rng.integers(2, 25))
        grades = rng.integers(0, 5, n) * 1.0 if number % 2 else np.round(rng.exponential(1.0, n), 1)
        grades[:2] = grades.max() + 1.5, grades.min()
        # No ties: of them, another ranking may be as violating, and a rank may be at a kink of D or w.
        s = rng.normal(size=n) + 1e3 * (number == 4)
        expected = in_core(s, grades, loss)
        value, gradient = both(in_torch, torch.tensor(s), torch.tensor(grades), loss, backend=backend)
        assert value == pytest.approx(expected.value, rel=RTOL, abs=1e-10)
        np.testing.assert_allclose(gradient, expected.gradient, rtol=RTOL, atol=1e-10)


@pytest.mark.parametrize(("kind", "loss", "backend"), [case for case in CASES if "@" in case.id])
def test_binary_losses_of_the_first_places_equal_the_core(
    kind: str, loss: str, backend: str, rng: np.random.Generator
) -> None:
    in_torch, in_core = PAIRS[kind]
    for number in range(12):
        n = (2, 3, 30)[number % 3]
        y, s = rng.random(n) < 0.3, np.round(rng.normal(size=n), 2 if number % 2 else 9)
        y[:2] = True, False
        expected = in_core(s, y, loss)
        value, gradient = both(in_torch, torch.tensor(s), torch.tensor(y), loss, backend=backend)
        assert value == pytest.approx(expected.value, rel=RTOL, abs=1e-10)
        if number % 2 == 0 or kind != "hinge":  # of tied scores, another ranking may be as violating
            np.testing.assert_allclose(gradient, expected.gradient, rtol=RTOL, atol=1e-10)


@pytest.mark.parametrize(("kind", "loss", "backend"), [case for case in CASES if case.values[1] in ("ndcg", "ap@4")])
def test_rows_columns_masks_and_ragged_queries_are_one_batch(
    kind: str, loss: str, backend: str, rng: np.random.Generator
) -> None:
    in_torch, in_core = PAIRS[kind]
    s, grades, mask = rng.normal(size=(7, 20)), rng.integers(0, 4, (7, 20)), rng.random((7, 20)) < 0.8
    grades[2] = 3  # nothing to rank
    expected, gradient = np.zeros(7), np.zeros((7, 20))
    for q in range(7):
        alone = in_core(s[q, mask[q]], np.append(grades[q, mask[q]], 9)[:-1], loss)
        expected[q], gradient[q, mask[q]] = alone.value, alone.gradient
    scores, target, valid = torch.tensor(s), torch.tensor(grades), torch.tensor(mask)
    given: dict[str, tuple[Any, ...]] = {
        "rows": (scores, target, {"mask": valid, "dim": 1}),
        "columns": (scores.t(), target.t(), {"mask": valid.t(), "dim": 0}),
        "ignored": (scores, torch.where(valid, target, -100), {"ignore_index": -100, "dim": 1}),
        "ragged": (
            scores.flatten(),
            target.flatten(),
            {"qid": torch.arange(7).repeat_interleave(20), "mask": valid.flatten()},
        ),
    }
    for name, (a, b, options) in given.items():
        values, found = both(in_torch, a, b, loss, reduction="none", backend=backend, **options)
        np.testing.assert_allclose(values, expected, rtol=RTOL, atol=ATOL, err_msg=name)
        found = found.T if name == "columns" else found.reshape(7, 20)
        np.testing.assert_allclose(found, gradient, rtol=RTOL, atol=1e-10, err_msg=name)
        skipped, _ = both(in_torch, a, b, loss, empty="skip", backend=backend, **options)
        assert skipped == pytest.approx(expected.sum() / 6, rel=RTOL)
    with pytest.raises(ValueError, match="query 2 has no two different grades"):
        in_torch(scores, target, loss, dim=1, empty="error", backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_half_and_single_precision_give_the_same(backend: str, rng: np.random.Generator) -> None:
    s, grades = rng.normal(size=50), rng.integers(0, 4, 50)
    for dtype in (torch.float32, torch.bfloat16):
        scores = torch.tensor(s).to(dtype)
        for kind, (in_torch, in_core) in PAIRS.items():
            expected = in_core(scores.double().numpy(), grades, "ndcg@10")
            how = "auto" if kind == "hinge" else backend
            value = in_torch(scores, torch.tensor(grades), "ndcg@10", backend=how)
            assert value.item() == pytest.approx(expected.value, rel=RTOL_FLOAT32), kind


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [structured_hinge, smooth_loss, error_driven_loss])
def test_what_is_no_grade_is_refused_and_named(function: Any, backend: str) -> None:
    s = torch.tensor([1.0, 2.0, 3.0])
    for target, said in (
        ([0.0, -1.0, 2.0], r"target\[1\] is -1.0; grades must be finite and at least 0"),
        ([0.0, 2.0, float("nan")], r"target\[2\] is nan; grades must be finite"),
        ([0.0, 2.0, float("inf")], r"target\[2\] is inf; grades must be finite"),
        ([0.0, 2.0, 5000.0], "the gain of grade 5000, is beyond float64; pass gain='linear'"),
    ):
        with pytest.raises(ValueError, match=said):
            function(s, torch.tensor(target), "ndcg", backend=backend)
    with pytest.raises(ValueError, match=r"scores\[1\] is nan"):
        function(torch.tensor([1.0, float("nan"), 2.0]), torch.tensor([2, 2, 2]), backend=backend)
    many = torch.arange(1000.0)
    with pytest.raises(ValueError, match="1000 different grades"):
        function(many, many / 100, "ap", backend=backend)
    assert smooth_loss(many, many / 100, "ndcg", width=1e-3, backend=backend).item() == pytest.approx(0.0, abs=1e-9)


def test_direct_losses_and_labels_take_no_grades() -> None:
    s, grades = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0, 1, 2])
    with pytest.raises(ValueError, match="target must be binary"):
        direct_loss(s, grades)
    with pytest.raises(ValueError, match="zero-one takes labels, not grades"):
        structured_hinge(s, grades, "zero-one")


def test_modules_take_grades_and_cut_offs(rng: np.random.Generator) -> None:
    s, grades = rng.normal(size=30), rng.integers(0, 5, 30)
    scores, target = torch.tensor(s), torch.tensor(grades)
    hinge = rw.structured_hinge(s, grades, "ndcg@10").value
    assert RankHingeLoss("ndcg@10")(scores, target).item() == pytest.approx(hinge, rel=RTOL)
    assert NDCGHingeLoss(k=10)(scores, target).item() == pytest.approx(hinge, rel=RTOL)
    linear = rw.structured_hinge(s, grades, rw.NDCG(gain="linear")).value
    assert NDCGHingeLoss(gain="linear")(scores, target).item() == pytest.approx(linear, rel=RTOL)
    smooth = rw.smooth_loss(s, grades, "ndcg@10", width=0.5).value
    assert SmoothRankLoss("ndcg@10", width=0.5)(scores, target).item() == pytest.approx(smooth, rel=RTOL)
    driven = rw.error_driven_loss(s, grades, "ndcg").value
    assert ErrorDrivenLoss("ndcg")(scores, target).item() == pytest.approx(driven, rel=RTOL)


def test_a_graded_loss_compiles_and_maps(rng: np.random.Generator) -> None:
    s, grades = torch.tensor(rng.normal(size=(4, 12))), torch.tensor(rng.integers(0, 4, (4, 12)))
    mapped = torch.func.vmap(lambda a, b: smooth_loss(a, b, "ndcg@5"))(s, grades)
    each = smooth_loss(s, grades, "ndcg@5", dim=1, reduction="none")
    torch.testing.assert_close(mapped, each)
