"""Memory of the last scores of all samples, for losses of scores; and a data set that also returns indices.

A step computes first and writes last, in an order that keeps the memory valid between any two writes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rankwise.arguments import check_whole
from rankwise.torch.layout import check_beside, check_per_row, compute_dtype, precise, read_samples, refuse_scores


class ScoreMemory(torch.nn.Module):
    """Last scores and labels of all n samples of a data set, to rank a batch among all of them.

    With a memory, the loss is that of all samples seen so far: those of the batch with their new scores, the others
    with the scores of their last batch, without gradient. Pass it with the indices of the samples:
    `loss(scores, target, index=index, memory=memory)`.

    Parameters
    ----------
    n : int
        Number of samples in the data set. Indices are 0 to n − 1.
    n_outputs : int, default 1
        Number of scores per sample: 1 for scores (b,), C for scores (b, C) with dim=0.

    Attributes
    ----------
    scores, labels, seen : Tensor of shape (n_outputs, n)
        Last score and label of each sample, and whether it has been seen: buffers of the module.

    See Also
    --------
    IndexedDataset : A data set that also returns the index of each sample.

    Notes
    -----
    The gradient of the batch is multiplied by (samples seen)/(samples in the batch), so that its mean over batches is
    that of all samples. Masked and ignored entries are not written; after `memory.eval()`, nothing is.

    Examples
    --------
    >>> import torch
    >>> from rankwise.torch import APHingeLoss, ScoreMemory
    >>> memory, scores, target = ScoreMemory(4), torch.tensor([2.0, 1.0, 0.5, 0.0]), torch.tensor([0, 1, 0, 1])
    >>> for index in (torch.tensor([0, 1]), torch.tensor([2, 3])):
    ...     loss = APHingeLoss()(scores[index], target[index], index=index, memory=memory)
    >>> loss.item()
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

    def __repr__(self) -> str:
        n_outputs, n = self.scores.shape
        return f"ScoreMemory({n}, n_outputs={n_outputs}, seen={int(self.seen.any(0).sum())})"

    def reset(self) -> None:
        """Forget all samples, for example when labels have changed."""
        self.seen.zero_()


def check_batch(memory: Any, scores: Tensor, index: Any, dim: int) -> None:
    """Raise if a batch, scores (b,) or (b, C) and its samples (b,), does not fit the memory."""
    if not isinstance(memory, ScoreMemory):
        raise TypeError(f"memory must be a ScoreMemory, got {type(memory).__name__}")
    n_outputs, n = memory.scores.shape
    if dim % scores.dim() != 0 or scores.dim() > 2:
        raise ValueError(f"a memory needs scores (b,), or (b, C) with dim=0; got {tuple(scores.shape)}, {dim=}")
    if scores.shape[1:] != (n_outputs,) and (n_outputs > 1 or scores.dim() > 1):
        raise ValueError(
            f"scores have shape {tuple(scores.shape)} but the memory has n_outputs={n_outputs}; create it with "
            f"ScoreMemory({n}, n_outputs={scores.shape[1] if scores.dim() > 1 else 1})"
        )
    check_beside("memory", memory.scores, "scores", scores)
    check_per_row("index", index, "scores", scores)


