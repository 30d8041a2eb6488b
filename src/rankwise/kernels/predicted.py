"""The ranking R_w that scores induce: c_k, its loss, and the gradient of F(R_w) − F(R*), for queries at once.

A negative with p positives below it has the gradient 2p/(PN), the k-th positive −2c_k/(PN). O(N log P + P log P).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.kernels.compiled import kernel
from rankwise.kernels.contract import AnyLoss
from rankwise.kernels.positives import discounted_loss, scaled_weights
from rankwise.kernels.sorting import slots, sort_descending


class Predicted(NamedTuple):
    """Δ of each query (Q,), and the gradient (n,) of the sum of F(R_w) − F(R*)."""

    loss: NDArray[np.float64]
    gradient: NDArray[np.floating]


def predict(
    scores: NDArray[np.floating],
    relevant: NDArray[np.bool_],
    starts: NDArray[np.int64],
    loss: AnyLoss,
    worst: bool = True,
) -> Predicted:
    """Δ and the gradient of the ranking by finite scores of each query [starts[q], starts[q+1]); 0 where it is empty.

    Of a positive and a negative of equal score, the negative is above if worst, else the positive.
    """
    above, gradient = predicted(scores, relevant, starts, worst)
    n_pos = count_positives(relevant, starts)
    counts = np.stack([n_pos, np.diff(starts) - n_pos], axis=1)
    return Predicted(_losses(above, counts, loss), gradient)


def _losses(above: NDArray[np.int64], counts: NDArray[np.int64], loss: AnyLoss) -> NDArray[np.float64]:
    out = np.zeros(counts.shape[0])
    some = counts.min(axis=1) > 0
    if not some.any():
        return out
    if loss.has_discount:
        n_pos, n = int(counts[some, 0].max()), int(counts[some].sum(axis=1).max())
        failed = discounted_losses(above, counts, *loss.tables(n_pos, n), out)
        if failed >= 0:
            loss.normaliser(*counts[failed].tolist())
        return out
    ends = np.cumsum(counts[:, 0])
    for q in np.flatnonzero(some):
        out[q] = loss.of_counts(above[ends[q] - counts[q, 0] : ends[q]], int(counts[q, 1]))
    return out


@kernel
def count_positives(relevant, starts):
    """The positives of each query."""
    result = np.zeros(starts.shape[0] - 1, np.int64)
    for q in range(result.shape[0]):
        for k in range(starts[q], starts[q + 1]):
            result[q] += relevant[k]
    return result


@kernel
def predicted(scores, relevant, starts, worst):
    """c_k of all queries, one after the other, by descending positive score, and the gradient; 0 in an empty query."""
    n_pos = count_positives(relevant, starts)
    above, gradient = np.zeros(n_pos.sum(), np.int64), np.zeros_like(scores)
    room = 0
    for q in range(n_pos.shape[0]):
        room = max(room, n_pos[q])
    pos, idx, at_rank = np.empty(room), np.empty(room, np.int64), np.empty(room + 1, np.int64)
    val_spare, idx_spare, slot = np.empty(room), np.empty(room, np.int64), slots(room)
    done = 0
    for q in range(n_pos.shape[0]):
        if 0 < n_pos[q] < starts[q + 1] - starts[q]:
            p = gather_positives(scores, relevant, starts[q], starts[q + 1], val_spare, idx_spare)
            sort_descending(val_spare, idx_spare, p, pos, idx, slot)
            place_negatives(scores, relevant, starts[q], starts[q + 1], pos, p, worst, at_rank, gradient)
            unit = 2.0 / (float(p) * float(starts[q + 1] - starts[q] - p))
            total = 0
            for k in range(p):
                total += at_rank[k]
                above[done + k] = total
                gradient[idx[k]] = -unit * total
        done += n_pos[q]
    return above, gradient


@kernel
def gather_positives(scores, relevant, start, stop, pos, idx):
    """Scores and positions of the positives in start..stop; how many."""
    p = 0
    for k in range(start, stop):
        if relevant[k]:
            pos[p], idx[p] = scores[k], k
            p += 1
    return p


@kernel
def place_negatives(scores, relevant, start, stop, pos, n_pos, worst, at_rank, gradient):
    """Negatives' gradients, and at_rank[i], how many negatives have i positives above them."""
    unit = 2.0 / (float(n_pos) * float(stop - start - n_pos))
    at_rank[: n_pos + 1] = 0
    for k in range(start, stop):
        if not relevant[k]:
            score = np.float64(scores[k])
            i, size = 0, n_pos
            while size > 0:  # positives i, …, i + size − 1 are yet to be compared
                half = (size + 1) >> 1
                value = pos[i + half - 1]
                i += half * ((value > score) | ((value == score) & (not worst)))
                size -= half
            at_rank[i] += 1
            gradient[k] = unit * (n_pos - i)


@kernel
def discounted_losses(above, counts, weight, discount, tail, per_pair, out):
    """Δ of each query in out, 0 where it is empty; the first one whose normaliser is not positive, or −1."""
    room = 0
    for q in range(counts.shape[0]):
        room = max(room, counts[q, 0])
    scaled, shifted = np.empty(room), np.empty(room + 1, np.int64)
    done = 0
    for q in range(counts.shape[0]):
        n_pos, n_neg = counts[q, 0], counts[q, 1]
        if n_pos > 0 and n_neg > 0:
            norm = scaled_weights(weight, discount, tail, per_pair, n_pos, n_neg, 1.0, scaled)
            if not norm > 0.0:
                return q
            for k in range(n_pos):
                shifted[k + 1] = above[done + k]
            out[q] = discounted_loss(weight, discount, tail, norm, shifted, n_pos)
        done += n_pos
    return -1
