"""Speed as ratios: against peers, against growth of the problem, each beside its target, in one run."""
