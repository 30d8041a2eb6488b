"""The building blocks of linear rankers: the objective, its solvers and cross-validation.

The estimators `LinearRanker`, `RankSVM` and `RankSVMCV` are in `rankwise`. Use this module to train a ranker or to
choose C in your own way: features and a task make an `Objective`, and each function in `SOLVERS` minimises
½‖v‖² + C·risk(v) to a certified gap.
"""

from rankwise.linear.cross_validation import Search, choose, split
from rankwise.linear.features import INTERCEPT, as_features, with_intercept
from rankwise.linear.objective import Clock, Cut, Evaluation, Objective, Task
from rankwise.linear.path import grid_of_C, natural_C
from rankwise.linear.posing import pose
from rankwise.linear.prior import Prior
from rankwise.linear.solvers import AUTO, SOLVERS, Settings, SolverResult, Step

__all__ = [
    "AUTO",
    "INTERCEPT",
    "SOLVERS",
    "Clock",
    "Cut",
    "Evaluation",
    "Objective",
    "Prior",
    "Search",
    "Settings",
    "SolverResult",
    "Step",
    "Task",
    "as_features",
    "choose",
    "grid_of_C",
    "natural_C",
    "pose",
    "split",
    "with_intercept",
]
