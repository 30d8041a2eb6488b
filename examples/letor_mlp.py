"""Learning to rank with a network: LETOR files in, NDCG out.

Queries have different numbers of documents; scores stay one flat tensor, and qid= tells the queries apart. Without
arguments a small collection is made from handwritten digits: the query is an image, documents that show the same digit
are relevant, and the features of a pair are the products of their pixels.

    python examples/letor_mlp.py [train.txt test.txt]    # LETOR or SVMlight text with qid:, also .gz; grades ≥ 1 count
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits

import rankwise.torch as rwt
from rankwise.io import read_data, write_data
from rankwise.metrics import average_precision, ndcg

SEEDS, STEPS = 3, 40
hinge = rwt.NDCGHingeLoss(scale=5.0, empty="skip")


def ndcg_hinge(scores, relevant, qid):
    """A mean over queries: a query without relevant documents is left out."""
    return hinge(scores, relevant, qid=qid)


def cross_entropy(scores, relevant, qid):
    """A mean over documents."""
    return torch.nn.functional.binary_cross_entropy_with_logits(scores, relevant.float())


WAYS = {
    "cross-entropy": (cross_entropy, cross_entropy),
    "NDCG hinge": (ndcg_hinge, ndcg_hinge),
    "cross-entropy, then NDCG": (cross_entropy, ndcg_hinge),
}


def write_collections(folder):
    """train.txt and test.txt: 150 queries each, of 5 to 49 documents, from different images."""
    images, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    paths = folder / "train.txt", folder / "test.txt"
    for path, part in zip(paths, np.split(rng.permutation(digits.size), [900]), strict=True):
        qid = np.repeat(np.arange(150), rng.integers(5, 50, size=150))
        query, document = rng.choice(part, 150, replace=False)[qid], rng.choice(part, qid.size)
        write_data(path, images[query] * images[document] / 256, digits[query] == digits[document], qid)
    return paths


def read(paths):
    """For each file: features (n, d), standardised as the first file's are, relevance (n,) and queries (n,)."""
    files = [read_data(paths[0])]
    files += [read_data(path, n_features=files[0].X.shape[1]) for path in paths[1:]]
    features = [one.X.toarray() if hasattr(one.X, "toarray") else one.X for one in files]
    mean, spread = features[0].mean(axis=0), features[0].std(axis=0) + 1e-6
    for X, file in zip(features, files, strict=True):
        yield torch.tensor((X - mean) / spread, dtype=torch.float32), torch.tensor(file.y >= 1), torch.tensor(file.qid)


def train(losses, X, relevant, qid):
    """A network after STEPS steps on all queries with each of the losses."""
    model = torch.nn.Sequential(torch.nn.Linear(X.shape[1], 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(STEPS * len(losses)):
        optimizer.zero_grad()
        losses[step // STEPS](model(X).squeeze(1), relevant, qid).backward()
        optimizer.step()
    return model


@torch.no_grad()
def evaluate(model, X, relevant, qid):
    """NDCG, NDCG at 10 and MAP, as means over queries."""
    scores, relevant, qid = model(X).squeeze(1).numpy(), relevant.numpy(), qid.numpy()
    at_10 = ndcg(scores, relevant, k=10, qid=qid)
    return ndcg(scores, relevant, qid=qid), at_10, average_precision(scores, relevant, qid=qid)


def main():
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        train_set, test_set = read(sys.argv[1:] or write_collections(Path(folder)))
    print(f"{train_set[2].unique().numel()} training queries; on test, means over {SEEDS} first weights")
    print(f"{'':26s}NDCG    @10    MAP")
    for way, losses in WAYS.items():
        found = []
        for seed in range(SEEDS):
            torch.manual_seed(seed)
            found.append(evaluate(train(losses, *train_set), *test_set))
        print(f"{way:24s}  " + "  ".join(f"{value:.3f}" for value in np.mean(found, axis=0)))


if __name__ == "__main__":
    main()
