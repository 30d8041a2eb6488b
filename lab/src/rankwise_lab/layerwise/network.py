"""Piecewise-linear networks with a linear SVM as their last layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankwise.arguments import is_whole
from rankwise.io import ModelFile, ModelFileError, fingerprint, read_model, write_model
from rankwise.io.quoting import message_of, shown
from rankwise_lab.layerwise.pieces import KNOWN, WEIGHTED, flatten

_KIND = "plcnn"
_TYPES = {one.__name__: one for one in KNOWN}
# The constructor arguments of each part.
_OPTIONS: dict[str, tuple[str, ...]] = {
    "Conv2d": (
        "in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "bias", "padding_mode",
    ),
    "Linear": ("in_features", "out_features", "bias"),
    "LeakyReLU": ("negative_slope",),
    "MaxPool2d": ("kernel_size", "stride", "padding", "ceil_mode"),
    "AvgPool2d": ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"),
    "AdaptiveAvgPool2d": ("output_size",),
    "BatchNorm1d": ("num_features", "eps", "momentum", "affine"),
    "BatchNorm2d": ("num_features", "eps", "momentum", "affine"),
    "Flatten": ("start_dim", "end_dim"),
    "Dropout": ("p",),
    "Dropout1d": ("p",),
    "Dropout2d": ("p",),
}  # fmt: skip


class PLCNN(nn.Sequential):
    """
    Network of piecewise-linear parts that ends in a Linear layer, for `LWSVM`.

    The outputs of the last layer are the scores of the classes. Modules that LW-SVM cannot train raise a TypeError that
    names them.

    Parameters
    ----------
    *modules : nn.Module
        Parts of the network, in order, or a single nn.Sequential, whose modules are shared and not copied.

    Raises
    ------
    TypeError
        If a part is not piecewise linear, or the last part is not a Linear layer.
    ValueError
        If two parts share weights.

    See Also
    --------
    LWSVM : Trains the network layer by layer.

    Examples
    --------
    >>> from torch import nn
    >>> from rankwise_lab.layerwise import PLCNN
    >>> net = PLCNN(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> net.trainable, net.n_classes
    ([1, 3], 3)
    >>> PLCNN(nn.Linear(16, 8), nn.Sigmoid(), nn.Linear(8, 3))
    Traceback (most recent call last):
    TypeError: part 1 (Sigmoid) is not a piecewise-linear part that LW-SVM supports; use one of ...
    """

    def __init__(self, *modules: nn.Module) -> None:
        for module in modules:
            if not isinstance(module, nn.Module):
                raise TypeError(f"the parts of a network must be modules, got {type(module).__name__}")
        inner = modules[0] if len(modules) == 1 and isinstance(modules[0], nn.Sequential) else modules
        parts = flatten(inner)
        if not parts or not isinstance(parts[-1], nn.Linear):
            last = type(parts[-1]).__name__ if parts else "nothing"
            raise TypeError(f"the last part must be a Linear layer with the scores of the classes, got {last}")
        _refuse_shared(parts)
        super().__init__(*parts)

    @classmethod
    def cifar10(cls, width: int = 64, *, n_classes: int = 10, in_channels: int = 3, batch_norm: bool = True) -> PLCNN:
        """
        Build the network of section 4.3 of the paper, for images of 32 × 32 pixels.

        It has 6 convolutions and an SVM: width, width, pool, 2·width, 2·width, pool, 4·width, 4·width, pool. Each
        convolution is 3 × 3, followed by batch normalisation and ReLU.

        Parameters
        ----------
        width : int, default 64
            Number of filters of the first two convolutions.
        n_classes : int, default 10
            Number of classes.
        in_channels : int, default 3
            Number of channels of an image.
        batch_norm : bool, default True
            Whether convolutions are followed by batch normalisation.

        Returns
        -------
        PLCNN
            The network, with random weights.
        """
        for name, value in (("width", width), ("n_classes", n_classes), ("in_channels", in_channels)):
            if not is_whole(value) or value < 1:
                raise ValueError(f"{name} must be a whole number, at least 1, got {value!r}")
        parts: list[nn.Module] = []
        channels = in_channels
        for filters in (width, 2 * width, 4 * width):
            for _ in range(2):
                parts.append(nn.Conv2d(channels, filters, 3, padding=1))
                parts += [nn.BatchNorm2d(filters)] if batch_norm else []
                parts.append(nn.ReLU())
                channels = filters
            parts.append(nn.MaxPool2d(2))
        net = cls(*parts, nn.Flatten(), nn.Linear(16 * channels, n_classes))
        return _in_channels_last(net)  # half the time on a CPU

    def __getitem__(self, which: Any) -> Any:
        """A part, or a Sequential of several parts, which need not end in a Linear layer."""
        return nn.Sequential(*list(self)[which]) if isinstance(which, slice) else super().__getitem__(which)

    @property
    def trainable(self) -> list[int]:
        """Positions of the parts that LW-SVM trains: convolutions and dense layers."""
        return [k for k, part in enumerate(self) if isinstance(part, WEIGHTED)]

    @property
    def n_classes(self) -> int:
        """Number of classes, which is the number of scores."""
        last = self[len(self) - 1]
        assert isinstance(last, nn.Linear)
        return last.out_features

    def regulariser(self) -> Tensor:
        """
        Compute Σ ‖W‖² + ‖b‖² over the convolutions and dense layers.

        Returns
        -------
        Tensor
            The sum as a scalar tensor, for autograd.
        """
        squares = [parameter.square().sum() for k in self.trainable for parameter in self[k].parameters(recurse=False)]
        return torch.stack(squares).sum()

    def save(self, path: str | Path) -> None:
        """
        Write the network to a file, atomically.

        The file holds the parts and their numbers, and nothing that can be executed.

        Parameters
        ----------
        path : str or Path
            File to write.
        """
        parts = [{"type": type(part).__name__, "options": _options(part)} for part in self]
        arrays = {name: value.detach().cpu().numpy() for name, value in self.state_dict().items()}
        write_model(path, _KIND, {"parts": parts, "channels_last": _channels_last(self)}, arrays)

    @classmethod
    def load(cls, path: str | Path) -> PLCNN:
        """
        Read a network that `save` wrote.

        Parameters
        ----------
        path : str or Path
            File to read.

        Returns
        -------
        PLCNN
            The network, in inference mode.

        Raises
        ------
        ModelFileError
            If the file is not a network, or is damaged.
        """
        return cls.from_file(read_model(path), path)

    @classmethod
    def from_file(cls, file: ModelFile, path: str | Path) -> PLCNN:
        """
        Build the network of a model file that has been read.

        Parameters
        ----------
        file : ModelFile
            Content of the file.
        path : str or Path
            Name of the file, for errors.

        Returns
        -------
        PLCNN
            The network, in inference mode.

        Raises
        ------
        ModelFileError
            If the file is not a network, or is damaged.
        """
        if file.kind != _KIND:
            raise ModelFileError(f"{path} holds a model of kind {shown(file.kind)}, not a network; use rankwise.load")
        try:
            with torch.device("meta"):  # takes no more memory than the arrays of the file
                net = cls(*(_made(part["type"], part["options"]) for part in file.header["parts"]))
            state = {name: torch.from_numpy(np.array(array)) for name, array in file.arrays.items()}
            net.load_state_dict(state, assign=True)
            if file.header["channels_last"] is True:
                _in_channels_last(net)
        except (
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            ArithmeticError,
            RuntimeError,
            AssertionError,
        ) as error:
            raise ModelFileError(
                f"{path}: damaged ({message_of(error)}); copy it again, or train the network again"
            ) from None
        return net.eval()


def place_of(net: PLCNN) -> tuple[torch.dtype, torch.device]:
    """The dtype and device that all weights of a network share."""
    if not any(net[k].weight.requires_grad for k in net.trainable):
        raise ValueError(
            "no weights of the network require gradients, so there is nothing to train; call requires_grad_() on "
            "a layer"
        )
    for k in net.trainable:
        if len({one.requires_grad for one in net[k].parameters()}) > 1:
            raise ValueError(
                f"in part {k} only one of weight and bias requires gradients; set requires_grad alike for both"
            )
    found = {(part.dtype, part.device) for part in net.parameters()}
    if len(found) > 1:
        raise ValueError(f"the weights have several dtypes or devices, {found}; call net.to(device, dtype) first")
    dtype, device = found.pop()
    if dtype not in (torch.float32, torch.float64):
        raise TypeError(f"the weights are {dtype}; convert them to float32 or float64, for example with net.float()")
    return dtype, device


def network_identity(net: PLCNN, dtype: torch.dtype) -> str:
    """A network by its parts and which of them are trained, not by its weights."""
    parts = [str(dtype), *(f"{part!r} {[one.requires_grad for one in part.parameters()]}" for part in net)]
    return fingerprint({"parts": parts}, [])


def _refuse_shared(parts: list[nn.Module]) -> None:
    owners: dict[int, int] = {}
    for k, part in enumerate(parts):
        for parameter in part.parameters():
            first = owners.setdefault(id(parameter), k)
            if first != k:
                raise ValueError(
                    f"parts {first} and {k} share weights, but layers are trained one by one; give each its own weights"
                )


def _in_channels_last(net: PLCNN) -> PLCNN:
    untyped: Any = net  # the type stubs do not have memory formats
    untyped.to(memory_format=torch.channels_last)
    return net


def _channels_last(net: nn.Module) -> bool:
    kernels = [value for value in net.parameters() if value.dim() == 4]
    return any(one.is_contiguous(memory_format=torch.channels_last) and not one.is_contiguous() for one in kernels)


def _made(name: str, options: dict[str, Any]) -> nn.Module:
    """The part with that name; options are numbers, strings, None, or lists of numbers, which were tuples."""
    plain = (bool, int, float, str, type(None))
    for key, value in options.items():
        if not all(isinstance(one, plain) for one in (value if isinstance(value, list) else [value])):
            raise ValueError(f"{key} of a {name}")
    return _TYPES[name](**{key: tuple(value) if isinstance(value, list) else value for key, value in options.items()})


def _options(part: nn.Module) -> dict[str, Any]:
    found = {}
    for name in _OPTIONS.get(type(part).__name__, ()):
        value = getattr(part, name)
        found[name] = value is not None if name == "bias" else list(value) if isinstance(value, tuple) else value
    return found
