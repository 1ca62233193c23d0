"""A thread that makes requests of a lease to the coordination service, with a client of its own.

The event loop is called by ``call_soon_threadsafe``, with values only.  It sets slots of the thread and wakes it; it
never waits for it.  A thread that waits for the service does not hold the loop up, and a loop that opens a region does
not hold a renewal up.

A client that has given no answer for RECONNECT_MS is replaced by a new one, in case the client is at fault.

If the loop has not answered a call for LOOP_HANG_MS, the process hangs: its threads make no requests until the loop
answers, so the node is fenced like one that is dead, and another leads.

Knows nothing of what is requested; ``renewal_thread`` and ``candidate_thread`` do.
"""

from __future__ import annotations

import logging
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Any, Final

from columnar.coordination.cas import CasRefused, CasStore
from columnar.coordination.lease import RETRY_MS, Answer, Failed, LeaseTimes, PollRecords, ReadRecord, Request
from columnar.coordination.lease_page import boot_ms
from columnar.coordination.lease_requests import PolledRecords, make_request
from columnar.errors import ColumnarError, DamagedData
from columnar.runtime.faults import FAULTS

_log = logging.getLogger(__name__)

LOOP_HANG_MS: Final = 5_000  # longer than any step of a loop that works; a stopped process is noticed by its lease
RECONNECT_MS: Final = 10_000  # longer than clients need to reconnect by themselves
WARN_INTERVAL_MS: Final = 60_000  # between two log lines about the same
JOIN_S: Final = 1.0


class LoopCalls:
    """Calls of the event loop from threads, and whether the loop answers them."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._sent_ms: int | None = None  # of the check that the loop has not answered; set by one thread

    def call(self, function: Callable[..., None], *values: Any) -> None:
        """Call the function on the loop, soon.  Does nothing if the loop is closed, because then the process ends."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *values)

    def check_loop(self, on_answer: Callable[[], None]) -> None:
        """Let the loop answer, unless it owes an answer already; ``on_answer`` is called on the loop if it hung."""
        if self._sent_ms is None:
            self._sent_ms = boot_ms()
            self.call(self._answer, on_answer)

    def is_hung(self) -> bool:
        sent_ms = self._sent_ms
        return sent_ms is not None and boot_ms() - sent_ms >= LOOP_HANG_MS

    def _answer(self, on_answer: Callable[[], None]) -> None:
        hung = self.is_hung()
        self._sent_ms = None
        if hung:  # the answer in time must not wake the thread, which would check the loop again
            on_answer()


class OperatorWarnings:
    """Log lines about what an operator should change: at most one of a kind in WARN_INTERVAL_MS.

    A kind is a constant, or the name of a node, so their number is bounded by that of nodes.  Belongs to one thread.
    """

    def __init__(self) -> None:
        self._logged_ms: dict[str, int] = {}

    def warn(self, kind: str, text: str) -> None:
        now_ms = boot_ms()
        if now_ms - self._logged_ms.get(kind, -WARN_INTERVAL_MS) >= WARN_INTERVAL_MS:
            self._logged_ms[kind] = now_ms
            _log.warning("%s", text)


class ServiceThread:
    """The thread; a subclass has its steps.  Fields are the thread's own but for ``_wake`` and ``_is_stopping``."""

    def __init__(self, name: str, connect: Callable[[], CasStore], times: LeaseTimes, calls: LoopCalls) -> None:
        self._name = name
        self._connect = connect
        self._times = times
        self._calls = calls
        self._polled = PolledRecords()
        self._warnings = OperatorWarnings()
        self._wake = threading.Event()  # set by the loop after it has set a slot
        self._is_stopping = False  # set by the loop
        self._answered_ms = 0  # of the last answer, or when the client was made
        self._thread: threading.Thread | None = None

    # --- called on the loop --------------------------------------------------------------------------

    def start(self, on_end: Callable[[], None]) -> None:
        """Start the thread; ``on_end`` is called on the loop as the thread's last act."""
        self._thread = threading.Thread(target=self._run, args=(on_end,), name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Tell the thread to end after its present request.  Does not wait."""
        self._is_stopping = True
        self._wake.set()

    @property
    def is_started(self) -> bool:
        return self._thread is not None

    def wake(self) -> None:
        self._wake.set()

    def join(self) -> None:
        """Wait for a thread that has called ``on_end``."""
        if self._thread is not None:
            self._thread.join(JOIN_S)

    # --- the thread ----------------------------------------------------------------------------------

    def _run(self, on_end: Callable[[], None]) -> None:
        store: CasStore | None = None
        try:
            while not self._is_stopping and not self._has_ended():
                try:
                    if store is None:
                        store = self._connect()
                        self._answered_ms = boot_ms()
                    self._step(store)
                    if boot_ms() - self._answered_ms > RECONNECT_MS:
                        store = self._close(store)
                except Exception as error:  # noqa: BLE001 - the loop of a lease survives; the client may not
                    FAULTS.met(self._name, error)
                    store = self._close(store)
                    self._wait(boot_ms() + RETRY_MS)
        finally:
            self._close(store)
            self._calls.call(on_end)

    def _close(self, store: CasStore | None) -> CasStore | None:
        """Close the client, if there is one; returns None, for the place where it stood."""
        if store is not None:
            try:
                store.close()
            except Exception as error:  # noqa: BLE001 - the connection is given up in any case
                FAULTS.met(self._name, error)
        return None

    def _has_ended(self) -> bool:
        raise NotImplementedError

    def _step(self, store: CasStore) -> None:
        """Make one request, or wait until one is due."""
        raise NotImplementedError

    def _failed(self, error: ColumnarError) -> None:
        """Take the reason why the service gave no answer."""
        raise NotImplementedError

    def _wait_for_loop(self, period_ms: int) -> None:
        """Wait while the loop hangs, and let the time count for nothing."""
        self._wait(boot_ms() + period_ms)
        self._answered_ms = boot_ms()

    def _wait(self, due_ms: int) -> None:
        """Wait until a moment of ``boot_ms``, or until the loop has set a slot."""
        self._wake.wait(max(0, due_ms - boot_ms()) / 1_000)

    def _answer_of(self, store: CasStore, request: Request, compose: Callable[[], bytes]) -> Answer:
        """Make the request.  A refusal, damage and any unexpected exception count as an answer that did not come.

        They are reported; and the state machine gets an answer to each of its requests.
        """
        try:
            answer = make_request(store, request, compose, self._polled, self._failed)
            FAULTS.went_well(self._name)
            if answer not in (Failed.UNAVAILABLE, Failed.UNKNOWN):
                self._answered_ms = boot_ms()
            return answer
        except (CasRefused, DamagedData) as error:
            self._answered_ms = boot_ms()
            self._warnings.warn(type(error).__name__, str(error))
            self._failed(error)
        except Exception as error:  # noqa: BLE001 - as in ``_run``
            FAULTS.met(self._name, error)
        return Failed.UNAVAILABLE if isinstance(request, ReadRecord | PollRecords) else Failed.UNKNOWN
