"""`rankwise evaluate`: measure how well a model ranks the samples in a file, or compare two models."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise import NDCG
from rankwise.cli.inputs import Samples, Stored, add_data, counted, open_model, read, scores_of, shown
from rankwise.cli.output import Voice, check_files, is_standard, write_document
from rankwise.cli.parsing import add_json, add_model, add_parser, file_name, number, option, positive, real
from rankwise.io import write_bytes
from rankwise.metrics import Comparison, Metric, as_metric, bootstrap_interval, compare, per_query

# What is shown by default: names of `rankwise.metrics.METRICS`.
SHOWN = ["ap", "ndcg", "ndcg@10", "mrr", "auc", "precision@10"]
LETTERS = ("A", "B")
# Beyond this, 2^grade is no float64.
_LARGEST_GRADE = 1023.0
_EMPTY = {"skip": "are skipped", "zero": "count as 0", "one": "count as 1", "error": "are an error"}
_EPILOG = """\
values:
  Each value is the mean over queries. A metric is not defined for a query without relevant samples (auc: also without
  other samples). Such queries are skipped; --empty changes that. LightGBM counts them as one, which raises the mean.
  ndcg and err use labels as grades, with negative labels as 0. The gain of a grade in ndcg is 2^grade - 1, or the grade
  itself with --gain linear. All other metrics treat labels of at least --relevant-from as relevant. The order of
  samples with equal scores in the file does not matter.
  Intervals are bootstrap percentiles over queries, or over samples if there is only one query.

two models:
  rankwise evaluate A.rw B.rw DATA shows both and the difference B - A, with two-sided p-values of Wilcoxon's
  signed-rank test and of random sign flips over queries. They are not corrected for several metrics.

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
        short="measure how well a model ranks samples, or compare two models",
        long="Measure how well a model ranks samples, with confidence intervals, or compare two models.",
        epilog=_EPILOG,
    )
    add_model(parser)
    parser.add_argument(
        "files",
        type=file_name,
        nargs="+",
        metavar="FILE",
        help="file of samples with labels, or '-' for standard input; to compare two models, name the second one "
        "before it",
    )
    metrics = f"metrics to compute, by the names of rankwise fit --metric (default: {' '.join(SHOWN)})"
    parser.add_argument("--metrics", nargs="+", default=SHOWN, metavar="METRIC", help=metrics)
    option(parser, "--gain", "gain of a grade in ndcg: 2^grade - 1 or the grade", "exp2", choices=["exp2", "linear"])
    grade = "largest possible grade, for err (default: the largest in the data)"
    option(parser, "--max-grade", grade, type=positive, metavar="GRADE")
    option(parser, "--empty", "what to do with a query for which a metric is not defined", "skip", choices=[*_EMPTY])
    option(parser, "--level", "confidence level of the intervals", 0.95, type=_level)
    option(parser, "--resamples", "number of bootstrap samples; 0 computes no intervals", 1000, whole=(0,))
    option(parser, "--seed", "random seed of the bootstrap", 0, whole=(0,))
    plot = (
        "draw a figure to a PNG or SVG file: precision against recall, and the convergence of a RankSVM; for two "
        "models, the difference per query in the first metric"
    )
    option(parser, "--plot", plot, type=file_name, metavar="FILE")
    add_json(parser, "the results")
    add_data(parser, relevant_from="as when the model was trained")


def _level(text: str) -> float:
    number(text)  # which has an error of its own
    return real(text, lambda value: 0.0 < value < 1.0, "is not between 0 and 1; use for example 0.95")


