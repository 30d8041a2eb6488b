"""What the page shows about one query: a request as plain data in, an answer as plain data out.

Every number comes from the library.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise import Interleaving, Loss, ranking_loss, structured_hinge
from rankwise.inference import Step, trace
from rankwise.metrics import as_loss

LOSSES = ("ap", "ndcg", "mrr", "auc", "zero-one")
MOST_SAMPLES = 200
# Scores and the scale are at most this in magnitude.
LARGEST = 1e6
# How far one step of descent moves the sample that moves most.
_STRIDE = 0.25


class BadRequestError(ValueError):
    """A request that cannot be answered; the message says what is wrong, where, and what to do."""


@dataclass(frozen=True)
class Query:
    """The scores of samples (n,), which of them are relevant (n,), the name of the loss, and its scale."""

    scores: NDArray[np.float64]
    relevant: NDArray[np.bool_]
    loss: str
    scale: float


@dataclass(frozen=True)
class Ranked:
    """A ranking. order: positions of samples from the top; ranks: r_j, above: c_k, both by descending score."""

    order: list[int]
    pattern: str
    ranks: list[int]
    above: list[int]
    loss: float


@dataclass(frozen=True)
class Call:
    """A call OptRanks(left, right, low, high). values: f_m(i) − f_m(low) at i = low..high; m = 0 where it filled."""

    left: int
    right: int
    low: int
    high: int
    m: int
    opt: int
    values: list[float]


@dataclass(frozen=True)
class Explained:
    """All that the page shows. positives, negatives: positions by descending score; gap: F(R) − F(R*).

    downhill: the scores after a step against the gradient. calls: Algorithm 1 on the query, or None for the 0-1 loss.
    """

    loss: str
    scale: float
    positives: list[int]
    negatives: list[int]
    value: float
    gap: float
    gradient: list[float]
    predicted: Ranked
    violating: Ranked
    downhill: list[float]
    calls: list[Call] | None


def solve(request: Any) -> dict[str, Any]:
    """Answer a request, {"scores": […], "relevant": […], "loss": "ap", "scale": 1}; the last two are optional."""
    return asdict(explain(read(request)))


def warm_up() -> None:
    """Compile or load the kernels before a page is opened: the first time, this takes half a minute."""
    for loss in LOSSES:
        solve({"scores": [1.0, 0.0], "relevant": [False, True], "loss": loss})


def explain(query: Query) -> Explained:
    """J, its gradient, the predicted and the most violating ranking, and how Algorithm 1 finds the latter."""
    scores, relevant = query.scores, query.relevant
    loss = as_loss(query.loss)
    found = structured_hinge(scores, relevant, loss, scale=query.scale)
    positives = np.flatnonzero(relevant)[np.argsort(-scores[relevant], kind="stable")]
    negatives = np.flatnonzero(~relevant)[np.argsort(-scores[~relevant], kind="stable")]
    predicted = _by_score(scores, positives, negatives)
    steps = trace(scores, relevant, loss, query.scale) if query.loss != "zero-one" else None
    longest = float(np.abs(found.gradient).max())
    stride = _STRIDE / longest if longest > 0.0 else 0.0
    return Explained(
        loss=query.loss,
        scale=query.scale,
        positives=positives.tolist(),
        negatives=negatives.tolist(),
        value=found.value,
        gap=found.value - query.scale * found.loss,
        gradient=found.gradient.tolist(),
        predicted=_ranked(predicted, negatives, ranking_loss(scores, relevant, loss)),
        violating=_ranked(found.interleaving, negatives, found.loss),
        downhill=(scores - stride * found.gradient).tolist(),
        calls=None if steps is None else _calls(steps, scores[positives], scores[negatives], loss, query.scale),
    )


def _by_score(scores: NDArray[np.float64], positives: NDArray[np.int64], negatives: NDArray[np.int64]) -> Interleaving:
    """The ranking by score; a negative is above the positives it ties with, as `ranking_loss` counts them."""
    ranks = 1 + np.searchsorted(-scores[positives], -scores[negatives], side="left")
    return Interleaving(ranks, positives, negatives)


def _ranked(ranking: Interleaving, negatives: NDArray[np.int64], loss: float) -> Ranked:
    rank_of = dict(zip(ranking.negatives.tolist(), ranking.ranks.tolist(), strict=True))
    in_order = Interleaving(np.array([rank_of[k] for k in negatives.tolist()]), ranking.positives, negatives)
    return Ranked(
        in_order.order().tolist(), in_order.pattern(), in_order.ranks.tolist(), in_order.above.tolist(), float(loss)
    )


def _calls(
    steps: list[Step], pos: NDArray[np.float64], neg: NDArray[np.float64], loss: Loss, scale: float
) -> list[Call]:
    """Algorithm 1's calls with f_m, by f_m(i+1) − f_m(i) = 2(s⁺_i − s*_m)/(PN) + scale·(δ_m(i+1) − δ_m(i))."""
    calls = []
    for step in steps:
        values = np.zeros(1)
        if step.m > 0:
            i = np.arange(step.low, step.high)
            score = 2.0 * (pos[i - 1] - neg[step.m - 1]) / (pos.size * neg.size)
            rise = score + scale * loss.steps(i, step.m, pos.size, neg.size)
            values = np.concatenate([values, np.cumsum(rise)])
        calls.append(Call(*step, values=values.tolist()))
    return calls


