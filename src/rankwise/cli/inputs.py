"""What the commands read: models, and samples with the features of a model."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import first_true, is_number, is_whole
from rankwise.cli.output import is_standard
from rankwise.cli.parsing import number, option
from rankwise.io import Dataset, read_data, read_model
from rankwise.io.datasets import FORMATS
from rankwise.io.quoting import shown as quoted

_SHOWN = 6
_AGAIN = "copy the file again, or train the model again"
# Models that score something else than the rows of a file, and what to do with them.
_BAGS = "a ranker of bags, not of single samples; use rankwise detect, or rankwise.load in Python"
_OTHERS = {
    "plcnn": "a network, which the command line cannot use; use rankwise.load in Python",
    "latent-rank-svm": _BAGS,
    "latent-rank-svm-cv": _BAGS,
}


class Stored(NamedTuple):
    """A model, its name, and what `rankwise fit` wrote down about its data."""

    model: Any
    name: str
    feature_names: list[str] | None
    first_index: int | None
    relevant_from: float


def add_data(parser: argparse.ArgumentParser, *, relevant_from: str | None) -> None:
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


def open_model(path: Path) -> Stored:
    """The model in a file."""
    from rankwise.models import from_file

    if is_standard(path):
        raise ValueError("a model cannot be read from standard input; name its file")
    file = read_model(path)
    if file.kind in _OTHERS:
        raise ValueError(f"{path} holds {_OTHERS[file.kind]}")
    model, note = from_file(file, path), file.header["note"]
    relevant_from, first_index = note.get("relevant_from", 1.0), note.get("first_index")
    if not is_number(relevant_from) or not abs(relevant_from) <= sys.float_info.max:
        raise ValueError(f"{path}: relevant_from is {quoted(relevant_from)}, not a finite number; {_AGAIN}")
    if first_index is not None and not (is_whole(first_index) and first_index in (0, 1)):
        raise ValueError(f"{path}: first_index is {quoted(first_index)}, neither 0, 1 nor null; {_AGAIN}")
    name = f"LinearRanker, {model.report_.metric}" if model._kind == "linear-ranker" else f"RankSVM, {model.loss}"
    names = getattr(model, "feature_names_in_", None)
    return Stored(model, name, None if names is None else [*map(str, names)], first_index, float(relevant_from))


def read(arguments: argparse.Namespace, stored: Stored | None = None, require_labels: bool = True) -> Dataset:
    """The samples of arguments.data, with the features of the model if there is one."""
    path: Path = arguments.data
    if is_standard(path) and sys.stdin is None:
        raise ValueError("standard input is closed; name a file")
    expected: dict[str, Any] = {}
    if stored is not None:
        expected = {"feature_names": stored.feature_names, "first_index": stored.first_index}
        expected["n_features"] = int(stored.model.n_features_in_)
    asked = {name: getattr(arguments, name) for name in ("format", "label", "query", "ignore")}
    data = read_data(path, require_labels=require_labels, **asked, **expected)
    return replace(data, qid=None) if arguments.no_qid else data


def scores_of(stored: Stored, X: Any) -> NDArray[np.float64]:
    """The model's scores of samples, all finite."""
    scores: NDArray[np.float64] = quietly(stored.model.decision_function, X)
    if (k := first_true(~np.isfinite(scores))) is not None:
        raise ValueError(f"the score of sample {k + 1} is too large for a float64; rescale the features")
    return scores


def quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call without scikit-learn's warning about feature names, which were checked when the samples were read."""
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return function(*arguments)


class Samples:
    """Samples with labels: which of them are relevant, their grades and queries (n,), and how many there are of what.

    Refused if all labels are the same and, unless both=False, if all samples are relevant or none is.
    without_relevant: queries without a relevant sample. one_class: these, and those without others.
    """

    def __init__(self, data: Dataset, relevant_from: float, *, both: bool = True) -> None:
        assert data.y is not None
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


def counted(n: int, one: str, many: str | None = None) -> str:
    """A number and its noun."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"
