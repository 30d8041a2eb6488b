"""From cross-entropy to average precision: train a classifier as usual, then a little longer for the metric.

The task is to find the images of an 8 among handwritten digits, one in ten. A warm start by cross-entropy brings the
scores into a sensible order; steps on the whole set then refine it, with the hinge of AP or with AP's direct loss.
The first model, a linear one, cannot rank its training images perfectly, and what it gives up depends on the loss. The
second, with 32 hidden units, very nearly can: where there is no mistake left to mend, a loss of rankings adds nothing.

    python examples/finetune_ap.py
"""

import copy

import numpy as np
import torch
from sklearn.datasets import load_digits

import rankwise.torch as rwt
from rankwise.metrics import average_precision

SPLITS, WARM_STEPS, STEPS = 3, 250, 80


def cross_entropy(scores, target):
    """The usual loss of a classifier of two classes."""
    return torch.nn.functional.binary_cross_entropy_with_logits(scores, target.float())


def train(model, loss, X, y, lr, steps):
    """Full-batch Adam whose rate falls to zero."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model(X).squeeze(1), y).backward()
        optimizer.step()
        schedule.step()
    return model


@torch.no_grad()
def evaluate(model, X, y):
    """Average precision."""
    return average_precision(model(X).squeeze(1).numpy(), y.numpy())


def compare(make_model, split):
    """(training AP, test AP) before, and after each way of going on."""
    images, digits = load_digits(return_X_y=True)
    order = torch.tensor(np.random.default_rng(split).permutation(digits.size))
    X, y = torch.tensor(images / 16, dtype=torch.float32)[order], torch.tensor(digits == 8)[order]
    train_set, test_set = (X[:900], y[:900]), (X[900:], y[900:])
    torch.manual_seed(split)
    before = train(make_model(), cross_entropy, *train_set, lr=2e-2, steps=WARM_STEPS)
    ways = {
        "cross-entropy, then …": None,
        "  more cross-entropy": (cross_entropy, 2e-2),
        "  AP hinge": (rwt.APHingeLoss(scale=1.0), 1e-2),
        "  direct loss of AP": (rwt.DirectLoss("ap", epsilon=1.0), 1e-2),
    }
    found = {}
    for way, told in ways.items():
        model = copy.deepcopy(before)
        if told:
            train(model, told[0], *train_set, lr=told[1], steps=STEPS)
        found[way] = evaluate(model, *train_set), evaluate(model, *test_set)
    return found


def network():
    """64 pixels, 32 hidden units, one score."""
    return torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))


def main():
    """Print both models' tables."""
    models = {"linear": lambda: torch.nn.Linear(64, 1), "32 hidden units": network}
    print(f"AP on the training and the test half, means over {SPLITS} random splits, and test AP by split")
    for name, make_model in models.items():
        splits = [compare(make_model, split) for split in range(SPLITS)]
        print(f"\n{name:23s} train   test")
        for way in splits[0]:
            ap = np.array([found[way] for found in splits])
            by_split = "  ".join(f"{value:.3f}" for value in ap[:, 1])
            print(f"{way:23s} {ap[:, 0].mean():.3f}  {ap[:, 1].mean():.3f}  |  {by_split}")


if __name__ == "__main__":
    main()
