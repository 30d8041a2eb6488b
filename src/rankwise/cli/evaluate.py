"""`rankwise evaluate`: measure how well a model ranks the samples in a file."""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise import NDCG
from rankwise.cli.inputs import Samples, Stored, add_data, open_model, read, scores_of
from rankwise.cli.output import Voice, check_files, is_standard, write_document
from rankwise.cli.parsing import add_json, add_model, add_parser, file_name, option, positive, real
from rankwise.io import write_bytes
from rankwise.metrics import Metric, as_metric, bootstrap_interval, per_query

# What is shown by default: names of `rankwise.metrics.METRICS`.
SHOWN = ["ap", "ndcg", "ndcg@10", "mrr", "auc", "precision@10"]
_EMPTY = {"skip": "are skipped", "zero": "count as 0", "one": "count as 1", "error": "are an error"}
_EPILOG = """\
values:
  Each value is the mean over queries. A metric is not defined for a query without relevant samples (auc: also without
  other samples). Such queries are skipped; --empty changes that. LightGBM counts them as one, which raises the mean.
  ndcg and err use labels as grades, with negative labels as 0. The gain of a grade in ndcg is 2^grade - 1, or the grade
  itself with --gain linear. All other metrics treat labels of at least --relevant-from as relevant. The order of
  samples with equal scores in the file does not matter.
  Intervals are bootstrap percentiles over queries, or over samples if there is only one query.

examples:
  rankwise evaluate model.rw test.svm
  rankwise evaluate model.rw test.csv --metrics ap ndcg@5 --resamples 0 --json -
  rankwise evaluate model.rw test.txt.gz --plot pr.png
"""


def add_command(commands: Any) -> None:
    """The command's arguments."""
    long = "Measure how well a model ranks samples, with confidence intervals."
    short = "measure how well a model ranks samples"
    parser = add_parser(commands, "evaluate", run, short=short, long=long, epilog=_EPILOG)
    add_model(parser, "file of samples with labels")
    metrics = f"metrics to compute, by the names of rankwise fit --metric (default: {' '.join(SHOWN)})"
    parser.add_argument("--metrics", nargs="+", default=SHOWN, metavar="METRIC", help=metrics)
    option(parser, "--gain", "gain of a grade in ndcg: 2^grade - 1 or the grade", "exp2", choices=["exp2", "linear"])
    grade = "largest possible grade, for err (default: the largest in the data)"
    option(parser, "--max-grade", grade, type=positive, metavar="GRADE")
    option(parser, "--empty", "what to do with a query for which a metric is not defined", "skip", choices=[*_EMPTY])
    option(parser, "--level", "confidence level of the intervals, between 0 and 1", 0.95, type=_level)
    option(parser, "--resamples", "number of bootstrap samples; 0 computes no intervals", 1000, whole=(0,))
    option(parser, "--seed", "random seed of the bootstrap", 0, whole=(0,))
    plot = "draw precision against recall, and the convergence of a RankSVM, to a PNG or SVG file"
    option(parser, "--plot", plot, type=file_name, metavar="FILE")
    add_json(parser, "the results")
    add_data(parser, relevant_from="as when the model was trained")


def _level(text: str) -> float:
    return real(text, lambda value: 0.0 < value < 1.0, "is not between 0 and 1; use for example 0.95")


