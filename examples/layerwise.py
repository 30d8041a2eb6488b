"""Layer by layer: a small network for ten digits, trained by LW-SVM for average precision without a learning rate.

Softmax and a few epochs of Adadelta on the loss come first. From there LW-SVM takes the last two layers, one after the
other; for comparison Adadelta goes on, with as many steps as LW-SVM made calls of inference, at two rates. Both lower
the same training objective. On so small a task a good rate goes further, and a poor one less far; LW-SVM has none to
choose.

    python examples/layerwise.py
"""

import copy

import numpy as np
import torch
from rankwise_lab.layerwise import LWSVM, PLCNN
from sklearn.datasets import load_digits
from torch import nn

from rankwise.metrics import average_precision

SPLITS, N_TRAIN, BLOCK = 2, 300, 100
RATES = (0.1, 1.0)


def network():
    """Two convolutions with pooling, and a linear last layer."""
    first = [nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(6, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2)]
    return PLCNN(*first, *second, nn.Flatten(), nn.Linear(48, 10))


def halves(split):
    """Pairs (images, labels) to train on and to test on; each class ranks all images."""
    digits = load_digits()
    images = ((digits.images - digits.images.mean()) / digits.images.std()).astype("float32")[:, None]
    order = np.random.default_rng(split).permutation(len(images))
    return [(images[rows], digits.target[rows]) for rows in (order[:N_TRAIN], order[N_TRAIN:])]


def evaluate(model, test):
    """The training objective, and the mean over classes of test AP."""
    scores = model.decision_function(test[0])
    return model.objective_, np.mean([average_precision(scores[:, k], test[1] == k) for k in range(10)])


def compare(split):
    """(training objective, test AP) of the warm start, and of each way to go on from it."""
    train, test = halves(split)
    options = {"loss": "ap", "block_size": BLOCK, "seed": split}
    torch.manual_seed(split)
    start = LWSVM(network(), **options, pretrain_epochs=8, warmup_epochs=2)
    start.pretrain(train).warm_up(train)

    def model(**more):
        return LWSVM(copy.deepcopy(start.net), **options, **more)

    by_layers = model(max_passes=1, layers=2).fit_layers(train)
    epochs = round(by_layers.timing_["calls"] * BLOCK / N_TRAIN)
    found = {"softmax, Adadelta, then …": evaluate(start, test)}
    for rate in RATES:
        longer = model(warmup_epochs=epochs, learning_rate=rate).warm_up(train)
        found[f"  Adadelta, rate {rate}"] = evaluate(longer, test)
    found["  LW-SVM"] = evaluate(by_layers, test)
    return found


def main():
    """Print the table."""
    splits = [compare(split) for split in range(SPLITS)]
    print(f"training objective and test AP, means over {SPLITS} random splits")
    for way in splits[0]:
        objective, ap = np.mean([found[way] for found in splits], axis=0)
        print(f"{way:27s} {objective:.3f}  {ap:.3f}")


if __name__ == "__main__":
    main()
