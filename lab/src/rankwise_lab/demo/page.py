"""The demonstration as a part, which is a page of its own."""

from __future__ import annotations

from rankwise.figures import draw
from rankwise_lab.demo import tables
from rankwise_lab.demo.results import Demo, as_dict
from rankwise_lab.report.blocks import Block, Heading, Paragraph, show_figures
from rankwise_lab.report.figure import Drawing, drawing
from rankwise_lab.report.part import Part

__all__ = ["make_part"]

_NAME = "demo"
_ABOUT = (
    "A ranker should be trained for the measure that it is judged by. Here linear rankers are trained for three "
    "losses: 0-1 (is each image on its side of a threshold?), average precision (AP) and NDCG (how far up are the "
    "positives?). A LinearSVC of scikit-learn's, tuned alike, stands beside them."
)
_TRAINING = (
    "Training minimises ½‖w‖² + C·J; J, the structured hinge, is never less than the loss on the training images. The "
    "gap is (primal − dual)/primal: a proof, and not an estimate, of how far at most the objective is above its "
    "minimum. Planes are the rankings that support the model in the end."
)


def make_part(demo: Demo) -> Part:
    """The demonstration as it is shown."""
    body: list[Block] = [
        Heading("How well they rank"),
        tables.quality(demo),
        show_figures(_draw(demo), *_told(demo)),
        Paragraph(_TRAINING),
        Heading("Time in inference"),
        *map(tables.inference, demo.races),
    ]
    lines = [*tables.about_quality(demo), *tables.about_inference(demo)]
    title = f"rankwise: ranking the {demo.settings.digit}s among handwritten digits"
    facts = tables.facts(demo)
    return Part(_NAME, title, _ABOUT, as_dict(demo), lines, body, facts, checks=demo.checks, command="rankwise")


def _draw(demo: Demo) -> dict[str, Drawing]:
    return {
        "curves": drawing(draw(demo.curves, {}), f"{_NAME}-curves-"),
        "gaps": drawing(draw([], demo.histories, demo.settings.tol), f"{_NAME}-gaps-"),
    }


def _told(demo: Demo) -> list[tuple[str, str, str]]:
    """Of each figure, the name, the label and the caption."""
    values = ", ".join(f"{curve.name} {curve.ap:.3f}" for curve in demo.curves)
    steps = ", ".join(f"{name} {len(history['gap'])}" for name, history in demo.histories.items())
    return [
        (
            "curves",
            f"Precision against recall on the test images of the first split. AP: {values}.",
            "Test images of the first split. The area under a curve is its AP.",
        ),
        (
            "gaps",
            f"Relative duality gap by iteration of the last fit on the first split. Iterations: {steps}.",
            "First split, at the C that was chosen. Training stops at the dashed line.",
        ),
    ]
