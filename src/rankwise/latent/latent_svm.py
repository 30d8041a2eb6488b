"""LatentRankSVM: a linear ranker of bags, where the best candidate counts, as a scikit-learn classifier."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from rankwise.arguments import as_threads, is_number, is_whole
from rankwise.latent.base import BagRanker
from rankwise.latent.cccp import Problem
from rankwise.latent.initial import as_starts, bag_means
from rankwise.latent.state import OuterStep
from rankwise.latent.training import Training
from rankwise.linear.base import check_counts, check_numbers
from rankwise.linear.features import INTERCEPT, as_features
from rankwise.linear.objective import Objective, Task
from rankwise.linear.path import usual_C
from rankwise.linear.posing import pose
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike, as_loss
from rankwise.progress import Progress
from rankwise.surrogates import Hinge

# Default C divided by the natural C of the bags' means: the middle of what cross-validation chose on real data.
_USUAL = 3.0


@dataclass(eq=False, repr=False)
class LatentRankSVM(BagRanker):
    """Linear ranker of bags, which learns which candidate of a bag counts.

    A bag is a set of candidates, such as the windows of an image. Only the bag has a label: a positive bag contains at
    least one positive candidate, but it is not known which one; a negative bag contains none. With φ(x_i, h) the
    features of candidate h of bag i and J_q the structured hinge of query q, the ranker w minimises

        ½‖w‖² + C·mean_q J_q(s),    s_i = max_h w·φ(x_i, h).

    Parameters
    ----------
    loss : str or Loss, default "ap"
        Ranking loss to minimise, as in `RankSVM`: "ap", "ndcg", "mrr", "auc", "f1", "zero-one", or a `Loss`.
    C : float, optional
        Weight of the loss against the penalty. A larger C fits the training data more closely. The default is a
        multiple of the natural C of the bags' means, see `rankwise.linear.natural_C`. Use `LatentRankSVMCV` to choose
        it by cross-validation.
    init : str, array-like, estimator or list of them, default "mean"
        How to choose the first candidate of each positive bag. "mean" fits a ranker to the means of the bags and takes
        the best candidate under it. "first" takes the first candidate, "centre" the one nearest the mean of its bag,
        "random" a random one. You can also pass the candidates' numbers, an array of shape (n_bags,); or a fitted
        linear model or its coefficients, which choose them. The start matters, because the objective has many local
        minima. If you pass a list, all starts are tried and the lowest objective wins.
    self_paced : float, optional
        Fraction of the positive bags to learn from after the first step: those with the highest scores. It grows by a
        factor of 1.3 per step until all are used. Try 0.5 if a few positive bags are outliers. By default all positive
        bags are used from the start.
    method : str, default "auto"
        Algorithm that finds the most violating ranking, as in `rankwise.structured_hinge`. The result is the same for
        all exact methods, so "auto" is the right choice except in benchmarks.
    tol : float, default 1e-3
        Relative duality gap at which each convex problem is solved.
    outer_tol : float, default 1e-3
        The alternation stops when the objective falls by less than this fraction, or when no positive bag changes its
        candidate.
    max_outer : int, default 50
        Maximum number of steps of the alternation with all positive bags in use.
    max_iter : int, default 10000
        Maximum number of iterations of the convex solver in a round.
    scale : float, default 1.0
        Weight of the loss against the margin within the structured hinge. Few users need to change it.
    fit_intercept : bool, default True
        Whether `predict` gets a threshold of its own; if False, the intercept is 0. Rankings do not depend on it. The
        intercept is set after training, where F1 on the training samples is highest. Only "zero-one" depends on the
        intercept and learns it, almost without penalty.
    checkpoint : str or Path, optional
        Folder for checkpoints. If a fit is stopped, the same fit continues from there; if it was finished, the result
        is read. By default there are no checkpoints.
    n_threads : int, default 1
        Number of threads for passes over the features and for the search of most violating rankings. -1 uses all
        processors. The result does not depend on it.
    random_state : int, default 0
        Seed for the start "random".
    verbose : int, default 0
        If 1, show progress on the terminal.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Coefficients of the ranker.
    intercept_ : ndarray of shape (1,)
        Intercept, which sets the threshold of `predict`.
    classes_ : ndarray of shape (2,)
        The two class labels. The greater label, classes_[1], is the relevant (positive) class.
    C_ : float
        Value of C that was used.
    objective_ : float
        Value of the objective at the solution, with every bag at its best candidate.
    dual_ : float
        Lower bound of the minimum of the last convex problem.
    gap_ : float
        Certified relative duality gap of the last convex problem.
    converged_ : bool
        Whether the alternation ended by itself and every gap is at most `tol`.
    n_iter_ : int
        Number of outer steps: choices of candidates, each followed by a convex problem.
    history_ : dict of str to ndarray
        Progress with one entry per outer step, for the start that won.
    starts_ : ndarray of shape (n_starts,)
        Final objective for each start in `init`.
    timing_ : dict of str to float
        Seconds that `fit` took: "total", "inference" (the search of most violating rankings) and "products" (products
        with features). "calls" counts how many queries were searched, "passes" the passes over all candidates.
    n_features_in_ : int
        Number of features of a candidate, seen during `fit`.

    See Also
    --------
    LatentRankSVMCV : The same ranker, with C chosen by cross-validation.
    Bags : Bags of candidates in one feature matrix, also larger than memory.
    RankSVM : Linear ranker of ordinary samples.

    Notes
    -----
    Training alternates between choosing the best candidate of each positive bag and solving the convex problem that
    remains (CCCP, see Behl et al. 2014). The objective never rises. It has many local minima, so the start matters. If
    no candidate of the start tells positives from negatives, w = 0 is a minimum and all scores are 0: then try another
    `init`.

    Examples
    --------
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
        """Fit the ranker to labelled bags.

        If you press Ctrl-C, `fit` keeps the best model so far, if there is one, and raises KeyboardInterrupt.

        Parameters
        ----------
        bags : Bags or list of array-like
            Bags: a `Bags` object, or one array or sparse matrix of shape (n_candidates_of_bag, n_features) per bag.
        y : array-like of shape (n_bags,)
            Labels of two classes, of which the greater one is relevant.
        qid : array-like of shape (n_bags,), optional
            Query of each bag, in any order. A query is a group of bags that is ranked on its own. By default all bags
            form one query. A query whose bags are all of one class has nothing to rank and is left out.
        query_weight : array-like of shape (n_bags,), optional
            Weight of each bag's query in the mean of the loss. It must be the same for all bags of a query. By default
            all queries have the same weight.

        Returns
        -------
        LatentRankSVM
            The fitted ranker itself.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid.
        KeyboardInterrupt
            After Ctrl-C.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If the alternation or a convex problem stops early, or if all coefficients are 0.
        """
        started = time.perf_counter()
        loss = self.validated()
        checked, relevant = self._checked_bags(bags, y)
        inference: dict[str, Any] = {
            "surrogate": Hinge(self.scale, self.method),
            "n_threads": as_threads(self.n_threads),
        }

        @lru_cache(maxsize=2)  # for all bags, and for those in use
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
            settings={"loss": repr(loss), "method": self.method, "scale": inference["surrogate"].scale},
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
        """Check all parameters.

        Returns
        -------
        Loss
            The loss that the parameter `loss` means.

        Raises
        ------
        ValueError
            If a parameter is invalid.
        """
        loss = as_loss(self.loss)
        check_numbers(self.C, tol=self.tol, outer_tol=self.outer_tol)
        check_counts(max_outer=self.max_outer, max_iter=self.max_iter)
        Hinge(self.scale, self.method).accepts(loss)
        share = self.self_paced
        if share is not None and (not is_number(share) or not 0.0 < share <= 1.0):
            raise ValueError(f"self_paced must be a fraction above 0 and at most 1, got {share!r}")
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
            self._warn("found only coefficients of 0, so all scores are equal; try another init or C")

    def _warn(self, what: str) -> None:
        warnings.warn(f"LatentRankSVM {what}", ConvergenceWarning, stacklevel=4)
