"""`rankwise predict`: scores, places or classes of the samples in a file, one a line."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.cli.inputs import Stored, add_options, counted, open_model, read, shown
from rankwise.cli.output import Voice, check_files, is_standard, write_document, write_text
from rankwise.cli.parsing import add_json, add_parser
from rankwise.inputs import first_true
from rankwise.io import write_scores

_STANDARD = Path("-")
_EPILOG = """\
Lines are in the order of the samples. Scores have every digit of a float64; ranks are the places within the sample's
query, 1 for the highest score, equal scores by order in the file; labels are the two that the model was trained with
(1 and 0 if there were more). DATA is read as in rankwise fit, and refused if it has features that the
model has not; in SVMlight, features that are not there are 0.

examples:
  rankwise predict model.rw test.svm -o scores.txt
  rankwise predict model.rw test.svm --rank | paste - test.svm
  zcat test.txt.gz | rankwise predict model.rw - --json -
"""


def add_command(commands: Any) -> None:
    """The command's arguments."""
    parser = add_parser(
        commands,
        "predict",
        run,
        short="score samples by a model",
        long="Score samples by a model: a line each.",
        epilog=_EPILOG,
    )
    parser.add_argument("model", type=Path, metavar="MODEL.rw", help="a model that rankwise wrote")
    parser.add_argument(
        "data", type=Path, metavar="DATA", help="samples, or '-'; labels are not needed but in SVMlight"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="(default: '-', standard output)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--rank", action="store_true", help="write places within queries instead of scores")
    which.add_argument("--labels", action="store_true", help="write classes instead of scores")
    add_json(parser, "also", "as JSON; '-': to standard output, instead of the lines")
    add_options(parser, relevant_from=None)


def run(arguments: argparse.Namespace) -> int:
    """Read the model and the data, and write a line for each sample."""
    output = arguments.output
    if output is None and not is_standard(arguments.json):
        output = _STANDARD
    check_files({"MODEL": arguments.model, "DATA": arguments.data}, {"--output": output, "--json": arguments.json})
    stored = open_model(arguments.model)
    data = read(arguments, stored, require_labels=False)
    scores = scores_of(stored, data.X)
    document: dict[str, Any] = {
        "model": arguments.model,
        "data": {"source": data.source, "samples": scores.size, "features": data.X.shape[1]},
        "scores": scores,
    }
    if arguments.rank:
        document["ranks"] = _quietly(stored.model.rank, data.X, data.qid)
        write_text(output, "".join(f"{place}\n" for place in document["ranks"].tolist()))
    elif arguments.labels:
        document["labels"] = stored.model.classes_[(scores > 0.0).astype(int)]
        write_text(output, "".join(f"{_as_line(label)}\n" for label in document["labels"].tolist()))
    elif output is not None:
        write_scores(output, scores)
    if output is not None and not is_standard(output):
        what = "rank" if arguments.rank else "label" if arguments.labels else "score"
        Voice(aside=is_standard(arguments.json)).say(f"{counted(scores.size, what)}: {output}")
    write_document(arguments.json, "predict", document)
    return 0


def _as_line(label: float | str) -> str:
    return " ".join(label.splitlines()) if isinstance(label, str) else shown(label)


def scores_of(stored: Stored, X: Any) -> NDArray[np.float64]:
    """The model's scores of samples, all finite."""
    scores: NDArray[np.float64] = _quietly(stored.model.decision_function, X)
    if (k := first_true(~np.isfinite(scores))) is not None:
        raise ValueError(f"the score of sample {k + 1} overflows; rescale the features")
    return scores


def _quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call without scikit-learn's doubt about names: they were checked when the samples were read."""
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return function(*arguments)
