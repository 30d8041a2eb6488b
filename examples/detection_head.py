"""A detection head: score the windows of an image so that those that fit an object best come first.

Images hold handwritten digits on noise; the objects are the 8s. A small network scores every window of 8 × 8 pixels.
A window that overlaps an object by half is positive, and its quality is that overlap (IoU). Cross-entropy and the focal
loss learn which windows are positive, or how good they are. RankSort ranks positives above negatives, and the better
fit above the worse. Judged by detection AP after non-maximum suppression.

    python examples/detection_head.py
"""

import numpy as np
import torch
from rankwise_lab.detection import Detections, average_precision, iou, nms
from sklearn.datasets import load_digits
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

import rankwise.torch as rwt

SPLITS, STEPS, IMAGES, SIDE, OVERLAPS = 3, 80, 50, 30, (0.5, 0.75)
CORNERS = np.array([(x, y) for y in range(0, SIDE - 7, 2) for x in range(0, SIDE - 7, 2)])
WINDOWS = np.hstack([CORNERS + 1, CORNERS + 8])


def draw_image(images, digits, rng):
    """Three digits on noise, one of them an 8: the pixels of all windows (w, 64), and the box of the 8."""
    canvas, box = 0.3 * rng.random((SIDE, SIDE)), None
    for strip, is_object in enumerate(rng.permutation([True, False, False])):
        x, y = int(rng.integers(0, SIDE - 7)), 10 * strip + int(rng.integers(0, 3))
        canvas[y : y + 8, x : x + 8] += images[rng.choice(np.flatnonzero((digits == 8) == is_object))].reshape(8, 8)
        box = (x + 1, y + 1, x + 8, y + 8) if is_object else box
    return np.stack([canvas[y : y + 8, x : x + 8].ravel() for x, y in CORNERS]), np.array([box])


def focal(scores, quality):
    """Cross-entropy in which windows that are told apart already count less (Lin et al., 2017), by positive."""
    positive = quality > 0
    lost = cross_entropy(scores, positive.float(), reduction="none")
    return (torch.where(positive, 0.25, 0.75) * (1 - torch.exp(-lost)) ** 2 * lost).sum() / positive.sum()


def train(loss, X, quality, lr):
    """Full-batch Adam whose rate falls to zero."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 48), torch.nn.ReLU(), torch.nn.Linear(48, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss(model(X).squeeze(1), quality).backward()
        optimizer.step()
        schedule.step()
    return model


@torch.no_grad()
def evaluate(model, X, truth):
    """Detection AP at each overlap."""
    scores = model(X).squeeze(1).double().numpy().reshape(len(truth), -1)
    kept = [nms(WINDOWS, one) for one in scores]
    image, at = np.repeat(np.arange(len(kept)), [len(one) for one in kept]), np.concatenate(kept)
    found = Detections(image, WINDOWS[at], scores[image, at])
    boxes = [(one, np.zeros(len(one), bool)) for one in truth]
    return [average_precision(found, boxes, overlap=overlap).value for overlap in OVERLAPS]


def compare(split):
    """Test AP by overlap after each way of training."""
    rng = np.random.default_rng(split)
    images, digits = load_digits(return_X_y=True)
    sets = []
    for part in np.split(rng.permutation(digits.size), [900]):
        drawn = [draw_image(images[part] / 16, digits[part], rng) for _ in range(IMAGES)]
        overlap = np.concatenate([iou(WINDOWS, boxes).max(1) for _, boxes in drawn])
        quality = torch.tensor(np.where(overlap >= 0.5, overlap, 0.0), dtype=torch.float32)
        X = torch.tensor(np.concatenate([pixels for pixels, _ in drawn]), dtype=torch.float32)
        sets.append((X, quality, [boxes for _, boxes in drawn]))
    (X, quality, _), (X_test, _, truth) = sets
    ways = {  # each at its best rate of those tried, three or four of them
        "cross-entropy": (lambda s, q: cross_entropy(s, (q > 0).float(), pos_weight=torch.tensor(7.0)), 3e-2),
        "cross-entropy of IoU": (cross_entropy, 1e-1),
        "focal loss": (focal, 6e-2),
        "RankSort": (lambda s, q: sum(rwt.RankSortLoss()(s, q)), 1e-2),
    }
    return {way: evaluate(train(loss, X, quality, lr), X_test, truth) for way, (loss, lr) in ways.items()}


def main():
    """Print the table."""
    splits = [compare(split) for split in range(SPLITS)]
    print(f"detection AP of 8s by least overlap (IoU), means over {SPLITS} random splits, and mean AP by split\n")
    print(f"{'':21s} {'  '.join(f'{overlap:5.2f}' for overlap in OVERLAPS)}   mean")
    for way in splits[0]:
        ap = np.array([found[way] for found in splits])
        by_split = "  ".join(f"{value:.3f}" for value in ap.mean(1))
        print(f"{way:21s} {'  '.join(f'{value:.3f}' for value in ap.mean(0))}  {ap.mean():.3f}  |  {by_split}")


if __name__ == "__main__":
    main()
