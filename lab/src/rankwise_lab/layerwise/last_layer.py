"""The last layer alone: a linear model of all classes for any loss of blocks, by block-coordinate Frank–Wolfe."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rankwise.arguments import check_positive, is_whole
from rankwise.metrics import LossLike
from rankwise_lab.layerwise.block_loss import BlockLoss
from rankwise_lab.layerwise.blocks import Blocks
from rankwise_lab.layerwise.frank_wolfe import LayerSolver
from rankwise_lab.layerwise.network import PLCNN
from rankwise_lab.layerwise.problem import LayerProblem


class LastLayer(NamedTuple):
    """
    Linear model of all classes, the result of `fit_last_layer`.

    Parameters
    ----------
    weight : ndarray of shape (C, d)
        Weights, one row per class.
    bias : ndarray of shape (C,)
        Bias of each class.
    objective : float
        Objective that was reached.
    dual : float
        Lower bound on the smallest possible objective.
    epochs : int
        Number of times each block was visited.
    converged : bool
        Whether the gap is within the tolerance.

    See Also
    --------
    fit_last_layer : Returns this model.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise_lab.layerwise import LastLayer
    >>> model = LastLayer(np.eye(2), np.zeros(2), objective=1.0, dual=0.75, epochs=3, converged=False)
    >>> model.gap, model.decision_function([[2.0, 1.0]]).tolist()
    (0.25, [[2.0, 1.0]])
    """

    weight: NDArray[np.float64]
    bias: NDArray[np.float64]
    objective: float
    dual: float
    epochs: int
    converged: bool

    @property
    def gap(self) -> float:
        """Relative gap, (objective − dual)/objective."""
        return (self.objective - self.dual) / max(self.objective, 1e-300)

    def decision_function(self, features: Any) -> NDArray[np.float64]:
        """
        Compute the scores of all classes.

        Parameters
        ----------
        features : array-like of shape (n, d)
            Features, one row per sample.

        Returns
        -------
        ndarray of shape (n, C)
            Scores, one column per class.
        """
        scores: NDArray[np.float64] = np.asarray(features, np.float64) @ self.weight.T + self.bias
        return scores


def fit_last_layer(
    features: Any,
    labels: Any,
    loss: LossLike = "ap",
    *,
    lam: float = 1e-3,
    scale: float = 1.0,
    block_size: int | None = 200,
    tol: float = 1e-3,
    max_epochs: int = 1000,
    method: str = "auto",
    seed: int = 0,
) -> LastLayer:
    """
    Fit a linear model of all classes to a loss of blocks, until the relative gap is at most tol.

        minimise (lam/2)(‖W‖² + ‖b‖²) + Σ_b (n_b/n)·loss of block b

    The samples are divided into blocks at random. In each block every class is a query that ranks the samples; those
    with its label are the positives.

    Parameters
    ----------
    features : array-like or Tensor of shape (n, d)
        Features, one row per sample, such as the input of the last layer of a network.
    labels : array-like or Tensor of shape (n,)
        Integer class of each sample, from 0 to C − 1.
    loss : str or Loss, default "ap"
        Any rank loss ("ap", "ndcg", "mrr", "auc", "zero-one" or a `rankwise.Loss`), or "hinge" for the multi-class
        hinge.
    lam : float, default 1e-3
        Weight of the squared norm, positive.
    scale : float, default 1.0
        Weight of the loss against the scores in the hinge.
    block_size : int or None, default 200
        Number of samples in a block. None ranks all samples in one block, with which the method is slow;
        `rankwise.RankSVM` is made for that case.
    tol : float, default 1e-3
        Largest relative gap between the objective and its lower bound.
    max_epochs : int, default 1000
        Largest number of visits to each block.
    method : str, default "auto"
        How the most violating ranking is found, as in `rankwise.RankSVM`.
    seed : int, default 0
        Seed for the blocks and their order.

    Returns
    -------
    LastLayer
        The linear model, its objective and the lower bound.

    Raises
    ------
    ValueError
        If a shape or a value is wrong, or a feature is not finite.
    TypeError
        If features are not numbers.

    See Also
    --------
    LWSVM : Trains all layers of a network.
    rankwise.RankSVM : Ranks all samples of a query at once.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise_lab.layerwise import fit_last_layer
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(60) % 3
    >>> features = rng.normal(size=(60, 4)) + np.eye(3, 4)[labels]
    >>> found = fit_last_layer(features, labels, "ap", lam=0.1, block_size=20)
    >>> found.weight.shape, found.gap <= 1e-3
    ((3, 4), True)
    """
    check_positive(lam=lam, tol=tol)
    if not is_whole(max_epochs) or max_epochs < 0:
        raise ValueError(f"max_epochs must be an integer, at least 0, got {max_epochs!r}")
    array = features.detach().double() if isinstance(features, Tensor) else torch.from_numpy(_as_floats(features))
    if array.dim() != 2:
        raise ValueError(f"features must be (n, d), got shape {tuple(array.shape)}")
    wrong = ~array.isfinite().all(dim=1)
    if bool(wrong.any()):
        raise ValueError(f"features: row {int(wrong.int().argmax())} contains NaN or infinity; remove or correct it")
    n_classes = _count_classes(labels, len(array))
    where: dict[str, Any] = {"dtype": torch.float64, "device": array.device}
    size = max(len(array), 1) if block_size is None else block_size
    blocks = Blocks(array, labels, n_classes, name="features", block_size=size, seed=seed, **where)
    net = PLCNN(nn.utils.skip_init(nn.Linear, array.shape[1], n_classes, **where))
    for parameter in net.parameters():
        nn.init.zeros_(parameter)
    problem = LayerProblem(net, 0, blocks, BlockLoss(loss, n_classes, scale=scale, method=method))
    solver = LayerSolver(problem, lam, 0.0)
    least, best, epoch = solver.primal(), solver.weights, 0
    rng = np.random.default_rng([seed, 1])
    while least - solver.dual > tol * least and epoch < max_epochs:
        solver.epoch(rng.permutation(len(blocks)).tolist())
        epoch += 1
        for W in (solver.weights, solver.average):
            value = solver.primal(W)
            if value < least:
                least, best = value, W.clone()
    found = best.cpu().numpy()
    dual = solver.dual
    return LastLayer(found[:, :-1], found[:, -1], least, dual, epoch, least - dual <= tol * least)


def _as_floats(features: Any) -> NDArray[Any]:
    array = np.asarray(features)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"features must be numbers, got dtype {array.dtype}")
    return array.astype(np.float64)


def _count_classes(labels: Any, n: int) -> int:
    array = labels.detach().cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise ValueError(f"labels must be integers (n,), at least one; got dtype {array.dtype}, shape {array.shape}")
    largest = int(array.max())
    if largest >= max(n, 1):
        raise ValueError(
            f"labels go up to {largest} for {n} samples; number the classes from 0, for example with np.unique"
        )
    return max(largest + 1, 1)
