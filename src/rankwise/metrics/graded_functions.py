"""The metrics as functions of scores and grades."""

from __future__ import annotations

from numpy.typing import ArrayLike

from rankwise.gains import Gain
from rankwise.metrics.ranking import as_metric


def ndcg(
    scores: ArrayLike,
    grades: ArrayLike,
    *,
    k: int | None = None,
    gain: Gain = "exp2",
    qid: ArrayLike | None = None,
    empty: str = "skip",
) -> float:
    """Compute the normalised discounted cumulative gain.

        NDCG = DCG / (DCG of the ranking by grades),   DCG = Σ_{places m ≤ k} G(grade)/log2(1 + m)

    Samples with equal scores share the mean of their gains, even if k cuts through them. This is the expectation over
    their orders and agrees with scikit-learn's `ndcg_score`.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Finite real numbers. The higher the score, the higher the sample is ranked.
    grades : array-like of shape (n,)
        Grades ≥ 0, or booleans for binary relevance. A query is empty if all its grades are 0.
    k : int, optional
        Last place that counts. By default all places count.
    gain : {"exp2", "linear"} or callable, default "exp2"
        Worth G of a grade: 2^grade − 1, as in LETOR and LightGBM; the grade itself; or a function of an array of grades
        that does not fall and is 0 for grade 0.
    qid : array-like of shape (n,), optional
        Query of each sample, as integers or strings in any order. The result is then the mean over queries. By default
        all samples form one query.
    empty : {"skip", "zero", "one", "error"}, default "skip"
        What to do with a query whose grades are all 0: leave it out of the mean ("skip"), count it as 0 ("zero") or as
        1 ("one", as LightGBM's NDCG does), or raise a `ValueError` ("error"). The choice changes the mean, so report
        it.

    Returns
    -------
    float
        Value from 0 to 1; larger is better. NaN if no query is left.

    Raises
    ------
    ValueError
        If a score or a grade is not finite, a grade is below 0, lengths differ, 2^grade is beyond float64, or a query
        is empty with empty="error".

    See Also
    --------
    expected_reciprocal_rank : Another metric for graded relevance.
    rankwise.NDCG : The loss 1 − NDCG.

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
    """Compute the expected reciprocal rank, ERR (Chapelle et al., 2009).

        ERR = Σ_{places m ≤ k} (1/m) R_m Π_{i < m} (1 − R_i),   R = (2^grade − 1)/2^max_grade

    A reader goes down the list and stops at a sample with probability R. ERR is the expected reciprocal of the place
    where the reader stops. Even the best order of a query does not reach 1. If samples have equal scores, the result is
    the exact expectation over their orders.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Finite real numbers. The higher the score, the higher the sample is ranked.
    grades : array-like of shape (n,)
        Grades ≥ 0, or booleans for binary relevance. A query is empty if all its grades are 0.
        For booleans, R of a positive is 1/2.
    k : int, optional
        Last place that counts. By default all places count.
    max_grade : float, optional
        Largest possible grade, such as 4 for MSLR. By default the largest in `grades`, over all queries. Pass it to
        compare values from different data.
    qid : array-like of shape (n,), optional
        Query of each sample, as integers or strings in any order. The result is then the mean over queries. By default
        all samples form one query.
    empty : {"skip", "zero", "one", "error"}, default "skip"
        What to do with a query whose grades are all 0: leave it out of the mean ("skip"), count it as 0 ("zero") or as
        1 ("one", as LightGBM's NDCG does), or raise a `ValueError` ("error"). The choice changes the mean, so report
        it.

    Returns
    -------
    float
        Value from 0 to 1; larger is better. NaN if no query is left.

    Raises
    ------
    ValueError
        If a score or a grade is not finite, a grade is below 0 or above `max_grade`, lengths differ, or a query is
        empty with empty="error".

    See Also
    --------
    ndcg : Another metric for graded relevance.
    reciprocal_rank : The reciprocal of the place of the first positive.

    Examples
    --------
    >>> expected_reciprocal_rank([0.9, 0.8, 0.7], [1, 0, 2])  # 1/4 + (1 − 1/4) · 3/4 · 1/3
    0.4375
    """
    return as_metric("err", k, max_grade=max_grade)(scores, grades, qid=qid, empty=empty)
