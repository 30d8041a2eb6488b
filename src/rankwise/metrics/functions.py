"""The metrics as functions of scores and binary relevance."""

from __future__ import annotations

from numpy.typing import ArrayLike

from rankwise.metrics.ranking import METRICS, as_metric


def average_precision(
    scores: ArrayLike,
    relevant: ArrayLike,
    *,
    k: int | None = None,
    qid: ArrayLike | None = None,
    empty: str = "skip",
) -> float:
    """Compute the average precision, the mean precision at the places of the positives.

        AP = (1/n_pos) Σ_steps p (P + p)/(T + t)

    Samples with equal scores form one step of the precision-recall curve: t samples, p of them positive, below T
    samples and P positives. This agrees with scikit-learn's `average_precision_score`.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Finite real numbers. The higher the score, the higher the sample is ranked.
    relevant : array-like of shape (n,)
        Which samples are positives: booleans, or grades ≥ 0 of which those above 0 are positives.
    k : int, optional
        Last place that counts. The sum ends there and is divided by min(n_pos, k). If a step is cut, its share counts.
        By default all places count.
    qid : array-like of shape (n,), optional
        Query of each sample, as integers or strings in any order. The result is then the mean over queries. By default
        all samples form one query.
    empty : {"skip", "zero", "one", "error"}, default "skip"
        What to do with a query without positives: leave it out of the mean ("skip"), count it as 0 ("zero") or as 1
        ("one", as LightGBM's NDCG does), or raise a `ValueError` ("error"). The choice changes the mean, so report it.

    Returns
    -------
    float
        Value from 0 to 1; larger is better. NaN if no query is left.

    Raises
    ------
    ValueError
        If a score or a grade is not finite, a grade is below 0, lengths differ, or a query is empty with empty="error".

    See Also
    --------
    ndcg : A metric for graded relevance.
    bootstrap_interval : A confidence interval of a metric.
    rankwise.AveragePrecision : The loss 1 − AP.

    Examples
    --------
    >>> average_precision([0.9, 0.8, 0.7, 0.1], [True, False, True, False])
    0.8333333333333333
    """
    return as_metric("ap", k)(scores, relevant, qid=qid, empty=empty)


def reciprocal_rank(
    scores: ArrayLike, relevant: ArrayLike, *, k: int | None = None, qid: ArrayLike | None = None, empty: str = "skip"
) -> float:
    """Compute the reciprocal of the place of the first positive.

    With `qid`, the mean over queries is the mean reciprocal rank, MRR. If samples have equal scores, the result is the
    expectation over their orders.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Finite real numbers. The higher the score, the higher the sample is ranked.
    relevant : array-like of shape (n,)
        Which samples are positives: booleans, or grades ≥ 0 of which those above 0 are positives.
    k : int, optional
        Last place that counts. The value is 0 if the first positive is beyond it. By default all places count.
    qid : array-like of shape (n,), optional
        Query of each sample, as integers or strings in any order. The result is then the mean over queries. By default
        all samples form one query.
    empty : {"skip", "zero", "one", "error"}, default "skip"
        What to do with a query without positives: leave it out of the mean ("skip"), count it as 0 ("zero") or as 1
        ("one", as LightGBM's NDCG does), or raise a `ValueError` ("error"). The choice changes the mean, so report it.

    Returns
    -------
    float
        Value from 0 to 1; larger is better. NaN if no query is left.

    Raises
    ------
    ValueError
        If a score or a grade is not finite, a grade is below 0, lengths differ, or a query is empty with empty="error".

    See Also
    --------
    expected_reciprocal_rank : A variant for graded relevance.
    rankwise.ReciprocalRank : The loss.

    Notes
    -----
    For a step of t samples with equal scores, p of them positive, below T negatives, the expectation is
    Σ_{r ≤ t−p} (1/(T + r + 1)) Prob(r negatives of the step are above its first positive).

    Examples
    --------
    >>> reciprocal_rank([0.9, 0.8, 0.8, 0.1], [False, True, False, True])  # half of 1/2 and of 1/3
    0.41666666666666663
    """
    return as_metric("mrr", k)(scores, relevant, qid=qid, empty=empty)


def auc(scores: ArrayLike, relevant: ArrayLike, *, qid: ArrayLike | None = None, empty: str = "skip") -> float:
    """Compute the area under the ROC curve.

    It is the fraction of pairs of a positive and a negative that are in order, with a tie counted as half:

        AUC = Σ_steps (t − p)(P + p/2) / (n_pos·n_neg)

    Samples with equal scores form one step of t samples, p of them positive, below P positives. This agrees with
    scikit-learn's `roc_auc_score`.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Finite real numbers. The higher the score, the higher the sample is ranked.
    relevant : array-like of shape (n,)
        Which samples are positives: booleans, or grades ≥ 0 of which those above 0 are positives.
    qid : array-like of shape (n,), optional
        Query of each sample, as integers or strings in any order. The result is then the mean over queries. By default
        all samples form one query.
    empty : {"skip", "zero", "one", "error"}, default "skip"
        What to do with a query without positives or without negatives: leave it out of the mean ("skip"), count it as 0
        ("zero") or as 1 ("one", as LightGBM's NDCG does), or raise a `ValueError` ("error"). The choice changes the
        mean, so report it.

    Returns
    -------
    float
        Value from 0 to 1; larger is better. NaN if no query is left.

    Raises
    ------
    ValueError
        If a score or a grade is not finite, a grade is below 0, lengths differ, or a query is empty with empty="error".

    See Also
    --------
    average_precision : A metric that puts more weight on the top of the ranking.
    rankwise.AUC : The loss 1 − AUC.

    Examples
    --------
    >>> auc([0.9, 0.8, 0.7, 0.1], [True, False, True, False])
    0.75
    """
    return METRICS["auc"](scores, relevant, qid=qid, empty=empty)


