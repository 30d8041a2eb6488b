"""What the commands read: arguments, models, and samples with the features of a model."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import first_true, is_number, is_whole
from rankwise.cli.output import counted, is_standard
from rankwise.io import Dataset, read_data, read_model
from rankwise.io.datasets import FORMATS
from rankwise.io.quoting import shown as quoted

_ASIDE = "to FILE as JSON. '-' is standard output; all text then goes to standard error"
_SHOWN = 6
_AGAIN = "copy the file again, or train the model again"
_NOT_ROWS = ("plcnn", "latent-rank-svm", "latent-rank-svm-cv")


def add_parser(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], *, short: str, long: str, epilog: str
) -> argparse.ArgumentParser:
    """The parser of a command, which `run` runs. short, long: what it does, in the list of commands and in its help."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=short, description=long, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(run=run)
    return parser


def option(group: Any, name: str, text: str, default: Any = None, **more: Any) -> None:
    """An option. text: what it is for, to which its default is added."""
    text += "" if default is None else f" (default: {default})"
    more = {"type": whole(*more.pop("whole")), "metavar": "N", **more} if "whole" in more else more
    group.add_argument(name, default=default, help=text, **more)


def add_json(parser: Any, what: str, aside: str = _ASIDE) -> None:
    """Where the results go as JSON. what: what is written."""
    option(parser, "--json", f"write {what} {aside}", type=file_name, metavar="FILE")


def add_quiet(parser: Any) -> None:
    """Whether to say nothing."""
    parser.add_argument(
        "--quiet", action="store_true", help="print only warnings and errors, no progress and no summary"
    )


def add_model(parser: argparse.ArgumentParser, data: str) -> None:
    """The model and the data to read. data: what they are."""
    parser.add_argument("model", type=file_name, metavar="MODEL.rw", help="model written by rankwise fit")
    parser.add_argument("data", type=file_name, metavar="DATA", help=f"{data}, or '-' for standard input")


def file_name(text: str) -> Path:
    """The name of a file or folder, for argparse."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty; give that of a file or folder")
    return Path(text)


def real(text: str, holds: Callable[[float], bool], otherwise: str) -> float:
    """A number of which something holds, for argparse; else its text and `otherwise` are the error."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not holds(value):
        raise argparse.ArgumentTypeError(f"{quoted(text)} {otherwise}")
    return value


def number(text: str) -> float:
    """A finite number, for argparse."""
    return real(text, math.isfinite, "is not a finite number")


def whole(least: int, most: int | None = None, or_all: bool = False) -> Callable[[str], int]:
    """A parser, for argparse, of whole numbers in a range; if or_all, −1 stands for all processors."""
    bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
    every = ", or -1 for all processors" if or_all else ""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if (value < least or (most is not None and value > most)) and not (or_all and value == -1):
            raise argparse.ArgumentTypeError(f"{quoted(text)} is not a whole number {bounds}{every}")
        return value

    return parse


def add_data(parser: argparse.ArgumentParser, *, relevant_from: str | None = None) -> None:
    """How data are read. relevant_from: what its default is, if labels matter."""
    group = parser.add_argument_group("data")
    form = "format of the data (default: from the file name, else from the content)"
    option(group, "--format", form, choices=[*FORMATS])
    label = "name of the label column in CSV or Parquet (default: label, y, …)"
    option(group, "--label", label, metavar="COL")
    query = "name of the query column in CSV or Parquet (default: qid, query, …)"
    option(group, "--query", query, metavar="COL")
    ignore = "name of a column in CSV or Parquet that is no feature, such as an id; may be given more than once"
    group.add_argument("--ignore", metavar="COL", action="append", default=[], help=ignore)
    no_qid = "ignore the queries in the file and treat all samples as one query (default: no)"
    group.add_argument("--no-qid", action="store_true", help=no_qid)
    if relevant_from is not None:
        smallest = f"smallest label that counts as relevant (default: {relevant_from})"
        option(group, "--relevant-from", smallest, type=number, metavar="LABEL")


def read(arguments: argparse.Namespace, **expected: Any) -> Dataset:
    """The samples of arguments.data. expected: options of `read_data`."""
    path: Path = arguments.data
    if is_standard(path) and sys.stdin is None:
        raise ValueError("standard input is closed; name a file")
    asked = {name: getattr(arguments, name) for name in ("format", "label", "query", "ignore")}
    data = read_data(path, **asked, **expected)
    return replace(data, qid=None) if arguments.no_qid else data


class Scored(NamedTuple):
    """A model, the least label that was relevant to it, and samples with their scores (n,), all finite."""

    model: Any
    relevant_from: float
    data: Dataset
    scores: NDArray[np.float64]


