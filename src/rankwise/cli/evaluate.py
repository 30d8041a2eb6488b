"""`rankwise evaluate`: how well a model ranks the samples in a file, with intervals."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.cli.inputs import Stored, add_options, count, described, facts, grades, open_model, read, relevance
from rankwise.cli.output import Voice, check_files, is_standard, write_document
from rankwise.cli.parsing import add_json, add_parser, number, real, whole
from rankwise.cli.predict import scores_of
from rankwise.io import Dataset

# Names of `rankwise.metrics.METRICS`, unless told.
SHOWN = ["ap", "ndcg", "ndcg@10", "mrr", "auc", "precision@10"]
_EPILOG = """\
A value is the mean over queries; a query that a metric cannot judge, without relevant samples (for auc: or without
others), is left out. Samples of equal score are not ordered by chance. Labels of at least --relevant-from are relevant;
ndcg has the labels themselves for gains, negative ones as 0. A name means the same for rankwise fit --metric.
Intervals are percentiles of the bootstrap: over queries, or over samples if there is one query.

examples:
  rankwise evaluate model.rw test.svm
  rankwise evaluate model.rw test.csv --metrics ap ndcg@5 --resamples 0 --json -
  rankwise evaluate model.rw test.txt.gz --plot pr.png
"""


def add_command(commands: Any) -> None:
    """The command's arguments."""
    parser = add_parser(
        commands,
        "evaluate",
        run,
        short="judge a model's ranking of samples",
        long="Judge a model's ranking of samples by ranking metrics, with bootstrap intervals.",
        epilog=_EPILOG,
    )
    parser.add_argument("model", type=Path, metavar="MODEL.rw", help="a model that rankwise wrote")
    parser.add_argument("data", type=Path, metavar="DATA", help="samples with labels, or '-'")
    parser.add_argument(
        "--metrics",
        nargs="+",
        default=SHOWN,
        metavar="METRIC",
        help=f"as --metric of rankwise fit (default: {' '.join(SHOWN)})",
    )
    parser.add_argument("--level", type=_level, default=0.95, help="of the intervals (default: 0.95)")
    parser.add_argument("--resamples", type=whole(0), default=1000, metavar="N", help="0: no intervals (default: 1000)")
    parser.add_argument("--seed", type=whole(0), default=0, metavar="N", help="of the resamples (default: 0)")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE.png", help="draw precision against recall, and how a RankSVM converged"
    )
    add_json(parser, "the results")
    add_options(parser, relevant_from="as when the model was trained")


def _level(text: str) -> float:
    number(text)  # which has an error of its own
    return real(text, lambda value: 0.0 < value < 1.0, "does not lie between 0 and 1; use e.g. 0.95")


class _Row(NamedTuple):
    """A metric's value, the interval around it, and how many queries it could judge."""

    name: str
    value: float
    low: float
    high: float
    queries: int


def run(arguments: argparse.Namespace) -> int:
    """Read the model and the data, rank, judge, and say so."""
    from rankwise.metrics import as_metric

    names = list(dict.fromkeys(as_metric(name).name for name in arguments.metrics))
    _check(arguments)
    voice = Voice(aside=is_standard(arguments.json))
    stored = open_model(arguments.model)
    data = read(arguments, stored)
    relevant_from = stored.relevant_from if arguments.relevant_from is None else arguments.relevant_from
    relevant = relevance(data, relevant_from)
    counts = count(relevant, data)
    scores = scores_of(stored, data.X)
    over = "queries" if counts.queries > 1 else "samples"
    aside = f" ({counts.barren:,} without a relevant sample, left out)" if counts.barren else ""
    voice.say(described(data, counts, relevant_from, width=False, aside=aside), _head(arguments, over))
    rows = []
    for name in names:
        rows.append(_judged(name, scores, relevant, data, arguments))
        voice.say(_line(rows[-1]))
    if arguments.plot is not None:
        _plot(arguments.plot, stored, scores, relevant, counts.queries > 1)
        pooled = " (precision and recall of all queries pooled)" if counts.queries > 1 else ""
        voice.say(f"figure: {arguments.plot}{pooled}")
    write_document(
        arguments.json,
        "evaluate",
        {
            "model": arguments.model,
            "data": {**facts(data, counts, relevant_from), "queries_without_positives": counts.barren},
            "bootstrap": {
                "over": over,
                "level": arguments.level,
                "resamples": arguments.resamples,
                "seed": arguments.seed,
            },
            "metrics": [row._asdict() for row in rows],
            "figure": arguments.plot,
        },
    )
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """What is wrong with the arguments, before anything is read."""
    check_files(
        {"MODEL": arguments.model, "DATA": arguments.data}, {"--json": arguments.json, "--plot": arguments.plot}
    )
    if arguments.plot is not None:
        if arguments.plot.suffix != ".png":
            raise ValueError(f"--plot {arguments.plot}: the name must end in .png")
        import matplotlib.figure  # noqa: F401  # missing: say so now


def _judged(
    name: str,
    scores: NDArray[np.float64],
    relevant: NDArray[np.bool_],
    data: Dataset,
    arguments: argparse.Namespace,
) -> _Row:
    from rankwise.metrics import as_metric, bootstrap_interval, per_query

    metric = as_metric(name)
    truth = metric.truth(relevant, grades(data))
    qid = np.zeros(scores.size, np.int64) if data.qid is None else data.qid
    values = per_query(metric, scores, truth, qid)[1]
    low = high = math.nan
    if arguments.resamples:
        low, high = bootstrap_interval(
            metric,
            scores,
            truth,
            qid,
            level=arguments.level,
            n_resamples=arguments.resamples,
            seed=arguments.seed,
        )
    return _Row(name, metric(scores, truth, qid=qid), low, high, int(np.isfinite(values).sum()))


def _head(arguments: argparse.Namespace, over: str) -> str:
    interval = f"   {100 * arguments.level:g}% interval, over {over}" if arguments.resamples else ""
    return f"{'':<14}{'value':>8}{interval}"


def _line(row: _Row) -> str:
    interval = f"   {row.low:.4f} to {row.high:.4f}" if math.isfinite(row.low) else ""
    value = f"{row.value:.4f}" if math.isfinite(row.value) else "-"
    return f"{row.name:<14}{value:>8}{interval}"


def _plot(path: Path, stored: Stored, scores: NDArray[np.float64], relevant: NDArray[np.bool_], pooled: bool) -> None:
    from rankwise import figures
    from rankwise.io import write_bytes

    name, history = stored.name, stored.model.history_
    converged = {name: history} if {"gap", "iteration"} <= {*history} else {}
    tol = getattr(stored.model, "tol", None)
    figure = figures.draw([figures.curve_of(name, scores, relevant)], converged, tol=tol)
    if pooled:
        figure.axes[0].set_xlabel("recall, all queries pooled")
    write_bytes(path, figures.as_png(figure))
