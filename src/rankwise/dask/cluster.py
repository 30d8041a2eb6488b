"""The client of a cluster, and what a computation holds there."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from distributed import Client, Future, get_client


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
