"""The benchmark behind `rankwise bench inference`: every claim about its speed, measured beside its target."""

from __future__ import annotations

from rankwise_lab.benchmarks import bounds, footprint, growth, small, sorting, unfriendly
from rankwise_lab.benchmarks.plan import FULL, QUICK, Benchmark, Section

__all__ = ["BENCHMARK"]

BENCHMARK = Benchmark(
    "inference",
    (
        Section(1, "The whole call against np.sort of the negatives", sorting.against_sorting),
        Section(2, "One thread over two", growth.threads),
        Section(3, "Unfriendly scores", unfriendly.unfriendly),
        Section(4, "Small queries: the published methods, many queries, what a call costs", small.small),
        Section(5, "Start-up", footprint.start_up),
        Section(6, "A loss of your own against a built-in one", bounds.own_loss),
        Section(7, "Algorithm 1 and its bound", bounds.within_bounds),
        Section(8, "Growth", growth.growth),
        Section(9, "Memory", footprint.memory),
    ),
    FULL,
    QUICK,
)
