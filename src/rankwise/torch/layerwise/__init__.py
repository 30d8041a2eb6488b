"""LW-SVM: layer-wise training of piecewise-linear networks (Berrada et al., 2017), with any rank loss.

Public here are its parts: the objective of a network over blocks of samples, for other ways to minimise it.
"""

from rankwise.torch.layerwise.block_loss import BlockLoss
from rankwise.torch.layerwise.blocks import Blocks
from rankwise.torch.layerwise.evaluation import in_mode, objective

__all__ = ["BlockLoss", "Blocks", "in_mode", "objective"]
