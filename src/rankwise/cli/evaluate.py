"""`rankwise evaluate`: measure how well a model ranks the samples in a file."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankwise import NDCG
from rankwise.cli.inputs import Samples, add_data, add_json, add_model, add_parser, file_name, option, read_scored, real
from rankwise.cli.output import Voice, check_files, is_standard, write_document
from rankwise.io import open_atomic
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
    option(parser, "--empty", "what to do with a query for which a metric is not defined", "skip", choices=[*_EMPTY])
    option(parser, "--level", "confidence level of the intervals, between 0 and 1", 0.95, type=_level)
    option(parser, "--resamples", "number of bootstrap samples; 0 computes no intervals", 1000, whole=(0,))
    option(parser, "--seed", "random seed of the bootstrap", 0, whole=(0,))
    option(parser, "--plot", "draw precision against recall, to a PNG or SVG file", type=file_name, metavar="FILE")
    add_json(parser, "the results")
    add_data(parser, relevant_from="as when the model was trained")


def _level(text: str) -> float:
    return real(text, lambda value: 0.0 < value < 1.0, "is not between 0 and 1; use for example 0.95")


def run(arguments: argparse.Namespace) -> int:
    """Read the model and the data, evaluate, and print the results."""
    metrics = {name: _metric(name, arguments.gain) for name in arguments.metrics}
    plot = arguments.plot
    check_files({"MODEL": arguments.model, "DATA": arguments.data}, {"--json": arguments.json, "--plot": plot})
    if plot is not None:
        if plot.suffix not in (".png", ".svg"):
            raise ValueError(f"--plot {plot}: the name must end in .png or .svg")
        import matplotlib.figure  # noqa: F401  # missing: say so now
    model, relevant_from, data, scores = read_scored(arguments)
    if arguments.relevant_from is not None:
        relevant_from = arguments.relevant_from
    both = plot is not None or not all(metric.graded for metric in metrics.values())
    samples = Samples(data, relevant_from, metrics, both=both)
    rows = [_judged(name, metric, scores, samples, arguments) for name, metric in metrics.items()]
    several = samples.n_queries > 1
    over = "queries" if several else "samples"
    voice = Voice(aside=is_standard(arguments.json))
    voice.say(*_table(rows, samples, arguments, over))
    if plot is not None:
        title = "precision and recall over all queries together" if several else "precision and recall"
        _draw(plot, type(model).__name__, title, scores, samples.relevant)
        voice.say(f"figure: {plot} ({title})")
    document = {
        "model": arguments.model,
        "data": {**samples.document(), "queries_without_positives": samples.without_relevant},
        **{key: getattr(arguments, key) for key in ("empty", "gain")},
        "bootstrap": {"over": over, **{key: getattr(arguments, key) for key in ("level", "resamples", "seed")}},
        "metrics": rows,
        "figure": plot,
    }
    write_document(arguments.json, "evaluate", document)
    return 0


def _metric(name: str, gain: Literal["exp2", "linear"]) -> Metric:
    metric = as_metric("ap" if name == "map" else name)
    return as_metric(metric, gain=gain) if isinstance(metric, NDCG) else metric


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


def _table(rows: list[dict[str, Any]], samples: Samples, arguments: argparse.Namespace, over: str) -> list[str]:
    """The results in lines."""
    without, several = samples.without_relevant, over == "queries"
    lines = [samples.line("", f" ({without:,} without relevant samples)" if without else "")]
    if several:
        lines.append(f"queries for which a metric is not defined {_EMPTY[arguments.empty]}")
    interval = f"   {100 * arguments.level:g}% interval over {over}" if arguments.resamples else ""
    lines.append(f"{'':<14}{'value':>8}{interval}")
    for row in rows:
        value = f"{row['value']:8.4f}" if math.isfinite(row["value"]) else f"{'-':>8}"
        interval = f"   {row['low']:.4f} to {row['high']:.4f}" if math.isfinite(row["low"]) else ""
        count = f"   {row['queries']:,} of {samples.n_queries:,} queries" if several else ""
        lines.append(f"{row['name']:<14}{value}{interval}{count}")
    return lines


def _draw(path: Path, name: str, title: str, scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> None:
    """Draw precision against recall."""
    from matplotlib.figure import Figure
    from sklearn.metrics import average_precision_score, precision_recall_curve

    precision, recall, _ = precision_recall_curve(relevant, scores, drop_intermediate=True)
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    # AP is the area under these steps, not under lines between the points.
    label = f"{name}: AP {average_precision_score(relevant, scores):.3f}"
    axes.plot(recall, precision, drawstyle="steps-post", label=label)
    axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.03), xlabel="recall", ylabel="precision", title=title)
    axes.legend()
    with open_atomic(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=150)
