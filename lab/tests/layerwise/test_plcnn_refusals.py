"""What a piecewise-linear network may not be made of: refused by name, when it is made."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from rankwise_lab.layerwise.network import PLCNN  # noqa: E402
from torch import nn  # noqa: E402


class Own(nn.ReLU):
    pass


REFUSED = {
    "Sigmoid": nn.Sigmoid, "Tanh": nn.Tanh, "ReLU6": nn.ReLU6, "GELU": nn.GELU, "PReLU": nn.PReLU, "SiLU": nn.SiLU,
    "LSTM": lambda: nn.LSTM(3, 3), "Softmax": lambda: nn.Softmax(1), "LayerNorm": lambda: nn.LayerNorm(3), "Own": Own,
    "Conv1d": lambda: nn.Conv1d(3, 3, 1), "Bilinear": lambda: nn.Bilinear(3, 3, 3), "GroupNorm": lambda:
    nn.GroupNorm(1, 3), "LPPool2d": lambda: nn.LPPool2d(2, 2), "LocalResponseNorm": lambda: nn.LocalResponseNorm(2),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_part_that_is_not_known_is_refused_by_its_name_and_place(name: str) -> None:
    part = REFUSED[name]()
    with pytest.raises(TypeError, match=rf"part 1 \({name}\) is not a piecewise-linear part .* use one of Conv2d, Lin"):
        PLCNN(nn.Linear(3, 3), part, nn.Linear(3, 2))
    with pytest.raises(TypeError, match=rf"part 1, part 0, part 2 \({name}\) is not a piecewise-linear part"):
        PLCNN(nn.ReLU(), nn.Sequential(nn.Sequential(nn.ReLU(), nn.ReLU(), part)), nn.Linear(3, 2))


@pytest.mark.parametrize(
    ("parts", "match"),
    [
        ([nn.MaxPool2d(2, dilation=2)], r"part 0 \(MaxPool2d\) has dilation"),
        ([nn.MaxPool2d(2, dilation=(1, 2))], r"part 0 \(MaxPool2d\) has dilation"),
        ([nn.MaxPool2d(2, return_indices=True)], "return_indices"),
        ([nn.BatchNorm2d(2, track_running_stats=False)], r"part 0 \(BatchNorm2d\) keeps no statistics"),
        ([nn.BatchNorm1d(2, track_running_stats=False)], r"part 0 \(BatchNorm1d\) keeps no statistics"),
        ([], "the last part must be a Linear layer .* got nothing"),
        ([nn.Sequential()], "got nothing"),
        ([nn.Linear(2, 2), nn.ReLU()], "got ReLU"),
        ([nn.Conv2d(1, 1, 1)], "got Conv2d"),
        ([nn.Linear(2, 2), nn.Linear], "must be modules, got type"),
        ([None], "must be modules, got NoneType"),
    ],
)
def test_parts_that_cannot_be_trained_or_scored_are_refused(parts: list[Any], match: str) -> None:
    with pytest.raises(TypeError, match=match):
        PLCNN(*parts)


def test_layers_that_share_weights_are_refused_and_parts_without_weights_may_be_used_twice() -> None:
    layer, other, relu = nn.Linear(3, 3), nn.Linear(3, 3), nn.ReLU()
    with pytest.raises(ValueError, match="parts 0 and 2 share weights"):
        PLCNN(layer, relu, layer)
    other.weight = layer.weight
    with pytest.raises(ValueError, match="parts 0 and 1 share weights"):
        PLCNN(layer, other)
    assert len(PLCNN(layer, relu, nn.Linear(3, 3), relu, nn.Linear(3, 2))) == 5


def test_a_negative_divisor_of_averages_is_refused() -> None:
    PLCNN(nn.AvgPool2d(2, divisor_override=3), nn.Flatten(), nn.Linear(4, 2))
    with pytest.raises(TypeError, match=r"part 0 \(AvgPool2d\) divides by -4"):
        PLCNN(nn.AvgPool2d(2, divisor_override=-4), nn.Flatten(), nn.Linear(4, 2))
