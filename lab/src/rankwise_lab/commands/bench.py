"""`rankwise bench`: benchmarks as tables."""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rankwise.cli import check_writable, file_name

_MARKS = {True: "yes", False: "NO", None: ""}
_MQ2008 = "mq2008"
# Modules of the benchmarks that print a table of rows.
_TABLES = {
    "inference": "inference",
    "training": "training",
    "ranker": "ranker",
    "torch": "torch_losses",
    "lwsvm": "layerwise",
    "latent": "latent_scale",
    "trees": "trees",
    "dask": "dask_scale",
    "compile": "compile_time",
    "versions": "versions",
}
_QUICK_TASKS = ("ecoli3", "digits-3-of-400", "digits-8")
_QUICK_SEEDS = 2
_QUICK_SETS = ("corel_dogs", "protein")


def add_command(commands: Any) -> None:
    """Add `bench` and its benchmarks to the command line."""
    what = "measure speed and quality against other methods and targets"
    bench = commands.add_parser("bench", help=what, description=f"{what.capitalize()}.")
    kinds = bench.add_subparsers(dest="benchmark", required=True, metavar="BENCHMARK")
    whats = {
        "inference": "one call of inference against sorting and the published methods",
        "training": "a RankSVM fit against LinearSVC, and its time in inference (needs w8a in RANKWISE_DATA)",
        "ranker": "the cost of a LinearRanker fit, and its gain on rare positives (needs w8a in RANKWISE_DATA)",
        "torch": "losses in PyTorch against sorting, the core and other AP losses",
        "lwsvm": "LW-SVM against Adadelta, from the same start for the same time (needs CIFAR-10 in RANKWISE_DATA)",
        "finetune": "fine-tuning a small network for AP against cross-entropy (needs CIFAR-10 in RANKWISE_DATA)",
        "retrieval": "embeddings of unseen alphabets against other metric losses (needs Omniglot in RANKWISE_DATA)",
        "quality": "test AP on real tasks against tuned linear classifiers",
        "latent": "a latent AP-SVM on features in a file, against reading and multiplying them (takes 2 GB on disk)",
        "trees": "objectives for boosted trees against the time that LightGBM takes to grow a tree",
        "dask": "a fit on a Dask cluster: what a step exchanges and costs (takes 4 GB of memory)",
        "compile": "CPU seconds of first calls, which compile their kernels, against another version",
        "versions": "seconds of calls of every kind against another version",
        "bags": "test AP on multiple-instance data: latent rankers against rankers of bag means",
    }
    for name, what in whats.items():
        kind = kinds.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
        kind.add_argument("--quick", action="store_true", help="use small problems, to check that everything works")
        kind.add_argument("--json", type=file_name, metavar="FILE", help="write the results to FILE as JSON")
        if name in _KEPT:
            _add_kept(kind, name, _KEPT[name])
            continue
        kind.add_argument("--only", type=int, nargs="+", metavar="N", help="run only these sections")
        kind.set_defaults(run=_table, figure=None)
        if name in ("compile", "versions"):
            what = "folder of another version's sources to measure in the same run, such as old/src"
            kind.add_argument("--against", type=file_name, metavar="DIR", help=what)
        if name == "inference":
            kind.add_argument("--figure", type=file_name, metavar="FILE.png", help="draw the paper's timing figures")


def _add_kept(kind: argparse.ArgumentParser, name: str, kept: _Kept) -> None:
    """Add the options of a benchmark that keeps its pieces: names of what to run, numbers, folder and jobs."""
    for option, (default, help) in kept.options.items():
        if default is None:
            kind.add_argument(option, nargs="+", metavar="NAME", help=help)
        else:
            kind.add_argument(option, type=int, default=default, metavar="N", help=help)
    folder = f"rankwise-{name}"
    help = f"folder that keeps results {kept.how}, to resume a run (default: {folder}; quick: none)"
    kind.add_argument("--results", type=file_name, metavar="DIR", help=help)
    help = f"number of {kept.jobs} to run in parallel (default: 1)"
    kind.add_argument("--jobs", type=int, default=1, metavar="N", help=help)
    kind.set_defaults(run=_kept, kept_in=Path(folder))


