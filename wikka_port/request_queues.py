"""Queues of requests in a serving process: a quick request never waits for an expensive one, nor for a slow client.

    arrives -> quick lane (``threads``) -> answered
                    | the handler finds what the request is, and ends before it reads or writes anything
                    |-- it is expensive -----------------------> slow lane (one thread) ----------.
                    |                                                                             v
                    '-- it sends or fetches much: a transfer --> transfers (TRANSFERS_AT_ONCE) -> the handler starts
                                                                                                  again -> answered

A request occupies a thread of the quick lane only until it is recognised, by its address or after one read of the
store.  Expensive requests wait in order, up to SLOW_WAITING_MAX.  A single thread is enough for them: it computes, and
two threads would only compete for the interpreter with each other and with the quick lane.

A transfer is a request whose body is read as it arrives (``body_pipe``), or an answer over TRANSFER_FROM_BYTES.  Its
thread waits for the client, so these threads do nothing else.  A network has TRANSFERS_OF_NETWORK of them at most, and
its further transfers are passed by those of others.  TRANSFERS_WAITING_MAX transfers wait, of one network
TRANSFERS_WAITING_OF_NETWORK; further ones get 503.  (By a race of threads a queue may exceed its bound by a few.)

The application calls ``run_in_slow_lane`` and ``run_as_transfer`` before it begins its answer and reads the
request's body; the first read of a body that arrives calls the latter by itself.  Without queues (in a test client or a
different server) the calls do nothing.  The rest is for ``wsgi_worker``.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from werkzeug.exceptions import ServiceUnavailable

from wikka_port.counters import TransferState
from wikka_port.limits import (
    SLOW_WAITING_MAX,
    TRANSFERS_AT_ONCE,
    TRANSFERS_OF_NETWORK,
    TRANSFERS_WAITING_MAX,
    TRANSFERS_WAITING_OF_NETWORK,
)

log = logging.getLogger(__name__)

PLACE_KEY: Final = "wikka.place"  # in the environment of a request: its Place

QueueName = Literal["quick", "slow", "transfers"]


class QueueFull(ServiceUnavailable):
    """Too many requests of the kind wait already."""

    retry_s = 5


class TooManyExpensiveRequests(QueueFull):
    """The slow lane is full."""


class TooManyTransfers(QueueFull):
    """No more transfers may wait, or none of the client's network."""

    retry_s = 20


class Restart(BaseException):
    """Moves a request to another queue; no error, so code that catches errors must let it pass."""

    def __init__(self, queue: QueueName) -> None:
        super().__init__(queue)
        self.queue = queue


def run_in_slow_lane(environ: Mapping[str, Any]) -> None:
    """Restart the request in the slow lane, unless it is in a queue of its own.  Raises TooManyExpensiveRequests.

    A request whose body is still to come stays where it is: the slow lane waits for no client.
    """
    place: Place | None = environ.get(PLACE_KEY)
    if place is not None and place.queue == "quick" and not place.has_arriving_body:
        place.restart("slow", TooManyExpensiveRequests)


def run_as_transfer(environ: Mapping[str, Any]) -> None:
    """Restart the request as a transfer, unless it is one.  Raises TooManyTransfers."""
    place: Place | None = environ.get(PLACE_KEY)
    if place is not None and place.queue != "transfers":
        place.restart("transfers", TooManyTransfers)


