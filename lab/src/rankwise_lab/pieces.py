"""What every experiment is made of: a plan, and finished pieces in a folder, so that a killed run goes on from there.

The folder has plan.json, which says what its pieces are of, and a JSON file a piece. Each is written whole or not at
all, and by whoever has finished it: several processes may do so at the same time.
"""

from __future__ import annotations

import json
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from rankwise.io import write_bytes

__all__ = ["Pieces", "Plan", "write_json"]

_P = TypeVar("_P", bound="Plan")
_R = TypeVar("_R")
# Of what differs, as much as a line can hold.
_MOST_SHOWN = 3


@dataclass(frozen=True)
class Plan(ABC):
    """How an experiment is run: plain settings, whose defaults are those of a whole run."""

    # Raised when the same plan would give other results.
    version: ClassVar[int] = 1

    @classmethod
    @abstractmethod
    def quick(cls: type[_P]) -> _P:
        """Enough to see every part at work; its numbers mean little."""

    @classmethod
    def sized(cls: type[_P], quick: bool) -> _P:
        """The quick plan, or the whole one."""
        return cls.quick() if quick else cls()

    def settled(self) -> dict[str, Any]:
        """The settings that pieces depend on: all of them, where a plan does not say otherwise."""
        return asdict(self)

    def head(self) -> dict[str, Any]:
        """Version and settings, as plain data: what pieces are told apart by."""
        return {"version": self.version, "plan": self.settled()}


class Pieces:
    """Finished pieces of one plan, by name. The folder is made; one with pieces of something else is refused.

    data: by kind, such as "samples", a digest of what the plan is run on. after: the plan of another experiment whose
    results this one builds on. option: of the command line, which names the folder.
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
            raise ValueError(f"{folder} is a file, and pieces are kept in a folder: name another {option}")
        folder.mkdir(parents=True, exist_ok=True)
        if "plan" not in self and any(not path.name.startswith(".") for path in folder.iterdir()):
            raise ValueError(f"{folder} has other files, and no plan.json: name another {option}")
        others = "".join(f" or of other {kind}" for kind in data or {})
        built_on = {} if after is None else {"after": after.head()}
        self.agree("plan", {**plan.head(), **(data or {}), **built_on}, f"another plan{others}")

    def path(self, name: str, suffix: str = ".json") -> Path:
        """Where a piece is, or a file that belongs to it."""
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
        return self.folder / f"{plain}{suffix}"

    def __contains__(self, name: str) -> bool:
        return self.path(name).exists()

    def read(self, name: str) -> dict[str, Any]:
        """A piece that is finished."""
        try:
            found = json.loads(self.path(name).read_bytes())
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise self._not_a_piece(name)
        return found

    def record(self, name: str, kind: Callable[..., _R]) -> _R:
        """A piece that is finished, made into what its fields are those of."""
        try:
            return kind(**self.read(name))
        except TypeError:
            raise self._not_a_piece(name) from None

    def _not_a_piece(self, name: str) -> ValueError:
        return ValueError(f"{self.path(name)} is not a finished piece: delete it, or name another {self._option}")

    def write(self, name: str, piece: Mapping[str, Any]) -> None:
        """Keep a piece, whole or not at all."""
        write_json(self.path(name), piece)

    def kept(self, name: str, compute: Callable[[Path], Mapping[str, Any]]) -> dict[str, Any]:
        """A piece from its file, or computed and then put there; compute is given a folder for checkpoints."""
        checkpoint = self.path(name, ".checkpoint")
        if name not in self:
            self.write(name, compute(checkpoint))
        shutil.rmtree(checkpoint, ignore_errors=True)
        return self.read(name)

    def agree(self, name: str, facts: Mapping[str, Any], otherwise: str) -> None:
        """Keep what pieces depend on, or compare it with what was kept. otherwise: whose results they are if not."""
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
    """What differs, a line each: where it is, as it was kept, and as it is now."""
    if isinstance(there, dict) and isinstance(here, dict):
        for key in dict.fromkeys((*there, *here)):
            where = f"{at}.{key}" if at else key
            yield from _differences(there.get(key, "absent"), here.get(key, "absent"), where)
    elif there != here:
        yield f"{at} is {there} there, {here} here"
