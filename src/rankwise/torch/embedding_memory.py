"""What losses of embeddings remember between batches: a queue, written as scores are in memory.py."""

from __future__ import annotations

import torch
from torch import Tensor

from rankwise.inputs import check_whole


class EmbeddingMemory(torch.nn.Module):
    """A queue of the last embeddings and their labels, which queries are ranked against beside their batch.

    Pass it to `RetrievalLoss`: `loss(embeddings, labels, memory=memory)`. The queue has no gradient. After the loss the
    batch is put into it, in place of the oldest; as it was ranked, that is normalised for similarity="cosine". In eval
    mode (`memory.eval()`) nothing is put in. With gather, all processes put in the batches of all.

    Parameters
    ----------
    size : int
        The most embeddings that are kept.
    dim : int
        Their length.

    Attributes
    ----------
    embeddings, labels, span : Tensor of shapes (size, dim), (size,), (2,)
        Buffers: they are in the `state_dict` and move with `.to()`. The k-th embedding ever put in is at k mod size;
        span: the first of those kept, and the next.

    Examples
    --------
    >>> from rankwise.torch import RetrievalLoss
    >>> memory, loss = EmbeddingMemory(100, dim=2), RetrievalLoss()
    >>> value = loss(torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]]), torch.tensor([7, 7, 3]), memory=memory)
    >>> len(memory), memory.labels[:3].tolist()
    (3, [7, 7, 3])
    """

    embeddings: Tensor
    labels: Tensor
    span: Tensor

    def __init__(self, size: int, dim: int) -> None:
        super().__init__()
        check_whole(1, size=size, dim=dim)
        self.register_buffer("embeddings", torch.zeros(size, dim))
        self.register_buffer("labels", torch.zeros(size, dtype=torch.int64))
        self.register_buffer("span", torch.zeros(2, dtype=torch.int64))

    def __len__(self) -> int:
        first, stop = self.span.tolist()
        return int(stop - first)

    def __bool__(self) -> bool:
        return True  # an empty queue is one, too

    def extra_repr(self) -> str:
        """Sizes, and how many are kept."""
        return f"{self.embeddings.shape[0]}, dim={self.embeddings.shape[1]}, kept={len(self)}"

    def reset(self) -> None:
        """Forget all embeddings."""
        self.span.zero_()

    def check(self, embeddings: Tensor) -> None:
        """Refuse embeddings of another length or device."""
        if embeddings.shape[1] != self.embeddings.shape[1]:
            raise ValueError(
                f"embeddings have {embeddings.shape[1]} columns and the memory dim={self.embeddings.shape[1]}"
            )
        if embeddings.device != self.embeddings.device:
            raise ValueError(
                f"memory is on {self.embeddings.device} and embeddings on {embeddings.device}; move it with .to()"
            )

    def recall(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The embeddings that are kept, and their labels."""
        at = self._slots(*self.span.tolist())
        return self.embeddings[at].to(dtype), self.labels[at]

    def enqueue(self, embeddings: Tensor, labels: Tensor) -> None:
        """Put these in, the oldest making room, unless in eval mode."""
        if not self.training:
            return
        size = self.embeddings.shape[0]
        new, names = embeddings.detach()[-size:].to(self.embeddings.dtype), labels[-size:].to(torch.int64)
        first, stop = self.span.tolist()
        end = stop + new.shape[0]
        at = self._slots(stop, end)
        # Those that make room are gone before they are written over, the new ones there when all is written.
        self.span[0] = max(first, end - size)
        self.embeddings.index_copy_(0, at, new)
        self.labels.index_copy_(0, at, names)
        self.span[1] = end

    def _slots(self, first: int, stop: int) -> Tensor:
        return torch.arange(first, stop, device=self.labels.device) % self.labels.shape[0]
