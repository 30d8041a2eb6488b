"""Docstrings of the public API follow numpydoc's rules."""

from __future__ import annotations

import pytest
from public_names import PAGES, documented

validation = pytest.importorskip("numpydoc.validate", reason="numpydoc is not installed")

# One sentence may say all. What a class is for, beside what and by which example, its own docstring says.
_NOT_ASKED = {"ES01"}
_NOT_ASKED_OF_MEMBERS = {"EX01", "SA01"}
NAMES = list(documented())


def test_every_page_of_the_reference_has_names_to_check() -> None:
    assert len(NAMES) > 250
    assert {name.split(".")[1] for name in NAMES} >= {page for page in PAGES if page in ("io", "linear", "metrics")}


@pytest.mark.parametrize("name", NAMES)
def test_a_docstring_is_valid(name: str) -> None:
    found = validation.validate(name)
    not_asked = _NOT_ASKED | (set() if _is_top_level(name) else _NOT_ASKED_OF_MEMBERS)
    errors = [f"{code}: {text}" for code, text in found["errors"] if code not in not_asked]
    assert not errors, f"{name} ({found['file']}:{found['file_line']})\n" + "\n".join(errors)


def _is_top_level(name: str) -> bool:
    return any(name.rpartition(".")[0] == module for module in PAGES.values())
