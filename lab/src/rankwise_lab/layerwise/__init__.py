"""LW-SVM: layer-wise training of piecewise-linear networks (Berrada et al., 2017), with any rank loss."""

from rankwise_lab.layerwise.lwsvm import LWSVM
from rankwise_lab.layerwise.network import PLCNN

__all__ = ["LWSVM", "PLCNN"]
