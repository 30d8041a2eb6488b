"""Arguments that many functions share, described once.

A line `{scores}` of a docstring, alone but for its indentation, is replaced by the text of that name, which may hold
whole sections. `{judging}` and `{evaluating}` stand for those of a metric and of a surrogate as a function: its
parameters, by its signature, what it returns, and what it raises.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any, TypeVar

__all__ = ["SHARED", "documented", "entry"]

Thing = TypeVar("Thing")

# Sections.
_SOLVING = """\
Parameters
----------
scores : ndarray of shape (n,)
    Scores, query after query, in float32 or float64.
queries : Queries
    The queries.
%s
n_threads : int, default 1
    Number of threads. Results must not depend on it.

Returns
-------
Solved
    Value and loss of each query, 0 if it has nothing to rank, and the gradient of the sum of values."""
_SOFT_COUNTS = """\
Parameters
----------
counts : SoftCounts
    Soft counts of the positives of queries.

Returns
-------
value : ndarray of shape (n_pos,)
    What each positive adds to the loss of its query.
slope : ndarray of shape (n_pos,)
    Derivative of the loss in each soft count c_k."""
_STEPS = """\
Parameters
----------
i, j : array-like of int
    Interleaving ranks, 1 ≤ i ≤ n_pos, and numbers of negatives from the top, 1 ≤ j ≤ n_neg. They broadcast.
n_pos, n_neg : int
    Numbers of positives and of negatives.

Returns
-------
ndarray of float
    The steps, in the broadcast shape of `i` and `j`."""
_ARGUMENTS = """\
Parameters
----------
%s"""
_JUDGING = """\
Parameters
----------
%s

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
per_query : The values of each query.
bootstrap_interval : A confidence interval of a metric."""
_EVALUATING = """\
Parameters
----------
%s

Returns
-------
Result
    `value` (or its mean over queries), `gradient` of shape (n,), `loss` (Δ of the most violating ranking), and
    `per_query` if `qid` is given.

