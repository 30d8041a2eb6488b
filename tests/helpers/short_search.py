"""The search of LinearRanker with a third of its candidates, for tests that do not ask how well it ranks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rankwise.linear import candidates, tuning

_CS = {name: Cs[1::3] for name, Cs in tuning._CS.items()}
_STRENGTHS = candidates.STRENGTHS[::3]


@contextmanager
def fewer_candidates() -> Iterator[None]:
    """Every classifier is tried with three values of C, and every refinement with three strengths, of the real ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "_CS", _CS)
        patch.setattr(tuning, "STRENGTHS", _STRENGTHS)
        patch.setattr(candidates, "STRENGTHS", _STRENGTHS)
        yield
