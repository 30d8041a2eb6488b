"""gather: several processes have the values and the gradients that one process has on the union of their batches.

The processes run this file as a script. Each goes through all cases once; the tests compare what they found.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

torch, dist = pytest.importorskip("torch"), pytest.importorskip("torch.distributed")
if not dist.is_available() or not dist.is_gloo_available():
    pytest.skip("needs torch.distributed with gloo", allow_module_level=True)

from rankwise.torch import ScoreMemory, functional  # noqa: E402
from rankwise.torch.functional import retrieval_loss  # noqa: E402

# Each row is a list, unless a test says otherwise.
structured_hinge = partial(functional.structured_hinge, dim=-1)
direct_loss = partial(functional.direct_loss, dim=-1)
smooth_loss = partial(functional.smooth_loss, dim=-1)

ATOL = {torch.float64: 1e-12, torch.float32: 1e-6, torch.bfloat16: 1e-6}
HANGS_AFTER, LATE_AFTER = 20.0, 120.0  # seconds: a single message, and all cases on a busy machine
WORLDS = (3, 2)

Part = dict[str, Any]
Sizes = dict[int, list[int]]
UNEQUAL = {2: [16, 7], 3: [11, 4, 8]}
IDLE = {2: [0, 23], 3: [14, 0, 9]}
NONE = {2: [0, 0], 3: [0, 0, 0]}
LONELY = {2: [1, 22], 3: [1, 21, 1]}
SOME_IDLE = {2: [16, 7], 3: [14, 0, 9]}
FEW = {2: [3, 14], 3: [8, 0, 9]}
UNNAMED = -(2**53 + 1)


def draw(seed: int, *shape: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def samples(*shape: int, **changes: Any) -> Part:
    """Scores and target, a positive in three."""
    return {"scores": draw(1, *shape), "target": draw(2, *shape) > 0.4, **changes}


def dealt(whole: Part, sizes: Sizes, world: int) -> list[Part]:
    """The parts of so many ranks."""
    split = {name: values[: sum(sizes[world])].split(sizes[world]) for name, values in whole.items()}
    return [{name: values[rank] for name, values in split.items()} for rank in range(world)]


def union(parts: list[Part]) -> Part:
    """Joined along the first dimension; rows widened by samples that do not count."""
    first, last = (part.get("scores", torch.empty(0)).shape for part in (parts[0], parts[-1]))
    if first[1:] < last[1:]:
        parts = [{"mask": torch.ones_like(part["target"]), **part} for part in parts]
        for part in parts:
            gap = 0, last[1] - part["scores"].shape[1]
            for name, filler in (("scores", float("nan")), ("target", True), ("mask", False)):
                part[name] = torch.nn.functional.pad(part[name], gap, value=filler)
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def from_one(world: int) -> list[Part]:
    return [samples(rank + 2, 1 + 3 * rank) for rank in range(world)]


def of_widths(world: int) -> list[Part]:
    parts = [samples(rank + 2, 3 + 3 * rank) for rank in range(world)]
    return [{**part, "mask": draw(3, *part["scores"].shape) > -0.8} for part in parts]


def embedded(sizes: Sizes, reference: bool, world: int) -> list[Part]:
    """Embeddings of classes of which some have members on several ranks, and some a single one on each."""
    labels = torch.arange(23) * 7 % 9
    labels[[2, 12, 20]] = torch.tensor([40, 41, 40])
    parts = dealt({"embeddings": draw(4, 23, 5), "labels": labels, "weight": draw(5, 23)}, sizes, world)
    if not reference:
        return parts
    others = dealt({"reference": draw(6, 17, 5), "reference_labels": torch.arange(17) * 5 % 9}, FEW, world)
    return [{**part, **other} for part, other in zip(parts, others, strict=True)]


@dataclass(frozen=True)
class Case:
    """A loss, and what each of so many ranks has."""

    function: Callable[..., Any]
    parts: Callable[[int], list[Part]]
    options: dict[str, Any]


def hinge(whole: Part, sizes: Sizes = UNEQUAL, function: Any = structured_hinge, **options: Any) -> Case:
    return Case(function, partial(dealt, whole, sizes), options)


def retrieval(sizes: Sizes = UNEQUAL, reference: bool = False, function: Any = retrieval_loss, **options: Any) -> Case:
    return Case(function, partial(embedded, sizes, reference), options)


def both(**given: Any) -> Any:
    """The two parts of RankSort."""
    return torch.stack(functional.rank_sort_loss(**given))


def rank_sort(sizes: Sizes = UNEQUAL, **changes: Any) -> Case:
    """RankSort of qualities."""
    quality = draw(2, 23).sigmoid() * (draw(2, 23) > 0.4)
    tensors = {name: changes.pop(name) for name in ("qid", "mask") if name in changes}
    return Case(both, partial(dealt, {"scores": draw(1, 23), "target": quality, **tensors}, sizes), changes)


def mixed(case: Case, name: str, *dtypes: Any) -> Case:
    """The case, but for one tensor, which has another dtype on every rank."""
    return replace(
        case, parts=lambda n: [{**one, name: one[name].to(dtypes[rank])} for rank, one in enumerate(case.parts(n))]
    )


def remembering(scores: Any, target: Any, index: Any, gather: Any, **options: Any) -> Any:
    """The loss of a batch among samples of earlier ones, and what the memory then holds."""
    memory = ScoreMemory(40, n_outputs=scores.shape[1:].numel()).double()
    past = samples(40, *scores.shape[1:])
    with torch.no_grad():  # every process the same
        functional.smooth_loss(**past, dim=0, index=torch.arange(40), memory=memory)
    memory.seen[:, 30:] = False
    given = {"index": index, "memory": memory, "gather": gather}
    value = functional.error_driven_loss(scores, target, dim=0, **given, **options)
    return torch.cat([value.view(-1), *memory.scores, memory.seen.double().view(-1)])


def compiled(function: Any, gather: Any, **given: Any) -> Any:
    return (torch.compile(function, backend="eager") if gather else function)(gather=gather, **given)


_FAR = torch.tensor([2**62 + 1, 2**62, -(2**62), 5])
_MASK = draw(3, 23, 6) > -0.8
_FLAT, _ROWS = samples(23), samples(23, 6)
_SINGLE = samples(23, scores=draw(1, 23).float())
_HOLES = {**_ROWS, "scores": _ROWS["scores"].where(_MASK, float("nan")), "mask": _MASK}
_RAGGED = {**_FLAT, "qid": _FAR[torch.arange(23) * 3 % 4]}
_IGNORED = {**_FLAT, "target": _FLAT["target"].long().where(draw(7, 23) > -1, UNNAMED)}
# Samples of which the memory knows the label: of `samples(40)`, those that begin it and those not seen yet.
_SOME = torch.arange(23) * 7 % 40
_INDEXED, _INDEXED_ROWS = (
    {**one, "target": samples(40, *one["scores"].shape[1:])["target"][_SOME], "index": _SOME} for one in (_FLAT, _ROWS)
)
_LAST_EMPTY = {**_ROWS, "target": _ROWS["target"] & (torch.arange(23) < 20)[:, None]}

CASES: dict[str, Case] = {
    "unequal shards": hinge(_FLAT),
    "tensor operations": hinge(_FLAT, backend="tensor"),
    "a rank without positives": hinge(samples(23, target=torch.arange(23) < 4), empty="error"),
    "a rank without samples": hinge(_FLAT, IDLE),
    "a query a class": hinge(_ROWS, dim=0),
    "a query a class, a rank without samples": hinge(_ROWS, IDLE, dim=0, reduction="none"),
    "rows": hinge(_ROWS),
    "rows, a rank without any": hinge(_ROWS, IDLE, reduction="none"),
    "rows without positives left out": hinge(_LAST_EMPTY, empty="skip"),
    "a query a class, a sample on a rank": hinge(_ROWS, LONELY, dim=0),
    "rows of different widths, masked": Case(structured_hinge, of_widths, {"reduction": "none"}),
    "rows of different widths, one sample wide on a rank": Case(structured_hinge, from_one, {"reduction": "none"}),
    "rows, masked": hinge(_HOLES),
    "three dimensions, the middle one ranked": hinge(samples(23, 5, 3), dim=1, reduction="none"),
    "ignored samples": hinge(_IGNORED, ignore_index=UNNAMED),
    "targets of several dtypes": mixed(hinge(_FLAT), "target", torch.bool, torch.int64, torch.float32),
    "queries on several ranks, each": hinge(_RAGGED, reduction="none"),
    "queries on several ranks, one without samples": hinge(_RAGGED, IDLE, reduction="none"),
    "bfloat16 and float32": mixed(hinge(_FLAT), "scores", torch.bfloat16, torch.float32, torch.bfloat16),
    "direct loss": hinge(_FLAT, function=direct_loss, epsilon=0.5),
    "smooth loss, masked rows": hinge(_HOLES, function=smooth_loss, loss="ndcg", backend="tensor"),
    "error-driven loss": hinge(_RAGGED, function=functional.error_driven_loss, reduction="none"),
    "memory": hinge(_INDEXED, function=remembering),
    "memory, a rank without samples": hinge(_INDEXED, IDLE, function=remembering),
    "memory, a query a class": hinge(_INDEXED_ROWS, function=remembering),
    "RankSort": rank_sort(),
    "RankSort, tensor operations": rank_sort(backend="tensor"),
    "RankSort, a rank without samples": rank_sort(IDLE),
    "RankSort, images on several ranks, each": rank_sort(qid=_RAGGED["qid"], mask=_MASK[:, 0], reduction="none"),
    "compiled": hinge(_FLAT, function=partial(compiled, structured_hinge)),
    "no_grad": hinge(_FLAT, function=torch.no_grad()(structured_hinge)),
    "retrieval": retrieval(),
    "retrieval, each": retrieval(reduction="none"),
    "retrieval, a rank without queries": retrieval(IDLE),
    "retrieval, no queries at all": retrieval(NONE),
    "retrieval in chunks": retrieval(chunk_size=3),
    "retrieval from a reference": retrieval(reference=True),
    "retrieval from a reference, each, in chunks": retrieval(reference=True, reduction="none", chunk_size=4),
    "retrieval from a reference, a rank without queries": retrieval(IDLE, reference=True, similarity="dot"),
    "retrieval, labels of several dtypes": mixed(retrieval(), "labels", torch.int16, torch.int64, torch.int32),
    "retrieval, compiled": retrieval(function=partial(compiled, retrieval_loss)),
    "retrieval, no_grad": retrieval(chunk_size=5, function=torch.no_grad()(retrieval_loss)),
}

# Every process compiles for itself, which takes a second: each of these in one of the worlds.
_IN_ONE = {"compiled": 3, "retrieval, compiled": 2}


def cases_of(world: int) -> dict[str, Case]:
    """The cases that so many processes go through."""
    return {name: case for name, case in CASES.items() if _IN_ONE.get(name, world) == world}


def solve(case: Case, part: Part, gather: Any) -> Part:
    """The value and the gradients."""
    part = {name: values.clone() for name, values in part.items()}
    names = ("scores", "embeddings", "reference")
    leaves = {name: part[name].requires_grad_() for name in names if name in part}
    weight = part.pop("weight", None)
    value = case.function(**part, **case.options, gather=gather)
    if weight is None or value.dim() == 0:
        weight = torch.arange(1, value.numel() + 1).view_as(value)
    total = (value * weight).sum()
    if total.requires_grad:
        total.backward()
    return {"value": value.detach(), **{name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}}


def attempt(case: Case, part: Part) -> Part:
    """As `solve`, or what was refused."""
    try:
        return solve(case, part, True)
    except (ValueError, LookupError) as error:  # not RuntimeError: others are gone, or do not answer
        return {"error": f"{type(error).__name__}: {error}"}


def frozen_if_told(embeddings: Any, labels: Any, **rest: Any) -> Any:
    return retrieval_loss(embeddings.detach() if 9 in labels else embeddings, labels, **rest)


# Where ranks differ: all must say why.
def differ(function: Any, first: Part, rest: Part, says: str, **options: Any) -> tuple[Case, str]:
    return Case(function, lambda world: [first] + [rest] * (world - 1), options), says


_POINTS = {"embeddings": draw(4, 6, 5), "labels": torch.arange(6) % 2}
_ALONE = {**_POINTS, "labels": torch.tensor([0, 1, 0, 1, 0, 9])}
_BOTH = {**_POINTS, "reference": draw(6, 4, 5), "reference_labels": torch.arange(4) % 2}
_NO_NUMBER = {**_BOTH, "embeddings": draw(4, 6, 5) / 0}
_ALMOST = {**_FLAT, "target": _FLAT["target"].long().where(draw(7, 23) > -1, UNNAMED + 1)}

REFUSED: dict[str, tuple[Case, str]] = {
    "an index of two ranks": differ(
        remembering, _INDEXED, _INDEXED, r"index\[0\] and index\[23\] are both 0.*drop_last"
    ),
    "mask": differ(structured_hinge, _HOLES, _ROWS, r"use of mask=, got \[True, False"),
    "dtype": differ(structured_hinge, _FLAT, _SINGLE, r"dtype, got \[torch.float64, torch.float32"),
    "lists of one sample": differ(structured_hinge, samples(23, 1), samples(9, 1), r"has length 1.*pass dim=0"),
    "dim": differ(functional.structured_hinge, _ROWS, samples(9, 6), r"pass dim, .*dim=-1: each row"),
    "classes": differ(structured_hinge, _ROWS, samples(9, 4), r"dimensions 0 and 0, got \[\(23, 6\), \(9, 4\)", dim=0),
    "a target that is almost ignored": differ(
        structured_hinge, _FLAT, _ALMOST, f"is {UNNAMED + 1}; grades must be finite", ignore_index=UNNAMED
    ),
    "no number": differ(structured_hinge, {**_FLAT, "scores": _FLAT["scores"] / 0}, _FLAT, "not finite"),
    "gradient": differ(frozen_if_told, _ALONE, _POINTS, r"need of a gradient, got \[False, True"),
    "reference": differ(retrieval_loss, _POINTS, _BOTH, r"use of reference=, got \[False, True"),
    "labels of one rank": differ(retrieval_loss, {**_POINTS, "labels": torch.arange(5)}, _POINTS, "labels has shape"),
    "an empty query on one rank": differ(retrieval_loss, _ALONE, _POINTS, "query 5 has no positives", empty="error"),
    "no number on one rank": differ(retrieval_loss, _NO_NUMBER, _BOTH, "not finite", similarity="dot"),
}

# A loss of a network's outputs, how many there are of each sample, and options of DistributedDataParallel.
NETWORKS: dict[str, tuple[Callable[..., Any], int, dict[str, Any]]] = {
    "network, hinge": (lambda out, y, **how: structured_hinge(out[:, 0], y == 1, **how), 1, {}),
    "network, classes": (lambda out, y, **how: structured_hinge(out, y[:, None] == torch.arange(4), **how), 4, {}),
    "network, RankSort": (lambda out, y, **how: sum(functional.rank_sort_loss(out[:, 0], y / 4, **how)), 1, {}),
    "network, retrieval": (retrieval_loss, 3, {}),
    "network, retrieval in chunks": (partial(retrieval_loss, chunk_size=4), 3, {"static_graph": True}),
}
INPUTS = {"x": draw(8, 23, 5), "y": torch.arange(23) * 5 % 7 % 4}


def train(name: str, part: Part, wrap: Callable[..., Any], gather: Any) -> Part:
    """Gradients of parameters in the second of two steps."""
    loss, outputs, how = NETWORKS[name]
    torch.manual_seed(0)
    layers = torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, outputs)
    model = wrap(torch.nn.Sequential(*layers).double(), **how)
    stepper = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(2):
        stepper.zero_grad()
        loss(model(part["x"]), part["y"], gather=gather).backward()
        stepper.step()
    return {name.removeprefix("module."): one.grad.clone() for name, one in model.named_parameters()}


def work(rank: int, world: int, folder: Path) -> None:
    """What one process does as one of so many."""
    meeting = (folder / f"meeting of {world}").as_uri()
    dist.init_process_group("gloo", meeting, timedelta(seconds=HANGS_AFTER), rank=rank, world_size=world)
    cases = {name: case for name, (case, _) in REFUSED.items()} | cases_of(world)
    found = {name: attempt(case, case.parts(world)[rank]) for name, case in cases.items()}
    for name in NETWORKS:
        found[name] = train(
            name, dealt(INPUTS, SOME_IDLE, world)[rank], torch.nn.parallel.DistributedDataParallel, "ddp"
        )
    torch.save(found, folder / f"{rank} of {world}.pt")
    dist.destroy_process_group()


def work_in_all(rank: int, folder: Path) -> None:
    """What one process does: as one of three, then of two."""
    torch.set_num_threads(1)
    for world in WORLDS:
        if rank < world:
            work(rank, world, folder)


def main(folder: Path) -> None:
    """Start the processes: copies of this one, where that is safe, which has imported and compiled what they need."""
    torch.set_num_threads(1)
    for case in CASES.values():  # kernels are compiled once, not by every process at a time
        solve(case, union(case.parts(2)), False)
    torch.compile(torch.sin, backend="eager")(torch.ones(1))  # what PyTorch's compiler needs for its first function
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    running = [context.Process(target=work_in_all, args=(rank, folder), daemon=True) for rank in range(max(WORLDS))]
    for process in running:
        process.start()
    for process in running:
        process.join()
    sys.exit(any(process.exitcode for process in running))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where processes have left what they found: first three of them, then two."""
    folder = tmp_path_factory.mktemp("processes")
    loopback = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
    command = [sys.executable, __file__, str(folder)]
    ended = subprocess.run(command, env=os.environ | loopback, stderr=subprocess.PIPE, text=True, timeout=LATE_AFTER)
    assert ended.returncode == 0, ended.stderr
    return folder


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[int, list[Part]]:
    """What each process found, by how many there were."""
    return {world: [torch.load(folder / f"{rank} of {world}.pt") for rank in range(world)] for world in WORLDS}


