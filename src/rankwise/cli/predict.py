"""`rankwise predict`: scores, ranks or classes of the samples in a file, one per line."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rankwise.cli.inputs import add_data, add_json, add_model, add_parser, file_name, read_scored
from rankwise.cli.output import Voice, check_files, counted, is_standard, write_document, write_text

_EPILOG = """\
output:
  One line per sample, in the order of DATA. Scores are printed with all digits of a float64. With --rank, a line is the
  sample's place within its query: 1 has the highest score, and equal scores keep their order in the file. With
  --labels, a line is one of the two labels that the model was trained with (1 or 0 if there were more than two).

formats:
  DATA can have the formats that rankwise fit reads. Features that the model does not know are an error. In SVMlight
  files, features that are not listed are 0.

examples:
  rankwise predict model.rw test.svm -o scores.txt
  rankwise predict model.rw test.svm --rank | paste - test.svm
  zcat test.txt.gz | rankwise predict model.rw - --json -
"""


def add_command(commands: Any) -> None:
    """The command's arguments."""
    long = "Compute the score of each sample with a model, and write one per line."
    short = "compute the scores of samples with a model"
    parser = add_parser(commands, "predict", run, short=short, long=long, epilog=_EPILOG)
    add_model(parser, "file of samples, which need labels only in SVMlight text")
    output = "file to write to (default: '-', standard output)"
    parser.add_argument("-o", "--output", type=file_name, metavar="FILE", help=output)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--rank", action="store_true", help="write the rank within the query instead of the score")
    which.add_argument("--labels", action="store_true", help="write the predicted class instead of the score")
    add_json(parser, "the results", "to FILE as JSON; '-' is standard output and replaces the lines")
    add_data(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read the model and the data, and write a line for each sample."""
    output = arguments.output
    if output is None and not is_standard(arguments.json):
        output = Path("-")
    check_files({"MODEL": arguments.model, "DATA": arguments.data}, {"--output": output, "--json": arguments.json})
    model, _, data, scores = read_scored(arguments, require_labels=False)
    document: dict[str, Any] = {
        "model": arguments.model,
        "data": {"source": data.source, "samples": scores.size, "features": data.X.shape[1]},
        "scores": scores,
    }
    what, lines = "score", map(repr, scores.tolist())
    if arguments.rank:
        ranks = document["ranks"] = model.rank(data.X, data.qid)
        what, lines = "rank", map(str, ranks.tolist())
    elif arguments.labels:
        labels = document["labels"] = model.classes_[(scores > 0.0).astype(int)]
        what, lines = "label", map(_as_line, labels.tolist())
    if output is not None:
        write_text(output, "".join(f"{line}\n" for line in lines))
        if not is_standard(output):
            Voice(aside=is_standard(arguments.json)).say(f"{counted(scores.size, what)}: {output}")
    write_document(arguments.json, "predict", document)
    return 0


def _as_line(label: float | str) -> str:
    return " ".join(label.splitlines()) if isinstance(label, str) else str(label).removesuffix(".0")
