"""`rankwise fit`: a linear ranker from a file of samples to a file of the model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.cli.fit_report import chosen_by, document, summary
from rankwise.cli.inputs import Counts, add_options, count, described, gains, read, relevance
from rankwise.cli.output import INTERRUPTED, Voice, check_files, is_standard, write_document
from rankwise.cli.parsing import add_json, add_loss, add_parser, add_quiet, add_solver, check_trained, whole
from rankwise.inputs import first_true
from rankwise.io import Dataset

SOLVERS = ["auto", "cutting-plane", "frank-wolfe", "subgradient"]
_FOLDS = 5
# Options that only say how C is chosen.
_CHOOSING = ("cv", "scoring", "refit", "jobs")
_EPILOG = """\
TRAIN is SVMlight/LETOR text (label [qid:q] index:value …), CSV or TSV with a header, NPZ (X, y, qid) or Parquet; text
may be gzipped. '-' is standard input. Labels of at least --relevant-from are relevant: right for 0/1, -1/1 and grades.
Training is for relevant or not; --scoring ndcg has the labels themselves for gains, negative ones as 0.

Ctrl-C keeps the best model so far and exits with 130. While C is being chosen, it ends the choice: the model is then
fitted with the best C so far; once more ends that too. The model's file is written whole or not at all.

examples:
  rankwise fit train.svm -o model.rw                             # AP; C by cross-validation
  rankwise fit train.txt.gz -o model.rw --loss ndcg --scoring ndcg@10 --jobs -1
  rankwise fit train.csv -o model.rw --label grade --relevant-from 2 --standardize
  zcat part-*.gz | rankwise fit - -o model.rw --C 100 --quiet --json fit.json
"""


def add_command(commands: Any) -> None:
    """The command's arguments."""
    parser = add_parser(
        commands,
        "fit",
        run,
        short="train a linear ranker",
        long="Train a linear ranker for a ranking loss (RankSVM), to a certified duality gap.",
        epilog=_EPILOG,
    )
    parser.add_argument("data", type=Path, metavar="TRAIN", help="samples with labels, or '-'")
    model = add_loss(parser)
    model.add_argument(
        "--prior", choices=["none", "logistic"], default="none", help="a model to refine (default: none)"
    )
    model.add_argument(
        "--standardize",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="train on features of mean 0 and deviation 1 (sparse ones: only scaled); the model is for the data as "
        "they are (default: no)",
    )
    choice = parser.add_argument_group("choice of C, with --C auto")
    choice.add_argument("--cv", type=whole(2), metavar="N", help=f"folds; queries stay whole (default: {_FOLDS})")
    choice.add_argument(
        "--scoring",
        metavar="METRIC",
        help="ap, ndcg, ndcg@10, mrr, auc, precision@10, …, as rankwise evaluate has it, on what folds leave out "
        "(default: that of the loss)",
    )
    choice.add_argument(
        "--refit", choices=["last", "average"], help="a fit to all samples (default), or the folds' mean"
    )
    choice.add_argument("--jobs", type=whole(1, or_all=True), metavar="N", help="folds at a time; -1: all (default: 1)")
    solver = parser.add_argument_group("solver")
    solver.add_argument("--solver", choices=SOLVERS, default="auto", help="(default: auto, cutting planes)")
    add_solver(solver, threads="inference", seeds="folds and of frank-wolfe")
    solver.add_argument("--max-iter", type=whole(1), default=10_000, metavar="N", help="(default: 10000)")
    add_options(parser, relevant_from="1")
    report = parser.add_argument_group("report")
    add_json(report, "the summary")
    add_quiet(report)


def run(arguments: argparse.Namespace) -> int:
    """Read, train, write the model, and say what came of it; 130 if interrupted."""
    _check(arguments)
    voice = Voice(quiet=arguments.quiet, aside=is_standard(arguments.json))
    relevant_from = 1.0 if arguments.relevant_from is None else arguments.relevant_from
    data = read(arguments)
    relevant = relevance(data, relevant_from)
    counts = count(relevant, data)
    if counts.one_class == counts.queries:
        raise ValueError(
            f"{data.source}: no query has relevant samples and others, so none can be ranked; try --no-qid"
        )
    if arguments.C is None:
        _check_folds(_FOLDS if arguments.cv is None else arguments.cv, counts, data.source)
    aside = f" ({counts.one_class:,} of one class, left out)" if counts.one_class else ""
    voice.say(described(data, counts, relevant_from, width=True, aside=aside))
    model = _estimator(arguments)
    if arguments.C is None:
        voice.progress(f"choosing C among {model.Cs} on {model.cv} folds …")
    X, scaling = _standardized(data.X, data.source) if arguments.standardize else (data.X, None)
    interrupted = _fit(model, X, _target(data, relevant), data, arguments, voice)
    if interrupted and not hasattr(model, "timing_"):  # what a fit sets last
        voice.note(f"interrupted before anything was learnt; {arguments.output} is not written")
        return INTERRUPTED
    if scaling is not None:
        _fold(model, *scaling, data.source)
    _write(arguments.output, model, data, relevant_from, arguments.standardize, interrupted)
    if interrupted:
        voice.note(f"interrupted: {arguments.output} holds the best model so far, of relative gap {model.gap_:.1e}")
    voice.say(*summary(model, arguments))
    found = document(model, arguments, data, counts, relevant_from, interrupted, voice.notes)
    write_document(arguments.json, "fit", found)
    return INTERRUPTED if interrupted else 0


