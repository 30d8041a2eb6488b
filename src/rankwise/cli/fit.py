"""`rankwise fit`: train a linear ranker on a file of samples and write it to a file."""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import first_true
from rankwise.cli.inputs import Samples, add_data, counted, read
from rankwise.cli.output import INTERRUPTED, Voice, check_files, is_standard, write_document
from rankwise.cli.parsing import (
    add_json,
    add_loss,
    add_output,
    add_parser,
    add_quiet,
    add_seed,
    add_solver,
    check_trained,
    file_name,
    option,
)
from rankwise.metrics import as_loss, as_metric

RANKER, RANK_SVM = "linear-ranker", "rank-svm"
FOLDS = 5
# Options that only RankSVM has, and those that say how its C is chosen.
_OF_RANK_SVM = ("loss", "C", "scoring", "standardize", "tol", "threads")
_CHOOSING = ("cv", "scoring", "jobs")
_EPILOG = """\
formats and labels:
  TRAIN can be SVMlight/LETOR text (label [qid:q] index:value …), CSV or TSV with a header, or Parquet. Text files may
  be gzipped. '-' reads standard input.
  A sample is relevant (positive) if its label is at least --relevant-from. The default, 1, suits labels 0/1, labels
  -1/1 and grades. If there are more than two different labels, they are grades: ndcg and err use them, in training
  and in evaluation, and labels that are not relevant count as grade 0.

models:
  linear-ranker  tries several classifiers and versions of them refined for the metric, scores them by cross-validation,
                 and averages them, the better ones with more weight. It scales the features itself.
  rank-svm       minimises a convex bound of a ranking loss (the structured hinge) and reports how close it came to the
                 minimum. Its options need --model rank-svm.

interrupting:
  Ctrl-C keeps the best model so far and exits with status 130. During cross-validation, it stops the search and fits
  the best model found so far; press it again to stop that fit too. The model file is complete or not written at all.

examples:
  rankwise fit train.svm -o model.rw                                      # for AP, the mean over queries if any
  rankwise fit train.txt.gz -o model.rw --metric ndcg@10 --jobs -1
  rankwise fit train.csv -o model.rw --label grade --relevant-from 2
  rankwise fit train.svm -o model.rw --model rank-svm --loss ndcg         # chooses C by cross-validation
  zcat part-*.gz | rankwise fit - -o model.rw --model rank-svm --C 100 --quiet --json fit.json
"""


def add_command(commands: Any) -> None:
    """The command's arguments."""
    long = "Train a linear model that ranks samples well by a ranking metric, and write it to a file."
    short = "train a linear model for a ranking metric"
    parser = add_parser(commands, "fit", run, short=short, long=long, epilog=_EPILOG)
    data = "file of samples with labels, or '-' for standard input"
    parser.add_argument("data", type=file_name, metavar="TRAIN", help=data)
    add_output(parser)
    model = parser.add_argument_group("model")
    option(model, "--model", "kind of model, see below", RANKER, choices=[RANKER, RANK_SVM])
    metric = (
        "metric to train linear-ranker for, by the names of rankwise evaluate: ap, ndcg, ndcg@10, mrr, auc, "
        "precision@10, …; map is ap averaged over queries (default: ap)"
    )
    option(model, "--metric", metric, metavar="METRIC")
    folds = f"number of cross-validation folds; a query is never split between folds (default: {FOLDS})"
    option(model, "--cv", folds, whole=(2,))
    jobs = "number of fits to run in parallel; -1 uses all processors (default: 1)"
    option(model, "--jobs", jobs, whole=(1, None, True))
    add_seed(model, "the split into folds")
    group = parser.add_argument_group(f"options of --model {RANK_SVM}")
    add_loss(group)
    scoring = "with --C auto: metric that chooses C by cross-validation (default: the metric of the loss)"
    option(group, "--scoring", scoring, metavar="METRIC")
    standardize = (
        "train on features with mean 0 and standard deviation 1 (sparse features are only scaled); the saved model "
        "takes the features as they are in the file"
    )
    group.add_argument("--standardize", action="store_true", help=standardize)
    add_solver(group, threads="the search for most violating rankings")
    add_data(parser, relevant_from="1")
    report = parser.add_argument_group("report")
    add_json(report, "the summary")
    add_quiet(report)
    parser.set_defaults(of_rank_svm={name: parser.get_default(name) for name in _OF_RANK_SVM})