def _table(arguments: argparse.Namespace) -> int:
    """Measure, print one row per number, and write the requested files; return 0 even if targets are missed."""
    check_writable(arguments.json)
    check_writable(arguments.figure)
    figure: Path | None = arguments.figure
    if figure is not None and figure.suffix != ".png":
        raise ValueError(f"--figure {figure}: the name must end in .png")
    from rankwise.io import write_bytes
    from rankwise_lab.measuring import machine
    from rankwise_lab.pieces import write_json
    from rankwise_lab.progress import Progress

    module = importlib.import_module(f"rankwise_lab.benchmarks.{_TABLES[arguments.benchmark]}")
    benchmark = module.BENCHMARK
    numbers = list(benchmark.sections) if arguments.only is None else arguments.only
    unknown = [n for n in numbers if n not in benchmark.sections]
    if unknown:
        raise ValueError(f"--only {unknown[0]}: sections are {', '.join(map(str, benchmark.sections))}")
    if figure is not None:
        import matplotlib.figure  # noqa: F401  # missing: say so now, not after minutes of timing

        from rankwise_lab.benchmarks import figures

    sizes = benchmark.sizes.sized(arguments.quick)
    if getattr(arguments, "against", None) is not None:
        if not (arguments.against / "rankwise").is_dir():
            raise ValueError(f"--against {arguments.against}: no package rankwise in it; name a folder of sources")
        sizes = replace(sizes, against=arguments.against.resolve())
    progress = Progress()
    described = machine.describe() | (module.describe() if hasattr(module, "describe") else {})
    for key, value in described.items():
        print(f"{key.replace('_', ' ')}: {', '.join(value) if isinstance(value, list) else value}")
    document = benchmark.run(sizes, numbers, _print_section, _print_row, progress)
    document |= {"quick": arguments.quick, "machine": described}
    if figure is not None:
        panels = figures.measure(sizes.figure_points, sizes.repeats, sizes.figure_largest, progress)
        document["figure"] = [asdict(panel) for panel in panels]
        write_bytes(figure, figures.draw(panels))
        print(f"\nfigure: {figure}")
    if arguments.json is not None:
        write_json(arguments.json, document)
    judged = [row["met"] for section in document["sections"] for row in section["rows"] if row["met"] is not None]
    caution = " (quick run: the problems are too small for the targets to mean much)" if arguments.quick else ""
    print(f"\n{sum(judged)} of {len(judged)} targets met{caution}")
    return 0


def _kept(arguments: argparse.Namespace) -> int:
    """Run what is not finished, print the tables, and write the requested file."""
    check_writable(arguments.json)
    folder: Path = arguments.results or arguments.kept_in
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--results {folder} is a file; name a folder")
    if arguments.json is not None and os.path.realpath(arguments.json) == os.path.realpath(folder):
        raise ValueError(f"--json and --results cannot both be {folder}; name another file")
    for name in ("repeats", "seeds", "jobs"):
        if getattr(arguments, name, 1) < 1:
            raise ValueError(f"--{name} must be at least 1, got {getattr(arguments, name)}")
    from rankwise_lab.pieces import write_json
    from rankwise_lab.progress import Progress

    with TemporaryDirectory() as temporary:  # for a quick run without --results; deleted afterwards
        results = arguments.results or (Path(temporary) / "results" if arguments.quick else folder)
        document = _KEPT[arguments.benchmark].run(arguments, results, Progress())
    if arguments.json is not None:
        write_json(arguments.json, document | {"quick": arguments.quick})
    return 0


def _quality(arguments: argparse.Namespace, folder: Path, progress: Any) -> dict[str, Any]:
    from rankwise_lab.benchmarks import queries
    from rankwise_lab.benchmarks.contenders import BASELINES, OURS
    from rankwise_lab.benchmarks.quality import Plan, run, summarise, table
    from rankwise_lab.benchmarks.tasks import load_tasks
    from rankwise_lab.data.folder import MissingDataError

    names: list[str] | None = arguments.tasks
    if arguments.quick and names is None:
        names = [*_QUICK_TASKS, _MQ2008]
    tasks = load_tasks(None if names is None else [name for name in names if name != _MQ2008])
    plan = _split_as_asked(Plan, arguments)
    asked: list[str] | None = arguments.contenders
    contenders = [c for c in (*BASELINES, *OURS) if asked is None or c.name in asked]
    known = dict.fromkeys([*(c.name for c in (*BASELINES, *OURS)), *queries.MODELS])
    unknown = [name for name in asked or () if name not in known]
    if unknown:
        raise ValueError(f"no contender {unknown[0]!r}: contenders are {'; '.join(known)}")
    document: dict[str, Any] = {"benchmark": "quality"}
    if tasks and contenders:
        records = run(tasks, contenders, folder, plan, arguments.jobs, _say_skipped, progress)
        document |= summarise(records, contenders, plan)
        print(table(document))
    if names is None or _MQ2008 in names:
        try:
            progress.section("MQ2008", 2 * len(queries.MODELS))
            found = queries.run(quick=arguments.quick, on_model=progress.step, names=asked)
            progress.close()
            document["mq2008"] = {part: [asdict(one) for one in models] for part, models in found.items()}
            print("\n" + queries.table(found))
        except MissingDataError as error:
            _say_skipped(_MQ2008, str(error))
    return document


