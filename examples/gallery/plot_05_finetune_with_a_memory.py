"""
Fine-tuning with a memory of scores
===================================

A small batch holds few positives, and its AP says little about that of all samples. ``ScoreMemory`` keeps the last
score of every training sample, so that a batch of 8 is ranked among all of them.

**What to see**: a linear model is trained by cross-entropy, then for six more epochs in three ways, at one rate. Both
AP-losses pass more cross-entropy on average. The two splits, drawn thin, agree with the memory and not without: on one
of them the loss of the batch alone gains nothing. With the means of two splits, no more than that can be said; the
benchmarks have eight seeds on CIFAR-10.
"""

import copy

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits

import rankwise.torch as rwt
from rankwise.metrics import average_precision

torch.set_num_threads(1)
EPOCHS, BATCH, SPLITS = 6, 8, 2
pixels, digits = load_digits(return_X_y=True)


def cross_entropy(scores, target, **_):
    """The usual loss, which needs no memory."""
    return torch.nn.functional.binary_cross_entropy_with_logits(scores, target.float())


def train(model, loss, data, test, lr, epochs, memory=None):
    """Test AP after each epoch."""
    loader = torch.utils.data.DataLoader(rwt.IndexedDataset(data), batch_size=BATCH, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    found = []
    for _ in range(epochs):
        for X, y, index in loader:
            optimizer.zero_grad()
            told = {"index": index, "memory": memory} if memory is not None else {}
            loss(model(X).squeeze(1), y, **told).backward()
            optimizer.step()
        with torch.no_grad():
            found.append(average_precision(model(test[0]).squeeze(1).numpy(), test[1].numpy()))
    return found


def split(seed):
    """Test AP by epoch of each way, from one start."""
    order = torch.tensor(np.random.default_rng(seed).permutation(digits.size))
    X, y = torch.tensor(pixels / 16, dtype=torch.float32)[order], torch.tensor(digits == 8)[order]
    data, test = torch.utils.data.TensorDataset(X[:900], y[:900]), (X[900:], y[900:])
    torch.manual_seed(seed)
    start = torch.nn.Linear(64, 1)
    before = train(start, cross_entropy, data, test, 0.01, 6)[-1]
    ways = {
        "more cross-entropy": (cross_entropy, None),
        "AP-loss of the batch": (rwt.ErrorDrivenLoss(), None),
        "AP-loss among the memory": (rwt.ErrorDrivenLoss(), rwt.ScoreMemory(len(data))),
    }
    found = {}
    for name, (loss, memory) in ways.items():
        torch.manual_seed(seed)  # the same batches for all
        found[name] = [before, *train(copy.deepcopy(start), loss, data, test, 0.003, EPOCHS, memory)]
    return found


splits = [split(seed) for seed in range(SPLITS)]
fig, axes = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
for number, name in enumerate(splits[0]):
    curves = np.array([found[name] for found in splits])
    axes.plot(curves.T, color=f"C{number}", linewidth=0.6, alpha=0.6)
    axes.plot(curves.mean(axis=0), color=f"C{number}", linewidth=2.2, label=name)
    print(f"{name:26} test AP {curves[:, 0].mean():.3f} -> {curves[:, -1].mean():.3f}")
axes.set(xlabel="epochs after the warm start", ylabel="test AP")
axes.legend()
plt.show()
