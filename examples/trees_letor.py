"""Boosted trees for NDCG@10: our objective and our metric in LightGBM, beside its own lambdarank.

Without arguments a small collection with grades is made from handwritten digits: the query is an image, a document that
shows the same digit has grade 2, one that shows a neighbouring digit grade 1, and the features of a pair are the
differences of their pixels. Each training stops where NDCG@10 of a third of the training queries is highest. Lambdarank
is ahead of ours here.

    python examples/trees_letor.py [train.txt test.txt]    # LETOR or SVMlight text with qid: and grades, also .gz
"""

import sys

import lightgbm
import numpy as np
from sklearn.datasets import load_digits

from rankwise.boosting import metric, objective
from rankwise.io import read_data

OBJECTIVES = {
    "lambdarank": "lambdarank",
    "ours, smooth": objective("ndcg@30"),
    "ours, error-driven": objective("ap", "error-driven"),
    "ours, hinge": objective("ap", "hinge"),
}
METRICS = metric("ndcg@10"), metric("ap")


def make_collections():
    """Training and test queries, 150 each, of 10 to 59 documents, from different images: X, grades, qid."""
    images, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    for part in np.split(rng.permutation(digits.size), [900]):
        qid = np.repeat(np.arange(150), rng.integers(10, 60, size=150))
        query, document = rng.choice(part, 150, replace=False)[qid], rng.choice(part, qid.size)
        apart = np.abs(digits[query] - digits[document])
        yield np.abs(images[query] - images[document]), np.maximum(2 - apart, 0), qid


def read(paths):
    """The same from files, queries together."""
    for path in paths:
        file = read_data(path)
        order = np.argsort(file.qid, kind="stable")
        X = file.X.toarray() if hasattr(file.X, "toarray") else file.X
        yield X[order], file.y[order], file.qid[order]


def data_set(X, grades, qid):
    """In LightGBM's form: rows of a query follow each other, and group has their numbers."""
    return lightgbm.Dataset(X, grades, group=np.unique(qid, return_counts=True)[1])


def train(chosen, X, grades, qid):
    """Trees up to the best iteration on a third of the queries."""
    held = qid % 3 == 0
    data, valid = (data_set(X[rows], grades[rows], qid[rows]) for rows in (~held, held))
    settings = {"objective": chosen, "metric": "None", "learning_rate": 0.1, "num_leaves": 15, "num_threads": 1}
    return lightgbm.train(
        settings | {"verbose": -1, "seed": 0}, data, 300, valid_sets=[valid], feval=METRICS[0],
        callbacks=[lightgbm.early_stopping(100, verbose=False)],  # 5·width/rate
    )  # fmt: skip


def main():
    """Print the table."""
    train_set, (X, grades, qid) = read(sys.argv[1:]) if sys.argv[1:] else make_collections()
    group = np.unique(qid, return_counts=True)[1]
    print(f"{np.unique(train_set[2]).size} training queries; on {group.size} test queries")
    print(f"{'':26s}NDCG@10    MAP  trees")
    for name, chosen in OBJECTIVES.items():
        model = train(chosen, *train_set)
        values = [judge(grades, model.predict(X), None, group)[1] for judge in METRICS]
        print(f"{name:24s}    {values[0]:.3f}  {values[1]:.3f}  {model.best_iteration:5d}", flush=True)


if __name__ == "__main__":
    main()