Raises
------
ValueError
    If a score is not finite, lengths differ, an option is not valid, or the loss cannot be used in this way."""

# Name of a text → (the head of the entry, what it says).
_ENTRIES: dict[str, tuple[str, str]] = {
    "scores": (
        "scores : array-like of shape (n,)",
        "Finite real numbers. The higher the score, the higher the sample is ranked.",
    ),
    # losses
    "graded": (
        "relevant : array-like of shape (n,)",
        "Which samples are positives: booleans, or 0 and 1. Other numbers ≥ 0 are grades.",
    ),
    "binary": (
        "relevant : array-like of shape (n,)",
        "Which samples are positives: booleans, or 0 and 1. There must be positives and negatives.",
    ),
    "surrogate": (
        "surrogate : Surrogate",
        "The surrogate, such as `Hinge()`, `Smooth(width=0.5)`, `ErrorDriven()`, or one of your own.",
    ),
    "loss": (
        'loss : str or Loss, default "ap"',
        'Name of a loss, "ap", "ndcg", "mrr", "auc" or "zero-one"; a loss of the first k places, such as '
        '"ndcg@10", "ap@100", "mrr@10" or "precision@10"; or a `Loss`, such as a `DiscountedLoss` of your own.',
    ),
    "qid": (
        "qid : array-like of shape (n,), optional",
        "Query of each sample, as integers or strings in any order. The result is then the mean over queries. By "
        "default all samples form one query.",
    ),
    "n_threads": (
        "n_threads : int, default 1",
        "Number of threads; −1 uses all processors. Results do not depend on it.",
    ),
    "empty": (
        'empty : {"zero", "skip", "error"}, default "zero"',
        "What to do with a query that has nothing to rank: no positives, no negatives, or only one grade. "
        '"zero" counts it as 0, "skip" leaves it out of the mean, and "error" raises a `ValueError`.',
    ),
    "width": (
        "width : float, default 1.0",
        "Half the width of the ramp by which scores are compared, in units of the scores. Pairs whose scores differ by "
        "less are compared softly.",
    ),
    "interpolate": (
        "interpolate : bool, default True",
        "Whether the precision D(p + c)/D(p) of a positive is replaced by the highest among the positives that score "
        'no higher. It has no effect for a loss whose discount is not positive, such as "auc".',
    ),
    "scale": (
        "scale : float, default 1.0",
        'Weight of the loss Δ against the scores. It may be negative only with method="dynamic" or "exhaustive".',
    ),
    "method": (
        'method : str, default "auto"',
        'Method that finds the most violating ranking. "auto" chooses the fastest exact one. The others are listed in '
        '`rankwise.inference.METHODS`; the exact ones agree in value. "dynamic", "chakrabarti" and "exhaustive" also '
        "take losses that are not QS-suitable.",
    ),
    "cutoff": (
        "cutoff : int, optional",
        'Only for method="chakrabarti": the discount counts as 0 from this place on.',
    ),
    "gain": (
        'gain : {"exp2", "linear"} or callable, optional',
        "Worth G(y) of a grade y: 2^y − 1, y itself, or a non-decreasing function with G(0) = 0.",
    ),
    "k": ("k : int, optional", "Last place that counts. By default all places count."),
    "max_grade": (
        "max_grade : float, optional",
        "Largest possible grade, such as 4 for MSLR. By default the largest given, over all queries. Pass it to "
        "compare values from different data.",
    ),
    "options": ("**options : Any", "Other options of a subclass, which `replace` keeps."),
    # the conditions of a loss
    "n_pos": ("n_pos : int", "Number of positives P, at least 1."),
    "n_neg": ("n_neg : int", "Number of negatives N."),
    # metrics
    "relevant": (
        "relevant : array-like of shape (n,)",
        "Which samples are positives: booleans, or grades ≥ 0 of which those above 0 are positives.",
    ),
    "truth": (
        "relevant : array-like of shape (n,)",
        "Booleans, or grades ≥ 0. Metrics of binary relevance take samples of a grade above 0 as positives.",
    ),
    "grades": (
        "grades : array-like of shape (n,)",
        "Grades ≥ 0, or booleans for binary relevance. A query is empty if all its grades are 0.",
    ),
    "metric": (
        "metric : str or Metric",
        'Name of a metric, such as "ap" or "ndcg@10" (see `METRICS`), or a `Metric`.',
    ),
    "metric_ap": (
        'metric : str or Metric, default "ap"',
        'Name of a metric, such as "ap" or "ndcg@10" (see `METRICS`), or a `Metric`.',
    ),
    "one_query": (
        "one_query : bool, default False",
        "Whether all samples that are scored together form one query. Then no qid is needed.",
    ),
    "qid_each": (
        "qid : array-like of shape (n,), optional",
        "Query of each sample, as integers or strings in any order. By default all samples form one query.",
    ),
    "empty_metric": (
        'empty : {"skip", "zero", "one", "error"}, default "skip"',
        'What to do with a query that the metric cannot judge, usually for lack of positives: leave it out ("skip"), '
        'count it as 0 ("zero") or as 1 ("one", as LightGBM\'s NDCG does), or raise a `ValueError` ("error"). The '
        "choice changes the mean, so report it.",
    ),
    "level": ("level : float, default 0.95", "Level of the interval, between 0 and 1."),
    "seed": ("seed : int, Generator or None, default 0", "Seed of the random resamples and sign flips."),
    "counts": ("counts : array-like of shape (draws, n)", "How often each sample is drawn, one row per resample."),
    "scores_a": ("scores_a : array-like of shape (n,)", "Scores by model A."),
    "scores_b": ("scores_b : array-like of shape (n,)", "Scores of the same samples by model B."),
    "n_flips": ("n_flips : int, default 10000", "Largest number of sign patterns in the sign-flip test."),
    "ties": (
        'ties : {"worst", "best"}, default "worst"',
        'Whether a positive and a negative with equal scores count as misranked ("worst") or not ("best"). With '
        "grades, the lower grade comes first or last.",
    ),
    "n_resamples": ("n_resamples : int, default 1000", "Number of bootstrap resamples."),
    # linear rankers
    "X_seen": (
        "X : array-like or sparse matrix of shape (n_samples, n_features)",
        "Samples, with the features that were seen during `fit`.",
    ),
    "y": (
        "y : array-like of shape (n_samples,)",
        "Labels of two classes, of which the greater one is relevant. If `qid` is given, y may also hold grades: more "
        "than two different numbers, all at least 0. With grades, classes_ is 0 and 1, where 1 means above the lowest "
        "grade.",
    ),
    "qid_of": (
        "qid : array-like of shape (n_samples,), optional",
        "Query of each sample, in any order. A query is a group of samples that is ranked on its own, such as the "
        "documents found for one search. By default all samples form one query. A query whose samples are all of one "
        "class, or of one grade, has nothing to rank and is left out.",
    ),
    "query_weight": (
        "query_weight : array-like of shape (n_samples,), optional",
        "Weight of each sample's query in the mean of the loss. It must be the same for all samples of a query. By "
        "default all queries have the same weight.",
    ),
    "X_unscaled": (
        "X : array-like or sparse matrix of shape (n_samples, n_features)",
        "Samples. Data in float32, sparse matrices and memory-mapped arrays are used without conversion. Scale the "
        "features first if their scales differ much.",
    ),
    "solver": (
        'solver : {"auto", "cutting-plane", "frank-wolfe", "subgradient"}, default "auto"',
        'Algorithm for the convex problem. All of them find the same optimum. "auto" is "cutting-plane", which was the '
        "fastest in all our measurements.",
    ),
    "svm_method": (
        'method : str, default "auto"',
        "Algorithm that finds the most violating ranking, as in `rankwise.structured_hinge`. The result is the same "
        'for all exact methods, so "auto" is the right choice except in benchmarks.',
    ),
    "tol": (
        "tol : float, default 1e-3",
        "Relative duality gap, (primal − dual)/primal, at which the solver stops. 1e-3 means that the objective is at "
        "most 0.1 % above its minimum.",
    ),
    "max_iter": (
        "max_iter : int, default 10000",
        "Maximum number of iterations of the solver. Raise it after a ConvergenceWarning.",
    ),
    "svm_scale": (
        "scale : float, default 1.0",
        "Weight of the loss against the margin within the structured hinge. Few users need to change it.",
    ),
    "fit_intercept": (
        "fit_intercept : bool, default True",
        "Whether `predict` gets a threshold of its own; if False, the intercept is 0. Rankings do not depend on it. "
        'The intercept is set after training, where F1 on the training samples is highest. Only "zero-one" depends on '
        "the intercept and learns it, almost without penalty.",
    ),
    "verbose": ("verbose : int, default 0", "If 1, show progress on the terminal."),
    "coef_": (
        "coef_ : ndarray of shape (1, n_features)",
        "Coefficients for the features as passed to `fit`.",
    ),
    "intercept_": ("intercept_ : ndarray of shape (1,)", "Intercept, which sets the threshold of `predict`."),
    "classes_": (
        "classes_ : ndarray of shape (2,)",
        "The two class labels. The greater label, classes_[1], is the relevant (positive) class.",
    ),
    "objective_": ("objective_ : float", "Value of the objective at the solution, an upper bound of its minimum."),
    "dual_": ("dual_ : float", "Lower bound of the minimum of the objective."),
    "gap_": (
        "gap_ : float",
        "Certified relative duality gap, (objective_ − dual_)/objective_. The solution is at most this much worse than "
        "the optimum.",
    ),
    "converged_": ("converged_ : bool", "Whether gap_ is at most `tol`."),
    "n_iter_": ("n_iter_ : int", "Number of iterations of the solver."),
    "svm_history_": (
        "history_ : dict of str to ndarray",
        'Progress of the solver with one entry per iteration: "iteration", "primal", "dual", "gap", "planes" (in '
        'use), "calls" (queries solved) and "seconds".',
    ),
    "svm_timing_": (
        "timing_ : dict of str to float",
        'Seconds that `fit` took: "total", "inference" (the search of most violating rankings) and "products" '
        '(products with X). "calls" counts how many queries were searched.',
    ),
    "n_features_in_": ("n_features_in_ : int", "Number of features seen during `fit`."),
    "feature_names_in_": (
        "feature_names_in_ : ndarray of shape (d,)",
        "Names of the features seen during `fit`. Only there if X was a dataframe whose column names are all strings.",
    ),
}


def entry(head: str, text: str) -> str:
    """Return an entry as it stands in a docstring: its head, and what it says."""
    return head + "\n" + textwrap.indent(textwrap.fill(text, 108), "    ")


# Several texts under one name.
_GROUPS = {
    "svm_solving": ("solver", "svm_method", "tol", "max_iter", "svm_scale"),
    "of_samples": ("y", "qid_of", "query_weight"),
    "learnt": ("coef_", "intercept_", "classes_"),
    "bounds": ("objective_", "dual_", "gap_", "converged_", "n_iter_"),
    "seen": ("n_features_in_", "feature_names_in_"),
}
# Texts by name; packages may add their own.
SHARED: dict[str, str] = {name: entry(head, text) for name, (head, text) in _ENTRIES.items()}
SHARED |= {name: "\n".join(SHARED[part] for part in parts) for name, parts in _GROUPS.items()}
_PLACE = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)
SHARED |= {
    "solving": _SOLVING % "loss : Loss\n    The loss, as `accepts` returns it.",
    "soft_counts": _SOFT_COUNTS,
    "steps": _STEPS,
}
# Sections by the signature of a function: their text, and the entries of names that are not those of the entries.
_BY_SIGNATURE = {
    "judging": (_JUDGING, {"empty": "empty_metric"}),
    "evaluating": (_EVALUATING, {"relevant": "graded"}),
    "arguments": (_ARGUMENTS, {"relevant": "graded"}),
    "arguments_of_one_query": (_ARGUMENTS, {"relevant": "binary"}),
    "arguments_of_metrics": (_ARGUMENTS, {"relevant": "truth", "empty": "empty_metric", "qid": "qid_each"}),
}


def documented(thing: Thing) -> Thing:
    """Fill the shared texts into the docstring of a function, or of a class and its own methods.

    A method without a docstring takes that of the method that it overrides.
    """
    targets: list[Any] = [thing]
    if isinstance(thing, type):
        for name, value in vars(thing).items():
            inherited = getattr(getattr(super(thing, thing), name, None), "__doc__", None)
            method = value.fget if isinstance(value, property) else value
            if not callable(method) or name.startswith("_"):
                continue
            if not method.__doc__:
                method.__doc__ = inherited
            if isinstance(value, property) and not value.__doc__:
                value.__doc__ = inherited
            targets.append(method)
        targets.append(vars(thing).get("__call__"))
    for target in targets:
        _fill(target)
    return thing


def _fill(target: Any) -> None:
    """Fill the texts into one docstring."""

    def text_of(found: re.Match[str]) -> str:
        indent, name = found.groups()
        return textwrap.indent(
            _sections(target, *_BY_SIGNATURE[name]) if name in _BY_SIGNATURE else SHARED[name], indent
        )

    if isinstance(getattr(target, "__doc__", None), str) and "{" in target.__doc__:
        target.__doc__ = _PLACE.sub(text_of, target.__doc__)


def _sections(function: Any, text: str, renamed: dict[str, str]) -> str:
    entries = []
    for name, parameter in inspect.signature(function).parameters.items():
        text_of_one = SHARED[renamed.get(name, name)]
        if parameter.default is parameter.empty:
            text_of_one = re.sub(r"\s+By\s+default[^.]*\.", "", text_of_one.replace(", optional", ""))
        elif parameter.default == "exp2":
            text_of_one = text_of_one.replace("optional", 'default "exp2"')
        entries.append(text_of_one)
    return text % "\n".join(entries)
