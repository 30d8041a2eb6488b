"""Parts of piecewise-linear networks: their values, the linear pieces they choose, and value = convex − concave."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from rankwise_lab.layerwise import pieces  # noqa: E402
from rankwise_lab.layerwise.network import PLCNN  # noqa: E402
from torch import nn  # noqa: E402

SLOPES = (0.0, 0.1, 1.0, 1.5, -0.3)
SEGMENTS = 20  # for each layer of each network: a thousand in all


def scrambled(parts: list[Any], seed: int, dtype: Any = torch.float64) -> Any:
    """A network in inference mode, whose batch normalisations have factors of both signs."""
    generator = torch.Generator().manual_seed(seed)
    net = PLCNN(*parts).double().eval()
    with torch.no_grad():
        for part in net:
            if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
                part.running_mean.normal_(generator=generator)
                part.running_var.uniform_(0.5, 2.0, generator=generator)
            for parameter in part.parameters():
                parameter.normal_(std=0.7, generator=generator)
    return net.to(dtype)


def dense(slope: float) -> list[Any]:
    middle = [nn.BatchNorm1d(6), nn.LeakyReLU(slope, inplace=True), nn.Linear(6, 5, bias=False), nn.LeakyReLU(slope)]
    return [nn.Linear(4, 6), *middle, nn.Dropout(), nn.Linear(5, 3)]


NETS: dict[str, tuple[Any, tuple[int, ...]]] = {
    **{f"dense, slope {slope}": (lambda slope=slope: dense(slope), (4,)) for slope in SLOPES},
    "reflected, pooled over the edge": (
        lambda: [
            nn.Conv2d(2, 4, 3, padding=1, groups=2, padding_mode="reflect"), nn.BatchNorm2d(4), nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, padding=1, ceil_mode=True), nn.Conv2d(4, 3, 2, dilation=2, bias=False),
            nn.LeakyReLU(-0.3), nn.AvgPool2d(2, 1, padding=1, count_include_pad=False), nn.Flatten(), nn.Linear(27, 3),
        ],
        (2, 7, 7),
    ),
    "strided, of unequal sides": (
        lambda: [
            nn.Sequential(nn.Conv2d(1, 3, (3, 2), stride=(2, 1), padding="valid"), nn.MaxPool2d((1, 2), (1, 1))),
            nn.Dropout2d(), nn.LeakyReLU(1.5), nn.AdaptiveAvgPool2d((2, None)), nn.Identity(),
            nn.MaxPool2d(2, ceil_mode=True), nn.Flatten(), nn.Linear(6, 4, bias=False), nn.ReLU(), nn.Linear(4, 2),
        ],
        (1, 6, 6),
    ),
    "circular, averaged": (
        lambda: [
            nn.Conv2d(1, 2, 3, padding="same", padding_mode="circular"), nn.AvgPool2d(3, 2, ceil_mode=True),
            nn.BatchNorm2d(2, affine=False), nn.LeakyReLU(0.1), nn.Conv2d(2, 2, 1), nn.ReLU(), nn.MaxPool2d(2, 1),
            nn.Flatten(), nn.Linear(2, 2), nn.LeakyReLU(-0.3), nn.Linear(2, 3),
        ],
        (1, 5, 5),
    ),
    "replicated, with dropped channels": (
        lambda: [
            nn.Conv2d(1, 2, 3, stride=2, padding=(1, 0), padding_mode="replicate"), nn.ReLU(),
            nn.AvgPool2d(2, divisor_override=3), nn.Flatten(2), nn.Dropout1d(), nn.BatchNorm1d(2), nn.Flatten(),
            nn.Linear(2, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3),
        ],
        (1, 6, 6),
    ),
}  # fmt: skip
PLACES = [(name, k) for name, (make, _) in NETS.items() for k in PLCNN(*make()).trainable]
places = pytest.mark.parametrize(("name", "k"), PLACES, ids=[f"{name}, layer {k}" for name, k in PLACES])


def made(name: str, dtype: Any = torch.float64, n: int = 3) -> tuple[Any, Any]:
    make, shape = NETS[name]
    seed = list(NETS).index(name)
    x = torch.randn(n, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(99)).to(dtype)
    return scrambled(make(), seed, dtype), x


def up_to(net: Any, k: int, x: Any) -> Any:
    for part in list(net)[:k]:
        x = pieces.value_of(part, x)
    return x


def with_weights(net: Any, k: int, draw: Any) -> Any:
    part = copy.deepcopy(net[k])
    with torch.no_grad():
        for parameter in part.parameters():
            parameter.copy_(draw(parameter))
    return part


def above(net: Any, k: int, output: Any) -> tuple[Any, Any]:
    """Scores and their concave part, from layer k's output."""
    concave = None
    for part in list(net)[k + 1 :]:
        output, concave = pieces.value_of(part, output), pieces.concave_part(part, output, concave)
    return output, torch.zeros_like(output) if concave is None else concave


