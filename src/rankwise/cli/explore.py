"""`rankwise explore`: an interactive page, served to this machine only."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from rankwise.cli.output import Voice
from rankwise.cli.parsing import add_parser
from rankwise.io.quoting import shown as quoted

if TYPE_CHECKING:
    from rankwise.explore.server import Explorer

_EPILOG = """\
The page shows what the library computes of scores that you drag: the predicted and the most violating ranking, the
structured hinge J and its gradient, and Algorithm 1 step by step. It is served on the loopback interface, so to
programs of this machine only, and takes nothing from elsewhere. Ctrl-C ends it.

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
        short="drag scores on a page and see what the library makes of them",
        long="An interactive page: drag scores and see rankings, losses, gradients, and Algorithm 1 at work.",
        epilog=_EPILOG,
    )
    parser.add_argument("--port", type=_port, default=0, metavar="N", help="(default: a free one)")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")


def _explore(arguments: argparse.Namespace) -> int:
    import webbrowser

    from rankwise.explore.solve import warm_up

    voice = Voice()
    with _serve(arguments.port) as server:
        try:
            warm_up()
            voice.say(f"{server.address} (Ctrl-C ends it)")
            if not arguments.no_browser:
                webbrowser.open(server.address)
            server.serve_forever()
        except KeyboardInterrupt:
            voice.say("ended")
    return 0


def _serve(port: int) -> Explorer:
    from rankwise.explore.server import Explorer

    try:
        return Explorer(port)
    except OSError as error:
        raise ValueError(f"--port {port}: {error.strerror}; name another, or none for a free one") from None


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text[:6]) < 1 << 16:
        return int(text[:6])
    raise argparse.ArgumentTypeError(f"{quoted(text)} is not a port, 0 to 65535")