def run(arguments: argparse.Namespace) -> int:
    """Read the models and the data, evaluate, and print the results."""
    paths = [arguments.model, *arguments.files[:-1]]
    arguments.data = arguments.files[-1]
    metrics = metrics_of(arguments)
    _check(arguments, paths)
    voice = Voice(aside=is_standard(arguments.json))
    models = [open_model(path) for path in paths]
    known = models[0] if len(models) == 1 else _agreed(models, paths, arguments.relevant_from)
    data = read(arguments, known)
    relevant_from = known.relevant_from if arguments.relevant_from is None else arguments.relevant_from
    curve = arguments.plot is not None and len(models) == 1
    both = curve or not all(metric.graded for metric in metrics.values())
    samples = Samples(data, relevant_from, both=both)
    judge = Judge(metrics, samples, arguments)
    if len(models) > 1 and arguments.plot is not None and not judge.several:
        raise ValueError(
            f"{data.source} has only one query, so there are no differences per query to draw; remove --plot"
        )
    scores = [scores_of(stored, data.X) for stored in models]
    without = samples.without_relevant
    voice.say(samples.line("", f" ({without:,} without relevant samples)" if without else ""))
    if judge.several:
        voice.say(f"queries for which a metric is not defined {_EMPTY[judge.empty]}")
    document: dict[str, Any] = {
        "data": {**samples.document(), "queries_without_positives": without},
        "empty": judge.empty,
        "gain": arguments.gain,
        "max_grade": arguments.max_grade,
        "bootstrap": {"over": judge.over, **{name: getattr(judge, name) for name in ("level", "resamples", "seed")}},
    }
    if len(models) == 1:
        document = {"model": paths[0], **document, "metrics": _one(judge, scores[0], voice)}
        figure = _curve(models[0], scores[0], judge) if curve else None
    else:
        rows, figure = _two(judge, models, paths, scores, voice, drawn=arguments.plot is not None)
        document = {"models": paths, **document, "metrics": rows}
    if figure is not None:
        from rankwise.figures import as_png, as_svg

        png = arguments.plot.suffix == ".png"
        write_bytes(arguments.plot, as_png(figure) if png else as_svg(figure, page=False).encode())
        voice.say(f"figure: {arguments.plot}{_seen(judge, curve)}")
    write_document(arguments.json, "evaluate", {**document, "figure": arguments.plot})
    return 0


def _check(arguments: argparse.Namespace, paths: list[Path]) -> None:
    """Check the arguments before anything is read."""
    if len(paths) > 2:
        raise ValueError(f"{len(paths)} models before {arguments.data}; name one model, or two to compare")
    names = ["MODEL"] if len(paths) == 1 else ["MODEL A", "MODEL B"]
    inputs = {**dict(zip(names, paths, strict=True)), "DATA": arguments.data}
    check_files(inputs, {"--json": arguments.json, "--plot": arguments.plot})
    if arguments.plot is not None:
        if arguments.plot.suffix not in (".png", ".svg"):
            raise ValueError(f"--plot {arguments.plot}: the name must end in .png or .svg")
        import matplotlib.figure  # noqa: F401  # missing: say so now


def _one(judge: Judge, scores: NDArray[np.float64], voice: Voice) -> list[dict[str, Any]]:
    """Evaluate a model by every metric: print it, and return it as plain data."""
    interval = f"   {judge.percent} interval over {judge.over}" if judge.resamples else ""
    voice.say(f"{'':<14}{'value':>8}{interval}")
    rows = []
    for name in judge.metrics:
        found = judge.judge(name, scores)
        voice.say(f"{name:<14}{found.text()}{judge.count(found)}")
        rows.append(found._asdict())
    return rows


