"""Every exact method against the enumeration of all rankings: 150 random tiny problems for each loss and method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product

import numpy as np
import pytest
from rank_losses import NAMED, ODD, OWN, TOL, Query, slack

import rankwise as rw
from rankwise.inference import METHODS

PROBLEMS = 150
MOST_POS, MOST_NEG = 4, 6
SCALES = (0.0, 0.03, 1.0, 7.5, 400.0)

LOSSES: dict[str, rw.Loss] = {
    **NAMED,
    "discounted": OWN,
    "some-weights-zero": ODD,
}
EXACT = ("auto", "bucketed", "quicksort", "yue", "mohapatra2014", "dynamic", "chakrabarti")


def queries(seed: int, size: int = PROBLEMS) -> Iterator[Query]:
    """Random tiny queries: continuous scores or few values (ties), spread from 1e-3 to 1e3."""
    rng = np.random.default_rng(seed)
    for k in range(size):
        n_pos, n_neg = rng.integers(1, MOST_POS + 1), rng.integers(1, MOST_NEG + 1)
        relevant = rng.permutation(np.arange(n_pos + n_neg) < n_pos)
        if k % 3 == 0:
            scores = rng.integers(-2, 3, relevant.size) * 0.5
        elif k % 3 == 1:
            scores = rng.normal(size=relevant.size)
        else:
            scores = np.round(rng.normal(size=relevant.size), 1) + 0.3 * relevant
        yield Query(scores * 10.0 ** rng.integers(-3, 4), relevant, SCALES[rng.integers(len(SCALES))])


def of_interleaving(query: Query, loss: rw.Loss, above: list[int]) -> float:
    """scale·Δ + F − F* of the ranking in score order within each class, in plain loops over pairs."""
    pos, neg = sorted(query.scores[query.relevant])[::-1], sorted(query.scores[~query.relevant])[::-1]
    change = sum(
        -2 * (pos[k] - neg[j]) / (len(pos) * len(neg)) for k in range(len(pos)) for j in range(len(neg)) if j < above[k]
    )
    return query.scale * float(loss.of_counts(above, len(neg))) + change


@pytest.mark.slow
def test_exhaustive_finds_the_best_of_all_orders_of_the_samples(objective: Callable[..., float]) -> None:
    for query in queries(seed=1, size=15):
        if query.scores.size > 6:
            continue
        best = dict.fromkeys(LOSSES, -np.inf)
        seen = set()
        for order in permutations(range(query.scores.size)):
            place = np.argsort(order)
            pos, neg = np.flatnonzero(query.relevant), np.flatnonzero(~query.relevant)
            pos = pos[np.argsort(place[pos])]
            ranks = np.array([1 + np.sum(place[pos] < place[x]) for x in neg])
            if (*pos, *ranks) in seen:  # negatives next to each other, the other way round
                continue
            seen.add((*pos, *ranks))
            ranking = rw.Interleaving(ranks, pos, neg)
            by_scores = objective(query.scores, query.relevant, LOSSES["ap"], 0.0, ranking)
            for name, loss in LOSSES.items():
                lost = query.scale * float(loss.of_counts(ranking.above, neg.size))
                best[name] = max(best[name], lost + by_scores)
        for name, loss in LOSSES.items():
            found = rw.structured_hinge(query.scores, query.relevant, loss, scale=query.scale, method="exhaustive")
            assert abs(found.value - best[name]) <= slack(best[name]), (name, query)


@pytest.fixture(scope="module", params=LOSSES)
def enumerated(request: pytest.FixtureRequest) -> tuple[rw.Loss, list[tuple[Query, float]]]:
    """A loss, and queries with J by enumeration: once for all methods."""
    loss = LOSSES[request.param]
    return loss, [
        (query, rw.structured_hinge(*query[:2], loss, scale=query.scale, method="exhaustive").value)
        for query in queries(seed=2)
    ]


@pytest.mark.parametrize("method", EXACT)
def test_the_value_is_that_of_exhaustive_search(
    enumerated: tuple[rw.Loss, list[tuple[Query, float]]], method: str
) -> None:
    loss, problems = enumerated
    for query, best in problems:
        found = rw.structured_hinge(query.scores, query.relevant, loss, scale=query.scale, method=method)
        assert abs(found.value - best) <= slack(best), query


@pytest.mark.parametrize("method", [*EXACT, "exhaustive"])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_value_loss_gradient_and_interleaving_belong_to_one_ranking(
    loss: rw.Loss, method: str, objective: Callable[..., float]
) -> None:
    for query in queries(seed=3, size=30):
        found = rw.structured_hinge(query.scores, query.relevant, loss, scale=query.scale, method=method)
        ranking = found.interleaving
        n_neg = int((~query.relevant).sum())
        by_gradient = query.scale * found.loss + found.gradient @ query.scores
        by_definition = objective(query.scores, query.relevant, loss, query.scale, ranking)
        by_pairs = of_interleaving(query, loss, ranking.above.tolist())
        assert found.loss == pytest.approx(float(loss.of_counts(ranking.above, n_neg)), abs=TOL), query
        assert abs(found.value - by_gradient) <= slack(found.value), query
        assert abs(found.value - by_definition) <= slack(found.value), query
        assert abs(found.value - by_pairs) <= slack(found.value), query


def test_the_zero_one_hinge_is_the_best_labelling() -> None:
    for query in queries(seed=4):
        found = rw.structured_hinge(query.scores, query.relevant, "zero-one", scale=query.scale)
        y, n = np.where(query.relevant, 1.0, -1.0), query.scores.size
        labels = np.array(list(product((-1.0, 1.0), repeat=n)))
        # scale·Δ + F − F* of every labelling, with F = Σ ŷ·s / (2n)
        best = (query.scale * (labels != y).mean(axis=1) + (labels - y) @ query.scores / (2 * n)).max()
        by_definition = np.mean(np.maximum(0.0, query.scale - y * query.scores))
        assert abs(found.value - by_definition) <= slack(best), query
        assert abs(found.value - best) <= slack(best), query
        assert abs(found.value - query.scale * found.loss - found.gradient @ query.scores) <= slack(best), query


@pytest.mark.parametrize("method", [name for name in METHODS if name != "auto"])
def test_zero_one_is_no_ranking_loss_for_a_ranking_method(method: str) -> None:
    with pytest.raises(rw.NotQSSuitableError, match=r"\(C1\).*method='auto'"):
        rw.structured_hinge([1.0, 2.0], [True, False], "zero-one", method=method)


@pytest.mark.parametrize("cutoff", [1, 2, 3, 5, 30])
def test_a_cut_off_is_the_greedy_of_the_cut_discount(cutoff: int) -> None:
    cut = rw.DiscountedLoss(discount=lambda m: np.where(m < cutoff, 1 / np.log2(1.0 + m), 0.0), name="cut")
    for query in queries(seed=5, size=60):
        n_pos = int(query.relevant.sum())
        whole = rw.NDCG().normaliser(n_pos, 1)
        with_cut = rw.most_violating_ranking(
            query.scores, query.relevant, "ndcg", scale=query.scale, method="chakrabarti", cutoff=cutoff
        )
        if cutoff == 1:  # no loss is felt: the ranking by scores
            best = rw.structured_hinge(query.scores, query.relevant, "ndcg", scale=0.0).value
            felt = of_interleaving(query._replace(scale=0.0), rw.NDCG(), with_cut.above.tolist())
        else:  # the normaliser of the loss is that of the uncut discount
            scale = query.scale * cut.normaliser(n_pos, 1) / whole
            best = rw.structured_hinge(query.scores, query.relevant, cut, scale=scale, method="chakrabarti").value
            felt = of_interleaving(query._replace(scale=scale), cut, with_cut.above.tolist())
        assert abs(felt - best) <= slack(best), query


def test_exhaustive_says_when_there_are_too_many_rankings() -> None:
    with pytest.raises(ValueError, match=r"137846528820 interleavings of 20 positives and 20 negatives.*method='auto'"):
        rw.structured_hinge(np.arange(40.0), np.arange(40) < 20, method="exhaustive")
