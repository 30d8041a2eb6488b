"""`rankwise fit`: train a linear ranker on a file of samples and write it to a file."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.cli.fit_models import FOLDS, SVM, Ranker
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

RANKER, RANK_SVM = "linear-ranker", "rank-svm"
SOLVERS = ["auto", "cutting-plane", "frank-wolfe", "subgradient"]
# Options that only RankSVM has, and those that say how its C is chosen.
_OF_RANK_SVM = ("loss", "C", "scoring", "solver", "method", "tol", "max_iter", "threads")
_CHOOSING = ("cv", "scoring", "jobs")
_NOT_GIVEN = object()
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
                 minimum. It takes the features as they are. Its options need --model rank-svm.

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
    add_seed(model, "the split into folds and for frank-wolfe")
    _add_rank_svm(parser)
    add_data(parser, relevant_from="1")
    report = parser.add_argument_group("report")
    add_json(report, "the summary")
    add_quiet(report)
    defaults = {name: parser.get_default(name) for name in _OF_RANK_SVM}
    parser.set_defaults(of_rank_svm=defaults, **dict.fromkeys(_OF_RANK_SVM, _NOT_GIVEN))


def _add_rank_svm(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(f"options of --model {RANK_SVM}")
    add_loss(group)
    scoring = "with --C auto: metric that chooses C by cross-validation (default: the metric of the loss)"
    option(group, "--scoring", scoring, metavar="METRIC")
    option(group, "--solver", "optimiser; auto uses cutting planes", "auto", choices=SOLVERS)
    add_solver(group, threads="the search for most violating rankings")
    option(group, "--max-iter", "largest number of iterations", 10_000, whole=(1,))


def run(arguments: argparse.Namespace) -> int:
    """Read the data, train, write the model and print a summary; 130 if interrupted."""
    kind = _kind(arguments)
    voice = Voice(quiet=arguments.quiet, aside=is_standard(arguments.json))
    relevant_from = 1.0 if arguments.relevant_from is None else arguments.relevant_from
    samples = Samples(read(arguments), relevant_from)
    if samples.one_class == samples.n_queries:
        raise ValueError(
            f"{samples.source}: no query has both relevant and other samples, so none can be ranked; try --no-qid"
        )
    kind.check(samples)
    aside = f" ({samples.one_class:,} left out: only one class)" if samples.one_class else ""
    voice.say(samples.line(f" with {counted(samples.n_features, 'feature')}", aside))
    model = kind.estimator(voice)
    interrupted = _fit(model, samples, voice)
    if interrupted and not hasattr(model, "timing_"):  # what a fit sets last
        voice.note(f"interrupted before anything was learnt; {arguments.output} was not written")
        return INTERRUPTED
    doubt = None if interrupted else kind.doubt(model, samples.source)
    if doubt is not None:
        voice.note(doubt)
    if samples.data.feature_names is not None:
        model.feature_names_in_ = np.array(samples.data.feature_names, dtype=object)
    note = {"source": samples.source, "first_index": samples.data.first_index, "relevant_from": relevant_from}
    model.save(arguments.output, {**note, "interrupted": interrupted})
    if interrupted:
        voice.note(f"interrupted: {arguments.output} contains {kind.kept(model)}")
    voice.say(*kind.summary(model), f"model: {arguments.output}")
    document = {
        "model": arguments.output,
        "kind": model._kind,
        "data": {**samples.document(), "queries_left_out": samples.one_class},
        **kind.document(model),
        "interrupted": interrupted,
        "notes": voice.notes,
    }
    write_document(arguments.json, "fit", document)
    return INTERRUPTED if interrupted else 0


def _kind(arguments: argparse.Namespace) -> Ranker | SVM:
    """Check the arguments before anything is read, and set options that were not given to their defaults."""
    given = [name for name in _OF_RANK_SVM if getattr(arguments, name) is not _NOT_GIVEN]
    if arguments.model == RANKER and given:
        option = f"--{given[0].replace('_', '-')}"
        raise ValueError(f"{option} is an option of --model {RANK_SVM}; add --model {RANK_SVM}, or remove {option}")
    if arguments.model == RANK_SVM and arguments.metric is not None:
        raise ValueError(
            f"--metric is an option of --model {RANKER}; with {RANK_SVM}, use --loss, and --scoring to choose C"
        )
    for name in set(_OF_RANK_SVM) - set(given):
        setattr(arguments, name, arguments.of_rank_svm[name])
    check_trained(arguments, _CHOOSING)
    check_files({"TRAIN": arguments.data}, {"--output": arguments.output, "--json": arguments.json})
    return Ranker(arguments) if arguments.model == RANKER else SVM(arguments)


def _fit(model: Any, samples: Samples, voice: Voice) -> bool:
    """Train, and print warnings as one line each; whether it was interrupted."""
    data, y = samples.data, _target(samples)
    qid = samples.qid if y.dtype.kind == "f" else data.qid  # grades need a query: all samples may be one
    with voice.noting_warnings():
        try:
            model.fit(data.X, y, qid)
        except KeyboardInterrupt:
            return True
    return False


def _target(samples: Samples) -> NDArray[Any]:
    """Grades, of more than two; or two classes: the file's labels where they are two whole numbers, else 0 and 1."""
    if np.unique(samples.grades).size > 2:
        return samples.grades
    y: Any = samples.data.y
    labels = np.unique(y)
    whole = labels.size == 2 and (np.abs(labels) < 2**53).all() and (labels == np.floor(labels)).all()
    return (y if whole else samples.relevant).astype(np.int64)
