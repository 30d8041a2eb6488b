"""Exact training on several machines with Dask: any partitioning, no shuffle, and the same result as on one machine.

Scores stay on the workers. A step exchanges the scores of the positives, histograms and one plane, so the traffic does
not grow with the number of negatives.
"""

from rankwise.extras import install_hint as _install_hint

try:
    import dask as _dask  # noqa: F401
    import distributed as _distributed  # noqa: F401
except ModuleNotFoundError as error:
    if error.name not in ("dask", "distributed"):
        raise
    raise ModuleNotFoundError(
        f"rankwise.dask needs {error.name}, which is not installed: {_install_hint('dask')}", name=error.name
    ) from None

from rankwise.dask.cluster import SchedulerLostError
from rankwise.dask.functions import average_precision, structured_hinge
from rankwise.dask.rank_svm import DaskRankSVM

__all__ = ["DaskRankSVM", "SchedulerLostError", "average_precision", "structured_hinge"]
