"""Parts of piecewise-linear networks: their values and the linear pieces they choose."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")

from layer_networks import NETS, made, up_to  # noqa: E402
from rankwise_lab.layerwise import pieces  # noqa: E402
from rankwise_lab.layerwise.network import PLCNN  # noqa: E402
from torch import nn  # noqa: E402

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
