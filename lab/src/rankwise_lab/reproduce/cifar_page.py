"""The CIFAR-10 experiment as a page: tables beside the paper's numbers, and the objective as it falls."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from rankwise.figures import COLOURS, finish
from rankwise_lab.report.blocks import Block, Heading, Paragraph, show_figures
from rankwise_lab.report.figure import Drawing, draw_each
from rankwise_lab.report.part import Part
from rankwise_lab.reproduce.beside import LOSSES, METHODS, TITLES, ratio
from rankwise_lab.reproduce.cifar_results import METRICS, as_csv, differences_table, metric_table, time_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["conclusions", "draw", "facts", "make_part"]

_NAME = "cifar"

# How far objectives may lie apart that differ by rounding and by the order of ties only.
_SAME = 1e-3
_ROUNDING = 1e-6

_WHAT = (
    "Section 4.3 of the paper: a piecewise-linear network of six convolutions and an SVM ranks the images of "
    "each of the ten classes. From one network, pre-trained with softmax, training goes on for 0-1, AP and "
    "NDCG loss: a few epochs of Adadelta, then LW-SVM, a layer at a time. Each class is a query."
)


def make_part(found: dict[str, Any], figures: dict[str, Drawing]) -> Part:
    """The experiment as a part of the report. figures: as drawn; none where Matplotlib is missing."""
    body = [
        Paragraph(f"The images are {found['data']['what']}."),
        Heading("Test scores"),
        *(metric_table(found, metric) for metric in METRICS),
        Paragraph(
            "The paper trained the whole data set with a wider network, once: not the height of the numbers, only the "
            "order of the losses can be compared unless --full was given."
        ),
        Paragraph(
            "Accuracy takes the class of the highest score. AP and NDCG loss rank the images of each class alone and "
            "do not compare the scores of classes: accuracy is not what they are trained for."
        ),
        *_gains(found),
        Heading("Time by method of inference"),
        time_table(found),
        *map(Paragraph, _about_time(found)),
        Heading("The training objective"),
        Paragraph(
            "F, the regularised loss on the training blocks, at the start of LW-SVM and after every layer. "
            + _rise(found)
        ),
        show_figures(figures, *map(_figure, found["plan"]["losses"])),
    ]
    lines = conclusions(found)
    return Part(_NAME, TITLES[_NAME], _WHAT, found, lines, body, facts(found), as_csv(found), _tiles(found))


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
        "Seeds draw the images, the first weights and their order. Differences are between losses of the same seed, "
        "which begin from the same pre-trained network; the interval is Student's, over seeds, and needs three of them."
    )
    return [Heading("What the loss gains"), differences_table(found), Paragraph(about)]


def conclusions(found: Mapping[str, Any]) -> list[str]:
    """What the numbers say, whichever way they fall."""
    lines = [_verdict(found, loss, stage) for loss in found["differences"] for stage in ("warm", "final")]
    lines += [_by_layers(found, loss) for loss in found["plan"]["losses"]]
    return [*lines, *(_speed(found, loss) for loss in found["inference"])]


def _verdict(found: Mapping[str, Any], loss: str, stage: str) -> str:
    one = found["differences"][loss][stage]
    mean, better = 100.0 * one["mean"], sum(value > 0.0 for value in one["values"])
    when = "after LW-SVM" if stage == "final" else "after the warm-up"
    what = (
        f"{METRICS[loss][0].upper()}{METRICS[loss][1:]} {when}: {LOSSES[loss]} less 0-1 loss is {mean:+.2f} points, "
        f"better in {better} of {len(one['values'])} seeds"
    )
    if one["low"] is None:
        return f"{what}: too few seeds to tell it from chance."
    ends = f" (95 % interval {100.0 * one['low']:+.2f} to {100.0 * one['high']:+.2f})"
    if one["low"] > 0.0:
        return f"{what}{ends}: the paper's gain appears."
    if one["high"] < 0.0:
        return f"{what}{ends}: the gain is negative, 0-1 loss is better, unlike in the paper."
    return f"{what}{ends}: within chance, the paper's gain is not seen."


def _by_layers(found: Mapping[str, Any], loss: str) -> str:
    """What LW-SVM adds to the warm-up."""
    metric = "ndcg" if loss == "ndcg" else "ap"
    warm, final = (100.0 * found["mean"][loss][stage][metric]["mean"] for stage in ("warm", "final"))
    falls = [one["curve"][-1][1] / one["curve"][0][1] for one in (seed["losses"][loss] for seed in found["seeds"])]
    return (
        f"LW-SVM for {LOSSES[loss]}: test {METRICS[metric]} {warm:.2f} % after the warm-up, {final:.2f} % after; the "
        f"training objective falls to {100.0 * sum(falls) / len(falls):.1f} % of its value."
    )


def _speed(found: Mapping[str, Any], loss: str) -> str:
    hours, parts = found["paper"]["hours"][loss], []
    published = next(iter(hours))
    for size in found["inference"][loss]:
        slow, ours = size["methods"][published], size["methods"]["auto"]
        parts.append(
            f"blocks of {size['block_size']:,}: {slow['inference']:.2f} s against {ours['inference']:.2f} s in "
            f"inference, ratio {ratio(slow['inference'], ours['inference'])}, of {slow['total']:.1f} s against "
            f"{ours['total']:.1f} s in all, ratio {ratio(slow['total'], ours['total'])}"
        )
    return (
        f"Time for {LOSSES[loss]}, {METHODS[published]} against our own choice, in {'; in '.join(parts)} (paper, with "
        f"Algorithm 1, of blocks it does not tell: in all, ratio {ratio(hours[published], hours['quicksort'])})."
    )


def _about_time(found: Mapping[str, Any]) -> list[str]:
    layers = found["plan"]["timed_layers"]
    which = "all layers" if layers is None else f"the last {layers} layers"
    lines = [
        f"The first seed's network after its warm-up, trained by the same pass over {which} with each method, at most "
        f"{found['plan']['timed_epochs']} epochs a layer, on the same blocks, with nothing validated, "
        f"{found['plan']['timed_rounds']} times in turn, of which the fastest count. All methods find a most violating "
        "ranking exactly, so that everything but inference is the same work; how far its time differs tells how far "
        "the machine wavered."
    ]
    for loss, sizes in found["inference"].items():
        ends = [[one["objective"] for one in size["methods"].values()] for size in sizes]
        apart = max((max(values) - min(values)) / max(map(abs, values)) for values in ends)
        same = "the same" if apart <= _SAME else "not the same"
        lines.append(f"{LOSSES[loss]}: the objectives in the end are {same} for all methods, within {apart:.1e}.")
    return lines


def draw(found: Mapping[str, Any]) -> dict[str, Drawing]:
    """How F falls, a figure a loss and a line a seed; nothing if Matplotlib is not installed."""
    paints = {f"objective-{loss}": partial(_paint, found, loss) for loss in found["plan"]["losses"]}
    return draw_each(_NAME, (5.0, 3.9), paints)


def _paint(found: Mapping[str, Any], loss: str, axes: Axes) -> None:
    for k, seed in enumerate(found["seeds"]):
        seconds, values = zip(*seed["losses"][loss]["curve"], strict=True)
        colour = COLOURS[k % len(COLOURS)]
        axes.plot(seconds, values, color=colour, marker="o", markersize=3, linewidth=1.6, label=f"seed {seed['seed']}")
    finish(axes, f"Training objective, {LOSSES[loss]}", "seconds of LW-SVM", "F", "upper right")


def _figure(loss: str) -> tuple[str, str, str]:
    """Its name, its label and its caption."""
    return f"objective-{loss}", f"F against seconds, {LOSSES[loss]}", LOSSES[loss]


def _rise(found: Mapping[str, Any]) -> str:
    curves = [one["curve"] for seed in found["seeds"] for one in seed["losses"].values()]
    rises = [after[1] / before[1] - 1.0 for curve in curves for before, after in itertools.pairwise(curve)]
    if max(rises, default=0.0) <= _ROUNDING:
        return "It never rises."
    return f"It rises {sum(rise > _ROUNDING for rise in rises)} times, by at most {max(rises):.1e} of its value."


def facts(found: Mapping[str, Any]) -> list[str]:
    """How it was done."""
    plan, images = found["plan"], found["data"]["images"]
    choices = [
        f"{name} of {', '.join(f'{value:g}' for value in plan[key])}" for name, key in (("λ", "lams"), ("μ", "mus"))
    ]
    score = METRICS[plan["score_of_zero_one"]]
    return [
        f"{images['train']:,} images to train with, {images['val']:,} to validate with, {images['test']:,} to test "
        f"with; {found['data']['what']}",
        f"pixels centred and scaled by mean and deviation over the training images; filters {plan['width']}, "
        f"{2 * plan['width']} and {4 * plan['width']} (paper: 64, 128 and 256)",
        f"softmax: {plan['pretrain_epochs']} epochs; Adadelta with the loss: {plan['warmup_epochs']}; LW-SVM: at most "
        f"{plan['max_passes']} passes, at most {plan['max_epochs']} epochs a layer, blocks of {plan['block_size']}",
        f"{' and '.join(choices)}; of every stage the network that validates best is kept: AP loss by mean AP, NDCG "
        f"loss by mean NDCG, 0-1 loss by {score}",
        f"seeds: {', '.join(map(str, plan['seeds']))}",
    ]
