"""Rankers of bags: a sample is a set of candidates, and its best candidate, which must be learnt, counts."""

from rankwise.latent.bags import Bags, bag_means
from rankwise.latent.latent_svm import LatentRankSVM, LatentRankSVMCV

__all__ = ["Bags", "LatentRankSVM", "LatentRankSVMCV", "bag_means"]
