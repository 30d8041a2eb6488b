"""LatentRankSVM: a linear ranker of bags, where the best candidate counts, as a scikit-learn classifier."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from rankwise.inputs import as_scale, as_threads, is_whole
from rankwise.latent.base import BagRanker
from rankwise.latent.cccp import OuterStep, Problem, State
from rankwise.latent.initial import as_start, bag_means
from rankwise.latent.training import train
from rankwise.linear.base import check_counts, check_numbers
from rankwise.linear.features import INTERCEPT, as_features
from rankwise.linear.objective import Clock, Objective
from rankwise.linear.path import usual_C
from rankwise.linear.posing import pose
from rankwise.losses import Loss, LossLike, as_loss
from rankwise.method import as_method
from rankwise.progress import Progress

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
    init : str, array-like or estimator, default "mean"
        How to choose the first candidate of each positive bag. "mean" fits a ranker to the means of the bags and takes
        the best candidate under it. "first" takes the first candidate, "centre" the one nearest the mean of its bag,
        "random" a random one. You can also pass the candidates' numbers, an array of shape (n_bags,); or a fitted
        linear model or its coefficients, which choose them. The start matters, because the objective has many local
        minima.
    outer_tol : float, default 1e-3
        The alternation stops when the objective falls by less than this fraction, or when no positive bag changes its
        candidate.
    max_outer : int, default 50
        Maximum number of steps of the alternation.
    checkpoint : str or Path, optional
        Folder for checkpoints. If a fit is stopped, the same fit continues from there; if it was finished, the result
        is read. By default there are no checkpoints.
    n_threads : int, default 1
        Number of threads for passes over the features and for the search of most violating rankings. -1 uses all
        processors. The result does not depend on it.
    random_state : int, default 0
        Seed for the start "random".
    method, tol, max_iter, scale, fit_intercept, verbose : optional
        As in `RankSVM`, for each convex problem: `tol` is its relative duality gap.

    Attributes
    ----------
    coef_, intercept_, classes_, C_, n_features_in_ : ndarray, float or int
        As in `RankSVM`. Coefficients and features are those of a candidate.
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
        Progress with one entry per outer step.
    timing_ : dict of str to float
        As in `RankSVM`, and "passes", how often all candidates were scored.

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
        loss = self._validated()
        checked, relevant = self._checked_bags(bags, y)
        start = as_start(self.init, checked.sizes, checked.width)
        scale, n_threads = as_scale(self.scale), as_threads(self.n_threads)
        method = as_method(self.method, loss)
        task = pose(relevant, loss, qid, query_weight, scale=scale, method=method, n_threads=n_threads)
        if self.C is None:
            self.C_ = usual_C(Objective(as_features(bag_means(checked)), task), _USUAL)
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
            n_threads=n_threads,
        )
        settings = {"loss": repr(loss), "method": self.method, "scale": scale, "seed": int(self.random_state)}
        progress = Progress(f"LatentRankSVM {loss.name}, C={self.C_:.4g}") if self.verbose else None
        try:
            say = None if progress is None else progress.say
            state, interrupted = train(problem, start, settings, self.checkpoint, say, self._stop)
        finally:
            if progress is not None:
                progress.close()
        self._keep(problem, state, started, interrupted)
        return self

    def _validated(self) -> Loss:
        """Check all parameters, and return the loss that is meant."""
        loss = as_loss(self.loss)
        check_numbers(self.C, tol=self.tol, outer_tol=self.outer_tol)
        check_counts(max_outer=self.max_outer, max_iter=self.max_iter)
        as_method(self.method, loss)
        if not is_whole(self.random_state) or self.random_state < 0:
            raise ValueError(f"random_state must be an integer, at least 0, got {self.random_state!r}")
        return loss

    def _keep(self, problem: Problem, state: State, started: float, interrupted: bool) -> None:
        if not state.learnt:
            raise KeyboardInterrupt
        self._adopt(state.coef, lambda learnt: state.best, problem.relevant)
        self.objective_ = problem.value(state.coef, state.best, Clock())
        self.dual_, self.gap_, self.n_iter_ = state.dual, state.gap, len(state.history)
        self.history_ = {name: np.array([getattr(step, name) for step in state.history]) for name in OuterStep._fields}
        self.converged_ = state.finished and not state.reason
        self.timing_ = {"total": time.perf_counter() - started} | vars(state.clock)
        self.timing_["passes"] = state.passes + 1  # the first look at every feature
        if interrupted:
            raise KeyboardInterrupt
        if not self.converged_:
            self._warn(f"stopped at a relative duality gap of {self.gap_:.1e}, tol={self.tol:g}: {state.reason}")
        if not self.coef_.any():
            self._warn("found only coefficients of 0, so all scores are equal; try another init or C")

    def _warn(self, what: str) -> None:
        warnings.warn(f"LatentRankSVM {what}", ConvergenceWarning, stacklevel=4)