def _two(
    judge: Judge,
    models: list[Stored],
    paths: list[Path],
    scores: list[NDArray[np.float64]],
    voice: Voice,
    *,
    drawn: bool,
) -> tuple[list[dict[str, Any]], Any]:
    """Compare two models by every metric: print it, return it as plain data, and draw the first metric if asked."""
    for letter, path, stored in zip(LETTERS, paths, models, strict=True):
        voice.say(f"{letter}: {path} ({stored.name})")
    if judge.resamples:
        voice.say(f"{judge.percent} intervals over {judge.over}")
    rows: list[dict[str, Any]] = []
    figure = None
    for name in judge.metrics:
        a, b = (judge.judge(name, one) for one in scores)
        found = judge.compare(name, scores)
        low, high = found.interval if judge.resamples else (math.nan, math.nan)
        between = Judged(name, found.difference, low, high, a.queries)
        if drawn and figure is None:
            figure = _differences(judge, name, found, paths)
        tests = "" if math.isnan(found.p_sign_flip) else f"   {found.tests()}"
        voice.say(f"{name}{judge.count(a)}", f"  {'A':<6}{a.text()}", f"  {'B':<6}{b.text()}")
        voice.say(f"  {'B - A':<6}{between.text('+')}{tests}")
        if judge.several:
            better = counted(found.better, "query", "queries")
            voice.say(f"  B is better on {better}, worse on {found.worse:,}, equal on {found.equal:,}")
        row: dict[str, Any] = {"name": name, "queries": a.queries}
        row |= {key: one.document() for key, one in (("a", a), ("b", b), ("difference", between))}
        row |= {key: getattr(found, key) for key in ("p_wilcoxon", "p_sign_flip", "better", "worse", "equal")}
        by_query = {"qid": found.ids, "a": found.values_a, "b": found.values_b, "difference": found.differences}
        rows.append({**row, "by_query": by_query})
    return rows, figure


def _agreed(models: Sequence[Stored], paths: Sequence[Path], relevant_from: float | None) -> Stored:
    """What two models know of their data, as of one; refused where they cannot be of the same.

    relevant_from: what the user says, None if nothing.
    """
    a, b = models
    if a.n_features != b.n_features:
        raise ValueError(
            f"{paths[0]} was trained on {counted(a.n_features, 'feature')}, {paths[1]} on {b.n_features:,}; compare "
            "models with the same features"
        )
    if a.feature_names is not None and b.feature_names is not None and a.feature_names != b.feature_names:
        first, second = next(pair for pair in zip(a.feature_names, b.feature_names, strict=True) if pair[0] != pair[1])
        raise ValueError(
            f"{paths[0]} has a feature {first!r} where {paths[1]} has {second!r}; compare models with the same features"
        )
    indices = {stored.first_index for stored in models} - {None}
    if len(indices) > 1:
        raise ValueError(
            f"the first feature has index {a.first_index} for {paths[0]} and {b.first_index} for {paths[1]}; train "
            "both on files with the same first index"
        )
    if relevant_from is None and a.relevant_from != b.relevant_from:
        raise ValueError(
            f"{paths[0]} was trained with --relevant-from {shown(a.relevant_from)} and {paths[1]} with "
            f"{shown(b.relevant_from)}; choose one with --relevant-from"
        )
    named = b if a.feature_names is None else a
    return replace(named, first_index=next(iter(indices), None), relevant_from=a.relevant_from)


def _curve(stored: Stored, scores: NDArray[np.float64], judge: Judge) -> Any:
    """Precision against recall, and how a RankSVM converged."""
    from rankwise import figures

    name, history = stored.name, stored.model.history_
    converged = {name: history} if {"gap", "iteration"} <= {*history} else {}
    tol = getattr(stored.model, "tol", None)
    figure = figures.draw([figures.curve_of(name, scores, judge.samples.relevant)], converged, tol=tol)
    if judge.several:
        figure.axes[0].set_xlabel("recall, all queries together")
    return figure


def _differences(judge: Judge, name: str, found: Comparison, paths: Sequence[Path]) -> Any:
    """The differences by query."""
    from rankwise import figures

    if found.ids.size == 0:
        raise ValueError(f"{name} is not defined for any query, so there is no difference to draw; remove --plot")
    first, second = (path.name for path in paths)
    if first == second:
        first, second = LETTERS
    between = found.interval if judge.resamples else None
    return figures.draw_differences(found.differences, between, metric=name, names=(first, second), level=judge.level)


def _seen(judge: Judge, curve: bool) -> str:
    """What a figure shows, where that is not plain."""
    if not curve:
        return f" (difference in {next(iter(judge.metrics))} per query)"
    return " (precision and recall over all queries together)" if judge.several else ""


