"""Retrieval: embeddings of images in which others of the same class come first, also for classes never seen.

The classes are the numbers 00 to 99, written as two handwritten digits. A small network learns from 80 of them; the
other 20 are searched for, with images of digits it has not seen either. Every image of a batch is a query against the
rest of it. The baseline, a supervised contrastive loss whose temperature suits the task, is level or a little ahead.

    python examples/retrieval_embeddings.py
"""

import numpy as np
import torch
from sklearn.datasets import load_digits

import rankwise.torch as rwt
from rankwise.metrics import per_query

SPLITS, STEPS, PER_CLASS = 2, 80, 4


def numbers(which, n_each, images, digits, rng):
    """n_each images of every number in which: pixels (n, 128) and the numbers (n,)."""
    shown = np.repeat(which, n_each)
    by_digit, count = np.argsort(digits, kind="stable"), np.bincount(digits)
    first = np.cumsum(count) - count
    halves = [images[by_digit[first[c] + rng.integers(count[c])]] for c in np.divmod(shown, 10)]
    return torch.tensor(np.concatenate(halves, axis=1), dtype=torch.float32), torch.tensor(shown)


def contrastive(embeddings, labels):
    """The mean over positives of −log softmax(cosine/0.1), for every embedding against the others."""
    embeddings = torch.nn.functional.normalize(embeddings, dim=1)
    itself = torch.eye(labels.shape[0], dtype=torch.bool)
    positive = (labels[:, None] == labels) & ~itself
    log_share = (embeddings @ embeddings.T / 0.1).masked_fill(itself, -1e9).log_softmax(dim=1)
    return -(log_share * positive).sum(1).div(positive.sum(1)).mean()


def train(loss, seen, images, digits, rng):
    """A network trained on batches of PER_CLASS images of every class that is to be seen."""
    model = torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.ReLU(), torch.nn.Linear(128, 32))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(STEPS):
        pixels, labels = numbers(seen, PER_CLASS, images, digits, rng)
        optimizer.zero_grad()
        loss(model(pixels), labels).backward()
        optimizer.step()
    return model


@torch.no_grad()
def evaluate(embeddings, labels):
    """Mean average precision, and R@1: how often the nearest other image is of the same class."""
    n = labels.shape[0]
    embeddings = torch.nn.functional.normalize(embeddings, dim=1)
    others = ~torch.eye(n, dtype=torch.bool)
    similarity, same = embeddings @ embeddings.T, labels[:, None] == labels
    query = torch.arange(n)[:, None].expand(n, n)
    told = (similarity[others].numpy(), same[others].numpy(), query[others].numpy())
    return [per_query(metric, *told)[1].mean() for metric in ("ap", "precision@1")]


def compare(split):
    """(mAP, R@1) on unseen classes for each way."""
    rng = np.random.default_rng(split)
    pixels, digits = load_digits(return_X_y=True)
    images, order = pixels / 16, rng.permutation(digits.size)
    train_part, test_part = np.split(order, [900])
    unseen, seen = np.split(rng.permutation(100), [20])
    X_test, y_test = numbers(unseen, 20, images[test_part], digits[test_part], rng)
    found = {"pixels": evaluate(X_test, y_test)}
    hinge = rwt.RetrievalLoss("ap", surrogate="hinge", scale=0.5)
    for way, loss in {"contrastive": contrastive, "AP hinge": hinge}.items():
        torch.manual_seed(split)
        same_batches = np.random.default_rng(split)
        model = train(loss, seen, images[train_part], digits[train_part], same_batches)
        found[way] = evaluate(model(X_test), y_test)
    return found


def main():
    """Print the table."""
    splits = [compare(split) for split in range(SPLITS)]
    print(f"Test retrieval on 20 unseen classes: mean of {SPLITS} splits, and mAP by split")
    for way in splits[0]:
        found = np.array([split[way] for split in splits])
        by_split = "  ".join(f"{value:.3f}" for value in found[:, 0])
        print(f"{way:12s} mAP {found[:, 0].mean():.3f}  R@1 {found[:, 1].mean():.3f}  |  {by_split}")


if __name__ == "__main__":
    main()
