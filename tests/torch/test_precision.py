"""Float64 scores give float64 values and gradients, whatever PyTorch's default type is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_batches import samples, with_gradient  # noqa: E402

import rankwise.torch as rwt  # noqa: E402
from rankwise.torch import functional  # noqa: E402
from rankwise.torch.on_device.tables import _TABLES  # noqa: E402

BACKENDS = ("core", "tensor")
N, SEEN = 31, 7  # no quotient of these sizes is exact
MASK, QID, INDEX = torch.arange(N) % 5 > 0, torch.arange(N) * 7 % 3, torch.arange(N)
FLAT: dict[str, dict[str, Any]] = {
    "plain": {},
    "mask": {"mask": MASK},
    "qid": {"qid": QID},
    "qid, mask, skip": {"qid": QID, "mask": MASK, "empty": "skip"},
    "gather": {"gather": True},
    "gather ddp, qid, none": {"gather": "ddp", "qid": QID, "reduction": "none"},
}
LOSSES: dict[str, Callable[..., Any]] = {
    "hinge": functional.structured_hinge,
    "direct": functional.direct_loss,
    "smooth": functional.smooth_loss,
    "error-driven": functional.error_driven_loss,
}
CASES = [(name, backend) for name in LOSSES for backend in (("core",) if name == "direct" else BACKENDS)]


@pytest.fixture
def default_dtype() -> Iterator[Callable[[Any], None]]:
    """Set PyTorch's default type until the end of the test; tables made before are not used again."""

    def change(dtype: Any) -> None:
        _TABLES.clear()
        torch.set_default_dtype(dtype)

    yield change
    change(torch.float32)


def calls(name: str, backend: str) -> dict[str, Callable[[Any], Any]]:
    """The loss of flat scores (N,) in all forms."""
    loss, (_, target) = LOSSES[name], samples(N, seed=3)
    runs = {form: lambda s, o=options: loss(s, target, backend=backend, **o) for form, options in FLAT.items()}
    runs["columns"] = lambda s: loss(s[:, None] * torch.arange(1, 4), target[:, None].expand(N, 3), dim=0)
    if name != "direct":
        grades = INDEX * 5 % 4
        runs["grades"] = lambda s: loss(s, grades, "ndcg", qid=QID, backend=backend)
        runs["grades, ap"] = lambda s: loss(s, grades, "ap", backend=backend)
    for form, options in {"memory": {}, "memory, mask": {"mask": MASK[SEEN:]}}.items():

        def among(s: Any, o: Any = options) -> Any:
            memory = rwt.ScoreMemory(N).double()
            loss(s[:SEEN].detach(), target[:SEEN], index=INDEX[:SEEN], memory=memory)
            return loss(s[SEEN:], target[SEEN:], index=INDEX[SEEN:], memory=memory, backend=backend, **o)

        runs[form] = among
    return runs


@pytest.mark.parametrize(("name", "backend"), CASES)
def test_the_default_type_of_pytorch_changes_no_bit(name: str, backend: str, default_dtype: Any) -> None:
    scores, _ = samples(N, seed=3)
    for form, run in calls(name, backend).items():
        default_dtype(torch.float32)
        found = with_gradient(run, scores)
        default_dtype(torch.float64)
        expected = with_gradient(run, scores)
        assert found[0].dtype == found[1].dtype == torch.float64
        assert torch.equal(found[0], expected[0]), form
        assert torch.equal(found[1], expected[1]), form


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("width", [0.5, 1.0])
def test_rank_sort_and_retrieval_have_their_precision_too(width: float, backend: str, default_dtype: Any) -> None:
    scores, target = samples(N, seed=3)
    quality = target * samples(N, seed=3)[0].sigmoid()
    options: dict[str, Any] = {"qid": QID, "mask": MASK, "width": width}
    runs: list[Callable[[Any], Any]] = [
        lambda s: sum(functional.rank_sort_loss(s, quality, **options)),
        lambda s: functional.retrieval_loss(s[1:].view(10, 3), QID[:10], width=width, backend=backend),
    ]
    for run in runs:
        default_dtype(torch.float32)
        found = with_gradient(run, scores)
        default_dtype(torch.float64)
        assert all(map(torch.equal, found, with_gradient(run, scores)))
