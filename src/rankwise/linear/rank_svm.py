"""RankSVM: a linear ranker that minimises the structured hinge of a ranking loss, as a scikit-learn classifier."""

from __future__ import annotations

import warnings
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from rankwise.arguments import as_threads
from rankwise.documenting import documented
from rankwise.linear.base import BaseLinearRanker, check_counts, check_numbers
from rankwise.linear.cutting_plane import Settings, SolverResult, cutting_plane
from rankwise.linear.features import INTERCEPT, as_features
from rankwise.linear.objective import LinearRisk, Objective
from rankwise.linear.path import usual_C
from rankwise.linear.scales import check_scales
from rankwise.linear.task import Task, pose
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike, as_loss
from rankwise.progress import Progress
from rankwise.surrogates import Hinge, Surrogate

# Default C divided by the natural C: the middle of what cross-validation chose on real tasks.
_USUAL = 256.0
# A gap below this may be rounding: where 0 has it, no other coefficients are measurably better.
_ROUNDING = 1e-12


@dataclass(eq=False, repr=False, kw_only=True)
class ConvexRanker(BaseLinearRanker):
    """What both ranking SVMs are told of their convex problem."""

    method: str = "auto"
    tol: float = 1e-3
    max_iter: int = 10_000
    scale: float = 1.0
    surrogate: Surrogate | None = None
    fit_intercept: bool = True
    n_threads: int = 1
    verbose: int = 0

    def _surrogate(self) -> Surrogate:
        """Return the surrogate to minimise; refuse one that is not convex."""
        own: Any = self.surrogate
        if own is None:
            return Hinge(self.scale, self.method)
        if not (isinstance(own, Surrogate) and own.is_convex):
            raise ValueError(f"surrogate must be a convex Surrogate, got {own!r}; use LinearRanker for others")
        return own