def _by_seed(arguments: argparse.Namespace, folder: Path, progress: Any) -> dict[str, Any]:
    """Train the requested arms for every seed."""
    from rankwise_lab.benchmarks.arms import asked

    name = f"rankwise_lab.benchmarks.{arguments.benchmark}"
    benchmark, known = importlib.import_module(name), importlib.import_module(f"{name}_model").ARMS
    arms = asked(known, arguments.arms)
    seeds = range(_QUICK_SEEDS if arguments.quick else arguments.seeds)
    plan = benchmark.Plan.sized(arguments.quick)
    records = benchmark.run(folder, seeds, plan, arms, n_jobs=arguments.jobs, progress=progress)
    document: dict[str, Any] = benchmark.summarise(records, plan, arms)
    print(benchmark.table(document))
    for arm in known if arguments.arms is None else ():
        if arm not in arms:
            _say_skipped(arm.name, f"not installed: {arm.package.install}")
    return document


def _bags(arguments: argparse.Namespace, folder: Path, progress: Any) -> dict[str, Any]:
    from rankwise_lab.benchmarks import bags
    from rankwise_lab.benchmarks.quality import run

    sets = bags.load_sets(_QUICK_SETS if arguments.quick and arguments.sets is None else arguments.sets)
    plan = _split_as_asked(bags.Plan, arguments)
    records = run(sets, bags.CONTENDERS, folder, plan, arguments.jobs, _say_skipped, progress)
    document = bags.summarise(records, plan, bags.CONTENDERS)
    print(bags.table(document))
    return document


def _split_as_asked(kind: Any, arguments: argparse.Namespace) -> Any:
    """Return a plan of folds with the given seed, and with the given repeats unless it is quick."""
    given = {"seed": arguments.seed} | ({} if arguments.quick else {"repeats": arguments.repeats})
    return replace(kind.sized(arguments.quick), **given)


class _Kept(NamedTuple):
    """A benchmark that keeps finished pieces.

    run: runs and prints it. how: it keeps them. jobs: what may run in parallel. options: of each the default and the
    help; None: it takes names.
    """

    run: Callable[..., dict[str, Any]]
    how: str
    jobs: str
    options: dict[str, tuple[int | None, str]]


_SEED = {"--seed": (0, "seed of the splits (default: 0)")}
_ARMS: dict[str, tuple[int | None, str]] = {"--arms": (None, "run only these ways to train")}
_SEEDS = "number of draws of {} (default: {}; quick: " + f"{_QUICK_SEEDS})"
_KEPT = {
    "quality": _Kept(
        _quality,
        "fold by fold",
        "folds",
        {
            "--tasks": (None, "run only these tasks; mq2008 is the one with queries"),
            "--contenders": (None, "run only these contenders, or models of mq2008"),
            "--repeats": (2, "repetitions of five folds (default: 2)"),
            **_SEED,
        },
    ),
    "finetune": _Kept(
        _by_seed, "seed by seed", "seeds", {**_ARMS, "--seeds": (5, _SEEDS.format("classes and images", 5))}
    ),
    "retrieval": _Kept(
        _by_seed,
        "training by training",
        "trainings",
        {**_ARMS, "--seeds": (3, _SEEDS.format("weights and batches", 3))},
    ),
    "bags": _Kept(
        _bags,
        "fold by fold",
        "folds",
        {
            "--sets": (None, "run only these data sets"),
            "--repeats": (5, "repetitions of ten folds (default: 5; quick: one of three folds)"),
            **_SEED,
        },
    ),
}


def _say_skipped(task: str, reason: str) -> None:
    print(f"{task}: left out, {reason}", flush=True)


def _print_section(section: Any) -> None:
    print(f"\n{section.number}. {section.title}")
    print(f"   {'':<70}{'measured':>9}  {'target':>9}  met", flush=True)


def _print_row(row: Any) -> None:
    measured = "-" if row.measured is None else f"{_number(row.measured)}{row.unit}"
    target = "" if row.target is None else f"{row.target.sense} {row.target.bound:g}{row.unit}"
    print(f"   {row.what:<70}{measured:>9}  {target:>9}  {_MARKS[row.met]}".rstrip(), flush=True)


def _number(value: float) -> str:
    if value == 0 or 0.01 <= value < 1000:
        return f"{value:.2f}"
    return f"{value:.2g}" if value < 0.01 else f"{value:,.0f}"
