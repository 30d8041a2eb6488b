"""What LWSVM refuses, before any training, and in which words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rankwise_lab.layerwise.lwsvm import LWSVM  # noqa: E402
from rankwise_lab.layerwise.network import PLCNN  # noqa: E402
from torch import nn  # noqa: E402

import rankwise as rw  # noqa: E402

STAGES = ("fit", "pretrain", "warm_up", "fit_layers")


def network() -> Any:
    torch.manual_seed(0)
    return PLCNN(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 36, 3))


def samples(n: int = 30) -> tuple[Any, Any]:
    return np.random.default_rng(0).normal(size=(n, 1, 8, 8)).astype(np.float32), np.arange(n) % 3


BAD_SETTINGS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"lam": -1e-3}, ValueError, "lam must be finite and at least 0, got -0.001"),
    ({"lam": "small"}, TypeError, "lam must be a number, got str"),
    ({"mu": np.inf}, ValueError, "mu must be finite"),
    ({"mu": None}, TypeError, "mu must be a number, got NoneType"),
    ({"lam": 0.0, "mu": 0.0}, ValueError, "lam and mu are both 0"),
    ({"tol": -1.0}, ValueError, "tol must be finite and at least 0"),
    ({"tol": np.nan}, ValueError, "tol must be finite"),
    ({"learning_rate": 0.0}, ValueError, "learning_rate must be finite and above 0"),
    ({"memory": 0}, ValueError, "memory must be finite and above 0"),
    ({"scale": -1.0}, ValueError, "scale must be finite and at least 0"),
    ({"block_size": 0}, ValueError, "block_size must be at least 1, got 0"),
    ({"block_size": 20.0}, TypeError, "block_size must be an integer, got float"),
    ({"batch_size": True}, TypeError, "batch_size must be an integer, got bool"),
    ({"max_epochs": 0}, ValueError, "max_epochs must be at least 1"),
    ({"max_passes": -1}, ValueError, "max_passes must be at least 0"),
    ({"pretrain_epochs": -1}, ValueError, "pretrain_epochs must be at least 0"),
    ({"warmup_epochs": 1.5}, TypeError, "warmup_epochs must be an integer"),
    ({"seed": -1}, ValueError, "seed must be at least 0"),
    ({"layers": 0}, ValueError, "layers must be at least 1, got 0"),
    ({"layers": 1.0}, TypeError, "layers must be an integer, got float"),
    ({"decomposition": "convex"}, ValueError, "unknown decomposition 'convex'; use one of 'auto', 'dc', 'fixed'"),
    ({"method": "bubblesort"}, ValueError, "unknown method 'bubblesort'"),
    ({"loss": "hinge", "method": "yue"}, ValueError, "method='yue' is for rank losses"),
    ({"loss": "precision"}, ValueError, "unknown loss 'precision'"),
    ({"loss": 3}, TypeError, "loss must be a name or a Loss"),
    ({"score": "f2"}, ValueError, "unknown score 'f2'; use one of 'accuracy', 'ap'"),
    ({"score": "auc@5"}, ValueError, "auc cannot be cut"),
    ({"score": 1.0}, TypeError, "score must be a name or a function"),
]


@pytest.mark.parametrize(("settings", "error", "match"), BAD_SETTINGS, ids=lambda case: str(case)[:40])
def test_a_setting_out_of_order_is_refused_when_the_object_is_made(
    settings: dict[str, Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        LWSVM(network(), **settings)


def mixed() -> Any:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 4), nn.ReLU(), nn.Linear(4, 3).double())


def frozen() -> Any:
    return network().requires_grad_(False)


BAD_NETWORKS = {
    "sigmoid": (lambda: nn.Sequential(nn.Flatten(), nn.Sigmoid(), nn.Linear(64, 3)), TypeError, r"part 1 \(Sigmoid\)"),
    "no linear end": (lambda: nn.Sequential(nn.Linear(4, 3), nn.ReLU()), TypeError, "last part must be a Linear"),
    "a lone layer": (lambda: nn.Linear(4, 3), TypeError, "net must be a PLCNN or an nn.Sequential, got Linear"),
    "half": (lambda: network().half(), TypeError, "float16; convert them to float32 or float64"),
    "mixed": (mixed, ValueError, "have several dtypes or devices"),
    "frozen": (frozen, ValueError, "nothing to train"),
}


@pytest.mark.parametrize("case", BAD_NETWORKS)
def test_a_network_that_cannot_be_trained_is_refused_when_the_object_is_made(case: str) -> None:
    make, error, match = BAD_NETWORKS[case]
    with pytest.raises(error, match=match):
        LWSVM(make())


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", ["train", "val"])
def test_labels_out_of_range_and_nan_images_are_refused_by_every_stage_before_it_begins(stage: str, name: str) -> None:
    images, labels = samples()
    broken = images.copy()
    broken[4, 0, 2, 2] = np.nan
    for bad, match in (((images, labels + 1), r"labels\[2\] is 3"), ((broken, labels), "image 4 has a value")):
        net = network()
        before = {key: part.clone() for key, part in net.state_dict().items()}
        given = {"train": (images, labels), "val": (images, labels), name: bad}
        with pytest.raises(ValueError, match=f"^{name}: {match}"):
            getattr(LWSVM(net), stage)(given["train"], given["val"])
        assert all(torch.equal(part, before[key]) for key, part in net.state_dict().items())


@pytest.mark.parametrize(
    ("shape", "match"),
    [
        ((30, 1, 9, 9), r"train: the network cannot process images of shape \(1, 9, 9\)"),
        ((30, 2, 8, 8), r"shape \(2, 8, 8\)"),
    ],
)
def test_images_of_another_shape_than_the_network_takes_are_refused(shape: tuple[int, ...], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        LWSVM(network()).fit((np.zeros(shape, np.float32), np.arange(30) % 3))


def test_a_network_that_gives_more_than_a_row_of_scores_is_refused() -> None:
    net = PLCNN(nn.ReLU(), nn.Linear(8, 3))
    with pytest.raises(ValueError, match=r"train: the network returns shape \(1, 8, 3\) per image"):
        LWSVM(net).fit(samples())


def test_a_loss_of_the_users_own_needs_a_score_where_there_are_validation_samples() -> None:
    own = rw.DiscountedLoss(lambda k: 1.0 + 0 * k, lambda m: 1.0 / m**2, name="own")
    quick: dict[str, Any] = {"pretrain_epochs": 0, "warmup_epochs": 1, "max_passes": 0}
    with pytest.raises(ValueError, match="there is no metric with the name of the loss, 'own'; pass score="):
        LWSVM(network(), own, **quick).fit(samples(), samples())
    assert LWSVM(network(), own, **quick).fit(samples()).score_ is None
    assert LWSVM(network(), own, score="ap", **quick).fit(samples(), samples()).score_ is not None


@pytest.mark.parametrize("value", [np.nan, None, "high"])
def test_a_score_that_is_no_number_is_refused(value: Any) -> None:
    model = LWSVM(network(), score=lambda labels, scores: value, pretrain_epochs=1)
    with pytest.raises(ValueError, match="score must return a finite number"):
        model.pretrain(samples(), samples())


def test_a_checkpoint_must_be_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for path in (file, file / "inner"):
        with pytest.raises(ValueError, match="is a file; pass a folder"):
            LWSVM(network()).fit(samples(), checkpoint=path)


@pytest.mark.parametrize(
    ("images", "match"),
    [
        (np.zeros((2, 1, 8, 8), np.uint8), "scale them to floats"),
        (np.full((2, 1, 8, 8), np.nan, np.float32), "image 0"),
        (np.zeros((2, 1, 5, 8), np.float32), r"cannot process images of shape \(1, 5, 8\)"),
        (None, "must be an array"),
    ],
)
def test_bad_images_are_not_scored(images: Any, match: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"decision_function: .*{match}"):
        LWSVM(network()).predict(images)


@pytest.mark.parametrize("stage", STAGES)
def test_a_loss_that_is_of_no_ranking_is_refused_before_training(stage: str) -> None:
    model = LWSVM(network(), rw.NDCG(discount="chakrabarti"), score="ndcg")
    before = {name: value.clone() for name, value in model.net.state_dict().items()}
    with pytest.raises(rw.NotQSSuitableError):
        getattr(model, stage)(samples())
    assert all(torch.equal(value, before[name]) for name, value in model.net.state_dict().items())


def test_a_network_is_loaded_like_any_model(tmp_path: Path) -> None:
    network().save(tmp_path / "net.rw")
    found = rw.load(tmp_path / "net.rw")
    assert isinstance(found, PLCNN)
    assert all(torch.equal(one, other) for one, other in zip(found.parameters(), network().parameters(), strict=True))


def test_a_layer_that_is_frozen_in_part_is_refused() -> None:
    net = network()
    net[0].bias.requires_grad_(False)
    with pytest.raises(ValueError, match="in part 0 only one of weight and bias requires gradients"):
        LWSVM(net)
    net[0].weight.requires_grad_(False)
    LWSVM(net)
