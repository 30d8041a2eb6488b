"""The metrics as functions of scores and relevance, or grades."""

from __future__ import annotations

from numpy.typing import ArrayLike

from rankwise.gains import Gain
from rankwise.metrics.ranking import METRICS, as_metric


def average_precision(
    scores: ArrayLike,
    relevant: ArrayLike,
    *,
    k: int | None = None,
    qid: ArrayLike | None = None,
    empty: str = "skip",
) -> float:
    """The mean over positives of the precision down to them: AP = (1/n_pos) Σ_steps p (P + p)/(T + t).

    For a step of t samples of equal score, p of them positive, T samples and P positives are above it. So ties are one
    step of the precision-recall curve, as in scikit-learn's average_precision_score.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Real numbers; larger is ranked higher.
    relevant : array-like of shape (n,)
        Booleans, or grades of at least 0, of which those above 0 are relevant.
    k : int, optional
        The last place that counts: the sum ends there, and is over min(n_pos, k). Of a step that is cut, its share.
    qid : array-like of shape (n,), optional
        The query of each sample, in any order; the mean over queries is returned.
    empty : {"skip", "zero", "one", "error"}
        A query without positives is left out of the mean (and NaN is returned if none is left), counts as 0, counts as
        1 (as in LightGBM's NDCG; means rise), or is refused. Say which, with every mean you publish.

    Returns
    -------
    float
        From 0 to 1; larger is better.

    Raises
    ------
    ValueError
        If a score or a grade is not finite, a grade is below 0, lengths differ, or a query is empty with empty="error".

    Examples
    --------
    >>> average_precision([0.9, 0.8, 0.7, 0.1], [True, False, True, False])
    0.8333333333333333
    """
    return as_metric("ap", k)(scores, relevant, qid=qid, empty=empty)


def ndcg(
    scores: ArrayLike,
    grades: ArrayLike,
    *,
    k: int | None = None,
    gain: Gain = "exp2",
    qid: ArrayLike | None = None,
    empty: str = "skip",
) -> float:
    """DCG / (DCG of the ranking by grades), DCG = Σ_{places m ≤ k} G(grade)/log2(1 + m).

    Samples of equal score share the mean of their gains, k cutting through them or not, as in scikit-learn's
    ndcg_score: this is the expectation over their orders.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Real numbers; larger is ranked higher.
    grades : array-like of shape (n,)
        At least 0; or booleans, for binary relevance. A query whose grades are all 0 is empty.
    k : int, optional
        The last place that counts; all if None or beyond the query.
    gain : {"exp2", "linear"} or callable
        G: 2^grade − 1, as in LETOR and LightGBM; the grade itself; or a function of an array of grades, which must not
        fall and must be 0 for 0.
    qid, empty
        As in `average_precision`.

    Returns
    -------
    float
        From 0 to 1; larger is better.

    Raises
    ------
    ValueError
        As in `average_precision`; also if 2^grade is beyond float64.

    Examples
    --------
    >>> round(ndcg([0.9, 0.8, 0.7, 0.1], [2, 0, 3, 1], k=3), 4)
    0.692
    >>> round(ndcg([0.9, 0.8, 0.7, 0.1], [2, 0, 3, 1], k=3, gain="linear"), 4)
    0.735
    """
    return as_metric("ndcg", k, gain=gain)(scores, grades, qid=qid, empty=empty)


def expected_reciprocal_rank(
    scores: ArrayLike,
    grades: ArrayLike,
    *,
    k: int | None = None,
    max_grade: float | None = None,
    qid: ArrayLike | None = None,
    empty: str = "skip",
) -> float:
    """ERR = Σ_{places m ≤ k} (1/m) R_m Π_{i < m} (1 − R_i), R = (2^grade − 1)/2^max_grade (Chapelle et al., 2009).

    The expected reciprocal of the place at which a reader is satisfied, who goes down the list. The best order of a
    query does not reach 1. Of samples with equal score, the expectation over their orders, exactly.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Real numbers; larger is ranked higher.
    grades : array-like of shape (n,)
        At least 0; or booleans, for which R is 1/2. A query whose grades are all 0 is empty.
    k : int, optional
        The last place that counts.
    max_grade : float, optional
        The largest grade there can be, 4 for MSLR. By default the largest in `grades`, of all queries; pass it where
        values of several sets of samples are compared.
    qid, empty
        As in `average_precision`.

    Returns
    -------
    float
        From 0 to 1; larger is better.

    Raises
    ------
    ValueError
        As in `average_precision`; also if a grade is above max_grade.

    Examples
    --------
    >>> expected_reciprocal_rank([0.9, 0.8, 0.7], [1, 0, 2])  # 1/4 + (1 − 1/4) · 3/4 · 1/3
    0.4375
    """
    return as_metric("err", k, max_grade=max_grade)(scores, grades, qid=qid, empty=empty)