def read_scored(arguments: argparse.Namespace, *, require_labels: bool = True) -> Scored:
    """Read arguments.model, and arguments.data with its features."""
    model, note = _open(arguments.model)
    expected = {"n_features": int(model.n_features_in_), "first_index": note.get("first_index")}
    if hasattr(model, "feature_names_in_"):
        expected["feature_names"] = [*map(str, model.feature_names_in_)]
        del model.feature_names_in_  # checked when samples are read, which scikit-learn would ask for again
    data = read(arguments, require_labels=require_labels, **expected)
    with np.errstate(over="ignore", invalid="ignore"):
        scores: NDArray[np.float64] = model.decision_function(data.X)
    if (k := first_true(~np.isfinite(scores))) is not None:
        raise ValueError(f"the score of sample {k + 1} is too large for a float64; rescale the features")
    return Scored(model, float(note.get("relevant_from", 1.0)), data, scores)


def _open(path: Path) -> tuple[Any, dict[str, Any]]:
    """The model in a file, and what `rankwise fit` noted beside it, checked."""
    from rankwise.models import from_file

    if is_standard(path):
        raise ValueError("a model cannot be read from standard input; name its file")
    file = read_model(path)
    if file.kind in _NOT_ROWS:
        raise ValueError(f"{path} holds a {file.kind}, which does not score rows of a file; use it in Python")
    model, note = from_file(file, path), file.header["note"]
    relevant_from, first_index = note.get("relevant_from", 1.0), note.get("first_index")
    if not is_number(relevant_from) or not abs(relevant_from) <= sys.float_info.max:
        raise ValueError(f"{path}: relevant_from is {quoted(relevant_from)}, not a finite number; {_AGAIN}")
    if first_index is not None and not (is_whole(first_index) and first_index in (0, 1)):
        raise ValueError(f"{path}: first_index is {quoted(first_index)}, neither 0, 1 nor null; {_AGAIN}")
    return model, note


class Samples:
    """Samples with labels: which of them are relevant, their grades and queries (n,), and how many there are of what.

    Refused if all labels are the same and, unless both=False, if all samples are relevant or none is; and for the
    metric "map" without queries. without_relevant: queries without a relevant sample. one_class: these, and those
    without others.
    """

    def __init__(self, data: Dataset, relevant_from: float, metrics: Iterable[str], *, both: bool = True) -> None:
        assert data.y is not None
        if data.qid is None and "map" in metrics:
            raise ValueError(f"{data.source} has no queries, but map is the mean of AP over queries; use ap instead")
        self.data, self.source, self.relevant_from = data, data.source, relevant_from
        self.relevant: NDArray[np.bool_] = data.y >= relevant_from
        self._check(np.unique(data.y), both)
        # Labels that are not relevant, and negative ones, are grade 0.
        self.grades: NDArray[np.float64] = np.where(self.relevant, np.maximum(data.y, 0.0), 0.0)
        self.n, self.n_features = data.X.shape
        self.qid = np.zeros(self.n, np.int64) if data.qid is None else data.qid
        query = np.unique(self.qid, return_inverse=True)[1]
        sizes, n_pos = np.bincount(query), np.bincount(query, weights=self.relevant)
        self.n_queries, self.positives = sizes.size, int(self.relevant.sum())
        self.without_relevant = int((n_pos == 0).sum())
        self.one_class = self.without_relevant + int((n_pos == sizes).sum())

    def _check(self, labels: NDArray[np.float64], both: bool) -> None:
        if self.relevant.any() and not self.relevant.all():
            return
        if labels.size == 1:
            raise ValueError(f"{self.source}: every label is {shown(labels[0])}; a ranking needs two classes")
        if both:
            seen = ", ".join(map(shown, labels[:_SHOWN])) + (", …" if labels.size > _SHOWN else "")
            which = "every label is" if self.relevant.all() else "no label is"
            raise ValueError(
                f"{self.source}: {which} at least {shown(self.relevant_from)}, so there is only one class; the labels "
                f"are {seen}; use --relevant-from {shown(labels[-1])} or lower"
            )

    def line(self, features: str, aside: str) -> str:
        """They in a line. features: what is said of the features. aside: of the queries."""
        return (
            f"{self.source}: {counted(self.n, 'sample')}{features}, {self.positives:,} relevant (label at least "
            f"{shown(self.relevant_from)}), {counted(self.n_queries, 'query', 'queries')}{aside}"
        )

    def document(self) -> dict[str, Any]:
        """They as plain data."""
        return {
            "source": self.source,
            "relevant_from": self.relevant_from,
            "samples": self.n,
            "features": self.n_features,
            "positives": self.positives,
            "queries": self.n_queries,
        }


def shown(label: float) -> str:
    """A number as a user would write it."""
    return repr(float(label)).removesuffix(".0")
