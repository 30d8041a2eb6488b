"""The rank losses among PyTorch's own machinery: compilation, torch.func, autograd, precision, memory, refusals."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import shutil
from functools import partial
from typing import Any

import pytest

import rankwise as rw

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch_batches import batch, with_gradient  # noqa: E402
from torch_cases import Everywhere  # noqa: E402
from torch_versions import needs_a_recent_compiler  # noqa: E402

import rankwise.torch as rwt  # noqa: E402
from rankwise.surrogates.rank_sort import RankSort  # noqa: E402
from rankwise.torch import functional, operator  # noqa: E402
from rankwise.torch.objective import objective_of, posed  # noqa: E402

# PyTorch's notices to itself, while it compiles.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")

# Each row is a list, unless a test says otherwise.
structured_hinge = partial(functional.structured_hinge, dim=-1)

OWN = rw.DiscountedLoss(lambda k: 1 / (1 + k), lambda m: 0.7**m + 0.1 / m, name="own")
OTHER = rw.DiscountedLoss(lambda k: k, lambda m: 1 / m**0.5, name="other")


def assert_same(one: tuple[Any, Any], other: tuple[Any, Any]) -> None:
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


@pytest.fixture
def compiled() -> Any:
    """Compile for a whole graph, from a clean slate and with one afterwards."""
    torch._dynamo.reset()

    def compile_(run: Any, backend: str = "aot_eager", **options: Any) -> Any:
        return torch.compile(run, fullgraph=True, backend=backend, **options)

    yield compile_
    torch._dynamo.reset()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "also"),
    [
        (rwt.APHingeLoss(dim=1), "plain, no_grad"),
        (rwt.NDCGHingeLoss(dim=0, reduction="none", empty="skip", scale=4.0), "plain"),
        (rwt.APHingeLoss(dim=0, backend="tensor"), "no_grad"),
        (rwt.RankHingeLoss(OWN, dim=1), "plain"),
        (rwt.RankHingeLoss("auc", dim=1, ignore_index=0, reduction="sum"), "no_grad"),
        (rwt.DirectLoss(dim=1, update="negative"), "plain"),
        (rwt.DirectLoss("ndcg", dim=1, epsilon=0.5), "no_grad"),
        (rwt.RankLoss(OWN, rw.Smooth(0.5), dim=1), "plain"),
        (rwt.ErrorDrivenLoss("ndcg", width=0.5, dim=-1, backend="tensor"), "no_grad"),
        (rwt.RankLoss("ndcg", Everywhere(), dim=1), "plain"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_modules_compile_without_a_graph_break(compiled: Any, module: Any, also: str) -> None:
    """Each way to call a module compiles anew, so the ways without a gradient take turns."""
    scores, target = batch(6, 8)
    run = compiled(module)
    assert_same(with_gradient(run, scores, target), with_gradient(module, scores, target))
    if "plain" in also:  # where no gradient is asked for
        torch.testing.assert_close(run(scores, target), module(scores, target))
    if "no_grad" in also:
        with torch.no_grad():
            torch.testing.assert_close(run(scores, target), module(scores, target))


@needs_a_recent_compiler
def test_masks_and_ragged_queries_compile(compiled: Any) -> None:
    scores, target = batch(30)
    qid, mask = torch.arange(30) * 7 % 5, torch.arange(30) % 4 > 0
    for reduction in ("mean", "none"):

        def run(a: Any, b: Any, q: Any, m: Any, how: str = reduction) -> Any:
            return structured_hinge(2 * a, b, qid=q, mask=m, reduction=how)

        args = (target, qid, mask)
        assert_same(with_gradient(compiled(run), scores, *args), with_gradient(run, scores, *args))


@needs_a_recent_compiler
def test_a_compiled_loss_never_takes_another_loss_for_its_own(compiled: Any) -> None:
    scores, target = batch(4, 9)
    run = compiled(lambda a, b, loss: structured_hinge(a, b, loss))
    for loss in (OWN, OTHER, "ap", OWN, OTHER):
        torch.testing.assert_close(run(scores, target, loss), structured_hinge(scores, target, loss))
    run = compiled(lambda a, b, width: functional.smooth_loss(a, b, OTHER, width=width, dim=1))
    for width in (0.1, 2.0, 0.1):
        gc.collect()
        expected = functional.smooth_loss(scores, target, OTHER, width=width, dim=1)
        torch.testing.assert_close(run(scores, target, width), expected)
    module = rwt.RankHingeLoss(OWN, dim=1)
    run = compiled(module)
    before = run(scores, target)
    module.loss = OTHER
    assert run(scores, target).item() == structured_hinge(scores, target, OTHER).item() != before.item()


@needs_a_recent_compiler
def test_sizes_may_change_after_two_compilations(compiled: Any) -> None:
    compilations = []

    def count(graph: Any, _: Any) -> Any:
        compilations.append(graph)
        return graph.forward

    run = compiled(lambda a, b: structured_hinge(a, b), backend=count)
    ragged = compiled(lambda a, b, q: structured_hinge(a, b, qid=q), backend=count)
    for size in (5, 7, 8, 11, 16):
        scores, target = batch(size, 10)
        assert run(scores, target).item() == structured_hinge(scores, target).item()
    assert len(compilations) <= 2
    for size in (5, 7, 8, 11, 16):
        scores, target = batch(size)
        qid = torch.arange(size) % 3
        assert ragged(scores, target, qid).item() == structured_hinge(scores, target, qid=qid).item()
    assert len(compilations) <= 4


def test_keys_are_names_where_they_can_be_and_die_with_their_objects() -> None:
    known, own = posed("ap", rw.Smooth(0.5)), posed(OWN, rw.Smooth(0.5))
    assert known.key() == posed("ap", rw.Smooth(0.5)).key() != posed("ap", rw.Smooth(0.6)).key()
    key = own.key()
    assert objective_of(key) is own
    del own
    gc.collect()
    with pytest.raises(RuntimeError, match="has been deleted; keep a reference"):
        objective_of(key)


class Largest(TorchDispatchMode):
    """The number of entries of the largest tensor that operations return."""

    most = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        for one in found if isinstance(found, tuple | list) else (found,):
            self.most = max(self.most, one.numel() if isinstance(one, torch.Tensor) else 0)
        return found


@pytest.mark.parametrize(
    ("surrogate", "graded"),
    [
        (rw.Hinge(), False),
        (rw.Smooth(0.1), False),
        (rw.Smooth(0.1), True),
        (rw.ErrorDriven(0.1), False),
        (RankSort(0.1), True),
    ],
    ids=str,
)
def test_no_tensor_has_an_entry_for_each_positive_and_negative(surrogate: rw.Surrogate, graded: bool) -> None:
    n, n_pos = 1_001_000, 1000
    scores = torch.randn(n, generator=torch.Generator().manual_seed(5))
    target = torch.arange(n) % (n // n_pos) == 0
    if graded:
        target = target * (torch.arange(n) % 5 + 1) / 5
    options = (None, posed("ndcg" if graded and isinstance(surrogate, rw.Smooth) else "ap", surrogate), False, "tensor")
    with Largest() as seen:
        operator.solve(scores, target, None, None, *options)
    assert n <= seen.most <= 3 * n


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None and shutil.which("clang++") is None, reason="no C++ compiler at hand")
def test_the_default_compiler_agrees_too(compiled: Any) -> None:
    def run(a: Any, b: Any) -> Any:
        return structured_hinge(2.0 * a, b, dim=0, backend="tensor") + 3.0 * structured_hinge(torch.tanh(a), b, OWN)

    scores, target = batch(9, 4)
    assert_same(with_gradient(compiled(run, "inductor"), scores, target), with_gradient(run, scores, target))


@pytest.mark.parametrize("backend", ["core", "tensor"])
def test_the_operator_passes_the_checks_of_pytorch(backend: str) -> None:
    rows, labels = batch(4, 6)
    flat, label = batch(10)
    half, column = batch(7, 3, dtype=torch.float16)
    for given in (
        (rows, labels, None, None),
        (half.T, column.T, column.T | True, None),
        (flat, label, None, None),
        (flat, label, None, torch.arange(10) % 3),
        (flat, label, torch.arange(10) < 8, torch.arange(10) % 3),
    ):
        for objective in (posed("ap", rw.Hinge()), posed("ndcg", rw.Smooth()), posed("ap", RankSort())):
            if objective.parts and given[0].dim() > 1:
                continue
            options = (None, objective.key(), False, backend)
            torch.library.opcheck(torch.ops.rankwise.rank_loss, (*given, *options))


@pytest.mark.parametrize("backend", ["core", "tensor"])
@pytest.mark.parametrize("options", [{}, {"empty": "skip"}, {"reduction": "sum"}, {"reduction": "none"}], ids=str)
@pytest.mark.parametrize("surrogate", [rw.Hinge(), rw.ErrorDriven(0.5)], ids=["hinge", "error-driven"])
def test_vmap_equals_a_loop_with_and_without_gradient(surrogate: Any, options: dict[str, Any], backend: str) -> None:
    scores, target = batch(3, 4, 9)
    target[1, 2] = False
    mask = torch.rand(3, 4, 9, generator=torch.Generator().manual_seed(3)) < 0.8

    def solve(a: Any, b: Any, m: Any, **given: Any) -> Any:
        return functional.rank_loss(a, b, "ap", surrogate, mask=m, dim=-1, backend=backend, **given)

    def run(a: Any, b: Any, m: Any) -> Any:
        return solve(a, b, m, **options)

    def total(a: Any, b: Any, m: Any) -> Any:
        return run(a, b, m).sum()

    loop = [with_gradient(run, *one) for one in zip(scores, target, mask, strict=True)]
    torch.testing.assert_close(torch.vmap(run)(scores, target, mask), torch.stack([value for value, _ in loop]))
    gradients = torch.vmap(torch.func.grad(total))(scores, target, mask)
    torch.testing.assert_close(gradients, torch.stack([gradient for _, gradient in loop]))
    moved = torch.vmap(run, in_dims=(1, None, None))(scores.movedim(0, 1), target[0], mask[0])
    torch.testing.assert_close(moved, torch.stack([run(one, target[0], mask[0]) for one in scores]))
    each = torch.vmap(torch.vmap(run))(scores, target, mask)
    torch.testing.assert_close(each, solve(scores, target, mask, reduction="none"))


def test_jacobians_agree_in_all_of_pytorchs_ways() -> None:
    scores, target = batch(4, 7)

    def run(a: Any) -> Any:
        return structured_hinge(a, target, reduction="none")

    expected = torch.zeros(4, 4, 7)
    for row in range(4):
        expected[row, row] = with_gradient(lambda a: structured_hinge(a, target), scores)[1][row] * 4
    torch.testing.assert_close(torch.func.jacrev(run)(scores), expected)
    torch.testing.assert_close(torch.autograd.functional.jacobian(run, scores), expected)
    torch.testing.assert_close(torch.autograd.functional.jacobian(run, scores, vectorize=True), expected)
    leaf = scores.clone().requires_grad_()
    (batched,) = torch.autograd.grad(run(leaf), leaf, torch.eye(4), is_grads_batched=True)
    torch.testing.assert_close(batched, expected)


def test_what_cannot_be_differentiated_is_refused_in_plain_words() -> None:
    scores, target = batch(2, 7)
    qid = torch.arange(7) % 2
    leaf = scores.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(structured_hinge(leaf, target), leaf, create_graph=True)
    with pytest.raises(RuntimeError, match=r"no second derivative.*create_graph=False"):
        gradient.pow(2).sum().backward()
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.functional.hessian(lambda a: structured_hinge(a, target), scores)
    slope = torch.func.grad(lambda a: structured_hinge(a, target))
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.func.grad(lambda a: slope(a).pow(2).sum())(scores)
    with pytest.raises((RuntimeError, NotImplementedError), match="rank losses have no"):
        torch.func.hessian(lambda a: structured_hinge(a, target))(scores)
    with pytest.raises(NotImplementedError, match="no forward-mode derivative; use reverse mode"):
        torch.func.jacfwd(lambda a: structured_hinge(a, target))(scores)
    forward = torch.autograd.forward_ad
    with forward.dual_level(), pytest.raises(NotImplementedError, match="no forward-mode derivative"):
        structured_hinge(forward.make_dual(scores, scores), target)
    with pytest.raises(NotImplementedError, match=r"vmap cannot map .* \(qid=\); use a loop, or pad .* mask="):
        torch.vmap(lambda a, b: structured_hinge(a, b, qid=qid))(scores, target)


@pytest.mark.parametrize("backend", ["core", "tensor"])
def test_repeated_runs_are_equal_bit_by_bit_for_any_number_of_threads(backend: str) -> None:
    scores, target = batch(6, 3000)

    def run(a: Any) -> Any:
        return structured_hinge(a, target, "ndcg", backend=backend)

    threads = torch.get_num_threads()
    try:
        found = []
        for number in (1, 1, 2, 2):
            torch.set_num_threads(number)
            found.append(with_gradient(run, scores))
    finally:
        torch.set_num_threads(threads)
    for value, gradient in found[1:]:
        assert torch.equal(value, found[0][0])
        assert torch.equal(gradient, found[0][1])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_under_autocast_the_loss_is_float32_and_weights_get_their_gradient(dtype: Any) -> None:
    inputs, target = batch(5, 8)
    layer = torch.nn.Linear(8, 8)
    with torch.autocast("cpu", dtype=dtype):
        scores = layer(inputs)
        value = rwt.APHingeLoss(dim=1)(scores, target)
    assert (scores.dtype, value.dtype) == (dtype, torch.float32)
    assert value.item() == pytest.approx(structured_hinge(scores.detach().float(), target).item(), rel=1e-6)
    value.backward()
    assert layer.weight.grad.dtype == torch.float32
    assert layer.weight.grad.abs().sum() > 0
    assert torch.isfinite(layer.weight.grad).all()


def test_modules_have_no_state_and_can_be_copied_pickled_and_saved() -> None:
    scores, target = batch(3, 8)
    made = rwt.APHingeLoss, partial(rwt.DirectLoss, "ndcg", epsilon=2.0), partial(rwt.RankHingeLoss, rw.NDCG())
    for module in (make(dim=1) for make in made):
        assert not module.state_dict()
        assert not list(module.parameters())
        file = io.BytesIO()
        torch.save(module, file)
        file.seek(0)
        again = (copy.deepcopy(module), pickle.loads(pickle.dumps(module)), torch.load(file, weights_only=False))
        for other in again:
            assert str(other) == str(module)
            assert other(scores, target).item() == module(scores, target).item()


@needs_a_recent_compiler
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_a_column_ranked_as_one_query_compiles_and_maps(compiled: Any, dtype: Any) -> None:
    scores, target = (one[:, None] for one in batch(9, dtype=dtype))
    module = rwt.APHingeLoss(dim=0)
    expected = with_gradient(module, scores, target)
    assert expected[0].item() == functional.structured_hinge(scores[:, 0], target[:, 0]).item() > 0.0
    assert_same(with_gradient(compiled(module), scores, target), expected)
    pair = torch.stack([scores, 2 * scores])
    mapped = torch.vmap(lambda a: module(a, target))(pair)
    torch.testing.assert_close(mapped, torch.stack([module(one, target) for one in pair]))


@needs_a_recent_compiler
def test_a_missing_dim_is_refused_under_compile_and_vmap(compiled: Any) -> None:
    scores, target = batch(3, 6, 4)
    flat = torch.vmap(functional.structured_hinge)(scores[0], target[0])
    torch.testing.assert_close(flat, structured_hinge(scores[0], target[0], reduction="none"))
    with pytest.raises(ValueError, match=r"shape \(6, 4\); pass dim"):
        torch.vmap(functional.structured_hinge)(scores, target)
    with pytest.raises(Exception, match=r"pass dim"):
        compiled(rwt.APHingeLoss())(scores, target)
