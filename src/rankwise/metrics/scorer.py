"""The metrics as scikit-learn scorers. scikit-learn is imported only when it asks for the routing of qid."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.inputs import as_array
from rankwise.metrics.ranking import Metric, MetricLike, as_metric, check_empty


def make_ranking_scorer(metric: MetricLike = "ap", *, empty: str = "skip", one_query: bool = False) -> RankingScorer:
    """A scorer(estimator, X, y, qid=qid) for cross_val_score, GridSearchCV and the like: the mean over queries.

    scikit-learn passes qid to a scorer only if its metadata routing is on and the scorer asks for it:

        sklearn.set_config(enable_metadata_routing=True)
        scorer = make_ranking_scorer("ndcg@10").set_score_request(qid=True)
        cross_val_score(model, X, y, cv=GroupKFold(5), scoring=scorer, params={"qid": qid, "groups": qid})

    A scorer that gets no qid refuses to score, unless all samples are one query and it was told so: what a fold leaves
    out, ranked as one list, says nothing of the queries in it.

    Parameters
    ----------
    metric : str or Metric
        A name, such as "ap" or "ndcg@10": see `METRICS`.
    empty : {"skip", "zero", "one", "error"}
        A query that the metric cannot judge is left out of the mean, counts as 0, counts as 1, or is refused.
    one_query : bool
        Whether all samples that are scored together are one query. Then no qid is asked for.

    Returns
    -------
    RankingScorer
        Larger is better.

    Raises
    ------
    ValueError
        If the metric or `empty` is unknown. From the scorer: if there is no qid, or one in spite of one_query=True.

    Examples
    --------
    >>> make_ranking_scorer("ndcg@10")
    make_ranking_scorer('ndcg@10', empty='skip')
    >>> make_ranking_scorer("ap", one_query=True)
    make_ranking_scorer('ap', empty='skip', one_query=True)
    """
    return RankingScorer(metric, empty, one_query)


class RankingScorer:
    """Scores by decision_function, else the second column of predict_proba, else predict, judged by a metric.

    Positives are y == estimator.classes_[1]. An estimator without classes_ has y > 0 for positives; for "ndcg" and
    "err", y itself for grades. Parameters as in `make_ranking_scorer`.
    """

    def __init__(self, metric: MetricLike = "ap", empty: str = "skip", one_query: bool = False) -> None:
        check_empty(empty)
        if not isinstance(one_query, bool | np.bool_):
            raise TypeError(f"one_query must be True or False, got {one_query!r}; queries are passed as qid")
        self.metric: Metric = as_metric(metric)
        self.empty = empty
        self._qid_request: bool | str | None = False if one_query else None

    @property
    def one_query(self) -> bool:
        """Whether all samples are one query, so that no qid is asked for."""
        return self._qid_request is False

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, qid: ArrayLike | None = None) -> float:
        """The metric of the estimator's scores of X: the mean over the queries of qid, or the value of the one query.

        Parameters
        ----------
        estimator : estimator
            Fitted: a classifier of two classes, or a regressor.
        X : array-like of shape (n, d)
            Samples, as the estimator takes them.
        y : array-like of shape (n,)
            Labels, or grades for a regressor.
        qid : array-like of shape (n,), optional
            The query of each sample. It must be given, unless one_query=True.

        Returns
        -------
        float
            Larger is better; NaN if no query can be judged.

        Raises
        ------
        ValueError
            If qid is missing, or given in spite of one_query=True.
        """
        if qid is None and not self.one_query:
            raise ValueError(
                f"{self!r} got no qid, and would rank all samples as one query. scikit-learn passes it after "
                "sklearn.set_config(enable_metadata_routing=True), with scorer.set_score_request(qid=True) and "
                f"params={{'qid': qid}}; if all samples are one query, say make_ranking_scorer({self.metric.name!r}, "
                "one_query=True)"
            )
        if qid is not None and self.one_query:
            raise ValueError(f"{self!r} takes all samples as one query and got qid; leave out one of the two")
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
        """Ask scikit-learn to pass qid to this scorer; it needs sklearn.set_config(enable_metadata_routing=True).

        Parameters
        ----------
        qid : bool, str or None
            True: pass it. A name: pass that metadata as qid. False: do not, for all samples are one query, as with
            one_query=True. None: refuse to be given one.

        Returns
        -------
        RankingScorer
            Itself.

        Raises
        ------
        RuntimeError
            If metadata routing is switched off.
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
        f"{type(estimator).__name__} ranks nothing: it has neither decision_function nor predict_proba; calibrate it, "
        "e.g. with sklearn.calibration.CalibratedClassifierCV, or pass a regressor"
    )
