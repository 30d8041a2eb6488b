"""`rankwise fit`: train a linear ranker on a file of samples and write it to a file."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.cli.fit_models import FOLDS, RANK_SVM, RANKER, estimator, fold, is_ranker, standardized
from rankwise.cli.fit_report import document, kept, summary
from rankwise.cli.inputs import Counts, add_options, count, described, grades, read, relevance
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
    whole,
)
from rankwise.io import Dataset

SOLVERS = ["auto", "cutting-plane", "frank-wolfe", "subgradient"]
# Options that only RankSVM has, and of these those that only say how its C is chosen.
_OF_RANK_SVM = (
    *("loss", "C", "scoring", "refit", "prior", "standardize"),
    *("solver", "method", "tol", "max_iter", "threads"),
)
_CHOOSING = ("cv", "scoring", "refit", "jobs")
_NOT_GIVEN = object()
# Of two samples, every candidate separates one from the other, and nothing can judge it.
_LEAST = 3
_EPILOG = """\
formats and labels:
  TRAIN can be SVMlight/LETOR text (label [qid:q] index:value …), CSV or TSV with a header, NPZ (arrays X, y, qid) or
  Parquet. Text files may be gzipped. '-' reads standard input.
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
    parser = add_parser(
        commands,
        "fit",
        run,
        short="train a linear model for a ranking metric",
        long="Train a linear model that ranks samples well by a ranking metric, and write it to a file.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "data", type=file_name, metavar="TRAIN", help="file of samples with labels, or '-' for standard input"
    )
    add_output(parser)
    model = parser.add_argument_group("model")
    model.add_argument(
        "--model", choices=[RANKER, RANK_SVM], default=RANKER, help=f"kind of model, see below (default: {RANKER})"
    )
    model.add_argument(
        "--metric",
        metavar="METRIC",
        help="metric to train linear-ranker for, by the names of rankwise evaluate: ap, ndcg, ndcg@10, mrr, auc, "
        "precision@10, …; map is ap averaged over queries (default: ap)",
    )
    model.add_argument(
        "--cv",
        type=whole(2),
        metavar="N",
        help=f"number of cross-validation folds; a query is never split between folds (default: {FOLDS})",
    )
    model.add_argument(
        "--jobs",
        type=whole(1, or_all=True),
        metavar="N",
        help="number of fits to run in parallel; -1 uses all processors (default: 1)",
    )
    add_seed(model, "the split into folds and for frank-wolfe")
    _add_rank_svm(parser)
    add_options(parser, relevant_from="1")
    report = parser.add_argument_group("report")
    add_json(report, "the summary")
    add_quiet(report)
    defaults = {name: parser.get_default(name) for name in _OF_RANK_SVM}
    parser.set_defaults(of_rank_svm=defaults, **dict.fromkeys(_OF_RANK_SVM, _NOT_GIVEN))


