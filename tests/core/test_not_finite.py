"""A score that is not finite, or too large, is refused by its place: in child processes, as none may crash.

A child runs this file with a way ("numpy", "torch") and sizes. It makes calls with a score that no query may hold, and
prints what came wrong. The call that it is at is the last line of its standard error.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import rankwise as rw

TIMEOUT = 600  # seconds: compiling all kernels is the slowest part
OWN = rw.DiscountedLoss(lambda k: 1 / (1 + k), lambda m: 0.7**m + 0.1 / m, name="own")
LOSSES = {name: name for name in ("ap", "ndcg", "mrr", "auc", "zero-one")} | {"own": OWN}
METHODS = ("auto", "auto", "auto", "bucketed", "quicksort", "mohapatra2014", "yue", "dynamic", "chakrabarti")
SLOW, MOST_OF_SLOW = ("yue", "dynamic", "chakrabarti"), 5000
DTYPES = {
    "numpy": ("float16", "float32", "float32", "float64", "float64", "longdouble"),
    "torch": ("float16", "bfloat16", "float32", "float64"),
}
BAD = {
    "float16": ("nan", "inf", "-inf"),
    "bfloat16": ("nan", "inf", "-inf"),
    "float32": ("nan", "-nan", "signalling", "inf", "-inf"),
    "float64": ("nan", "-nan", "signalling", "inf", "-inf", "1.7e308", "-1.7e308", "1.0000001e300"),
    "longdouble": ("nan", "inf", "-inf", "1.7e308", "-1.7e308", "1e4000", "-1e4000"),
}
REFUSED = r"scores(\[{k}\]| of query {row} at {column}) is .*: (not finite|too large to compare)"


def number(text: str, dtype: Any) -> Any:
    if text == "signalling":
        return (np.int32(0x7F800001) if dtype == np.float32 else np.int64(0x7FF0000000000001)).view(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 1e4000 is a number only where a longdouble is longer than a double
        return np.copysign(np.longdouble(text.lstrip("-")), -1 if text[0] == "-" else 1).astype(dtype)


def cases(way: str, n: int) -> Iterator[dict[str, Any]]:
    """The bad score at every place, of each class and dtype; all else at random."""
    rng = np.random.default_rng(n)
    for k, positive, dtype in product((0, 1, n // 2, n - 1), (True, False), DTYPES[way]):
        loss = str(rng.choice([*LOSSES]))
        by_labels = loss == "zero-one"  # a loss that no method for rankings takes
        method = "auto" if by_labels else str(rng.choice(METHODS))
        n_queries = int(rng.choice([0, 0, 1, 2, 5]))
        if n > MOST_OF_SLOW and method in SLOW:  # a query before the one in question would be solved
            n_queries = min(n_queries, 1)
        direct = bool(rng.random() < 0.3) and not by_labels
        yield {
            **{"n": n, "k": k, "positive": positive, "dtype": dtype, "loss": loss, "method": method, "direct": direct},
            **{"bad": str(rng.choice(BAD[dtype])), "share": float(rng.choice([0.003, 0.1, 0.5, 0.95]))},
            **{"alone": bool(rng.random() < 0.8), "n_threads": int(rng.integers(1, 3)), "n_queries": n_queries},
            **{"shuffled": bool(rng.integers(2)), "backend": str(rng.choice(["core", "core", "tensor"]))},
            "rows": 5 if way == "torch" and n > 5 and n % 5 == 0 and not n_queries and rng.random() < 0.5 else 0,
        }


def query(case: dict[str, Any]) -> tuple[Any, Any]:
    rng, n, k, dtype = np.random.default_rng(case["n"]), case["n"], case["k"], case["dtype"]
    scores = rng.normal(size=n).astype("float32" if dtype == "bfloat16" else dtype)
    relevant = rng.random(n) < case["share"]
    relevant[0], relevant[-1] = True, False
    relevant[k], relevant[(k + 1) % n] = case["positive"], not case["positive"]
    scores[k if case["alone"] else slice(k, None)] = number(case["bad"], scores.dtype)
    return scores, relevant


def by_numpy(case: dict[str, Any]) -> None:
    scores, relevant = query(case)
    qid, at = None, np.arange(case["n"])
    if case["n_queries"]:
        qid = at % case["n_queries"] if case["shuffled"] else at * case["n_queries"] // case["n"]
    options = {"method": case["method"], "n_threads": case["n_threads"], "qid": qid}
    rw.structured_hinge(scores, relevant, LOSSES[case["loss"]], **options)


def by_torch(case: dict[str, Any]) -> None:
    import torch

    import rankwise.torch as rwt

    torch.set_num_threads(case["n_threads"])
    scores, relevant = map(torch.from_numpy, query(case))
    scores = scores.to(getattr(torch, case["dtype"])).requires_grad_()
    loss, in_core = LOSSES[case["loss"]], case["direct"] or case["loss"] == "zero-one"  # no tensor operations for these
    module = rwt.DirectLoss if case["direct"] else rwt.RankHingeLoss
    options = {"qid": torch.arange(case["n"]) % case["n_queries"]} if case["n_queries"] else {}
    if case["rows"]:
        scores, relevant = scores.reshape(case["rows"], -1), relevant.reshape(case["rows"], -1)
    module(loss, dim=-1, backend="core" if in_core else case["backend"])(scores, relevant, **options)


def assert_refused(way: str, *sizes: int) -> None:
    command = [sys.executable, __file__, way, *map(str, sizes)]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=TIMEOUT)
    assert run.returncode == 0, f"having spoilt its memory here or before: {run.stderr[-2000:]}"
    assert run.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(5, 17, 100), (5000, 65_535), (65_536, 70_000), (200_000,)])
def test_a_score_that_is_no_number_is_refused_by_its_place(sizes: tuple[int, ...]) -> None:
    assert_refused("numpy", *sizes)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("sizes", [(5, 100), (65_535, 70_000)], ids=["small", "large"])
def test_a_score_that_is_no_number_is_refused_in_torch(sizes: tuple[int, ...]) -> None:
    assert_refused("torch", *sizes)


if __name__ == "__main__":
    warnings.simplefilter("error")
    way, *sizes = sys.argv[1:]
    for case in (case for n in sizes for case in cases(way, int(n))):
        print(case, file=sys.stderr, flush=True)
        row, column = divmod(case["k"], case["n"] // (case["rows"] or 1))
        came = "nothing"
        try:
            {"numpy": by_numpy, "torch": by_torch}[way](case)
        except rw.NotFiniteError as error:
            came = str(error)
        if not re.match(REFUSED.format(k=case["k"], row=row, column=column), came):
            print(f"{came}: {case}")
