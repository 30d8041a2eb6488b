"""LWSVM: layer-wise training of a piecewise-linear network with a rank loss, without a learning rate."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from rankwise.arguments import check_whole, is_number
from rankwise.metrics import LossLike
from rankwise.progress import Progress
from rankwise_lab.layerwise.block_loss import BlockLoss, loss_identity
from rankwise_lab.layerwise.blocks import Blocks, as_images
from rankwise_lab.layerwise.checkpoint import INITIAL, Checkpoint, weights_digest
from rankwise_lab.layerwise.evaluation import Score, as_score, check_output, score_name, scores_of
from rankwise_lab.layerwise.log import STAGES, Log, Row
from rankwise_lab.layerwise.network import PLCNN, network_identity, place_of
from rankwise_lab.layerwise.problem import DECOMPOSITIONS
from rankwise_lab.layerwise.run import Run, Settings
from rankwise_lab.layerwise.training import STAGE, placed


class LWSVM:
    """
    Layer-wise training of a piecewise-linear network with a rank loss (LW-SVM, Berrada et al., 2017).

    It minimises the objective

        F = risk + (lam/2) Σ_layers ‖W_l‖²,   risk = Σ_b (n_b/n)·J_b

    over fixed blocks b of the training samples. J_b is the structured hinge of the block's scores, a mean over classes,
    each of which ranks the samples of the block. Training has three stages: softmax pre-training, a warm-up on the loss
    itself by Adadelta, and LW-SVM. LW-SVM takes one layer after another, from last to first, and solves

        minimise over W   (lam/2)‖W‖² + (mu/2)‖W − W₀‖² + a convex model of the risk that is equal at W₀

    by block-coordinate Frank–Wolfe, where W₀ are the current weights of the layer. There is no learning rate, and F
    never rises.

    Parameters
    ----------
    net : PLCNN or nn.Sequential
        Network of piecewise-linear parts that ends in a Linear layer. It is trained in place, on its device and in its
        dtype. Layers whose weights do not require gradients are left as they are.
    loss : str or Loss, default "ap"
        Loss of a block: "ap", "ndcg", "mrr", "auc", "zero-one" (each class against the others), a `rankwise.Loss`, or
        "hinge" (the multi-class hinge).
    lam : float, default 1e-3
        Weight λ of the squared norm of all weights, at least 0.
    mu : float, default 1e-2
        Weight μ of the squared distance from the current weights of a layer, at least 0. Larger values mean smaller,
        safer steps. lam and mu must not both be 0.
    scale : float, default 1.0
        Weight of the loss against the scores in the hinge, as in `rankwise.RankSVM`.
    block_size : int, default 200
        Number of samples in a block, which are ranked together.
    pretrain_epochs : int, default 10
        Number of epochs of softmax pre-training.
    warmup_epochs : int, default 5
        Number of epochs of the warm-up on the loss.
    max_passes : int, default 50
        Largest number of passes of LW-SVM over all layers. Passes end sooner when one lowers the validation score, or
        lowers F by less than a millionth.
    max_epochs : int, default 100
        Largest number of epochs of Frank–Wolfe for one layer.
    tol : float, default 0.01
        Tolerance for one layer, which ends when an epoch raises the dual objective by less than this fraction.
    layers : int, optional
        Number of layers that LW-SVM trains, counted from the last. None trains all. Earlier layers cost more per pass
        and gain less.
    decomposition : {"auto", "dc", "fixed"}, default "auto"
        How the convex model is built. "dc" writes the risk as a difference of convex functions. "fixed" keeps the
        choices of ReLU and max-pooling. "auto" takes "dc" for dense layers and "fixed" for convolutions.
    method : str, default "auto"
        How the most violating ranking is found, as in `rankwise.RankSVM`. On a GPU only "auto" is available.
    score : str or callable, optional
        Score on validation samples: "accuracy", the mean over classes of a metric ("ap", "ndcg", "mrr", "auc"), or a
        function of labels (n,) and scores (n, C). None takes the score that belongs to the loss.
    learning_rate : float, default 0.1
        Learning rate of the warm-up.
    batch_size : int, default 100
        Number of samples in a batch of pre-training.
    memory : float, default 1e9
        Number of bytes for the inputs of a layer. What does not fit is computed again when needed.
    seed : int, default 0
        Seed for blocks, shuffles and Dropout. Equal seeds and equal numbers of threads give equal bits.

    Attributes
    ----------
    net : PLCNN
        The network.
    settings : Settings
        The numeric options, as given.
    history_ : list of dict
        Rows of the training log.
    objective_ : float or None
        F of the last network. None if only pre-training was run.
    score_ : float or None
        Validation score of the network that is kept. None without validation samples.
    n_passes_ : int
        Number of passes of LW-SVM.
    timing_ : dict
        Seconds spent in "inference" and in "total", and the number of "calls" of inference, one per block.

    See Also
    --------
    PLCNN : The network to train.
    APHingeLoss : The same loss for training with any optimiser.

    Notes
    -----
    Batch normalisation learns its statistics, and Dropout is active, in pre-training only.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from torch import nn
    >>> from rankwise_lab.layerwise import LWSVM, PLCNN
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(60) % 3
    >>> images = (rng.normal(size=(60, 6)) + 3.0 * np.eye(3, 6)[labels]).astype("float32")
    >>> _ = torch.manual_seed(0)
    >>> net = PLCNN(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> model = LWSVM(net, "ap", pretrain_epochs=2, warmup_epochs=1, max_passes=2).fit((images, labels))
    >>> objectives = [row["objective"] for row in model.history_ if row["fraction"] is not None]
    >>> len(objectives), objectives == sorted(objectives, reverse=True)
    (4, True)
    """

    history_: list[Row]
    objective_: float | None
    score_: float | None
    n_passes_: int
    timing_: dict[str, float]

    def __init__(
        self,
        net: nn.Sequential,
        loss: LossLike = "ap",
        *,
        lam: float = 1e-3,
        mu: float = 1e-2,
        scale: float = 1.0,
        block_size: int = 200,
        pretrain_epochs: int = 10,
        warmup_epochs: int = 5,
        max_passes: int = 50,
        max_epochs: int = 100,
        tol: float = 0.01,
        layers: int | None = None,
        decomposition: str = "auto",
        method: str = "auto",
        score: str | Score | None = None,
        learning_rate: float = 0.1,
        batch_size: int = 100,
        memory: float = 1e9,
        seed: int = 0,
    ) -> None:
        if not isinstance(net, nn.Sequential):
            raise TypeError(f"net must be a PLCNN or an nn.Sequential, got {type(net).__name__}")
        self.net = net if isinstance(net, PLCNN) else PLCNN(net)
        self._dtype, self._device = place_of(self.net)
        _check_numbers(0.0, lam=lam, mu=mu, tol=tol)
        _check_numbers(None, learning_rate=learning_rate, memory=memory)
        if lam + mu == 0.0:
            raise ValueError("lam and mu are both 0; make at least one of them positive")
        check_whole(1, block_size=block_size, batch_size=batch_size, max_epochs=max_epochs)
        check_whole(0, pretrain_epochs=pretrain_epochs, warmup_epochs=warmup_epochs, max_passes=max_passes, seed=seed)
        if layers is not None:
            check_whole(1, layers=layers)
        if decomposition not in DECOMPOSITIONS:
            known = ", ".join(map(repr, DECOMPOSITIONS))
            raise ValueError(f"unknown decomposition {decomposition!r}; use one of {known}")
        self.loss, self.scale, self.method, self.score, self.block_size = loss, scale, method, score, int(block_size)
        name = self._block_loss().name
        if score is not None:
            as_score(score, name)
        self.settings = Settings(
            lam=float(lam),
            mu=float(mu),
            pretrain_epochs=int(pretrain_epochs),
            warmup_epochs=int(warmup_epochs),
            max_passes=int(max_passes),
            max_epochs=int(max_epochs),
            tol=float(tol),
            layers=None if layers is None else int(layers),
            decomposition=decomposition,
            learning_rate=float(learning_rate),
            batch_size=int(batch_size),
            memory=float(memory),
            seed=int(seed),
        )

    def fit(
        self, train: Any, val: Any = None, *, progress: bool = False, checkpoint: str | os.PathLike[str] | None = None
    ) -> LWSVM:
        """
        Train the network in three stages: pre-training, warm-up and LW-SVM.

        Parameters
        ----------
        train : tuple (images, labels)
            Training samples: images (n, …) in floating point and integer labels (n,) from 0 to C − 1.
        val : tuple (images, labels), optional
            Validation samples. With them, each stage ends with the weights that had the best score in it; the last
            stage also considers the weights it began with. Without them, each stage ends with its last weights.
        progress : bool, default False
            Whether to show a line of progress on stderr.
        checkpoint : path-like, optional
            Folder for the state of training and log.csv. An interrupted run that
            is started again, with a network of the same initial weights, resumes from there and reaches the same
            result. A finished run is only read.

        Returns
        -------
        LWSVM
            The estimator itself.

        Notes
        -----
        After Ctrl-C the network holds the best weights so far, and KeyboardInterrupt is raised again.
        """
        return self._run("fit", STAGES, train, val, progress, checkpoint)

    def pretrain(
        self, train: Any, val: Any = None, *, progress: bool = False, checkpoint: str | os.PathLike[str] | None = None
    ) -> LWSVM:
        return self._run("pretrain", STAGES[:1], train, val, progress, checkpoint)

    def warm_up(
        self, train: Any, val: Any = None, *, progress: bool = False, checkpoint: str | os.PathLike[str] | None = None
    ) -> LWSVM:
        return self._run("warm_up", STAGES[1:2], train, val, progress, checkpoint)

    def fit_layers(
        self, train: Any, val: Any = None, *, progress: bool = False, checkpoint: str | os.PathLike[str] | None = None
    ) -> LWSVM:
        return self._run("fit_layers", STAGES[2:], train, val, progress, checkpoint)

    def decision_function(self, images: Any) -> NDArray[np.floating]:
        """
        Compute the scores of all classes, in inference mode.

        Parameters
        ----------
        images : array-like or Tensor of shape (n, …)
            Images in floating point.

        Returns
        -------
        ndarray of shape (n, C)
            Scores, one column per class.
        """
        name = "decision_function"
        if tuple(getattr(images, "shape", ()))[:1] == (0,):
            return torch.zeros(0, self.net.n_classes, dtype=self._dtype).numpy()
        checked = as_images(images, name)
        return scores_of(self.net, self._samples((checked, np.zeros(len(checked), np.int64)), name))

    def predict(self, images: Any) -> NDArray[np.int64]:
        """
        Predict the class with the highest score.

        Parameters
        ----------
        images : array-like or Tensor of shape (n, …)
            Images in floating point.

        Returns
        -------
        ndarray of shape (n,)
            Class of each image.
        """
        found: NDArray[np.int64] = np.argmax(self.decision_function(images), axis=1)
        return found

    def _run(
        self,
        what: str,
        plan: tuple[str, ...],
        train: Any,
        val: Any,
        progress: bool,
        checkpoint: str | os.PathLike[str] | None,
    ) -> LWSVM:
        self._dtype, self._device = place_of(self.net)
        loss = self._block_loss()
        samples = self._samples(train, "train")
        nothing = torch.zeros(samples.size(0), loss.n_classes, dtype=self._dtype, device=self._device)
        self._block_loss().solve(nothing, samples.labels(0))  # raises now if the loss does not work
        held_out = None if val is None else self._samples(val, "val")
        score = None if val is None else as_score(self.score, loss.name)
        file = None if checkpoint is None else Checkpoint(checkpoint, self._identity(what, samples, held_out))
        log = Log(None if file is None else Path(file.folder), Progress(f"LWSVM {loss.name}") if progress else None)
        run = Run(
            self.net, self.settings, loss, samples, val=held_out, score=score, plan=plan, log=log, checkpoint=file
        )
        try:
            run.begin()
            while not run.state.finished:
                with placed(run):
                    STAGE[run.state.stage](run)
                run.end_stage()
        except BaseException:
            run.reread()
            raise
        finally:
            state = run.state
            self.net.load_state_dict(state.good)
            self.history_ = [dict(row) for row in state.history]
            self.objective_, self.score_, self.n_passes_ = state.objective, state.best_score, state.passes
            self.timing_ = {"inference": state.inference_seconds, "calls": state.calls, "total": state.seconds}
            log.close()
        return self

    def _block_loss(self) -> BlockLoss:
        return BlockLoss(self.loss, self.net.n_classes, scale=self.scale, method=self.method)

    def _samples(self, data: Any, name: str) -> Blocks:
        if not isinstance(data, tuple | list) or len(data) != 2:
            raise TypeError(f"{name} must be a pair (images, labels), got {type(data).__name__}")
        images, labels = data
        found = Blocks(
            images, labels, self.net.n_classes, name=name, block_size=self.block_size, seed=self.settings.seed,
            dtype=self._dtype, device=self._device,
        )  # fmt: skip
        check_output(self.net, found)
        return found

    def _identity(self, what: str, train: Blocks, val: Blocks | None) -> dict[str, Any]:
        """All that determines a run, as plain data."""
        return {
            "method of LWSVM": what,
            "loss": loss_identity(self.loss, self.net.n_classes),
            "scale": float(self.scale),
            "method": self.method,
            "score": score_name(self.score),
            "block_size": self.block_size,
            **asdict(self.settings),
            "train": train.digest(),
            "val": None if val is None else val.digest(),
            "network": network_identity(self.net, self._dtype),
            INITIAL: weights_digest(self.net.state_dict()),
        }


def _check_numbers(least: float | None, **numbers: Any) -> None:
    """Raise unless all are finite numbers of at least this size, or above 0 if it is None."""
    for name, value in numbers.items():
        if not is_number(value):
            raise TypeError(f"{name} must be a number, got {type(value).__name__}")
        above = value > 0.0 if least is None else value >= least
        if not above or not np.isfinite(value):
            what = "above 0" if least is None else f"at least {least:g}"
            raise ValueError(f"{name} must be finite and {what}, got {value!r}")


_ONE_STAGE = """
Run {what}

Parameters
----------
train : tuple (images, labels)
    Training samples, as in `fit`.
val : tuple (images, labels), optional
    Validation samples. With them, the stage ends with its best weights by score.
progress : bool, default False
    Whether to show a line of progress on stderr.
checkpoint : path-like, optional
    Folder for the state of training, as in `fit`.

Returns
-------
LWSVM
    The estimator itself.
"""
LWSVM.pretrain.__doc__ = _ONE_STAGE.format(what="the first stage alone: softmax cross-entropy by Adadelta.")
LWSVM.warm_up.__doc__ = _ONE_STAGE.format(what="the second stage alone: the loss itself by Adadelta.")
LWSVM.fit_layers.__doc__ = _ONE_STAGE.format(what="the third stage alone: LW-SVM, layer by layer.")