def reciprocal_rank(
    scores: ArrayLike, relevant: ArrayLike, *, k: int | None = None, qid: ArrayLike | None = None, empty: str = "skip"
) -> float:
    """1/(place of the first positive), or 0 where that is beyond k; with qid the mean over queries, MRR.

    Of samples with equal score, the expectation over their orders: Σ_{r ≤ t−p} (1/(T + r + 1)) Prob(r of the step's
    negatives are above its first positive). A query without positives is empty.

    Parameters
    ----------
    scores, relevant, qid, empty
        As in `average_precision`.
    k : int, optional
        The last place that counts.

    Returns
    -------
    float
        From 0 to 1; larger is better.

    Raises
    ------
    ValueError
        As in `average_precision`.

    Examples
    --------
    >>> reciprocal_rank([0.9, 0.8, 0.8, 0.1], [False, True, False, True])  # half of 1/2 and of 1/3
    0.41666666666666663
    """
    return as_metric("mrr", k)(scores, relevant, qid=qid, empty=empty)


def auc(scores: ArrayLike, relevant: ArrayLike, *, qid: ArrayLike | None = None, empty: str = "skip") -> float:
    """The fraction of pairs of a positive and a negative that are in order; a tie is half: Σ_steps (t − p)(P + p/2).

    Over n_pos·n_neg; as scikit-learn's roc_auc_score. A query without positives or without negatives is empty.

    Parameters
    ----------
    scores, relevant, qid, empty
        As in `average_precision`.

    Returns
    -------
    float
        From 0 to 1; larger is better.

    Raises
    ------
    ValueError
        As in `average_precision`.

    Examples
    --------
    >>> auc([0.9, 0.8, 0.7, 0.1], [True, False, True, False])
    0.75
    """
    return METRICS["auc"](scores, relevant, qid=qid, empty=empty)


def f_measure(scores: ArrayLike, relevant: ArrayLike, *, qid: ArrayLike | None = None, empty: str = "skip") -> float:
    """F₁ at the best threshold: the highest 2(P + p)/(T + t + n_pos) of all steps.

    Thresholds lie between different scores, as in scikit-learn's precision_recall_curve. A query without positives is
    empty.

    Parameters
    ----------
    scores, relevant, qid, empty
        As in `average_precision`.

    Returns
    -------
    float
        From 0 to 1; larger is better.

    Examples
    --------
    >>> f_measure([0.9, 0.8, 0.7, 0.1], [True, False, True, False])
    0.8
    """
    return METRICS["f1"](scores, relevant, qid=qid, empty=empty)


def precision_at(
    scores: ArrayLike, relevant: ArrayLike, k: int, *, qid: ArrayLike | None = None, empty: str = "skip"
) -> float:
    """The positives among the first k, over k, also for queries of fewer than k samples, as in TREC and LETOR.

    Of samples with equal score, the expectation over their orders: a step cut at k gives its share, p (k − T)/t. A
    query without positives is empty, and not 0, unless empty="zero".

    Parameters
    ----------
    scores, relevant, qid, empty
        As in `average_precision`.
    k : int
        The last place that counts.

    Returns
    -------
    float
        From 0 to 1; larger is better.

    Raises
    ------
    ValueError
        As in `average_precision`.

    Examples
    --------
    >>> precision_at([0.9, 0.8, 0.8, 0.1], [True, True, False, True], k=2)
    0.75
    """
    return as_metric("precision", k)(scores, relevant, qid=qid, empty=empty)


def recall_at(
    scores: ArrayLike, relevant: ArrayLike, k: int, *, qid: ArrayLike | None = None, empty: str = "skip"
) -> float:
    """The positives among the first k, over all n_pos of the query; 1 where k is beyond the query.

    Of samples with equal score, the expectation over their orders, as in `precision_at`. A query without positives is
    empty.

    Parameters
    ----------
    scores, relevant, qid, empty
        As in `average_precision`.
    k : int
        The last place that counts.

    Returns
    -------
    float
        From 0 to 1; larger is better.

    Raises
    ------
    ValueError
        As in `average_precision`.

    Examples
    --------
    >>> recall_at([0.9, 0.8, 0.8, 0.1], [True, True, False, True], k=2)
    0.5
    """
    return as_metric("recall", k)(scores, relevant, qid=qid, empty=empty)
