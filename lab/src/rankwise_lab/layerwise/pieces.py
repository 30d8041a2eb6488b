"""The parts of piecewise-linear networks, and what LW-SVM needs to know about each.

With all other layers fixed, everything above a layer is a difference of convex functions of its weights W,
value = a − c. In addition to the value itself, the concave part c is passed from part to part:

    W x + b above   c' = |V|·c + V⁻·value    (V = V⁺ − V⁻: positive weights keep the order, negative ones swap a and c)
    ReLU            c' = c                   since max(a − c, 0) = max(a, c) − c
    max-pooling     c' = Σ of c in a window  since max_k (a_k − c_k) = max_k (a_k + Σ_{j≠k} c_j) − Σ_j c_j

Both c and value + c are then convex in W. The alternative, for convolutions, is to keep the choices of ReLU and
max-pooling as they were at the start of a step, which makes the scores linear in W.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

WEIGHTED = (nn.Conv2d, nn.Linear)
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)
_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d)
_AVERAGES = (nn.AvgPool2d, nn.AdaptiveAvgPool2d)
_PASSED = (nn.Flatten, nn.Identity, *_DROPOUTS)
_CHOOSING = (nn.ReLU, nn.LeakyReLU, nn.MaxPool2d)
KNOWN: tuple[type[nn.Module], ...] = (*WEIGHTED, *_CHOOSING, *_AVERAGES, *_BATCH_NORMS, *_PASSED)


def flatten(modules: Iterable[nn.Module], where: str = "part") -> list[nn.Module]:
    """The parts in order, with those of a nested Sequential in its place; raises for parts that are not supported."""
    found: list[nn.Module] = []
    for k, module in enumerate(modules):
        place = f"{where} {k}"
        if isinstance(module, nn.Sequential):
            found += flatten(module, f"{place}, part")
            continue
        name = type(module).__name__
        if type(module) not in KNOWN:
            known = ", ".join(one.__name__ for one in KNOWN)
            raise TypeError(f"{place} ({name}) is not a piecewise-linear part that LW-SVM supports; use one of {known}")
        if isinstance(module, nn.MaxPool2d) and (_pair(module.dilation) != (1, 1) or module.return_indices):
            raise TypeError(f"{place} ({name}) has dilation or return_indices; use max-pooling without them")
        if isinstance(module, nn.AvgPool2d) and (module.divisor_override or 1) < 0:
            raise TypeError(f"{place} ({name}) divides by {module.divisor_override}; use a positive divisor")
        if isinstance(module, _BATCH_NORMS) and module.running_mean is None:
            raise TypeError(f"{place} ({name}) keeps no statistics; use track_running_stats=True")
        found.append(module)
    return found


def _pair(value: int | tuple[int, ...]) -> tuple[int, ...]:
    return (value, value) if isinstance(value, int) else tuple(value)


def is_affine(part: nn.Module) -> bool:
    """Whether a part chooses nothing: no ReLU, no max-pooling."""
    return not isinstance(part, _CHOOSING)


def value_of(part: nn.Module, value: Tensor) -> Tensor:
    """The output of the part at inference; the input is never overwritten."""
    if isinstance(part, nn.ReLU):
        return functional.relu(value)
    if isinstance(part, nn.LeakyReLU):
        return functional.leaky_relu(value, part.negative_slope)
    if isinstance(part, _DROPOUTS):
        return value
    if isinstance(part, _BATCH_NORMS):
        return functional.batch_norm(
            value, part.running_mean, part.running_var, part.weight, part.bias, training=False, eps=part.eps
        )
    found: Tensor = part(value)
    return found


def choices_of(part: nn.Module, at: Tensor) -> Tensor | None:
    """The choices of a part for the input `at`: at > 0 for ReLU, positions in the image for max-pooling."""
    if isinstance(part, (nn.ReLU, nn.LeakyReLU)):
        return at > 0.0
    if isinstance(part, nn.MaxPool2d):
        _, chosen = functional.max_pool2d(
            at, part.kernel_size, part.stride, part.padding, ceil_mode=part.ceil_mode, return_indices=True
        )
        small = at.shape[-1] * at.shape[-2] <= torch.iinfo(torch.int16).max
        return chosen.to(torch.int16 if small else torch.int32)
    return None


def with_choices(part: nn.Module, chosen: Tensor | None, value: Tensor) -> Tensor:
    """Apply the linear piece of a part that has these choices to value."""
    if chosen is None:
        return value_of(part, value)
    if isinstance(part, nn.LeakyReLU):
        return torch.where(chosen, value, part.negative_slope * value)
    if isinstance(part, nn.ReLU):
        return value * chosen
    return value.flatten(-2).gather(-1, chosen.flatten(-2).long()).view(chosen.shape)


def concave_part(part: nn.Module, value: Tensor, concave: Tensor | None) -> Tensor | None:
    """c' of the output of the part, from the value and c of its input; None is 0."""
    if isinstance(part, WEIGHTED):
        below = _weighed(part, value, (-part.weight).clamp(min=0.0))
        return below if concave is None else below + _weighed(part, concave, part.weight.abs())
    if isinstance(part, _BATCH_NORMS):
        factor = _factor(part, value)
        below = value * (-factor).clamp(min=0.0)
        return below if concave is None else below + concave * factor.abs()
    if isinstance(part, nn.LeakyReLU):
        return _concave_of_leaky(part.negative_slope, value, concave)
    if concave is None or isinstance(part, nn.ReLU):
        return concave
    if isinstance(part, nn.MaxPool2d):
        return functional.avg_pool2d(
            concave, part.kernel_size, part.stride, part.padding, ceil_mode=part.ceil_mode, divisor_override=1
        )
    return value_of(part, concave)


def _weighed(part: Any, value: Tensor, weight: Tensor) -> Tensor:
    if isinstance(part, nn.Linear):
        return functional.linear(value, weight)
    found: Tensor = part._conv_forward(value, weight, None)  # as Conv2d calls it, for any padding
    return found


def _factor(part: Any, value: Tensor) -> Tensor:
    """γ/σ of a batch normalisation, shaped to multiply its input."""
    factor = torch.rsqrt(part.running_var + part.eps)
    if part.affine:
        factor = factor * part.weight
    return factor.view(1, -1, *[1] * (value.dim() - 2))


def _concave_of_leaky(slope: float, value: Tensor, concave: Tensor | None) -> Tensor | None:
    """c' for slope·x below 0; its maximum of two convex parts is that of ReLU for slope 0."""
    zero: Tensor | float = 0.0 if concave is None else concave
    if slope > 1.0:  # a minimum: the convex part is (1 + slope)·a
        return (1.0 + slope) * (value + zero) - functional.leaky_relu(value, slope)
    if slope < 0.0:
        return -slope * (value + zero) + zero
    return None if concave is None else (1.0 + slope) * concave
