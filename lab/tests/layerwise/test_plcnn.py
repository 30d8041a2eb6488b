"""PLCNN: the paper's network, files bit for bit that hold nothing that runs, and parts that leave data as they are."""

from __future__ import annotations

import copy
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rankwise_lab.layerwise import LWSVM, PLCNN  # noqa: E402
from rankwise_lab.layerwise.pieces import KNOWN  # noqa: E402
from torch import nn  # noqa: E402

import rankwise as rw  # noqa: E402
from rankwise.io.models import ModelFileError, read_model, write_model  # noqa: E402


def every_part() -> Any:
    torch.manual_seed(0)
    net = PLCNN(
        nn.Conv2d(2, 4, (3, 2), stride=(1, 2), padding=(1, 0), dilation=1, groups=2, padding_mode="reflect"),
        nn.BatchNorm2d(4, eps=1e-3, momentum=None), nn.LeakyReLU(-0.3), nn.MaxPool2d((2, 3), 2, padding=1,
        ceil_mode=True), nn.Conv2d(4, 3, 3, padding="same", bias=False), nn.BatchNorm2d(3, affine=False), nn.ReLU(True),
        nn.AvgPool2d(2, 1, padding=1, count_include_pad=False, divisor_override=3), nn.Dropout2d(0.1),
        nn.AdaptiveAvgPool2d((2, None)), nn.Flatten(2), nn.Dropout1d(0.2), nn.BatchNorm1d(3), nn.Flatten(),
        nn.Identity(), nn.Dropout(0.3), nn.Linear(18, 5, bias=False), nn.LeakyReLU(0.1), nn.Linear(5, 3),
    )  # fmt: skip
    with torch.no_grad():
        for part in net:
            if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
                part.running_mean.normal_()
                part.running_var.uniform_(0.5, 2.0)
    return net.eval()


def images(n: int = 6, dtype: Any = torch.float32) -> Any:
    return torch.randn(n, 2, 7, 7, generator=torch.Generator().manual_seed(1)).to(dtype)


def test_the_papers_network_has_six_convolutions_and_an_svm() -> None:
    net = PLCNN.cifar10()
    layers = [net[k] for k in net.trainable]
    assert [one.out_channels for one in layers[:6]] == [64, 64, 128, 128, 256, 256]
    assert all((one.kernel_size, one.padding, one.stride) == ((3, 3), (1, 1), (1, 1)) for one in layers[:6])
    block = ["Conv2d", "BatchNorm2d", "ReLU"] * 2 + ["MaxPool2d"]
    assert [type(one).__name__ for one in net] == [*block * 3, "Flatten", "Linear"]
    assert (layers[6].in_features, net.n_classes) == (16 * 256, 10)


def test_the_papers_network_comes_in_other_sizes_and_batch_normalisation_is_not_in_the_regulariser() -> None:
    net = PLCNN.cifar10(4, n_classes=7, in_channels=1, batch_norm=False)
    assert net(torch.zeros(2, 1, 32, 32)).shape == (2, 7)
    assert not any(isinstance(one, nn.BatchNorm2d) for one in net)
    with pytest.raises(ValueError, match="width must be a whole number, at least 1"):
        PLCNN.cifar10(width=1.5)
    net = every_part()
    wanted = sum((one**2).sum() for k in net.trainable for one in net[k].parameters())
    net.regulariser().backward()
    torch.testing.assert_close(net.regulariser(), wanted)
    torch.testing.assert_close(net[0].weight.grad, 2.0 * net[0].weight)
    assert net[1].weight.grad is None


def test_a_network_shares_the_modules_of_a_sequential_and_copies_and_states_are_those_of_any_module() -> None:
    inner = nn.Sequential(nn.Flatten(), nn.Sequential(nn.Linear(98, 4), nn.ReLU()), nn.Linear(4, 3))
    net = PLCNN(inner)
    assert (len(net), net.trainable, net.n_classes) == (4, [1, 3], 3)
    assert (net[1], net[-1]) == (inner[1][0], inner[2])
    assert torch.equal(net[2:](net[:2](images())), inner(images()))
    other = copy.deepcopy(net)
    with torch.no_grad():
        other[1].weight.zero_()
    assert net[1].weight.any()
    other.load_state_dict(net.state_dict())
    assert torch.equal(net(images()), other(images()))