@pytest.fixture
def found(results: dict[int, list[Part]], world: int) -> list[Part]:
    return results[world]


worlds = pytest.mark.parametrize("world", WORLDS, ids="{} processes".format)


def assert_near(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected.to(found.dtype), rtol=0.0, atol=ATOL[found.dtype])


@pytest.mark.distributed
@pytest.mark.parametrize(
    ("world", "name"),
    [pytest.param(world, name, id=f"{world} processes-{name}") for world in WORLDS for name in cases_of(world)],
)
def test_processes_have_the_value_and_the_gradient_of_one(found: list[Part], name: str) -> None:
    case = CASES[name]
    parts = case.parts(len(found))
    alone = solve(case, union(parts), False)
    solved = [one[name] for one in found]
    assert [one.get("error") for one in solved] == [None] * len(found)
    own_queries = "embeddings" in parts[0] and case.options.get("reduction") == "none"
    values = [torch.cat([one["value"] for one in solved])] if own_queries else [one["value"] for one in solved]
    for value in values:
        assert_near(value, alone["value"])
        assert torch.equal(value, values[0])
    for leaf in alone.keys() - {"value"}:
        pieces = alone[leaf].split([part[leaf].shape[0] for part in parts])
        for one, piece in zip(solved, pieces, strict=True):
            assert_near(one[leaf], piece if piece.dim() == 1 else piece[..., : one[leaf].shape[-1]])


