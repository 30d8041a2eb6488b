"""An interleaving's ranks, order, pattern and counts say the same thing."""

from __future__ import annotations

import numpy as np
import pytest

import rankwise as rw

# Samples 0..5: positives 4 (best), 1 and 2; negatives 0, 3 and 5. From the top: 3 4 1 0 5 2.
RANKING = rw.Interleaving(ranks=np.array([3, 1, 3]), positives=np.array([4, 1, 2]), negatives=np.array([0, 3, 5]))


def random_ranking(rng: np.random.Generator, n_pos: int, n_neg: int) -> rw.Interleaving:
    samples = rng.permutation(n_pos + n_neg)
    return rw.Interleaving(rng.integers(1, n_pos + 2, n_neg), samples[:n_pos], np.sort(samples[n_pos:]))


def test_the_example_reads_as_it_should() -> None:
    assert RANKING.order().tolist() == [3, 4, 1, 0, 5, 2]
    assert RANKING.pattern() == "-++--+"
    assert RANKING.above.tolist() == [1, 1, 3]
    assert (RANKING.n_pos, RANKING.n_neg) == (3, 3)
    assert repr(RANKING) == "Interleaving(-++--+)"


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (7, 1), (5, 5), (20, 60)])
def test_all_readings_are_consistent(size: tuple[int, int], rng: np.random.Generator) -> None:
    n = sum(size)
    for _ in range(20):
        ranking = random_ranking(rng, *size)
        order = ranking.order()
        assert sorted(order) == list(range(n))
        place = np.argsort(order)
        assert (np.diff(place[ranking.positives]) > 0).all()
        positive = np.isin(np.arange(n), ranking.positives)
        assert ranking.pattern() == "".join("+" if positive[x] else "-" for x in order)
        for rank, x in zip(ranking.ranks, ranking.negatives, strict=True):
            assert rank == 1 + sum(place[y] < place[x] for y in ranking.positives)
        for above, y in zip(ranking.above, ranking.positives, strict=True):
            assert above == sum(place[x] < place[y] for x in ranking.negatives)


def test_the_score_of_a_ranking_follows_from_its_ranks(rng: np.random.Generator) -> None:
    n_pos, n_neg = 6, 9
    ranking, scores = random_ranking(rng, n_pos, n_neg), rng.normal(size=15)
    pos, neg, place = ranking.positives, ranking.negatives, np.argsort(ranking.order())
    matrix = np.sign(place[neg][None, :] - place[pos][:, None])
    by_matrix = np.mean(matrix * (scores[pos][:, None] - scores[neg][None, :]))
    # Lemma 1 of the appendix, with r⁺_k = 1 + c_k.
    by_ranks = (n_neg + 2 - 2 * (1 + ranking.above)) @ scores[pos] + (n_pos + 2 - 2 * ranking.ranks) @ scores[neg]
    assert by_matrix == pytest.approx(by_ranks / (n_pos * n_neg), rel=1e-12)


def test_a_long_ranking_is_shown_by_its_counts(rng: np.random.Generator) -> None:
    assert repr(random_ranking(rng, 20, 40)).count("-") == 40
    assert repr(random_ranking(rng, 20, 41)) == "Interleaving(20 positives, 41 negatives)"


def test_the_most_violating_ranking_keeps_each_class_in_score_order(rng: np.random.Generator) -> None:
    for n in (30, 40_000):
        scores, relevant = np.round(rng.normal(size=n), 3), rng.random(n) < 0.1
        ranking = rw.most_violating_ranking(scores, relevant, "ap")
        assert sorted(ranking.positives) == np.flatnonzero(relevant).tolist()
        assert np.array_equal(ranking.negatives, np.flatnonzero(~relevant))
        assert (np.diff(scores[ranking.positives]) <= 0).all()
        by_score = np.argsort(-scores[ranking.negatives], kind="stable")
        ranks = ranking.ranks[by_score]
        lower = np.diff(scores[ranking.negatives][by_score]) < 0  # equal scores may have any order
        assert (np.diff(ranks)[lower] >= 0).all()


def test_several_queries_or_an_empty_one_have_no_single_ranking() -> None:
    many = rw.structured_hinge([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 0], qid=[0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"each query has its own.*most_violating_ranking"):
        _ = many.interleaving
    for relevant, loss in (([1, 1], "ap"), ([1, 0], "zero-one")):
        with pytest.raises(ValueError, match=r"the query is empty or has grades, or the loss is of labels"):
            _ = rw.structured_hinge([1.0, 2.0], relevant, loss).interleaving
    with pytest.raises(ValueError, match=r"2 positives and 0 negatives"):
        rw.most_violating_ranking([1.0, 2.0], [1, 1])
