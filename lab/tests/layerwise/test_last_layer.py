"""fit_last_layer: the optimum that RankSVM finds on the same features, an honest gap, and what is refused."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rankwise_lab.layerwise import LastLayer, fit_last_layer  # noqa: E402
from rankwise_lab.layerwise.blocks import Blocks  # noqa: E402

import rankwise as rw  # noqa: E402

N, D, C = 90, 5, 3


def data(seed: int = 0, n: int = N) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % C)
    return rng.normal(size=(n, D)) + 1.2 * np.eye(C, D)[labels], labels


X, Y = data()


def J(loss: str, scores: Any, labels: Any, scale: float = 1.0) -> float:
    """The loss of a block, by the definition."""
    if loss == "hinge":
        margins = scores - scores[np.arange(len(labels)), labels][:, None]
        return float((margins + scale * (np.arange(C) != labels[:, None])).max(1).mean())
    found = []
    for c in range(C):
        relevant = labels == c
        if loss == "zero-one":
            found.append(np.maximum(0.0, scale - np.where(relevant, 1.0, -1.0) * scores[:, c]).mean())
        else:
            found.append(rw.structured_hinge(scores[:, c], relevant, loss, scale=scale).value)
    return float(np.mean(found))


def rows_of(block_size: int, seed: int = 0) -> list[Any]:
    """Which samples are in which block."""
    blocks = Blocks(np.arange(N, dtype=float)[:, None], Y, C, block_size=block_size, seed=seed, dtype=torch.float64)
    return [blocks.images(b)[:, 0].long().numpy() for b in range(len(blocks))]


@cache
def by_rank_svm(loss: str, lam: float, block_size: int, scale: float) -> float:
    """Σ over classes of lam·(½‖w‖² + C·mean of J over blocks), C = 1/(lam·classes): the same objective, class by class.

    RankSVM's own intercept is hardly penalised, ours is a weight as any other: a column of ones.
    """
    qid = np.zeros(N, int)
    for b, rows in enumerate(rows_of(block_size)):
        qid[rows] = b
    total = 0.0
    for c in range(C):
        model = rw.RankSVM(loss, 1.0 / (lam * C), tol=1e-5, fit_intercept=False, scale=scale)
        model.fit(np.column_stack([X, np.ones(N)]), np.equal(Y, c), qid=qid)
        total += lam * model.objective_
    return total


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["ap", "ndcg", "mrr", "auc", "zero-one"])
@pytest.mark.parametrize(
    ("block_size", "lam", "scale", "tol"),
    [(30, 0.05, 1.0, 5e-4), (45, 0.01, 2.0, 5e-4), (None, 0.1, 1.0, 8e-4)],
    ids=["blocks of 30", "blocks of 45", "one block"],
)
def test_the_optimum_is_that_of_rank_svm(
    loss: str, block_size: int | None, lam: float, scale: float, tol: float
) -> None:
    found = fit_last_layer(X, Y, loss, lam=lam, block_size=block_size, tol=tol, scale=scale, max_epochs=20_000)
    wanted = by_rank_svm(loss, lam, block_size or N, scale)
    assert found.converged
    assert found.objective == pytest.approx(wanted, rel=1e-3)
    assert found.dual <= wanted
    assert found.objective >= wanted * (1 - 1e-5)


@pytest.mark.parametrize("loss", ["hinge", "zero-one", "ap", "ndcg"])
@pytest.mark.parametrize("block_size", [20, 40, 500, None])
def test_the_objective_is_the_penalty_and_the_blocks_losses_by_their_share(loss: str, block_size: int | None) -> None:
    found = fit_last_layer(X, Y, loss, lam=0.05, block_size=block_size, tol=0.05, seed=3, scale=1.5)
    assert (found.weight.shape, found.bias.shape) == ((C, D), (C,))
    scores = X @ found.weight.T + found.bias
    np.testing.assert_array_equal(found.decision_function(X), scores)
    loss_of_blocks = sum(len(r) / N * J(loss, scores[r], Y[r], 1.5) for r in rows_of(block_size or N, 3))
    penalty = 0.025 * ((found.weight**2).sum() + (found.bias**2).sum())
    assert found.objective == pytest.approx(penalty + loss_of_blocks, rel=1e-10)
    assert found.gap == pytest.approx((found.objective - found.dual) / found.objective)


def test_of_a_ranking_there_is_no_bias() -> None:
    found = fit_last_layer(X, Y, "ap", lam=0.01, tol=0.05)
    assert np.abs(found.bias).max() < 1e-12
    assert np.abs(fit_last_layer(X, Y, "zero-one", lam=0.01, tol=0.05).bias).max() > 1e-3


def test_whether_it_converged_is_said_as_it_is() -> None:
    for epochs in (0, 1, 3):
        short = fit_last_layer(X, Y, "ap", lam=0.01, block_size=30, tol=1e-6, max_epochs=epochs)
        assert (short.epochs, short.converged) == (epochs, False)
        assert short.gap > 1e-6
        assert short.objective >= short.dual
    at_zero = fit_last_layer(X, Y, "ap", lam=0.01, block_size=30, max_epochs=0)
    assert not at_zero.weight.any()
    assert at_zero.objective == pytest.approx(J("ap", np.zeros((N, C)), Y), rel=0.1)
    whole = fit_last_layer(X, Y, "ap", lam=0.1, block_size=30, tol=0.02)
    assert whole.converged
    assert whole.gap <= 0.02
    one_less = fit_last_layer(X, Y, "ap", lam=0.1, block_size=30, tol=0.02, max_epochs=whole.epochs - 1)
    assert not one_less.converged


def same(one: LastLayer, other: LastLayer) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_the_same_is_found_again_and_from_features_and_labels_of_any_kind() -> None:
    options: dict[str, Any] = {"lam": 0.2, "block_size": 30, "tol": 0.03}
    first = fit_last_layer(X, Y, **options)
    fixed = X.copy()
    fixed.flags.writeable = False
    wide = np.zeros((N, 2 * D))
    wide[:, ::2] = X
    for features in (X, X.tolist(), torch.from_numpy(X), fixed, np.asfortranarray(X), wide[:, ::2], X.astype(">f8")):
        assert same(fit_last_layer(features, Y, **options), first)
    assert same(fit_last_layer(torch.from_numpy(X).requires_grad_(), Y, **options), first)
    for labels in (Y.tolist(), torch.from_numpy(Y), Y.astype(np.uint8), Y.astype(np.int16), Y.astype(">i4")):
        assert same(fit_last_layer(X, labels, **options), first)
    single = fit_last_layer(X.astype(np.float32), Y, **options)
    assert single.weight.dtype == np.float64
    assert same(single, fit_last_layer(torch.from_numpy(X).float(), Y, **options))
    assert single.objective == pytest.approx(first.objective, rel=0.02)
    assert not np.array_equal(fit_last_layer(X, Y, **options, seed=1).weight, first.weight)
    whole = np.round(3 * X).astype(np.int64)
    assert same(fit_last_layer(whole, Y, **options), fit_last_layer(whole.astype(float), Y, **options))


def test_what_is_given_and_random_numbers_of_the_caller_stay_as_they_were() -> None:
    features, labels = torch.from_numpy(X.copy()), torch.from_numpy(Y.copy())
    torch.manual_seed(5)
    state = torch.get_rng_state()
    fit_last_layer(features, labels, lam=0.1, tol=0.05)
    assert np.array_equal(features, X)
    assert np.array_equal(labels, Y)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_class_that_none_or_all_have_is_zero() -> None:
    found = fit_last_layer(X, np.where(Y == 1, 2, Y), "ap", lam=0.1, tol=0.05)
    assert found.weight.shape == (3, D)
    assert not found.weight[1].any()
    alone = fit_last_layer(X, np.zeros(N, int), "ap")
    assert (alone.weight.shape, alone.objective, alone.converged, alone.epochs) == ((1, D), 0.0, True, 0)
    one = fit_last_layer(X[:1], [0], "ap")
    assert (one.objective, one.gap) == (0.0, 0.0)
    assert fit_last_layer(X, Y, "ap", block_size=1).objective == 0.0


BROKEN = X.copy()
BROKEN[7, 2] = np.nan
BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "nan": ({"features": BROKEN}, ValueError, "features: .* 7 .*NaN"),
    "infinite": (
        {"features": np.where(np.isnan(BROKEN), np.inf, BROKEN)},
        ValueError,
        "features: row 7 contains NaN or infinity",
    ),
    "nan in a tensor": ({"features": torch.from_numpy(BROKEN)}, ValueError, "features: .* 7 .*NaN"),
    "one dimension": ({"features": X[:, 0]}, ValueError, r"features must be \(n, d\), got shape \(90,\)"),
    "three dimensions": ({"features": X[:, :, None]}, ValueError, r"features must be \(n, d\), got shape \(90, 5, 1\)"),
    "strings": ({"features": np.full((N, D), "a")}, TypeError, "features must be numbers"),
    "nothing": ({"features": None}, TypeError, "features must be numbers"),
    "no samples": ({"features": X[:0], "labels": Y[:0]}, ValueError, "labels must be integers .* at least one"),
    "too few labels": ({"labels": Y[:-1]}, ValueError, r"features: there are 90 .* labels have shape \(89,\)"),
    "a table of labels": ({"labels": Y[:, None]}, ValueError, r"labels must be integers \(n,\).* shape \(90, 1\)"),
    "negative labels": ({"labels": Y - 1}, ValueError, r"features: labels\[\d+\] is -1"),
    "labels of floats": ({"labels": Y.astype(float)}, ValueError, "labels must be integers .* got dtype float64"),
    "labels of booleans": ({"labels": Y == 1}, ValueError, "labels must be integers .* got dtype bool"),
    "lam 0": ({"lam": 0.0}, ValueError, r"lam must be a positive number, got 0\.0"),
    "lam < 0": ({"lam": -1}, ValueError, "lam must be a positive number, got -1"),
    "lam nan": ({"lam": np.nan}, ValueError, "lam must be a positive number, got nan"),
    "lam a word": ({"lam": "1"}, ValueError, "lam must be a positive number, got '1'"),
    "tol 0": ({"tol": 0.0}, ValueError, "tol must be a positive number"),
    "epochs": ({"max_epochs": -1}, ValueError, "max_epochs must be an integer, at least 0, got -1"),
    "half an epoch": ({"max_epochs": 1.5}, ValueError, "max_epochs must be an integer"),
    "loss": ({"loss": "f2"}, ValueError, "unknown loss 'f2'"),
    "scale": ({"scale": -1.0}, ValueError, "scale must be"),
    "method": ({"method": "bubblesort"}, ValueError, "unknown method 'bubblesort'"),
    "a hinge of one class": ({"loss": "hinge", "labels": 0 * Y}, ValueError, "at least 2 classes, got 1"),
    "no block_size": ({"block_size": 0}, ValueError, "block_size must be an integer, at least 1, got 0"),
    "a label of no class": ({"labels": 10**9 * Y}, ValueError, "labels go up to 2000000000 for 90 samples"),
    "block_size": ({"block_size": 2.5}, ValueError, r"block_size must be an integer, .* got 2\.5"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_fitted_is_refused(case: str) -> None:
    changes, error, match = BAD[case]
    given: dict[str, Any] = {"features": X, "labels": Y} | changes
    with pytest.raises(error, match=match):
        fit_last_layer(given.pop("features"), given.pop("labels"), **given)


def test_all_options_are_by_name() -> None:
    kinds = [one.kind for one in inspect.signature(fit_last_layer).parameters.values()]
    assert kinds.count(inspect.Parameter.KEYWORD_ONLY) == len(kinds) - 3


@pytest.mark.parametrize("loss", ["ap", "hinge", "zero-one"])
def test_features_that_say_nothing_leave_a_constant_loss_that_is_certified(loss: str) -> None:
    found = fit_last_layer(np.zeros((30, 4)), np.arange(30) % 3, loss, lam=0.1, block_size=10)
    assert found.converged
    assert found.gap < 1e-3
    np.testing.assert_array_equal(found.weight, 0.0)