def run(arguments: argparse.Namespace) -> int:
    """Read the data, train, write the model and print a summary; 130 if interrupted."""
    _check(arguments)
    voice = Voice(quiet=arguments.quiet, aside=is_standard(arguments.json))
    relevant_from = 1.0 if arguments.relevant_from is None else arguments.relevant_from
    samples = Samples(read(arguments), relevant_from)
    if samples.one_class == samples.n_queries:
        raise ValueError(
            f"{samples.source}: no query has both relevant and other samples, so none can be ranked; try --no-qid"
        )
    model, is_ranker = _estimator(arguments, samples), arguments.model == RANKER
    aside = f" ({samples.one_class:,} left out: only one class)" if samples.one_class else ""
    voice.say(samples.line(f" with {counted(samples.n_features, 'feature')}", aside))
    X, scaling = _standardized(samples) if arguments.standardize else (samples.data.X, None)
    interrupted = _fit(model, X, samples, voice)
    if interrupted and not hasattr(model, "timing_"):  # what a fit sets last
        voice.note(f"interrupted before anything was learnt; {arguments.output} was not written")
        return INTERRUPTED
    if is_ranker and not interrupted and not math.isfinite(model.best_score_):
        voice.note(
            f"{samples.source}: too few samples for cross-validation, so it is not known how well the model ranks; add "
            "samples, or measure the model on others with rankwise evaluate"
        )
    if scaling is not None:
        _fold(model, *scaling, samples.source)
    if samples.data.feature_names is not None:
        model.feature_names_in_ = np.array(samples.data.feature_names, dtype=object)
    note = {"source": samples.source, "first_index": samples.data.first_index, "relevant_from": relevant_from}
    model.save(arguments.output, {**note, "standardized": arguments.standardize, "interrupted": interrupted})
    if interrupted:
        gap = "" if is_ranker else f" (relative gap {model.gap_:.1e})"
        voice.note(f"interrupted: {arguments.output} contains the best model so far{gap}")
    summary, found = _of_ranker(model) if is_ranker else _of_rank_svm(model, arguments)
    voice.say(*summary, f"model: {arguments.output}")
    document = {
        "model": arguments.output,
        "kind": model._kind,
        "data": {**samples.document(), "queries_left_out": samples.one_class},
        **found,
        "interrupted": interrupted,
        "notes": voice.notes,
    }
    write_document(arguments.json, "fit", document)
    return INTERRUPTED if interrupted else 0


def _check(arguments: argparse.Namespace) -> None:
    """Check the arguments before anything is read."""
    metric, scoring = arguments.metric, arguments.scoring
    if arguments.model == RANKER:
        for name, default in arguments.of_rank_svm.items():
            if getattr(arguments, name) != default:
                raise ValueError(
                    f"--{name} is an option of --model {RANK_SVM}; add --model {RANK_SVM}, or remove --{name}"
                )
        as_metric("ap" if metric in (None, "map") else metric)
    elif metric is not None:
        raise ValueError(
            f"--metric is an option of --model {RANKER}; with {RANK_SVM}, use --loss, and --scoring to choose C"
        )
    elif scoring is not None:
        as_metric(scoring)
    check_trained(arguments, _CHOOSING)
    check_files({"TRAIN": arguments.data}, {"--output": arguments.output, "--json": arguments.json})


def _estimator(given: argparse.Namespace, samples: Samples) -> Any:
    """The model, to be fitted; refused for samples that it cannot be trained on."""
    from rankwise import LinearRanker, RankSVM, RankSVMCV

    verbose = 0 if given.quiet else 1
    folds = {"cv": given.cv or FOLDS, "n_jobs": given.jobs, "random_state": given.seed, "verbose": verbose}
    if given.model == RANKER:
        if given.metric == "map" and samples.data.qid is None:
            raise ValueError(
                f"{samples.source} has no queries, but map is the mean of AP over queries; use --metric ap"
            )
        return LinearRanker("ap" if given.metric is None else given.metric, **folds)
    how: dict[str, Any] = {"tol": given.tol, "n_threads": given.threads}
    if given.C is not None:
        return RankSVM(given.loss, given.C, verbose=verbose, **how)
    return RankSVMCV(given.loss, scoring=given.scoring, **folds, **how)


def _fit(model: Any, X: Any, samples: Samples, voice: Voice) -> bool:
    """Train, and print warnings as one line each; whether it was interrupted."""
    y = _target(samples)
    qid = samples.qid if y.dtype.kind == "f" else samples.data.qid  # grades need a query: all samples may be one
    with voice.noting_warnings():
        try:
            model.fit(X, y, qid)
        except KeyboardInterrupt:
            return True
    return False


