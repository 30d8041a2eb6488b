"""Experiments, losses and methods by the names that are shown."""

from __future__ import annotations

__all__ = ["LOSSES", "METHODS", "TITLES"]

# Experiments, in the order of the report.
TITLES = {
    "timing": "Tables 1 and 2: time in inference",
    "scaling": "Figures 2 and 3: how time grows",
    "action": "Tables 3 and 4: ten classes, by loss",
    "detection": "Table 5: weakly supervised detection",
    "cifar": "Section 4.3: a network for CIFAR-10",
}
LOSSES = {"zero-one": "0-1 loss", "ap": "AP loss", "ndcg": "NDCG loss"}
METHODS = {
    "yue": "Yue et al. 2007",
    "chakrabarti": "Chakrabarti et al. 2008",
    "quicksort": "Algorithm 1",
    "auto": "ours (auto)",
}
