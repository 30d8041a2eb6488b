"""Checkpoints: a fit that was cut off goes on to the same model, a finished one is only read, no other is mistaken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import rankwise as rw
from rankwise.io import ModelFileError, read_model, write_model
from rankwise.latent import cccp, training
from rankwise.linear import task as task_module

Array = NDArray[np.float64]
# Zeros may be a minimum: it is said, and not what these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore:LatentRankSVM found only coefficients of 0")


def data(seed: int = 0) -> tuple[list[Array], NDArray[np.bool_]]:
    rng = np.random.default_rng(seed)
    y = np.arange(60) % 3 == 0
    bags = [rng.normal(size=(rng.integers(2, 9), 4)) for _ in y]
    for bag, positive in zip(bags, y, strict=True):
        bag[rng.integers(len(bag)), 0] += 5.0 * positive
    return bags, y


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("latent-*.rw"))


def assert_same(model: Any, other: Any) -> None:
    """The same to the last bit, but for the time it took."""
    np.testing.assert_array_equal(model.coef_, other.coef_)
    np.testing.assert_array_equal(model.intercept_, other.intercept_)
    assert (model.objective_, model.dual_, model.gap_) == (other.objective_, other.dual_, other.gap_)
    assert (model.converged_, model.n_iter_) == (other.converged_, other.n_iter_)
    for name in set(model.history_) - {"seconds"}:
        np.testing.assert_array_equal(model.history_[name], other.history_[name], err_msg=name)


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Ctrl-C at the k-th call of inference; whether it came to that."""
    real = task_module.Inference.solve

    def at(k: int, model: Any, *args: Any) -> bool:
        count = [0]

        def hinge(*parts: Any, **options: Any) -> Any:
            count[0] += 1
            if count[0] == k:
                raise KeyboardInterrupt
            return real(*parts, **options)

        monkeypatch.setattr(task_module.Inference, "solve", hinge)
        try:
            model.fit(*args)
        except KeyboardInterrupt:
            return True
        finally:
            monkeypatch.setattr(task_module.Inference, "solve", real)
        return False

    return at


@pytest.mark.parametrize("entries", [0, 1 << 21], ids=["working set", "all candidates"])
@pytest.mark.parametrize(
    ("loss", "options"),
    [("ap", {"init": "random"}), ("zero-one", {}), ("ndcg", {"init": "first"})],
    ids=["chance", "mean", "first"],
)
def test_a_fit_cut_off_anywhere_goes_on_to_the_same_model(
    loss: str, options: Any, entries: int, tmp_path: Path, interrupted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cccp, "_SMALL", entries)
    bags, y = data()
    model = rw.LatentRankSVM(loss, 30.0, checkpoint=tmp_path / "c", tol=1e-5, outer_tol=1e-9, **options)
    whole = rw.LatentRankSVM(**model.get_params() | {"checkpoint": None}).fit(bags, y)
    cuts = 0
    for k in (7, 31, 3, 58, 40, 17):
        cuts += interrupted(k, model, bags, y)
    model.fit(bags, y)
    assert cuts >= 3
    assert_same(model, whole)
    assert len(files(tmp_path / "c")) == len(list((tmp_path / "c").iterdir())) == 1
    assert model.timing_["calls"] >= whole.timing_["calls"] - 20  # the ranker of means is not learnt again


def test_a_finished_fit_is_only_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bags, y = data()
    model = rw.LatentRankSVM(C=3.0, checkpoint=str(tmp_path / "made" / "here"))
    first = rw.LatentRankSVM(**model.get_params()).fit(bags, y)
    before = {path: path.read_bytes() for path in files(tmp_path / "made" / "here")}

    def never(*args: Any) -> None:
        raise AssertionError("it was done already")

    monkeypatch.setattr(cccp, "_round", never)
    monkeypatch.setattr(training, "begin", never)
    assert_same(model.fit(bags, y), first)
    assert_same(rw.LatentRankSVM(**model.get_params() | {"n_threads": 2, "verbose": 1}).fit(bags, y), first)
    assert {path: path.read_bytes() for path in files(tmp_path / "made" / "here")} == before
    assert len(before) == 1


def root(power: float) -> rw.Loss:
    return rw.DiscountedLoss(discount=lambda m: m**-power, name="root")


def linear(k: int) -> LogisticRegression:
    return LogisticRegression().fit(np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % k == 0)


QID = np.arange(60) // 3 % 4
OTHERS: dict[str, dict[str, Any]] = {
    "C": {"C": 1.5},
    "loss": {"loss": "auc"},
    "own loss": {"loss": root(0.5)},
    "another own loss": {"loss": root(2.0)},
    "zero-one": {"loss": "zero-one"},
    "without intercept": {"loss": "zero-one", "fit_intercept": False},
    "scale": {"scale": 0.5},
    "init": {"init": "first"},
    "candidates": {"init": np.ones(60, int)},
    "other candidates": {"init": np.zeros(60, int)},
    "coefficients": {"init": np.ones(4)},
    "model": {"init": linear(2)},
    "other model": {"init": linear(3)},
    "tol": {"tol": 1e-4},
    "outer_tol": {"outer_tol": 1e-4},
    "max_outer": {"max_outer": 49},
    "max_iter": {"max_iter": 9999},
    "chance": {"init": "random"},
    "other chance": {"init": "random", "random_state": 1},
}


