"""RankSVM: a linear ranker that minimises the structured hinge of a ranking loss, as a scikit-learn classifier."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from rankwise.arguments import as_threads
from rankwise.documenting import documented
from rankwise.linear.base import BaseLinearRanker, check_counts, check_numbers
from rankwise.linear.features import INTERCEPT, as_features
from rankwise.linear.objective import LinearRisk, Objective
from rankwise.linear.path import usual_C
from rankwise.linear.prior import Prior, take_prior
from rankwise.linear.scales import check_scales
from rankwise.linear.solvers import AUTO, SOLVERS, Settings, SolverResult
from rankwise.linear.task import Task, pose
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike, as_loss
from rankwise.progress import Progress
from rankwise.surrogates import Hinge, Surrogate

# Default C divided by the natural C: the middle of what cross-validation chose on real tasks.
_USUAL, _USUAL_REFINING = 256.0, 4.0
# A gap below this may be rounding: where 0 has it, no other coefficients are measurably better.
_ROUNDING = 1e-12


@documented
@dataclass(eq=False, repr=False)
class RankSVM(BaseLinearRanker):
    """Linear ranking SVM for a ranking loss such as average precision.

    With J_q the structured hinge of query q, a convex upper bound of its ranking loss, the ranker w minimises

        ½‖w‖² + C·mean_q J_q(X w).

    The solver stops at a certified duality gap, so the result is the optimum up to `tol`. To get a good ranker with
    little effort, begin with `LinearRanker`. Use RankSVM if you want the solution of this convex problem, a certified
    gap, or a loss of your own.

    Parameters
    ----------
    loss : str or Loss, default "ap"
        Ranking loss to minimise: "ap" (average precision), "ndcg", "ndcg@10", "mrr", "auc" or "zero-one", or
        a `Loss` of your own.
    C : float, optional
        Weight of the loss against the penalty. A larger C fits the training data more closely. Because the loss is a
        mean, a good C does not depend on the number of samples. The default is a multiple of the data's natural C,
        which suits the scale of the features, see `rankwise.linear.natural_C`. Use `RankSVMCV` to choose it by
        cross-validation.
    {svm_solving}
    surrogate : Surrogate, optional
        A convex surrogate of your own that is never negative, in place of `Hinge(scale, method)`.
    prior : array-like of shape (n_features,) or estimator, optional
        Model to start from and to refine. The penalty is then ½‖w − w₀‖² in place of ½‖w‖², where w₀ is the prior:
        the ranker leaves it only as far as the loss pays for it. Pass coefficients, or a linear scikit-learn
        classifier, which is fitted first and scaled to scores with standard deviation 1. To use a classifier that is
        fitted already, wrap it in sklearn.frozen.FrozenEstimator.
    {fit_intercept}
    warm_start : bool, default False
        Whether a further call of `fit` starts at the coefficients of the last one. This saves time if only C or `tol`
        changes.
    {n_threads}
    random_state : int, default 0
        Seed for the order in which "frank-wolfe" visits the queries. Other solvers do not use it.
    {verbose}

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
    solver: str = "auto"
    method: str = "auto"
    tol: float = 1e-3
    max_iter: int = 10_000
    scale: float = 1.0
    surrogate: Surrogate | None = None
    prior: Any = None
    fit_intercept: bool = True
    warm_start: bool = False
    n_threads: int = 1
    random_state: int = 0
    verbose: int = 0

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
            If a parameter is invalid, or if the data cannot be ranked, for example because there is only one class,
            or because all features are too small to be squared.
        KeyboardInterrupt
            After Ctrl-C.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If the solver stops before the gap is at most `tol`.
        UserWarning
            If the features differ in scale by more than a factor of 1,000. The penalty is the same for all
            coefficients, so a feature of a much smaller scale hardly counts. Or if C is so small for features of this
            scale that all coefficients are 0.
        """
        loss, _ = self._validated()
        X, labels = self._checked_both(X, y, qid)
        check_scales(X, type(self).__name__)
        surrogate, n_threads = self._surrogate(), as_threads(self.n_threads)
        task = pose(labels.truth, loss, qid, query_weight, surrogate=surrogate, n_threads=n_threads)
        return self._fit_to(X, task, labels.relevant)

    def _fit_to(self, X: Any, task: Task, relevant: NDArray[np.bool_]) -> RankSVM:
        """Fit the ranker to checked features and a task."""
        loss, solve = self._validated()
        features = self._features(X, loss)
        prior = None if self.prior is None else take_prior(self.prior, X, relevant, intercept=self.fit_intercept)
        objective = Objective(features, task, None if prior is None else prior.scores)
        self.C_ = self._given_or_usual_C(Objective(as_features(X), task))
        progress = Progress(f"RankSVM {loss.name}, C={self.C_:.4g}") if self.verbose else None
        report = None if progress is None else lambda step: progress.say(str(step))
        start = self._start(features.n_coefs, prior)
        settings = Settings(float(self.tol), int(self.max_iter), start, report, self.random_state)
        try:
            result = solve(objective, self.C_, settings)
            learnt = result.coef if prior is None else result.coef + prior.start(result.coef.size)
            self._adopt(learnt, objective.features.scores, relevant)
            self._take_result(result)
        finally:
            if progress is not None:
                progress.close()
        return self

    def _validated(self) -> tuple[Loss, Any]:
        """Check all parameters; return the loss and the solver."""
        loss = as_loss(self.loss)
        check_numbers(self.C, tol=self.tol)
        check_counts(max_iter=self.max_iter)
        self._surrogate().accepts(loss)
        if self.solver not in ("auto", *SOLVERS):
            known = ", ".join(map(repr, ("auto", *SOLVERS)))
            raise ValueError(f"unknown solver {self.solver!r}; use one of {known}")
        return loss, SOLVERS[AUTO if self.solver == "auto" else self.solver]

    def _surrogate(self) -> Surrogate:
        return convex_surrogate(self.surrogate, self.scale, self.method)

    def _given_or_usual_C(self, risk: LinearRisk) -> float:
        """Return C, or the default for a risk without intercept and prior."""
        usual = _USUAL if self.prior is None else _USUAL_REFINING
        return usual_C(risk, usual) if self.C is None else float(self.C)

    def _start(self, n_coefs: int, prior: Prior | None) -> NDArray[np.float64] | None:
        if not self.warm_start or not hasattr(self, "coef_") or self.coef_.size != self.n_features_in_:
            return None
        coef = np.append(self.coef_[0], self.intercept_ / INTERCEPT)[:n_coefs]
        return coef if prior is None else coef - prior.start(coef.size)

    def _take_result(self, result: SolverResult) -> None:
        """Take the bounds and the history from a solver; raise if it was interrupted, warn if it stopped early."""
        self.objective_, self.dual_, self.gap_ = result.primal, result.dual, result.gap
        self.n_iter_, self.converged_, self.history_ = result.n_iter, result.converged, result.history
        self.timing_ = {"total": result.seconds, **vars(result.clock)}
        if result.interrupted:
            raise KeyboardInterrupt
        if not result.converged:
            warn_of_gap(result, self.tol, stacklevel=5)
        elif self.C is not None and self.prior is None and result.gap < _ROUNDING and not result.coef.any():
            warnings.warn(
                f"RankSVM learnt coefficients of 0, so all scores are equal: C={self.C_:.3g} is too small for features "
                "of this scale, or none tells positives from negatives; leave out C, or scale the features",
                UserWarning,
                stacklevel=4,
            )


def convex_surrogate(own: Any, scale: float, method: str) -> Surrogate:
    """Return the surrogate to minimise; refuse one that is not convex."""
    if own is None:
        return Hinge(scale, method)
    if not (isinstance(own, Surrogate) and own.is_convex):
        raise ValueError(f"surrogate must be a convex Surrogate, got {own!r}; use LinearRanker for others")
    return own


def warn_of_gap(result: SolverResult, tol: float, stacklevel: int = 4) -> None:
    """Warn that a solver stopped early; the warning names the line `stacklevel` calls up."""
    warnings.warn(
        f"RankSVM stopped at a relative duality gap of {result.gap:.1e}, tol={tol:g}: {result.reason}",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )
