"""Arguments that many functions share, described once.

A line `{scores}` of a docstring, alone but for its indentation, is replaced by the text of that name, which may hold
whole sections. `{arguments}` and the like stand for all arguments, by the signature of the function.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any, TypeVar

Thing = TypeVar("Thing")

# As they stand in a docstring. A name in brackets is that of the text where it is not that of the argument.
_ENTRIES = """\
scores : array-like of shape (n,)
    Finite real numbers. The higher the score, the higher the sample is ranked.
[graded] relevant : array-like of shape (n,)
    Which samples are positives: booleans, or 0 and 1. Other numbers ≥ 0 are grades.
[binary] relevant : array-like of shape (n,)
    Which samples are positives: booleans, or 0 and 1. There must be positives and negatives.
surrogate : Surrogate
    The surrogate, such as `Hinge()`, `Smooth(width=0.5)`, `ErrorDriven()`, or one of your own.
loss : str or Loss, default "ap"
    Name of a loss: "ap", "ndcg", "mrr", "auc", "zero-one", or one of the first k places, such as "ndcg@10",
    "ap@100", "mrr@10", "precision@10" and "recall@10"; or a `Loss`, such as a `DiscountedLoss` of your own.
qid : array-like of shape (n,), optional
    Query of each sample, as integers or strings in any order. By default all samples form one query.
n_threads : int, default 1
    Number of threads; −1 uses all processors. Results do not depend on it.
empty : {"zero", "skip", "error"}, default "zero"
    What to do with a query that has nothing to rank: no positives, no negatives, or only one grade. "zero"
    counts it as 0, "skip" leaves it out of the mean, and "error" raises a `ValueError`.
width : float, default 1.0
    Half the width of the ramp by which scores are compared, in units of the scores.
interpolate : bool, default True
    Whether the precision D(p + c)/D(p) of a positive is replaced by the highest among the positives that score
    no higher, if the discount is positive.
scale : float, default 1.0
    Weight of the loss Δ against the scores. It may be negative only with method="dynamic" or "exhaustive".
method : str, default "auto"
    Method that finds the most violating ranking. "auto" chooses the fastest exact one. The others are listed in
    `rankwise.inference.METHODS`; the exact ones agree in value. "dynamic", "chakrabarti" and "exhaustive" also
    take losses that are not QS-suitable.
cutoff : int, optional
    Only for method="chakrabarti": the discount counts as 0 from this place on.
gain : {"exp2", "linear"} or callable, optional
    Worth G(y) of a grade y: 2^y − 1, y itself, or a non-decreasing function with G(0) = 0.
k : int, optional
    Last place that counts. By default all places count.
max_grade : float, optional
    Largest possible grade, such as 4 for MSLR. By default the largest given, over all queries.
[options] **options : Any
    Other options of a subclass, which `replace` keeps.
[kth] k : int or ndarray
    Numbers of positives from the top, from 1.
m : float or ndarray
    Places, from 1.
n : int
    Last place.
i : int or ndarray
    Interleaving ranks, from 1 to n_pos.
j : int or ndarray
    Numbers of negatives from the top, from 1 to n_neg.
above : array-like of shape (..., n_pos)
    Number of negatives above each positive.
[counts_of_positives] n_pos : int or ndarray
    Numbers of positives.
[counts_of_negatives] n_neg : int or ndarray
    Numbers of negatives.
n_pos : int
    Number of positives P, at least 1.
n_neg : int
    Number of negatives N.
[truth] relevant : array-like of shape (n,)
    Booleans, or grades ≥ 0. Metrics of binary relevance take samples of a grade above 0 as positives.
grades : array-like of shape (n,)
    Grades ≥ 0, or booleans for binary relevance. A query is empty if all its grades are 0.
metric : str or Metric
    Name of a metric, such as "ap" or "ndcg@10" (see `METRICS`), or a `Metric`.
one_query : bool, default False
    Whether all samples that are scored together form one query. Then no qid is needed.
[empty_metric] empty : {"skip", "zero", "one", "error"}, default "skip"
    What to do with a query that the metric cannot judge, usually for lack of positives: leave it out ("skip"),
    count it as 0 ("zero") or as 1 ("one", as LightGBM's NDCG does), or raise a `ValueError` ("error").
level : float, default 0.95
    Level of the interval, between 0 and 1.
seed : int, Generator or None, default 0
    Seed of the random resamples and sign flips.
counts : array-like of shape (draws, n)
    How often each sample is drawn, one row per resample.
scores_a : array-like of shape (n,)
    Scores by model A.
scores_b : array-like of shape (n,)
    Scores of the same samples by model B.
n_flips : int, default 10000
    Largest number of sign patterns in the sign-flip test.
ties : {"worst", "best"}, default "worst"
    Whether a positive and a negative with equal scores count as misranked ("worst") or not ("best"). With
    grades, the lower grade comes first or last.
n_resamples : int, default 1000
    Number of bootstrap resamples.
[X_seen] X : array-like or sparse matrix of shape (n_samples, n_features)
    Samples, with the features that were seen during `fit`.
y : array-like of shape (n_samples,)
    Labels of two classes, of which the greater one is relevant; or, if `qid` is given, grades: more than two
    different numbers, all at least 0. With grades, classes_ is 0 and 1, where 1 means above the lowest grade.
[qid_of] qid : array-like of shape (n_samples,), optional
    Query of each sample, in any order: a group of samples that is ranked on its own. By default all samples form
    one query. A query whose samples are all of one class, or of one grade, has nothing to rank and is left out.
query_weight : array-like of shape (n_samples,), optional
    Weight of each sample's query in the mean of the loss, equal within a query. By default all are equal.
[X_unscaled] X : array-like or sparse matrix of shape (n_samples, n_features)
    Samples; float32, sparse and memory-mapped are used as they are. Scale features of very different scales.
[svm_method] method : str, default "auto"
    Algorithm that finds the most violating ranking, as in `rankwise.structured_hinge`; of use in benchmarks.
tol : float, default 1e-3
    Relative duality gap, (primal − dual)/primal, at which the solver stops.
max_iter : int, default 10000
    Maximum number of iterations of the solver. Raise it after a ConvergenceWarning.
[svm_scale] scale : float, default 1.0
    Weight of the loss against the margin within the structured hinge. Few users need to change it.
[svm_surrogate] surrogate : Surrogate, optional
    A convex surrogate of your own that is never negative, in place of `Hinge(scale, method)`.
fit_intercept : bool, default True
    Whether `predict` gets a threshold of its own; if False, the intercept is 0. Rankings do not depend on it.
    The intercept is set after training, where F1 on the training samples is highest. Only "zero-one" depends on
    the intercept and learns it, almost without penalty.
verbose : int, default 0
    If 1, show progress on the terminal.
coef_ : ndarray of shape (1, n_features)
    Coefficients for the features as passed to `fit`.
intercept_ : ndarray of shape (1,)
    Intercept, which sets the threshold of `predict`.
classes_ : ndarray of shape (2,)
    The two class labels. The greater label, classes_[1], is the relevant (positive) class.
objective_ : float
    Value of the objective at the solution, an upper bound of its minimum.
dual_ : float
    Lower bound of the minimum of the objective.
gap_ : float
    Certified relative duality gap, (objective_ − dual_)/objective_. The solution is at most this much worse
    than the optimum.
converged_ : bool
    Whether gap_ is at most `tol`.
n_iter_ : int
    Number of iterations of the solver.
[svm_history_] history_ : dict of str to ndarray
    Progress of the solver with one entry per iteration: "iteration", "primal", "dual", "gap", "planes" (in
    use), "calls" (queries solved) and "seconds".
[svm_timing_] timing_ : dict of str to float
    Seconds that `fit` took: "total", "inference" (the search of most violating rankings) and "products"
    (products with X). "calls" counts how many queries were searched.
n_features_in_ : int
    Number of features seen during `fit`.
feature_names_in_ : ndarray of shape (d,)
    Names of the features seen during `fit`. Only there if X was a dataframe whose column names are all strings.
"""
# Several texts under one name.
_GROUPS = {
    "svm_problem": (
        "svm_method",
        "tol",
        "max_iter",
        "svm_scale",
        "svm_surrogate",
        "fit_intercept",
        "n_threads",
        "verbose",
    ),
    "of_samples": ("y", "qid_of", "query_weight"),
    "learnt": ("coef_", "intercept_", "classes_"),
    "bounds": ("objective_", "dual_", "gap_", "converged_", "n_iter_"),
    "seen": ("n_features_in_", "feature_names_in_"),
}
_PARAMETERS = """\
Parameters
----------
%s"""
_JUDGING = f"""{_PARAMETERS}

Returns
-------
float
    Value from 0 to 1; larger is better. NaN if no query is left.

Raises
------
ValueError
    If a score or a grade is not valid, lengths differ, or a query is empty with empty="error".

See Also
--------
as_metric : Get a metric by name.
bootstrap_interval : A confidence interval of a metric."""
_EVALUATING = f"""{_PARAMETERS}

Returns
-------
Result
    `value` (or its mean over queries), `gradient` of shape (n,), `loss` (Δ of the most violating ranking), and
    `per_query` if `qid` is given.

Raises
------
ValueError
    If a score is not finite, lengths differ, an option is not valid, or the loss cannot be used in this way."""
_SOLVING = """\
Parameters
----------
scores : ndarray of shape (n,)
    Scores, query after query, in float32 or float64.
queries : Queries
    The queries.
loss : Loss
    The loss, as `accepts` returns it.
n_threads : int, default 1
    Number of threads. Results must not depend on it.

Returns
-------
Solved
    Value and loss of each query, 0 if it has nothing to rank, and the gradient of the sum of values."""
_VALUES = f"""{_PARAMETERS}

Returns
-------
float, ndarray or tuple of them
    A value for each."""
# Sections by the signature of a function: their text, and the names of texts that are not those of the arguments;
# packages may add their own.
BY_SIGNATURE = {
    "arguments": (_PARAMETERS, {"relevant": "graded"}),
    "arguments_of_one_query": (_PARAMETERS, {"relevant": "binary"}),
    "arguments_of_metrics": (_PARAMETERS, {"relevant": "truth", "empty": "empty_metric"}),
    "judging": (_JUDGING, {"relevant": "truth", "empty": "empty_metric"}),
    "evaluating": (_EVALUATING, {"relevant": "graded"}),
    "values": (_VALUES, {"k": "kth", "n_pos": "counts_of_positives", "n_neg": "counts_of_negatives"}),
}


def read_entries(entries: str) -> dict[str, str]:
    """Return the texts by name."""
    found = {}
    for entry in re.split(r"\n(?=\S)", entries.strip()):
        name, text = re.fullmatch(r"(?:\[(\w+)\] )?(.*)", entry, re.DOTALL).groups()  # type: ignore[union-attr]
        found[name or text.partition(" : ")[0]] = text
    return found


# Texts by name; packages may add their own.
SHARED: dict[str, str] = read_entries(_ENTRIES)
SHARED |= {name: "\n".join(SHARED[part] for part in parts) for name, parts in _GROUPS.items()}
SHARED["solving"] = _SOLVING
_PLACE = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)


def documented(thing: Thing) -> Thing:
    """Fill the shared texts into the docstring of a function, or of a class and its own methods.

    A method without a docstring takes that of the method that it overrides.
    """
    _fill(thing)
    for name, value in vars(thing).items() if isinstance(thing, type) else ():
        if name.startswith("_") or not (callable(value) or isinstance(value, property)):
            continue
        if not value.__doc__:
            value.__doc__ = getattr(getattr(super(thing, thing), name, None), "__doc__", None)
        _fill(value)
    return thing


def _fill(target: Any) -> None:
    """Fill the texts into one docstring."""

    def text_of(found: re.Match[str]) -> str:
        indent, name = found.groups()
        text = _by_signature(target, *BY_SIGNATURE[name]) if name in BY_SIGNATURE else SHARED[name]
        return textwrap.indent(text, indent)

    if isinstance(getattr(target, "__doc__", None), str) and "{" in target.__doc__:
        target.__doc__ = _PLACE.sub(text_of, target.__doc__)


def _by_signature(function: Any, text: str, renamed: dict[str, str]) -> str:
    entries = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "self":
            continue
        head, _, rest = SHARED[renamed.get(name, name)].partition("\n")
        if parameter.default is not None:  # the argument is not optional, or the head has its default
            head, rest = head.replace(", optional", ""), re.sub(r"\s+By\s+default[^.]*\.", "", rest)
        if isinstance(parameter.default, str) and "default" not in head:
            head += f', default "{parameter.default}"'
        entries.append(f"{head}\n{rest}")
    return text % "\n".join(entries)
