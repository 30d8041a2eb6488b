"""`rankwise explore`: an interactive page, written to this machine's disk."""

from __future__ import annotations

import argparse
from typing import Any

from rankwise.cli import Voice, add_parser, file_name

_EPILOG = """\
Drag scores and see how a loss judges the ranking by score, which ranking training corrects, which way each score is
pushed, and how the search works step by step. The page computes all numbers itself and loads nothing from elsewhere.

examples:
  rankwise explore
  rankwise explore --out explorer --no-browser
"""


def add_command(commands: Any) -> None:
    """The command's arguments."""
    parser = add_parser(
        commands,
        "explore",
        _explore,
        short="open a page that shows what ranking losses do to scores",
        long="Open an interactive page that shows what ranking losses do to scores.",
        epilog=_EPILOG,
    )
    parser.add_argument("--out", type=file_name, metavar="DIR", help="folder of the page (default: one in the cache)")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser (default: open one)")


def _explore(arguments: argparse.Namespace) -> int:
    import webbrowser

    from rankwise_lab.data.folder import cache_folder
    from rankwise_lab.explore.page import write_page

    folder = arguments.out or cache_folder() / "explorer"
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out {folder} is a file; name a folder")
    page = write_page(folder).resolve().as_uri()
    Voice().say(page)
    if not arguments.no_browser:
        webbrowser.open(page)
    return 0
