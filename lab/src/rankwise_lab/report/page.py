"""Blocks as one HTML page: self-contained, for light and dark, for wide and narrow screens, and for print."""

from __future__ import annotations

from collections.abc import Iterable

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rankwise_lab.report.blocks import Block

_TEMPLATES = Environment(
    loader=PackageLoader("rankwise_lab.report", "."),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def page(title: str, blocks: Iterable[Block], *, folding: bool = False) -> str:
    """Lay out a whole page. folding: add the script that opens the fold a link names; otherwise there is no script."""
    return _TEMPLATES.get_template("page.html").render(title=title, blocks=blocks, folding=folding)


def as_html(block: Block, level: int = 1) -> Markup:
    """Lay out a block. level: of the heading above it."""
    macro = getattr(_TEMPLATES.get_template("blocks.html").module, type(block).__name__)
    return Markup(macro(block, level))


_TEMPLATES.globals["show"] = as_html
