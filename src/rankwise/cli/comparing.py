"""How `rankwise evaluate` compares two models, A and B: as text, as plain data, as a figure of B − A per query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.cli.inputs import Stored, counted, shown
from rankwise.cli.judging import Judge, Judged, interval
from rankwise.metrics import Comparison, compare

LETTERS = ("A", "B")


def agreed(models: Sequence[Stored], paths: Sequence[Path], relevant_from: float | None) -> Stored:
    """What two models know of their data, as of one; refused where they cannot be of the same.

    relevant_from: what the user says, None if nothing.
    """
    a, b = models
    widths = [int(stored.model.n_features_in_) for stored in models]
    if widths[0] != widths[1]:
        raise ValueError(
            f"{paths[0]} was trained on {counted(widths[0], 'feature')}, {paths[1]} on {widths[1]:,}; compare models "
            "with the same features"
        )
    names = [_names(stored) for stored in models]
    if None not in names and names[0] != names[1]:
        first, second = next(pair for pair in zip(*names, strict=True) if pair[0] != pair[1])
        raise ValueError(
            f"{paths[0]} has a feature {first!r} where {paths[1]} has {second!r}; compare models with the same features"
        )
    indices = {stored.first_index for stored in models} - {None}
    if len(indices) > 1:
        raise ValueError(
            f"the first feature has index {a.first_index} for {paths[0]} and {b.first_index} for {paths[1]}; train "
            "both on files with the same first index"
        )
    if relevant_from is None and a.relevant_from != b.relevant_from:
        raise ValueError(
            f"{paths[0]} was trained with --relevant-from {shown(a.relevant_from)} and {paths[1]} with "
            f"{shown(b.relevant_from)}; choose one with --relevant-from"
        )
    named = b if names[0] is None else a
    return replace(named, first_index=next(iter(indices), None), relevant_from=a.relevant_from)


def _names(stored: Stored) -> list[str] | None:
    names = getattr(stored.model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def compared(judge: Judge, name: str, scores: Sequence[NDArray[np.float64]]) -> Comparison:
    """The two by a metric."""
    a, b = scores
    return compare(
        judge.metrics[name],
        a,
        b,
        judge.truth(name),
        judge.qid,
        level=judge.level,
        n_resamples=max(judge.resamples, 1),
        seed=judge.seed,
        empty=judge.empty,
    )


def lines_of(judge: Judge, both: Sequence[Judged], found: Comparison) -> list[str]:
    """A metric of both models and of their difference, a line each."""
    several = judge.n_queries > 1
    lines = [both[0].name + (f"   {judge.counted(both[0].queries)}" if several else "")]
    for letter, judged in zip(LETTERS, both, strict=True):
        value = f"{judged.value:.4f}" if math.isfinite(judged.value) else "-"
        lines.append(f"  {letter:<6}{value:>8}{interval(judged.low, judged.high)}")
    value = f"{found.difference:+.4f}" if math.isfinite(found.difference) else "-"
    between = interval(*found.interval, sign="+").replace("   ", "  ", 1) if judge.resamples else ""
    tests = "" if math.isnan(found.p_sign_flip) else f"   {found.tests()}"
    lines.append(f"  {'B - A':<6}{value:>8}{between}{tests}")
    if several:
        better = counted(found.better, "query", "queries")
        lines.append(f"  B is better on {better}, worse on {found.worse:,}, equal on {found.equal:,}")
    return lines


def document_of(judge: Judge, both: Sequence[Judged], found: Comparison) -> dict[str, Any]:
    """A metric of both models, and of their difference, also by query, as plain data."""
    low, high = found.interval if judge.resamples else (math.nan, math.nan)
    a, b = (
        {key: value for key, value in judged._asdict().items() if key in ("value", "low", "high")} for judged in both
    )
    return {
        "name": both[0].name,
        "queries": both[0].queries,
        "a": a,
        "b": b,
        "difference": {"value": found.difference, "low": low, "high": high},
        "p_wilcoxon": found.p_wilcoxon,
        "p_sign_flip": found.p_sign_flip,
        "better": found.better,
        "worse": found.worse,
        "equal": found.equal,
        "by_query": {
            "qid": found.ids,
            "a": found.values_a,
            "b": found.values_b,
            "difference": found.differences,
        },
    }


def figure_of(judge: Judge, name: str, found: Comparison, paths: Sequence[Path]) -> Any:
    """The differences by query."""
    from rankwise import figures

    if found.ids.size == 0:
        raise ValueError(f"{name} is not defined for any query, so there is no difference to draw; remove --plot")
    first, second = (path.name for path in paths)
    if first == second:
        first, second = LETTERS
    between = found.interval if judge.resamples else (math.nan, math.nan)
    return figures.draw_differences(found.differences, between, metric=name, names=(first, second), level=judge.level)