class Request(Protocol):
    """A request as a queue knows it: the channel of waitress that serves it."""

    network: str  # of the client; "" in a queue without bounds of networks
    direction: Literal["in", "out"]  # as a transfer

    def service(self) -> None: ...
    def cancel(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Place:
    """The queue whose thread serves a request."""

    dispatcher: RequestDispatcher
    queue: QueueName
    has_arriving_body: bool
    network: Callable[[], str]  # of the client

    def restart(self, queue: QueueName, full: type[QueueFull]) -> None:
        if self.dispatcher.queues[queue].is_full_for(self.network()):
            raise full
        raise Restart(queue)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a queue; None: no bound."""

    threads: int
    waiting: int | None = None
    of_network: int | None = None  # at once, of one network
    waiting_of_network: int = 0


class RequestQueue:
    """Requests that wait, and the threads that serve them; a thread is started when the first request needs it."""

    def __init__(self, name: str, bounds: Bounds, note: Callable[[TransferState, int], None] | None = None) -> None:
        """``note`` gets each change of the numbers of transfers."""
        self._name = name
        self._bounds = bounds
        self._note = note or _ignore
        self._changed = threading.Condition()
        # guarded by _changed
        self._waiting: deque[Request] = deque()
        self._waiting_of: Counter[str] = Counter()
        self._running = 0
        self._running_of: Counter[str] = Counter()
        self._threads = 0
        self._idle = 0
        self._is_ending = False

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def is_full_for(self, network: str) -> bool:
        """Return whether no further request may come; requests that a thread is about to take do not wait."""
        bounds = self._bounds
        with self._changed:
            if bounds.waiting is not None and len(self._waiting) + self._running >= bounds.threads + bounds.waiting:
                return True
            if bounds.of_network is None:
                return False
            of_network = self._waiting_of[network] + self._running_of[network]
            return of_network >= bounds.of_network + bounds.waiting_of_network

    def add_request(self, request: Request) -> None:
        with self._changed:
            self._waiting.append(request)
            self._waiting_of[request.network] += 1
            self._note("waiting", 1)
            if self._idle < len(self._waiting) and self._threads < self._bounds.threads and not self._is_ending:
                name = f"{self._name}-{self._threads}"
                self._threads += 1
                threading.Thread(target=self._serve, name=name, daemon=True).start()
            self._changed.notify()

    def shutdown(self, timeout_s: float) -> None:
        """Serve what waits no more, and wait for the threads."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._is_ending = True
            while self._waiting:
                request = self._waiting.popleft()
                self._forget(self._waiting_of, request.network)
                self._note("waiting", -1)
                request.cancel()
            self._changed.notify_all()
            while self._threads and (left_s := deadline - time.monotonic()) > 0:
                self._changed.wait(left_s)
            if self._threads:
                log.warning("%d threads still run (%s)", self._threads, self._name)

    def _serve(self) -> None:
        while (request := self._next_request()) is not None:
            network, direction = request.network, request.direction
            try:
                request.service()
            except BaseException:
                log.exception("a request was not served: %r", request)
            finally:
                with self._changed:
                    self._running -= 1
                    self._forget(self._running_of, network)
                    self._note(direction, -1)
                    if self._bounds.of_network is not None:
                        self._changed.notify()  # another one of the network may begin

    def _next_request(self) -> Request | None:
        """Wait for a request that may begin; None: the queue ends."""
        most = self._bounds.of_network
        with self._changed:
            while not self._is_ending:
                for index, request in enumerate(self._waiting):
                    if most is None or self._running_of[request.network] < most:
                        self._begin(index, request)
                        return request
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            self._threads -= 1
            self._changed.notify_all()
            return None

    def _begin(self, index: int, request: Request) -> None:
        """Take a request from those that wait.  Needs the lock."""
        del self._waiting[index]
        self._forget(self._waiting_of, request.network)
        self._note("waiting", -1)
        self._running += 1
        self._running_of[request.network] += 1
        self._note(request.direction, 1)

    @staticmethod
    def _forget(counted: Counter[str], network: str) -> None:
        counted[network] -= 1
        if not counted[network]:
            del counted[network]


def _ignore(state: TransferState, change: int) -> None:
    """Note nothing: the queue has no transfers."""


class RequestDispatcher:
    """A task dispatcher of waitress, with the three queues.  Thread-safe."""

    def __init__(self, threads: int, note: Callable[[TransferState, int], None]) -> None:
        """``threads`` are those of the quick lane."""
        transfers = Bounds(TRANSFERS_AT_ONCE, TRANSFERS_WAITING_MAX, TRANSFERS_OF_NETWORK, TRANSFERS_WAITING_OF_NETWORK)
        self.queues: Final[Mapping[QueueName, RequestQueue]] = {
            "quick": RequestQueue("quick", Bounds(threads)),
            "slow": RequestQueue("slow", Bounds(1, waiting=SLOW_WAITING_MAX)),
            "transfers": RequestQueue("transfers", transfers, note),
        }

    def add_task(self, channel: Any) -> None:
        """Take a new request; called by waitress."""
        self.add_to("quick", channel)

    def add_to(self, queue: QueueName, channel: Any) -> None:
        channel.enter_queue(queue)
        self.queues[queue].add_request(channel)

    def shutdown(self, cancel_pending: bool = True, timeout: float = 5) -> None:
        """Cancel what waits, and wait for the threads of all queues."""
        deadline_s = time.monotonic() + timeout
        for queue in self.queues.values():
            queue.shutdown(deadline_s - time.monotonic())
