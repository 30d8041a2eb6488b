"""Imbalanced multi-label classification: many labels, most of them rare, judged by mean average precision.

Every sample is a strip of three handwritten digits, and its labels are the digits in it. Zeros are common, nines rare.
Scores are (n, 10); with dim=0 each label is a query of its own, so a rare label counts as much as a common one.

    python examples/imbalanced_multilabel.py
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

import rankwise.torch as rwt
from rankwise.metrics import average_precision

SPLITS, STEPS, RARE = 3, 80, slice(5, 10)


def strips(images, digits, n, rng):
    """n strips of three images, digit c drawn with probability ∝ 0.6^c: pixels (n, 192) and labels (n, 10)."""
    frequency = 0.6 ** np.arange(10)
    shown = rng.choice(10, size=(n, 3), p=frequency / frequency.sum())
    picked = np.empty_like(shown)
    for c in range(10):
        picked[shown == c] = rng.choice(np.flatnonzero(digits == c), size=(shown == c).sum())
    labels = (shown[:, :, None] == np.arange(10)).any(axis=1)
    return torch.tensor(images[picked].reshape(n, -1), dtype=torch.float32), torch.tensor(labels)


def train(model, loss, X, Y, lr):
    """Steps on the whole set: each label's average precision is then that of all its samples."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss(model(X), Y).backward()
        optimizer.step()


@torch.no_grad()
def evaluate(model, X, Y):
    """Average precision of each label (10,)."""
    return np.array([average_precision(s, y) for s, y in zip(model(X).T.numpy(), Y.T.numpy(), strict=True)])


def compare(split):
    """Test AP by label after each way of training, all from the same first weights and with as many steps."""
    rng = np.random.default_rng(split)
    images, digits = load_digits(return_X_y=True)
    order = rng.permutation(digits.size)
    (X, Y), (X_test, Y_test) = (strips(images[part] / 16, digits[part], 1000, rng) for part in np.split(order, [900]))
    balance = (~Y).sum(0) / Y.sum(0)
    ways = {
        "cross-entropy": (lambda s, y: cross_entropy(s, y.float()),) * 2,
        "cross-entropy, balanced": (lambda s, y: cross_entropy(s, y.float(), pos_weight=balance),) * 2,
        "cross-entropy, then AP": (lambda s, y: cross_entropy(s, y.float()), rwt.APHingeLoss(dim=0, scale=3.0)),
        "AP from the start": (rwt.APHingeLoss(dim=0, scale=3.0),) * 2,
    }
    found = {}
    for way, (first, second) in ways.items():
        torch.manual_seed(split)
        model = torch.nn.Sequential(torch.nn.Linear(192, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
        train(model, first, X, Y, lr=2e-2)
        train(model, second, X, Y, lr=1e-2)
        found[way] = evaluate(model, X_test, Y_test)
    return found


def main():
    """Print the table."""
    splits = [compare(split) for split in range(SPLITS)]
    print(f"Test mean AP over 10 labels, over the 5 rare ones, and by split ({SPLITS} random splits)")
    for way in splits[0]:
        ap = np.array([found[way] for found in splits])
        by_split = "  ".join(f"{value:.3f}" for value in ap.mean(axis=1))
        print(f"{way:24s}  {ap.mean():.3f}  {ap[:, RARE].mean():.3f}  |  {by_split}")


if __name__ == "__main__":
    main()