def f_measure(scores: ArrayLike, relevant: ArrayLike, *, qid: ArrayLike | None = None, empty: str = "skip") -> float:
    """Compute F₁ at the best threshold.

    It is the highest 2(P + p)/(T + t + n_pos) of all steps, where P + p of the T + t samples above the threshold are
    positive. Thresholds lie between different scores, as in scikit-learn's `precision_recall_curve`.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Finite real numbers. The higher the score, the higher the sample is ranked.
    relevant : array-like of shape (n,)
        Which samples are positives: booleans, or grades ≥ 0 of which those above 0 are positives.
    qid : array-like of shape (n,), optional
        Query of each sample, as integers or strings in any order. The result is then the mean over queries. By default
        all samples form one query.
    empty : {"skip", "zero", "one", "error"}, default "skip"
        What to do with a query without positives: leave it out of the mean ("skip"), count it as 0 ("zero") or as 1
        ("one", as LightGBM's NDCG does), or raise a `ValueError` ("error"). The choice changes the mean, so report it.

    Returns
    -------
    float
        Value from 0 to 1; larger is better. NaN if no query is left.

    Raises
    ------
    ValueError
        If a score or a grade is not finite, a grade is below 0, lengths differ, or a query is empty with empty="error".

    See Also
    --------
    average_precision : A metric over all thresholds.
    rankwise.FMeasure : The loss 1 − F₁.

    Examples
    --------
    >>> f_measure([0.9, 0.8, 0.7, 0.1], [True, False, True, False])
    0.8
    """
    return METRICS["f1"](scores, relevant, qid=qid, empty=empty)


def precision_at(
    scores: ArrayLike, relevant: ArrayLike, k: int, *, qid: ArrayLike | None = None, empty: str = "skip"
) -> float:
    """Compute the fraction of positives among the first k places.

    The number of positives is divided by k even if a query has fewer than k samples, as in TREC and LETOR. If samples
    have equal scores, the result is the expectation over their orders: a step of t samples that is cut at k counts with
    its share, p (k − T)/t.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Finite real numbers. The higher the score, the higher the sample is ranked.
    relevant : array-like of shape (n,)
        Which samples are positives: booleans, or grades ≥ 0 of which those above 0 are positives.
    k : int
        Last place that counts.
    qid : array-like of shape (n,), optional
        Query of each sample, as integers or strings in any order. The result is then the mean over queries. By default
        all samples form one query.
    empty : {"skip", "zero", "one", "error"}, default "skip"
        What to do with a query without positives: leave it out of the mean ("skip"), count it as 0 ("zero") or as 1
        ("one", as LightGBM's NDCG does), or raise a `ValueError` ("error"). The choice changes the mean, so report it.

    Returns
    -------
    float
        Value from 0 to 1; larger is better. NaN if no query is left.

    Raises
    ------
    ValueError
        If a score or a grade is not finite, a grade is below 0, lengths differ, or a query is empty with empty="error".

    See Also
    --------
    recall_at : The fraction of all positives that are among the first k places.
    rankwise.PrecisionAt : The loss.

    Examples
    --------
    >>> precision_at([0.9, 0.8, 0.8, 0.1], [True, True, False, True], k=2)
    0.75
    """
    return as_metric("precision", k)(scores, relevant, qid=qid, empty=empty)


def recall_at(
    scores: ArrayLike, relevant: ArrayLike, k: int, *, qid: ArrayLike | None = None, empty: str = "skip"
) -> float:
    """Compute the fraction of all positives that are among the first k places.

    It is 1 if k is at least the size of the query. If samples have equal scores, the result is the expectation over
    their orders.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Finite real numbers. The higher the score, the higher the sample is ranked.
    relevant : array-like of shape (n,)
        Which samples are positives: booleans, or grades ≥ 0 of which those above 0 are positives.
    k : int
        Last place that counts.
    qid : array-like of shape (n,), optional
        Query of each sample, as integers or strings in any order. The result is then the mean over queries. By default
        all samples form one query.
    empty : {"skip", "zero", "one", "error"}, default "skip"
        What to do with a query without positives: leave it out of the mean ("skip"), count it as 0 ("zero") or as 1
        ("one", as LightGBM's NDCG does), or raise a `ValueError` ("error"). The choice changes the mean, so report it.

    Returns
    -------
    float
        Value from 0 to 1; larger is better. NaN if no query is left.

    Raises
    ------
    ValueError
        If a score or a grade is not finite, a grade is below 0, lengths differ, or a query is empty with empty="error".

    See Also
    --------
    precision_at : The fraction of positives among the first k places.

    Examples
    --------
    >>> recall_at([0.9, 0.8, 0.8, 0.1], [True, True, False, True], k=2)
    0.5
    """
    return as_metric("recall", k)(scores, relevant, qid=qid, empty=empty)
