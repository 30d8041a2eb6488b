"""What the explorer's page should show of a query: every number from the library."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwise import Interleaving, ranking_loss, structured_hinge
from rankwise.inference import trace
from rankwise.metrics import as_loss

LOSSES = ("ap", "ndcg", "mrr", "auc", "zero-one")
# How far one step of descent moves the sample that moves most.
_STRIDE = 0.25


def explained(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to {"scores": …, "relevant": …, "loss": …, "scale": …}, with the fields of `explain` in local.js."""
    scores, relevant = np.array(request["scores"], np.float64), np.array(request["relevant"], np.bool_)
    name, scale = request["loss"], request["scale"]
    found = structured_hinge(scores, relevant, name, scale=scale)
    positives, negatives = (
        np.flatnonzero(kind)[np.argsort(-scores[kind], kind="stable")] for kind in (relevant, ~relevant)
    )
    # A negative is above the positives it ties with, as `ranking_loss` counts them.
    ranks = 1 + np.searchsorted(-scores[positives], -scores[negatives], side="left")
    longest = float(np.abs(found.gradient).max())
    return {
        "loss": name,
        "scale": scale,
        "positives": positives.tolist(),
        "negatives": negatives.tolist(),
        "value": found.value,
        "gap": found.value - scale * found.loss,
        "gradient": found.gradient.tolist(),
        "predicted": _ranked(
            Interleaving(ranks, positives, negatives), negatives, ranking_loss(scores, relevant, name)
        ),
        "violating": _ranked(
            _labelling(found.gradient != 0.0, positives, negatives) if name == "zero-one" else found.interleaving,
            negatives,
            found.loss,
        ),
        "downhill": (scores - (_STRIDE / longest if longest else 0.0) * found.gradient).tolist(),
        "calls": None
        if name == "zero-one"
        else _calls(scores, relevant, scores[positives], scores[negatives], request),
    }


def _labelling(wrong: Any, positives: Any, negatives: Any) -> Interleaving:
    """A labelling as a ranking: what is called positive, negatives first, then what is called negative."""
    ranks = np.where(wrong[negatives], 1, 1 + np.count_nonzero(~wrong[positives]))
    return Interleaving(ranks, positives, negatives)


def _ranked(ranking: Any, negatives: Any, loss: float) -> dict[str, Any]:
    rank_of = dict(zip(ranking.negatives.tolist(), ranking.ranks.tolist(), strict=True))
    one = Interleaving(np.array([rank_of[k] for k in negatives.tolist()]), ranking.positives, negatives)
    listed = {"order": one.order().tolist(), "ranks": one.ranks.tolist(), "above": one.above.tolist()}
    return {**listed, "pattern": one.pattern(), "loss": loss}


def _calls(scores: Any, relevant: Any, pos: Any, neg: Any, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Algorithm 1's calls with f_m, by f_m(i+1) − f_m(i) = 2(s⁺_i − s*_m)/(PN) + scale·(δ_m(i+1) − δ_m(i))."""
    loss, scale, calls = as_loss(request["loss"]), request["scale"], []
    for step in trace(scores, relevant, loss, scale):
        values = np.zeros(1)
        if step.m > 0:
            i = np.arange(step.low, step.high)
            rise = 2.0 * (pos[i - 1] - neg[step.m - 1]) / (pos.size * neg.size)
            rise = rise + scale * loss.steps(i, step.m, pos.size, neg.size)
            values = np.concatenate([values, np.cumsum(rise)])
        calls.append({**step._asdict(), "values": values.tolist()})
    return calls