def _add_rank_svm(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(f"options of --model {RANK_SVM}")
    add_loss(group)
    group.add_argument(
        "--scoring",
        metavar="METRIC",
        help="with --C auto: metric that chooses C by cross-validation (default: the metric of the loss)",
    )
    group.add_argument(
        "--refit",
        choices=["last", "average"],
        help="with --C auto: fit the final model to all samples (last), or average the models of the folds (average; "
        "default: last)",
    )
    group.add_argument(
        "--prior", choices=["none", "logistic"], default="none", help="model to start from and refine (default: none)"
    )
    group.add_argument(
        "--standardize",
        action=argparse.BooleanOptionalAction,
        help="train on features with mean 0 and standard deviation 1 (sparse features are only scaled); the saved "
        "model takes the features as they are in the file (default: no)",
    )
    group.add_argument(
        "--solver", choices=SOLVERS, default="auto", help="optimiser; auto uses cutting planes (default: auto)"
    )
    add_solver(group, threads="the search for most violating rankings")
    group.add_argument(
        "--max-iter", type=whole(1), default=10_000, metavar="N", help="largest number of iterations (default: 10000)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Read the data, train, write the model and print a summary; 130 if interrupted."""
    _check(arguments)
    voice = Voice(quiet=arguments.quiet, aside=is_standard(arguments.json))
    relevant_from = 1.0 if arguments.relevant_from is None else arguments.relevant_from
    data = read(arguments)
    relevant = relevance(data, relevant_from)
    counts = count(relevant, data)
    _check_data(arguments, data, counts)
    aside = f" ({counts.one_class:,} left out: only one class)" if counts.one_class else ""
    voice.say(described(data, counts, relevant_from, width=True, aside=aside))
    model = estimator(arguments)
    if _chooses_C(arguments):
        voice.progress(f"choosing C among {model.Cs} on {model.cv} folds …")
    X, scaling = standardized(data.X, data.source) if arguments.standardize else (data.X, None)
    interrupted = _fit(model, X, _target(data, relevant), data, voice)
    if interrupted and not hasattr(model, "timing_"):  # what a fit sets last
        voice.note(f"interrupted before anything was learnt; {arguments.output} was not written")
        return INTERRUPTED
    if is_ranker(arguments) and not interrupted and not math.isfinite(model.best_score_):
        voice.note(
            f"{data.source}: too few samples for cross-validation, so it is not known how well the model ranks; add "
            "samples, or measure the model on others with rankwise evaluate"
        )
    if scaling is not None:
        fold(model, *scaling, data.source)
    _write(arguments.output, model, data, relevant_from, bool(arguments.standardize), interrupted)
    if interrupted:
        voice.note(kept(model, arguments))
    voice.say(*summary(model, arguments))
    found = document(model, arguments, data, counts, relevant_from, interrupted, voice.notes)
    write_document(arguments.json, "fit", found)
    return INTERRUPTED if interrupted else 0


def _chooses_C(arguments: argparse.Namespace) -> bool:
    return not is_ranker(arguments) and arguments.C is None


def _check(arguments: argparse.Namespace) -> None:
    """Check the arguments before anything is read, and set options that were not given to their defaults."""
    from rankwise.metrics import as_metric

    given = [name for name in _OF_RANK_SVM if getattr(arguments, name) is not _NOT_GIVEN]
    if is_ranker(arguments) and given:
        option = f"--{given[0].replace('_', '-')}"
        raise ValueError(f"{option} is an option of --model {RANK_SVM}; add --model {RANK_SVM}, or remove {option}")
    if not is_ranker(arguments) and arguments.metric is not None:
        raise ValueError(
            f"--metric is an option of --model {RANKER}; with {RANK_SVM}, use --loss, and --scoring to choose C"
        )
    for name in set(_OF_RANK_SVM) - set(given):
        setattr(arguments, name, arguments.of_rank_svm[name])
    check_trained(arguments, _CHOOSING)
    check_files({"TRAIN": arguments.data}, {"--output": arguments.output, "--json": arguments.json})
    if is_ranker(arguments):
        arguments.metric = "ap" if arguments.metric is None else arguments.metric
    judge = arguments.metric if is_ranker(arguments) else arguments.scoring
    if judge is not None and (judge != "map" or not is_ranker(arguments)):
        as_metric(judge)


def _check_data(arguments: argparse.Namespace, data: Dataset, counts: Counts) -> None:
    """Refuse data that a model cannot be trained on."""
    if counts.one_class == counts.queries:
        raise ValueError(
            f"{data.source}: no query has both relevant and other samples, so none can be ranked; try --no-qid"
        )
    if is_ranker(arguments) and counts.samples < _LEAST:
        raise ValueError(f"{data.source}: {counts.samples} samples are too few to learn from; add samples")
    if arguments.metric == "map" and data.qid is None:
        raise ValueError(f"{data.source} has no queries, but map is the mean of AP over queries; use --metric ap")
    if _chooses_C(arguments):
        _check_folds(FOLDS if arguments.cv is None else arguments.cv, counts, data.source)


def _check_folds(cv: int, counts: Counts, source: str) -> None:
    """Refuse more folds than can each have both classes."""
    what, n = "samples of the rarer class", min(counts.positives, counts.samples - counts.positives)
    if counts.queries > 1:
        what, n = "queries with both classes", counts.queries - counts.one_class
    if n < cv:
        remedy = f"--cv {n} or lower" if n > 1 else "--C NUMBER"
        raise ValueError(f"{source}: only {n} {what} for {cv} folds; use {remedy}")


def _target(data: Dataset, relevant: NDArray[np.bool_]) -> NDArray[Any]:
    """Grades, of more than two; or two classes: the file's labels where they are two whole numbers, else 0 and 1."""
    assert data.y is not None
    worth = grades(data, relevant)
    if np.unique(worth).size > 2:
        return worth
    labels = np.unique(data.y)
    if labels.size == 2 and (np.abs(labels) < 2**53).all() and (labels == np.floor(labels)).all():
        return data.y.astype(np.int64)
    return relevant.astype(np.int64)


def _fit(model: Any, X: Any, y: NDArray[Any], data: Dataset, voice: Voice) -> bool:
    """Train, and print warnings as one line each; whether it was interrupted."""
    interrupted = False
    qid = data.qid
    if qid is None and y.dtype.kind == "f":  # grades need a query: all samples are one
        qid = np.zeros(y.size, np.int64)
    with voice.noting_warnings():
        try:
            model.fit(X, y, qid)
        except KeyboardInterrupt:
            interrupted = True
    return interrupted


def _write(path: Path, model: Any, data: Dataset, relevant_from: float, standardized: bool, interrupted: bool) -> None:
    from rankwise.linear.model_file import write_linear

    if data.feature_names is not None:
        model.feature_names_in_ = np.array(data.feature_names, dtype=object)
    note = {
        "source": data.source,
        "first_index": data.first_index,
        "relevant_from": relevant_from,
        "standardized": standardized,
        "interrupted": interrupted,
    }
    write_linear(path, model._kind, model, note)
