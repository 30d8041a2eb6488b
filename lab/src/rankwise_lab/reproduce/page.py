"""A report as one page of HTML: no script, nothing from elsewhere, for light and dark, wide and narrow.

Parts are strings of HTML, made by the functions here from plain text, which they escape; `page` puts them together.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from rankwise_lab.reproduce.drawing import Drawing

__all__ = [
    "Picture",
    "Table",
    "contents",
    "drawn",
    "gallery",
    "heading",
    "items",
    "note",
    "page",
    "paragraph",
    "section",
    "side_by_side",
    "small",
    "table",
    "tiles",
]

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1c1d; --soft: #55595e; --line: #d4d7da; --back: #ffffff; --card: #f6f7f8;
  --mark: #0b5c99; --shade: #e8f1f8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e9ea; --soft: #a9adb2; --line: #3b3f44; --back: #15171a;
  --card: #1d2024; --mark: #7cc4f5; --shade: #1c2b38; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 70rem; color: var(--ink); background: var(--back);
  font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .6rem; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .4rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .3rem; }
h4 { font-size: 1rem; margin: 1.2rem 0 .2rem; }
section { border-top: 1px solid var(--line); margin-top: 2.6rem; }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; margin: .8rem 0; }
a { color: var(--mark); }
.note { padding: .6rem .9rem; border-left: 4px solid var(--mark); background: var(--card); max-width: 48rem; }
p, ul { max-width: 48rem; margin: .5rem 0; }
ul { padding-left: 1.2rem; }
li { margin: .2rem 0; }
.soft { color: var(--soft); font-size: .9rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 12rem), 1fr)); gap: .8rem;
  margin: 1.2rem 0; }
.tile { padding: .7rem .9rem; border: 1px solid var(--line); border-radius: .5rem; background: var(--card); }
.tile b { display: block; font-size: 1.5rem; line-height: 1.25; color: var(--mark); font-weight: 650;
  font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: .9rem; }
.table { overflow-x: auto; margin: 1rem 0; border: 1px solid var(--line); border-radius: .5rem;
  background: var(--card); }
table { border-collapse: separate; border-spacing: 0; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .6rem .8rem .3rem; }
caption span { display: inline-block; position: sticky; left: .8rem; max-width: min(100%, calc(100vw - 4rem)); }
th, td { padding: .35rem .8rem; text-align: right; white-space: nowrap; border-top: 1px solid var(--line); }
thead th { border-top: 0; color: var(--soft); font-weight: 500; vertical-align: bottom; white-space: normal;
  line-height: 1.25; max-width: 8rem; }
th:first-child { text-align: left; position: sticky; left: 0; background: var(--card); white-space: normal;
  line-height: 1.3; min-width: 6.5rem; }
tbody th { font-weight: 500; }
tr.total th, tr.total td { font-weight: 650; border-top: 2px solid var(--line); background: var(--shade); }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); gap: .8rem;
  margin: .8rem 0; }
figure { margin: 0; padding: .5rem; border: 1px solid var(--line); border-radius: .5rem; background: var(--card); }
.drawn { max-width: 40rem; }
figure img, figure svg { display: block; width: 100%; height: auto; border-radius: .25rem; }
figcaption { color: var(--soft); font-size: .9rem; margin-top: .4rem; }
@media (max-width: 40rem) { th, td { padding: .35rem .4rem; font-size: .92rem; } h1 { font-size: 1.4rem; }
  thead th { max-width: 5.5rem; } th:first-child { min-width: 5.5rem; max-width: 6.5rem; } }
"""


@dataclass(frozen=True)
class Table:
    """A table of text: the first cell of a row is its name. totals: the last rows that sum up the others."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    totals: int = 0


@dataclass(frozen=True)
class Picture:
    """A picture in a page: the bytes of a PNG or JPEG, what is to be seen on it, and what is said below."""

    content: bytes
    label: str
    caption: str


def page(title: str, body: Iterable[str]) -> str:
    """A whole page; body: parts of HTML."""
    head = [
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<link rel="icon" href="data:,">',  # else a browser asks for one
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
    ]
    parts = ["<!DOCTYPE html>", '<html lang="en">', "<head>", *head, "</head>", "<body>", "<main>"]
    return "\n".join([*parts, f"<h1>{escape(title)}</h1>", *body, "</main>", "</body>", "</html>", ""])


def section(name: str, title: str, body: Iterable[str]) -> str:
    """A part of a page that can be pointed to by its name."""
    return "\n".join([f'<section id="{escape(name)}">', heading(title), *body, "</section>"])


def contents(parts: Iterable[tuple[str, str]]) -> str:
    """Links to sections, by name and title."""
    links = (f'<a href="#{escape(name)}">{escape(title)}</a>' for name, title in parts)
    return f"<nav>{''.join(links)}</nav>"


def heading(text: str, level: int = 2) -> str:
    """A heading, of level 2 to 4."""
    return f"<h{level}>{escape(text)}</h{level}>"


def paragraph(text: str) -> str:
    """A paragraph."""
    return f"<p>{escape(text)}</p>"


def small(text: str) -> str:
    """A paragraph in small print."""
    return f'<p class="soft">{escape(text)}</p>'


def note(text: str) -> str:
    """A paragraph that should not be missed."""
    return f'<p class="note">{escape(text)}</p>'


def items(texts: Iterable[str]) -> str:
    """A list."""
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def tiles(numbers: Iterable[tuple[str, str]]) -> str:
    """Numbers that are to be seen first, each with what it is."""
    parts = (f'<div class="tile"><b>{escape(value)}</b><span>{escape(what)}</span></div>' for value, what in numbers)
    return f'<div class="tiles">{"".join(parts)}</div>'


def table(content: Table) -> str:
    """A table in a box of its own, which can be scrolled by keyboard too."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in content.columns)
    rows = []
    for number, (first, *others) in enumerate(content.rows):
        kind = ' class="total"' if number >= len(content.rows) - content.totals else ""
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in others)
        rows.append(f'<tr{kind}><th scope="row">{escape(first)}</th>{cells}</tr>')
    title = escape(content.title)
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


def gallery(pictures: Iterable[Picture]) -> str:
    """Pictures beside each other, as many as there is room for; their bytes are in the page."""
    return side_by_side(map(_figure, pictures))


def side_by_side(pieces: Iterable[str]) -> str:
    """Pieces beside each other, as many as there is room for."""
    return "\n".join(['<div class="gallery">', *pieces, "</div>"])


def drawn(figure: Drawing, label: str, caption: str) -> str:
    """A drawn figure, its lines in the page and its text in the page's colour."""
    return (
        f'<figure class="drawn" role="img" aria-label="{escape(label)}">\n{figure.inline}\n'
        f"<figcaption>{escape(caption)}</figcaption>\n</figure>"
    )


def _figure(picture: Picture) -> str:
    kind = "jpeg" if picture.content.startswith(b"\xff\xd8") else "png"
    source = f"data:image/{kind};base64,{base64.b64encode(picture.content).decode()}"
    image = f'<img src="{source}" alt="{escape(picture.label)}" loading="lazy">'
    return f"<figure>\n{image}\n<figcaption>{escape(picture.caption)}</figcaption>\n</figure>"
