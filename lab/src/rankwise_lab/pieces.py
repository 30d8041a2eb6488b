"""Plans and finished pieces, which every experiment is made of; a stopped run resumes from the pieces in its folder.

The folder has plan.json, which describes its pieces, and one JSON file per piece. Each file is written whole or not at
all, by the process that finished it: several processes may write at the same time.
"""

from __future__ import annotations

import json
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from rankwise.io import write_bytes
from rankwise_lab.progress import Progress

_P = TypeVar("_P", bound="Plan")
_R = TypeVar("_R")
# How many characters of the differences a message shows.
_MOST_SHOWN = 3


@dataclass(frozen=True)
class Plan(ABC):
    """How an experiment is run: plain settings, with the defaults of a full run."""

    # Increased when the same plan would give other results.
    version: ClassVar[int] = 1

    @classmethod
    @abstractmethod
    def quick(cls: type[_P]) -> _P:
        """Return a plan that is just large enough to run every part; its numbers mean little."""

    @classmethod
    def sized(cls: type[_P], quick: bool) -> _P:
        """Return the quick plan, or the full one."""
        return cls.quick() if quick else cls()

    def settled(self) -> dict[str, Any]:
        """Return the settings that pieces depend on: all of them, unless a plan overrides this."""
        return asdict(self)

    def head(self) -> dict[str, Any]:
        """Return version and settings as plain data; they identify the pieces."""
        return {"version": self.version, "plan": self.settled()}


class Pieces:
    """Finished pieces of one plan, by name. Creates the folder, and refuses one with other pieces.

    data: by kind, such as "samples", a digest of the data. after: the plan of another experiment whose results this one
    builds on. option: the command-line option that names the folder.
    """

    def __init__(
        self,
        folder: Path,
        plan: Plan,
        data: Mapping[str, str] | None = None,
        *,
        after: Plan | None = None,
        option: str = "--out",
    ) -> None:
        self.folder, self._option = folder, option
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder} is a file, but pieces need a folder: name another {option}")
        folder.mkdir(parents=True, exist_ok=True)
        if "plan" not in self and any(not path.name.startswith(".") for path in folder.iterdir()):
            raise ValueError(f"{folder} has other files but no plan.json: name another {option}")
        others = "".join(f" or of other {kind}" for kind in data or {})
        built_on = {} if after is None else {"after": after.head()}
        self.agree("plan", {**plan.head(), **(data or {}), **built_on}, f"another plan{others}")

    def path(self, name: str, suffix: str = ".json") -> Path:
        """Return the path of a piece, or of a file that belongs to it."""
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
        return self.folder / f"{plain}{suffix}"

    def __contains__(self, name: str) -> bool:
        return self.path(name).exists()

    def read(self, name: str) -> dict[str, Any]:
        try:
            found = json.loads(self.path(name).read_bytes())
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise self._not_a_piece(name)
        return found

    def record(self, name: str, kind: Callable[..., _R]) -> _R:
        """Return a finished piece as an object of the given class."""
        try:
            return kind(**self.read(name))
        except TypeError:
            raise self._not_a_piece(name) from None

    def _not_a_piece(self, name: str) -> ValueError:
        return ValueError(f"{self.path(name)} is not a finished piece: delete it, or name another {self._option}")

    def write(self, name: str, piece: Mapping[str, Any]) -> None:
        write_json(self.path(name), piece)

    def kept(self, name: str, compute: Callable[[Path], Mapping[str, Any]]) -> dict[str, Any]:
        """Return a piece from its file, or compute and write it; compute gets a folder for checkpoints."""
        checkpoint = self.path(name, ".checkpoint")
        if name not in self:
            self.write(name, compute(checkpoint))
        shutil.rmtree(checkpoint, ignore_errors=True)
        return self.read(name)

    def finish(
        self, title: str, work: Callable[..., str], jobs: Sequence[Any], n_jobs: int, progress: Progress | None
    ) -> None:
        """Call work(self, *job) for every job, `n_jobs` at a time; it writes its pieces and returns a label."""
        from sklearn.utils.parallel import Parallel, delayed

        labels = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(delayed(work)(self, *job) for job in jobs)
        (Progress() if progress is None else progress).follow(title, labels, len(jobs))

    def agree(self, name: str, facts: Mapping[str, Any], otherwise: str) -> None:
        """Write what pieces depend on, or compare it with the file. otherwise: how a difference is described."""
        if name not in self:
            self.write(name, facts)
            return
        there, here = self.read(name), json.loads(json.dumps(facts))
        if there != here:
            found = list(_differences(there, here))
            shown = "; ".join(found[:_MOST_SHOWN]) + ("; …" if len(found) > _MOST_SHOWN else "")
            raise ValueError(f"{self.folder} has results of {otherwise} ({shown}): name another {self._option}")


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write a document of plain data to `path`, whole or not at all."""
    write_bytes(path, (json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n").encode())


def _differences(there: Any, here: Any, at: str = "") -> Iterator[str]:
    """Return the differences, one line each: where, the stored value, and the present value."""
    if isinstance(there, dict) and isinstance(here, dict):
        for key in dict.fromkeys((*there, *here)):
            where = f"{at}.{key}" if at else key
            yield from _differences(there.get(key, "absent"), here.get(key, "absent"), where)
    elif there != here:
        yield f"{at} is {there} there, {here} here"
