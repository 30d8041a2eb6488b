"""The positives' side: their weights, and the ranks of negatives turned into Δ and the positives' gradients."""

from __future__ import annotations

import numpy as np

from rankwise.kernels.compiled import kernel, part
from rankwise.kernels.steps import discount_at


@kernel
def scaled_weights(weight, discount, tail, per_pair, n_pos, n_neg, scale, out):
    """out[i−1] = scale·w_i·PN/(2C), the weights in the units of steps.py, 2/(PN); C."""
    norm = float(n_pos) * float(n_neg)
    if not per_pair:
        norm = 0.0
        for k in range(1, n_pos + 1):
            norm += weight[k - 1] * discount_at(discount, tail, k)
    factor = scale * float(n_pos) * float(n_neg) / (2.0 * norm)
    for k in range(n_pos):
        out[k] = factor * weight[k]
    return norm


@part
def middle_by_weight(pos, weight):
    """The middle one of the positives if the k-th counts weight[k − 1] times; the last one if none counts."""
    total = so_far = 0.0
    for k in range(pos.shape[0]):
        total += float(weight[k])
    for k in range(pos.shape[0]):
        so_far += float(weight[k])
        if 2.0 * so_far > total:
            return pos[k]
    return pos[pos.shape[0] - 1]


@part
def finish_positives(pos, idx, n_pos, at_rank, n_neg, ref, gradient):
    """Positives' gradient −2 c_k/(PN), shared among ties, from the negatives per rank; Σ gradient·(score − ref).

    c_k, the number of negatives above the k-th positive, replaces at_rank[k].
    """
    unit = 2.0 / (float(n_pos) * float(n_neg))
    for k in range(1, n_pos + 1):
        at_rank[k] += at_rank[k - 1]
    total = 0.0
    k = 0
    while k < n_pos:
        end = k
        above = 0.0
        while end < n_pos and pos[end] == pos[k]:
            end += 1
            above += at_rank[end]
        g = -unit * above / (end - k)
        for q in range(k, end):
            gradient[idx[q]] = g
        total += g * (pos[k] - ref) * (end - k)
        k = end
    return total


@kernel
def finish(weight, discount, tail, norm, pos, idx, n_neg, at_rank, ref, gradient):
    """Gradients of the positives, c_k in at_rank; Σ gradient·(score − ref) of these, and Δ."""
    n_pos = pos.shape[0]
    total = finish_positives(pos, idx, n_pos, at_rank, n_neg, ref, gradient)
    return total, discounted_loss(weight, discount, tail, norm, at_rank, n_pos)


@part
def discounted_loss(weight, discount, tail, norm, above, n_pos):
    """Δ = (1/C) Σ_k w_k (D(k) − D(k + c_k)), above[k] = c_k for 1 ≤ k ≤ P."""
    total = 0.0
    for k in range(1, n_pos + 1):
        if above[k] > 0:
            total += weight[k - 1] * (discount_at(discount, tail, k) - discount_at(discount, tail, k + above[k]))
    return total / norm


@part
def place_by_score(pos, neg, places):
    """c*_i, how many negatives score above each positive, both in descending order."""
    c = np.int64(0)
    for i in range(pos.shape[0]):
        while c < neg.shape[0] and neg[c] > pos[i]:
            c += 1
        places[i] = c
