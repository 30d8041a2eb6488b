"""What losses of scores remember between batches: the last scores of all samples; and a data set that tells indices.

A step computes first and writes last, in an order in which every state between two writes is one that may be ranked:
whatever is refused or interrupted leaves no entry half-written.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from rankwise.inputs import check_whole
from rankwise.torch.layout import compute_dtype, refuse_scores, samples


class Entries(NamedTuple):
    """What is to be written to a `ScoreMemory`: samples (b,), and their scores, labels and whether seen, (C, b)."""

    at: Tensor
    scores: Tensor
    labels: Tensor
    seen: Tensor


class ScoreMemory(torch.nn.Module):
    """The last scores and the labels of all n samples of a data set, so that a batch is ranked among all of them.

    Pass it to a loss of scores with the samples' indices: `loss(scores, target, index=index, memory=memory)`. The
    batch's entries are written over, and the value is the loss of all samples seen so far, the others' scores being
    those of their last batch, without gradient. The batch has its part of the gradient times (samples seen)/(samples
    in the batch), that is n/b once all were seen: what the gradient of all samples is on average.

    Entries that are masked or ignored are not written, and an earlier score of theirs stays. In eval mode
    (`memory.eval()`) batches are ranked in the same way and nothing is written.

    Parameters
    ----------
    n : int
        The number of samples; indices are 0 … n − 1.
    n_outputs : int
        Scores of a sample: 1 for scores (b,), C for scores (b, C) with dim=0.

    Attributes
    ----------
    scores, labels, seen : Tensor of shape (n_outputs, n)
        Buffers: they are in the `state_dict` and move with `.to()`. Scores that were not seen yet mean nothing.

    Examples
    --------
    >>> from rankwise.torch import APHingeLoss
    >>> memory, loss = ScoreMemory(4), APHingeLoss()
    >>> first = loss(torch.tensor([2.0, 1.0]), torch.tensor([0, 1]), index=torch.tensor([0, 1]), memory=memory)
    >>> loss(torch.tensor([0.5, 0.0]), torch.tensor([0, 1]), index=torch.tensor([2, 3]), memory=memory).item()
    2.25
    >>> memory
    ScoreMemory(4, n_outputs=1, seen=4)
    """

    scores: Tensor
    labels: Tensor
    seen: Tensor

    def __init__(self, n: int, n_outputs: int = 1) -> None:
        super().__init__()
        check_whole(1, n=n, n_outputs=n_outputs)
        self.register_buffer("scores", torch.zeros(n_outputs, n))
        self.register_buffer("labels", torch.zeros(n_outputs, n, dtype=torch.bool))
        self.register_buffer("seen", torch.zeros(n_outputs, n, dtype=torch.bool))
        # `seen` and its version when all entries were last found to be set.
        self._full: tuple[Tensor | None, int] = (None, 0)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is known of this very buffer: a copy counts its own writes."""
        return {**self.__dict__, "_full": (None, 0)}

    def extra_repr(self) -> str:
        """Sizes, and how many samples were seen."""
        n_outputs, n = self.scores.shape
        return f"{n}, n_outputs={n_outputs}, seen={int(self.seen.any(0).sum())}"

    def reset(self) -> None:
        """Forget all samples."""
        self.seen.zero_()

    def check(self, scores: Tensor, index: Tensor, dim: int) -> None:
        """Refuse a batch that does not go with this memory; dim is the dimension that is ranked."""
        n_outputs, n = self.scores.shape
        if dim % scores.dim() != 0 or scores.dim() > 2:
            raise ValueError(f"with a memory, scores are (b,), or (b, C) with dim=0; got {tuple(scores.shape)}, {dim=}")
        if scores.shape[1:] != (n_outputs,) and (n_outputs > 1 or scores.dim() > 1):
            raise ValueError(
                f"scores have shape {tuple(scores.shape)} and the memory n_outputs={n_outputs}; make it as "
                f"ScoreMemory({n}, n_outputs={scores.shape[1] if scores.dim() > 1 else 1})"
            )
        if self.scores.device != scores.device:
            raise ValueError(f"memory is on {self.scores.device} and scores on {scores.device}; move it with .to()")
        _check_index(scores, index)

    def place(
        self, scores: Tensor, target: Tensor, mask: Tensor | None, index: Tensor, ignore_index: int | None
    ) -> tuple[Tensor, Tensor, Tensor | None, Entries]:
        """Scores, target and mask of all samples, a batch among them, as a batch is laid out; and what to write."""
        flat, index = scores.dim() == 1, index.long()
        _refuse_index(index, self.scores.shape[1])
        relevant, valid, _ = samples(target.t(), None if mask is None else mask.t(), ignore_index)
        rows = scores.to(compute_dtype(scores)).t().reshape(self.scores.shape[0], -1)
        relevant = relevant.reshape(rows.shape)
        valid = torch.ones_like(relevant) if valid is None else valid.reshape(rows.shape)
        refuse_scores(rows.detach(), valid)
        known, labels = self.seen[:, index], self.labels[:, index]
        self._refuse_labels(valid & known & (labels != relevant), index, relevant)
        kept = torch.where(valid, rows.detach().to(self.scores.dtype), self.scores[:, index])
        if not bool(kept.isfinite().all()):
            raise ValueError(f"a score is too large for a memory of {self.scores.dtype}; use memory.float()")
        entries = Entries(index, kept, torch.where(valid, relevant, labels), known | valid)
        labels, seen = self.labels, None
        if not self._all_seen():  # else no label changes
            labels, seen = labels.index_copy(1, index, entries.labels), self.seen.index_copy(1, index, entries.seen)
        n_seen = self.scores.shape[1] if seen is None else seen.sum(1)
        factor = (n_seen / valid.sum(1).clamp(min=1)).to(rows.dtype)[:, None]
        whole = _Place.apply(rows, self.scores.to(rows.dtype), index, valid, factor)
        if flat:
            return whole[0], labels[0], None if seen is None else seen[0], entries
        return whole.t(), labels.t(), None if seen is None else seen.t(), entries

    def _all_seen(self) -> bool:
        """Whether all samples were seen; once they were, this is asked again only after the buffer was written to."""
        if self.seen.is_inference():  # which count no writes
            return bool(self.seen.all())
        seen, version = self._full
        if (seen is not self.seen or version != self.seen._version) and bool(self.seen.all()):
            self._full = seen, version = self.seen, self.seen._version
        return seen is self.seen and version == self.seen._version

    def write(self, entries: Entries) -> None:
        """Write what `place` found, unless in eval mode."""
        if not self.training:
            return
        # Scores of samples not seen yet do not count, and labels of those seen are the same: every step is consistent.
        self.scores.index_copy_(1, entries.at, entries.scores)
        if self._all_seen():
            return
        self.labels.index_copy_(1, entries.at, entries.labels)
        self.seen.index_copy_(1, entries.at, entries.seen)

    def _refuse_labels(self, wrong: Tensor, index: Tensor, relevant: Tensor) -> None:
        if not bool(wrong.any()):
            return
        output, row = wrong.nonzero()[0].tolist()
        place = f"target[{row}]" if self.scores.shape[0] == 1 else f"target[{row}, {output}]"
        now, sample = int(relevant[output, row]), int(index[row])
        raise ValueError(
            f"{place} is {now}, and the memory has {1 - now} for sample {sample}: an index must mean the same sample "
            "in every batch. Look at where indices come from (IndexedDataset gives them); if labels did change, call "
            "memory.reset()"
        )


