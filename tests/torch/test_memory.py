"""ScoreMemory: batches ranked among all samples seen so far, what is written and what is not, and what is refused."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_batches import samples, with_gradient  # noqa: E402

import rankwise.torch as rwt  # noqa: E402
from rankwise.torch import functional, operator  # noqa: E402

N = 60
RTOL, ATOL = 1e-12, 1e-14
# Every loss of scores, as a function and as a module.
LOSSES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "hinge": (functional.structured_hinge, rwt.RankHingeLoss),
    "smooth": (functional.smooth_loss, rwt.SmoothRankLoss),
    "error-driven": (functional.error_driven_loss, rwt.ErrorDrivenLoss),
}


def batches(n: int = N, size: int = 25) -> Any:
    return torch.randperm(n, generator=torch.Generator().manual_seed(1)).split(size)


@pytest.mark.parametrize("backend", ["auto", "tensor"])
@pytest.mark.parametrize("shape", [(N,), (N, 1), (N, 3)], ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_a_memory_filled_in_batches_equals_the_call_on_all_samples(name: str, shape: Any, backend: str) -> None:
    function, make = LOSSES[name]
    scores, target = samples(*shape)
    options: dict[str, Any] = {"backend": backend, "reduction": "none"}
    if len(shape) == 2:
        options["dim"] = 0
    whole = with_gradient(function, scores, target, **options)
    memory, module = rwt.ScoreMemory(N, n_outputs=shape[-1] if len(shape) == 2 else 1).double(), make(**options)
    seen = torch.empty(0, dtype=torch.int64)
    for index in batches():
        seen = torch.cat([seen, index])
        given = {"index": index, "memory": copy.deepcopy(memory)}
        told = with_gradient(function, scores[index], target[index], **given, **options)
        value, gradient = with_gradient(module, scores[index], target[index], index=index, memory=memory)
        so_far = with_gradient(function, scores[seen], target[seen], **options)
        torch.testing.assert_close(value, so_far[0], rtol=RTOL, atol=ATOL)
        own = so_far[1][len(seen) - len(index) :] * (len(seen) / len(index))
        torch.testing.assert_close(gradient, own, rtol=RTOL, atol=ATOL)
        assert torch.equal(told[0], value)
        assert torch.equal(told[1], gradient)
    memory.scores.neg_()  # later scores take the place of earlier ones
    module(scores, target, index=torch.arange(N), memory=memory)
    for index in batches(size=20):  # again, in other batches: the gradients of all samples, times n/b
        value, gradient = with_gradient(module, scores[index], target[index], index=index, memory=memory)
        torch.testing.assert_close(value, whole[0], rtol=RTOL, atol=ATOL)
        torch.testing.assert_close(gradient, whole[1][index] * (N / 20), rtol=RTOL, atol=ATOL)
    assert gradient.abs().max() > 0.0
    assert torch.equal(memory.scores.T.reshape(shape), scores)
    assert torch.equal(memory.labels.T.reshape(shape), target)
    assert bool(memory.seen.all())


@pytest.mark.parametrize("way", ["mask", "ignore_index"])
def test_entries_that_do_not_count_are_not_written(way: str) -> None:
    scores, target = samples(N, 2)
    counted = samples(N, 2, seed=5)[0] > -0.5
    memory = rwt.ScoreMemory(N, n_outputs=2).double()
    given: dict[str, Any] = {"mask": counted} if way == "mask" else {"ignore_index": -1}
    labels = target.long() if way == "mask" else torch.where(counted, target.long(), -1)
    holes = scores.where(counted, float("nan"))
    expected = with_gradient(functional.smooth_loss, scores, target, dim=0, mask=counted)
    for index in batches(size=30):
        part = {name: one[index] if isinstance(one, torch.Tensor) else one for name, one in given.items()}
        value, gradient = with_gradient(
            functional.smooth_loss, holes[index], labels[index], dim=0, index=index, memory=memory, **part
        )
    torch.testing.assert_close(value, expected[0], rtol=RTOL, atol=ATOL)
    factor = counted.sum(0) / counted[index].double().sum(0)  # by output: its samples, of which its batch has some
    torch.testing.assert_close(gradient, expected[1][index] * factor, rtol=RTOL, atol=ATOL)
    assert torch.equal(memory.seen.T, counted)
    assert not memory.scores.T[~counted].any()


def test_a_memory_in_eval_mode_is_read_and_not_written() -> None:
    scores, target = samples(N)
    memory, loss = rwt.ScoreMemory(N).double(), rwt.ErrorDrivenLoss()
    loss(scores[:40], target[:40], index=torch.arange(40), memory=memory)
    before = copy.deepcopy(memory.state_dict())
    memory.eval()
    value = loss(scores[40:], target[40:], index=torch.arange(40, N), memory=memory)
    assert value.item() == pytest.approx(loss(scores, target).item(), rel=RTOL)
    assert all(torch.equal(before[name], now) for name, now in memory.state_dict().items())
    memory.train()
    with torch.no_grad():
        loss(scores[40:], target[40:], index=torch.arange(40, N), memory=memory)
    assert bool(memory.seen.all())


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interrupted_step_leaves_the_memory_as_it_was(monkeypatch: Any, error: type[BaseException]) -> None:
    scores, target = samples(N)
    memory = rwt.ScoreMemory(N).double()
    functional.smooth_loss(scores[:40], target[:40], index=torch.arange(40), memory=memory)
    before = copy.deepcopy(memory.state_dict())

    def interrupted(*args: Any) -> Any:
        raise error("now")

    monkeypatch.setattr(operator, "solve", interrupted)
    with pytest.raises(error):
        functional.smooth_loss(-scores, target, index=torch.arange(N), memory=memory)
    assert all(torch.equal(before[name], now) for name, now in memory.state_dict().items())


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_between_two_writes_the_memory_can_be_ranked(monkeypatch: Any, writes: int) -> None:
    """Samples seen before have their new scores or their old ones, and the others are there with all or not at all."""
    scores, target = samples(N)
    memory = rwt.ScoreMemory(N).double()
    functional.smooth_loss(scores[:40], target[:40], index=torch.arange(40), memory=memory)
    copied, left = torch.Tensor.index_copy_, iter(range(writes))

    def torn(*args: Any) -> Any:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return copied(*args)

    monkeypatch.setattr(torch.Tensor, "index_copy_", torn)
    with pytest.raises(KeyboardInterrupt):
        functional.smooth_loss(-scores[30:], target[30:], index=torch.arange(30, N), memory=memory)
    assert torch.equal(memory.seen[0], torch.arange(N) < 40)
    assert torch.equal(memory.labels[0, :40], target[:40])
    assert torch.equal(memory.scores[0, :40].abs(), scores[:40].abs())


def test_a_memory_is_saved_loaded_moved_and_forgotten() -> None:
    scores, target = samples(N, 2)
    index = batches()[0]
    memory, other = rwt.ScoreMemory(N, n_outputs=2), rwt.ScoreMemory(N, n_outputs=2)
    loss = rwt.SmoothRankLoss(dim=0)
    first = loss(scores[index], target[index], index=index, memory=memory)
    file = io.BytesIO()
    torch.save(memory.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    rest = batches()[1]
    given = [loss(scores[rest], target[rest], index=rest, memory=one) for one in (memory, other)]
    assert torch.equal(*given)
    assert not list(memory.parameters())
    assert str(memory) == f"ScoreMemory({N}, n_outputs=2, seen=50)"
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        memory.to(dtype)
        value = loss(scores[rest].bfloat16(), target[rest], index=rest, memory=memory)
        assert value.dtype == torch.float32
        assert (memory.scores.dtype, memory.seen.dtype) == (dtype, torch.bool)
    memory.reset()
    again = loss(scores[index], target[index], index=index, memory=memory)
    assert again.item() == pytest.approx(first.item(), rel=1e-6)
    assert memory.to("meta").scores.device.type == "meta"


def test_a_batch_of_one_and_an_empty_one_are_ranked_among_the_others() -> None:
    scores, target = samples(N)
    memory, loss = rwt.ScoreMemory(N).double(), rwt.SmoothRankLoss()
    loss(scores, target, index=torch.arange(N), memory=memory)
    value, gradient = with_gradient(loss, scores[:1], target[:1], index=torch.tensor([0]), memory=memory)
    expected = with_gradient(loss, scores, target)
    assert value.item() == expected[0].item()
    assert gradient.item() == pytest.approx(N * expected[1][0].item())
    value, gradient = with_gradient(loss, scores[:0], target[:0], index=torch.arange(0), memory=memory)
    assert (value.item(), gradient.shape) == (expected[0].item(), (0,))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*", "ignore:The .grad attribute")  # PyTorch to itself
def test_a_compiled_step_with_a_memory_is_the_same() -> None:
    torch._dynamo.reset()
    scores, target = samples(N)
    memory, loss = rwt.ScoreMemory(N).double(), rwt.ErrorDrivenLoss()
    run = torch.compile(lambda a, b, i, m: loss(2 * a, b, index=i, memory=m), backend="eager")
    for index in batches():
        plain = copy.deepcopy(memory)
        found = with_gradient(run, scores[index], target[index], index, memory)
        expected = with_gradient(loss, 2 * scores[index], target[index], index=index, memory=plain)
        torch.testing.assert_close(found, (expected[0], 2 * expected[1]))
        assert torch.equal(memory.scores, plain.scores)
    torch._dynamo.reset()


def test_torch_func_is_refused() -> None:
    scores, target = samples(4, 5)
    given = {"index": torch.arange(5), "memory": rwt.ScoreMemory(5)}
    for run in (torch.vmap, torch.func.grad):
        with pytest.raises(NotImplementedError, match=r"torch\.func cannot map or differentiate a loss with a memory"):
            run(lambda a: functional.smooth_loss(a, target[0], **given))(scores if run is torch.vmap else scores[0])


S5, T5, I5 = torch.tensor([0.1, 0.4, 0.2, 0.9, 0.5]), torch.tensor([0, 1, 0, 1, 0]), torch.tensor([4, 1, 0, 3, 7])
NAN = float("nan")
REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "twice": ({"index": torch.tensor([4, 1, 0, 4, 7])}, ValueError, r"index\[0\] .* index\[3\] are both 4; .* without"),
    "too large": ({"index": torch.tensor([4, 1, 0, 3, 9])}, ValueError, r"index\[4\] is 9, but a memory of 9 .* 0 to"),
    "negative": ({"index": torch.tensor([4, -1, 0, 3, 7])}, ValueError, r"index\[1\] is -1, but a memory of 9 samples"),
    "floats": ({"index": I5.float()}, TypeError, r"index must be integers, got torch\.float32"),
    "booleans": ({"index": I5 > 2}, TypeError, r"index must be integers, got torch\.bool"),
    "a list": ({"index": [4, 1, 0, 3, 7]}, TypeError, "index must be a tensor, got list"),
    "too few": ({"index": I5[:4]}, ValueError, r"index has shape \(4,\); scores of shape \(5,\) need \(5,\)"),
    "a column": ({"index": I5[:, None]}, ValueError, r"index has shape \(5, 1\)"),
    "elsewhere": ({"index": I5.to("meta")}, ValueError, r"index is on meta but scores are on cpu; move it"),
    "another label": (
        {"target": torch.tensor([0, 1, 1, 1, 0])},
        ValueError,
        r"target\[2\] is 1, but the memory has 0 for sample 0; .*memory\.reset\(\)",
    ),
    "no memory": ({"memory": None}, ValueError, "index and memory must be given together"),
    "no index": ({"index": None}, ValueError, "index and memory must be given together"),
    "no such memory": ({"memory": torch.nn.Linear(9, 2)}, TypeError, "memory must be a ScoreMemory, got Linear"),
    "outputs": (
        {"memory": rwt.ScoreMemory(9, 2)},
        ValueError,
        r"outputs=2; create it with ScoreMemory\(9, n_outputs=1",
    ),
    "device": ({"memory": rwt.ScoreMemory(9).to("meta")}, ValueError, "memory is on meta but scores are on cpu"),
    "qid": ({"qid": I5}, ValueError, "qid and memory cannot be combined"),
    "a score": ({"scores": torch.tensor([0.1, NAN, 0.2, 0.9, 0.5])}, ValueError, r"scores\[1\] is nan"),
    "a target": ({"target": torch.tensor([0, 1, 2, 1, 0])}, ValueError, r"target must be binary: target\[2\] is 2"),
    "lists": ({"scores": S5[None], "target": T5[None], "dim": 1}, ValueError, r"scores \(b,\), or \(b, C\) with dim=0"),
    "columns": (
        {"scores": S5[:, None].expand(5, 3), "target": T5[:, None].expand(5, 3), "dim": 0},
        ValueError,
        r"create it with ScoreMemory\(9, n_outputs=3\)",
    ),
    "a small memory": ({"scores": 1e6 * S5, "memory": rwt.ScoreMemory(9).half()}, ValueError, "use memory.float"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_with_a_memory_is_refused_and_nothing_is_written(name: str) -> None:
    changes, error, words = REFUSED[name]
    memory = rwt.ScoreMemory(9)
    functional.error_driven_loss(S5, T5, index=I5, memory=memory)
    before = copy.deepcopy(memory.state_dict())
    with pytest.raises(error, match=words):
        functional.error_driven_loss(**{"scores": 2.0 * S5, "target": T5, "index": I5, "memory": memory, **changes})
    assert all(torch.equal(before[key], now) for key, now in memory.state_dict().items())


def test_the_place_of_another_label_is_named_by_output_too() -> None:
    memory, loss = rwt.ScoreMemory(9, n_outputs=2), rwt.APHingeLoss(dim=0)
    target = torch.stack([T5, 1 - T5], 1)
    loss(torch.stack([S5, S5], 1), target, index=I5, memory=memory)
    target[3, 1] = 1
    with pytest.raises(ValueError, match=r"target\[3, 1\] is 1, but the memory has 0 for sample 3"):
        loss(torch.stack([S5, S5], 1), target, index=I5, memory=memory)


@pytest.mark.parametrize(
    ("n", "n_outputs", "words"), [(0, 1, "n must be"), (5, 0, "n_outputs must"), (2.5, 1, "n must")]
)
def test_sizes_of_a_memory_are_whole_numbers(n: Any, n_outputs: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        rwt.ScoreMemory(n, n_outputs)


def test_an_indexed_data_set_yields_the_index_last() -> None:
    x, y = torch.arange(6.0), torch.arange(6) % 2
    pairs = rwt.IndexedDataset(torch.utils.data.TensorDataset(x, y))
    assert len(pairs) == 6
    assert pairs[-1] == (x[5], y[5], 5)
    loader = torch.utils.data.DataLoader(pairs, batch_size=4, shuffle=True)
    seen = []
    for a, b, index in loader:
        assert torch.equal(x[index], a)
        assert torch.equal(y[index], b)
        seen += index.tolist()
    assert sorted(seen) == list(range(6))
    assert rwt.IndexedDataset([7, 8, 9])[2] == (9, 2)
    assert rwt.IndexedDataset([{"image": 1}])[0] == ({"image": 1}, 0)
    with pytest.raises(TypeError, match="dataset must be map-style, with __len__ and __getitem__; got generator"):
        rwt.IndexedDataset(one for one in ())
