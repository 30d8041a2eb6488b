"""The cluster: its client, what a computation holds there, and partitions as futures.

States stay on the workers, and only replies come back. The scheduler knows every task with all its inputs, so if a
worker dies, Dask repeats what is lost. Replies are added up in the order of partitions, so the result stays the same.
"""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from distributed import Client, Future, get_client

from rankwise.distributed.exchange import Each, Function, Traffic, add_all, size_of

# If there are more replies than this, workers add them up in groups of this size.
_FAN_IN = 16
# An argument with more bytes is sent once and copied from worker to worker.
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

    The exception of a failed fit keeps the frames of the fit, and these its futures. So futures are released here, not
    by garbage collection. Futures of the user's collections are never touched.
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
    """Partitions on a cluster, as an `Exchange`: for each, one future for its state and one for its data."""

    def __init__(
        self, hold: Hold, states: Sequence[Future], data: Sequence[Future] = (), traffic: Traffic | None = None
    ) -> None:
        self.hold, self.states, self.data = hold, list(states), list(data)
        self.traffic = traffic or Traffic()

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
            found = self.hold.client.gather(replies)
        self.traffic.rounds += 1
        self.traffic.received += size_of(found)
        return add_all(found)

    def _submit(self, function: Function, args: tuple[Any, ...], reads: bool) -> list[Future]:
        self.traffic.sent += size_of(args)
        step = args[0] if args and callable(args[0]) else function  # what portions do, such as "count"
        name = step.__name__.strip("_")
        columns = [self.data] * reads + [self.states] + [self._column(one, name) for one in args]
        return self.hold.map(function, *columns, key=_keys(name, len(self.states)))

    def _column(self, argument: Any, name: str) -> list[Any]:
        """Return an argument for each part."""
        if isinstance(argument, Each):
            return argument
        if size_of(argument) > _SMALL:
            (argument,) = self.hold.map(_same, [argument], key=_keys(f"{name}-message", 1))
        return [argument] * len(self.states)


def _same(argument: Any) -> Any:
    return argument


def _keys(name: str, n: int) -> list[str]:
    token = uuid.uuid4().hex
    return [f"rankwise-{name}-{token}-{k}" for k in range(n)]