class _Place(torch.autograd.Function):
    """Scores of a batch (C, b) put among all (C, n); their part of the gradient comes back times a factor (C, 1)."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, whole: Tensor, index: Tensor, valid: Tensor, factor: Tensor) -> Tensor:
        ctx.save_for_backward(index, valid, factor)
        return whole.index_copy(1, index, torch.where(valid, rows, whole[:, index]))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        index, valid, factor = ctx.saved_tensors
        return torch.where(valid, grads[0][:, index] * factor, 0.0), None, None, None, None


class Indexable(Sized, Protocol):
    """A data set of the map style: it has a length, and a sample for every index."""

    def __getitem__(self, index: int) -> Any: ...


class IndexedDataset(torch.utils.data.Dataset[tuple[Any, ...]]):
    """A data set that yields the index, too: (*sample, index) of a sample that is a tuple, else (sample, index).

    Parameters
    ----------
    dataset : Dataset
        Of the map style, with a length; a `Subset` is counted by its own indices.

    Examples
    --------
    >>> pairs = torch.utils.data.TensorDataset(torch.arange(4.0), torch.tensor([0, 1, 0, 1]))
    >>> loader = torch.utils.data.DataLoader(IndexedDataset(pairs), batch_size=2)
    >>> [index.tolist() for _, _, index in loader]
    [[0, 1], [2, 3]]
    """

    def __init__(self, dataset: Indexable) -> None:
        if not (hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")):
            raise TypeError(f"dataset must have a length and take indices; {type(dataset).__name__} does not")
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        sample = self.dataset[index]
        own = index + len(self) if index < 0 else index
        return (*sample, own) if isinstance(sample, tuple) else (sample, own)


def _check_index(scores: Tensor, index: Any) -> None:
    if not isinstance(index, Tensor):
        raise TypeError(f"index must be a tensor, got {type(index).__name__}; convert it with torch.as_tensor")
    if index.is_floating_point() or index.is_complex() or index.dtype == torch.bool:
        raise TypeError(f"index must be integers, got {index.dtype}")
    if index.shape != scores.shape[:1]:
        raise ValueError(
            f"index has shape {tuple(index.shape)}; scores of shape {tuple(scores.shape)} need ({scores.shape[0]},)"
        )
    if index.device != scores.device:
        raise ValueError(f"index is on {index.device} and scores on {scores.device}; move it with .to()")


def _refuse_index(index: Tensor, n: int) -> None:
    """Raise for the first index that is out of range, and for one that is there twice."""
    wrong = (index < 0) | (index >= n)
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise ValueError(f"index[{row}] is {int(index[row])}; a memory of {n} samples has 0 to {n - 1}")
    ordered, order = index.sort(stable=True)
    twice = ordered[1:] == ordered[:-1]
    if bool(twice.any()):
        at = int(twice.nonzero()[0])
        first, second = order[at : at + 2].tolist()
        raise ValueError(
            f"index[{first}] and index[{second}] are both {int(ordered[at])}: a sample can be in a batch once; sample "
            "without replacement (of several processes, DistributedSampler needs drop_last=True)"
        )
