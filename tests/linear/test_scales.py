"""A RankSVM warns of features whose scales are far apart, once, with the remedy, and not of usual data."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.preprocessing import StandardScaler

import rankwise as rw
from rankwise.linear.scales import check_scales

APART = r"^features 2 and 3 differ in scale by a factor of about 10\^5, .*make_pipeline\({}\(\), {}\(\.\.\.\)\)"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3)) * [1.0, 1e-2, 1e3]
Y = (X @ [1.0, 100.0, 0.0] > 1.0).astype(int)
FORMS: dict[str, tuple[Any, str]] = {
    "dense": (np.asarray, "StandardScaler"),
    "csr": (sp.csr_array, "MaxAbsScaler"),
    "csc": (sp.csc_array, "MaxAbsScaler"),
}


@pytest.mark.parametrize("form", FORMS)
def test_scales_far_apart_are_told_of_with_the_remedy(form: str) -> None:
    make, scaler = FORMS[form]
    with pytest.warns(UserWarning, match=APART.format(scaler, "RankSVM")) as found:
        rw.RankSVM(C=1e-3, max_iter=20, tol=0.5).fit(make(X), Y)
    assert [warning.filename for warning in found] == [__file__]


def test_a_search_warns_once() -> None:
    model = rw.RankSVMCV(Cs=[1e-4, 1e-3], cv=2, max_iter=20, tol=0.5)
    with pytest.warns(UserWarning, match=APART.format("StandardScaler", "RankSVMCV")) as found:
        model.fit(X, Y)
    assert [warning.filename for warning in found] == [__file__]


def is_told(samples: Any) -> bool:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        check_scales(samples, "RankSVM")
    return bool(found)


def one_hot(n: int, d: int) -> NDArray[np.float64]:
    """Indicators of categories, of which half are rare."""
    rng = np.random.default_rng(1)
    return np.eye(d)[np.where(rng.random(n) < 0.01, rng.integers(0, d, n), rng.integers(0, d // 2, n))]


def normal(size: int) -> NDArray[np.float64]:
    return RNG.normal(size=size)


USUAL: dict[str, Any] = {
    "digits": load_digits().data,
    "standardised": StandardScaler().fit_transform(load_breast_cancer().data),
    "rare categories beside standardised": np.column_stack([one_hot(5000, 60), RNG.normal(size=(5000, 5))]),
    "sparse categories": sp.csr_array(one_hot(5000, 60)),
    "few entries": sp.random_array((5000, 3000), density=1e-3, format="csr", random_state=1, data_sampler=normal),
    "heavy tails": RNG.lognormal(sigma=1.5, size=(5000, 20)),
    "constant columns": np.column_stack([RNG.normal(size=500), np.full(500, 1e9), np.zeros(500), np.full(500, 1e-9)]),
    "constant but for rounding": np.column_stack([RNG.normal(size=500), 0.1 + 1e-17 * np.arange(500)]),
    "one feature": 1e9 * RNG.normal(size=(500, 1)),
    "no stored entry": sp.csc_array((50, 4)),
    "float32": RNG.normal(size=(50, 4)).astype(np.float32),
}
FAR_APART: dict[str, Any] = {
    "breast cancer": load_breast_cancer().data,
    "wine": load_wine().data,
    "more than there are numbers": RNG.normal(size=(50, 2)) * [1e-300, 1e99],
    "float32": (RNG.normal(size=(50, 2)) * [1e-30, 1e30]).astype(np.float32),
}


@pytest.mark.parametrize("name", USUAL)
def test_usual_features_are_not_told_of(name: str) -> None:
    assert not is_told(USUAL[name])


@pytest.mark.parametrize("name", FAR_APART)
def test_features_of_different_units_are_told_of(name: str) -> None:
    given = FAR_APART[name]
    for samples in (given, np.asfortranarray(given), sp.csr_array(given), sp.csc_array(given)):
        assert is_told(samples)


def test_of_many_rows_some_are_looked_at(tmp_path: Path) -> None:
    many = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float32, (200_000, 2))
    many[:, 0], many[:, 1] = np.arange(200_000) % 7, 1e-5 * (np.arange(200_000) % 5)
    assert is_told(many)
    assert is_told(sp.csr_array(many))


@pytest.mark.parametrize("scale", [1e-3, 1e-5])
def test_a_C_of_which_0_is_within_the_tolerance_still_ranks(scale: float) -> None:
    samples = scale * RNG.normal(size=(120, 3))
    labels = (samples[:, 0] > 0.0).astype(int)
    model = rw.RankSVM(C=10.0).fit(samples, labels)
    assert model.gap_ <= model.tol
    assert rw.metrics.average_precision(model.decision_function(samples), labels) > 0.9


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scale", [1e-20, 1e-140])
def test_coefficients_of_0_are_told_of(form: str, scale: float) -> None:
    with pytest.warns(UserWarning, match="all scores are equal: C=10 is too small .* leave out C, or scale") as found:
        rw.RankSVM(C=10.0).fit(FORMS[form][0](scale * RNG.normal(size=(120, 3))), Y)
    assert [warning.filename for warning in found] == [__file__]