def run(arguments: argparse.Namespace) -> int:
    """Read the model and the data, evaluate, and print the results."""
    metrics, plot = metrics_of(arguments), arguments.plot
    inputs = {"MODEL": arguments.model, "DATA": arguments.data}
    check_files(inputs, {"--json": arguments.json, "--plot": plot})
    if plot is not None:
        if plot.suffix not in (".png", ".svg"):
            raise ValueError(f"--plot {plot}: the name must end in .png or .svg")
        import matplotlib.figure  # noqa: F401  # missing: say so now
    stored = open_model(arguments.model)
    relevant_from = stored.relevant_from if arguments.relevant_from is None else arguments.relevant_from
    both = plot is not None or not all(metric.graded for metric in metrics.values())
    samples = Samples(read(arguments, stored), relevant_from, both=both)
    if samples.data.qid is None and "map" in metrics:
        raise ValueError(f"{samples.source} has no queries, but map is the mean of AP over queries; use ap instead")
    scores = scores_of(stored, samples.data.X)
    rows = [_judged(name, metric, scores, samples, arguments) for name, metric in metrics.items()]

    voice, without, several = Voice(aside=is_standard(arguments.json)), samples.without_relevant, samples.n_queries > 1
    over = "queries" if several else "samples"
    voice.say(samples.line("", f" ({without:,} without relevant samples)" if without else ""))
    if several:
        voice.say(f"queries for which a metric is not defined {_EMPTY[arguments.empty]}")
    interval = f"   {100 * arguments.level:g}% interval over {over}" if arguments.resamples else ""
    voice.say(f"{'':<14}{'value':>8}{interval}")
    for row in rows:
        value = f"{row['value']:8.4f}" if math.isfinite(row["value"]) else f"{'-':>8}"
        interval = f"   {row['low']:.4f} to {row['high']:.4f}" if math.isfinite(row["low"]) else ""
        count = f"   {row['queries']:,} of {samples.n_queries:,} queries" if several else ""
        voice.say(f"{row['name']:<14}{value}{interval}{count}")
    if plot is not None:
        _draw(plot, stored, scores, samples)
        voice.say(f"figure: {plot}{' (precision and recall over all queries together)' if several else ''}")
    document = {
        "model": arguments.model,
        "data": {**samples.document(), "queries_without_positives": without},
        **{key: getattr(arguments, key) for key in ("empty", "gain", "max_grade")},
        "bootstrap": {"over": over, **{key: getattr(arguments, key) for key in ("level", "resamples", "seed")}},
        "metrics": rows,
        "figure": plot,
    }
    write_document(arguments.json, "evaluate", document)
    return 0


def metrics_of(arguments: argparse.Namespace) -> dict[str, Metric]:
    """The metrics by the names that were given; "map" is "ap"."""
    found = {}
    for name in arguments.metrics:
        metric = as_metric("ap" if name == "map" else name)
        if isinstance(metric, NDCG):
            metric = as_metric(metric, gain=arguments.gain)
        elif metric.graded:
            metric = as_metric(metric, max_grade=arguments.max_grade)
        found["map" if name == "map" else metric.name] = metric
    return found


def _judged(
    name: str, metric: Metric, scores: NDArray[np.float64], samples: Samples, arguments: argparse.Namespace
) -> dict[str, Any]:
    """A metric's value, the interval around it, and how many queries it could judge, as plain data."""
    truth, qid, empty = metric.truth(samples.relevant, samples.grades), samples.qid, arguments.empty
    value, low, high = metric(scores, truth, qid=qid, empty=empty), math.nan, math.nan
    if arguments.resamples:
        how = {"level": arguments.level, "seed": arguments.seed, "n_resamples": arguments.resamples}
        low, high = bootstrap_interval(metric, scores, truth, qid, empty=empty, **how)
    judged = int(np.isfinite(per_query(metric, scores, truth, qid)[1]).sum())
    return {"name": name, "value": value, "low": low, "high": high, "queries": judged}


def _draw(path: Any, stored: Stored, scores: NDArray[np.float64], samples: Samples) -> None:
    """Precision against recall, and how a RankSVM converged."""
    from rankwise import figures

    name, history = stored.name, stored.model.history_
    converged = {name: history} if {"gap", "iteration"} <= {*history} else {}
    curve = figures.curve_of(name, scores, samples.relevant)
    figure = figures.draw([curve], converged, tol=getattr(stored.model, "tol", None))
    if samples.n_queries > 1:
        figure.axes[0].set_xlabel("recall, all queries together")
    png = path.suffix == ".png"
    write_bytes(path, figures.as_png(figure) if png else figures.as_svg(figure, page=False).encode())
