"""A metric and a surrogate that only this file defines: every host trains with them and judges by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import rankwise as rw
from rankwise import boosting, metrics

RTOL, LOOSE = 1e-12, 1e-6
Array = NDArray[Any]


@metrics.register
class Mine(rw.DiscountedLoss):
    """Σ_k √k/(2 + place of the k-th positive), over that of the best order."""

    name, cut = "mine", "optionally"

    def weight(self, k: Any) -> Any:
        return np.sqrt(k)

    def discount(self, m: Any) -> Any:
        return 1.0 / (2.0 + m)

    def slope(self, m: Any) -> Any:
        return -1.0 / np.square(2.0 + m)


@dataclass(frozen=True)
class Logistic(rw.Surrogate):
    """(1/PN) Σ log(1 + exp((s_y − s_x)/temperature)) over pairs of a positive x and a negative y."""

    temperature: float = 1.0
    name: ClassVar[str] = "logistic"
    is_convex: ClassVar[bool] = True

    def solve_binary(self, scores: Array, queries: rw.Queries, loss: rw.Loss, n_threads: int = 1) -> rw.Solved:
        if not np.isfinite(scores).all():
            raise rw.NotFiniteError
        value, gradient = np.zeros(queries.sizes.size), np.zeros_like(scores)
        for q in np.flatnonzero(queries.can_rank):
            own = slice(queries.starts[q], queries.starts[q + 1])
            s, y = scores[own].astype(np.float64), queries.relevant[own]
            x = (s[None, ~y] - s[y, None]) / self.temperature
            value[q] = np.logaddexp(0.0, x).mean()
            rate = 1.0 / (1.0 + np.exp(-x)) / x.size / self.temperature
            gradient[own][y], gradient[own][~y] = -rate.sum(axis=1), rate.sum(axis=0)
        return rw.Solved(value, value, gradient)


def mine(scores: Array, relevant: Array, k: float = np.inf) -> float:
    """The metric by its definition; no two scores may be equal."""
    places = 1.0 + np.flatnonzero(relevant[np.argsort(-scores)])
    numbers = np.arange(1.0, places.size + 1.0)
    found = np.where(places <= k, np.sqrt(numbers) / (2.0 + places), 0.0).sum()
    return float(found / np.where(numbers <= k, np.sqrt(numbers) / (2.0 + numbers), 0.0).sum())


def logistic(scores: Array, relevant: Array) -> float:
    return float(np.mean([np.log1p(np.exp(a - b)) for a in scores[~relevant] for b in scores[relevant]]))


def by_query(value: Any, qid: Array, *arrays: Array) -> float:
    return float(np.mean([value(*(array[qid == q] for array in arrays)) for q in np.unique(qid)]))


@pytest.fixture
def problem(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Scores, relevance and five queries."""
    return rng.normal(size=60), np.arange(60) % 4 == 0, np.arange(60) // 12