def _check(arguments: argparse.Namespace) -> None:
    """What is wrong with the arguments, before anything is read."""
    from rankwise.metrics import as_metric

    check_trained(arguments, _CHOOSING)
    check_files({"TRAIN": arguments.data}, {"--output": arguments.output, "--json": arguments.json})
    if arguments.scoring is not None:
        as_metric(arguments.scoring)


def _check_folds(cv: int, counts: Counts, source: str) -> None:
    """Refuse more folds than can each have both classes."""
    what, n = "samples of the rarer class", min(counts.positives, counts.samples - counts.positives)
    if counts.queries > 1:
        what, n = "queries with both classes", counts.queries - counts.one_class
    if n < cv:
        remedy = f"--cv {n}, or lower" if n > 1 else "C as --C NUMBER"
        raise ValueError(f"{source}: {n} {what} for {cv} folds; pass {remedy}")


def _estimator(arguments: argparse.Namespace) -> Any:
    from rankwise.linear.rank_svm import RankSVM
    from rankwise.linear.rank_svm_cv import RankSVMCV

    common: dict[str, Any] = {
        "solver": arguments.solver,
        "method": arguments.method,
        "tol": arguments.tol,
        "max_iter": arguments.max_iter,
        "n_threads": arguments.threads,
        "random_state": arguments.seed,
        "verbose": 0 if arguments.quiet else 1,
    }
    if arguments.C is not None:
        return RankSVM(arguments.loss, arguments.C, prior=_prior(arguments.prior), **common)
    return RankSVMCV(
        arguments.loss,
        cv=_FOLDS if arguments.cv is None else arguments.cv,
        scoring=arguments.scoring,
        refit="average" if arguments.refit == "average" else True,
        n_jobs=arguments.jobs,
        prior="logistic" if arguments.prior == "logistic" else None,
        **common,
    )


def _prior(name: str) -> Any:
    if name == "none":
        return None
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000)


def _target(data: Dataset, relevant: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Two classes: the file's labels where they are two whole numbers, else 0 and 1."""
    assert data.y is not None
    labels = np.unique(data.y)
    if labels.size == 2 and (np.abs(labels) < 2**53).all() and (labels == np.floor(labels)).all():
        return data.y.astype(np.int64)
    return relevant.astype(np.int64)


def _standardized(X: Any, source: str) -> tuple[Any, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """X with features of deviation 1, and of mean 0 unless it is sparse; and the means and deviations."""
    from sklearn.preprocessing import StandardScaler

    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler(copy=False, with_mean=isinstance(X, np.ndarray)).fit(X)
    mean = scaler.mean_ if isinstance(X, np.ndarray) else np.zeros(X.shape[1])
    if (k := first_true(~(np.isfinite(mean) & np.isfinite(scaler.scale_)))) is not None:
        raise ValueError(f"{source}: feature {k + 1} is too large to be standardized; rescale it")
    return scaler.transform(X), (mean, scaler.scale_)


def _fold(model: Any, mean: NDArray[np.float64], scale: NDArray[np.float64], source: str) -> None:
    """((x − mean)/scale)·w + b as x·w′ + b′."""
    with np.errstate(over="ignore"):
        coef = model.coef_ / scale
    intercept = model.intercept_ - coef @ mean
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError(f"{source}: a feature varies too little to be standardized; rescale or remove it")
    model.coef_, model.intercept_ = coef, intercept


def _fit(model: Any, X: Any, y: NDArray[np.int64], data: Dataset, arguments: argparse.Namespace, voice: Voice) -> bool:
    """Train, and repeat in a line each what Python warns of; whether it was interrupted."""
    interrupted = False
    judged = arguments.C is None and chosen_by(arguments).graded
    worth = {"gains": gains(data)} if judged else {}
    with voice.noting_warnings():
        try:
            model.fit(X, y, data.qid, **worth)
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
