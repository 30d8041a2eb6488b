"""
Bags: one candidate of many
===========================

A label may speak of a set: this image shows a scallop, somewhere. Such a sample is a *bag* of candidates, and which one
the label means is not known. ``LatentRankSVM`` learns it along with the ranking.

**What to see**: on the left the candidates, of which only the orange ones carry the signal; the arrow is the direction
that was learnt. On the right, two rankers as bags grow: the mean of a bag drowns the signal, the best candidate keeps
more of it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import average_precision_score

from rankwise import LatentRankSVM, RankSVM

rng = np.random.default_rng(0)


def make_bags(n, size):
    """n bags of size candidates; in every fourth bag the first candidate is shifted."""
    y = np.arange(n) % 4 == 0
    bags = rng.normal(size=(n, size, 5))
    bags[y, 0, :2] += 2.0
    return list(bags), y


sizes = (2, 4, 8, 16, 32)
found = {"mean of the bag, RankSVM": [], "best candidate, LatentRankSVM": []}
for size in sizes:
    (bags, y), (test, truth) = make_bags(300, size), make_bags(600, size)
    model = LatentRankSVM("ap", C=10.0).fit(bags, y)
    of_means = RankSVM("ap", C=10.0).fit(np.array([bag.mean(0) for bag in bags]), y)
    scores = of_means.decision_function(np.array([bag.mean(0) for bag in test])), model.decision_function(test)
    for name, values in zip(found, scores, strict=True):
        found[name].append(average_precision_score(truth, values))
    if size == 8:
        right = (model.best_candidate(test)[truth] == 0).mean()
        kept, direction = (np.array(test), truth), model.coef_[0, :2]
print(f"bags of 8: the right candidate is found in {right:.0%} of positive test bags")
for name, values in found.items():
    print(f"{name:30} test AP", "  ".join(f"{value:.2f}" for value in values))

fig, (points, curves) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
bags, truth = kept
points.plot(*bags[:, 1:, :2].reshape(-1, 2)[::6].T, ".", color="lightgrey", label="other candidates")
points.plot(*bags[truth, 0, :2].T, ".", color="C1", label="meant by a positive label")
points.annotate(
    "", 2.5 * direction / np.linalg.norm(direction), (0, 0), arrowprops={"arrowstyle": "->", "linewidth": 2}
)
points.set(xlabel="first feature", ylabel="second feature", title="candidates of bags of 8")
points.legend(loc="lower left", fontsize=8)
for name, values in found.items():
    curves.plot(sizes, values, "o-", label=name)
curves.set_xscale("log", base=2)
curves.set(xlabel="candidates in a bag", ylabel="test AP", ylim=(0, 1.02), title="600 test bags")
curves.legend(loc="lower left", fontsize=8)
plt.show()
