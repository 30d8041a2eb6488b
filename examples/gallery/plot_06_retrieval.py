"""
Retrieval: images of the same digit first
=========================================

Every image is a query, and images of its class should come first. A small network learns embeddings of the digits 0 to
6 with ``RetrievalLoss("ap")``, from 900 images; others are searched.

**What to see**: each row is a query, then every sixth image of its list, by pixels and by the embedding. A red frame is
a wrong digit. The numbers say where this ends: on new images of the seven digits the embedding is far ahead of pixels,
on digits it has never seen it is behind. Seven classes are too few to learn what a class is;
``examples/retrieval_embeddings.py`` learns from eighty, and finds others.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits

import rankwise.torch as rwt
from rankwise.metrics import average_precision

torch.set_num_threads(1)
torch.manual_seed(0)
pixels, digits = load_digits(return_X_y=True)
X, y = torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(digits)
known, unknown = torch.nonzero(y <= 6).squeeze(1), torch.nonzero(y > 6).squeeze(1)
seen, new = known[:900], known[900:]

network = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 32))
loss = rwt.RetrievalLoss("ap", surrogate="error-driven", width=0.1)
optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
for _ in range(120):
    batch = seen[torch.randperm(seen.shape[0])[:128]]
    optimizer.zero_grad()
    loss(network(X[batch]), y[batch]).backward()
    optimizer.step()

# %%
# Judge by cosine. The image itself is left out of its own list.


def similarities(embeddings):
    """Cosines of all pairs, each with itself left out."""
    unit = torch.nn.functional.normalize(embeddings, dim=1)
    return (unit @ unit.T).fill_diagonal_(-np.inf).numpy()


def judge(part):
    """Cosines by pixels and by the embedding, and their mean AP over queries."""
    labels, others = digits[part.numpy()], ~np.eye(part.shape[0], dtype=bool)
    query, same = np.repeat(np.arange(labels.size), labels.size - 1), (labels[:, None] == labels)[others]
    with torch.no_grad():
        found = {"pixels": similarities(X[part]), "embedding": similarities(network(X[part]))}
    return found, {name: average_precision(cosine[others], same, qid=query) for name, cosine in found.items()}


for name, part in {"new images of digits 0 to 6": new, "digits 7 to 9, never seen": unknown}.items():
    found, ap = judge(part)
    print(f"{name:28} mean AP: pixels {ap['pixels']:.3f}, embedding {ap['embedding']:.3f}")

found, _ = judge(new)
labels = digits[new.numpy()]
queries = [int(np.flatnonzero(labels == digit)[3]) for digit in (2, 3, 5)]
fig, panels = plt.subplots(6, 9, figsize=(8, 5.6), layout="constrained")
for row, (at, name) in enumerate((at, name) for at in queries for name in found):
    shown = [at, *np.argsort(-found[name][at])[:48:6]]
    for column, (panel, number) in enumerate(zip(panels[row], shown, strict=True)):
        panel.imshow(pixels[new[number]].reshape(8, 8), cmap="gray_r")
        panel.set(xticks=[], yticks=[])
        wrong = labels[number] != labels[at]
        panel.spines[:].set(color="C3" if wrong else "lightgrey", linewidth=2.5 if wrong else 0.8)
        if column == 0:
            panel.set_ylabel(name, fontsize=8)
panels[0, 0].set_title("query", fontsize=9)
for place, panel in zip(range(1, 49, 6), panels[0, 1:], strict=True):
    panel.set_title(f"place {place}", fontsize=9)
plt.show()
