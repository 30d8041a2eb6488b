"""`rankwise evaluate`: how well a model ranks the samples in a file, with intervals; or two models, compared."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.cli.comparing import LETTERS, agreed, compared, document_of, figure_of, lines_of
from rankwise.cli.inputs import Stored, add_options, count, described, facts, open_model, read, relevance
from rankwise.cli.judging import Judge, metrics_of
from rankwise.cli.output import Voice, check_files, is_standard, write_document
from rankwise.cli.parsing import add_json, add_parser, number, positive, real, whole
from rankwise.cli.predict import scores_of

# Names of `rankwise.metrics.METRICS`, unless told.
SHOWN = ["ap", "ndcg", "ndcg@10", "mrr", "auc", "precision@10"]
_EMPTY = {"skip": "are left out", "zero": "count as 0", "one": "count as 1", "error": "would be refused"}
_EPILOG = """\
A value is the mean over queries. A query that a metric cannot judge, without relevant samples (for auc: or without
others), is left out, unless --empty says otherwise; "one" is what LightGBM does, and raises every mean. Labels are
grades, negative ones as 0: ndcg has gains 2^grade - 1, or --gain linear; err judges by grades, too. All other metrics
count labels of at least --relevant-from as relevant. Samples of equal score are not ordered by chance. A name means the
same for rankwise fit --metric. Intervals are percentiles of the bootstrap: over queries, or over samples if there is
one query.

With two models, both are judged, and B less A, query by query, with p-values of Wilcoxon's signed-rank test and of
random sign flips (two-sided, for each metric by itself).

examples:
  rankwise evaluate model.rw test.svm
  rankwise evaluate model.rw test.csv --metrics ap ndcg@5 --resamples 0 --json -
  rankwise evaluate model.rw test.txt.gz --plot pr.png
  rankwise evaluate a.rw b.rw test.txt --metrics ndcg@10 err@10 recall@10 map --plot differences.svg
"""


def add_command(commands: Any) -> None:
    """The command's arguments."""
    parser = add_parser(
        commands,
        "evaluate",
        run,
        short="judge a model's ranking of samples, or compare two",
        long="Judge a model's ranking of samples by ranking metrics, with bootstrap intervals; or compare two models.",
        epilog=_EPILOG,
    )
    parser.add_argument("model", type=Path, metavar="MODEL.rw", help="a model that rankwise wrote")
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="samples with labels, or '-'; right before them, another model",
    )
    parser.add_argument(
        "--metrics",
        nargs="+",
        default=SHOWN,
        metavar="METRIC",
        help=f"as --metric of rankwise fit (default: {' '.join(SHOWN)})",
    )
    parser.add_argument(
        "--gain", choices=["exp2", "linear"], default="exp2", help="of grades, for ndcg (default: exp2)"
    )
    parser.add_argument(
        "--max-grade", type=positive, metavar="GRADE", help="the largest there can be, for err (default: in the data)"
    )
    parser.add_argument(
        "--empty", choices=[*_EMPTY], default="skip", help="what a query counts that cannot be judged (default: skip)"
    )
    parser.add_argument("--level", type=_level, default=0.95, help="of the intervals (default: 0.95)")
    parser.add_argument("--resamples", type=whole(0), default=1000, metavar="N", help="0: no intervals (default: 1000)")
    parser.add_argument("--seed", type=whole(0), default=0, metavar="N", help="of the resamples (default: 0)")
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="a PNG or SVG: precision against recall, and how a RankSVM converged; of two models, the differences of "
        "the first metric by query",
    )
    add_json(parser, "the results")
    add_options(parser, relevant_from="as when the model was trained")


def _level(text: str) -> float:
    number(text)  # which has an error of its own
    return real(text, lambda value: 0.0 < value < 1.0, "does not lie between 0 and 1; use e.g. 0.95")


