"""The building blocks of linear rankers: the objective, its solvers and a scale for C.

The estimators `LinearRanker`, `RankSVM` and `RankSVMCV` are in `rankwise`. Use this module to train a ranker in your
own way: features and a task make an `Objective`, and each function in `SOLVERS` minimises ½‖v‖² + C·risk(v) to a
certified gap.
"""

from rankwise.linear.features import INTERCEPT, as_features
from rankwise.linear.objective import Objective
from rankwise.linear.path import grid_of_C, natural_C
from rankwise.linear.solvers import AUTO, SOLVERS, Settings
from rankwise.linear.task import pose

__all__ = [
    "AUTO",
    "INTERCEPT",
    "SOLVERS",
    "Objective",
    "Settings",
    "as_features",
    "grid_of_C",
    "natural_C",
    "pose",
]
