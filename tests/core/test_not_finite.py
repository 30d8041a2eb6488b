"""A score that is not finite, or too large, is refused by its place: in child processes, as none may crash."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from answering import Answering, answering

SIZES = (5, 17, 100, 5000, 65_535, 65_536, 70_000, 200_000)
TIMEOUT = 600  # seconds: compiling all kernels is the slowest part
METHODS = ("auto", "auto", "auto", "bucketed", "quicksort", "mohapatra2014", "yue", "dynamic", "chakrabarti")
SLOW = ("yue", "dynamic", "chakrabarti")
MOST_OF_SLOW = 5000
LOSSES = ("ap", "ndcg", "mrr", "auc", "own", "zero-one")
# What no dtype of a query may hold, as its text, since JSON knows no NaN.
BAD = {
    "float16": ("nan", "inf", "-inf"),
    "bfloat16": ("nan", "inf", "-inf"),
    "float32": ("nan", "-nan", "signalling", "inf", "-inf"),
    "float64": ("nan", "-nan", "signalling", "inf", "-inf", "1.7e308", "-1.7e308", "1.0000001e300"),
    "longdouble": ("nan", "inf", "-inf", "1.7e308", "-1.7e308"),
}
NUMPY_DTYPES = ("float16", "float32", "float32", "float64", "float64", "longdouble")
TORCH_DTYPES = ("float16", "bfloat16", "float32", "float64")
REFUSED = r"NotFiniteError: scores(\[{k}\]| of query {row} at {column}) is .*: (not finite|too large to compare)"

# Reads cases, a line each, and writes what came of each.
CHILD = """
import json, sys, warnings
warnings.simplefilter("error")
import numpy as np
import rankwise as rw

OWN = rw.DiscountedLoss(lambda k: 1 / (1 + k), lambda m: 0.7**m + 0.1 / m, name="own")

