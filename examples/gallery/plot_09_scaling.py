"""
What a call costs
=================

One call of the structured hinge of AP, value and gradient, with 1,000 positives, as the negatives grow; beside it a
sort.

**What to see**: with few negatives a sort is faster, with many the call is: its line is flatter. It is compared with
``np.argsort``, which a method that sorts would need for its gradient, and with ``np.sort``, which has no gradient to
give. Times are those of the machine that built this page, which may have been busy; ratios move with the processor.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

import rankwise as rw

N_POS = 1000
sizes = 10 ** np.arange(3, 7)
rng = np.random.default_rng(0)


def best_of(call, rounds=5):
    """Seconds of the fastest of several calls."""
    times = []
    for _ in range(rounds):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return min(times)


found = {"structured_hinge, value and gradient": [], "np.argsort of the negatives": [], "np.sort of the negatives": []}
for n_neg in sizes:
    relevant = np.arange(N_POS + n_neg) < N_POS
    scores = (rng.normal(size=relevant.size) + relevant).astype(np.float32)
    negatives = scores[N_POS:]
    calls = (
        lambda scores=scores, relevant=relevant: rw.structured_hinge(scores, relevant, "ap"),
        lambda negatives=negatives: np.argsort(negatives),
        lambda negatives=negatives: np.sort(negatives),
    )
    calls[0]()  # kernels are compiled, or read from disk, at the first call
    for name, call in zip(found, calls, strict=True):
        found[name].append(1000 * best_of(call))

print("milliseconds with", "  ".join(f"{n_neg:>9,}" for n_neg in sizes), "negatives")
for name, times in found.items():
    print(f"{name:37}", "  ".join(f"{time:9.3f}" for time in times))

fig, axes = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
for name, times in found.items():
    axes.loglog(sizes, times, "o-", label=name)
axes.set(xlabel="negatives (float32)", ylabel="milliseconds, best of five", title=f"{N_POS:,} positives, one thread")
axes.grid(alpha=0.3)
axes.legend()
plt.show()