def read(request: Any) -> Query:
    """A request as a query, or `BadRequestError`."""
    if not isinstance(request, dict):
        raise BadRequestError(f"the request is {_kind(request)}; send an object with scores and relevant")
    unknown = sorted(set(request) - {"scores", "relevant", "loss", "scale"})
    if unknown:
        raise BadRequestError(f"unknown field {unknown[0][:40]!r}; send scores, relevant, loss and scale only")
    scores = [_number(value, f"scores[{k}]", -LARGEST) for k, value in enumerate(_list(request, "scores"))]
    relevant = [_truth(value, f"relevant[{k}]") for k, value in enumerate(_list(request, "relevant"))]
    if len(scores) != len(relevant):
        raise BadRequestError(f"scores has {len(scores)} entries and relevant has {len(relevant)}; send one per sample")
    for what, there in (("positive", any(relevant)), ("negative", not all(relevant))):
        if not there:
            raise BadRequestError(f"relevant has no {what} sample; add one, because a ranking loss needs both classes")
    loss = request.get("loss", "ap")
    if not isinstance(loss, str) or loss not in LOSSES:
        shown = repr(loss[:40]) if isinstance(loss, str) else _kind(loss)
        raise BadRequestError(f"loss is {shown}; use one of {', '.join(LOSSES)}")
    scale = _number(request.get("scale", 1.0), "scale", 0.0)
    return Query(np.array(scores, np.float64), np.array(relevant, np.bool_), loss, scale)


def _list(request: dict[str, Any], name: str) -> list[Any]:
    values = request.get(name)
    if not isinstance(values, list):
        found = _kind(values) if name in request else "missing"
        raise BadRequestError(f"{name} is {found}; send a list, one entry per sample")
    if len(values) > MOST_SAMPLES:
        raise BadRequestError(f"{name} has {len(values)} entries; send at most {MOST_SAMPLES}")
    return values


def _number(value: Any, where: str, least: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadRequestError(f"{where} is {_kind(value)}; send a number")
    if not least <= value <= LARGEST:
        why = "not finite" if isinstance(value, float) and not math.isfinite(value) else "out of range"
        raise BadRequestError(f"{where} is {why}; send a number from {least:.0f} to {LARGEST:.0f}")
    return float(value)


def _truth(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise BadRequestError(f"{where} is {_kind(value)}; send true for a positive and false for a negative")
    return value


def _kind(value: Any) -> str:
    """The kind of a value, as JSON names it."""
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), "null")
