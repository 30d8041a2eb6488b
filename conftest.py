"""What the tests of both houses share: random numbers, and what is left out where packages are absent."""

from __future__ import annotations

import gc
import signal
from importlib.util import find_spec

import numpy as np
import pytest

SEED = 20180618
pytest.register_assert_rewrite("commands", "exact_hinge", "linear_problems", "metric_problems")
# Where torch is absent, these are not imported for their examples; tests that need it skip themselves.
_LAB = "lab/src/rankwise_lab"
NEED_TORCH = [
    "src/rankwise/torch/*",
    f"{_LAB}/benchmarks/torch_*",
    f"{_LAB}/detection/cnn.py",
    f"{_LAB}/layerwise/*",
    f"{_LAB}/benchmarks/finetune*",
    f"{_LAB}/benchmarks/layerwise.py",
    f"{_LAB}/benchmarks/retrieval*",
    f"{_LAB}/reproduce/cifar.py",
    "tests/helpers/layer_networks.py",
    "tests/helpers/lwsvm_runs.py",
    "tests/helpers/torch_versions.py",
]
NEED_DASK = ["src/rankwise/dask/*", "tests/helpers/dask_problems.py", "tests/dask/*"]
collect_ignore_glob = [*([] if find_spec("torch") else NEED_TORCH), *([] if find_spec("distributed") else NEED_DASK)]


def pytest_configure() -> None:
    """Take Ctrl-C as usual: started in the background, a shell has it ignored, here and in all that is started.

    Workers of pytest-xdist are started after this, and do the same.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going through all modules and tests again and again: they stay."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(SEED)
