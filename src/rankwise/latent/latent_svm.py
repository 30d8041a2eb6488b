"""LatentRankSVM: a linear ranker of bags, whose best candidate counts, as a scikit-learn classifier."""

from __future__ import annotations

import os
import threading
import time
import warnings
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, column_or_1d

from rankwise.inputs import as_scale, as_threads, is_number, is_whole
from rankwise.latent.bags import Bags, as_bags
from rankwise.latent.cccp import Problem
from rankwise.latent.initial import as_starts, bag_means
from rankwise.latent.state import OuterStep
from rankwise.latent.training import Training
from rankwise.latent.working_set import best_of
from rankwise.linear.base import BaseLinearRanker, check_counts, check_numbers
from rankwise.linear.features import INTERCEPT, Vector, as_features
from rankwise.linear.labels import two_classes
from rankwise.linear.objective import Objective, Task
from rankwise.linear.path import usual_C
from rankwise.linear.posing import pose
from rankwise.losses import Loss, LossLike, as_loss
from rankwise.method import as_method
from rankwise.progress import Progress

# C, where none is given, over the natural one of the bags' means: the middle of what folds chose on real sets.
_USUAL = 3.0


class BagRanker(BaseLinearRanker):
    """What linear rankers of bags share once they are fitted."""

    n_threads: int
    _stop: threading.Event | None = None  # set from another thread, it ends a fit after the round in hand

    def decision_function(self, bags: Any) -> NDArray[np.float64]:
        """Score of each bag, max over its candidates of φ·coef_ + intercept_, (bags,); above 0, classes_[1]."""
        return self._best(bags)[0]

    def best_candidate(self, bags: Any) -> NDArray[np.int64]:
        """The candidate of each bag that has its score, (bags,), counted from 0; of equal ones, the first."""
        return self._best(bags)[1]

    def candidate_scores(self, bags: Any) -> NDArray[np.float64]:
        """φ·coef_ + intercept_ of every candidate, bag after bag, (candidates,)."""
        check_is_fitted(self, "coef_")
        checked = as_bags(bags)
        if checked.width != self.n_features_in_:
            raise ValueError(
                f"bags have {checked.width} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        scores: Vector = checked.scores(self.coef_[0], as_threads(self.n_threads)) + self.intercept_[0]
        return scores

    def _best(self, bags: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        bags = as_bags(bags)
        scores = self.candidate_scores(bags)
        if not len(bags):
            return np.zeros(0), np.zeros(0, np.int64)
        offsets = bags.offsets[:-1]
        best, at = best_of(scores, offsets)
        return best, at - offsets

    def _checked_bags(self, bags: Any, y: Any) -> tuple[Bags, NDArray[np.bool_]]:
        checked = as_bags(bags)
        if not len(checked):
            raise ValueError("no bags to fit to; pass positive and negative ones")
        labels = column_or_1d(y, warn=True)
        if labels.size != len(checked):
            raise ValueError(f"{len(checked)} bags and {labels.size} labels; give every bag one label")
        self.classes_, relevant = two_classes(labels)
        self.n_features_in_ = checked.width
        return checked, relevant

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


@dataclass(eq=False, repr=False)
class LatentRankSVM(BagRanker):
    """A linear ranker w of bags that minimises ½‖w‖² + C·mean over queries of J, J of s_i = max_h w·φ(x_i, h).

    A bag is a set of candidates, such as the windows of an image, one of which is what its label speaks of: bags of
    classes_[1] hold a positive one, others none. Learning alternates between choosing the candidates of positive bags
    and solving the convex problem that is left (see `rankwise.latent.cccp`); the objective never rises.

    loss, method, scale, fit_intercept, random_state, verbose: as in `RankSVM`. C: the weight of the loss; None takes a
    multiple of the natural C of the bags' means, and `LatentRankSVMCV` chooses better. init: which candidate a positive
    bag begins with: "first" (the whole image, where bags are images), "centre" (nearest the mean of its bag), "random",
    or their numbers, (bags,); or under which coefficients they are chosen: "mean" (default: of a ranker of the bags'
    means), a linear model or its coefficients. A list of these: each is tried, and the lowest objective wins. Where no
    candidate of the start tells positives from negatives, w = 0 is a minimum, and every score is 0: try another.
    self_paced: the share of positives, those with the highest scores, to learn from after the first step; it grows by
    1.3 a step until all are in use. tol: relative duality gap of each convex problem. outer_tol: alternation ends when
    the objective falls by less than this part, or when no positive bag changes its candidate. max_outer, max_iter:
    steps of the alternation with all positives in use, and iterations of the solver in a round. checkpoint: a folder; a
    fit that was cut off goes on from there, and one that was finished is only read. n_threads: for passes over the
    features, and for inference.

    Fitted, beside what `RankSVM` has: objective_ (of bags), dual_ and gap_ (of the last convex problem), n_iter_ (outer
    steps), history_ (by outer step, of the start that won), starts_ (objective by start), timing_ (with passes over
    all candidates).

    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(4, 3)) for _ in range(30)]
    >>> for bag in bags[:10]:
    ...     bag[2, 0] += 5.0
    >>> y = np.arange(30) < 10
    >>> model = LatentRankSVM("ap", C=10.0).fit(bags, y)
    >>> model.best_candidate(bags[:4]).tolist(), bool(model.gap_ <= 1e-3)
    ([2, 2, 2, 2], True)
    """

    _kind = "latent-rank-svm"

    loss: LossLike = "ap"
    C: float | None = None
    _: KW_ONLY
    init: Any = "mean"
    self_paced: float | None = None
    method: str = "auto"
    tol: float = 1e-3
    outer_tol: float = 1e-3
    max_outer: int = 50
    max_iter: int = 10_000
    scale: float = 1.0
    fit_intercept: bool = True
    checkpoint: str | os.PathLike[str] | None = None
    n_threads: int = 1
    random_state: int = 0
    verbose: int = 0

    def fit(
        self, bags: Any, y: ArrayLike, qid: ArrayLike | None = None, query_weight: ArrayLike | None = None
    ) -> LatentRankSVM:
        """Fit to bags, a list of (n_i, d) arrays or `Bags`, with labels y (bags,) of two classes.

        qid, query_weight: by bag, as in `RankSVM.fit`. After Ctrl-C the best model so far is kept, if there is one,
        and KeyboardInterrupt goes on.
        """
        started = time.perf_counter()
        loss = self.validated()
        checked, relevant = self._checked_bags(bags, y)
        inference: dict[str, Any] = {
            "scale": as_scale(self.scale),
            "method": as_method(self.method, loss),
            "n_threads": as_threads(self.n_threads),
        }

        @lru_cache(maxsize=2)  # of all bags, and of those in use
        def posed(mask: bytes) -> Task:
            active = np.frombuffer(mask, np.bool_)
            rows = None if active.all() else np.flatnonzero(active)
            return pose(relevant, loss, qid, query_weight, rows, **inference)

        def task(active: NDArray[np.bool_]) -> Task:
            return posed(active.tobytes())

        if self.C is None:
            whole = task(np.ones(len(checked), np.bool_))
            self.C_ = usual_C(Objective(as_features(bag_means(checked)), whole), _USUAL)
        else:
            self.C_ = float(self.C)
        problem = Problem(
            checked,
            relevant,
            task,
            C=self.C_,
            intercept=INTERCEPT if self.fit_intercept and loss.learns_intercept else 0.0,
            tol=float(self.tol),
            outer_tol=float(self.outer_tol),
            max_outer=int(self.max_outer),
            max_iter=int(self.max_iter),
            n_threads=inference["n_threads"],
        )
        progress = Progress(f"LatentRankSVM {loss.name}, C={self.C_:.4g}") if self.verbose else None
        training = Training(
            problem,
            as_starts(self.init, checked.sizes, checked.width),
            pace=1.0 if self.self_paced is None else float(self.self_paced),
            seed=int(self.random_state),
            settings={"loss": repr(loss), "method": self.method, "scale": inference["scale"]},
            checkpoint=self.checkpoint,
            report=None if progress is None else progress.say,
            stop=self._stop,
        )
        try:
            interrupted = training.run()
        finally:
            if progress is not None:
                progress.close()
        self._keep(training, relevant, started, interrupted)
        return self

    def validated(self) -> Loss:
        """The loss, if all parameters are in order."""
        loss = as_loss(self.loss)
        check_numbers(self.C, tol=self.tol, outer_tol=self.outer_tol)
        check_counts(max_outer=self.max_outer, max_iter=self.max_iter)
        as_method(self.method, loss)
        share = self.self_paced
        if share is not None and (not is_number(share) or not 0.0 < share <= 1.0):
            raise ValueError(f"self_paced must be a share of the positives above 0 and at most 1, got {share!r}")
        if not is_whole(self.random_state) or self.random_state < 0:
            raise ValueError(f"random_state must be an integer, at least 0, got {self.random_state!r}")
        return loss

    def _keep(self, training: Training, relevant: NDArray[np.bool_], started: float, interrupted: bool) -> None:
        states, self.starts_ = training.states, training.objectives
        if not np.isfinite(self.starts_).any():
            raise KeyboardInterrupt
        chosen = states[int(np.argmin(self.starts_))]
        self._adopt(chosen.coef, lambda learnt: chosen.best, relevant)
        self.objective_, self.dual_, self.gap_ = float(self.starts_.min()), chosen.dual, chosen.gap
        self.n_iter_ = len(chosen.history)
        columns = zip(*chosen.history, strict=True) if chosen.history else [[]] * len(OuterStep._fields)
        self.history_ = {name: np.array(values) for name, values in zip(OuterStep._fields, columns, strict=True)}
        self.converged_ = chosen.finished and not chosen.reason
        clocks = [vars(state.clock) | {"passes": state.passes} for state in states]
        clocks[0]["passes"] += 1  # the first look at every feature
        self.timing_ = {"total": time.perf_counter() - started}
        self.timing_ |= {part: sum(clock[part] for clock in clocks) for part in clocks[0]}
        if interrupted:
            raise KeyboardInterrupt
        if not self.converged_:
            self._warn(f"stopped at a relative duality gap of {self.gap_:.1e}, tol={self.tol:g}: {chosen.reason}")
        if not self.coef_.any():
            self._warn("found no way down from coefficients of 0, and all scores are equal: try another init, or C")

    def _warn(self, what: str) -> None:
        warnings.warn(f"LatentRankSVM {what}", ConvergenceWarning, stacklevel=4)
