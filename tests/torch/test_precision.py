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

N, SEEN = 31, 7  # no quotient of these sizes is exact
MASK, QID, INDEX = torch.arange(N) % 5 > 0, torch.arange(N) * 7 % 3, torch.arange(N)
TARGET, GRADES = samples(N, seed=3)[1], torch.arange(N) * 5 % 4
OPTIONS: list[dict[str, Any]] = [{}, {"qid": QID}, {"qid": QID, "mask": MASK, "empty": "skip"}]


def among(loss: Callable[..., Any], scores: Any, **options: Any) -> Any:
    """The loss among the samples of a memory."""
    memory = rwt.ScoreMemory(N).double()
    loss(scores[:SEEN].detach(), TARGET[:SEEN], index=INDEX[:SEEN], memory=memory)
    return loss(scores[SEEN:], TARGET[SEEN:], mask=MASK[SEEN:], index=INDEX[SEEN:], memory=memory, **options)


def calls(backend: str) -> Iterator[Callable[[Any], Any]]:
    """All losses of flat scores (N,), in many forms."""
    for loss in (functional.structured_hinge, functional.smooth_loss, functional.error_driven_loss):
        for given in OPTIONS:
            yield lambda s, f=loss, o=given: f(s, TARGET, backend=backend, **o)
            yield lambda s, f=loss, o=given: f(s, GRADES, "ndcg", backend=backend, **o)
        if backend == "core" or loss is not functional.smooth_loss:
            yield lambda s, f=loss: f(s, GRADES, "ap", backend=backend)
        yield lambda s, f=loss: among(f, s, backend=backend)
    for width in (0.5, 1.0):
        quality = TARGET * samples(N, seed=3)[0].sigmoid()
        how = {"width": width, "backend": backend}
        yield lambda s, o=how, q=quality: sum(functional.rank_sort_loss(s, q, qid=QID, mask=MASK, **o))
        yield lambda s, o=how: functional.retrieval_loss(s[1:].view(10, 3), QID[:10], **o)
    if backend == "core":
        yield lambda s: functional.direct_loss(s, TARGET, qid=QID)


@pytest.mark.parametrize("backend", ["core", "tensor"])
def test_the_default_type_of_pytorch_changes_no_bit(backend: str) -> None:
    scores, _ = samples(N, seed=3)
    for run in calls(backend):
        found = []
        try:
            for dtype in (torch.float32, torch.float64):
                _TABLES.clear()
                torch.set_default_dtype(dtype)
                found.append(with_gradient(run, scores))
        finally:
            torch.set_default_dtype(torch.float32)
        assert found[0][0].dtype == found[0][1].dtype == torch.float64
        assert all(map(torch.equal, *found))
