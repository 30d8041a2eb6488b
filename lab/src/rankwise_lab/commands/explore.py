"""`rankwise explore`: an interactive page, served to this machine only."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from rankwise.cli import Voice, add_parser, quoted

if TYPE_CHECKING:
    from rankwise_lab.explore.server import Explorer

_EPILOG = """\
Drag scores and see how a loss judges the ranking by score, which ranking training corrects, which way each score is
pushed, and how the search works step by step. All numbers come from the library. The page is served to programs on this
machine only and loads nothing from elsewhere. Press Ctrl-C to stop.

examples:
  rankwise explore
  rankwise explore --port 8000 --no-browser
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
    parser.add_argument("--port", type=_port, default=0, metavar="N", help="port to listen on (default: any free port)")
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address, but do not open a browser (default: open one)"
    )


def _explore(arguments: argparse.Namespace) -> int:
    import webbrowser

    from rankwise_lab.explore.solve import warm_up

    voice = Voice()
    with _serve(arguments.port) as server:
        try:
            warm_up()
            voice.say(f"{server.address} (press Ctrl-C to stop)")
            if not arguments.no_browser:
                webbrowser.open(server.address)
            server.serve_forever()
        except KeyboardInterrupt:
            voice.say("stopped")
    return 0


def _serve(port: int) -> Explorer:
    from rankwise_lab.explore.server import Explorer

    try:
        return Explorer(port)
    except OSError as error:
        raise ValueError(f"--port {port}: {error.strerror}; choose another port, or leave --port out") from None


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text[:6]) < 1 << 16:
        return int(text[:6])
    raise argparse.ArgumentTypeError(f"{quoted(text)} is not a port; use a whole number from 0 to 65535")
