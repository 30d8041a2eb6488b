"""The examples run as they are, without a warning, and show what they say."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = [
    pytest.mark.examples,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="the examples need PyTorch"),
]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# A row of a table: words, then numbers that may have names and bars between them.
ROW = re.compile(r"^ *(\S.*?)  +((?:[A-Za-z@\d]+ )?\d\.\d{3}.*)$", re.MULTILINE)
NOTICE = re.compile(r"\Arankwise: compiling its kernels .*\n")  # where no other test has had them compiled


def run(name: str, folder: Path, *arguments: Path) -> str:
    """What an example prints when it is run in this folder with these arguments, warnings being errors."""
    command = [sys.executable, "-W", "error", EXAMPLES / name, *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, NOTICE.sub("", done.stderr)) == (0, "")
    return done.stdout


def table(printed: str) -> list[tuple[str, list[float]]]:
    """The rows of numbers, by name, in order."""
    return [(name, [float(x) for x in re.findall(r"\d\.\d{3}", rest)]) for name, rest in ROW.findall(printed)]


def test_every_example_is_tested_and_short() -> None:
    tested = {
        "detection_head.py", "finetune_ap.py", "imbalanced_multilabel.py", "layerwise.py", "letor_mlp.py",
        "retrieval_embeddings.py", "trees_letor.py",
    }  # fmt: skip
    assert {path.name for path in EXAMPLES.glob("*.py")} == tested
    assert all(len(path.read_text(encoding="utf-8").splitlines()) < 100 for path in EXAMPLES.glob("*.py"))


def test_multilabel_average_precision_is_better_trained_for_than_hoped_for(tmp_path: Path) -> None:
    rows = dict(table(run("imbalanced_multilabel.py", tmp_path)))
    usual, balanced = rows["cross-entropy"], rows["cross-entropy, balanced"]
    for way in ("cross-entropy, then AP", "AP from the start"):
        mean, rare, *by_split = rows[way]
        assert mean > max(usual[0], balanced[0])
        assert rare > max(usual[1], balanced[1])
        assert np.all(np.array(by_split) > usual[2:])


def test_embeddings_retrieve_classes_that_were_never_seen(tmp_path: Path) -> None:
    rows = dict(table(run("retrieval_embeddings.py", tmp_path)))
    mean_ap, nearest, *by_split = rows["AP hinge"]
    assert mean_ap > rows["pixels"][0] + 0.2
    assert nearest > rows["pixels"][1]
    assert np.all(np.array(by_split) > np.array(rows["contrastive"][2:]) - 0.03)


def test_a_network_learns_to_rank_from_letor_files(tmp_path: Path) -> None:
    rows = dict(table(run("letor_mlp.py", tmp_path)))
    assert np.all(np.array(rows["NDCG hinge"]) > np.array(rows["cross-entropy"]) - 0.005)
    assert rows["NDCG hinge"][0] > 0.75
    assert not list(tmp_path.iterdir()), "the collection is made in a temporary folder"


def test_letor_files_may_be_given_by_path(tmp_path: Path) -> None:
    from rankwise.io import write_data

    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(30), 12)
    paths = [tmp_path / "train.txt.gz", tmp_path / "test.txt.gz"]
    for path in paths:
        X = rng.normal(size=(qid.size, 5))
        grades = np.clip(np.round(X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=qid.size)), 0, 2)
        write_data(path, X, grades, qid)
    rows = dict(table(run("letor_mlp.py", tmp_path, *paths)))
    assert rows["NDCG hinge"][2] > 0.7  # by chance about the share of relevant documents, 0.19


def test_trees_learn_grades_with_our_objectives_nearly_as_well_as_with_lightgbms(tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    rows = dict(table(run("trees_letor.py", tmp_path)))
    ours = [values for name, values in rows.items() if name.startswith("ours")]
    assert len(ours) == 3
    assert max(at_10 for at_10, _ in ours) > rows["lambdarank"][0] - 0.02  # they are behind it
    assert min(at_10 for at_10, _ in ours) > 0.6  # by chance 0.29


def test_fine_tuning_for_average_precision_raises_it_where_there_is_something_to_mend(tmp_path: Path) -> None:
    printed = run("finetune_ap.py", tmp_path)
    linear, network = (dict(table(part)) for part in printed.split("32 hidden units"))
    before, longer = linear["cross-entropy, then …"], linear["more cross-entropy"]
    for way in ("AP hinge", "direct loss of AP"):
        assert np.all(np.array(linear[way]) > before)
        assert np.all(np.array(linear[way][1:]) > longer[1:])
        assert network[way][0] > 0.99
        assert abs(network[way][1] - network["cross-entropy, then …"][1]) < 0.03


def test_a_detection_head_ranks_the_windows_that_fit_best_first(tmp_path: Path) -> None:
    rows = dict(table(run("detection_head.py", tmp_path)))
    for way in ("cross-entropy", "cross-entropy of IoU", "focal loss"):
        assert np.all(np.array(rows["RankSort"]) > np.array(rows[way]) + 0.03)


def test_a_network_trained_layer_by_layer_gets_further_than_at_a_poor_rate(tmp_path: Path) -> None:
    rows = dict(table(run("layerwise.py", tmp_path)))
    start, by_layers = rows["softmax, Adadelta, then …"], rows["LW-SVM"]
    assert by_layers[0] < 0.5 * start[0]
    assert by_layers[0] < rows["Adadelta, rate 0.1"][0]
    assert by_layers[1] > start[1]