def number(text, dtype):
    if text == "signalling":
        return (np.int32(0x7F800001) if dtype == np.float32 else np.int64(0x7FF0000000000001)).view(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 1e4000 is a number only where a longdouble is longer than a double
        return np.copysign(np.longdouble(text.lstrip("-")), -1 if text[0] == "-" else 1).astype(dtype)

def query(case):
    rng = np.random.default_rng(case["n"])
    n, k, dtype = case["n"], case["k"], case["dtype"]
    scores = rng.normal(size=n).astype("float32" if dtype == "bfloat16" else dtype)
    relevant = rng.random(n) < case["share"]
    relevant[0], relevant[-1] = True, False
    relevant[k] = case["positive"]
    relevant[(k + 1) % n] = not case["positive"]
    scores[k if case["alone"] else slice(k, None)] = number(case["bad"], scores.dtype)
    return scores, relevant

def by_numpy(case):
    scores, relevant = query(case)
    loss = OWN if case["loss"] == "own" else case["loss"]
    options = {"method": case["method"], "n_threads": case["n_threads"]}
    if case["queries"]:
        options["qid"] = np.arange(case["n"]) * case["queries"] // case["n"]
        if case["shuffled"]:
            options["qid"] = np.arange(case["n"]) % case["queries"]
    return rw.structured_hinge(scores, relevant, loss, **options).value

def by_torch(case):
    import torch
    import rankwise.torch as rwt
    torch.set_num_threads(case["n_threads"])
    scores, relevant = map(torch.from_numpy, query(case))
    scores = scores.to(getattr(torch, case["dtype"])).requires_grad_()
    loss = OWN if case["loss"] == "own" else case["loss"]
    make = {"direct": rwt.DirectLoss, "hinge": rwt.RankHingeLoss}[case["module"]]
    module = make(loss, dim=-1, backend=case["backend"])
    options = {}
    if case["queries"]:
        options["qid"] = torch.arange(case["n"]) % case["queries"]
    if case["rows"]:
        scores, relevant = scores.reshape(case["rows"], -1), relevant.reshape(case["rows"], -1)
    return module(scores, relevant, **options).item()

for line in sys.stdin:
    case = json.loads(line)
    try:
        print("returned", {"numpy": by_numpy, "torch": by_torch}[case["way"]](case), flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
"""
Cases = list[dict[str, Any]]
Refused = Callable[[Cases], None]


@pytest.fixture(scope="module")
def child() -> Iterator[Answering]:
    """One process for the cases of all tests: most of its time is that of importing. After a crash, another."""
    with answering("-c", CHILD) as process:
        yield process


@pytest.fixture
def assert_refused(child: Answering) -> Refused:
    """Each case must end in an error that names the place."""

    def of(cases: Cases) -> None:
        wrong = []
        for case in cases:
            try:
                came = child.ask(json.dumps(case), timeout=TIMEOUT)
            except AssertionError as error:
                raise AssertionError(f"having spoilt its memory here or before, {case}: {error}") from error
            rows, k = case["rows"] or 1, case["k"]
            row, column = divmod(k, case["n"] // rows)
            if not re.match(REFUSED.format(k=k, row=row, column=column), came):
                wrong.append(f"{came}: {case}")
        assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)} were not refused", *wrong[:20]])

    return of


def places(n: int) -> Iterator[tuple[int, bool]]:
    """First, second, middle and last; of a positive, of a negative."""
    return product((0, 1, n // 2, n - 1), (True, False))


def draw(way: str, n: int, dtypes: tuple[str, ...]) -> list[dict[str, Any]]:
    """Every place, class and dtype (in torch, every two of the three); all else at random."""
    rng = np.random.default_rng(n)
    cases = []
    for (k, positive), dtype in product(places(n), dtypes):
        loss = str(rng.choice(LOSSES))
        by_labels = loss == "zero-one"  # a loss that no method for rankings takes
        case = {"way": way, "n": n, "k": k, "positive": positive, "dtype": dtype, "loss": loss, "rows": 0}
        case |= {"bad": str(rng.choice(BAD[dtype])), "share": float(rng.choice([0.003, 0.1, 0.5, 0.95]))}
        case |= {"alone": bool(rng.random() < 0.8), "n_threads": int(rng.integers(1, 3))}
        case |= {"queries": int(rng.choice([0, 0, 1, 2, 5])), "shuffled": bool(rng.integers(2))}
        case |= {"method": "auto" if by_labels else str(rng.choice(METHODS))}
        case |= {"module": "hinge" if by_labels else str(rng.choice(["hinge", "hinge", "direct"]))}
        in_core = by_labels or case["module"] == "direct"  # there are no tensor operations for these
        case |= {"backend": "core" if in_core else str(rng.choice(["core", "core", "tensor"]))}
        if n > MOST_OF_SLOW and case["method"] in SLOW:  # a query before the one in question would be solved
            case["queries"] = min(case["queries"], 1)
        if way == "torch" and n > 5 and n % 5 == 0 and not case["queries"]:
            case["rows"] = int(rng.choice([0, 5]))
        cases.append(case)
    if way == "torch":
        at = product(range(4), range(2), range(len(dtypes)))
        return [case for case, (place, of, dtype) in zip(cases, at, strict=True) if (place + of + dtype) % 2 == 0]
    return cases


@pytest.mark.slow
@pytest.mark.parametrize("n", SIZES)
def test_a_score_that_is_no_number_is_refused_by_its_place(n: int, assert_refused: Refused) -> None:
    assert_refused(draw("numpy", n, NUMPY_DTYPES))


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("sizes", [(5, 100), (65_535, 70_000)], ids=["small", "large"])
def test_a_score_that_is_no_number_is_refused_in_torch(sizes: tuple[int, ...], assert_refused: Refused) -> None:
    assert_refused([case for n in sizes for case in draw("torch", n, TORCH_DTYPES)])


@pytest.fixture
def common() -> dict[str, Any]:
    """An ordinary call, but for one score."""
    rest = {"loss": "ap", "method": "auto", "queries": 0, "rows": 0, "n_threads": 1, "share": 0.1}
    return {"way": "numpy", "n": 70_000, "k": 7, "positive": True, "bad": "nan", "alone": True, **rest}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_large_query_with_a_nan_among_its_positives_is_refused(
    dtype: str, common: dict[str, Any], assert_refused: Refused
) -> None:
    every = product((0, 3, 34_567, 69_999), (0.001, 0.01, 0.3), (1, 2))
    assert_refused([{**common, "dtype": dtype, "k": k, "share": p, "n_threads": t} for k, p, t in every])


@pytest.mark.slow
@pytest.mark.parametrize("bad", ["1e4000", "-1e4000"])
def test_a_longdouble_beyond_all_doubles_is_refused_without_a_warning(
    bad: str, common: dict[str, Any], assert_refused: Refused
) -> None:
    assert_refused([{**common, "dtype": "longdouble", "bad": bad, "n": n} for n in (9, 100, 5000)])