@places
def test_the_network_is_its_value_and_its_streams_differ_by_that_in_any_precision(name: str, k: int) -> None:
    concave = {}
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        net, x = made(name, dtype)
        with torch.no_grad():
            value, concave[dtype] = above(net, k, net[k](up_to(net, k, x)))
            largest = max(1.0, concave[dtype].abs().max().item())
            torch.testing.assert_close(value, net(x), rtol=0, atol=tolerance)
            difference = (value + concave[dtype]) - concave[dtype]
            torch.testing.assert_close(difference, net(x), rtol=0, atol=tolerance * largest)
    torch.testing.assert_close(concave[torch.float32].double(), concave[torch.float64], rtol=0, atol=1e-5 * largest)


@places
def test_convex_and_concave_part_are_convex_in_the_weights(name: str, k: int) -> None:
    net, x = made(name)
    generator = torch.Generator().manual_seed(5)
    x = up_to(net, k, x)

    def streams(part: Any) -> tuple[Any, Any]:
        value, concave = above(net, k, part(x))
        return value + concave, concave

    bent = 0.0
    with torch.no_grad():
        for at in range(SEGMENTS):
            size, t = 10.0 ** (at % 3 - 1), torch.rand((), generator=generator).item()
            ends = [
                with_weights(net, k, lambda p: p + size * torch.randn(p.shape, generator=generator))  # noqa: B023
                for _ in (0, 1)
            ]
            middle = copy.deepcopy(ends[0])
            for here, p, q in zip(middle.parameters(), ends[0].parameters(), ends[1].parameters(), strict=True):
                here.copy_(t * p + (1 - t) * q)
            for between, p, q in zip(streams(middle), streams(ends[0]), streams(ends[1]), strict=True):
                slack = t * p + (1 - t) * q - between
                assert slack.min().item() >= -1e-11 * (1.0 + p.abs().max().item() + q.abs().max().item())
                bent = max(bent, slack.max().item())
    chooses = any(isinstance(part, nn.ReLU | nn.LeakyReLU | nn.MaxPool2d) for part in list(net)[k + 1 :])
    flat = name == "dense, slope 1.0" or not chooses
    assert (bent < 1e-6) == flat


EACH = [(name, k) for name, (make, _) in NETS.items() for k in range(len(PLCNN(*make())))]


@pytest.mark.parametrize(("name", "k"), EACH)
def test_a_part_gives_what_its_module_does_at_inference_and_its_choices_are_linear(name: str, k: int) -> None:
    net, x = made(name)
    with torch.no_grad():
        x = up_to(net, k, x)
        before, wanted = x.clone(), copy.deepcopy(net[k])(x.clone())
        stored = {key: value.clone() for key, value in net.state_dict().items()}
        part = net.train()[k]
        assert torch.equal(pieces.value_of(part, x), wanted)
        assert torch.equal(x, before)
        assert all(torch.equal(value, stored[key]) for key, value in net.state_dict().items())
        y, z = (torch.randn(x.shape, dtype=x.dtype, generator=torch.Generator().manual_seed(s)) for s in (1, 2))
        chosen = pieces.choices_of(part, x)
        assert (chosen is None) == pieces.is_affine(part)
        assert pieces.is_affine(part) == (not isinstance(part, nn.ReLU | nn.LeakyReLU | nn.MaxPool2d))
        torch.testing.assert_close(pieces.with_choices(part, chosen, x), wanted, rtol=0, atol=1e-13)
        at_zero, at_y, at_z, both = (pieces.with_choices(part, chosen, one) for one in (0 * y, y, z, 2.0 * y - 3.0 * z))
        torch.testing.assert_close(both - at_zero, 2.0 * (at_y - at_zero) - 3.0 * (at_z - at_zero))
        if chosen is not None:
            assert (at_zero == 0.0).all()


def test_positions_of_a_large_image_are_kept_whole() -> None:
    part, x = nn.MaxPool2d(2), torch.zeros(1, 1, 200, 200, dtype=torch.float64)
    x[0, 0, 1::2, 1::2] = torch.rand(100, 100, dtype=torch.float64) + 1.0
    chosen = pieces.choices_of(part, x)
    assert torch.equal(pieces.with_choices(part, chosen, x), part(x))
    assert pieces.choices_of(part, x[..., :100, :100]).dtype == torch.int16


def test_networks_here_have_every_known_part() -> None:
    assert {type(part) for make, _ in NETS.values() for part in PLCNN(*make())} == set(pieces.KNOWN)


def test_a_pool_that_reaches_over_the_edge_sums_what_is_there() -> None:
    part = nn.MaxPool2d(2, ceil_mode=True)
    found = pieces.concave_part(part, torch.zeros(1, 1, 3, 3), torch.arange(9.0).view(1, 1, 3, 3))
    assert found is not None
    assert found.tolist() == [[[[8.0, 7.0], [13.0, 8.0]]]]
