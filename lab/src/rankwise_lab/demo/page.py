"""The demonstration as one page of HTML: no script, nothing from elsewhere, for light and dark, wide and narrow."""

from __future__ import annotations

from html import escape

from rankwise.figures import as_svg, draw
from rankwise_lab.demo import tables
from rankwise_lab.demo.results import Demo

__all__ = ["page"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1c1d; --soft: #55595e; --line: #d4d7da; --back: #ffffff; --card: #f6f7f8;
  --good: #1a6b33; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e9ea; --soft: #a9adb2; --line: #3b3f44; --back: #15171a;
  --card: #1d2024; --good: #7bd197; --bad: #ff9a90; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 66rem; color: var(--ink); background: var(--back);
  font: 1rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .6rem; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .4rem; }
p, ul { max-width: 48rem; margin: .5rem 0; }
ul { padding-left: 1.2rem; }
li { margin: .2rem 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); gap: 1rem;
  margin: 1rem 0; }
figure { margin: 0; padding: .6rem; border: 1px solid var(--line); border-radius: .5rem; background: var(--card); }
figure svg { display: block; width: 100%; height: auto; }
figcaption { color: var(--soft); font-size: .9rem; margin-top: .4rem; }
.table { overflow-x: auto; margin: 1rem 0; border: 1px solid var(--line); border-radius: .5rem;
  background: var(--card); }
table { border-collapse: separate; border-spacing: 0; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .6rem .8rem .3rem; }
caption span { display: inline-block; position: sticky; left: .8rem; max-width: calc(100vw - 4rem); }
th, td { padding: .35rem .8rem; text-align: right; white-space: nowrap; border-top: 1px solid var(--line); }
thead th { border-top: 0; color: var(--soft); font-weight: 500; }
th:first-child { text-align: left; position: sticky; left: 0; min-width: 8rem; background: var(--card); }
tbody th { font-weight: 500; }
.checks { list-style: none; padding: 0; }
.ok { color: var(--good); font-weight: 600; }
.failed { color: var(--bad); font-weight: 600; }
.soft { color: var(--soft); font-size: .9rem; }
"""


def page(demo: Demo) -> str:
    """The page."""
    title = f"rankwise: ranking the {demo.settings.digit}s among handwritten digits"
    first, *conclusions = tables.about_inference(demo)
    body = [
        f"<h1>{escape(title)}</h1>",
        _paragraph(
            "A ranker should be trained for the measure that it is judged by. Here linear rankers are trained for "
            "three losses: 0-1 (is each image on its side of a threshold?), average precision (AP) and NDCG (how far "
            "up are the positives?). A LinearSVC of scikit-learn's, tuned alike, stands beside them."
        ),
        _list(tables.facts(demo)),
        "<h2>How well they rank</h2>",
        _table(tables.quality(demo)),
        *map(_paragraph, tables.about_quality(demo)),
        _figures(demo),
        _paragraph(
            "Training minimises ½‖w‖² + C·J; J, the structured hinge, is never less than the loss on the training "
            "images. The gap is (primal − dual)/primal: a proof, and not an estimate, of how far at most the objective "
            "is above its minimum. Planes are the rankings that support the model in the end."
        ),
        "<h2>Time in inference</h2>",
        _paragraph(first),
        *(_table(tables.inference(race)) for race in demo.races),
        *map(_paragraph, conclusions),
        "<h2>Checks</h2>",
        _checks(demo),
        f'<p class="soft">{escape(_made_by(demo))}</p>',
    ]
    head = [
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
    ]
    parts = ["<!DOCTYPE html>", '<html lang="en">', "<head>", *head, "</head>", "<body>", "<main>"]
    return "\n".join([*parts, *body, "</main>", "</body>", "</html>", ""])


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def _list(items: list[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


def _table(table: tables.Table) -> str:
    """In a box of its own, which can be scrolled by keyboard too."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
    rows = [
        f'<tr><th scope="row">{escape(first)}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in others) + "</tr>"
        for first, *others in table.rows
    ]
    title = escape(table.title)
    return "\n".join(
        [
            f'<div class="table" role="region" tabindex="0" aria-label="{title}"><table>',
            f"<caption><span>{title}</span></caption>",
            f"<thead><tr>{head}</tr></thead>",
            "<tbody>",
            *rows,
            "</tbody></table></div>",
        ]
    )


def _figures(demo: Demo) -> str:
    figures = []
    if demo.curves:
        values = ", ".join(f"{curve.name} {curve.ap:.3f}" for curve in demo.curves)
        label = f"Precision against recall on the test images of the first split. AP: {values}."
        svg = as_svg(draw(demo.curves, {}), "curves-")
        figures.append(_figure(svg, label, "Test images of the first split. The area under a curve is its AP."))
    if demo.histories:
        steps = ", ".join(f"{name} {len(history['gap'])}" for name, history in demo.histories.items())
        label = f"Relative duality gap by iteration of the last fit on the first split. Iterations: {steps}."
        svg = as_svg(draw([], demo.histories, demo.settings.tol), "gaps-")
        figures.append(_figure(svg, label, "First split, at the C that was chosen. Training stops at the dashed line."))
    return "\n".join(['<div class="figures">', *figures, "</div>"])


def _figure(svg: str, label: str, caption: str) -> str:
    labelled = svg.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)
    return f"<figure>\n{labelled}\n<figcaption>{escape(caption)}</figcaption>\n</figure>"


def _checks(demo: Demo) -> str:
    items = [
        f'<li><span class="{"ok" if holds else "failed"}">{"ok" if holds else "FAILED"}</span> {escape(check)}</li>'
        for check, holds in demo.checks.items()
    ]
    return "\n".join(['<ul class="checks">', *items, "</ul>"])


def _made_by(demo: Demo) -> str:
    names = ("rankwise", "python", "numpy", "numba", "cpu", "cores")
    known = [f"{name} {demo.machine[name]}" for name in names if demo.machine.get(name) is not None]
    return f"Made by “rankwise demo”. {'; '.join(known)}. Times depend on the machine and on what else it does."
