"""What LWSVM refuses, before any training, and in which words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from block_losses import OWN

torch = pytest.importorskip("torch")

from rankwise_lab.layerwise.lwsvm import LWSVM  # noqa: E402
from rankwise_lab.layerwise.network import PLCNN  # noqa: E402
from torch import nn  # noqa: E402

import rankwise as rw  # noqa: E402


def network() -> Any:
    torch.manual_seed(0)
    return PLCNN(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 36, 3))


IMAGES, LABELS = np.random.default_rng(0).normal(size=(30, 1, 8, 8)).astype(np.float32), np.arange(30) % 3
BROKEN = np.where(np.arange(30)[:, None, None, None] == 4, np.float32(np.nan), IMAGES)
NO_RANKING = rw.NDCG(discount="chakrabarti")


BAD_SETTINGS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"lam": 0.0, "mu": 0.0}, ValueError, "lam and mu are both 0"),
    ({"block_size": 0}, ValueError, "block_size must be at least 1, got 0"),
    ({"decomposition": "convex"}, ValueError, "unknown decomposition 'convex'; use one of 'auto', 'dc', 'fixed'"),
    ({"method": "bubblesort"}, ValueError, "unknown method 'bubblesort'"),
    ({"loss": "hinge", "method": "yue"}, ValueError, "method='yue' is for rank losses"),
    ({"score": "f2"}, ValueError, "unknown score 'f2'; use one of 'accuracy', 'ap'"),
]


@pytest.mark.parametrize(("settings", "error", "match"), BAD_SETTINGS, ids=lambda case: str(case)[:40])
def test_a_bad_setting_is_refused_at_once(settings: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        LWSVM(network(), **settings)


BAD_NETWORKS: dict[str, tuple[Any, type[Exception], str]] = {
    "sigmoid": (lambda: nn.Sequential(nn.Flatten(), nn.Sigmoid(), nn.Linear(64, 3)), TypeError, r"part 1 \(Sigmoid\)"),
    "no linear end": (lambda: nn.Sequential(nn.Linear(4, 3), nn.ReLU()), TypeError, "last part must be a Linear"),
    "a lone layer": (lambda: nn.Linear(4, 3), TypeError, "net must be a PLCNN or an nn.Sequential, got Linear"),
    "half": (lambda: network().half(), TypeError, "float16; convert them to float32 or float64"),
    "mixed": (lambda: PLCNN(nn.Linear(4, 4), nn.Linear(4, 3).double()), ValueError, "have several dtypes or devices"),
    "frozen": (lambda: network().requires_grad_(False), ValueError, "nothing to train"),
    "frozen in part": (
        lambda: (net := network(), net[0].bias.requires_grad_(False))[0],
        ValueError,
        "in part 0 only one of weight and bias requires gradients",
    ),
}


@pytest.mark.parametrize("case", BAD_NETWORKS)
def test_a_network_that_cannot_be_trained_is_refused_when_the_object_is_made(case: str) -> None:
    make, error, match = BAD_NETWORKS[case]
    with pytest.raises(error, match=match):
        LWSVM(make())


BAD_SAMPLES: dict[str, tuple[Any, Any, dict[str, Any], type[Exception]]] = {
    r"^train: labels\[2\] is 3": ((IMAGES, LABELS + 1), None, {}, ValueError),
    "^train: image 4 has a value": ((BROKEN, LABELS), None, {}, ValueError),
    r"^val: labels\[2\] is 3": ((IMAGES, LABELS), (IMAGES, LABELS + 1), {}, ValueError),
    "^val: image 4 has a value": ((IMAGES, LABELS), (BROKEN, LABELS), {}, ValueError),
    r"train must be a pair \(images, labels\), got ndarray": (IMAGES, None, {}, TypeError),
    "ndcg breaks": ((IMAGES, LABELS), None, {"loss": NO_RANKING, "score": "ndcg"}, rw.NotQSSuitableError),
    "there is no metric with the name of the loss, 'own'; pass score=": (
        (IMAGES, LABELS),
        (IMAGES, LABELS),
        {"loss": OWN},
        ValueError,
    ),
}


@pytest.mark.parametrize("stage", ["fit", "pretrain", "warm_up", "fit_layers"])
@pytest.mark.parametrize("match", BAD_SAMPLES)
def test_bad_samples_and_losses_are_refused_by_every_stage_before_it_begins(stage: str, match: str) -> None:
    train, val, settings, error = BAD_SAMPLES[match]
    net = network()
    before = {key: part.clone() for key, part in net.state_dict().items()}
    with pytest.raises(error, match=match):
        getattr(LWSVM(net, **settings), stage)(train, val)
    assert all(torch.equal(part, before[key]) for key, part in net.state_dict().items())


@pytest.mark.parametrize(
    ("net", "shape", "match"),
    [
        (network(), (30, 1, 9, 9), r"train: the network cannot process images of shape \(1, 9, 9\)"),
        (PLCNN(nn.ReLU(), nn.Linear(8, 3)), (30, 1, 8, 8), r"the network returns shape \(1, 8, 3\) per image"),
    ],
)
def test_a_network_that_does_not_fit_the_images_is_refused(net: Any, shape: tuple[int, ...], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        LWSVM(net).fit((np.zeros(shape, np.float32), LABELS))


def test_a_checkpoint_must_be_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for path in (file, file / "inner"):
        with pytest.raises(ValueError, match="is a file; pass a folder"):
            LWSVM(network()).fit((IMAGES, LABELS), checkpoint=path)
