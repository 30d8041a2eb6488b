"""Arguments that the losses share: checked and described once, and shown in the signature of every loss."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, TypeVar

from torch import Tensor

from rankwise.arguments import check_empty, check_known, is_whole
from rankwise.documenting import BY_SIGNATURE, SHARED, documented, read_entries

if TYPE_CHECKING:
    from rankwise.torch.memory import ScoreMemory

Gather = bool | Literal["ddp"]
Thing = TypeVar("Thing", bound=Callable[..., object])


class Options(TypedDict, total=False):
    """The options of every loss of scores, as a type checker sees them."""

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


class Asked(NamedTuple):
    """The options, with their defaults, as `checked` returns them."""

    dim: int | None = None
    ignore_index: int | None = None
    empty: str = "zero"
    reduction: str = "mean"
    gather: Gather = False
    backend: str = "auto"


def checked(**options: Any) -> Asked:
    """Fill in defaults; raises for unknown names."""
    asked = Asked(**options)
    check_empty(asked.empty)
    check_known("reduction", asked.reduction, ("mean", "sum", "none"))
    if asked.gather not in (False, True, "ddp"):
        raise ValueError(f"unknown gather={asked.gather!r}; use False, True or 'ddp'")
    check_known("backend", asked.backend, ("auto", "core", "tensor"))
    if asked.ignore_index is not None and not is_whole(asked.ignore_index):
        raise TypeError(f"ignore_index must be an integer or None, got {asked.ignore_index!r}")
    return asked


def takes_also(*models: Callable[..., object], without: str = "self") -> Callable[[Thing], Thing]:
    """Show the arguments of these models in a signature, in place of **options, and fill in the docstring."""
    shown = {}
    for p in (one for model in models for one in inspect.signature(model).parameters.values()):
        meant = getattr(p.annotation, "__forward_arg__", p.annotation)  # of a named tuple
        shown[p.name] = p.replace(kind=p.KEYWORD_ONLY, annotation=meant)

    def show(thing: Thing) -> Thing:
        signature = inspect.signature(thing)
        own = {p.name: p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD}
        rest = [p for name, p in shown.items() if name not in (*own, without)]
        thing.__signature__ = signature.replace(parameters=[*own.values(), *rest])  # type: ignore[attr-defined]
        return documented(thing)

    return show


_PARAMETERS = "Parameters\n----------\n%s"
_RETURNS = """\
Tensor
    The loss as a scalar tensor, or one value per query with reduction="none". The type is float32, or float64 for
    float64 scores."""


def describe(family: str, entries: str, returns: str = _RETURNS) -> None:
    """Describe the arguments and results of some losses; other arguments are as those of "torch".

    In a docstring, {family_arguments} is a section of all arguments, and {family_function} has the results too.
    """
    given = read_entries(entries)
    SHARED.update({f"{family}_{name}": text for name, text in given.items()})
    others = BY_SIGNATURE.get("torch_arguments", ("", {}))[1]
    names = others | {name: f"{family}_{name}" for name in given}
    BY_SIGNATURE[f"{family}_arguments"] = _PARAMETERS, names
    BY_SIGNATURE[f"{family}_function"] = f"{_PARAMETERS}\n\nReturns\n-------\n{returns}", names


_ENTRIES = """
scores : Tensor of shape (n,) or (...)
    Raw outputs of a model. Shape (n,) is one query, or several of any lengths with qid. Others are ranked along dim.
target : Tensor of the same shape as scores
    Relevance: booleans, or 0 and 1. Other numbers are grades, at least 0, if the surrogate takes grades.
mask : Tensor of the same shape as scores, optional
    True where a sample counts. Masked entries may hold anything, also NaN, and get no gradient.
qid : Tensor of shape (n,), optional
    Integer query id of each sample, in any order, for queries of different lengths in flat scores.
index : Tensor of shape (b,), optional
    Position of each sample of the batch in the data set. Required with memory.
memory : ScoreMemory, optional
    Last scores of all samples. The batch is ranked among them and then written to it. Not with qid.
metric : str or Loss, default "ap"
    What rankings are judged by: a name such as "ap", "ndcg", "ndcg@10", "mrr" or "auc", or a `rankwise.Loss`.
surrogate : str or Surrogate, default Hinge()
    How it becomes trainable, such as `rankwise.Smooth()`, or a `rankwise.Surrogate` of your own.
loss : str or Loss, default "ap"
    Rank loss Δ: a name such as "ap", "ndcg", "ndcg@10", "mrr" or "auc", or a `rankwise.Loss`, also of your own.
scale : float, default 1.0
    Weight of Δ against the scores. About a third of the difference between the mean scores of positives and negatives
    works well: 1 suits logits, 0.3 to 1 cosines.
width : float, default 1.0
    Half the width of the ramp by which scores are compared: 1 suits logits, 0.05 to 0.1 cosines.
epsilon : float, default 1.0
    Weight ε of Δ in the second ranking, positive.
update : {"positive", "negative"}, default "positive"
    "positive" moves away from a worse ranking, and "negative" towards a better one, which takes more time to find.
dim : int, optional
    Dimension to rank along, required for scores with two or more. For scores (n, C), dim=0 ranks the n samples of each
    column, one query per class, and dim=1 (or -1) ranks the C entries of each row.
ignore_index : int, optional
    Value of target that means "no label". Such samples are left out, as if masked.
reduction : {"mean", "sum", "none"}, default "mean"
    How the values of the queries are combined. "none" returns one value per query, sorted by qid if given.
gather : bool or "ddp", default False
    Whether to rank the batches of all processes of torch.distributed together, joined along their first dimension.
    "ddp" multiplies gradients by the number of processes, because DistributedDataParallel averages them. With
    reduction="none", all processes must weigh values alike.
backend : {"auto", "core", "tensor"}, default "auto"
    "core" is compiled code, to which scores on other devices are copied. "tensor" runs on their device. "auto" takes
    "tensor" for devices other than the CPU, where a loss has it, else "core".
"""
SHARED["torch_examples"] = """\
Examples
--------
>>> import torch, rankwise.torch as rwt
>>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0], requires_grad=True)  # the output of a network
>>> target = torch.tensor([0, 1, 0, 1])"""
describe("torch", _ENTRIES)
