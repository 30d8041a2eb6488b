"""Scores in files: every digit is kept, and bad ones are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rankwise.io import read_scores, write_scores


def test_scores_keep_every_digit(tmp_path: Path, capsys: pytest.CaptureFixture[str], rng: np.random.Generator) -> None:
    scores = rng.normal(size=100) * 10.0 ** rng.integers(-300, 300, 100)
    for path in (tmp_path / "scores.txt", tmp_path / "again"):
        write_scores(path, scores)
        assert read_scores(path).tolist() == scores.tolist()
    write_scores("-", np.array([0.1, -2.5], np.float32))
    assert capsys.readouterr().out == "0.10000000149011612\n-2.5\n"
    with pytest.raises(ValueError, match=r"scores\[1\] is nan; scores must be finite"):
        write_scores(tmp_path / "scores.txt", [1.0, np.nan])
    with pytest.raises(ValueError, match=r"one-dimensional"):
        write_scores(tmp_path / "scores.txt", np.eye(2))


def test_bad_scores_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "scores"
    for text, said in (
        ("1\nx\n", r"scores, line 2: 'x' is not a finite number; give one score per line"),
        ("1\n\n2\n", r"scores, line 2: ''"),
        ("1 2\n", r"scores, line 1: '1 2'"),
        ("nan\n", r"scores, line 1: 'nan'"),
        ("", r"scores is empty"),
        ("\0", r"scores is not text"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=said):
            read_scores(path)
