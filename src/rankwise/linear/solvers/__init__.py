"""Three solvers for the same convex problem, each with a certified gap."""

from rankwise.linear.solvers.cutting_plane import cutting_plane
from rankwise.linear.solvers.frank_wolfe import frank_wolfe
from rankwise.linear.solvers.result import Settings, SolverResult, Step
from rankwise.linear.solvers.subgradient import subgradient

__all__ = ["AUTO", "SOLVERS", "Settings", "SolverResult", "Step", "cutting_plane", "frank_wolfe", "subgradient"]

# The fastest in all our measurements.
AUTO = "cutting-plane"
SOLVERS = {"cutting-plane": cutting_plane, "frank-wolfe": frank_wolfe, "subgradient": subgradient}