@pytest.mark.parametrize(
    "first", [nn.ReLU(inplace=True), nn.LeakyReLU(0.1, inplace=True), nn.Dropout(0.5, inplace=True)]
)
def test_parts_that_work_in_place_leave_the_users_images_as_they_are(first: Any) -> None:
    torch.manual_seed(0)
    net = PLCNN(first, nn.Flatten(), nn.Linear(18, 4), nn.ReLU(inplace=True), nn.Linear(4, 3))
    x = np.random.default_rng(0).normal(size=(12, 2, 3, 3)).astype(np.float32)
    given, labels = torch.from_numpy(x.copy()), np.arange(12) % 3
    model = LWSVM(net, block_size=6, pretrain_epochs=1, warmup_epochs=1, max_passes=1, max_epochs=2)
    model.fit((given, labels), (given, labels)).predict(given)
    assert np.array_equal(given.numpy(), x)
    assert np.array_equal(labels, np.arange(12) % 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_file_gives_the_network_back_bit_for_bit_whatever_its_parts(dtype: Any, tmp_path: Path) -> None:
    net = every_part().to(dtype)
    assert {type(part) for part in net} == set(KNOWN)
    path = tmp_path / "net.rw"
    net.save(path)
    found = PLCNN.load(path)
    assert repr(found) == repr(net).replace(", inplace=True", "").replace("inplace=True", "")
    assert not found.training
    there, here = net.state_dict(), found.state_dict()
    assert list(there) == list(here)
    assert all(torch.equal(part, here[key]) and part.dtype == here[key].dtype for key, part in there.items())
    assert torch.equal(found(images(dtype=dtype)), net(images(dtype=dtype)))
    assert [part.p for part in found if hasattr(part, "p")] == [0.1, 0.2, 0.3]
    assert (found[1].eps, found[1].momentum) == (1e-3, None)
    found.save(tmp_path / "again.rw")
    assert (tmp_path / "again.rw").read_bytes() == path.read_bytes()
    with torch.no_grad():
        found[0].weight.add_(1.0)  # what is read can be written to
    with zipfile.ZipFile(path) as archive:  # numbers and plain text alone
        names = archive.namelist()
        json.loads(archive.read(names[0]))
        for name in names[1:]:
            with archive.open(name) as member:
                assert np.lib.format.read_magic(member) == (1, 0)
                assert not np.lib.format.read_array_header_1_0(member)[2].hasobject
    assert b"torch" not in path.read_bytes()


def small() -> Any:
    torch.manual_seed(0)
    return PLCNN(nn.Conv2d(1, 2, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 2))


def edited(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Path:
    """A file whose header and arrays were changed, with sums that agree."""
    small().save(path)
    file = read_model(path)
    header, arrays = copy.deepcopy(file.header), dict(file.arrays)
    change(header, arrays)
    write_model(path, file.kind, header, arrays)
    return path


def options(k: int, **changes: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda header, arrays: header["parts"][k]["options"].update(changes)


def type_of(k: int, name: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda header, arrays: header["parts"][k].update(type=name)


BAD: dict[str, Callable[[dict[str, Any], dict[str, Any]], None]] = {
    "another type": type_of(1, "Sigmoid"), "a type of Python": type_of(1, "eval"), "a list": type_of(1, ["ReLU"]),
    "another known type": type_of(4, "ReLU"), "no groups": options(0, groups=0), "a word": options(0, in_channels="1"),
    "an option of none": options(1, loud=True), "channels": options(0, out_channels=3),
    "huge": options(0, in_channels=1 << 40), "large": options(4, in_features=1 << 20, out_features=1 << 20),
    "a device": options(4, device="nowhere"), "mode": options(0, padding_mode="eval"),
    "text": lambda header, arrays: header.update(parts="Linear"),
    "no options": lambda header, arrays: header["parts"][0].pop("options"),
    "no channels_last": lambda header, arrays: header.pop("channels_last"),
    "an array less": lambda header, arrays: arrays.pop("0.weight"),
    "an array more": lambda header, arrays: arrays.update({"9.weight": np.zeros(1)}),
    "other shape": lambda header, arrays: arrays.update({"0.weight": arrays["0.weight"].T.copy()}),
    "strings": lambda header, arrays: arrays.update({"0.weight": np.array(["a"])}),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_file_that_says_what_no_network_is_is_refused(case: str, tmp_path: Path) -> None:
    path = edited(tmp_path / "net.rw", BAD[case])
    with pytest.raises(ModelFileError, match=r"net\.rw: damaged") as raised:
        PLCNN.load(path)
    assert "\n" not in str(raised.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.rw"
    small().save(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelFileError):
        PLCNN.load(path)
    rw.RankSVM(C=1.0).fit(np.eye(4), [0, 1, 0, 1]).save(path)
    with pytest.raises(ModelFileError, match=r"not a network; use rankwise\.load"):
        PLCNN.load(path)


class Own(nn.ReLU):
    pass


REFUSED = {
    "Sigmoid": nn.Sigmoid, "GELU": nn.GELU, "PReLU": nn.PReLU, "LSTM": lambda: nn.LSTM(3, 3), "Own": Own,
    "Softmax": lambda: nn.Softmax(1), "Conv1d": lambda: nn.Conv1d(3, 3, 1), "LPPool2d": lambda: nn.LPPool2d(2, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_part_that_is_not_known_is_refused_by_its_name_and_place(name: str) -> None:
    part = REFUSED[name]()
    with pytest.raises(TypeError, match=rf"part 1 \({name}\) is not a piecewise-linear part .* use one of Conv2d, Lin"):
        PLCNN(nn.Linear(3, 3), part, nn.Linear(3, 2))
    with pytest.raises(TypeError, match=rf"part 1, part 0, part 2 \({name}\) is not a piecewise-linear part"):
        PLCNN(nn.ReLU(), nn.Sequential(nn.Sequential(nn.ReLU(), nn.ReLU(), part)), nn.Linear(3, 2))


def test_layers_that_share_weights_are_refused_and_parts_without_weights_may_be_used_twice() -> None:
    layer, other, relu = nn.Linear(3, 3), nn.Linear(3, 3), nn.ReLU()
    with pytest.raises(ValueError, match="parts 0 and 2 share weights"):
        PLCNN(layer, relu, layer)
    other.weight = layer.weight
    with pytest.raises(ValueError, match="parts 0 and 1 share weights"):
        PLCNN(layer, other)
    assert len(PLCNN(layer, relu, nn.Linear(3, 3), relu, nn.Linear(3, 2))) == 5