@documented
@dataclass(eq=False, repr=False)
class RankSVM(ConvexRanker):
    """Linear ranking SVM for a ranking loss such as average precision.

    With J_q the structured hinge of query q, a convex upper bound of its ranking loss, the ranker w minimises

        ½‖w‖² + C·mean_q J_q(X w).

    The solver stops at a certified duality gap, so the result is the optimum up to `tol`. To get a good ranker with
    little effort, begin with `LinearRanker`.

    Parameters
    ----------
    loss : str or Loss, default "ap"
        Ranking loss to minimise: "ap" (average precision), "ndcg", "ndcg@10", "mrr", "auc" or "zero-one", or a `Loss`
        of your own.
    C : float, optional
        Weight of the loss against the penalty. Because the loss is a mean, a good C does not depend on the number of
        samples. The default is a multiple of the data's natural C, which suits the scale of the features, see
        `rankwise.linear.natural_C`. `RankSVMCV` chooses it by cross-validation.
    {svm_solving}
    surrogate : Surrogate, optional
        A convex surrogate of your own that is never negative, in place of `Hinge(scale, method)`.
    {fit_intercept}
    {n_threads}
    {verbose}
    warm_start : bool, default False
        Whether a further call of `fit` starts at the coefficients of the last one. This saves time if only C or `tol`
        changes.

    Attributes
    ----------
    {learnt}
    C_ : float
        Value of C that was used.
    {bounds}
    {svm_history_}
    {svm_timing_}
    {seen}

    See Also
    --------
    LinearRanker : Ranker that tunes itself, with only the metric to choose.
    RankSVMCV : Ranking SVM whose C is chosen by cross-validation.
    rankwise.structured_hinge : The structured hinge of given scores, and its gradient.
    rankwise.dask.DaskRankSVM : The same ranker for data on a Dask cluster.

    Notes
    -----
    The structured hinge compares the true ranking with the most violating one: the ranking with the largest sum of its
    loss and of its agreement with the scores. Such rankings are found exactly, in O(n log n) or less.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [0.2, 0.1], [1.0, 0.9], [0.9, 0.2], [0.1, 0.4]])
    >>> model = RankSVM(loss="ap", C=10.0).fit(X, [0, 0, 1, 1, 0])
    >>> model.rank(X)[2:4].tolist(), model.predict(X).tolist(), model.gap_ <= 1e-3
    ([1, 2], [0, 0, 1, 1, 0], True)
    """

    _kind = "rank-svm"

    loss: LossLike = "ap"
    C: float | None = None
    _: KW_ONLY
    warm_start: bool = False

    def fit(self, X: Any, y: ArrayLike, qid: ArrayLike | None = None, query_weight: ArrayLike | None = None) -> RankSVM:
        """Fit the ranker to labelled samples.

        If you press Ctrl-C, `fit` keeps the best model so far, if there is one, and raises KeyboardInterrupt.

        Parameters
        ----------
        {X_unscaled}
        {of_samples}

        Returns
        -------
        RankSVM
            The fitted ranker itself.

        Raises
        ------
        ValueError
            If a parameter is invalid, or if the data cannot be ranked.
        KeyboardInterrupt
            After Ctrl-C.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If the solver stops before the gap is at most `tol`.
        UserWarning
            If the features differ in scale by more than a factor of 1,000, so that the smaller ones hardly count, or if
            C is so small that all coefficients are 0.
        """
        loss = self._validated()
        X, labels = self._checked_both(X, y, qid)
        check_scales(X, type(self).__name__)
        surrogate, n_threads = self._surrogate(), as_threads(self.n_threads)
        task = pose(labels.truth, loss, qid, query_weight, surrogate=surrogate, n_threads=n_threads)
        return self._fit_to(X, task, labels.relevant)

    def _fit_to(self, X: Any, task: Task, relevant: NDArray[np.bool_]) -> RankSVM:
        """Fit the ranker to checked features and a task."""
        loss = task.inference.loss
        objective = Objective(self._features(X, loss), task)
        self.C_ = self._given_or_usual_C(Objective(as_features(X), task))
        with closing(Progress(f"RankSVM {loss.name}, C={self.C_:.4g}")) as progress:
            report = (lambda step: progress.say(str(step))) if self.verbose else None
            settings = Settings(float(self.tol), int(self.max_iter), self._start(objective.n_coefs), report)
            result = cutting_plane(objective, self.C_, settings)
            self._adopt(result.coef, objective.features.scores(result.coef), relevant)
            self._take_result(result)
        return self

    def _validated(self) -> Loss:
        """Check all parameters; return the loss."""
        loss = as_loss(self.loss)
        check_numbers(self.C, tol=self.tol)
        check_counts(max_iter=self.max_iter)
        self._surrogate().accepts(loss)
        return loss

    def _given_or_usual_C(self, risk: LinearRisk) -> float:
        """Return C, or the default for a risk without intercept."""
        return usual_C(risk, _USUAL) if self.C is None else float(self.C)

    def _start(self, n_coefs: int) -> NDArray[np.float64] | None:
        """Return the coefficients of the last fit for a warm start."""
        if not self.warm_start or not hasattr(self, "coef_") or self.coef_.size != self.n_features_in_:
            return None
        return np.append(self.coef_[0], self.intercept_ / INTERCEPT)[:n_coefs]

    def _take_result(self, result: SolverResult) -> None:
        """Take the bounds and the history from a solver; raise if it was interrupted, warn if it stopped early."""
        self.objective_, self.dual_, self.gap_ = result.primal, result.dual, result.gap
        self.n_iter_, self.converged_, self.history_ = result.n_iter, result.converged, result.history
        self.timing_ = {"total": result.seconds, **vars(result.clock)}
        if result.interrupted:
            raise KeyboardInterrupt
        if not result.converged:
            warnings.warn(
                f"RankSVM stopped at a relative duality gap of {result.gap:.1e}, tol={self.tol:g}: {result.reason}",
                ConvergenceWarning,
                stacklevel=4,
            )
        elif self.C is not None and result.gap < _ROUNDING and not result.coef.any():
            warnings.warn(
                f"RankSVM learnt coefficients of 0, so all scores are equal: C={self.C_:.3g} is too small for features "
                "of this scale, or none tells positives from negatives; leave out C, or scale the features",
                UserWarning,
                stacklevel=4,
            )
