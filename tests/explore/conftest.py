"""The interactive page, served to the tests of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from rankwise.explore.server import Explorer
from rankwise.explore.solve import warm_up


@pytest.fixture(scope="module")
def server() -> Iterator[Explorer]:
    warm_up()
    with Explorer() as explorer:
        thread = threading.Thread(target=explorer.serve_forever, args=(0.02,))
        thread.start()
        yield explorer
        explorer.shutdown()
        thread.join()
