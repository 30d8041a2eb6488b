"""The loss of a block, from scores (B, C) of its samples for all classes, with its gradient and a bound on that.

Each class is a query that ranks the samples of the block; those with its label are the positives. The loss of the block
is the mean over classes. A class with no positives or no negatives in the block counts as 0. Besides the rank losses
there is the multi-class hinge, (1/B) Σ max_y (scale·[y ≠ label] + s_y − s_label).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankwise import Hinge, Loss
from rankwise.arguments import NotFiniteError, as_scale
from rankwise.io import fingerprint
from rankwise.metrics import LossLike, as_loss
from rankwise.queries import Queries, as_queries
from rankwise.torch.functional import structured_hinge

HINGE = "hinge"
# From this number of scores in a block on, several threads are faster than one.
_WORTH_THREADS = 100_000


class BlockLoss:
    """Loss of a block of samples, from scores (B, C), with its gradient; it counts its calls and their seconds.

    loss: of a ranking, or "hinge" for the multi-class hinge. scale: weight of the loss against the scores. method: how
    the most violating ranking is found, as in `rankwise.RankSVM`.

    >>> values, gradient = BlockLoss("hinge", 2).solve(torch.tensor([[1.0, 0.5], [0.0, 2.0]]), torch.tensor([0, 1]))
    >>> values.tolist(), gradient.tolist()
    ([0.25], [[-0.5, 0.5], [0.0, 0.0]])
    """

    def __init__(self, loss: LossLike, n_classes: int, *, scale: float = 1.0, method: str = "auto") -> None:
        self.n_classes, self.scale = n_classes, as_scale(scale)
        self._loss: Loss | None = None if isinstance(loss, str) and loss == HINGE else as_loss(loss)
        self._surrogate = Hinge(scale)
        if self._loss is None:
            if method != "auto":
                raise ValueError(
                    f"method={method!r} is for rank losses only; use method='auto' with the multi-class hinge"
                )
            if n_classes < 2:
                raise ValueError(f"the multi-class hinge needs at least 2 classes, got {n_classes}")
        else:
            self._surrogate = Hinge(scale, method)
            self._surrogate.accepts(self._loss)
        self.calls, self.seconds = 0, 0.0

    @property
    def name(self) -> str:
        """Name of the rank loss, or "hinge" for the multi-class hinge."""
        return HINGE if self._loss is None else self._loss.name

    @property
    def separable(self) -> bool:
        """Whether the loss is a sum over classes."""
        return self._loss is not None

    def solve(self, scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The terms of the loss, (C,) or (1,), in float64, and its gradient (B, C) in the scores (B, C); labels (B,).

        The terms sum to the loss of the block: one per class, or a single one for the multi-class hinge.
        """
        began = time.perf_counter()
        scores = scores.detach()
        if self._loss is None:
            values, gradient = _multi_class(scores, labels, self.scale)
        elif scores.device.type != "cpu":
            values, gradient = self._on_device(scores, labels, self._loss)
        else:
            flat = np.ascontiguousarray(scores.T.numpy()).reshape(-1)
            threads = torch.get_num_threads() if flat.size >= _WORTH_THREADS else 1
            try:
                solved = self._surrogate.solve(flat, self._queries(labels), self._loss, threads)
            except NotFiniteError:
                why = "scores are not finite because the weights have grown too large; raise lam or mu"
                raise FloatingPointError(why) from None
            values = torch.from_numpy(solved.value / self.n_classes)
            gradient = torch.from_numpy(solved.gradient.reshape(self.n_classes, -1)).T / self.n_classes
        self.seconds += time.perf_counter() - began
        self.calls += 1
        return values, gradient

    def _queries(self, labels: Tensor) -> Queries:
        """One query per class, which ranks the samples."""
        relevant = self._relevant(labels).T.reshape(-1).numpy()
        return as_queries(relevant, np.arange(self.n_classes + 1) * labels.shape[0])

    def _on_device(self, scores: Tensor, labels: Tensor, loss: Loss) -> tuple[Tensor, Tensor]:
        if self._surrogate.method != "auto":
            raise ValueError(
                f"method={self._surrogate.method!r} runs on the CPU only; use method='auto' on {scores.device}"
            )
        leaf = scores.clone().requires_grad_()
        with torch.enable_grad():
            values = structured_hinge(leaf, self._relevant(labels), loss, dim=0, scale=self.scale, reduction="none")
            (gradient,) = torch.autograd.grad(values.sum() / self.n_classes, leaf)
        return values.detach().double().cpu() / self.n_classes, gradient

    def as_function(self, scores: Tensor, labels: Tensor) -> Tensor:
        """The loss of a block as a scalar tensor, for autograd."""
        values, gradient = self.solve(scores, labels)
        found: Tensor = _WithGradient.apply(scores, values.sum().to(scores), gradient)
        return found

    def bounds(self, labels: Tensor) -> Tensor:
        """Bounds (B, C) on the size of every entry of the gradient, float64.

        2/P for a positive and 2/N for a negative of a ranking, and 1 for a sample of the hinges, each divided by the
        number of terms in the mean. Gradients of positives are at most 0 and those of negatives at least 0.
        """
        count, classes = labels.shape[0], self.n_classes
        if self._loss is None:
            return torch.full((count, classes), 1.0 / count, dtype=torch.float64, device=labels.device)
        relevant = self._relevant(labels)
        positives = relevant.sum(0, dtype=torch.float64)
        negatives = count - positives
        filled = (positives > 0) & (negatives > 0)
        if self._loss.judges_labels:
            return (filled.double() / (count * classes)).expand(count, classes)
        each = torch.where(relevant, 2.0 / positives.clamp(min=1), 2.0 / negatives.clamp(min=1))
        return each * filled / classes

    def _relevant(self, labels: Tensor) -> Tensor:
        return labels[:, None] == torch.arange(self.n_classes, device=labels.device)


def _multi_class(scores: Tensor, labels: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    rows = torch.arange(labels.shape[0], device=labels.device)
    violated = scores + scale
    violated[rows, labels] -= scale
    worst = violated.argmax(1)
    value = (violated[rows, worst].double() - scores[rows, labels].double()).mean()
    gradient = torch.zeros_like(scores)
    gradient[rows, worst] += 1.0 / labels.shape[0]
    gradient[rows, labels] -= 1.0 / labels.shape[0]
    return value.view(1).cpu(), gradient


def loss_identity(loss: LossLike, n_classes: int) -> str:
    """A loss by its name and its values for some scores, which identify it however it is defined."""
    rng = np.random.default_rng(0)
    labels = torch.from_numpy(rng.integers(n_classes, size=50))
    solver = BlockLoss(loss, n_classes)
    found = [solver.solve(torch.from_numpy(size * rng.normal(size=(50, n_classes))), labels) for size in (0.1, 1)]
    return f"{solver.name} {fingerprint({}, [part.numpy() for pair in found for part in pair])}"


class _WithGradient(torch.autograd.Function):
    """A value whose gradient in the scores is known."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
        ctx.save_for_backward(gradient)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (gradient,) = ctx.saved_tensors
        return grads[0] * gradient, None, None
