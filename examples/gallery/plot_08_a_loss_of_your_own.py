"""
A loss of your own
==================

A loss is a discount: what a positive is worth at each place. ``DiscountedLoss`` takes any that falls ever more slowly.
Here 1/mᵃ with a small a counts the whole list, with a large one the top.

**What to see**: the discounts; and the precision among the first k of ``RankSVM`` trained with each. The steeper loss
does better at the top, and no worse further down.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

import rankwise as rw


class Power(rw.DiscountedLoss):
    """D(m) = m^−a: the larger a, the more the top counts."""

    name = "power"

    def __init__(self, exponent):
        super().__init__()
        self.exponent = exponent

    def discount(self, m):
        """What a positive at place m is worth."""
        return m**-self.exponent


losses = {"a = 0.1, nearly flat": Power(0.1), "a = 0.5": Power(0.5), "a = 1, steep": Power(1.0)}
for loss in losses.values():
    rw.check_qs_suitable(loss, n_pos=50, n_neg=1000)  # raises where fast methods would not be exact

depths = np.arange(1, 201)
precision = {name: [] for name in losses}
for seed in range(8):
    X, y = make_classification(
        4000, 12, n_informative=6, n_clusters_per_class=3, weights=[0.9], class_sep=0.7, flip_y=0.03, random_state=seed
    )
    X, X_test, y, y_test = X[:2000], X[2000:], y[:2000], y[2000:]
    for name, loss in losses.items():
        scores = rw.RankSVM(loss).fit(X, y).decision_function(X_test)
        precision[name].append(np.cumsum(y_test[np.argsort(-scores)])[:200] / depths)

print("precision among the first", "     10      50     200")
for name, values in precision.items():
    mean = np.mean(values, axis=0)
    print(f"{name:25}", "  ".join(f"{mean[k - 1]:6.3f}" for k in (10, 50, 200)))

fig, (discounts, curves) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
places = np.arange(1, 31)
for name, loss in losses.items():
    discounts.plot(places, loss.discount(places.astype(float)), label=name)
    curves.plot(depths[4:], np.mean(precision[name], axis=0)[4:], label=name)
discounts.set(xlabel="place", ylabel="what a positive there is worth", title="discount")
discounts.legend()
curves.set(xlabel="k", ylabel="precision among the first k", title="test, mean of 8 draws")
plt.show()
