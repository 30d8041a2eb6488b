"""LW-SVM: layer-wise training of piecewise-linear networks (Berrada et al., 2017), with any rank loss.

Beside `LWSVM` and its networks, this package exports the objective of a network over blocks of samples, so that it can
be minimised in other ways.
"""

from rankwise_lab.layerwise.block_loss import BlockLoss
from rankwise_lab.layerwise.blocks import Blocks
from rankwise_lab.layerwise.evaluation import in_mode, objective
from rankwise_lab.layerwise.last_layer import LastLayer, fit_last_layer
from rankwise_lab.layerwise.lwsvm import LWSVM
from rankwise_lab.layerwise.network import PLCNN

__all__ = ["LWSVM", "PLCNN", "BlockLoss", "Blocks", "LastLayer", "fit_last_layer", "in_mode", "objective"]
