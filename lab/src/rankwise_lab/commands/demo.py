"""`rankwise demo`: argument parsing and printing."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rankwise.cli import check_writable, file_name
from rankwise_lab.commands.options import add_option

# Letters of a line of text.
_WIDTH = 100


def add_command(commands: Any) -> None:
    """Add `demo`."""
    demo = commands.add_parser(
        "demo", help="compare a ranker with a classifier on real images, time inference; writes a page"
    )
    add_option(demo, "--json", file_name, None, "FILE", "also write what is shown to FILE")
    page = Path("rankwise-demo.html")
    add_option(demo, "--page", file_name, page, "FILE.html", f"where the page goes (default: {page})")
    demo.set_defaults(run=_demo)


def _demo(arguments: argparse.Namespace) -> int:
    check_writable(arguments.json)
    check_writable(arguments.page)
    from rankwise.io import write_bytes
    from rankwise_lab.demo import experiment
    from rankwise_lab.demo.page import as_lines, as_page
    from rankwise_lab.demo.results import as_dict
    from rankwise_lab.pieces import write_json

    found = experiment.run()
    print("\n".join(as_lines(found, _WIDTH)))
    if arguments.json is not None:
        write_json(arguments.json, as_dict(found))
    write_bytes(arguments.page, as_page(found).encode())
    print(f"\npage: {arguments.page}")
    return 0 if found.holds else 1