class Judged(NamedTuple):
    """A metric's value, the interval around it, and how many queries it could judge."""

    name: str
    value: float
    low: float
    high: float
    queries: int

    def text(self, sign: str = "") -> str:
        """The value, and the interval if there is one. sign: "+" for one of a difference, a column to the left."""
        value = f"{self.value:>{sign}8.4f}" if math.isfinite(self.value) else f"{'-':>8}"
        interval = f"   {self.low:{sign}.4f} to {self.high:{sign}.4f}" if math.isfinite(self.low) else ""
        return value + interval[len(sign) :]

    def document(self) -> dict[str, float]:
        """The value and the interval as plain data."""
        return {"value": self.value, "low": self.low, "high": self.high}


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


class Judge:
    """Metrics by name, the samples that they judge rankings of, and how intervals are drawn."""

    def __init__(self, metrics: dict[str, Metric], samples: Samples, arguments: argparse.Namespace) -> None:
        self.metrics, self.samples = metrics, samples
        self.level, self.seed, self.empty = arguments.level, arguments.seed, arguments.empty
        self.resamples: int = arguments.resamples
        self._check(arguments.max_grade)

    def _check(self, max_grade: float | None) -> None:
        """Refuse samples that do not suit the metrics."""
        metrics, source, largest = self.metrics, self.samples.source, float(self.samples.grades.max())
        if self.samples.data.qid is None and "map" in metrics:
            raise ValueError(f"{source} has no queries, but map is the mean of AP over queries; use ap instead")
        if largest > _LARGEST_GRADE and any(metric.graded and metric.gain == "exp2" for metric in metrics.values()):
            raise ValueError(
                f"{source}: a label is {shown(largest)}, so the gain in ndcg, 2^label - 1, is too large for a "
                "float64; use --gain linear"
            )
        if max_grade is not None and largest > max_grade:
            raise ValueError(
                f"{source}: a label is {shown(largest)}, above --max-grade {shown(max_grade)}; raise --max-grade"
            )
        if self.empty == "error":  # said before anything else; it does not depend on scores
            for name, metric in metrics.items():
                per_query(metric, np.zeros(self.samples.n), self._truth(name), self.samples.qid, empty="error")

    @property
    def several(self) -> bool:
        """Whether there are several queries."""
        return self.samples.n_queries > 1

    @property
    def over(self) -> str:
        """What is drawn again for an interval."""
        return "queries" if self.several else "samples"

    @property
    def percent(self) -> str:
        """The level of intervals."""
        return f"{100 * self.level:g}%"

    def _truth(self, name: str) -> NDArray[Any]:
        return self.metrics[name].truth(self.samples.relevant, self.samples.grades)

    def judge(self, name: str, scores: NDArray[np.float64]) -> Judged:
        """A metric of scores (n,)."""
        metric, truth, qid = self.metrics[name], self._truth(name), self.samples.qid
        values = per_query(metric, scores, truth, qid)[1]
        value = metric(scores, truth, qid=qid, empty=self.empty)
        low = high = math.nan
        if self.resamples:
            low, high = bootstrap_interval(metric, scores, truth, qid, n_resamples=self.resamples, **self._how())
        return Judged(name, value, low, high, int(np.isfinite(values).sum()))

    def compare(self, name: str, scores: Sequence[NDArray[np.float64]]) -> Comparison:
        """A metric of the scores of two models; without an interval if none is asked for."""
        (a, b), metric, qid = scores, self.metrics[name], self.samples.qid
        return compare(metric, a, b, self._truth(name), qid, n_resamples=max(self.resamples, 1), **self._how())

    def _how(self) -> dict[str, Any]:
        return {"level": self.level, "seed": self.seed, "empty": self.empty}

    def count(self, judged: Judged) -> str:
        """How many queries a metric could judge, of several."""
        return f"   {judged.queries:,} of {self.samples.n_queries:,} queries" if self.several else ""
