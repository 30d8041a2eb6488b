"""RankSVM: a linear model that minimises the structured hinge of a ranking loss, as a scikit-learn classifier."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from rankwise.inputs import as_scale, as_threads
from rankwise.linear.base import BaseLinearRanker, check_counts, check_numbers
from rankwise.linear.features import INTERCEPT, as_features
from rankwise.linear.objective import LinearRisk, Objective
from rankwise.linear.path import usual_C
from rankwise.linear.posing import pose
from rankwise.linear.prior import Prior, take_prior
from rankwise.linear.solvers import AUTO, SOLVERS, Settings, SolverResult
from rankwise.losses import Loss, LossLike, as_loss
from rankwise.method import as_method
from rankwise.progress import Progress

# C, where none is given, over the natural one: the middle of what folds chose on real tasks.
_USUAL, _USUAL_REFINING = 256.0, 4.0


@dataclass(eq=False, repr=False)
class RankSVM(BaseLinearRanker):
    """A linear ranker w that minimises ½‖w‖² + C·mean over queries of J, J the structured hinge of a ranking loss.

    loss: "ap", "ndcg", "mrr", "auc", "f1", "zero-one" or a `Loss`. C: weight of the loss; the mean makes it independent
    of the number of samples. None takes a multiple of the data's natural C, which suits their scale (see `natural_C`);
    `RankSVMCV` chooses better. solver: "cutting-plane", "frank-wolfe", "subgradient", or "auto": cutting-plane, the
    fastest wherever it was measured. method: of inference, as in `structured_hinge`. tol: the relative duality gap
    at which to stop, (primal − dual)/primal. max_iter: iterations of the solver. scale: the weight of the loss within
    J. prior: coefficients w₀, or a linear classifier that is fitted first, to refine: ½‖w − w₀‖² takes the place of
    ½‖w‖² (see `take_prior`). fit_intercept: whether `predict` has a threshold of its own. No ranking depends on it:
    after training, it is put where F1 on the training samples is highest. The 0-1 loss does depend on it and learns
    it, as the coefficient of a column of tens: hardly penalised. warm_start: begin at the coefficients of the fit
    before. n_threads: for inference. random_state: of frank-wolfe's order of queries. verbose: 1 shows progress.

    Fitted: coef_ (1, d), intercept_ (1,), classes_ (the greater label is the relevant one), C_, objective_ and dual_
    (an upper and a lower bound of the minimum), gap_ (relative, certified), converged_, n_iter_, history_ (arrays by
    iteration), timing_ (seconds, and calls of inference), n_features_in_, feature_names_in_.

    For a ranker with nothing to choose but the metric, begin with `LinearRanker`. RankSVM is for the convex problem
    itself, for a certified gap, or for a loss of your own.

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
    prior: Any = None
    fit_intercept: bool = True
    warm_start: bool = False
    n_threads: int = 1
    random_state: int = 0
    verbose: int = 0

    def fit(self, X: Any, y: ArrayLike, qid: ArrayLike | None = None, query_weight: ArrayLike | None = None) -> RankSVM:
        """Fit to samples X (n, d), dense or sparse, with labels y (n,) of two classes, or with qid their grades.

        qid: (n,) the query of each sample, in any order; without it all samples are one. With qid, labels of more than
        two numbers are grades, at least 0; classes_ is then 0 and 1, 1 above the lowest grade. A query whose
        samples are all of one class, or grade, has no ranking loss and is left out of the mean. query_weight: (n,) the
        weight of each sample's query in the mean. After Ctrl-C the best model so far is kept, if there is one, and
        KeyboardInterrupt goes on.
        """
        loss, solve = self.validated()
        X, labels = self._checked_both(X, y, qid)
        task = pose(
            labels.truth,
            loss,
            qid,
            query_weight,
            scale=as_scale(self.scale),
            method=as_method(self.method, loss),
            n_threads=as_threads(self.n_threads),
        )
        features = self._features(X, loss)
        prior = None if self.prior is None else take_prior(self.prior, X, labels.relevant, intercept=self.fit_intercept)
        objective = Objective(features, task, None if prior is None else prior.scores)
        self.C_ = self._given_or_usual_C(Objective(as_features(X), task))
        progress = Progress(f"RankSVM {loss.name}, C={self.C_:.4g}") if self.verbose else None
        report = None if progress is None else lambda step: progress.say(str(step))
        start = self._start(features.n_coefs, prior)
        settings = Settings(float(self.tol), int(self.max_iter), start, report, self.random_state)
        try:
            self._keep(solve(objective, self.C_, settings), objective, prior, labels.relevant)
        finally:
            if progress is not None:
                progress.close()
        return self

    def validated(self) -> tuple[Loss, Any]:
        """The loss and the solver, if all parameters are in order."""
        loss = as_loss(self.loss)
        check_numbers(self.C, tol=self.tol)
        check_counts(max_iter=self.max_iter)
        as_method(self.method, loss)
        if self.solver not in ("auto", *SOLVERS):
            known = ", ".join(map(repr, ("auto", *SOLVERS)))
            raise ValueError(f"unknown solver {self.solver!r}; use one of {known}")
        return loss, SOLVERS[AUTO if self.solver == "auto" else self.solver]

    def _given_or_usual_C(self, risk: LinearRisk) -> float:
        """C, or what suits a risk without intercept or prior."""
        usual = _USUAL if self.prior is None else _USUAL_REFINING
        return usual_C(risk, usual) if self.C is None else float(self.C)

    def _start(self, n_coefs: int, prior: Prior | None) -> NDArray[np.float64] | None:
        if not self.warm_start or not hasattr(self, "coef_") or self.coef_.size != self.n_features_in_:
            return None
        coef = np.append(self.coef_[0], self.intercept_ / INTERCEPT)[:n_coefs]
        return coef if prior is None else coef - prior.start(coef.size)

    def _keep(
        self, result: SolverResult, objective: Objective, prior: Prior | None, relevant: NDArray[np.bool_]
    ) -> None:
        learnt = result.coef if prior is None else result.coef + prior.start(result.coef.size)
        self._adopt(learnt, objective.features.scores, relevant)
        self._tell(result)

    def _tell(self, result: SolverResult) -> None:
        """Take what a solver says of itself; raise if it was interrupted, warn if it stopped short."""
        self.objective_, self.dual_, self.gap_ = result.primal, result.dual, result.gap
        self.n_iter_, self.converged_, self.history_ = result.n_iter, result.converged, result.history
        self.timing_ = {"total": result.seconds, **vars(result.clock)}
        if result.interrupted:
            raise KeyboardInterrupt
        if not result.converged:
            warn_of_gap(result, self.tol, stacklevel=5)


def warn_of_gap(result: SolverResult, tol: float, stacklevel: int = 4) -> None:
    """Warn that a solver stopped short, at a call so many levels up."""
    warnings.warn(
        f"RankSVM stopped at a relative duality gap of {result.gap:.1e}, tol={tol:g}: {result.reason}",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )
