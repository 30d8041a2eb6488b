"""Queries that try to break a ranking engine: families of scores, sizes at every switch, extreme scales; all seeded.

`problem(family, seed)` is always the same problem. A kind draws scores without a look at the classes; as a family it is
that of the negatives, and the positives are of the same kind where the seed is even, else each kind takes its turn, so
that every two kinds meet. A shape places both classes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from rank_losses import NAMED, ODD, OWN

import rankwise as rw

Kind = Callable[[np.random.Generator, int, Any], np.ndarray]
Shape = Callable[[np.random.Generator, np.ndarray, Any], np.ndarray]

LIMIT: dict[Any, float] = {np.float32: float(np.finfo(np.float32).max), np.float64: 1e300}
DIGITS: dict[Any, int] = {np.float32: 38, np.float64: 300}
# Where an engine may turn from one way of working to another; problems are drawn on both sides of each.
SWITCHES = (4, 8, 16, 24, 32, 64, 128, 256, 512, 1000, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
SCALES = (0.0, 1e-6, 0.03, 1.0, 1.0, 1.0, 7.5, 1e3, 1e8)
LOSSES: dict[str, rw.DiscountedLoss] = {
    **NAMED,
    "own": OWN,
    "odd": ODD,
}


class Problem(NamedTuple):
    scores: np.ndarray
    relevant: np.ndarray
    loss: str
    scale: float
    told: str

    def solve(self, **options: Any) -> rw.HingeResult:
        return rw.structured_hinge(self.scores, self.relevant, LOSSES[self.loss], scale=self.scale, **options)


def _nudged(rng: np.random.Generator, values: np.ndarray, dtype: Any, most: int = 2) -> np.ndarray:
    """Values of this dtype, moved by up to so many of its last bits."""
    values = values.astype(dtype)
    for _ in range(most):
        towards = rng.choice([-np.inf, np.inf], values.size).astype(dtype)
        values = np.where(rng.random(values.size) < 0.5, np.nextafter(values, towards), values)
    return values


def _few(size: int) -> Kind:
    return lambda rng, n, dtype: rng.choice(rng.normal(size=size) * 10.0 ** rng.integers(-3, 4), n)


def _offset(by: float) -> Kind:
    return lambda rng, n, dtype: by + rng.normal(size=n) * rng.choice([1.0, 30.0])


def _grid(rng: np.random.Generator, n: int, dtype: Any) -> np.ndarray:
    """The edges of 2^b equal buckets of a range, as they are or off by a bit."""
    buckets = 2 ** int(rng.integers(2, 17))
    low, width = rng.choice([0.0, -0.5, 0.3, -1e3]), rng.choice([1.0, 0.7, 1e3])
    values = low + rng.integers(0, buckets + 1, n) / buckets * width
    return _nudged(rng, values, dtype, int(rng.integers(0, 2)))


def _octaves(rng: np.random.Generator, n: int, dtype: Any) -> np.ndarray:
    """Powers of two, give or take a few bits."""
    lowest, centre = int(rng.integers(-30, 30)), rng.choice([0.0, 0.0, 1.0, 1000.0])
    values = rng.choice([-1.0, 1.0, 1.0], n) * 2.0 ** rng.integers(lowest, lowest + int(rng.integers(1, 9)), n)
    return _nudged(rng, centre + values, dtype, int(rng.integers(0, 3)))


def _outlier(rng: np.random.Generator, n: int, dtype: Any) -> np.ndarray:
    values = rng.normal(size=n)
    values[int(rng.integers(n))] = rng.choice([-1e12, 1e12])
    return values


KINDS: dict[str, Kind] = {
    "normal": lambda rng, n, dtype: rng.normal(size=n),
    "cauchy": lambda rng, n, dtype: rng.standard_cauchy(n),
    "one value": _few(1),
    "two values": _few(2),
    "ten values": _few(10),
    "hundred values": _few(100),
    "integers": lambda rng, n, dtype: rng.integers(-5, 6, n),
    "wide integers": lambda rng, n, dtype: rng.integers(-(2**23), 2**23, n),
    "quarters": lambda rng, n, dtype: rng.integers(-4, 5, n) / 4,  # ties of the objective itself at scale 1
    "float16": lambda rng, n, dtype: rng.normal(size=n).astype(np.float16),
    "sigmoids": lambda rng, n, dtype: dtype(1) / (dtype(1) + np.exp((-12 * rng.normal(size=n)).astype(dtype))),
    "relu": lambda rng, n, dtype: np.maximum(rng.normal(size=n) - 0.5, 0.0),
    "clusters": lambda rng, n, dtype: rng.integers(0, 5, n) + 1e-6 * rng.normal(size=n),
    "grid": _grid,
    "octaves": _octaves,
    "the last bit": lambda rng, n, dtype: 1 + rng.integers(0, 5, n) * float(np.finfo(dtype).eps),
    "denormals": lambda rng, n, dtype: rng.integers(-9, 10, n) * float(np.finfo(dtype).smallest_subnormal),
    "tiny": lambda rng, n, dtype: rng.normal(size=n) * float(np.finfo(dtype).tiny),
    "zeros of both signs": lambda rng, n, dtype: rng.choice([0.0, -0.0, 1e-3], n),
    "every magnitude": lambda rng, n, dtype: (
        10.0 ** rng.uniform(-DIGITS[dtype], DIGITS[dtype], n) * rng.choice([-1, 1], n)
    ),
    "huge": lambda rng, n, dtype: rng.uniform(-1, 1, n) * LIMIT[dtype],
    "extremes": lambda rng, n, dtype: rng.choice([-1.0, 0.0, 1.0], n) * LIMIT[dtype],
    "one outlier": _outlier,
    "offset 1e4": _offset(1e4),
    "offset 1e8": _offset(1e8),
    "offset 1e10": _offset(-1e10),
    "offset 1e15": _offset(1e15),
    "offset of the limit": lambda rng, n, dtype: LIMIT[dtype] + rng.normal(size=n),
}


def _some(rng: np.random.Generator, of: np.ndarray) -> np.ndarray:
    """One or a few of those, but not all unless there is but one."""
    where = np.flatnonzero(of)
    return rng.choice(where, int(rng.integers(1, max(2, min(4, where.size)))), replace=False)


def _with_extremes(positives: float, negatives: float) -> Shape:
    """Scores of any kind, but for some positives and some negatives at ±M (0 leaves them alone)."""

    def place(rng: np.random.Generator, relevant: np.ndarray, dtype: Any) -> np.ndarray:
        kind = KINDS[rng.choice(["normal", "quarters", "ten values", "cauchy", "sigmoids", "clusters"])]
        scores = kind(rng, relevant.size, dtype).astype(np.float64)
        most = rng.choice([LIMIT[dtype], 1e15, 1e9])
        for of, sign in ((relevant, positives), (~relevant, negatives)):
            if sign != 0.0:
                scores[_some(rng, of)] = sign * most
        return scores

    return place


def _edge_of_octaves(rng: np.random.Generator, relevant: np.ndarray, dtype: Any) -> np.ndarray:
    """Nearly all just above a power of two, positives a little higher, some at the next power; the rest far below."""
    power = 2.0 ** int(rng.choice([-3, 0, 5, 10, 19, 19, 19, 22]))
    high, low = sorted(rng.choice([0.25, 0.5, 0.625, 0.875, 1.0], 2, replace=False))[::-1]
    scores = np.where(relevant, power + high, power + low)
    scores = np.where(relevant & (rng.random(relevant.size) < 0.15), 2 * power, scores)
    below = rng.choice([-power / 32, 2.0**-22, 0.42, 14.89], relevant.size)
    return np.where(~relevant & (rng.random(relevant.size) < 0.03), below, scores)


def _one_tie(rng: np.random.Generator, relevant: np.ndarray, dtype: Any) -> np.ndarray:
    scores = rng.normal(size=relevant.size)
    return np.where(rng.random(relevant.size) < rng.choice([0.5, 0.9, 0.99]), rng.choice([0.0, 0.3]), scores)


def _twins(rng: np.random.Generator, relevant: np.ndarray, dtype: Any) -> np.ndarray:
    """Every negative has the score of some positive, or the next number to it."""
    scores = rng.normal(size=relevant.size).astype(dtype)
    scores[~relevant] = _nudged(rng, rng.choice(scores[relevant], int((~relevant).sum())), dtype, 1)
    return scores


SHAPES: dict[str, Shape] = {
    "ordinary": lambda rng, y, dtype: rng.normal(size=y.size) + y,
    "separated": lambda rng, y, dtype: rng.normal(size=y.size) + 20.0 * y,
    "extremes ranked right": _with_extremes(1.0, -1.0),
    "extremes ranked wrong": _with_extremes(-1.0, 1.0),
    "a positive at the top": _with_extremes(1.0, 0.0),
    "a negative at the bottom": _with_extremes(0.0, -1.0),
    "an edge of octaves": _edge_of_octaves,
    "a tie of both classes": _one_tie,
    "twins": _twins,
}
FAMILIES = (*KINDS, *SHAPES)
# Where scores differ by round numbers, AUC asks of each pair the same round margin: half of these problems are of it.
ROUND = ("quarters", "integers", "grid", "octaves", "an edge of octaves")


def draw_size(rng: np.random.Generator, most: int) -> int:
    """Half tiny; the rest spread over all magnitudes, or within one of a switch."""
    if (way := rng.random()) < 0.5:
        return int(rng.integers(2, 31))
    if way < 0.75:
        return int(np.exp(rng.uniform(np.log(30), np.log(most))))
    return int(rng.choice([size for size in SWITCHES if size <= most])) + int(rng.integers(-1, 2))


def draw_positives(rng: np.random.Generator, n: int) -> int:
    share = int(n ** rng.random())
    return int(np.clip(rng.choice([1, 2, 16, 17, n // 50 + 1, n // 2, n - 1, share, share, share]), 1, n - 1))


def _in_some_order(rng: np.random.Generator, scores: np.ndarray, relevant: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    orders: dict[str, Callable[[], np.ndarray]] = {
        "any": lambda: rng.permutation(scores.size),
        "ascending": lambda: np.argsort(scores, kind="stable"),
        "descending": lambda: np.argsort(-scores, kind="stable"),
        "positives first": lambda: np.argsort(~relevant, kind="stable"),
        "negatives first": lambda: np.argsort(relevant, kind="stable"),
    }
    order = orders[rng.choice([*orders, "any", "any"])]()
    return scores[order], relevant[order]


def problem(
    family: str, seed: int, most: int = 1100, n: int | None = None, most_positives: int | None = None
) -> Problem:
    """The seed-th problem of a family, of at most about `most` samples, or of n."""
    rng = np.random.default_rng([zlib.crc32(family.encode()), seed])
    dtype: Any = (np.float64, np.float32)[int(rng.integers(2))]
    how = f"{family!r}, {seed}, {most}, {n}, {most_positives}"
    n = draw_size(rng, most) if n is None else n
    n_pos = min(draw_positives(rng, n), most_positives or n)
    relevant = np.arange(n) < n_pos
    told = family
    if family in SHAPES:
        values = SHAPES[family](rng, relevant, dtype)
    else:
        partner = tuple(KINDS)[seed // 2 % len(KINDS)] if seed % 2 else family
        told = f"negatives {family}, positives {partner}"
        values = np.concatenate(
            [KINDS[partner](rng, n_pos, dtype).astype(np.float64), KINDS[family](rng, n - n_pos, dtype)]
        )
    scores = np.clip(values, -LIMIT[dtype], LIMIT[dtype]).astype(dtype)
    scores, relevant = _in_some_order(rng, scores, relevant)
    loss, scale = str(rng.choice([*LOSSES])), float(rng.choice(SCALES))
    if family in ROUND and rng.random() < 0.5:
        loss, scale = "auc", 1.0
    told += f"; {dtype.__name__}, {n_pos} of {n} positive, {loss}, scale {scale:g}"
    return Problem(scores, relevant, loss, scale, f"problem({how}): {told}")