@pytest.mark.distributed
@worlds
@pytest.mark.parametrize("name", NETWORKS)
def test_distributed_data_parallel_has_the_gradients_of_one_process(found: list[Part], name: str) -> None:
    alone = train(name, INPUTS, lambda model, **_: model, False)
    assert any(gradient.abs().max() > 1e-3 for gradient in alone.values())
    for one in found:
        assert one[name].keys() == alone.keys()
        for parameter, gradient in alone.items():
            assert_near(one[name][parameter], gradient)


@pytest.mark.distributed
@worlds
@pytest.mark.parametrize("name", REFUSED)
def test_what_one_rank_or_all_cannot_join_is_refused_by_all_and_none_waits(found: list[Part], name: str) -> None:
    for one in found:
        assert re.match(f"(ValueError|NotFiniteError): .*{REFUSED[name][1]}", one[name].get("error", "nothing"))


@pytest.mark.parametrize("gather", [True, "ddp"])
@pytest.mark.parametrize("name", ["unequal shards", "queries on several ranks, each", "retrieval, each"])
def test_without_a_process_group_gather_changes_nothing(gather: Any, name: str) -> None:
    whole = union(CASES[name].parts(3))
    plain, gathered = (solve(CASES[name], whole, one) for one in (False, gather))
    assert plain.keys() == gathered.keys()
    assert all(torch.equal(plain[key], gathered[key]) for key in plain)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
