"""Linear rankers: the objective, its solvers and the estimators."""