def _standardized(samples: Samples) -> tuple[Any, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """X with features of deviation 1, and of mean 0 unless it is sparse; and the means and deviations."""
    from sklearn.preprocessing import StandardScaler

    X = samples.data.X
    dense = isinstance(X, np.ndarray)
    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler(copy=False, with_mean=dense).fit(X)
    mean = scaler.mean_ if dense else np.zeros(X.shape[1])
    if (k := first_true(~(np.isfinite(mean) & np.isfinite(scaler.scale_)))) is not None:
        raise ValueError(f"{samples.source}: feature {k + 1} is too large to standardize; rescale it")
    return scaler.transform(X), (mean, scaler.scale_)


def _fold(model: Any, mean: NDArray[np.float64], scale: NDArray[np.float64], source: str) -> None:
    """((x − mean)/scale)·w + b as x·w′ + b′."""
    with np.errstate(over="ignore"):
        coef = model.coef_ / scale
    intercept = model.intercept_ - coef @ mean
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError(f"{source}: a feature varies too little to standardize; rescale or remove it")
    model.coef_, model.intercept_ = coef, intercept


def _target(samples: Samples) -> NDArray[Any]:
    """Grades, of more than two; or two classes: the file's labels where they are two whole numbers, else 0 and 1."""
    if np.unique(samples.grades).size > 2:
        return samples.grades
    y: Any = samples.data.y
    labels = np.unique(y)
    whole = labels.size == 2 and (np.abs(labels) < 2**53).all() and (labels == np.floor(labels)).all()
    return (y if whole else samples.relevant).astype(np.int64)


def _of_ranker(model: Any) -> tuple[list[str], dict[str, Any]]:
    """What a LinearRanker tried, in lines and as plain data."""
    report, timing = model.report_, model.timing_
    n = report.folds.shape[1]
    on = f"scores by {n}-fold cross-validation" if n else "not scored: too few samples for cross-validation"
    lines = [
        f"metric {report.metric}, {on}:",
        *str(report).splitlines(),
        f"{timing['total']:.2f} s in total, {timing['search']:.2f} s of it for cross-validation",
    ]
    rows = zip(report.names, report.scores, report.folds, report.columns["worse_by"], report.shares, strict=True)
    keys = ("name", "score", "folds", "worse_by", "share")
    return lines, {
        "metric": report.metric,
        "candidates": [dict(zip(keys, row, strict=True)) for row in rows],
        "best_score": model.best_score_,
        "seconds": {name: timing[name] for name in ("total", "search", "fit")},
    }


def _of_rank_svm(model: Any, given: argparse.Namespace) -> tuple[list[str], dict[str, Any]]:
    """What a RankSVM minimised, how surely, and at what cost, in lines and as plain data."""
    timing, C, choice, last = model.timing_, given.C, None, ""
    lines = [f"loss {given.loss}, C = {given.C:g}"] if given.C is not None else _choice(model, given)
    if given.C is None:
        scores = {"C": model.Cs_[0], "scores": model.scores_[0], "best_score": model.best_score_}
        C, choice, last = model.C_, {"metric": _judge(given), **scores}, " in the last fit"
    share = f" ({timing['inference'] / timing['total']:.0%} in inference)" if given.jobs in (None, 1) else ""
    lines += [
        f"objective {model.objective_:.6g}, within {model.gap_:.1e} of the minimum (relative gap)",
        f"{counted(model.n_iter_, 'iteration')}{last}, {counted(timing['calls'], 'inference call')}, "
        f"{timing['total']:.2f} s{share}",
    ]
    return lines, {
        "loss": given.loss,
        "C": C,
        "choice": choice,
        "standardize": given.standardize,
        **{name: getattr(model, f"{name}_") for name in ("objective", "dual", "gap", "converged")},
        "tol": model.tol,
        "iterations": model.n_iter_,
        "inference_calls": timing["calls"],
        "seconds": {name: timing[name] for name in ("total", "inference", "products")},
    }


def _choice(model: Any, given: argparse.Namespace) -> list[str]:
    """The scores of every C, the chosen one marked."""
    metric = _judge(given)
    lines = [f"loss {given.loss}, C = {model.C_:.4g} chosen by cross-validated {metric}:"]
    lines.append(f"  {'C':>12}  {metric:>8}  std over {model.scores_.shape[2]} folds")
    for C, scores in zip(model.Cs_[0], model.scores_[0], strict=True):
        found = scores[np.isfinite(scores)]
        text = f"{found.mean():8.4f}  {found.std():9.4f}" if found.size else f"{'-':>8}  {'-':>9}"
        aside = f"  {found.size} folds" if found.size < scores.size else ""
        lines.append(f"{'*' if model.C_ == C else ' '} {C:12.4g}  {text}{aside}")
    return lines


def _judge(given: argparse.Namespace) -> str:
    """The name of the metric that C is chosen by, as RankSVMCV has it."""
    loss = as_loss(given.loss)
    return as_metric(given.scoring or ("ap" if loss.judges_labels else loss)).name
