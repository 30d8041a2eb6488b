"""Arguments that the losses share: described once, and shown in every signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypedDict, TypeVar

from torch import Tensor

from rankwise.arguments import check_empty, check_known, is_whole
from rankwise.documenting import SHARED, documented, entry

if TYPE_CHECKING:
    from rankwise.torch.memory import ScoreMemory

__all__ = ["Gather", "Given", "Options", "check_options", "documented", "takes_also"]

Gather = bool | Literal["ddp"]
Thing = TypeVar("Thing", bound=Callable[..., object])


class Options(TypedDict, total=False):
    """The options of every loss of scores."""

    dim: int | None
    ignore_index: int | None
    empty: str
    reduction: str
    gather: Gather
    backend: str


class Given(Options, total=False):
    """The optional arguments of every function of scores."""

    mask: Tensor | None
    qid: Tensor | None
    index: Tensor | None
    memory: ScoreMemory | None


def takes_also(model: Callable[..., object]) -> Callable[[Thing], Thing]:
    """Show the keyword arguments of a model in a signature, in place of **options, and fill in shared texts."""
    shown = [p for p in inspect.signature(model).parameters.values() if p.kind is p.KEYWORD_ONLY]

    def show(thing: Thing) -> Thing:
        signature = inspect.signature(thing)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        names = {p.name for p in own}
        parameters = [*own, *(p for p in shown if p.name not in names)]
        thing.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return documented(thing)

    return show


def check_options(empty: str, reduction: str, gather: Gather, backend: str, ignore_index: int | None = None) -> None:
    """Raise for unknown names."""
    check_empty(empty)
    check_known("reduction", reduction, ("mean", "sum", "none"))
    if gather not in (False, True, "ddp"):
        raise ValueError(f"unknown gather={gather!r}; use False, True or 'ddp'")
    check_known("backend", backend, ("auto", "core", "tensor"))
    if ignore_index is not None and not is_whole(ignore_index):
        raise TypeError(f"ignore_index must be an integer or None, got {ignore_index!r}")


_TENSORS = {
    "scores": entry(
        "scores : Tensor of shape (n,) or (...)",
        "Raw outputs of a model, in floating point. Shape (n,) is one query, or several queries of any lengths with "
        "qid. Scores with more dimensions are ranked along dim.",
    ),
    "target": entry(
        "target : Tensor of the same shape as scores",
        "Relevance of each sample: booleans, or 0 and 1. Other numbers are grades, finite and at least 0, if the "
        "surrogate takes grades.",
    ),
    "quality": entry(
        "target : Tensor of shape (n,)",
        "Quality of each positive, in (0, 1], such as the IoU of its box. Negatives have 0.",
    ),
    "mask": entry(
        "mask : Tensor of the same shape as scores, optional",
        "True where a sample counts. Masked entries may hold anything, also NaN, and get no gradient.",
    ),
    "qid": entry(
        "qid : Tensor of shape (n,), optional",
        "Integer query id of each sample, in any order, for queries of different lengths in flat scores.",
    ),
    "index": entry(
        "index : Tensor of shape (b,), optional",
        "Position of each sample of the batch in the data set. Required with memory.",
    ),
    "memory": entry(
        "memory : ScoreMemory, optional",
        "Last scores of all samples of the data set. The batch is ranked among them and then written to the memory. "
        "Cannot be combined with qid.",
    ),
}
_OPTIONS = {
    "dim": entry(
        "dim : int, optional",
        "Dimension to rank along. Required for scores with two or more dimensions. For scores (n, C), dim=0 ranks the "
        "n samples of each column, one query per class, and dim=1 (or -1) ranks the C entries of each row, one list "
        "per row.",
    ),
    "ignore_index": entry(
        "ignore_index : int, optional",
        'Value of target that means "no label". Such samples are left out, as if masked.',
    ),
    "empty": entry(
        'empty : {"zero", "skip", "error"}, default "zero"',
        "Treatment of empty queries, which have no positives or no negatives (or a single grade) and so nothing to "
        'rank. "zero" counts them as 0 in the mean, "skip" leaves them out of the mean, and "error" raises ValueError.',
    ),
    "reduction": entry(
        'reduction : {"mean", "sum", "none"}, default "mean"',
        'How the values of the queries are combined. "none" returns one value per query, sorted by qid if given.',
    ),
    "gather": entry(
        'gather : bool or "ddp", default False',
        "Whether to rank the batches of all processes of torch.distributed together, joined along their first "
        'dimension. True gives each score the gradient that a single process would compute. "ddp" multiplies it by the '
        "number of processes, because DistributedDataParallel averages gradients. With "
        'reduction="none", all processes must weigh the values alike.',
    ),
    "backend": entry(
        'backend : {"auto", "core", "tensor"}, default "auto"',
        'Implementation. "core" is compiled code, to which scores on other devices are copied. "tensor" runs on the '
        'device of the scores. "auto" takes "tensor" for devices other than the CPU, where a loss has it, else "core".',
    ),
}
_PARAMETERS = {
    "loss": entry(
        'loss : str or Loss, default "ap"',
        'Rank loss Δ: a name such as "ap", "ndcg", "ndcg@10", "mrr", "auc" or "f1", or a `rankwise.Loss` such as a '
        "`rankwise.DiscountedLoss` of your own.",
    ),
    "scale": entry(
        "scale : float, default 1.0",
        "Weight of Δ against the scores: how large a margin an error is worth. About a third of the difference between "
        "the mean scores of positives and negatives works well: 1 suits logits, 0.3 to 1 cosines.",
    ),
    "width": entry(
        "width : float, default 1.0",
        "Half the width of the ramp by which scores are compared, in units of the scores. 1 suits logits, 0.05 to 0.1 "
        "cosines.",
    ),
    "half_width": entry(
        "width : float, default 0.5",
        "Half the width of the ramp H by which scores are compared, in units of the scores.",
    ),
    "interpolate": entry(
        "interpolate : bool, default True",
        "Whether the precision of a positive counts as the highest precision among positives that score no higher. A "
        'loss whose discount is not positive, such as "auc", has no precision and is not interpolated.',
    ),
    "epsilon": entry(
        "epsilon : float, default 1.0",
        "Weight ε of Δ in the second ranking, positive. Larger values move more samples per step.",
    ),
    "update": entry(
        'update : {"positive", "negative"}, default "positive"',
        '"positive" moves away from a worse ranking, and "negative" towards a better one. The negative update is '
        "found by an exact dynamic programme, whose time grows with the number of misordered pairs.",
    ),
    "empty_image": entry(
        'empty : {"zero", "skip", "error"}, default "zero"',
        'Treatment of queries without positives. "zero" counts them as 0 in the mean, "skip" leaves them out of the '
        'mean, and "error" raises ValueError. A query without negatives still has a sorting part.',
    ),
}
_EMBEDDINGS = {
    "embeddings": entry("embeddings : Tensor of shape (B, d)", "One query per row, in floating point.")
    + "\n"
    + entry(
        "labels : Tensor of shape (B,)",
        "Integer label of each embedding. Items with the label of a query are relevant to it.",
    ),
    "references": entry(
        "reference : Tensor of shape (R, d), optional",
        "Embeddings to rank, all of them for every query. Without them, each query ranks the other embeddings of the "
        "batch, and not itself.",
    )
    + "\n"
    + entry(
        "reference_labels : Tensor of shape (R,), optional",
        "Integer label of each reference. Required with reference.",
    ),
}
_RETRIEVAL = (
    entry(
        'surrogate : {"smooth", "error-driven", "hinge"} or Surrogate, optional',
        "How the rank loss is minimised: by `smooth_loss` (the default), by `error_driven_loss` with interpolation, "
        "whose gradient is an update and not a derivative, by `structured_hinge`, or by a `rankwise.Surrogate`.",
    ),
    entry(
        "scale : float, optional",
        'Weight of the rank loss in the hinge, 1 by default. 0.3 to 1 suits cosines. It needs surrogate="hinge".',
    ),
    entry(
        "width : float, default 0.05",
        "Half the width of the ramp of the other two surrogates, in units of similarity. 0.05 to 0.1 suits cosines.",
    ),
    entry(
        'similarity : {"cosine", "dot"}, default "cosine"',
        'How embeddings are compared. "cosine" normalises them first, and "dot" takes them as they are.',
    ),
    entry(
        'empty : {"zero", "skip", "error"}, default "skip"',
        "Treatment of queries without positives (alone in their label) or without negatives. "
        '"zero" counts them as 0 in the mean, "skip" leaves them out of the mean, and "error" raises ValueError.',
    ),
    entry(
        'reduction : {"mean", "sum", "none"}, default "mean"',
        'How the values of the queries are combined. "none" returns one value per query.',
    ),
    entry(
        "chunk_size : int, optional",
        "Number of queries whose similarities are held at a time. Memory is O(chunk_size·R), and backward computes "
        "the similarities again. None takes as many as fit in 256 MiB.",
    ),
    entry(
        'gather : bool or "ddp", default False',
        'Whether to use the queries and references of all processes of torch.distributed. "ddp" multiplies gradients '
        'by the number of processes, because DistributedDataParallel averages them. With reduction="none", the values '
        "are those of this process's queries.",
    ),
    _OPTIONS["backend"],
)
_RESULTS = {
    "value": entry(
        "Tensor",
        'The loss as a scalar tensor, or one value per query with reduction="none". The type is float32, or float64 '
        "for float64 scores.",
    ),
    "raises": entry(
        "ValueError",
        "If shapes do not agree, dim is missing, every list has a single sample (dim > 0 of length 1), a score is not "
        "finite, a target or a parameter is not allowed, or the surrogate cannot be made from the loss.",
    )
    + "\n"
    + entry("TypeError", "If an argument has the wrong type."),
}
_GROUPS = {
    "tensors": "\n".join(_TENSORS[name] for name in ("mask", "qid", "index", "memory")),
    "options": "\n".join(_OPTIONS.values()),
    "retrieval": "\n".join(_RETRIEVAL),
}
_ALL = _TENSORS | _OPTIONS | _PARAMETERS | _EMBEDDINGS | _RESULTS | _GROUPS
SHARED.update({f"torch_{name}": text for name, text in _ALL.items()})
