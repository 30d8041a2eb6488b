"""`rankwise fit`: train a LinearRanker on a file of samples and write it to a file."""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.cli.inputs import Samples, add_data, add_json, add_parser, add_quiet, file_name, option, read
from rankwise.cli.output import INTERRUPTED, Voice, check_files, counted, is_standard, write_document
from rankwise.metrics import as_metric

# Of two samples, every candidate separates one from the other, and nothing can judge it.
_LEAST = 3
_EPILOG = """\
formats and labels:
  TRAIN can be SVMlight/LETOR text (label [qid:q] index:value …), CSV or TSV with a header, or Parquet. Text files may
  be gzipped. '-' reads standard input.
  A sample is relevant (positive) if its label is at least --relevant-from. The default, 1, suits labels 0/1, labels
  -1/1 and grades. If there are more than two different labels, they are grades: ndcg and err use them, in training
  and in evaluation, and labels that are not relevant count as grade 0.

model:
  A LinearRanker tries several classifiers and versions of them refined for the metric, scores them by cross-validation,
  and averages them, the better ones with more weight. It scales the features itself. Train other models, such as a
  RankSVM, in Python; model.save("model.rw") writes what evaluate and predict read.

interrupting:
  Ctrl-C stops the search, keeps the best model so far and exits with status 130; press it again to stop the last fit
  too. The model file is complete or not written at all.

examples:
  rankwise fit train.svm -o model.rw                      # for AP, the mean over queries if any
  rankwise fit train.txt.gz -o model.rw --metric ndcg@10 --jobs -1
  rankwise fit train.csv -o model.rw --label grade --relevant-from 2
  zcat part-*.gz | rankwise fit - -o model.rw --quiet --json fit.json
"""


def add_command(commands: Any) -> None:
    """The command's arguments."""
    long = "Train a linear model that ranks samples well by a ranking metric, and write it to a file."
    short = "train a linear model for a ranking metric"
    parser = add_parser(commands, "fit", run, short=short, long=long, epilog=_EPILOG)
    data = "file of samples with labels, or '-' for standard input"
    parser.add_argument("data", type=file_name, metavar="TRAIN", help=data)
    output = "file to write the model to"
    parser.add_argument("-o", "--output", type=file_name, required=True, metavar="MODEL.rw", help=output)
    model = parser.add_argument_group("model")
    metric = (
        "metric to train for, by the names of rankwise evaluate: ap, ndcg, ndcg@10, mrr, auc, precision@10, …; map is "
        "ap averaged over queries"
    )
    option(model, "--metric", metric, "ap", metavar="METRIC")
    option(model, "--cv", "number of cross-validation folds; a query is never split between folds", 5, whole=(2,))
    option(model, "--jobs", "number of fits to run in parallel; -1 uses all processors", 1, whole=(1, None, True))
    option(model, "--seed", "random seed for the split into folds", 0, whole=(0, 2**32 - 1))
    add_data(parser, relevant_from="1")
    parser.set_defaults(relevant_from=1.0)
    report = parser.add_argument_group("report")
    add_json(report, "the summary")
    add_quiet(report)


def run(arguments: argparse.Namespace) -> int:
    """Read the data, train, write the model and print a summary; 130 if interrupted."""
    from rankwise import LinearRanker

    output, quiet = arguments.output, arguments.quiet
    if is_standard(output):
        raise ValueError("-o -: a model cannot be written to standard output; name a file")
    check_files({"TRAIN": arguments.data}, {"--output": output, "--json": arguments.json})
    as_metric("ap" if arguments.metric == "map" else arguments.metric)  # refused before anything is read
    samples = Samples(read(arguments), arguments.relevant_from, [arguments.metric])
    if samples.one_class == samples.n_queries:
        raise ValueError(
            f"{samples.source}: no query has both relevant and other samples, so none can be ranked; try --no-qid"
        )
    if samples.n < _LEAST:
        raise ValueError(f"{samples.source}: {samples.n} samples are too few to learn from; add samples")
    voice = Voice(quiet=quiet, aside=is_standard(arguments.json))
    aside = f" ({samples.one_class:,} left out: only one class)" if samples.one_class else ""
    voice.say(samples.line(f" with {counted(samples.n_features, 'feature')}", aside))
    folds = {"cv": arguments.cv, "n_jobs": arguments.jobs, "random_state": arguments.seed}
    model = LinearRanker(arguments.metric, **folds, verbose=0 if quiet else 1)
    interrupted = _fit(model, samples, voice)
    if interrupted and not hasattr(model, "timing_"):  # what a fit sets last
        voice.note(f"interrupted before anything was learnt; {output} was not written")
        return INTERRUPTED
    if not interrupted and not math.isfinite(model.best_score_):
        voice.note(
            f"{samples.source}: too few samples for cross-validation, so it is not known how well the model ranks; add "
            "samples, or measure the model on others with rankwise evaluate"
        )
    if samples.data.feature_names is not None:
        model.feature_names_in_ = np.array(samples.data.feature_names, dtype=object)
    note = {"source": samples.source, "first_index": samples.data.first_index, "relevant_from": samples.relevant_from}
    model.save(output, {**note, "interrupted": interrupted})
    if interrupted:
        voice.note(f"interrupted: {output} contains the best model so far")
    voice.say(*_summary(model), f"model: {output}")
    document = {
        "model": output,
        "kind": model._kind,
        "data": {**samples.document(), "queries_left_out": samples.one_class},
        **_found(model),
        "interrupted": interrupted,
        "notes": voice.notes,
    }
    write_document(arguments.json, "fit", document)
    return INTERRUPTED if interrupted else 0


def _fit(model: Any, samples: Samples, voice: Voice) -> bool:
    """Train, and print warnings as one line each; whether it was interrupted."""
    y = _target(samples)
    qid = samples.qid if y.dtype.kind == "f" else samples.data.qid  # grades need a query: all samples may be one
    with voice.noting_warnings():
        try:
            model.fit(samples.data.X, y, qid)
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


def _summary(model: Any) -> list[str]:
    """What was tried, in lines."""
    report, timing = model.report_, model.timing_
    n = report.folds.shape[1]
    on = f"scores by {n}-fold cross-validation" if n else "not scored: too few samples for cross-validation"
    return [
        f"metric {report.metric}, {on}:",
        *str(report).splitlines(),
        f"{timing['search'] + timing['fit']:.2f} s in total, {timing['search']:.2f} s of it for cross-validation",
    ]


def _found(model: Any) -> dict[str, Any]:
    """The same as plain data."""
    report, timing = model.report_, model.timing_
    rows = zip(report.names, report.scores, report.folds, report.columns["worse_by"], report.shares, strict=True)
    keys = ("name", "score", "folds", "worse_by", "share")
    return {
        "metric": report.metric,
        "candidates": [dict(zip(keys, row, strict=True)) for row in rows],
        "best_score": model.best_score_,
        "seconds": {"total": timing["search"] + timing["fit"], **timing},
    }
