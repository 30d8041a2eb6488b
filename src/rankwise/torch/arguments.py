"""Arguments that the losses share: described once, and shown in the signature and the docstring of every loss."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, TypeVar

from torch import Tensor

from rankwise.arguments import check_empty, check_known, is_whole
from rankwise.documenting import SHARED, documented

if TYPE_CHECKING:
    from rankwise.torch.memory import ScoreMemory

__all__ = ["Asked", "Gather", "Given", "Options", "checked", "documented", "function_of", "takes_also"]

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
    """Show the arguments of these models in a signature, in place of **options."""
    shown = {}
    for p in (one for model in models for one in inspect.signature(model).parameters.values()):
        meant = getattr(p.annotation, "__forward_arg__", p.annotation)  # of a named tuple
        shown[p.name] = p.replace(kind=p.KEYWORD_ONLY, annotation=meant)

    def show(thing: Thing) -> Thing:
        signature = inspect.signature(thing)
        own = {p.name: p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD}
        rest = [p for name, p in shown.items() if name not in (*own, without)]
        thing.__signature__ = signature.replace(parameters=[*own.values(), *rest])  # type: ignore[attr-defined]
        return thing

    return show


_EXAMPLES = """\
Examples
--------
>>> import torch, rankwise.torch as rwt
>>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0], requires_grad=True)  # the output of a network
>>> target = torch.tensor([0, 1, 0, 1])"""
# How an example calls a module that it makes; a function takes the arguments of both at once.
_CALL = re.compile(r"rwt\.\w+\((.*)\)\(([^()]*)\)")
_OF_FUNCTION = """\
{summary}

{idea}

Parameters
----------
{parameters}

Returns
-------
{returns}

See Also
--------
rankwise.torch.{module} : The same loss as a module, with notes.

Examples
--------
{examples}
"""


def function_of(module: Any) -> Callable[[Thing], Thing]:
    """Complete a function, whose docstring is a summary, by the arguments and the docstring of its module."""

    def complete(thing: Thing) -> Thing:
        thing = takes_also(module.forward, module)(thing)
        if not thing.__doc__:  # python -OO has none
            return thing
        about, forward = (_sections(inspect.getdoc(one) or "") for one in (module, module.forward))
        entries = _entries(about["Parameters"]) | _entries(forward["Parameters"])
        thing.__doc__ = _OF_FUNCTION.format(
            summary=thing.__doc__,
            idea=about[""].partition("\n\n")[2].partition("Call it as")[0].strip(),
            parameters="\n".join(entries[name] for name in inspect.signature(thing).parameters),
            returns=forward["Returns"],
            module=module.__name__,
            examples=_CALL.sub(rf"rwt.functional.{thing.__name__}(\2, \1)", about["Examples"]).replace(", )", ")"),
        )
        return thing

    return complete


def _sections(docstring: str) -> dict[str, str]:
    """The sections of a docstring by their titles; that before the first has none."""
    first, *rest = re.split(r"\n*^([A-Z][A-Za-z ]+)\n-+\n", docstring, flags=re.MULTILINE)
    return {"": first, **{name: text.rstrip() for name, text in zip(rest[::2], rest[1::2], strict=True)}}


def _entries(text: str) -> dict[str, str]:
    """The entries of a section by name: a head, and what is indented below."""
    entries = re.split(r"\n(?=\S)", text.strip("\n"))
    return {entry.split(" : ")[0]: entry for entry in entries}


_BY_NAME = _entries("""
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
loss : str or Loss, default "ap"
    Rank loss Δ: a name such as "ap", "ndcg", "ndcg@10", "mrr" or "auc", or a `rankwise.Loss`, also of your own.
scale : float, default 1.0
    Weight of Δ against the scores: how large a margin an error is worth. About a third of the difference between the
    mean scores of positives and negatives works well: 1 suits logits, 0.3 to 1 cosines.
width : float, default 1.0
    Half the width of the ramp by which scores are compared: 1 suits logits, 0.05 to 0.1 cosines.
dim : int, optional
    Dimension to rank along, required for scores with two or more. For scores (n, C), dim=0 ranks the n samples of each
    column, one query per class, and dim=1 (or -1) ranks the C entries of each row.
ignore_index : int, optional
    Value of target that means "no label". Such samples are left out, as if masked.
empty : {"zero", "skip", "error"}, default "zero"
    Treatment of queries with nothing to rank: no positives, no negatives, or a single grade. "zero" counts them as 0 in
    the mean, "skip" leaves them out, and "error" raises ValueError.
reduction : {"mean", "sum", "none"}, default "mean"
    How the values of the queries are combined. "none" returns one value per query, sorted by qid if given.
gather : bool or "ddp", default False
    Whether to rank the batches of all processes of torch.distributed together, joined along their first dimension. True
    gives each score the gradient that a single process would compute. "ddp" multiplies it by the number of processes,
    because DistributedDataParallel averages gradients. With reduction="none", all processes must weigh values alike.
backend : {"auto", "core", "tensor"}, default "auto"
    "core" is compiled code, to which scores on other devices are copied. "tensor" runs on their device. "auto" takes
    "tensor" for devices other than the CPU, where a loss has it, else "core".
""")
_BY_NAME["tensors"] = "\n".join(_BY_NAME[name] for name in ("mask", "qid", "index", "memory"))
_BY_NAME["options"] = "\n".join(_BY_NAME[name] for name in Asked._fields)
SHARED["torch_examples"] = _EXAMPLES
SHARED.update({f"torch_{name}": text for name, text in _BY_NAME.items()})
