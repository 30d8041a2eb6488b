"""The site lists every public name, and its pages lead to one another and to files that are there."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from public_names import PAGES, is_missing

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
DOCUMENTS = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")] + sorted(DOCS.glob("*.md"))
GALLERY = sorted((ROOT / "examples" / "gallery").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


def listed(page: str) -> list[str]:
    """The names in the lists of a page: lines of a single indented word."""
    return re.findall(r"^   (\w+)$", (DOCS / "api" / f"{page}.rst").read_text(encoding="utf-8"), re.MULTILINE)


def test_every_page_of_the_reference_is_checked_and_in_the_contents() -> None:
    assert {path.stem for path in (DOCS / "api").glob("*.rst")} == {*PAGES, "index"}
    assert set(listed("index")) == set(PAGES)


@pytest.mark.parametrize(("page", "module"), PAGES.items())
def test_the_reference_lists_every_public_name_once(page: str, module: str) -> None:
    if missing := is_missing(module):
        pytest.skip(f"{missing} is not installed")
    names = listed(page)
    assert f".. currentmodule:: {module}\n" in (DOCS / "api" / f"{page}.rst").read_text(encoding="utf-8")
    assert len(names) == len(set(names))
    public = set(importlib.import_module(module).__all__)
    # A module has a page of its own, and what `rankwise` has is listed there.
    elsewhere = {"functional"} | (set(listed("rankwise")) if module == "rankwise.latent" else set())
    assert set(names) == public - elsewhere


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as the code host and the site both make them."""
    headings = HEADING.findall(FENCE.sub("", path.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files_and_headings_that_are_there(path: Path) -> None:
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    broken = []
    for link in LINK.findall(text):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken, f"{path.name} leads nowhere: {broken}"


def test_contents_name_every_document_and_notebook_and_nothing_that_is_not_there() -> None:
    contents = "".join((DOCS / f"{name}.rst").read_text(encoding="utf-8") for name in ("guides", "background", "index"))
    entries = re.findall(r"^   ([\w/]+)$", contents, re.MULTILINE)
    made = {"gallery/index", *(f"notebooks/{path.stem}" for path in NOTEBOOKS)}  # by the build
    assert {path.stem for path in DOCS.glob("*.md")} | made <= set(entries)
    assert not [one for one in entries if one not in made and not list(DOCS.glob(f"{one}.*"))]


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_a_script_of_the_gallery_says_what_to_see(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert path.name.startswith("plot_")
    assert "**What to see**" in text.split('"""')[1]
    assert "plt.show()" in text


def test_the_readme_is_short_and_its_gains_are_those_of_the_benchmarks() -> None:
    number = re.compile(r"[+−]?\d\.\d{3,4}")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 120
    section = readme.partition("## When to use what")[2].partition("\n\nSpeed")[0]
    measured = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("benchmarks.md", "trees.md"))
    quoted = set(number.findall(section))
    assert len(quoted) > 10
    assert quoted <= set(number.findall(measured))


def test_the_check_of_a_built_site_finds_links_that_lead_nowhere(tmp_path: Path) -> None:
    def check() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, DOCS / "check_links.py", tmp_path]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert check().returncode == 2  # no site
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "page.html").write_text('<h1 id="there">x</h1><img src="../a%20b.png">', encoding="utf-8")
    (tmp_path / "a b.png").touch()
    links = '<a href="sub/page.html#there">x</a> <a href="#here" id="here">x</a> <a href="https://example.org/x">x</a>'
    (tmp_path / "index.html").write_text(links, encoding="utf-8")
    done = check()
    assert (done.returncode, done.stdout) == (0, "2 pages, every link inside the site resolves\n")
    wrong = ["sub/none.html", "sub/page.html#gone", "#gone", "none.png"]
    (tmp_path / "index.html").write_text(" ".join(f'<a href="{link}">x</a>' for link in wrong), encoding="utf-8")
    done = check()
    assert done.returncode == 1
    assert done.stderr.splitlines() == [f"broken link: index.html: {link}" for link in wrong]
