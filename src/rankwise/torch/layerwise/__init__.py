"""LW-SVM: layer-wise training of piecewise-linear networks (Berrada et al., 2017), with any rank loss."""
