"""The most violating ranking: one file per algorithm. Importing this compiles or loads kernels."""

from rankwise.inference.methods import METHODS
from rankwise.inference.quicksort import Step, Work, count_work, trace

__all__ = ["METHODS", "Step", "Work", "count_work", "trace"]