def run(arguments: argparse.Namespace) -> int:
    """Read the models and the data, rank, judge, and say so."""
    paths = [arguments.model, *arguments.files[:-1]]
    arguments.data = arguments.files[-1]
    metrics = metrics_of(arguments)
    _check(arguments, paths)
    voice = Voice(aside=is_standard(arguments.json))
    models = [open_model(path) for path in paths]
    known = models[0] if len(models) == 1 else agreed(models, paths, arguments.relevant_from)
    data = read(arguments, known)
    relevant_from = known.relevant_from if arguments.relevant_from is None else arguments.relevant_from
    curve = arguments.plot is not None and len(models) == 1
    relevant = relevance(data, relevant_from, both=curve or not all(metric.graded for metric in metrics.values()))
    judge, counts = Judge.of(metrics, data, relevant, arguments), count(relevant, data)
    if len(models) > 1 and arguments.plot is not None and judge.n_queries == 1:
        raise ValueError(f"{data.source}: there is one query, so there are no differences to draw; leave --plot out")
    scores = [scores_of(stored, data.X) for stored in models]
    aside = f" ({counts.barren:,} without a relevant sample)" if counts.barren else ""
    voice.say(described(data, counts, relevant_from, width=False, aside=aside))
    if judge.n_queries > 1:
        voice.say(f"queries that a metric cannot judge {_EMPTY[judge.empty]}")
    document: dict[str, Any] = {
        "data": {**facts(data, counts, relevant_from), "queries_without_positives": counts.barren},
        "empty": judge.empty,
        "gain": arguments.gain,
        "max_grade": arguments.max_grade,
        "bootstrap": {
            "over": judge.over,
            "level": judge.level,
            "resamples": judge.resamples,
            "seed": judge.seed,
        },
    }
    if len(models) == 1:
        document = {"model": paths[0], **document, "metrics": _one(judge, scores[0], voice)}
        figure = _curve(models[0], scores[0], judge) if curve else None
    else:
        rows, figure = _two(judge, models, paths, scores, voice, drawn=arguments.plot is not None)
        document = {"models": paths, **document, "metrics": rows}
    if figure is not None:
        _write(figure, arguments.plot)
        voice.say(f"figure: {arguments.plot}{_shown(judge, curve)}")
    write_document(arguments.json, "evaluate", {**document, "figure": arguments.plot})
    return 0


def _check(arguments: argparse.Namespace, paths: list[Path]) -> None:
    """What is wrong with the arguments, before anything is read."""
    if len(paths) > 2:
        raise ValueError(f"{len(paths)} models before {arguments.data}; name one, or two to compare")
    names = ["MODEL"] if len(paths) == 1 else ["MODEL A", "MODEL B"]
    inputs = {**dict(zip(names, paths, strict=True)), "DATA": arguments.data}
    check_files(inputs, {"--json": arguments.json, "--plot": arguments.plot})
    if arguments.plot is not None:
        if arguments.plot.suffix not in (".png", ".svg"):
            raise ValueError(f"--plot {arguments.plot}: the name must end in .png or .svg")
        import matplotlib.figure  # noqa: F401  # missing: say so now


def _one(judge: Judge, scores: NDArray[np.float64], voice: Voice) -> list[dict[str, Any]]:
    """A model judged by every metric, said and as plain data."""
    voice.say(judge.head())
    rows = []
    for name in judge.metrics:
        rows.append(judge.judge(name, scores))
        voice.say(judge.line(rows[-1]))
    return [row._asdict() for row in rows]


def _two(
    judge: Judge,
    models: list[Stored],
    paths: list[Path],
    scores: list[NDArray[np.float64]],
    voice: Voice,
    *,
    drawn: bool,
) -> tuple[list[dict[str, Any]], Any]:
    """Two models compared by every metric, said and as plain data; and a figure of the first, if drawn."""
    for letter, path, stored in zip(LETTERS, paths, models, strict=True):
        voice.say(f"{letter}: {path} ({stored.name})")
    if judge.resamples:
        voice.say(f"{judge.percent} intervals, over {judge.over}")
    rows: list[dict[str, Any]] = []
    figure = None
    for name in judge.metrics:
        both, found = [judge.judge(name, one) for one in scores], compared(judge, name, scores)
        if drawn and figure is None:
            figure = figure_of(judge, name, found, paths)
        rows.append(document_of(judge, both, found))
        voice.say(*lines_of(judge, both, found))
    return rows, figure


def _curve(stored: Stored, scores: NDArray[np.float64], judge: Judge) -> Any:
    """Precision against recall, and how a RankSVM converged."""
    from rankwise import figures

    name, history = stored.name, stored.model.history_
    converged = {name: history} if {"gap", "iteration"} <= {*history} else {}
    tol = getattr(stored.model, "tol", None)
    figure = figures.draw([figures.curve_of(name, scores, judge.relevant)], converged, tol=tol)
    if judge.n_queries > 1:
        figure.axes[0].set_xlabel("recall, all queries pooled")
    return figure


def _shown(judge: Judge, curve: bool) -> str:
    """What a figure shows, where that is not plain."""
    if not curve:
        return f" (differences of {next(iter(judge.metrics))} by query)"
    return " (precision and recall of all queries pooled)" if judge.n_queries > 1 else ""


def _write(figure: Any, path: Path) -> None:
    from rankwise import figures
    from rankwise.io import write_bytes

    write_bytes(path, figures.as_png(figure) if path.suffix == ".png" else figures.as_svg(figure, page=False).encode())
