"""LW-SVM: layer-wise training of piecewise-linear networks (Berrada et al., 2017), with any rank loss.

This package exports the objective of a network over blocks of samples, so that it can be minimised in other ways.
"""

from rankwise.torch.layerwise.block_loss import BlockLoss
from rankwise.torch.layerwise.blocks import Blocks
from rankwise.torch.layerwise.evaluation import in_mode, objective

__all__ = ["BlockLoss", "Blocks", "in_mode", "objective"]
