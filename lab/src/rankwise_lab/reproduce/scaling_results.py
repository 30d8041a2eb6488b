"""Results of the scaling experiment: curves, the fitted law, and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

from rankwise_lab.report.table import Table
from rankwise_lab.reproduce.beside import ratio
from rankwise_lab.reproduce.scaling import ScalingExperiment
from rankwise_lab.reproduce.scaling_curves import OURS, QS, ROWS, SORT, TITLES, ZERO_ONE
from rankwise_lab.reproduce.scaling_law import fit, plain, theorem

AXES = {"total": "all, 1:10", "negatives": "negatives", "positives": "positives"}
# The law of N log P is for axes along which N grows.
_PLAIN = ("total", "negatives")
_BOTH = "1:10 and negatives"


def document(
    experiment: ScalingExperiment, parts: Mapping[str, list[dict[str, Any]]], machine: Mapping[str, Any]
) -> dict[str, Any]:
    """Return everything as plain data."""
    data, n_pos = experiment.data, int(experiment.relevant.sum())
    laws = {loss: _laws(parts["calls"], loss) for loss in ROWS}
    all_axes = {"training": experiment.training_axes, "calls": experiment.axes}
    panels = [
        _panel(part, loss, axis, [point for point in parts[part] if point["axis"] == axis.name], laws[loss]["all"])
        for part, loss in product(all_axes, ROWS)
        for axis in all_axes[part]
    ]
    return {
        "experiment": "scaling",
        "data": {
            "what": data.what,
            "stand_in": data.stand_in,
            "class": data.classes[experiment.k],
            "positives": n_pos,
            "negatives": experiment.relevant.size - n_pos,
        },
        "plan": asdict(experiment.plan),
        "Cs": experiment.Cs,
        "panels": panels,
        "sort": [
            {key: point[key] for key in ("axis", "P", "N")} | {"seconds": point["rows"][SORT][SORT]["seconds"]}
            for point in parts["calls"]
        ],
        "laws": laws,
        "load": [load for points in parts.values() for point in points for load in point["load"]],
        "paper": None,
        "machine": dict(machine),
    }


def _panel(part: str, loss: str, axis: Any, points: list[dict[str, Any]], law: Mapping[str, Any]) -> dict[str, Any]:
    curves = {}
    for name in ROWS[loss]:
        places = [i for i, point in enumerate(points) if name in point["rows"][loss]]
        own = [points[i]["rows"][loss][name] for i in places]
        curves[name] = {"x": [axis.x[i] for i in places], **{key: [one[key] for one in own] for key in own[0]}}
    fitted = [law["a"] + law["b"] * theorem(*size) for size in axis.sizes] if part == "calls" else None
    return {
        "part": part,
        "loss": loss,
        "axis": axis.name,
        "what": axis.what,
        "x": axis.x,
        "sizes": [list(size) for size in axis.sizes],
        "curves": curves,
        "law": fitted,
    }


def _laws(calls: Sequence[Mapping[str, Any]], loss: str) -> dict[str, Any]:
    """Fit the theorem's law to all axes and to each, and N log P where N grows, for Algorithm 1."""

    def fitted(names: Iterable[str], work: Callable[[int, int], float]) -> dict[str, Any]:
        points = [point for point in calls if point["axis"] in names]
        sizes = [(point["P"], point["N"]) for point in points]
        return fit(sizes, (point["rows"][loss][QS]["seconds"] for point in points), work).as_dict(sizes)

    return {
        "all": fitted(AXES, theorem),
        "axes": {name: fitted([name], theorem) for name in AXES},
        "plain": {name: fitted([name], plain) for name in _PLAIN} | {_BOTH: fitted(_PLAIN, plain)},
    }


def panel_of(found: Mapping[str, Any], part: str, loss: str, axis: str) -> dict[str, Any]:
    """Return one panel."""
    panel: dict[str, Any] = next(
        one for one in found["panels"] if (one["part"], one["loss"], one["axis"]) == (part, loss, axis)
    )
    return panel


def moves(found: Mapping[str, Any], loss: str) -> tuple[float, float]:
    """Return the fewest and the most elements that Algorithm 1 moves per N log P, where N grows and N ≥ P."""
    each = []
    for panel in (panel_of(found, "calls", loss, axis) for axis in _PLAIN):
        counts = zip(panel["sizes"], panel["curves"][QS]["moves"], strict=True)
        each += [count / plain(*size) for size, count in counts if size[1] >= size[0]]
    return min(each), max(each)


def stops(found: Mapping[str, Any]) -> dict[tuple[str, str], dict[str, list[int]]]:
    """Return the last (P, N) along each axis, by loss and curve, for curves that stop before the end."""
    left: dict[tuple[str, str], dict[str, list[int]]] = {}
    for panel in found["panels"]:
        for name, curve in panel["curves"].items():
            if len(curve["x"]) < len(panel["x"]):
                where = left.setdefault((panel["loss"], name), {})
                where[panel["axis"]] = panel["sizes"][len(curve["x"]) - 1]
    return left


def training_table(found: Mapping[str, Any], loss: str) -> Table:
    """Milliseconds in inference per training, at the end of each axis."""
    title = f"{TITLES[loss]} loss: milliseconds in inference per training, at the largest sizes"
    return _times_table(found, "training", loss, title, ["calls"])


def call_table(found: Mapping[str, Any], loss: str) -> Table:
    """Milliseconds per call, at the last size of the published method."""
    title = f"{TITLES[loss]} loss: milliseconds per call, at the largest sizes of the published method"
    return _times_table(found, "calls", loss, title, [])


