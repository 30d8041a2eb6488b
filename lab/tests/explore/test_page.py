"""The page's own mathematics agrees with the library, and its files ask nobody for anything."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from explained import LOSSES, explained
from rankwise_lab.explore.page import SCRIPT

from rankwise.cli.main import main

RTOL, ATOL = 1e-10, 1e-10
SORTED_NEGATIVES = 16  # up to here the library's Algorithm 1 divides at the median itself, as the page does
LOCAL = Path(__file__).resolve().parents[2] / "src" / "rankwise_lab" / "explore" / "local.js"
RUN = """
import { readFileSync } from "node:fs";
const source = readFileSync(process.argv[1], "utf8");
const { explain } = await import("data:text/javascript," + encodeURIComponent(source));
const requests = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(requests.map(explain)));
"""
Request = dict[str, Any]


def explained_by_node(requests: list[Request]) -> list[dict[str, Any]]:
    """What the page's own mathematics answers."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not on the path")
    command = [node, "--input-type=module", "-e", RUN, str(LOCAL)]
    done = subprocess.run(command, input=json.dumps(requests), capture_output=True, text=True, check=True, timeout=60)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def requests(loss: str, count: int = 60) -> Iterator[Request]:
    """Random requests of the sizes that the page has; two of three have ties, within and between the classes."""
    rng = np.random.default_rng(20180618)
    for k in range(count):
        n = int(rng.integers(2, 41))
        relevant = rng.permutation(np.arange(n) < int(rng.integers(1, n)))
        scores = np.round(rng.normal(size=n) + 0.5 * relevant, k % 3)
        scale = float(rng.choice([0.0, 0.05, 0.5, 1.0, 3.0]))
        yield {"scores": scores.tolist(), "relevant": relevant.tolist(), "loss": loss, "scale": scale}


def agree(found: Any, exact: Any) -> None:
    """Plain data are the same, numbers up to rounding."""
    if isinstance(exact, dict):
        assert found.keys() == exact.keys()
        for name in exact:
            agree(found[name], exact[name])
    elif isinstance(exact, float) or (isinstance(exact, list) and exact and isinstance(exact[0], float)):
        np.testing.assert_allclose(found, exact, RTOL, ATOL)
    elif isinstance(exact, list) and exact and isinstance(exact[0], dict):
        for one, other in zip(found, exact, strict=True):
            agree(one, other)
    else:
        assert found == exact


@pytest.mark.parametrize("loss", LOSSES)
def test_the_pages_mathematics_agrees_with_the_library_and_calls_find_every_rank(loss: str) -> None:
    asked = list(requests(loss, 100))
    for found, request in zip(explained_by_node(asked), asked, strict=True):
        exact = explained(request)
        if loss == "zero-one":
            assert found["calls"] is None
        else:
            ranks: dict[int, int] = {}
            for call in found["calls"]:
                assert len(call["values"]) == (call["high"] - call["low"] + 1 if call["m"] else 1)
                assert call["values"][call["opt"] - call["low"] if call["m"] else 0] >= max(call["values"]) - 1e-12
                for j in [call["m"]] if call["m"] else range(call["left"], call["right"] + 1):
                    assert j not in ranks
                    ranks[j] = call["opt"]
            assert [ranks[j + 1] for j in range(len(ranks))] == exact["violating"]["ranks"]
        if len(exact["negatives"]) > SORTED_NEGATIVES:
            del found["calls"], exact["calls"]
        agree(found, exact)


def test_the_folder_has_the_page_and_one_plain_script_that_names_no_other_place(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["dark.css", SCRIPT, "index.html", "style.css"]
    for path in folder.iterdir():
        text = path.read_text("utf-8")
        places = set(re.findall(r"(?:https?:)?//[\w.]+\.\w+[^\s\"']*", text))
        assert places <= {"http://www.w3.org/2000/svg"}, path
        assert not re.search(
            r"\beval\b|innerHTML|new Function|\sstyle=|\son\w+=|\bfetch\(|^import ", text, re.MULTILINE
        ), path


@pytest.mark.parametrize("options", [[], ["--no-browser"]])
def test_the_command_writes_the_page_and_opens_a_browser_unless_told_not_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert main(["explore", "--out", str(tmp_path / "page"), *options]) == 0
    said = capsys.readouterr().out.strip()
    assert said == (tmp_path / "page" / "index.html").as_uri()
    assert opened == ([] if options else [said])
    assert (tmp_path / "page" / SCRIPT).is_file()
    monkeypatch.setenv("RANKWISE_CACHE_DIR", str(tmp_path))
    assert main(["explore", "--no-browser"]) == 0
    assert (tmp_path / "explorer" / "index.html").is_file()
