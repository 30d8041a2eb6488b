"""The CIFAR-10 experiment as a part of the report: tables beside the paper's numbers, and the training objective."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from rankwise_lab.figures import COLOURS, finish
from rankwise_lab.report.blocks import Block, Heading, Paragraph, show_figures
from rankwise_lab.report.claims import Claim, gain_claim
from rankwise_lab.report.figure import Drawing, draw_each
from rankwise_lab.report.part import Part
from rankwise_lab.reproduce.beside import LOSSES, METHODS, TITLES, ratio
from rankwise_lab.reproduce.cifar_results import METRICS, as_csv, differences_table, metric_table, time_table
from rankwise_lab.reproduce.thumbnails import Gain, draw_gains

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAME = "cifar"

# Objectives closer than this differ only by rounding and by the order of ties.
_SAME = 1e-3
_ROUNDING = 1e-6
# Ratios of whole times vary by a tenth with the load of the machine.
_FASTER = 1.1
# Filters of the first module and training images in the paper.
_PAPER_WIDTH, _PAPER_IMAGES = 64, 45_000

_WHAT = (
    "Section 4.3 of the paper: a piecewise-linear network of six convolutions and an SVM ranks the images of each of "
    "the ten classes. It is pre-trained with softmax, then trained for 0-1, AP or NDCG loss: a few epochs of Adadelta, "
    "then LW-SVM, one layer at a time. Each class is a query."
)


def make_part(found: dict[str, Any], figures: dict[str, Drawing]) -> Part:
    """Make the part. figures: as drawn; none if Matplotlib is not installed."""
    body = [
        Paragraph(f"The images are {found['data']['what']}."),
        Heading("Test scores", said="mean AP, mean NDCG and accuracy, by the loss that was trained"),
        *(metric_table(found, metric) for metric in METRICS),
        Paragraph(
            "The paper trained a wider network on the whole data set, once. Unless --full was given, compare only "
            "which loss is better, not the numbers themselves."
        ),
        Paragraph(
            "Accuracy predicts the class with the highest score. AP and NDCG loss rank the images of each class "
            "separately. They do not compare scores between classes, so they are not trained for accuracy."
        ),
        *_gains(found),
        Heading("Time by method of inference", said="one pass of LW-SVM"),
        time_table(found),
        *map(Paragraph, _about_time(found)),
        Heading("The training objective", said="how far it falls"),
        Paragraph(
            "F is the regularised loss on the training blocks, at the start of LW-SVM and after every layer. "
            + _rise(found)
        ),
        show_figures(figures, *map(_figure, found["plan"]["losses"])),
    ]
    lines = conclusions(found)
    gains = [Gain(LOSSES[loss], *_gain(found, loss)) for loss in found["differences"]]
    return Part(
        _NAME,
        TITLES[_NAME],
        _WHAT,
        found,
        lines,
        body,
        facts(found),
        as_csv(found),
        _tiles(found),
        claims=claims(found),
        thumbnail=draw_gains(_NAME, gains) if gains else None,
        tags=_tags(found),
    )


def _tags(found: Mapping[str, Any]) -> list[str]:
    plan = found["plan"]
    smaller = plan["width"] < _PAPER_WIDTH or plan["n_train"] < _PAPER_IMAGES
    return ["smaller than the paper's"] if smaller else []


def _gain(found: Mapping[str, Any], loss: str) -> tuple[float, list[float] | None, float]:
    """The mean gain after LW-SVM in points, its interval if there is one, and the paper's."""
    one, paper = found["differences"][loss]["final"], found["paper"][loss]
    ends = None if one["low"] is None else [100.0 * one["low"], 100.0 * one["high"]]
    return 100.0 * one["mean"], ends, paper[loss] - paper["zero-one"]


def claims(found: Mapping[str, Any]) -> list[Claim]:
    """The paper's claims on the network, with their verdicts."""
    made = [
        gain_claim(f"{LOSSES[loss]} gains {METRICS[loss]} over 0-1 loss, after LW-SVM", *_gain(found, loss), "seeds")
        for loss in found["differences"]
    ]
    enough = found["plan"]["timed_rounds"] > 1
    for loss, sizes in found["inference"].items():
        size, hours = sizes[0], found["paper"]["hours"][loss]
        slow = next(iter(hours))
        ours = size["methods"][slow]["total"] / size["methods"]["quicksort"]["total"]
        criterion = (
            f"A pass of LW-SVM is at least {_FASTER:g} times as fast with Algorithm 1, in blocks of "
            f"{size['block_size']:,} (the paper does not state its block size). Undecided if each method was "
            "timed only once."
        )
        text = f"Algorithm 1 shortens whole training for {LOSSES[loss]}"
        paper = f"{hours[slow] / hours['quicksort']:.2f} ×"
        made.append(Claim(text, f"{ours:.2f} ×", paper, criterion, ours >= _FASTER if enough else None))
    return made


