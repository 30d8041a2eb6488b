"""The benchmark of the losses in torch: rows, peers that are missing or die, and memory. No test depends on speed."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rankwise_lab.benchmarks import torch_losses  # noqa: E402
from rankwise_lab.benchmarks.arms import Package  # noqa: E402
from rankwise_lab.benchmarks.torch_losses import BENCHMARK  # noqa: E402
from rankwise_lab.benchmarks.torch_peers import (  # noqa: E402
    PEERS,
    Peer,
    published_ap_loss,
)

from rankwise.torch import ErrorDrivenLoss  # noqa: E402

QUICK = BENCHMARK.sizes.quick()
PAIRWISE = PEERS["pairwise sigmoids"]
OURS_ONLY = '{"growth": {"ours": 4096}, "seconds": {"ours": 0.001}}\n'
BOTH = '{"growth": {"ours": 4096, "peer": 8388608}, "seconds": {"ours": 0.001, "peer": 0.004}}\n'


@pytest.mark.parametrize("seed", range(5))
def test_the_published_loop_gives_the_value_and_the_update_that_ours_gives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    target = torch.from_numpy(rng.random(300) < 0.1)
    found = []
    for loss in (published_ap_loss, ErrorDrivenLoss()):
        scores = torch.from_numpy(2 * np.random.default_rng([seed, 1]).standard_normal(300)).requires_grad_()
        value = loss(scores, target)
        value.backward()
        found.append((value.item(), scores.grad.numpy()))
    (value, update), (ours, our_update) = found
    assert value == pytest.approx(ours, rel=1e-12)
    np.testing.assert_allclose(update, our_update, atol=1e-15, rtol=1e-10)


def test_a_package_that_is_not_there_is_a_row_with_the_command_that_installs_it() -> None:
    peer = Peer("AnyLoss", "scores", PAIRWISE.make, Package("no_such_package", "pip install no-such-package"))
    (row,) = torch_losses._beside(peer, 400, QUICK)
    assert row.what == "AnyLoss, B = 400: not installed: pip install no-such-package"
    assert row.measured is None


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps to the limit")
def test_a_peer_that_runs_out_of_memory_is_a_row_that_says_so() -> None:
    (row,) = torch_losses._beside(PAIRWISE, 400_000, QUICK)  # 8,000 positives: 12.8 GB for each matrix
    assert row.what == "pairwise sigmoids, B = 400,000: out of memory (8 GB)"
    assert row.measured is None
    assert set(row.parts) == {"ours seconds", "ours bytes"}
    assert all(value > 0 for value in row.parts.values())


@pytest.mark.parametrize(
    ("status", "said", "expected"),
    [
        (-9, OURS_ONLY, ["pairwise sigmoids, B = 400: ended by signal 9"]),
        (0, OURS_ONLY + BOTH, [4.0, 8.0]),  # memory: over a megabyte, which is more than ours
        (None, OURS_ONLY, ["pairwise sigmoids, B = 400: more than 60 s"]),
        (1, "", OSError),
        (1, OURS_ONLY, OSError),
    ],
)
def test_what_is_said_of_a_peer(status: int | None, said: str, expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **options: Any) -> Any:
        if status is None:
            raise subprocess.TimeoutExpired(command, options["timeout"], output=said.encode())
        return subprocess.CompletedProcess([], status, said, "Traceback …\nTypeError: no such argument\n")

    monkeypatch.setattr(subprocess, "run", run)
    if expected is OSError:  # called wrongly
        with pytest.raises(OSError, match=r"pairwise sigmoids, B = 400.*TypeError: no such argument"):
            list(torch_losses._beside(PAIRWISE, 400, QUICK))
    else:
        rows = list(torch_losses._beside(PAIRWISE, 400, QUICK))
        assert [row.what if row.measured is None else row.measured for row in rows] == expected
