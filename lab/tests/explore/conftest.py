"""The interactive page, served to the tests of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rankwise_lab.explore.server import Explorer
from rankwise_lab.explore.solve import warm_up


@pytest.fixture(scope="module")
def server() -> Iterator[Explorer]:
    warm_up()
    with Explorer() as explorer:
        thread = threading.Thread(target=explorer.serve_forever, args=(0.02,))
        thread.start()
        yield explorer
        explorer.shutdown()
        thread.join()


@pytest.fixture
def wait() -> Callable[[Any, str], None]:
    """Waits until a script that is run in a browser returns something true."""
    from selenium.webdriver.support.ui import WebDriverWait

    def until(browser: Any, script: str) -> None:
        WebDriverWait(browser, 15, poll_frequency=0.02).until(lambda _: browser.execute_script(script))

    return until