def _times_table(found: Mapping[str, Any], part: str, loss: str, title: str, more: list[str]) -> Table:
    row, rows, gains = ROWS[loss], [], {}
    published = next(iter(row))
    for axis, shown in AXES.items():
        panel = panel_of(found, part, loss, axis)
        curves = panel["curves"]
        last = len(curves[published]["x"]) - 1
        times = {name: curve["seconds"][last] for name, curve in curves.items()}
        gains[axis] = {name: times[published] / times[name] for name in (QS, OURS)}
        n_pos, n_neg = panel["sizes"][last]
        cells = [f"{n_pos:,}", f"{n_neg:,}", *(milliseconds(seconds) for seconds in times.values())]
        cells += [ratio(times[published], times[name], ".1f") for name in (QS, OURS)]
        cells += ["/".join(dict.fromkeys(str(curves[name]["calls"][last]) for name in row)) for _ in more]
        rows.append([shown, *cells])
    short = TITLES[loss]
    labels = {published: short, "tabulated": f"{short} tabulated", QS: f"{short}_QS", OURS: "ours", ZERO_ONE: "0-1"}
    columns = ["axis", "P", "N", *(labels[name] for name in row), f"{short} / {short}_QS", f"{short} / ours", *more]
    best = max(gains, key=lambda axis: gains[axis][QS])
    ahead = {name: sum(one[name] > 1.0 for one in gains.values()) for name in (QS, OURS)}
    said = (
        f"Algorithm 1 ({short}_QS) is faster than the published method on {ahead[QS]} of {len(gains)} axes, and our "
        f"engine on {ahead[OURS]}. Algorithm 1 gains most on the axis “{AXES[best]}”: {gains[best][QS]:.1f} times."
    )
    return Table(title, columns, rows, said=said)


def sort_table(found: Mapping[str, Any]) -> Table:
    """Milliseconds per call at the end of each axis, beside np.sort of the negatives."""
    rows = []
    for (axis, shown), loss in product(AXES.items(), ROWS):
        panel = panel_of(found, "calls", loss, axis)
        qs, ours, zero_one = (panel["curves"][name]["seconds"][-1] for name in (QS, OURS, ZERO_ONE))
        sort = next(point["seconds"] for point in reversed(found["sort"]) if point["axis"] == axis)
        n_pos, n_neg = panel["sizes"][-1]
        cells = [f"{n_pos:,}", f"{n_neg:,}", *map(milliseconds, (qs, ours, zero_one, sort))]
        rows.append([f"{shown}, {TITLES[loss]}", *cells, ratio(qs, ours), ratio(qs, sort) if n_neg > n_pos else "-"])
    columns = ["axis, loss", "P", "N", "Algorithm 1", "ours", "0-1", "np.sort of negatives"]
    title = "Milliseconds per call at the largest sizes"
    ahead = sum(float(row[7]) > 1.0 for row in rows)
    said = (
        f"Our engine is faster than Algorithm 1 in {ahead} of {len(rows)} rows: look at “Algorithm 1 / ours”, where "
        "above 1 means that ours is faster. np.sort of the negatives shows what one sort costs at this size."
    )
    return Table(title, [*columns, "Algorithm 1 / ours", "Algorithm 1 / np.sort"], rows, said=said)


def law_table(found: Mapping[str, Any]) -> Table:
    """The fitted laws: a, b, the largest factor, and where."""
    rows = []
    for loss, laws in found["laws"].items():
        kinds = {"all axes": laws["all"]} | {AXES[name]: law for name, law in laws["axes"].items()}
        kinds |= {f"N log P, {AXES.get(name, name)}": law for name, law in laws["plain"].items()}
        for what, law in kinds.items():
            slowest, fastest = (" × ".join(f"{n:,}" for n in law[key]) for key in ("slowest", "fastest"))
            a, b = f"{1e6 * law['a']:.3g}", f"{1e9 * law['b']:.3g}"
            rows.append([f"{TITLES[loss]}_QS, {what}", a, b, f"{law['factor']:.2f}", slowest, fastest])
    columns = ["curve, law", "a, µs", "b, ns", "largest factor", "furthest above, P × N", "furthest below, P × N"]
    factors = [float(row[3]) for row in rows]
    said = (
        "The largest factor says how far a time is from the law: 1 would be a perfect fit. It is at most 2 in "
        f"{sum(factor <= 2.0 for factor in factors)} of {len(factors)} rows; the largest is {max(factors):.2f}."
    )
    return Table("Laws t = a + b·work, fitted to one call", columns, rows, said=said)


def milliseconds(seconds: float) -> str:
    """Show seconds as milliseconds, with three digits or as a whole number."""
    return f"{1e3 * seconds:,.0f}" if seconds >= 0.1 else f"{1e3 * seconds:.3g}"


def as_csv(found: Mapping[str, Any]) -> str:
    """One line per time: part, loss, axis, P, N, curve, seconds, calls."""
    rows = [
        [panel["part"], panel["loss"], panel["axis"], *size, name, seconds, calls]
        for panel in found["panels"]
        for name, curve in panel["curves"].items()
        for size, seconds, calls in zip(panel["sizes"], curve["seconds"], curve["calls"], strict=False)
    ]
    rows += [["calls", "", one["axis"], one["P"], one["N"], SORT, one["seconds"], 1] for one in found["sort"]]
    return Table("", ["part", "loss", "axis", "P", "N", "curve", "seconds", "calls"], rows).as_csv()
