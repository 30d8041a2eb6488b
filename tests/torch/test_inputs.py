"""What a rank loss takes, keeps and leaves alone: graphs without positives, memory, layouts, and every refusal."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import rankwise as rw

torch = pytest.importorskip("torch")

from torch_batches import batch, with_gradient  # noqa: E402

import rankwise.torch as rwt  # noqa: E402
from rankwise.torch import functional  # noqa: E402

BACKENDS = ("core", "tensor")
NAN, INF = float("nan"), float("inf")
# Each row is a list, unless a test says otherwise.
structured_hinge = partial(functional.structured_hinge, dim=-1)
direct_loss = partial(functional.direct_loss, dim=-1)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("label", [False, True])
@pytest.mark.parametrize("empty", ["zero", "skip"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_a_batch_of_one_class_is_0_with_gradient_0(label: bool, empty: str, reduction: str, backend: str) -> None:
    weights = torch.ones(3, 5, requires_grad=True)
    scores = 2.0 * weights
    for options in ({}, {"qid": torch.arange(15) % 4}, {"mask": torch.zeros(3, 5, dtype=torch.bool)}):
        given = scores.reshape(-1) if "qid" in options else scores
        value = structured_hinge(
            given, torch.full_like(given, label), empty=empty, reduction=reduction, backend=backend, **options
        )
        assert value.requires_grad
        assert value.abs().sum().item() == 0.0
        weights.grad = None
        value.sum().backward(retain_graph=True)
        assert torch.equal(weights.grad, torch.zeros(3, 5))


@pytest.mark.parametrize("backend", BACKENDS)
def test_batches_without_queries_or_samples_are_0_and_keep_their_shape(backend: str) -> None:
    for shape, expected in (((0, 5), (0,)), ((5, 0), (5,)), ((0,), ()), ((2, 0, 3), (2, 0)), ((0, 0), (0,))):
        leaf = torch.zeros(shape, requires_grad=True)
        found = structured_hinge(leaf, torch.zeros(shape), reduction="none", backend=backend)
        assert found.shape == expected
        assert found.abs().sum().item() == 0.0
        value = structured_hinge(leaf, torch.zeros(shape), empty="skip", backend=backend)
        value.backward()
        assert value.item() == 0.0
        assert leaf.grad.shape == shape
    ids = torch.zeros(0, dtype=torch.int64)
    assert structured_hinge(torch.zeros(0), torch.zeros(0), qid=ids, reduction="none", backend=backend).shape == (0,)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_going_backward_twice_gives_the_same_and_three_times_needs_the_graph(reduction: str, backend: str) -> None:
    scores, target = batch(3, 7)
    leaf = scores.clone().requires_grad_()
    value = structured_hinge(leaf, target, reduction=reduction, backend=backend).sum()
    (first,) = torch.autograd.grad(value, leaf, retain_graph=True)
    kept = first.clone()
    (second,) = torch.autograd.grad(3.0 * value, leaf, retain_graph=True)
    torch.testing.assert_close(second, 3.0 * kept)
    assert torch.equal(first, kept)
    value.backward()
    assert torch.equal(leaf.grad, kept)
    with pytest.raises(RuntimeError, match="second time"):
        value.backward()


@pytest.fixture
def solved(monkeypatch: Any) -> list[Any]:
    """The scores that the core is given."""
    seen = []
    solve = rw.Surrogate.solve

    def watch(surrogate: rw.Surrogate, scores: Any, queries: Any, *rest: Any) -> Any:
        seen.append(scores)
        return solve(surrogate, scores, queries, *rest)

    monkeypatch.setattr(rw.Surrogate, "solve", watch)
    return seen


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_contiguous_scores_on_the_cpu_are_read_where_they_are(solved: list[Any], dtype: Any) -> None:
    scores, target = batch(4, 9, dtype=dtype)
    cube, labels = batch(2, 3, 5, dtype=dtype)
    flat, label = batch(9, dtype=dtype)
    structured_hinge(scores, target)
    structured_hinge(cube.requires_grad_(), labels)
    structured_hinge(flat, label)
    for leaf in (flat, flat.requires_grad_()):
        structured_hinge(leaf, label, qid=torch.arange(9) // 3)
    seen = [given.__array_interface__["data"][0] for given in solved]
    assert seen == [scores.data_ptr(), cube.data_ptr(), *[flat.data_ptr()] * 3]


@pytest.mark.parametrize("backend", BACKENDS)
def test_views_of_any_strides_are_ranked_as_their_copies_are(backend: str) -> None:
    scores, target = batch(8, 10)
    views = (
        (scores[:, ::2], target[:, ::2]),
        (scores.T, target.T),
        (scores[::3, 1:7], target[::3, 1:7]),
        (scores[:1].expand(4, 10), target[:4]),
        (scores.flip(1), target.flip(1)),
        (scores[:, 3], target[:, 3]),
    )
    for view, labels in views:
        copied = (view.clone(memory_format=torch.contiguous_format), labels.clone())
        assert structured_hinge(view, labels, backend=backend) == structured_hinge(*copied, backend=backend)
        base = scores.clone().requires_grad_()
        structured_hinge(base.T, target.T, backend=backend).backward()
        torch.testing.assert_close(
            base.grad, with_gradient(structured_hinge, scores, target, dim=0, backend=backend)[1]
        )


def test_without_gradient_modes_the_value_is_the_same_and_inputs_are_left_alone() -> None:
    scores, target = batch(4, 9)
    before = scores.clone()
    leaf = scores.clone().requires_grad_()
    value = structured_hinge(leaf, target)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            found = structured_hinge(leaf, target)
            by_tensors = structured_hinge(leaf, target, backend="tensor")
        assert not found.requires_grad
        assert found.item() == value.item()
        assert by_tensors.item() == pytest.approx(value.item(), rel=1e-6)
    assert not structured_hinge(scores, target).requires_grad
    with_gradient(structured_hinge, scores, target, backend="tensor")  # after inference mode has filled the tables
    assert torch.equal(scores, before)


def test_tensors_without_data_pass_through_with_shapes_only() -> None:
    scores, target = (one.to("meta") for one in batch(4, 9, dtype=torch.float16))
    leaf = scores.requires_grad_()
    value = structured_hinge(leaf, target, reduction="none")
    assert (value.shape, value.dtype, value.device.type) == ((4,), torch.float32, "meta")
    value.sum().backward()
    assert (leaf.grad.shape, leaf.grad.dtype) == ((4, 9), torch.float16)
    assert structured_hinge(scores, target, dim=0).shape == ()
    assert direct_loss(scores, target).shape == ()


@pytest.mark.parametrize("backend", BACKENDS)
def test_targets_masks_and_ids_of_any_dtype_mean_the_same(backend: str) -> None:
    scores, target = batch(3, 8)
    expected = structured_hinge(scores, target, backend=backend).item()
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64)
    for dtype in (*whole, torch.float16, torch.bfloat16, torch.float32, torch.float64):
        assert structured_hinge(scores, target.to(dtype), backend=backend).item() == expected
    qid = torch.tensor([0, 1, 2] * 8).sort().values
    for dtype in whole:
        found = structured_hinge(scores.reshape(-1), target.reshape(-1), qid=qid.to(dtype), backend=backend)
        assert found.item() == pytest.approx(expected, rel=1e-6)
        mask = torch.ones_like(target, dtype=dtype)
        assert structured_hinge(scores, target, mask=mask, backend=backend).item() == pytest.approx(expected, rel=1e-6)


GOOD, LABELS = torch.tensor([[1.0, 0.0, 2.0], [0.5, 0.25, 0.0]]), torch.tensor([[1, 0, 0], [0, 1, 0]])
FLAT = {"scores": GOOD[0], "target": LABELS[0]}
REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "integer scores": ({"scores": LABELS}, TypeError, "scores must be floating point.*int64"),
    "float8 scores": ({"scores": GOOD.to(torch.float8_e5m2)}, TypeError, "scores must be floating point.*float8"),
    "complex scores": ({"scores": GOOD.to(torch.complex64)}, TypeError, "scores must be floating point.*complex"),
    "one number": ({"scores": torch.tensor(1.0), "target": torch.tensor(1)}, ValueError, "at least one dimension"),
    "array scores": ({"scores": GOOD.numpy()}, TypeError, "scores must be a tensor, got ndarray.*torch.as_tensor"),
    "list target": ({"target": LABELS.tolist()}, TypeError, "target must be a tensor, got list.*torch.as_tensor"),
    "list mask": ({"mask": [True]}, TypeError, "mask must be a tensor, got list"),
    "target's shape": ({"target": LABELS[0]}, ValueError, r"target has shape \(3,\) but scores have \(2, 3\)"),
    "mask's shape": ({"mask": LABELS.T > 0}, ValueError, r"mask has shape \(3, 2\) but scores have \(2, 3\)"),
    "qid's shape": ({**FLAT, "qid": torch.arange(2)}, ValueError, r"qid has shape \(2,\); scores of shape \(3,\) need"),
    "qid of rows": ({"qid": LABELS}, ValueError, r"qid needs flat scores \(n,\).*flatten them, or leave qid out"),
    "qid of floats": ({**FLAT, "qid": torch.ones(3)}, TypeError, "qid must be integers, got torch.float32"),
    "qid of booleans": ({**FLAT, "qid": torch.ones(3).bool()}, TypeError, "qid must be integers, got torch.bool"),
    "mask of floats": ({"mask": GOOD}, TypeError, "mask must be boolean, True where a sample counts.*float32"),
    "complex target": ({"target": GOOD.to(torch.complex64)}, TypeError, "target must be boolean, or 0 and 1"),
    "target elsewhere": ({"target": LABELS.to("meta")}, ValueError, r"is on meta but scores are on cpu.*\.to\(\)"),
    "a grade": ({**FLAT, "target": torch.tensor([0, 1, -1])}, ValueError, r"target\[2\] is -1"),
    "nan target": ({"target": LABELS / LABELS}, ValueError, "target of query 0 at 1 is nan"),
    "nan": ({"scores": torch.tensor([[1.0, 0, 2], [0.5, NAN, 0]])}, ValueError, "query 1 at 1 is nan: not finite"),
    "inf": ({**FLAT, "scores": torch.tensor([1.0, 0.0, INF])}, ValueError, r"scores\[2\] is inf: not finite; mask it"),
    "half inf": ({"scores": GOOD.half() * 60000}, ValueError, "scores of query 0 at 2 is inf: not finite"),
    "too large": ({"scores": GOOD.double() * 9e307}, ValueError, "too large to compare; rescale the scores"),
    "dim": ({"dim": 2}, ValueError, r"dim=2 is not a dimension of scores of shape \(2, 3\)"),
    "negative dim": ({"dim": -3}, ValueError, r"dim=-3 is not a dimension of scores"),
    "dim of a number": ({"dim": 0.5}, TypeError, "dim must be an integer or None, got float"),
    "no dim": ({"dim": None}, ValueError, r"\(2, 3\); pass dim.*dim=0: the 2 samples.*dim=-1.*scores.flatten"),
    "a column": ({"scores": GOOD[:, :1], "target": LABELS[:, :1]}, ValueError, r"\(2, 1\) has length 1.*pass dim=0 to"),
    "a column, dim=1": ({"scores": GOOD[:, :1], "target": LABELS[:, :1], "dim": 1}, ValueError, r"squeeze\(1\) and t"),
    "a column and flat labels": ({"scores": GOOD[:, :1], "target": LABELS[:, 0]}, ValueError, r"scores\.squeeze"),
    "reduction": ({"reduction": "max"}, ValueError, "unknown reduction='max'; use one of 'mean', 'sum', 'none'"),
    "empty": ({"empty": "drop"}, ValueError, "unknown empty='drop'; use one of 'zero', 'skip', 'error'"),
    "backend": ({"backend": "cuda"}, ValueError, "unknown backend='cuda'; use one of 'auto', 'core', 'tensor'"),
    "gather": ({"gather": "all"}, ValueError, "unknown gather='all'; use False, True or 'ddp'"),
    "scale": ({"scale": -1.0}, ValueError, "scale must be finite and at least 0, got -1.0"),
    "nan scale": ({"scale": NAN}, ValueError, "scale must be finite"),
    "tensor scale": ({"scale": torch.tensor(1.0)}, TypeError, "scale must be a number, got Tensor"),
    "ignore_index": ({"ignore_index": "none"}, TypeError, "ignore_index must be an integer"),
    "loss": ({"loss": "map"}, ValueError, "unknown loss 'map'; use one of 'ap', 'ndcg'"),
    "class": ({"loss": rw.NDCG}, TypeError, "loss must be a name or a Loss"),
    "no suitable loss": ({"loss": rw.NDCG("chakrabarti")}, rw.NotQSSuitableError, r"breaks \(C2\) at \(i, j\)"),
    "empty query": ({"target": LABELS * 0, "empty": "error"}, ValueError, "query 0 has no positives or no negatives"),
    "empty by qid": ({**FLAT, "qid": torch.tensor([4, 4, 9]), "empty": "error"}, ValueError, "qid 9 has no .*zero"),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_with_its_place_and_a_remedy(name: str, backend: str) -> None:
    options, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        structured_hinge(**{"scores": GOOD, "target": LABELS, "backend": backend, **options})


HINGE = (functional.structured_hinge, rwt.RankHingeLoss)
SMOOTH, ERROR_DRIVEN = (functional.smooth_loss, rwt.SmoothRankLoss), (functional.error_driven_loss, rwt.ErrorDrivenLoss)
DIRECT = (functional.direct_loss, rwt.DirectLoss)
OPTIONS: list[tuple[tuple[Any, Any], dict[str, Any], type[Exception], str]] = [
    *((HINGE, *REFUSED[one]) for one in ("reduction", "empty", "backend", "gather", "scale", "loss", "class")),
    *((one, {"loss": "map"}, ValueError, "unknown loss 'map'") for one in (SMOOTH, ERROR_DRIVEN, DIRECT)),
    *((one, {"loss": "zero-one"}, ValueError, "zero-one has no.*use 'ap'") for one in (SMOOTH, ERROR_DRIVEN)),
    (SMOOTH, {"loss": "f1"}, ValueError, "f1 .* cannot be trained for; train for 'ap' and choose the threshold"),
    (SMOOTH, {"width": 0.0}, ValueError, "width must be a positive number"),
    (ERROR_DRIVEN, {"width": "wide"}, ValueError, "width must be a positive number"),
    (ERROR_DRIVEN, {"interpolate": 1}, TypeError, "interpolate must be True or False"),
    *((DIRECT, {"epsilon": one}, ValueError, f"epsilon must be .* got {one!r}") for one in (0.0, -1.0, NAN, INF, "1")),
    (DIRECT, {"update": "both"}, ValueError, "'positive', 'negative'"),
    (DIRECT, {"loss": rw.ZeroOne()}, ValueError, "takes labels, not rankings"),
]


@pytest.mark.parametrize(("loss", "options", "error", "words"), OPTIONS)
def test_bad_options_are_refused_by_functions_and_when_modules_are_made(
    loss: Any, options: Any, error: type[Exception], words: str
) -> None:
    function, module = loss
    with pytest.raises(error, match=words):
        function(torch.zeros(4), torch.tensor([0, 1, 0, 1]), **options)
    with pytest.raises(error, match=words):
        module(**options)


def test_a_wrong_target_in_the_padding_is_nobodys_business() -> None:
    mask = torch.tensor([[True, True, False], [True, True, True]])
    target = torch.tensor([[1, 0, 99], [0, 1, 0]])
    expected = structured_hinge(GOOD, LABELS, mask=mask).item()
    assert structured_hinge(GOOD, target, mask=mask).item() == expected
    assert structured_hinge(GOOD, target, ignore_index=99).item() == expected


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_sample_is_an_empty_query_where_it_is_flat_or_all_of_a_batch(backend: str) -> None:
    for options in ({}, {"qid": torch.tensor([4])}):
        assert functional.structured_hinge(torch.ones(1), torch.ones(1), backend=backend, **options).item() == 0.0
    leaf = torch.ones(1, 3, requires_grad=True)
    with pytest.warns(UserWarning, match=r"shape \(1, 3\) has length 1.*drop_last=True.*pass dim=-1"):
        value = structured_hinge(leaf, torch.tensor([[0, 1, 0]]), dim=0, backend=backend)
    value.backward()
    assert value.item() == 0.0
    assert torch.equal(leaf.grad, torch.zeros(1, 3))
    assert structured_hinge(leaf, torch.tensor([[0, 1, 0]]), dim=1, backend=backend).item() > 0.0
