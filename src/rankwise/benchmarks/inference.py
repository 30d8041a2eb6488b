"""The benchmark behind `rankwise bench inference`: every claim about its speed, measured beside its target."""

from __future__ import annotations

from rankwise.benchmarks import footprint, growth, speed
from rankwise.benchmarks.plan import FULL, QUICK, Benchmark, Section

__all__ = ["BENCHMARK"]

BENCHMARK = Benchmark(
    "inference",
    (
        Section(4, "A loss of your own against a built-in one", speed.own_loss),
        Section(5, "The whole call against np.sort of the negatives", speed.against_sorting),
        Section(6, "At the paper's size, against the published methods", speed.against_published),
        Section(7, "Algorithm 1 and its bound", speed.within_bounds),
        Section(8, "Growth", growth.growth),
        Section(9, "Memory", footprint.memory),
        Section(10, "Start-up", footprint.start_up),
    ),
    FULL,
    QUICK,
)
