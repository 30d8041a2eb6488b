"""Queue of past embeddings, for losses of embeddings. Writes are ordered as in memory.py."""

from __future__ import annotations

import torch
from torch import Tensor

from rankwise.arguments import check_whole


class EmbeddingMemory(torch.nn.Module):
    """
    Queue of the last embeddings and their labels, ranked along with each batch.

    Small batches give each query few items to rank. With a memory, queries also rank the embeddings of earlier batches,
    which have no gradient. Pass it to `RetrievalLoss`: `loss(embeddings, labels, memory=memory)`. The batch then
    replaces the oldest embeddings of the queue.

    Parameters
    ----------
    size : int
        Largest number of embeddings to keep.
    dim : int
        Length of an embedding.

    Attributes
    ----------
    embeddings : Tensor of shape (size, dim)
        Embeddings as they were ranked: normalised for similarity="cosine". The k-th embedding ever added is in row
        k mod size.
    labels : Tensor of shape (size,)
        Their labels.
    span : Tensor of shape (2,)
        Number of the oldest embedding that is kept, and of the next one to come.

    See Also
    --------
    RetrievalLoss : The loss that takes this memory.
    ScoreMemory : Last scores of all samples, for losses of scores.

    Notes
    -----
    In evaluation mode (`memory.eval()`) nothing is added. With gather, each process adds the batches of all processes.
    The attributes are buffers: they are part of the `state_dict` and move with `.to()`.

    Examples
    --------
    >>> import torch
    >>> from rankwise.torch import EmbeddingMemory, RetrievalLoss
    >>> memory, criterion = EmbeddingMemory(100, dim=2), RetrievalLoss()
    >>> points = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    >>> value = criterion(points, torch.tensor([7, 7, 3]), memory=memory)
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
        return True  # also when empty

    def extra_repr(self) -> str:
        """
        List the sizes and the number of embeddings kept, for the printed form of the module.

        Returns
        -------
        str
            The options and the count.
        """
        return f"{self.embeddings.shape[0]}, dim={self.embeddings.shape[1]}, kept={len(self)}"

    def reset(self) -> None:
        """Forget all embeddings."""
        self.span.zero_()

    def check(self, embeddings: Tensor) -> None:
        """
        Check that embeddings fit this memory. Losses call this.

        Parameters
        ----------
        embeddings : Tensor of shape (B, dim)
            Embeddings of a batch.

        Raises
        ------
        ValueError
            If the length or the device differs.
        """
        if embeddings.shape[1] != self.embeddings.shape[1]:
            raise ValueError(
                f"embeddings have {embeddings.shape[1]} columns but the memory has dim={self.embeddings.shape[1]}; "
                "make them equal"
            )
        if embeddings.device != self.embeddings.device:
            raise ValueError(
                f"memory is on {self.embeddings.device} and embeddings on {embeddings.device}; move it with .to()"
            )

    def recall(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """
        Return the embeddings that are kept. Losses call this.

        Parameters
        ----------
        dtype : torch.dtype
            Type of the embeddings to return.

        Returns
        -------
        embeddings : Tensor of shape (kept, dim)
            The embeddings, oldest first.
        labels : Tensor of shape (kept,)
            Their labels.
        """
        at = self._slots(*self.span.tolist())
        return self.embeddings[at].to(dtype), self.labels[at]

    def enqueue(self, embeddings: Tensor, labels: Tensor) -> None:
        """
        Add embeddings in place of the oldest ones, except in evaluation mode. Losses call this.

        Parameters
        ----------
        embeddings : Tensor of shape (B, dim)
            Embeddings of a batch.
        labels : Tensor of shape (B,)
            Their labels.
        """
        if not self.training:
            return
        size = self.embeddings.shape[0]
        new, names = embeddings.detach()[-size:].to(self.embeddings.dtype), labels[-size:].to(torch.int64)
        first, stop = self.span.tolist()
        end = stop + new.shape[0]
        at = self._slots(stop, end)
        # The oldest leave the span before they are overwritten. The new ones enter it once all is written.
        self.span[0] = max(first, end - size)
        self.embeddings.index_copy_(0, at, new)
        self.labels.index_copy_(0, at, names)
        self.span[1] = end

    def _slots(self, first: int, stop: int) -> Tensor:
        return torch.arange(first, stop, device=self.labels.device) % self.labels.shape[0]