def _tiles(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    numbers = []
    for loss, one in found["differences"].items():
        pair = [found["mean"][name]["final"][loss]["mean"] for name in ("zero-one", loss)]
        paper = [found["paper"][loss][name] for name in ("zero-one", loss)]
        value = " | ".join(f"{100.0 * mean:.1f} %" for mean in pair)
        numbers.append(
            (
                value,
                f"test {METRICS[loss]} for 0-1 loss and {LOSSES[loss]} (paper: {paper[0]:.1f} and {paper[1]:.1f})",
            )
        )
        gain = 100.0 * one["final"]["mean"]
        numbers.append((f"{gain:+.2f}", f"points of gain, {LOSSES[loss]} (paper: {paper[1] - paper[0]:+.2f})"))
    return numbers


def _gains(found: Mapping[str, Any]) -> list[Block]:
    if not found["differences"]:
        return []
    about = (
        "A seed decides which images are drawn, the first weights, and the order of images. Differences are between "
        "losses of the same seed, which start from the same pre-trained network. The interval is Student's, over "
        "seeds, and needs three of them."
    )
    return [Heading("Gains over 0-1 loss", said="by seed"), differences_table(found), Paragraph(about)]


def conclusions(found: Mapping[str, Any]) -> list[str]:
    """State what the numbers say, in sentences."""
    lines = [_verdict(found, loss, stage) for loss in found["differences"] for stage in ("warm", "final")]
    lines += [_by_layers(found, loss) for loss in found["plan"]["losses"]]
    return [*lines, *(_speed(found, loss) for loss in found["inference"])]


def _verdict(found: Mapping[str, Any], loss: str, stage: str) -> str:
    one = found["differences"][loss][stage]
    mean, better = 100.0 * one["mean"], sum(value > 0.0 for value in one["values"])
    when = "after LW-SVM" if stage == "final" else "after the warm-up"
    what = (
        f"{METRICS[loss][0].upper()}{METRICS[loss][1:]} {when}: {LOSSES[loss]} minus 0-1 loss is {mean:+.2f} points, "
        f"better in {better} of {len(one['values'])} seeds"
    )
    if one["low"] is None:
        return f"{what}: too few seeds to rule out chance."
    ends = f" (95 % interval {100.0 * one['low']:+.2f} to {100.0 * one['high']:+.2f})"
    if one["low"] > 0.0:
        return f"{what}{ends}: the paper's gain appears."
    if one["high"] < 0.0:
        return f"{what}{ends}: the gain is negative, 0-1 loss is better, unlike in the paper."
    return f"{what}{ends}: within chance, the paper's gain is not seen."


def _by_layers(found: Mapping[str, Any], loss: str) -> str:
    """State what LW-SVM adds to the warm-up."""
    metric = "ndcg" if loss == "ndcg" else "ap"
    warm, final = (100.0 * found["mean"][loss][stage][metric]["mean"] for stage in ("warm", "final"))
    falls = [one["curve"][-1][1] / one["curve"][0][1] for one in (seed["losses"][loss] for seed in found["seeds"])]
    return (
        f"LW-SVM for {LOSSES[loss]}: test {METRICS[metric]} is {warm:.2f} % after the warm-up and {final:.2f} % after "
        f"LW-SVM. The training objective falls to {100.0 * sum(falls) / len(falls):.1f} % of its value."
    )


def _speed(found: Mapping[str, Any], loss: str) -> str:
    hours, parts = found["paper"]["hours"][loss], []
    published = next(iter(hours))
    for size in found["inference"][loss]:
        slow, ours = size["methods"][published], size["methods"]["auto"]
        parts.append(
            f"blocks of {size['block_size']:,}: {slow['inference']:.2f} s against {ours['inference']:.2f} s in "
            f"inference (ratio {ratio(slow['inference'], ours['inference'])}), {slow['total']:.1f} s against "
            f"{ours['total']:.1f} s in total (ratio {ratio(slow['total'], ours['total'])})"
        )
    return (
        f"Time for {LOSSES[loss]}, {METHODS[published]} against our own choice, in {'; in '.join(parts)}. The paper, "
        f"with Algorithm 1: ratio {ratio(hours[published], hours['quicksort'])} in total; it does not state its blocks."
    )


def _about_time(found: Mapping[str, Any]) -> list[str]:
    layers = found["plan"]["timed_layers"]
    which = "all layers" if layers is None else f"the last {layers} layers"
    lines = [
        f"Each method trains the first seed's network after its warm-up, by one pass over {which} with at most "
        f"{found['plan']['timed_epochs']} epochs per layer, on the same blocks and without validation. Methods take "
        f"turns, {found['plan']['timed_rounds']} times; the fastest counts. All methods find a most violating ranking "
        "exactly, so everything except inference is the same work. Differences in the column “all else” show how much "
        "the speed of the machine varied."
    ]
    for loss, sizes in found["inference"].items():
        ends = [[one["objective"] for one in size["methods"].values()] for size in sizes]
        apart = max((max(values) - min(values)) / max(map(abs, values)) for values in ends)
        same = "the same" if apart <= _SAME else "not the same"
        lines.append(f"{LOSSES[loss]}: the final objectives are {same} for all methods, within {apart:.1e}.")
    return lines


def draw(found: Mapping[str, Any]) -> dict[str, Drawing]:
    """Draw how F falls: one figure per loss, one line per seed; nothing if Matplotlib is not installed."""
    paints = {f"objective-{loss}": partial(_paint, found, loss) for loss in found["plan"]["losses"]}
    return draw_each(_NAME, (5.0, 3.9), paints)


def _paint(found: Mapping[str, Any], loss: str, axes: Axes) -> None:
    for k, seed in enumerate(found["seeds"]):
        seconds, values = zip(*seed["losses"][loss]["curve"], strict=True)
        colour = COLOURS[k % len(COLOURS)]
        axes.plot(seconds, values, color=colour, marker="o", markersize=3, linewidth=1.6, label=f"seed {seed['seed']}")
    finish(axes, f"Training objective, {LOSSES[loss]}", "seconds of LW-SVM", "F", "upper right")


def _figure(loss: str) -> tuple[str, str, str]:
    """Return its name, its label and its caption."""
    return f"objective-{loss}", f"F against seconds, {LOSSES[loss]}", f"{LOSSES[loss]}: lower is better."


def _rise(found: Mapping[str, Any]) -> str:
    curves = [one["curve"] for seed in found["seeds"] for one in seed["losses"].values()]
    rises = [after[1] / before[1] - 1.0 for curve in curves for before, after in itertools.pairwise(curve)]
    if max(rises, default=0.0) <= _ROUNDING:
        return "It never rises."
    return f"It rises {sum(rise > _ROUNDING for rise in rises)} times, by at most {max(rises):.1e} of its value."


def facts(found: Mapping[str, Any]) -> list[str]:
    """Say how it was done."""
    plan, images = found["plan"], found["data"]["images"]
    choices = [
        f"{name} of {', '.join(f'{value:g}' for value in plan[key])}" for name, key in (("λ", "lams"), ("μ", "mus"))
    ]
    score = METRICS[plan["score_of_zero_one"]]
    return [
        f"Images: {images['train']:,} to train, {images['val']:,} to validate, {images['test']:,} to test; "
        f"{found['data']['what']}.",
        "Pixels are centred and scaled by mean and deviation over the training images. The network has "
        f"{plan['width']}, {2 * plan['width']} and {4 * plan['width']} filters (paper: 64, 128 and 256).",
        f"Softmax: {plan['pretrain_epochs']} epochs. Adadelta with the loss: {plan['warmup_epochs']} epochs. LW-SVM: "
        f"at most {plan['max_passes']} passes and {plan['max_epochs']} epochs per layer, in blocks of "
        f"{plan['block_size']}.",
        f"Choices: {' and '.join(choices)}. Every stage keeps the network that validates best: AP loss by mean AP, "
        f"NDCG loss by mean NDCG, 0-1 loss by {score}.",
        f"Seeds: {', '.join(map(str, plan['seeds']))}.",
    ]