@pytest.fixture
def data(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Features of which two tell what is relevant, relevance, and queries of 10 samples."""
    X = rng.normal(size=(300, 4))
    return X, X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=300) > 1.0, np.arange(300) // 10


def gradient_by_differences(value: Any, scores: Array) -> Array:
    step = 1e-5
    moved = [(value(scores + step * unit), value(scores - step * unit)) for unit in np.eye(scores.size)]
    return np.array([(up - down) / (2.0 * step) for up, down in moved])


# --- the metric


@pytest.mark.parametrize(("name", "k"), [("mine", np.inf), ("mine@3", 3)])
def test_the_metric_judges_under_its_name(name: str, k: float, problem: tuple[Array, Array, Array]) -> None:
    scores, relevant, qid = problem
    expected = by_query(lambda s, y: mine(s, y, k), qid, scores, relevant)
    ids, values = metrics.per_query(name, scores, relevant, qid)
    found = [
        metrics.as_metric(name)(scores, relevant, qid=qid),
        values.mean(),
        1.0 - rw.ranking_loss(scores, relevant, name, qid=qid),
        metrics.compare(name, -scores, scores, relevant, qid).mean_b,
        boosting.metric(name, qid=qid)(relevant, scores)[1],
    ]
    np.testing.assert_allclose(found, expected, rtol=RTOL)
    low, high = metrics.bootstrap_interval(name, scores, relevant, qid)
    assert low < expected < high
    assert ids.size == 5
    assert metrics.METRICS["mine"] is metrics.LOSSES["mine"] is Mine


def test_a_name_is_given_once() -> None:
    class Other(rw.DiscountedLoss):
        name = "ap"

    with pytest.raises(ValueError, match="'ap' is the name of AveragePrecision"):
        metrics.register(Other)
    Other.name = "a@b"
    with pytest.raises(ValueError, match="'a@b' of a metric must be a word without @"):
        metrics.register(Other)


@pytest.mark.parametrize("name", ["mine", "mine@3"])
def test_its_hinge_is_exact(name: str, rng: np.random.Generator) -> None:
    for seed in range(20):
        scores, relevant = rng.normal(size=7), rng.permutation(7) < 1 + seed % 5
        found = rw.structured_hinge(scores, relevant, name, scale=3.0)
        exhaustive = rw.structured_hinge(scores, relevant, name, scale=3.0, method="exhaustive")
        assert found.value == pytest.approx(exhaustive.value, rel=RTOL)
        assert found.value >= 3.0 * (1.0 - mine(scores, relevant, 3 if "@" in name else np.inf)) - RTOL


def test_its_smooth_loss_has_its_gradient_and_falls_to_it(problem: tuple[Array, Array, Array]) -> None:
    scores, relevant, qid = problem
    found = rw.smooth_loss(scores, relevant, "mine", qid=qid)
    by_differences = gradient_by_differences(lambda s: rw.smooth_loss(s, relevant, Mine(), qid=qid).value, scores)
    np.testing.assert_allclose(found.gradient, by_differences, atol=LOOSE)
    expected = 1.0 - by_query(mine, qid, scores, relevant)
    for surrogate in (rw.Smooth(1e-6), rw.ErrorDriven(1e-6, interpolate=False), rw.Direct()):
        assert rw.evaluate(surrogate, scores, relevant, "mine", qid=qid).value == pytest.approx(expected, rel=RTOL)


@pytest.mark.parametrize("surrogate", [None, Logistic(0.5)], ids=["smooth", "own"])
def test_linear_ranker_tunes_itself_for_it(surrogate: rw.Surrogate | None, data: tuple[Array, Array, Array]) -> None:
    X, relevant, qid = data
    model = rw.LinearRanker("mine@5", cv=2, surrogate=surrogate).fit(X[:200], relevant[:200], qid[:200])
    assert model.metric_ == "mine@5"
    scores = model.decision_function(X[200:])
    first = metrics.as_metric("mine@5")(X[200:, 0], relevant[200:], qid=qid[200:])
    assert metrics.as_metric("mine@5")(scores, relevant[200:], qid=qid[200:]) > first + 0.05


# --- the surrogate


def test_the_surrogate_is_evaluated_by_its_definition(problem: tuple[Array, Array, Array]) -> None:
    scores, relevant, qid = problem
    found = rw.evaluate(Logistic(), scores, relevant, "mine", qid=qid)
    assert found.value == pytest.approx(by_query(logistic, qid, scores, relevant), rel=RTOL)
    by_differences = gradient_by_differences(lambda s: by_query(logistic, qid, s, relevant), scores)
    np.testing.assert_allclose(found.gradient, by_differences, atol=LOOSE)
    with pytest.raises(ValueError, match=r"scores\[7\] is nan"):
        rw.evaluate(Logistic(), np.where(np.arange(60) == 7, np.nan, scores), relevant, qid=qid)


@pytest.mark.parametrize("surrogate", [rw.Hinge(), Logistic()], ids=["hinge", "own"])
def test_rank_svm_minimises_a_convex_surrogate(surrogate: rw.Surrogate, data: tuple[Array, Array, Array]) -> None:
    X, relevant, qid = data

    def objective(w: Array) -> float:
        found = rw.evaluate(surrogate, X @ w, relevant, "mine", qid=qid, empty="skip")
        return float(0.5 * w @ w + 10.0 * found.value)

    model = rw.RankSVM("mine", C=10.0, tol=1e-6, surrogate=surrogate).fit(X, relevant, qid)
    assert model.objective_ == pytest.approx(objective(model.coef_[0]), rel=RTOL)
    assert model.gap_ <= 1e-6
    assert metrics.as_metric("mine")(model.decision_function(X), relevant, qid=qid) > 0.9
    with pytest.raises(ValueError, match="convex"):
        rw.RankSVM(surrogate=rw.Smooth()).fit(X, relevant)


# --- both


BOTH = [("mine@5", rw.Smooth()), ("mine", rw.Hinge()), ("mine", rw.ErrorDriven()), ("ap", Logistic())]
both = pytest.mark.parametrize(("metric", "surrogate"), BOTH, ids=["smooth", "hinge", "error-driven", "own"])


@both
def test_trees_are_boosted_for_them(metric: str, surrogate: rw.Surrogate, data: tuple[Array, Array, Array]) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    X, relevant, qid = data
    options = {"objective": boosting.objective(metric, surrogate), "verbose": -1, "num_threads": 1, "min_data": 5}
    rows = lightgbm.Dataset(X, relevant * 1.0, group=np.full(30, 10))
    trees = lightgbm.train(options, rows, 20)
    assert metrics.as_metric("mine")(trees.predict(X), relevant, qid=qid) > 0.9


@both
def test_networks_are_trained_for_them(metric: str, surrogate: rw.Surrogate, data: tuple[Array, Array, Array]) -> None:
    torch = pytest.importorskip("torch")
    from rankwise.torch import RankLoss

    X, relevant, qid = (torch.from_numpy(array) for array in data)
    criterion, weight = RankLoss(metric, surrogate, empty="skip"), torch.zeros(4, dtype=torch.float64)
    weight.requires_grad_()
    for _ in range(100):
        value = criterion(X @ weight, relevant, qid=qid)
        (gradient,) = torch.autograd.grad(value, weight)
        expected = rw.evaluate(surrogate, (X @ weight).detach().numpy(), data[1], metric, qid=data[2], empty="skip")
        assert value.item() == pytest.approx(expected.value, rel=RTOL)
        np.testing.assert_allclose(gradient.numpy(), data[0].T @ expected.gradient, atol=RTOL)
        with torch.no_grad():
            weight -= 1.0 * gradient
    scores = (X @ weight).detach().numpy()
    assert metrics.as_metric("mine")(scores, data[1], qid=data[2]) > 0.9


def test_clusters_train_for_them(data: tuple[Array, Array, Array]) -> None:
    distributed = pytest.importorskip("distributed")
    import dask.array as da

    from rankwise.dask import DaskRankSVM, structured_hinge

    X, relevant, qid = (da.from_array(array, chunks=(75, *array.shape[1:])) for array in data)
    expected = rw.structured_hinge(data[0][:, 0], data[1], "mine", qid=data[2]).value
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        found = structured_hinge(X[:, 0], relevant, "mine", qid=qid, client=client)
        assert found.value == pytest.approx(expected, rel=RTOL)
        for surrogate in (None, Logistic()):
            model = DaskRankSVM(Mine(), C=10.0, surrogate=surrogate, client=client).fit(X, relevant, qid)
            local = rw.RankSVM("mine", C=10.0, surrogate=surrogate).fit(*data)
            np.testing.assert_allclose(model.coef_, local.coef_, rtol=1e-9)
