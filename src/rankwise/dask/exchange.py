"""Parts as futures of a Dask cluster: states stay on the workers, and only replies come back.

The scheduler knows every task with all its inputs, including messages. So if a worker dies, Dask repeats what is lost.
Replies do not depend on the worker and are added up in the order of parts, so the result stays the same.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from distributed import Future

from rankwise.dask.holding import Hold, clear
from rankwise.parts.exchange import Function, Traffic, add_all, size_of

__all__ = ["Futures"]

# If there are more replies than this, workers add them up in groups of this size.
_FAN_IN = 16
# A message with more bytes is sent once and copied from worker to worker.
_SMALL = 1 << 12


class Futures:
    """Parts on a cluster, as an `Exchange`: for each part, one future for its state and one for its data."""

    def __init__(
        self, hold: Hold, states: Sequence[Future], data: Sequence[Future] = (), traffic: Traffic | None = None
    ) -> None:
        self.hold, self.states, self.data = hold, list(states), list(data)
        self.traffic = Traffic() if traffic is None else traffic

    def derive(self, function: Function, *args: Any, reads: bool = False, each: Sequence[Any] | None = None) -> Futures:
        """See `Exchange`."""
        with clear(self.hold.client):
            return Futures(self.hold, self._submit(function, args, reads, each), self.data, self.traffic)

    def ask(self, function: Function, *args: Any, reads: bool = False, each: Sequence[Any] | None = None) -> Any:
        """See `Exchange`."""
        with clear(self.hold.client):
            replies = self._submit(function, args, reads, each)
            while len(replies) > _FAN_IN:
                groups = [replies[k : k + _FAN_IN] for k in range(0, len(replies), _FAN_IN)]
                replies = self.hold.map(add_all, groups, key=_keys("rankwise-add", len(groups)))
            found = self.hold.gather(replies)
        self.traffic.rounds += 1
        self.traffic.received += size_of(found)
        return add_all(found)

    def _submit(
        self, function: Function, args: tuple[Any, ...], reads: bool, each: Sequence[Any] | None
    ) -> list[Future]:
        size = size_of(args)
        self.traffic.sent += size + (0 if each is None else size_of(each))
        message: Any = args
        name = f"rankwise-{function.__name__.strip('_')}"
        if size > _SMALL:
            (message,) = self.hold.map(_hold, [args], key=_keys(f"{name}-message", 1))
        columns = [*([self.data] if reads else []), self.states, *([] if each is None else [list(each)])]
        n = len(self.states)
        return self.hold.map(_carry_out, *columns, [message] * n, function=function, key=_keys(name, n))


def _hold(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return args


def _carry_out(*own: Any, function: Function) -> Any:
    *given, args = own
    return function(*given, *args)


def _keys(name: str, n: int) -> list[str]:
    token = uuid.uuid4().hex
    return [f"{name}-{token}-{k}" for k in range(n)]
