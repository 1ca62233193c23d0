"""The thread that renews a node's lease: it writes the node's record, and the page that the node's servers read.

Each renewal carries what the node's servers have synced, and their clock (``server_page``).  The loop never waits for
anything but the service, the end of a period and a new record.  It stops to renew only if the event loop hangs
(``service_thread``).

A clean stop (``release``) writes the record as withdrawn.  The leader deletes a record that says so, and takes the
node's regions over without a new generation of their folders.  If no leader has done so within WITHDRAWN_MS, or there
is no other node, the thread deletes the record itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from columnar.clock import system_ms
from columnar.coordination.cas import CasOutcomeUnknown, CasStore, CasUnavailable, VersionConflict
from columnar.coordination.lease import (
    RETRY_MS,
    Answer,
    Done,
    Failed,
    HolderState,
    LeaseHolder,
    LeaseTimes,
    Request,
)
from columnar.coordination.lease_page import LeasePage, boot_ms
from columnar.coordination.node_record import NodeRecord, encode_record
from columnar.coordination.server_page import ServerReadings
from columnar.coordination.service_thread import LoopCalls, ServiceThread
from columnar.errors import ColumnarError

WITHDRAWN_MS: Final = 1_000
SLOW_SHARE: Final = 3  # an answer that takes longer than this part of the lease is slow
SILENT_SHARE: Final = 2  # a service that gave no answer for longer than this part of the lease is silent


class RenewalEvents(Protocol):
    """Reports of the thread; called on the loop."""

    def joined(self) -> None:
        """The lease is held for the first time."""

    def not_answered(self, error: ColumnarError) -> None:
        """A request was not answered or refused before the lease was held."""

    def lost(self, why: str) -> None: ...

    def service_silent(self, since_ms: int, why: str) -> None: ...

    def service_answers(self, silent_ms: int) -> None: ...


class RenewalThread(ServiceThread):
    """``publish`` and ``release`` are called on the loop; all else is the thread's."""

    def __init__(
        self,
        connect: Callable[[], CasStore],
        times: LeaseTimes,
        calls: LoopCalls,
        record: NodeRecord,
        page: LeasePage,
        events: RenewalEvents,
        read_servers: Callable[[], ServerReadings],
    ) -> None:
        """Pass ``read_servers``, which the thread calls for each renewal."""
        super().__init__("renewal of the node's lease", connect, times, calls)
        self._events = events
        self._read_servers = read_servers
        self._page = page
        self._published = _Published(record, ())  # set by the loop
        self._sent = self._published  # in the write that is under way
        self._is_new = False  # the record; set by the loop
        self._is_releasing = False  # set by the loop
        self._has_others = False
        self._holder = LeaseHolder(record.key, record.nonce, times)
        self._has_joined = False
        self._sent_ms = 0  # of the last request
        self._heard_ms = 0  # of the last answer; 0: none yet
        self._is_silent = False
        self._why = ""  # the service gave no answer

    # --- called on the loop --------------------------------------------------------------------------

    def publish(self, record: NodeRecord) -> asyncio.Future[None]:
        """Renew with this record at once; its logs and clocks are read for each renewal.

        The result is done when the service has this record or a later one.
        """
        before = self._published
        waiting = tuple(one for one in before.waiting if not one.done())
        published: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._published = _Published(replace(record, nonce=before.record.nonce), (*waiting, published))
        self._is_new = True
        self.wake()
        return published

    def release(self, *, has_others: bool) -> None:
        """Withdraw the node, whose servers have ended, and end the thread.  ``has_others``: a leader may notice it."""
        self._has_others = has_others
        self._is_releasing = True
        self.wake()

    # --- the thread ----------------------------------------------------------------------------------

    def _has_ended(self) -> bool:
        return self._holder.has_ended

    def _step(self, store: CasStore) -> None:
        self._wake.clear()
        now_ms = boot_ms()
        self._calls.check_loop(self.wake)
        if self._calls.is_hung():
            self._wait_for_loop(self._times.renew_ms)
            self._heard_ms = boot_ms()
            return
        self._take_slots(now_ms)
        holder = self._holder
        request = holder.next_request(now_ms)
        if request is None:
            self._wait(holder.due_ms)
            return
        self._sent_ms = now_ms
        answer = self._answer_of(store, request, self._compose)
        holder.on_answer(answer, boot_ms())
        self._page.write_end(holder.until_ms)
        if isinstance(answer, Done) and self._sent.waiting:
            self._calls.call(_settle, self._sent.waiting)
        self._note(request, answer)
        if holder.state is HolderState.LOST and not holder.is_releasing:
            self._calls.call(self._events.lost, self._lost_text(answer))
        if holder.state is HolderState.RELEASED:
            self._await_deletion(store)

    def _take_slots(self, now_ms: int) -> None:
        if self._is_releasing and not self._holder.is_releasing:
            self._holder.release(now_ms)
            self._page.write_end(0)
        if self._is_new:
            self._is_new = False
            self._holder.renew_at(now_ms)

    def _compose(self) -> bytes:
        readings = self._read_servers()
        self._sent = self._published
        return encode_record(
            replace(
                self._sent.record,
                logs=readings.logs,
                clock_ms=readings.clock_ms,
                system_ms=system_ms(),
                cluster_ms=max(system_ms(), self._page.read_cluster_ms()),
                withdrawn=self._holder.is_releasing,
            )
        )

    def _lost_text(self, answer: Answer) -> str:
        if not self._has_joined:
            return f"{self._holder.key} exists already, or the lease was lost before it was held"
        state = "is missing" if getattr(answer, "found", None) is None else "is another holder's"
        return f"{self._holder.key} {state}: this node was fenced"

    # --- the service ---------------------------------------------------------------------------------

    def _failed(self, error: ColumnarError) -> None:
        self._why = str(error)
        if not self._has_joined:
            self._calls.call(self._events.not_answered, error)

    def _note(self, request: Request, answer: Answer) -> None:
        """Report the first lease, a service that is silent or answers again, and one that is slow."""
        now_ms, lease_ms = boot_ms(), self._times.lease_ms
        if not self._has_joined and self._holder.is_valid(now_ms):
            self._has_joined = True
            self._calls.call(self._events.joined)
        if answer in (Failed.UNAVAILABLE, Failed.UNKNOWN):
            if not self._is_silent and self._has_joined and now_ms - self._heard_ms > lease_ms // SILENT_SHARE:
                self._is_silent = True
                self._calls.call(self._events.service_silent, self._heard_ms, self._why)
            return
        if self._is_silent:
            self._is_silent = False
            self._calls.call(self._events.service_answers, now_ms - self._heard_ms)
        self._heard_ms = now_ms
        took_ms = now_ms - self._sent_ms
        if took_ms * SLOW_SHARE > lease_ms:
            self._warnings.warn(
                "slow",
                f"the coordination service took {took_ms} ms to answer, and the lease is {lease_ms} ms: give the "
                "service faster disks or less load, or start all nodes with a longer --lease",
            )

    # --- the end -------------------------------------------------------------------------------------

    def _await_deletion(self, store: CasStore) -> None:
        """Wait until the leader has deleted the withdrawn record; delete it if no leader does."""
        key, version = self._holder.key, self._holder.version
        end_ms = boot_ms() + (WITHDRAWN_MS if self._has_others else 0)
        assert version is not None
        try:
            while boot_ms() < end_ms and not self._is_stopping:
                if store.read_key(key) is None:
                    return
                self._wake.clear()
                self._wait(boot_ms() + RETRY_MS)
            store.delete_key(key, version)
        except VersionConflict:
            return  # the leader was faster
        except (CasUnavailable, CasOutcomeUnknown) as error:
            self._warnings.warn("withdrawal", f"{key} may stay in the service until a leader deletes it: {error}")


@dataclass(frozen=True, slots=True)
class _Published:
    """A record to write, and the results that are done when it is written."""

    record: NodeRecord
    waiting: tuple[asyncio.Future[None], ...]


def _settle(waiting: tuple[asyncio.Future[None], ...]) -> None:
    for one in waiting:
        if not one.done():
            one.set_result(None)