def place(
    memory: ScoreMemory, scores: Tensor, target: Tensor, mask: Tensor | None, index: Tensor, ignore_index: int | None
) -> tuple[list[Any], tuple[Tensor, ...]]:
    """Scores, target and mask of all samples, (n,) or (n, C), those of a batch being new; and what `write` writes.

    mask is None if all samples have been seen. Raises if an index is out of range or repeated, a label differs from
    that of an earlier batch, or a score is not finite.
    """
    index = index.long()
    _refuse_index(index, memory.scores.shape[1])
    relevant, valid, _ = read_samples(target.t(), None if mask is None else mask.t(), ignore_index)
    rows = scores.to(compute_dtype(scores)).t().reshape(memory.scores.shape[0], -1)
    relevant = relevant.reshape(rows.shape)
    valid = torch.ones_like(relevant) if valid is None else valid.reshape(rows.shape)
    refuse_scores(rows.detach(), valid)
    known, labels = memory.seen[:, index], memory.labels[:, index]
    _refuse_labels(valid & known & (labels != relevant), index, relevant)
    kept = torch.where(valid, rows.detach().to(memory.scores.dtype), memory.scores[:, index])
    if not bool(kept.isfinite().all()):
        raise ValueError(f"a score is too large for a memory of type {memory.scores.dtype}; use memory.float()")
    entries = index, kept, torch.where(valid, relevant, labels), known | valid
    labels, seen = memory.labels, None
    if not bool(memory.seen.all()):  # else no label changes
        labels, seen = labels.index_copy(1, index, entries[2]), memory.seen.index_copy(1, index, entries[3])
    n_seen = memory.scores.shape[1] if seen is None else seen.sum(1)
    # The quotient of integers would have PyTorch's default type.
    factor = (n_seen / valid.sum(1).clamp(min=1).to(precise(rows.device))).to(rows.dtype)[:, None]
    rows = rows.detach() + factor * (rows - rows.detach())  # multiplies gradients only
    known_scores = memory.scores.to(rows.dtype)
    whole = known_scores.index_copy(1, index, torch.where(valid, rows, known_scores[:, index]))
    found = [None if one is None else one[0] if scores.dim() == 1 else one.t() for one in (whole, labels, seen)]
    return found, entries


def write(memory: ScoreMemory, index: Tensor, *entries: Tensor) -> None:
    """Write scores, labels and seen flags (C, b) of samples (b,), except in evaluation mode."""
    if memory.training:
        # Scores of unseen samples do not count, and labels of seen samples do not change: every step is consistent.
        for buffer, values in zip((memory.scores, memory.labels, memory.seen), entries, strict=True):
            buffer.index_copy_(1, index, values)


def _refuse_labels(wrong: Tensor, index: Tensor, relevant: Tensor) -> None:
    if not bool(wrong.any()):
        return
    output, row = wrong.nonzero()[0].tolist()
    where = f"target[{row}]" if wrong.shape[0] == 1 else f"target[{row}, {output}]"
    now, sample = int(relevant[output, row]), int(index[row])
    raise ValueError(
        f"{where} is {now}, but the memory has {1 - now} for sample {sample}; an index must mean the same sample "
        "in every batch. Check where the indices come from (IndexedDataset returns them). If labels have changed, "
        "call memory.reset()"
    )


class IndexedDataset(torch.utils.data.Dataset[tuple[Any, ...]]):
    """Data set that returns the index of each sample along with it.

    A sample that is a tuple becomes (*sample, index), and any other sample becomes (sample, index).

    Parameters
    ----------
    dataset : Dataset
        Map-style data set with a length. Samples of a `torch.utils.data.Subset` are numbered within the subset.

    See Also
    --------
    ScoreMemory : Needs the indices, to know which samples a batch holds.

    Examples
    --------
    >>> from rankwise.torch import IndexedDataset
    >>> IndexedDataset([("first", 0), ("second", 1)])[1]
    ('second', 1, 1)
    """

    def __init__(self, dataset: Any) -> None:
        if not (hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")):
            raise TypeError(f"dataset must be map-style, with __len__ and __getitem__; got {type(dataset).__name__}")
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        sample = self.dataset[index]
        own = index + len(self) if index < 0 else index
        return (*sample, own) if isinstance(sample, tuple) else (sample, own)


def _refuse_index(index: Tensor, n: int) -> None:
    """Raise for the first index that is out of range or repeated."""
    wrong = (index < 0) | (index >= n)
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise ValueError(f"index[{row}] is {int(index[row])}, but a memory of {n} samples has indices 0 to {n - 1}")
    ordered, order = index.sort(stable=True)
    twice = ordered[1:] == ordered[:-1]
    if bool(twice.any()):
        at = int(twice.nonzero()[0])
        first, second = order[at : at + 2].tolist()
        raise ValueError(
            f"index[{first}] and index[{second}] are both {int(ordered[at])}; a batch can hold a sample only "
            "once. Sample without replacement (with several processes, DistributedSampler needs drop_last=True)"
        )
