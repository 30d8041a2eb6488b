"""
Probabilities after ranking
===========================

A ranker's scores have an order and no scale: they are not probabilities. ``CalibratedClassifierCV`` makes them so
afterwards, and, as its map rises, hardly changes the order.

**What to see**: points on the diagonal mean that of samples called 30 %, 30 % are positive. The raw scores, squeezed by
a sigmoid, are far off; the calibrated ones are near. Average precision stays where it was.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score, brier_score_loss
from sklearn.model_selection import train_test_split

from rankwise import LinearRanker

X, y = make_classification(6000, 20, n_informative=8, weights=[0.85], flip_y=0.03, random_state=0)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)

ranker = LinearRanker("ap", cv=3).fit(X, y)
scores = ranker.decision_function(X_test)
calibrated = CalibratedClassifierCV(LinearRanker("ap", cv=3), method="sigmoid", cv=3, ensemble=False).fit(X, y)
probabilities = {
    "sigmoid of the raw scores": 1 / (1 + np.exp(-scores)),
    "CalibratedClassifierCV": calibrated.predict_proba(X_test)[:, 1],
}

fig, axes = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
for name, values in probabilities.items():
    observed, claimed = calibration_curve(y_test, values, n_bins=10, strategy="quantile")
    ap, brier = average_precision_score(y_test, values), brier_score_loss(y_test, values)
    print(f"{name:26} test AP {ap:.3f}, Brier score {brier:.3f} (lower is better)")
    axes.plot(claimed, observed, "o-", label=name)
axes.set(xlabel="probability claimed", ylabel="share of positives observed", xlim=(0, 1), ylim=(0, 1))
axes.legend()
plt.show()
