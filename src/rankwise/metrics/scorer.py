"""The metrics as scikit-learn scorers. scikit-learn is imported only when it asks for the routing of qid."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import as_array, check_known
from rankwise.documenting import documented
from rankwise.metrics.base import EMPTY
from rankwise.metrics.registry import MetricLike, as_metric


@documented
class RankingScorer:
    """A scikit-learn scorer from a ranking metric: the mean over queries.

    It works with `cross_val_score`, `GridSearchCV` and others. scikit-learn passes qid to a scorer only if metadata
    routing is on and the scorer requests it:

        sklearn.set_config(enable_metadata_routing=True)
        scorer = make_ranking_scorer("ndcg@10").set_score_request(qid=True)
        cross_val_score(model, X, y, cv=GroupKFold(5), scoring=scorer, params={"qid": qid, "groups": qid})

    Without qid, the scorer raises an error unless one_query=True. Samples are scored by decision_function, else by the
    second column of predict_proba, else by predict. Positives are y == estimator.classes_[1]. For an estimator without
    classes_, positives are y > 0, and "ndcg" and "err" take y as grades.

    {arguments_of_metrics}

    See Also
    --------
    as_metric : Get a metric by name.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> make_ranking_scorer("ap", one_query=True)(LogisticRegression().fit(X, y), X, y)
    1.0
    """

    def __init__(self, metric: MetricLike = "ap", *, empty: str = "skip", one_query: bool = False) -> None:
        check_known("empty", empty, EMPTY)
        if not isinstance(one_query, bool | np.bool_):
            raise TypeError(f"one_query must be True or False, got {one_query!r}; queries are passed as qid")
        self.metric, self.empty = as_metric(metric), empty
        self._qid_request: bool | str | None = False if one_query else None

    @property
    def one_query(self) -> bool:
        """Whether all samples form one query, so that no qid is needed."""
        return self._qid_request is False

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, qid: ArrayLike | None = None) -> float:
        """Score an estimator: the mean of the metric over queries, or its value for a single query."""
        if qid is None and not self.one_query:
            raise ValueError(
                f"{self!r} got no qid and would rank all samples as one query. scikit-learn passes qid after "
                "sklearn.set_config(enable_metadata_routing=True), with scorer.set_score_request(qid=True) and "
                f"params={{'qid': qid}}; if all samples form one query, use make_ranking_scorer({self.metric.name!r}, "
                "one_query=True)"
            )
        if qid is not None and self.one_query:
            raise ValueError(f"{self!r} takes all samples as one query but got qid; leave out one of the two")
        classes = getattr(estimator, "classes_", None)
        if classes is not None and len(classes) != 2:
            raise ValueError(
                f"{type(estimator).__name__} has {len(classes)} classes, but a ranking needs 2, relevant or not; fit "
                "it to y == label, or pass a regressor for grades"
            )
        relevant = self._relevant(as_array(y, "y"), classes)
        return self.metric(_response(estimator, X, classes), relevant, qid=qid, empty=self.empty)

    def _relevant(self, y: NDArray[Any], classes: Any) -> NDArray[Any]:
        if classes is not None:
            return np.asarray(y == classes[1])
        if y.dtype.kind not in "fiub":
            raise TypeError(
                f"y must be numbers for an estimator without classes_, got dtype {y.dtype}; pass y == label"
            )
        return y if self.metric.graded else np.asarray(y > 0)

    def set_score_request(self, *, qid: bool | str | None) -> RankingScorer:
        """Tell scikit-learn whether to pass qid to this scorer; this needs set_config(enable_metadata_routing=True).

        True: pass qid. A name: pass the metadata of this name as qid. False: do not pass it, because all samples form
        one query. None: raise an error if it is passed.
        """
        from sklearn import get_config

        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                "metadata routing of scikit-learn is off; call sklearn.set_config(enable_metadata_routing=True) first"
            )
        self._routing(qid)
        self._qid_request = qid
        return self

    def get_metadata_routing(self) -> Any:
        """Return the metadata that this scorer requests from scikit-learn."""
        return self._routing(self._qid_request)

    def _routing(self, qid: bool | str | None) -> Any:
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=repr(self))
        request.score.add_request(param="qid", alias=qid)
        return request

    def __sklearn_clone__(self) -> RankingScorer:
        clone = RankingScorer(self.metric, empty=self.empty)
        clone._qid_request = self._qid_request
        return clone

    def __repr__(self) -> str:
        alone = ", one_query=True" if self.one_query else ""
        return f"make_ranking_scorer({self.metric.name!r}, empty={self.empty!r}{alone})"


def _response(estimator: Any, X: Any, classes: Any) -> Any:
    if hasattr(estimator, "decision_function"):
        return estimator.decision_function(X)
    if hasattr(estimator, "predict_proba"):
        return estimator.predict_proba(X)[:, 1]
    if classes is None:
        return estimator.predict(X)
    raise TypeError(
        f"{type(estimator).__name__} cannot rank: it has neither decision_function nor predict_proba; calibrate it, "
        "e.g. with sklearn.calibration.CalibratedClassifierCV, or pass a regressor"
    )


make_ranking_scorer = RankingScorer
