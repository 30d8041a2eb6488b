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

from rankwise.inputs import check_whole, is_number
from rankwise.io.fingerprint import fingerprint
from rankwise.losses import LossLike
from rankwise.progress import Progress
from rankwise.torch.layerwise.block_loss import BlockLoss
from rankwise.torch.layerwise.blocks import Blocks, as_images
from rankwise.torch.layerwise.checkpoint import INITIAL, Checkpoint, weights_digest
from rankwise.torch.layerwise.evaluation import Score, as_score, in_mode, score_name, scores_of
from rankwise.torch.layerwise.log import STAGES, Log, Row
from rankwise.torch.layerwise.network import PLCNN
from rankwise.torch.layerwise.problem import DECOMPOSITIONS
from rankwise.torch.layerwise.run import Run, Settings
from rankwise.torch.layerwise.training import STAGE, placed


class LWSVM:
    """Trains a piecewise-linear network by LW-SVM (Berrada et al., 2017): F = risk + (lam/2) Σ_layers ‖W_l‖².

    risk = Σ_b (n_b/n)·J_b over fixed blocks of the training samples, J_b the structured hinge of the block's scores,
    a mean over classes, each of which ranks the block's samples. Three stages: softmax pre-training, a warm-up on the
    loss by Adadelta, and LW-SVM, which takes one layer after another, from last to first, and solves

        minimise over W   (lam/2)‖W‖² + (mu/2)‖W − W₀‖² + a convex stand-in for the risk that is equal at W₀

    where W₀ is what the layer has, by block-coordinate Frank–Wolfe, with no learning rate; F never rises.

    net: a `PLCNN`, or an nn.Sequential of piecewise-linear parts, trained in place, on its device and in its dtype; a
    layer whose weights do not require gradients is left as it is.
    loss: "ap", "ndcg", "mrr", "auc", "zero-one" (each class against the others), a `rankwise.Loss`, or "hinge"
    (multi-class). scale, method: of the loss, as in `RankSVM`. block_size: samples in a block. pretrain_epochs,
    batch_size: of the first stage. warmup_epochs, learning_rate: of the second. max_passes: over all layers; they end
    sooner when the validation score falls, or F by less than a millionth. max_epochs, tol: for a layer, which ends when
    an epoch raises its dual by less than this part. layers: how many LW-SVM takes, from the last, None for all; below
    the last few a pass costs more and gains less. decomposition: how the stand-in is made: "dc" (difference of
    convex functions), "fixed" (choices of ReLU and max-pooling kept), or "auto" (dc for dense layers, fixed for
    convolutions). score: what counts on validation samples: a metric's mean over classes ("ap", "ndcg", "mrr", "auc"),
    "accuracy", or a function of labels (n,) and scores (n, C); None takes the one the loss is of. memory: bytes for a
    layer's inputs. seed: of blocks, shuffles and Dropout; equal seeds and numbers of threads give equal bits.

    Batch normalisation learns its statistics, and Dropout is on, in pre-training only.

    Fitted: history_ (rows of the log), objective_ (F of the last network; None after pre-training alone), score_ (by
    validation, of the network that is kept; None without), n_passes_, timing_ (seconds in "inference" and in "total",
    and "calls" of inference, one a block).

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
        self._dtype, self._device = _place(self.net)
        _check_numbers(0.0, lam=lam, mu=mu, tol=tol)
        _check_numbers(None, learning_rate=learning_rate, memory=memory)
        if lam + mu == 0.0:
            raise ValueError("lam and mu are both 0; one of them must be above")
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
        """The three stages. train, val: pairs (images, labels), or data sets of (image, label), which are read once.

        With val, every stage ends with the weights that had the best score in it (the last stage's start counts, too),
        else with its last ones. progress: a line on stderr. checkpoint: a folder for a file of where training stands,
        log.csv and, with TensorBoard installed, events: a run that was cut off and is begun again, with a network of
        the same initial weights, goes on from there to the same end; one that was finished is only read. After Ctrl-C
        the network holds the best weights so far, and KeyboardInterrupt goes on.
        """
        return self._run("fit", STAGES, train, val, progress, checkpoint)

    def pretrain(
        self, train: Any, val: Any = None, *, progress: bool = False, checkpoint: str | os.PathLike[str] | None = None
    ) -> LWSVM:
        """The first stage alone: softmax cross-entropy by Adadelta; arguments as in `fit`."""
        return self._run("pretrain", STAGES[:1], train, val, progress, checkpoint)

    def warm_up(
        self, train: Any, val: Any = None, *, progress: bool = False, checkpoint: str | os.PathLike[str] | None = None
    ) -> LWSVM:
        """The second stage alone: the loss itself by Adadelta; arguments as in `fit`."""
        return self._run("warm_up", STAGES[1:2], train, val, progress, checkpoint)

    def fit_layers(
        self, train: Any, val: Any = None, *, progress: bool = False, checkpoint: str | os.PathLike[str] | None = None
    ) -> LWSVM:
        """The third stage alone: LW-SVM, layer by layer; arguments as in `fit`."""
        return self._run("fit_layers", STAGES[2:], train, val, progress, checkpoint)

    def decision_function(self, images: Any) -> NDArray[np.floating]:
        """Scores (n, C) of images (n, …), in inference mode."""
        name = "decision_function"
        if tuple(getattr(images, "shape", ()))[:1] == (0,):
            return torch.zeros(0, self.net.n_classes, dtype=self._dtype).numpy()
        checked = as_images(images, name)
        return scores_of(self.net, self._samples((checked, np.zeros(len(checked), np.int64)), name))

    def predict(self, images: Any) -> NDArray[np.int64]:
        """The class with the highest score, (n,)."""
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
        self._dtype, self._device = _place(self.net)
        loss = self._block_loss()
        samples = self._samples(train, "train")
        nothing = torch.zeros(samples.size(0), loss.n_classes, dtype=self._dtype, device=self._device)
        self._block_loss().solve(nothing, samples.labels(0))  # what is no loss of a ranking is refused now
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
        found = Blocks.of(
            data, self.net.n_classes, name=name, block_size=self.block_size, seed=self.settings.seed,
            dtype=self._dtype, device=self._device,
        )  # fmt: skip
        image = found.take(np.arange(1))[0]
        try:
            with in_mode(self.net, False), torch.no_grad():
                shape = tuple(self.net(image).shape)
        except (RuntimeError, ValueError) as error:
            why = " ".join(str(error).split())[:200]
            raise ValueError(f"{name}: the network takes no images of shape {tuple(image.shape[1:])}: {why}") from None
        if shape != (1, self.net.n_classes):
            raise ValueError(
                f"{name}: the network gives an image {shape[1:]} numbers, wanted are the scores of classes"
            )
        return found

    def _identity(self, what: str, train: Blocks, val: Blocks | None) -> dict[str, Any]:
        """All that decides a run, as plain data; a loss by what it says of some scores, whatever it is made of."""
        rng = np.random.default_rng(0)
        labels = torch.from_numpy(rng.integers(self.net.n_classes, size=50))
        loss = BlockLoss(self.loss, self.net.n_classes)
        said = [loss.solve(torch.from_numpy(size * rng.normal(size=(50, loss.n_classes))), labels) for size in (0.1, 1)]
        parts = [
            str(self._dtype),
            *(f"{part!r} {[one.requires_grad for one in part.parameters()]}" for part in self.net),
        ]
        return {
            "method of LWSVM": what,
            "loss": f"{loss.name} {fingerprint({}, [part.numpy() for pair in said for part in pair])}",
            "scale": float(self.scale),
            "method": self.method,
            "score": score_name(self.score),
            "block_size": self.block_size,
            **asdict(self.settings),
            "train": train.digest(),
            "val": None if val is None else val.digest(),
            "network": fingerprint({"parts": parts}, []),
            INITIAL: weights_digest(self.net.state_dict()),
        }


def _place(net: PLCNN) -> tuple[torch.dtype, torch.device]:
    """The one dtype and device of a network."""
    if not any(net[k].weight.requires_grad for k in net.trainable):
        raise ValueError("no weights of the network require gradients; there is nothing to train")
    for k in net.trainable:
        if len({one.requires_grad for one in net[k].parameters()}) > 1:
            raise ValueError(f"part {k} has a bias or a weight that requires gradients and one that does not; choose")
    found = {(part.dtype, part.device) for part in net.parameters()}
    if len(found) > 1:
        raise ValueError(f"the network's weights are of several kinds, {found}; call net.to(device, dtype) first")
    dtype, device = found.pop()
    if dtype not in (torch.float32, torch.float64):
        raise TypeError(f"the network's weights are {dtype}; use float32 or float64, such as net.float()")
    return dtype, device


def _check_numbers(least: float | None, **numbers: Any) -> None:
    for name, value in numbers.items():
        if not is_number(value):
            raise TypeError(f"{name} must be a number, got {type(value).__name__}")
        above = value > 0.0 if least is None else value >= least
        if not above or not np.isfinite(value):
            what = "above 0" if least is None else f"at least {least:g}"
            raise ValueError(f"{name} must be finite and {what}, got {value!r}")
