"""
Three losses as one score moves
===============================

Three positives and five negatives. One positive moves from far below the others to far above them; everything else
stays.

**What to see**: the ranking loss 1 − AP is a staircase, with no slope to follow. The hinge lies above it and rises
without limit as the positive falls. The smooth and the error-driven loss have one value, dashed here, near the
staircase, and differ in what they send back. On the right is the gradient of the moving score: the hinge always pulls,
the error-driven loss pulls by its error, and the smooth loss gives up on a score that is far from all others.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankwise as rw

relevant = np.array([True, True, True, False, False, False, False, False])
others = np.array([1.5, 0.4, 1.0, 0.6, 0.0, -0.5, -1.2])
moving = np.linspace(-4, 4, 321)

losses = {"hinge": rw.structured_hinge, "smooth": rw.smooth_loss, "error-driven": rw.error_driven_loss}
staircase = [rw.ranking_loss([at, *others], relevant, "ap") for at in moving]
found = {name: [loss([at, *others], relevant, "ap") for at in moving] for name, loss in losses.items()}

fig, (values, slopes) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
values.plot(moving, staircase, color="black", linewidth=1, label="1 − AP")
for name, results in found.items():
    line = "--" if name == "error-driven" else "-"
    values.plot(moving, [one.value for one in results], line, label=name)
    slopes.plot(moving, [one.gradient[0] for one in results], label=name)
values.set(xlabel="score of the positive that moves", ylabel="loss", ylim=(0, 2))
slopes.set(xlabel="score of the positive that moves", ylabel="gradient of that score")
for axes in (values, slopes):
    low = np.full(5, axes.get_ylim()[0])
    axes.plot(others[2:], low, "s", color="grey", markersize=5, clip_on=False, zorder=3, label="the negatives")
values.legend()
plt.show()

# %%
# The hinge is never below the loss it stands for.

gap = np.array([one.value for one in found["hinge"]]) - staircase
print(f"smallest distance of the hinge from 1 − AP: {gap.min():.3f}")
