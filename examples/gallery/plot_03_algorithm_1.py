"""
Algorithm 1, step by step
=========================

Training for AP needs the *most violating ranking*: the order of the samples that maximises loss plus score. The
algorithm of Mohapatra et al. (CVPR 2018) finds it as quicksort sorts: it takes the negative in the middle, finds its
best place among the positives, and has two smaller problems left, whose places are bounded by the first.

**What to see**: each panel is one call. Columns are negatives from the highest score to the lowest, rows are places
among the positives. The box is the part in hand, the dot the place that was found. Boxes shrink fast, and the negatives
outside every box that is opened need no search at all.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

import rankwise as rw

rng = np.random.default_rng(3)
relevant = np.repeat([True, False], [5, 11])
scores = np.where(relevant, 0.6, 0.0) + 0.7 * rng.normal(size=relevant.size)

steps = rw.inference.trace(scores, relevant, "ap")
for step in steps:
    print(step)
result = rw.structured_hinge(scores, relevant, "ap")
print(f"J = {result.value:.3f}, 1 − AP of the most violating ranking {result.loss:.3f}")
print(f"pattern, from the top: {result.interleaving.pattern()}")

# %%
# A call with one possible place (``m=0``) fills it in without a search.

n_neg, n_places = int((~relevant).sum()), int(relevant.sum()) + 1
shown = steps[:8]
fig, panels = plt.subplots(2, 4, figsize=(10, 4.6), sharex=True, sharey=True, layout="constrained")
known: dict[int, int] = {}
for number, (panel, step) in enumerate(zip(panels.flat, shown, strict=False), start=1):
    box = (step.left - 0.5, step.low - 0.5), step.right - step.left + 1, step.high - step.low + 1
    panel.add_patch(Rectangle(*box, facecolor="C0", alpha=0.15, edgecolor="C0"))
    panel.plot(list(known), list(known.values()), "o", color="grey", markersize=4)
    if step.m:
        new = {step.m: step.opt}
        panel.set_title(f"{number}: negative {step.m} to place {step.opt}", fontsize=9)
    else:
        new = dict.fromkeys(range(step.left, step.right + 1), step.opt)
        panel.set_title(f"{number}: nothing to search", fontsize=9)
    panel.plot(list(new), list(new.values()), "o", color="C3", markersize=6)
    known |= new
    panel.set(xlim=(0.4, n_neg + 0.6), ylim=(n_places + 0.6, 0.4), xticks=range(1, n_neg + 1, 2))
for panel in panels.flat[len(shown) :]:
    panel.set_axis_off()
fig.supxlabel("negatives by score", fontsize=10)
fig.supylabel("place among positives", fontsize=10)
plt.show()
