"""RetrievalLoss against a loop over queries: who is ranked, by which similarity, and in how much memory."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import rankwise as rw

torch = pytest.importorskip("torch")

from torch.multiprocessing.reductions import StorageWeakRef  # noqa: E402
from torch_batches import with_gradient  # noqa: E402

import rankwise.torch as rwt  # noqa: E402
from rankwise.torch import core, operator  # noqa: E402
from rankwise.torch.functional import retrieval_loss  # noqa: E402

# Each surrogate of similarities, and the options of the loss that ask for it.
SURROGATES: dict[str, tuple[rw.Surrogate, dict[str, Any]]] = {
    "hinge": (rw.Hinge(2.0), {"surrogate": "hinge", "scale": 2.0}),
    "smooth": (rw.Smooth(0.2), {"surrogate": "smooth", "width": 0.2}),
    "error-driven": (rw.ErrorDriven(0.2), {"surrogate": "error-driven", "width": 0.2}),
    "an object": (rw.Hinge(3.0), {"surrogate": rw.Hinge(3.0)}),
}
OWN = rw.DiscountedLoss(lambda k: 1 / (1 + k), lambda m: 0.7**m + 0.1 / m, name="own")


def points(n: int, d: int = 4, labels: int = 4, seed: int = 0) -> tuple[Any, Any]:
    """Embeddings in float64, and labels of which one is alone."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, labels, n)
    chosen[n // 2] = 77
    return torch.tensor(rng.normal(size=(n, d))), torch.tensor(chosen)


def by_loop(
    embeddings: Any,
    labels: Any,
    loss: Any,
    surrogate: rw.Surrogate,
    cosine: bool,
    reference: Any = None,
    reference_labels: Any = None,
) -> tuple[list[float], list[bool], Any, list[Any]]:
    """The loss of each query, whether it counts, and by autograd through the similarities the gradient of each."""
    queries = embeddings.detach().clone().requires_grad_()
    others = queries if reference is None else reference.detach().clone().requires_grad_()
    of_others = labels if reference is None else reference_labels
    values, filled, surrogates = [], [], []
    for i in range(len(queries)):
        ranked = [j for j in range(len(others)) if reference is not None or j != i]
        relevant = (of_others[ranked] == labels[i]).numpy()
        lengths = queries[i].norm() * others[ranked].norm(dim=1) if cosine else 1.0
        similarities = (others[ranked] * queries[i]).sum(1) / lengths
        found = rw.evaluate(surrogate, similarities.detach().numpy(), relevant, loss)
        values.append(found.value)
        filled.append(bool(0 < relevant.sum() < relevant.size))
        surrogates.append((similarities * torch.tensor(found.gradient.copy())).sum())
    return values, filled, torch.stack(surrogates), [queries] if reference is None else [queries, others]


def check(expected: tuple[Any, ...], leaves: list[Any], found: Any, reduction: str, empty: str) -> None:
    given, filled, surrogates, their_leaves = expected
    values = torch.tensor(given, dtype=torch.float64)
    weights = torch.arange(1.0, len(values) + 1).double() if reduction == "none" else torch.ones_like(values)
    if reduction == "mean":
        weights /= sum(filled) if empty == "skip" else len(values)
    if reduction == "none":
        torch.testing.assert_close(found, values, rtol=1e-10, atol=1e-10)
        found = found @ weights
    torch.testing.assert_close(found, values @ weights, rtol=1e-10, atol=1e-10)
    found.backward()
    theirs = torch.autograd.grad(surrogates @ weights, their_leaves, retain_graph=True)
    for ours, gradient in zip(leaves, theirs, strict=True):
        torch.testing.assert_close(ours.grad, gradient, rtol=1e-9, atol=1e-10)
        assert ours.grad.abs().sum() > 0


@pytest.mark.parametrize("chunk_size", [None, 1, 4])
@pytest.mark.parametrize("referred", [False, True], ids=["each other", "references"])
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("name", SURROGATES)
def test_every_embedding_is_a_query(name: str, similarity: str, referred: bool, chunk_size: int | None) -> None:
    embeddings, labels = points(9)
    reference, reference_labels = points(8, seed=1) if referred else (None, None)
    if referred:
        reference[0], reference_labels[0], reference_labels[4] = embeddings[0], labels[0], 0  # a copy is ranked, too
    surrogate, given = SURROGATES[name]
    ways = zip(product(("mean", "sum", "none"), ("skip", "zero")), ("ap", "ndcg", OWN) * 2, strict=True)
    for (reduction, empty), loss in ways:
        expected = by_loop(embeddings, labels, loss, surrogate, similarity == "cosine", reference, reference_labels)
        assert not all(expected[1])
        for backend in ("core", "tensor"):
            leaves = [one.clone().requires_grad_() for one in (embeddings, reference) if one is not None]
            options = {**given, "similarity": similarity, "reduction": reduction, "empty": empty, "backend": backend}
            module = rwt.RetrievalLoss(loss, chunk_size=chunk_size, **options)
            found = module(leaves[0], labels, *([leaves[1], reference_labels] if referred else []))
            check(expected, leaves, found, reduction, empty)


def test_by_default_the_loss_is_the_smooth_one_with_the_width_that_was_measured() -> None:
    embeddings, labels = points(13)
    expected = rwt.RetrievalLoss("ap", surrogate="smooth", width=0.05)
    for found in (rwt.RetrievalLoss("ap"), rwt.RetrievalLoss(surrogate="smooth"), rwt.RetrievalLoss(width=0.05)):
        assert found.surrogate == expected.surrogate
        assert found(embeddings, labels).item() == expected(embeddings, labels).item()
    assert retrieval_loss(embeddings, labels).item() == expected(embeddings, labels).item()
    hinge = [rwt.RetrievalLoss(surrogate="hinge", **options) for options in ({}, {"scale": 1.0})]
    assert hinge[0](embeddings, labels).item() == hinge[1](embeddings, labels).item()


def test_labels_alone_and_a_single_embedding_are_0_with_gradient_0() -> None:
    for labels in (torch.arange(6), torch.zeros(6, dtype=torch.int64), torch.zeros(6, dtype=torch.bool)):
        for chunk_size in (None, 2):
            leaf = points(6)[0].requires_grad_()
            value = retrieval_loss(leaf, labels, chunk_size=chunk_size)
            value.backward()
            assert value.item() == 0.0
            assert torch.equal(leaf.grad, torch.zeros_like(leaf))
    for n in (0, 1):
        leaf = torch.ones(n, 3, requires_grad=True)
        value = retrieval_loss(leaf, torch.zeros(n, dtype=torch.int64))
        value.backward()
        assert value.item() == 0.0
        assert leaf.grad.shape == (n, 3)
        assert retrieval_loss(leaf, torch.zeros(n, dtype=torch.int64), reduction="none").shape == (n,)


def test_a_zero_embedding_has_a_finite_gradient() -> None:
    embeddings, labels = points(8)
    embeddings[3] = 0.0
    assert torch.isfinite(with_gradient(retrieval_loss, embeddings, labels)[1]).all()


@pytest.mark.parametrize("chunk_size", [7, None])
def test_chunks_hold_the_similarities_of_one_chunk_at_a_time(monkeypatch: Any, chunk_size: int | None) -> None:
    seen: list[tuple[int, ...]] = []
    held: list[StorageWeakRef] = []
    reduced_loss, solve_batch = operator.reduced_loss, core.solve_batch

    def watch(scores: Any, *args: Any, **options: Any) -> Any:
        if chunk_size is not None:
            assert sum(not one.expired() for one in held) == 0, "similarities of an earlier chunk are still held"
        seen.append(tuple(scores.shape))
        held.append(StorageWeakRef(scores.untyped_storage()))
        return reduced_loss(scores, *args, **options)

    def watch_gradient(*args: Any) -> Any:
        found = solve_batch(*args)
        held.append(StorageWeakRef(found.gradient.untyped_storage()))
        return found

    monkeypatch.setattr(operator, "reduced_loss", watch)
    monkeypatch.setattr(core, "solve_batch", watch_gradient)
    embeddings, labels = points(40)
    leaf = embeddings.requires_grad_()
    value = retrieval_loss(leaf, labels, chunk_size=chunk_size)
    if chunk_size is None:
        assert seen == [(40, 40)]
        return
    assert seen == [(7, 40)] * 5 + [(5, 40)]
    assert all(one.expired() for one in held)
    value.backward()
    assert len(seen) == 12  # computed again on the way back
    assert all(one.expired() for one in held)
    seen.clear()
    with torch.no_grad():
        assert retrieval_loss(leaf, labels, chunk_size=chunk_size).item() == value.item()
    assert len(seen) == 6


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_embeddings_of_lower_precision_give_a_float32_loss(dtype: Any) -> None:
    embeddings, labels = points(20)
    leaf = embeddings.to(dtype).requires_grad_()
    value = retrieval_loss(leaf, labels)
    value.backward()
    assert (value.dtype, leaf.grad.dtype) == (torch.float32, dtype)
    exact = retrieval_loss(leaf.detach().double(), labels)
    assert value.item() == pytest.approx(exact.item(), rel=0.05 if dtype == torch.bfloat16 else 1e-5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for chunk_size in (None, 6):
            mixed = embeddings.float().requires_grad_()
            value = retrieval_loss(mixed, labels, chunk_size=chunk_size)
            value.backward()
            assert value.item() == pytest.approx(exact.item(), rel=0.05)
            assert torch.isfinite(mixed.grad).all()


def test_it_can_be_mapped_and_takes_tensors_without_data() -> None:
    stacked = torch.stack([points(8, seed=seed)[0] for seed in range(3)])
    labels = points(8)[1]
    expected = torch.stack([retrieval_loss(one, labels) for one in stacked])
    torch.testing.assert_close(torch.vmap(lambda one: retrieval_loss(one, labels))(stacked), expected)
    slope = torch.func.grad(lambda one: retrieval_loss(one, labels))(stacked[0])
    leaf = stacked[0].clone().requires_grad_()
    retrieval_loss(leaf, labels).backward()
    torch.testing.assert_close(slope, leaf.grad)
    assert retrieval_loss(stacked[0].to("meta"), labels.to("meta"), reduction="none").shape == (8,)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")  # PyTorch's notices to itself
def test_it_compiles_in_one_graph() -> None:
    torch._dynamo.reset()
    embeddings, labels = points(10)
    module = rwt.RetrievalLoss()
    ours, theirs = embeddings.clone().requires_grad_(), embeddings.clone().requires_grad_()
    value = torch.compile(module, fullgraph=True, backend="aot_eager")(ours, labels)
    value.backward()
    expected = module(theirs, labels)
    expected.backward()
    torch._dynamo.reset()
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(ours.grad, theirs.grad)


NAN, INF = float("nan"), float("inf")
E6, L6 = torch.arange(12.0).reshape(6, 2), torch.tensor([0, 0, 1, 1, 2, 2])
REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "flat embeddings": ({"embeddings": E6[0]}, ValueError, r"embeddings must be \(n, d\)"),
    "integer embeddings": ({"embeddings": E6.long()}, (TypeError, ValueError), "embeddings must be.*floating point"),
    "array": ({"embeddings": E6.numpy()}, TypeError, "embeddings must be a tensor"),
    "list of labels": ({"labels": L6.tolist()}, TypeError, "labels must be a tensor"),
    "labels' shape": ({"labels": L6[:5]}, ValueError, r"labels has shape \(5,\).*need \(6,\)"),
    "labels of floats": ({"labels": L6.float()}, TypeError, "labels must be integers, got torch.float32"),
    "labels elsewhere": ({"labels": L6.to("meta")}, ValueError, r"labels is on meta.*\.to\(\)"),
    "no reference labels": ({"reference": E6}, ValueError, "reference and reference_labels must be given together"),
    "no reference": ({"reference_labels": L6}, ValueError, "reference and reference_labels must be given together"),
    "columns": ({"reference": E6[:, :1], "reference_labels": L6}, ValueError, "reference has 1 columns but .* 2"),
    "dtypes": ({"reference": E6.double(), "reference_labels": L6}, (TypeError, ValueError), "reference.*float64"),
    "similarity": ({"similarity": "l2"}, ValueError, "unknown similarity='l2'; use one of 'cosine', 'dot'"),
    "chunk_size": ({"chunk_size": 0}, ValueError, "chunk_size must be a whole number of queries, at least 1, got 0"),
    "half a chunk": ({"chunk_size": 2.5}, ValueError, "chunk_size must be a whole number"),
    "reduction": ({"reduction": "max"}, ValueError, "unknown reduction='max'"),
    "gather": ({"gather": "DDP"}, ValueError, "unknown gather='DDP'; use False, True or 'ddp'"),
    "loss": ({"loss": "map"}, ValueError, "unknown loss 'map'"),
    "scale": ({"surrogate": "hinge", "scale": -1}, ValueError, "scale must be"),
    "scale alone": ({"scale": 0.5}, ValueError, "scale is the weight .* hinge, .*; pass surrogate='hinge' with it, or"),
    "surrogate": ({"surrogate": "triplet"}, ValueError, "unknown surrogate='triplet'; use one of 'smooth'"),
    "width": ({"surrogate": "smooth", "width": 0.0}, ValueError, "width must be a positive number"),
    "no discount": ({"surrogate": "error-driven", "loss": "zero-one"}, ValueError, "zero-one has no discount"),
    "nan": ({"embeddings": torch.where(E6 == 5.0, NAN, E6)}, ValueError, r"embeddings\[2\] has.*not finite"),
    "nan in a chunk": (
        {"embeddings": torch.where(E6 == 5.0, NAN, E6), "chunk_size": 2},
        ValueError,
        r"embeddings\[2\] has.*not finite",
    ),
    "inf in the reference": (
        {"reference": torch.where(E6 == 5.0, -INF, E6), "reference_labels": L6, "similarity": "dot"},
        ValueError,
        r"reference\[2\] has.*not finite",
    ),
    "alone": ({"labels": torch.tensor([0, 0, 0, 1, 0, 0]), "empty": "error"}, ValueError, "query 3 has no positives"),
    "alone in chunk 2": (
        {"labels": torch.tensor([0, 0, 0, 1, 0, 0]), "empty": "error", "chunk_size": 2},
        ValueError,
        "query 3 has no positives",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_with_its_name_and_bad_options_when_a_module_is_made(name: str) -> None:
    options, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        retrieval_loss(**{"embeddings": E6, "labels": L6, **options})
    if not options.keys() & {"embeddings", "labels", "reference", "reference_labels"}:
        with pytest.raises(error, match=words):
            rwt.RetrievalLoss(**options)
