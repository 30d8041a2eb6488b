"""The building blocks of linear rankers: the objective, its solver and a scale for C.

The estimators `LinearRanker`, `RankSVM` and `RankSVMCV` are in `rankwise`. Use this module to train a ranker in your
own way: features and a task make an `Objective`, and `cutting_plane` minimises ½‖v‖² + C·risk(v) to a certified gap.
"""

from rankwise.linear.cutting_plane import Settings, cutting_plane
from rankwise.linear.features import INTERCEPT, as_features
from rankwise.linear.objective import Objective
from rankwise.linear.path import grid_of_C, natural_C
from rankwise.linear.task import pose

__all__ = ["INTERCEPT", "Objective", "Settings", "as_features", "cutting_plane", "grid_of_C", "natural_C", "pose"]
