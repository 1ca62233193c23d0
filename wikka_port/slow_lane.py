"""Two queues of requests in a serving process: a quick request never waits for an expensive one.

    arrives -> quick lane (``threads``) -> answered
                    | the handler finds that the request is expensive, and ends before it writes anything
                    v
               slow lane (one thread) -> the handler starts again -> answered

An expensive request occupies a thread of the quick lane only until it is recognised, by its address or after one read
of the store.  Expensive requests wait in order in the slow lane, up to SLOW_WAITING_MAX; further ones get 503.  A
single thread is enough: it computes, and two threads would only compete for the interpreter with each other and with
the quick lane.

The application calls ``run_in_slow_lane`` before it begins its answer and reads the request's body; without
lanes (in a test client or a different server) the call does nothing.  The rest is for ``wsgi_worker``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from waitress.channel import HTTPChannel
from waitress.task import ThreadedTaskDispatcher, WSGITask
from werkzeug.exceptions import ServiceUnavailable

from wikka_port.limits import SLOW_WAITING_MAX

DISPATCHER_KEY: Final = "wikka.quick_lane"  # in the environment of a request in the quick lane: its RequestDispatcher
RETRY_S: Final = 5


class TooManyExpensiveRequests(ServiceUnavailable):
    """The slow lane is full."""


class _RestartAsSlow(BaseException):
    """Moves a request to the slow lane; no error, so code that catches errors must let it pass."""


def run_in_slow_lane(environ: Mapping[str, Any]) -> None:
    """Restart the request in the slow lane, unless it is there already.  Raises TooManyExpensiveRequests."""
    dispatcher: RequestDispatcher | None = environ.get(DISPATCHER_KEY)
    if dispatcher is None:
        return
    if dispatcher.slow_waiting >= SLOW_WAITING_MAX:
        raise TooManyExpensiveRequests
    raise _RestartAsSlow


class RequestDispatcher:
    """A task dispatcher of waitress.  Thread-safe."""

    def __init__(self, quick: ThreadedTaskDispatcher, slow: ThreadedTaskDispatcher) -> None:
        self._quick = quick
        self._slow = slow

    @classmethod
    def started(cls, threads: int) -> RequestDispatcher:
        """Start both lanes, with ``threads`` threads in the quick lane."""
        quick, slow = ThreadedTaskDispatcher(), ThreadedTaskDispatcher()
        quick.set_thread_count(threads)
        slow.set_thread_count(1)
        return cls(quick, slow)

    @property
    def slow_waiting(self) -> int:
        return len(self._slow.queue)

    def add_task(self, task: DispatchedChannel) -> None:
        self._quick.add_task(task)

    def add_slow_task(self, task: DispatchedChannel) -> None:
        self._slow.add_task(task)

    def shutdown(self, cancel_pending: bool = True, timeout: float = 5) -> None:
        for queue in (self._quick, self._slow):
            queue.shutdown(cancel_pending, timeout)


class DispatchedTask(WSGITask):  # type: ignore[misc]  # waitress ships no types
    def get_environment(self) -> dict[str, Any]:
        environ: dict[str, Any] = super().get_environment()
        if self.request is not self.channel.slow_request:
            environ[DISPATCHER_KEY] = self.channel.server.task_dispatcher
        return environ


class DispatchedChannel(HTTPChannel):  # type: ignore[misc]
    task_class = DispatchedTask
    slow_request: Any = None  # the request that restarts in the slow lane; written by the thread that serves it

    def service(self) -> None:
        try:
            super().service()
        except _RestartAsSlow:
            self.slow_request = self.requests[0]
            self.server.task_dispatcher.add_slow_task(self)
