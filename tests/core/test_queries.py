"""Queries that are built once and solved many times."""

from __future__ import annotations

import numpy as np

from rankwise.queries import as_queries, single_query


def test_queries_know_their_counts(rng: np.random.Generator) -> None:
    starts = np.array([0, 6, 7, 7, 15, 24])  # the second has one sample, the third none
    queries = as_queries(rng.random(24) < 0.4, starts)
    n_pos, n_neg = queries.counts
    for q in range(starts.size - 1):
        part = queries.relevant[starts[q] : starts[q + 1]]
        assert (n_pos[q], n_neg[q]) == (part.sum(), (~part).sum())
    assert queries.n_pos == n_pos.sum()
    np.testing.assert_array_equal(queries.sizes, [6, 1, 0, 8, 9])
    alone = single_query(queries.relevant)
    np.testing.assert_array_equal(alone.counts.ravel(), [queries.n_pos, 24 - queries.n_pos])
