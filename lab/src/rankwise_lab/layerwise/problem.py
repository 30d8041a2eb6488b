"""The problem of one layer: the loss of each block as a convex function of the layer's weights W, others fixed.

There are three kinds, depending on what is above the layer:

    exact   nothing above chooses (the last layer): the block's loss is convex in W as it is
    dc      loss = (loss + Q) − Q with both parts convex, Q = Σ κ·c over negatives + κ·(score + c) over positives, where
            κ bounds the gradient of the loss and c is the score's concave part (pieces.py). Q is linearised at the
            weights W₀ of the step's start: h(W) = loss(W) + Q(W) − Q(W₀) − ⟨∇Q(W₀), W − W₀⟩ ≥ loss(W), equal at W₀
    fixed   the choices of ReLU and max-pooling above stay those at W₀: scores are linear in W, and equal at W₀

W is a matrix (outputs, inputs + 1), the bias in its last column where there is one, in float64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from rankwise_lab.layerwise.block_loss import BlockLoss
from rankwise_lab.layerwise.blocks import Blocks
from rankwise_lab.layerwise.network import PLCNN
from rankwise_lab.layerwise.pieces import choices_of, concave_part, is_affine, value_of, with_choices

DECOMPOSITIONS = ("auto", "dc", "fixed")


class Plane(NamedTuple):
    """A plane below the function of a block that touches it at some W: value (K,) there, and the gradient.

    K is the number of classes if the problem is a sum over classes, each with its own row of W, and 1 otherwise. The
    gradient is in the form in which it is kept (`LayerProblem.expand` returns it as a matrix). inner (K,): its product
    with W.
    """

    value: Tensor
    gradient: Tensor
    inner: Tensor


class LayerProblem:
    """The functions h_b of the weights of the layer at `position`, weighted by the share of each block.

    memory: bytes for the layer's inputs and the choices above it; what does not fit is computed again each time.
    """

    def __init__(
        self,
        net: PLCNN,
        position: int,
        blocks: Blocks,
        loss: BlockLoss,
        *,
        decomposition: str = "auto",
        memory: float = 1e9,
    ) -> None:
        self.net, self.position, self.blocks, self.block_loss = net, position, blocks, loss
        self._part: Any = net[position]
        parts = list(net)
        self._below, self._above = parts[:position], parts[position + 1 :]
        self.kind = self._kind(decomposition)
        # Each row of a last layer is a separate problem.
        self.by_class = not self._above and loss.separable
        self.start = self.matrix(self._part.weight, self._part.bias)
        self._weights_at_start = self._weights(self.start)
        self._inputs: dict[int, Tensor] = {}
        self._chosen: dict[int, list[Tensor | None]] = {}
        self._free = memory
        self._concave: dict[int, Plane] = {}
        self.compressed = self._compresses()

    def _kind(self, decomposition: str) -> str:
        if decomposition not in DECOMPOSITIONS:
            raise ValueError(f"unknown decomposition {decomposition!r}; use one of {', '.join(DECOMPOSITIONS)}")
        if all(is_affine(part) for part in self._above):
            return "exact"
        if decomposition == "auto":
            return "dc" if isinstance(self._part, nn.Linear) else "fixed"
        return decomposition

    @property
    def element_size(self) -> int:
        """Bytes per number of the layer."""
        return int(self._part.weight.element_size())

    # --- weights

    def matrix(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Weights as the matrix W."""
        rows = weight.detach().double().flatten(1)
        return rows.clone() if bias is None else torch.cat([rows, bias.detach().double()[:, None]], 1)

    def _weights(self, W: Tensor) -> tuple[Tensor, Tensor | None]:
        """The weights in the form of the layer."""
        weight, bias = self._part.weight, self._part.bias
        columns = W.shape[1] - (bias is not None)
        found = torch.empty_like(weight).copy_(W[:, :columns].view(weight.shape))  # in the same memory format
        return found, None if bias is None else W[:, columns].to(bias)

    def put(self, W: Tensor) -> None:
        """Set the layer's weights."""
        weight, bias = self._weights(W)
        with torch.no_grad():
            self._part.weight.copy_(weight)
            if bias is not None:
                self._part.bias.copy_(bias)

    def dot(self, A: Tensor, B: Tensor) -> Tensor:
        """⟨A, B⟩ of two matrices, (K,)."""
        return self._by_row((A * B).sum(1))

    def _by_row(self, values: Tensor) -> Tensor:
        """Sum numbers by row of W (or by class) to the K parts of the problem."""
        return values if self.by_class else values.sum(0, keepdim=True)

    # --- forward

    def input(self, b: int) -> Tensor:
        """The input of the layer for block b."""
        if b in self._inputs:
            return self._inputs[b]
        with torch.no_grad():
            value = self.blocks.images(b)
            for part in self._below:
                value = value_of(part, value)
        if self._fits(value):
            self._inputs[b] = value
        return value

    def _output(self, value: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if isinstance(self._part, nn.Linear):
            return functional.linear(value, weight, bias)
        found: Tensor = self._part._conv_forward(value, weight, bias)
        return found

    def _choices(self, b: int) -> list[Tensor | None]:
        """The choices of the parts above at the weights of the start."""
        if b in self._chosen:
            return self._chosen[b]
        found = []
        with torch.no_grad():
            at = self._output(self.input(b), *self._weights_at_start)
            for part in self._above:
                found.append(choices_of(part, at))
                at = value_of(part, at)
        if self._fits(*(one for one in found if one is not None)):
            self._chosen[b] = found
        return found

    def _fits(self, *tensors: Tensor) -> bool:
        """Whether there is memory to keep tensors; if so, it counts as used."""
        size = sum(one.numel() * one.element_size() for one in tensors)
        if size > self._free:
            return False
        self._free -= size
        return True

    def _streams(self, output: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Scores, and Q."""
        concave: Tensor | None = None
        for part in self._above:
            concave = concave_part(part, output, concave)
            output = value_of(part, output)
        bounds = self.block_loss.bounds(labels).to(output)
        relevant = labels[:, None] == torch.arange(self.block_loss.n_classes, device=labels.device)
        lifted = torch.where(relevant, output, torch.zeros_like(output))
        return output, (bounds * (lifted if concave is None else lifted + concave)).sum(dtype=torch.float64)

    def _scores(self, b: int, output: Tensor) -> Tensor:
        """Scores of block b from the layer's output, with fixed choices if the kind is "fixed"."""
        if self.kind == "fixed":
            for part, chosen in zip(self._above, self._choices(b), strict=True):
                output = with_choices(part, chosen, output)
            return output
        return self._true_scores(output)

    def _true_scores(self, output: Tensor) -> Tensor:
        for part in self._above:
            output = value_of(part, output)
        return output

    # --- the block's function

    def value(self, b: int, W: Tensor) -> Tensor:
        """h_b(W), (K,)."""
        with torch.no_grad():
            inputs, labels = self.input(b), self.blocks.labels(b)
            output = self._output(inputs, *self._weights(W))
            if self.kind != "dc":
                return self.blocks.share(b) * self._by_row(self.block_loss.solve(self._scores(b, output), labels)[0])
            scores, lifted = self._streams(output, labels)
            found = self.block_loss.solve(scores, labels)[0].sum() + lifted.cpu()
        return self.blocks.share(b) * (found - self._linearised(b, W)).view(1)

    def loss_of(self, b: int, W: Tensor) -> float:
        """The true loss of the block at W, for any decomposition, times its share."""
        with torch.no_grad():
            scores = self._true_scores(self._output(self.input(b), *self._weights(W)))
            return self.blocks.share(b) * float(self.block_loss.solve(scores, self.blocks.labels(b))[0].sum())

    def loss(self, W: Tensor) -> float:
        """The true risk at W."""
        return sum(self.loss_of(b, W) for b in range(len(self.blocks)))

    def plane(self, b: int, W: Tensor) -> Plane:
        """A plane that touches h_b at W and is nowhere above it."""
        share, inputs, labels = self.blocks.share(b), self.input(b), self.blocks.labels(b)
        leaves, output = self._leaves(inputs, W)
        with torch.enable_grad():
            if self.kind == "dc":
                scores, lifted = self._streams(output, labels)
                values, slope = self.block_loss.solve(scores, labels)
                value = (values.sum() + lifted.detach().cpu()).view(1)
                gradient = self._gradient((scores * slope).sum() + lifted, leaves)
                concave = self._concave_plane(b)
                value = value - self._linearised(b, W)
                gradient = gradient - concave.gradient
            else:
                scores = self._scores(b, output)
                values, slope = self.block_loss.solve(scores, labels)
                value = self._by_row(values)
                gradient = self._gradient((scores * slope).sum(), leaves)
        gradient = share * gradient
        return Plane(share * value, gradient, self._inner(gradient, output, W))

    def _leaves(self, inputs: Tensor, W: Tensor) -> tuple[list[Tensor], Tensor]:
        """The variables of the gradient, and the layer's output, which is the variable if gradients are compressed."""
        weight, bias = self._weights(W)
        if self.compressed:
            with torch.no_grad():
                output = self._output(inputs, weight, bias)
            output.requires_grad_()
            return [output], output
        leaves = [one.requires_grad_() for one in (weight, bias) if one is not None]
        with torch.enable_grad():
            return leaves, self._output(inputs, weight, bias)

    def _gradient(self, of: Tensor, leaves: list[Tensor]) -> Tensor:
        found = torch.autograd.grad(of, leaves)
        if len(leaves) == 1 and leaves[0].shape != self._part.weight.shape:
            return found[0]
        return torch.cat([found[0].flatten(1), *(one[:, None] for one in found[1:])], 1)

    def _compresses(self) -> bool:
        """Whether gradients are kept by sample and output instead of by input and output.

        A dense layer's gradient is (its inputs)ᵀ·(the outputs' gradient): the latter is smaller if a block has fewer
        samples than the layer has inputs.
        """
        largest = max(self.blocks.size(b) for b in range(len(self.blocks)))
        return isinstance(self._part, nn.Linear) and largest < self.start.shape[1] and self.input(0).dim() == 2

    def expand(self, b: int, gradient: Tensor) -> Tensor:
        """A gradient of block b as a matrix like W, in float64."""
        if not self.compressed:
            return gradient.double()
        found = gradient.T @ self.input(b)
        if self._part.bias is None:
            return found.double()
        return torch.cat([found.double(), gradient.sum(0, dtype=torch.float64)[:, None]], 1)

    def _inner(self, gradient: Tensor, output: Tensor, W: Tensor) -> Tensor:
        """⟨gradient, W⟩, (K,)."""
        if not self.compressed:
            return self.dot(gradient.double(), W).cpu()
        columns = (gradient.double() * output.detach().double()).sum(0)
        return self._by_row(columns).cpu()

    # --- Q at the start's weights

    def _concave_plane(self, b: int) -> Plane:
        if b not in self._concave:
            leaves, output = self._leaves(self.input(b), self.start)
            with torch.enable_grad():
                _, lifted = self._streams(output, self.blocks.labels(b))
                gradient = self._gradient(lifted, leaves)
            inner = self._inner(gradient, output, self.start)
            self._concave[b] = Plane(lifted.detach().cpu().view(1), gradient, inner)
        return self._concave[b]

    def _linearised(self, b: int, W: Tensor) -> float:
        """Q(W₀) + ⟨∇Q(W₀), W − W₀⟩."""
        plane = self._concave_plane(b)
        at = self.dot(self.expand(b, plane.gradient), W).cpu()
        return float(plane.value + at - plane.inner)
