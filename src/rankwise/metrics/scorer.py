"""The metrics as scikit-learn scorers. scikit-learn is imported only when it asks for the routing of qid."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.inputs import as_array, check_empty
from rankwise.metrics.ranking import Metric, MetricLike, as_metric


def make_ranking_scorer(metric: MetricLike = "ap", *, empty: str = "skip") -> RankingScorer:
    """A scorer(estimator, X, y, qid=None) for cross_val_score, GridSearchCV and the like: larger is better.

    Without qid, all samples are one query. To have scikit-learn pass qid, switch on its metadata routing and ask:
    make_ranking_scorer("ndcg@10").set_score_request(qid=True).

    >>> make_ranking_scorer("ndcg@10")
    make_ranking_scorer('ndcg@10', empty='skip')
    """
    return RankingScorer(metric, empty)


class RankingScorer:
    """Scores by decision_function, else the second column of predict_proba, else predict, judged by a metric.

    Positives are y == estimator.classes_[1]. An estimator without classes_ has y > 0 for positives; for "ndcg", y
    itself for gains.
    """

    def __init__(self, metric: MetricLike = "ap", empty: str = "skip") -> None:
        check_empty(empty)
        self.metric: Metric = as_metric(metric)
        self.empty = empty
        self._qid_request: bool | str | None = None

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, qid: ArrayLike | None = None) -> float:
        """The metric of the estimator's scores of X; the mean over queries if qid is given."""
        classes = getattr(estimator, "classes_", None)
        if classes is not None and len(classes) != 2:
            raise ValueError(
                f"{type(estimator).__name__} has {len(classes)} classes and a ranking has 2, relevant or not; fit it "
                "to y == label, or pass a regressor for grades"
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
        """Ask scikit-learn to pass qid (True), other metadata as qid (by name), nothing (False) or refuse it (None).

        It needs sklearn.set_config(enable_metadata_routing=True). Returns self.
        """
        from sklearn import get_config

        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                "scikit-learn routes no metadata; call sklearn.set_config(enable_metadata_routing=True) first"
            )
        self._routing(qid)
        self._qid_request = qid
        return self

    def get_metadata_routing(self) -> Any:
        """What scikit-learn is asked to pass: a MetadataRequest."""
        return self._routing(self._qid_request)

    def _routing(self, qid: bool | str | None) -> Any:
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=repr(self))
        request.score.add_request(param="qid", alias=qid)
        return request

    def __sklearn_clone__(self) -> RankingScorer:
        clone = RankingScorer(self.metric, self.empty)
        clone._qid_request = self._qid_request
        return clone

    def __repr__(self) -> str:
        return f"make_ranking_scorer({self.metric.name!r}, empty={self.empty!r})"


def _response(estimator: Any, X: Any, classes: Any) -> Any:
    if hasattr(estimator, "decision_function"):
        return estimator.decision_function(X)
    if hasattr(estimator, "predict_proba"):
        return estimator.predict_proba(X)[:, 1]
    if classes is None:
        return estimator.predict(X)
    raise TypeError(
        f"{type(estimator).__name__} ranks nothing: it has neither decision_function nor predict_proba; calibrate it, "
        "e.g. with sklearn.calibration.CalibratedClassifierCV, or pass a regressor"
    )
