"""The cluster: its client, what a computation holds there, and parts as futures.

States stay on the workers, and only replies come back. The scheduler knows every task with all its inputs, including
messages. So if a worker dies, Dask repeats what is lost. Replies do not depend on the worker and are added up in the
order of parts, so the result stays the same.
"""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from distributed import Client, Future, get_client

from rankwise.distributed.exchange import Each, Function, Traffic, add_all, size_of

__all__ = ["Futures", "Hold", "SchedulerLostError", "as_client", "clear", "holding"]

# If there are more replies than this, workers add them up in groups of this size.
_FAN_IN = 16
# A message with more bytes is sent once and copied from worker to worker.
_SMALL = 1 << 12


class SchedulerLostError(ConnectionError):
    """Error that is raised when the Dask scheduler can no longer be reached, or if the client is closed.

    If `DaskRankSVM.fit` raises it after it has found a model, the best one is in the attribute partial_ of the ranker.
    Start a new cluster and fit again; with warm_start=True the fit continues from there.

    See Also
    --------
    DaskRankSVM : Ranker whose `fit` raises this error.

    Examples
    --------
    >>> issubclass(SchedulerLostError, ConnectionError)
    True
    """


class Hold:
    """A client that knows every future it has given out, as long as it lives.

    The exception of a failed fit keeps the frames of the fit, and these its futures. So futures are released by name
    here, not by garbage collection. Futures of the user's collections are never touched: each counts on its own.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._futures: weakref.WeakValueDictionary[int, Future] = weakref.WeakValueDictionary()

    def map(self, task: Any, /, *columns: Iterable[Any], **options: Any) -> list[Future]:
        """See `Client.map`; the results are not cached."""
        return self._held(self.client.map(task, *columns, pure=False, **options))

    def compute(self, delayed: Sequence[Any]) -> list[Future]:
        """See `Client.compute`."""
        return self._held(self.client.compute(delayed))

    def gather(self, futures: Sequence[Future]) -> list[Any]:
        """See `Client.gather`."""
        found: list[Any] = self.client.gather(futures)
        return found

    def give(self, futures: Iterable[Future]) -> None:
        """Leave some futures to the caller, who releases them."""
        for future in futures:
            del self._futures[id(future)]

    def release(self) -> None:
        """Release all futures."""
        for future in list(self._futures.values()):
            try:
                future.release()
            except RuntimeError:  # the event loop of the client is gone
                return
        self._futures.clear()

    def _held(self, futures: list[Future]) -> list[Future]:
        self._futures.update((id(future), future) for future in futures)
        return futures


@contextmanager
def holding(client: Client | None) -> Iterator[Hold]:
    """Give a client, or the current one, whose futures are released in the end, whatever happens."""
    hold = Hold(as_client(client))
    try:
        yield hold
    finally:
        hold.release()


def as_client(client: Client | None) -> Client:
    """Return the given client, or the current one, if it is open."""
    if client is None:
        try:
            client = get_client()
        except ValueError:
            raise ValueError(
                "there is no Dask client; create one with distributed.Client(...), or pass client="
            ) from None
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client, got {type(client).__name__}")
    if client.asynchronous:
        raise TypeError("client is asynchronous, but rankwise waits for results; open it with asynchronous=False")
    if client.status in ("closing", "closed"):
        raise SchedulerLostError(
            "the Dask client is closed, and maybe its cluster, too; open one with distributed.Client(...), and pass it "
            "as client= unless it is the current one"
        )
    return client


@contextmanager
def clear(client: Client) -> Iterator[None]:
    """Raise `SchedulerLostError` for errors that occur because the scheduler is gone."""
    try:
        yield
    except Exception as error:
        if client.status == "running":
            raise
        where = getattr(client.scheduler, "address", None)
        raise SchedulerLostError(
            f"the Dask scheduler{f' at {where}' if where else ''} can no longer be reached; start a new cluster and a "
            "client for it, and try again"
        ) from error


class Futures:
    """Parts on a cluster, as an `Exchange`: for each part, one future for its state and one for its data."""

    def __init__(
        self, hold: Hold, states: Sequence[Future], data: Sequence[Future] = (), traffic: Traffic | None = None
    ) -> None:
        self.hold, self.states, self.data = hold, list(states), list(data)
        self.traffic = Traffic() if traffic is None else traffic

    def derive(self, function: Function, *args: Any, reads: bool = False) -> Futures:
        """See `Exchange`."""
        with clear(self.hold.client):
            return Futures(self.hold, self._submit(function, args, reads), self.data, self.traffic)

    def ask(self, function: Function, *args: Any, reads: bool = False) -> Any:
        """See `Exchange`."""
        with clear(self.hold.client):
            replies = self._submit(function, args, reads)
            while len(replies) > _FAN_IN:
                groups = [replies[k : k + _FAN_IN] for k in range(0, len(replies), _FAN_IN)]
                replies = self.hold.map(add_all, groups, key=_keys("add", len(groups)))
            found = self.hold.gather(replies)
        self.traffic.rounds += 1
        self.traffic.received += size_of(found)
        return add_all(found)

    def _submit(self, function: Function, args: tuple[Any, ...], reads: bool) -> list[Future]:
        shared = tuple(None if isinstance(one, Each) else one for one in args)
        own = {at: one for at, one in enumerate(args) if isinstance(one, Each)}
        self.traffic.sent += size_of(args)
        step = args[0] if args and callable(args[0]) else function  # what portions do, such as "count"
        name, n, message = step.__name__.strip("_"), len(self.states), shared
        if size_of(shared) > _SMALL:
            (message,) = self.hold.map(_hold, [shared], key=_keys(f"{name}-message", 1))
        columns = [*([self.data] if reads else []), self.states, [message] * n, *own.values()]
        return self.hold.map(_carry_out, *columns, function=function, own_at=tuple(own), key=_keys(name, n))


def _hold(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return args


def _carry_out(*given: Any, function: Function, own_at: tuple[int, ...]) -> Any:
    """Call the function; given: data and state, what all parts get, and what this part gets at the places `own_at`."""
    *before, message = given[: len(given) - len(own_at)]
    args = list(message)
    for at, own in zip(own_at, given[len(before) + 1 :], strict=True):
        args[at] = own
    return function(*before, *args)


def _keys(name: str, n: int) -> list[str]:
    token = uuid.uuid4().hex
    return [f"rankwise-{name}-{token}-{k}" for k in range(n)]
