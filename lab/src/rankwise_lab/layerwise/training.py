"""The three stages: softmax pre-training, a warm-up on the target loss, and LW-SVM from the last layer to the first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from rankwise_lab.layerwise.checkpoint import copied
from rankwise_lab.layerwise.evaluation import in_mode, penalty, risk
from rankwise_lab.layerwise.frank_wolfe import LayerSolver, LayerStep, finish
from rankwise_lab.layerwise.problem import LayerProblem
from rankwise_lab.layerwise.run import Run, seeded

# Passes end when one lowers the objective by less than this fraction.
_LEAST_GAIN = 1e-6
_REMEDIES = {
    "pretrain": "; scale the images to about unit variance, or start from smaller weights",
    "warm_up": "; use a smaller learning_rate",
    "fit_layers": "",
}


@contextmanager
def placed(run: Run) -> Iterator[None]:
    """If numbers are no longer finite, raise an error with the stage, the place in it, and what to do."""
    try:
        yield
    except FloatingPointError as error:
        state = run.state
        where = f"epoch {state.epoch + 1}"
        if state.stage == "fit_layers":
            where = f"pass {state.passes + 1}, layer {run.layers[state.layer]}"
        raise ValueError(f"{state.stage}, {where}: {error}{_REMEDIES[state.stage]}") from None


def pretrain(run: Run) -> None:
    """Adadelta on softmax cross-entropy + (lam/2)·Σ‖W‖², on shuffled mini-batches, in training mode."""
    samples, size = run.train, run.settings.batch_size

    def batches(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        order = run.rng(epoch).permutation(samples.n)
        for rows in np.array_split(order, -(-samples.n // size)):
            yield samples.take(rows)

    optimiser = _adadelta(run, 1.0)
    for epoch in _epochs(run, run.settings.pretrain_epochs):
        seed = int(run.rng(epoch, 1).integers(1 << 62))
        with in_mode(run.net, True), seeded(seed, run.device):
            mean = _descend(run, optimiser, batches(epoch), functional.cross_entropy)
        _end_epoch(run, epoch, optimiser, None, mean)


def warm_up(run: Run) -> None:
    """Adadelta on the loss of the blocks + (lam/2)·Σ‖W‖², in inference mode: statistics stay, and Dropout is off."""
    samples = run.train
    optimiser = _adadelta(run, run.settings.learning_rate)
    for epoch in _epochs(run, run.settings.warmup_epochs):
        order = run.rng(epoch).permutation(len(samples)).tolist()
        batches = ((samples.images(b), samples.labels(b)) for b in order)
        with in_mode(run.net, False):
            _descend(run, optimiser, batches, run.loss.as_function)
        _end_epoch(run, epoch, optimiser, *_measured(run))


def _epochs(run: Run, last: int) -> Iterator[int]:
    """The remaining epochs, counted from 1."""
    while run.state.epoch < last:
        yield run.state.epoch + 1


def _adadelta(run: Run, rate: float) -> torch.optim.Adadelta:
    parameters = [one for one in run.net.parameters() if one.requires_grad]
    optimiser = torch.optim.Adadelta(parameters, lr=rate)
    stored: dict[int, dict[str, Tensor]] = {}
    for name, array in run.state.optimiser.items():
        at, _, part = name.partition(".")
        stored.setdefault(int(at), {})[part] = torch.from_numpy(np.array(array))
    optimiser.load_state_dict(optimiser.state_dict() | {"state": stored})
    return optimiser


def _stored(optimiser: torch.optim.Adadelta) -> dict[str, NDArray[Any]]:
    parameters = optimiser.param_groups[0]["params"]
    return {
        f"{at}.{name}": value.cpu().numpy()
        for at, parameter in enumerate(parameters)
        for name, value in optimiser.state[parameter].items()
    }


def _descend(
    run: Run,
    optimiser: torch.optim.Adadelta,
    batches: Iterator[tuple[Tensor, Tensor]],
    loss: Callable[[Tensor, Tensor], Tensor],
) -> float:
    """Take a step for each batch, and return the mean loss over the samples."""
    total, count = 0.0, 0
    for images, labels in batches:
        optimiser.zero_grad()
        scores = run.net(images)
        if not bool(scores.isfinite().all()):
            raise FloatingPointError("the network's scores are no longer finite")
        value = loss(scores, labels)
        whole = value + 0.5 * run.settings.lam * run.net.regulariser()
        whole.backward()
        if not math.isfinite(whole.item()):
            raise FloatingPointError(f"the loss is {whole.item()}")
        optimiser.step()
        total, count = total + value.item() * len(labels), count + len(labels)
    optimiser.zero_grad()
    if not all(bool(one.isfinite().all()) for one in run.net.state_dict().values()):
        raise FloatingPointError("the weights are no longer finite")
    return total / count


def _end_epoch(run: Run, epoch: int, optimiser: torch.optim.Adadelta, objective: float | None, found: float) -> None:
    score = run.validate()
    run.commit(
        {"epoch": epoch, "objective": objective, "risk": found, "score": score},
        **run.judged(copied(run.net.state_dict()), score),
        epoch=epoch,
        objective=objective,
        risk=found,
        optimiser=_stored(optimiser) if run.saving else {},
    )


def fit_layers(run: Run) -> None:
    """LW-SVM: passes over the layers from last to first, until one lowers the score or hardly lowers the objective.

    Each layer takes one CCCP step: solve its convex problem by block-coordinate Frank–Wolfe, then move towards the
    solution as far as the objective does not rise.
    """
    settings = run.settings
    if run.state.objective is None:
        _judge(run, {"pass": 0}, _measured(run), begins=True, ended=run.settings.max_passes == 0)
    while not run.state.ended:
        while run.state.layer < len(run.layers):
            position = run.layers[run.state.layer]
            with in_mode(run.net, False):
                problem = LayerProblem(
                    run.net, position, run.train, run.loss, decomposition=settings.decomposition, memory=settings.memory
                )
                solver = LayerSolver(problem, settings.lam, settings.mu, memory=settings.memory)
                if run.state.solver:
                    solver.restore(run.state.solver)
                while not run.state.solved:
                    epoch, before = run.state.epoch + 1, solver.dual
                    solver.epoch(run.rng(run.state.passes, position, epoch).permutation(len(run.train)).tolist())
                    last = epoch >= settings.max_epochs or solver.dual - before <= settings.tol * abs(solver.dual)
                    row = {"pass": run.state.passes + 1, "layer": position, "epoch": epoch, "dual": solver.dual}
                    run.commit(row, epoch=epoch, solved=last, solver=solver.state() if run.saving else {})
                step = finish(solver, run.state.risk)
            _end_layer(run, position, step)
        _end_pass(run)


def _end_layer(run: Run, position: int, step: LayerStep) -> None:
    row: dict[str, Any] = {"pass": run.state.passes + 1, "layer": position, "epoch": run.state.epoch}
    row |= {"dual": step.dual, "primal": step.primal, "fraction": step.fraction}
    measured = (step.loss + penalty(run.net, run.settings.lam), step.loss)
    _judge(run, row, measured, layer=run.state.layer + 1, epoch=0, solved=False, solver={})


def _end_pass(run: Run) -> None:
    state = run.state
    assert state.objective is not None
    assert state.pass_objective is not None
    ended = (
        state.passes + 1 >= run.settings.max_passes
        or state.pass_objective - state.objective < _LEAST_GAIN * abs(state.pass_objective)
        or (state.score is not None and state.pass_score is not None and state.score < state.pass_score)
    )
    begins: dict[str, Any] = {"pass_objective": state.objective, "pass_score": state.best_score}
    run.commit(passes=state.passes + 1, layer=0, ended=ended, **begins)


def _judge(
    run: Run, row: dict[str, Any], measured: tuple[float, float], *, begins: bool = False, **changes: Any
) -> None:
    """Commit a row with objective, risk and score of the network; begins: whether a pass begins here."""
    objective, found = measured
    score = run.validate()
    changes |= run.judged(copied(run.net.state_dict()), score)
    if begins:
        changes |= {"pass_objective": objective, "pass_score": score}
    run.commit(
        row | {"objective": objective, "risk": found, "score": score}, objective=objective, risk=found, **changes
    )


def _measured(run: Run) -> tuple[float, float]:
    """F and the risk of the network."""
    found = risk(run.net, run.train, run.loss)
    objective = found + penalty(run.net, run.settings.lam)
    if not math.isfinite(objective):
        raise FloatingPointError(
            f"the objective is {objective} because the weights have grown too large; raise lam or mu"
        )
    return objective, found


# The function of each stage, which starts from the state of the run.
STAGE = {"pretrain": pretrain, "warm_up": warm_up, "fit_layers": fit_layers}
