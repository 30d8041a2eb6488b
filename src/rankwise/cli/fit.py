"""`rankwise fit`: a linear ranker from a file of samples to a file of the model."""

from __future__ import annotations

import argparse
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
_EPILOG = """\
TRAIN is SVMlight/LETOR text (label [qid:q] index:value …), CSV or TSV with a header, NPZ (X, y, qid) or Parquet; text
may be gzipped. '-' is standard input. Labels of at least --relevant-from are relevant: right for 0/1, -1/1 and grades.
Labels of more than two numbers are grades, those that are not relevant being 0: ndcg and err are judged by them, and
trained for.

linear-ranker tries classifiers and refinements of them for the metric, judges them on folds, and takes their mean by
merit; it scales features itself. rank-svm minimises the convex structured hinge of a loss to a certified duality gap.
Options of rank-svm need --model rank-svm.

Ctrl-C keeps the best model so far and exits with 130. While folds are judged, it ends the search: the model is then
fitted with what was best so far; once more ends that too. The model's file is written whole or not at all.

examples:
  rankwise fit train.svm -o model.rw                                      # for AP; with queries, its mean over them
  rankwise fit train.txt.gz -o model.rw --metric ndcg@10 --jobs -1
  rankwise fit train.csv -o model.rw --label grade --relevant-from 2
  rankwise fit train.svm -o model.rw --model rank-svm --loss ndcg         # C by cross-validation
  zcat part-*.gz | rankwise fit - -o model.rw --model rank-svm --C 100 --quiet --json fit.json
"""


def add_command(commands: Any) -> None:
    """The command's arguments."""
    parser = add_parser(
        commands,
        "fit",
        run,
        short="train a linear ranker",
        long="Train a linear ranker for a ranking metric: the best that folds find, or a RankSVM.",
        epilog=_EPILOG,
    )
    parser.add_argument("data", type=Path, metavar="TRAIN", help="samples with labels, or '-'")
    add_output(parser)
    model = parser.add_argument_group("model")
    model.add_argument("--model", choices=[RANKER, RANK_SVM], default=RANKER, help=f"(default: {RANKER})")
    model.add_argument(
        "--metric",
        metavar="METRIC",
        help="what linear-ranker is for: ap, ndcg, ndcg@10, mrr, auc, precision@10, …, as rankwise evaluate has it, or "
        "map, which is ap of data with queries (default: ap)",
    )
    model.add_argument("--cv", type=whole(2), metavar="N", help=f"folds; queries stay whole (default: {FOLDS})")
    model.add_argument("--jobs", type=whole(1, or_all=True), metavar="N", help="folds at a time; -1: all (default: 1)")
    add_seed(model, "folds and of frank-wolfe")
    _add_rank_svm(parser)
    add_options(parser, relevant_from="1")
    report = parser.add_argument_group("report")
    add_json(report, "the summary")
    add_quiet(report)
    defaults = {name: parser.get_default(name) for name in _OF_RANK_SVM}
    parser.set_defaults(of_rank_svm=defaults, **dict.fromkeys(_OF_RANK_SVM, _NOT_GIVEN))


def _add_rank_svm(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(f"with --model {RANK_SVM}")
    add_loss(group)
    group.add_argument(
        "--scoring",
        metavar="METRIC",
        help="with --C auto: what chooses C, on what folds leave out; as --metric (default: that of the loss)",
    )
    group.add_argument(
        "--refit",
        choices=["last", "average"],
        help="with --C auto: a fit to all samples (default), or the folds' mean",
    )
    group.add_argument(
        "--prior", choices=["none", "logistic"], default="none", help="a model to refine (default: none)"
    )
    group.add_argument(
        "--standardize",
        action=argparse.BooleanOptionalAction,
        help="train on features of mean 0 and deviation 1 (sparse ones: only scaled); the model is for the data as "
        "they are (default: no)",
    )
    group.add_argument("--solver", choices=SOLVERS, default="auto", help="(default: auto, cutting planes)")
    add_solver(group, threads="inference")
    group.add_argument("--max-iter", type=whole(1), default=10_000, metavar="N", help="(default: 10000)")


def run(arguments: argparse.Namespace) -> int:
    """Read, train, write the model, and say what came of it; 130 if interrupted."""
    _check(arguments)
    voice = Voice(quiet=arguments.quiet, aside=is_standard(arguments.json))
    relevant_from = 1.0 if arguments.relevant_from is None else arguments.relevant_from
    data = read(arguments)
    relevant = relevance(data, relevant_from)
    counts = count(relevant, data)
    _check_data(arguments, data, counts)
    aside = f" ({counts.one_class:,} of one class, left out)" if counts.one_class else ""
    voice.say(described(data, counts, relevant_from, width=True, aside=aside))
    model = estimator(arguments)
    if _chooses_C(arguments):
        voice.progress(f"choosing C among {model.Cs} on {model.cv} folds …")
    X, scaling = standardized(data.X, data.source) if arguments.standardize else (data.X, None)
    interrupted = _fit(model, X, _target(data, relevant), data, voice)
    if interrupted and not hasattr(model, "timing_"):  # what a fit sets last
        voice.note(f"interrupted before anything was learnt; {arguments.output} is not written")
        return INTERRUPTED
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
    """What is wrong with the arguments, before anything is read; options that were not given have their defaults."""
    from rankwise.metrics import as_metric

    given = [name for name in _OF_RANK_SVM if getattr(arguments, name) is not _NOT_GIVEN]
    if is_ranker(arguments) and given:
        option = f"--{given[0].replace('_', '-')}"
        raise ValueError(f"{option} is an option of --model {RANK_SVM}; pass that too, or leave {option} out")
    if not is_ranker(arguments) and arguments.metric is not None:
        raise ValueError(f"--metric is an option of --model {RANKER}; {RANK_SVM} has --loss, and --scoring to choose C")
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
            f"{data.source}: no query has relevant samples and others, so none can be ranked; try --no-qid"
        )
    if arguments.metric == "map" and data.qid is None:
        raise ValueError(f"{data.source} has no queries, and map is the mean of AP over them; pass --metric ap")
    if _chooses_C(arguments):
        _check_folds(FOLDS if arguments.cv is None else arguments.cv, counts, data.source)


def _check_folds(cv: int, counts: Counts, source: str) -> None:
    """Refuse more folds than can each have both classes."""
    what, n = "samples of the rarer class", min(counts.positives, counts.samples - counts.positives)
    if counts.queries > 1:
        what, n = "queries with both classes", counts.queries - counts.one_class
    if n < cv:
        remedy = f"--cv {n}, or lower" if n > 1 else "C as --C NUMBER"
        raise ValueError(f"{source}: {n} {what} for {cv} folds; pass {remedy}")


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
    """Train, and repeat in a line each what Python warns of; whether it was interrupted."""
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