def test_another_problem_in_the_same_folder_is_another_file(tmp_path: Path) -> None:
    bags, y = data()
    rw.LatentRankSVM(C=1.0, checkpoint=tmp_path).fit(bags, y)
    for known, (name, options) in enumerate(OTHERS.items(), 1):
        parameters = {"C": 1.0, **options}
        model = rw.LatentRankSVM(checkpoint=tmp_path, **parameters).fit(bags, y)
        assert len(files(tmp_path)) == known + 1, name
        assert_same(model, rw.LatentRankSVM(**parameters).fit(bags, y))
    known = len(files(tmp_path))
    moved = y.copy()
    moved[[0, 1]] = False, True
    changed = [bag.copy() for bag in bags]
    changed[17][-1, 3] += 1e-6
    regrouped = [np.concatenate(bags[:2])[:1], np.concatenate(bags[:2])[1:], *bags[2:]]
    weight = 1.0 + QID
    for given in [
        (bags, moved),
        (changed, y),
        (regrouped, y),
        (bags, y, QID),
        (bags, y, QID, weight),
        (bags[1:], y[1:]),
    ]:
        model = rw.LatentRankSVM(C=1.0, checkpoint=tmp_path).fit(*given)
        known += 1
        assert len(files(tmp_path)) == known
        assert_same(model, rw.LatentRankSVM(C=1.0).fit(*given))


def test_every_change_of_the_features_is_seen(tmp_path: Path) -> None:
    bags, y = data()
    rw.LatentRankSVM(C=1.0, checkpoint=tmp_path).fit(bags, y)
    for number, i in enumerate(range(0, 60, 7), 2):
        other = [bag.copy() for bag in bags]
        other[i][-1, -1] += 0.5
        rw.LatentRankSVM(C=1.0, checkpoint=tmp_path).fit(other, y)
        assert len(files(tmp_path)) == number


def test_equal_problems_are_one_file_whatever_they_are_made_of(tmp_path: Path) -> None:
    bags, y = data()
    names = [np.array([f"query {q}" for q in QID], dtype=object) for _ in range(2)]
    forms = [(bags, y, names[0]), (bags, y.astype(int), names[1]), ([bag.tolist() for bag in bags], y, QID)]
    models = [rw.LatentRankSVM(C=1.0, checkpoint=tmp_path).fit(*form) for form in forms]
    assert len(files(tmp_path)) == 1
    for model in models[1:]:
        assert_same(model, models[0])


def damaged(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    file = read_model(path)
    fewer = {name: array for name, array in file.arrays.items() if name != "coef"}
    return {
        "cut": lambda: path.write_bytes(content[:-100]),
        "empty": lambda: path.write_bytes(b""),
        "other bytes": lambda: path.write_bytes(b"a" + content[1:]),
        "a bit": lambda: path.write_bytes(content[:-900] + bytes([content[-900] ^ 1]) + content[-899:]),
        "another kind": lambda: write_model(path, "rank-svm", file.header, file.arrays),
        "without coef": lambda: write_model(path, file.kind, file.header, fewer),
        "without round": lambda: write_model(
            path, file.kind, {name: part for name, part in file.header.items() if name != "round"}, file.arrays
        ),
    }


@pytest.mark.parametrize(
    "how", ["cut", "empty", "other bytes", "a bit", "another kind", "without coef", "without round"]
)
def test_a_damaged_checkpoint_is_refused_by_name(how: str, tmp_path: Path) -> None:
    bags, y = data()
    rw.LatentRankSVM(C=1.0, checkpoint=tmp_path).fit(bags, y)
    (path,) = files(tmp_path)
    damaged(path)[how]()
    with pytest.raises(ModelFileError, match=path.name.replace(".", r"\.")) as caught:
        rw.LatentRankSVM(C=1.0, checkpoint=tmp_path).fit(bags, y)
    assert "\n" not in str(caught.value)


def test_a_file_is_no_folder_for_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file; name a folder"):
        rw.LatentRankSVM(C=1.0, checkpoint=tmp_path / "file").fit(*data())


def test_a_search_keeps_every_fit_and_reads_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bags, y = data()
    model = rw.LatentRankSVMCV(Cs=[0.1, 1.0], cv=3, checkpoint=tmp_path)
    first = rw.LatentRankSVMCV(**model.get_params()).fit(bags, y)
    assert len(files(tmp_path)) == 7
    monkeypatch.setattr(cccp, "_round", None)
    assert_same(model.fit(bags, y), first)
    np.testing.assert_array_equal(model.scores_, first.scores_)
