"""A node's coordination over a compare-and-set store: two threads beside the event loop, and a counter of numbers.

A thread renews the node's lease, the other watches the records and leads if it may.  Each has a client of its own, so
that neither waits for a call of the other.  This module is their loop side: it turns their reports into events and
results.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from columnar.coordination.api import CoordinationEvents, NotLeading
from columnar.coordination.candidate_thread import CandidateThread
from columnar.coordination.cas import CasOutcomeUnknown, CasRefused, CasStore, CasUnavailable
from columnar.coordination.clock_check import ClusterClock
from columnar.coordination.election import Candidate
from columnar.coordination.lease import LEASE_MS, LeaseTimes
from columnar.coordination.lease_page import LeasePage
from columnar.coordination.node_record import (
    LeaderRecord,
    MountRecord,
    NodeRecord,
)
from columnar.coordination.renewal_thread import RenewalThread
from columnar.coordination.server_page import ServerPages
from columnar.coordination.service_access import NO_ACCESS, ServiceAccess
from columnar.coordination.service_address import ServiceAddress
from columnar.coordination.service_thread import LoopCalls
from columnar.coordination.start_calls import START_S, StartCalls
from columnar.errors import ColumnarError, HostError
from columnar.runtime.own_thread import call_in_own_thread

_log = logging.getLogger(__name__)

WITHDRAW_S: Final = 3.0  # of each of the two steps of a clean stop, and of what is done beside the first


class NodeCoordination:
    """``Coordination`` over a service.  ``connect_store`` returns a new client."""

    def __init__(
        self,
        connect_store: Callable[[], CasStore],
        address: str,
        find_address: Callable[[], str],
        times: LeaseTimes,
    ) -> None:
        """Take the settings.  ``address`` names the service in errors and logs, without a password."""
        self._connect_store = connect_store
        self._address = address
        self.local_address = find_address
        self._times = times
        self.start_calls = StartCalls(connect_store, address)
        self.clock = ClusterClock()
        self._events: CoordinationEvents | None = None
        self._renewal: RenewalThread | None = None
        self._candidate: CandidateThread | None = None
        self._renewal_ended = asyncio.Event()
        self._candidate_ended = asyncio.Event()
        self._joined: asyncio.Future[None] | None = None
        self._unanswered: ColumnarError | None = None  # the last error before the lease was held
        self._leadership: _Leadership | None = None
        self._mount = ""  # the key of its record; empty before the lease is held

    def next_number(self, floor: int = 0) -> int:
        """See ``Coordination``.  Raises CasUnavailable after START_S without an answer, CasRefused, DamagedData."""
        return self.start_calls.next_number(floor)

    async def start(
        self,
        record: NodeRecord,
        page: LeasePage,
        events: CoordinationEvents,
        servers: ServerPages,
        *,
        may_lead: bool,
        epoch_floor: int,
        client: str = "",
        web: str = "",
    ) -> None:
        """See ``Coordination``; the record's nonce is drawn here.

        Waits for at most ``fence_ms`` while a record of the same name stands still.  Raises CasUnavailable after
        START_S without an answer, CasRefused, HostError if the record exists already, a node of the same name lives,
        the clock of this machine is wrong, or another node has a lease of another length;
        then the threads have ended, and the object is not used again.
        """
        loop = asyncio.get_running_loop()
        fence_s = self._times.fence_ms / 1_000
        dead = await asyncio.to_thread(self.start_calls.await_name, record.node, fence_s)
        await asyncio.to_thread(self.start_calls.check_clock, fence_s)
        check_leases = partial(self.start_calls.check_leases, record.key, self._times.lease_ms)
        over = await asyncio.to_thread(check_leases)
        record = replace(record, nonce=_drawn_nonce(), lease_ms=self._times.lease_ms)
        calls = LoopCalls(loop)
        self._events = events
        self._joined = loop.create_future()
        self._renewal = RenewalThread(self._connect_store, self._times, calls, record, page, self, servers.read_pages)
        candidate = Candidate(self._times, _drawn_nonce, may_lead=may_lead, epoch_floor=epoch_floor, key=record.key)
        own = LeaderRecord("", record.node, 0, record.address, web=web)
        self._candidate = CandidateThread(
            self._connect_store, self._times, calls, candidate, own, page, self, self.clock
        )
        self._renewal.start(self._renewal_ended.set)
        try:
            async with asyncio.timeout(START_S):
                await self._joined
        except TimeoutError:
            await self._abandon()
            why = "no answer" if self._unanswered is None else str(self._unanswered)
            raise CasUnavailable(f"{self._address}: {why}") from self._unanswered
        except BaseException:
            await self._abandon()
            raise
        try:
            await asyncio.to_thread(self.start_calls.check_alone, record.node, dead | {record.key})
            await asyncio.to_thread(check_leases, over)
            mount = MountRecord(record.node, record.incarnation, record.address, client)
            self._mount = mount.key
            await asyncio.to_thread(self.start_calls.note_mount, mount)
        except BaseException:
            self._renewal.release(has_others=False)  # so that nobody waits for the end of this lease
            await _wait_end(self._renewal_ended, WITHDRAW_S)
            await self._abandon()
            raise
        self._candidate.start(self._candidate_ended.set)

    def publish(self, record: NodeRecord) -> asyncio.Future[None]:
        assert self._renewal is not None
        return self._renewal.publish(record)

    def leads(self) -> bool:
        return self._candidate is not None and self._candidate.leads()

    @property
    def nodes(self) -> Mapping[str, NodeRecord]:
        return {} if self._candidate is None else self._candidate.nodes

    def synced_lengths(self, server: str) -> Mapping[int, int]:
        return {} if self._candidate is None else self._candidate.synced_lengths(server)

    async def lift_epoch(self, minimum: int) -> int:
        leadership, candidate = self._leadership, self._candidate
        if leadership is None or candidate is None:
            raise NotLeading("it was not elected")
        if leadership.epoch < minimum:
            candidate.lift_epoch(minimum)
        return await leadership.wait_epoch(minimum)

    async def wait_unlisted_over(self) -> Mapping[str, NodeRecord]:
        if self._leadership is None:
            raise NotLeading("it was not elected")
        return await asyncio.shield(self._leadership.unlisted)

    def step_down(self) -> None:
        if self._candidate is not None and self._leadership is not None:
            self._candidate.step_down()

    def request_fence(self, key: str) -> None:
        if self._candidate is not None:
            self._candidate.request_fence(key)

    async def withdraw(self) -> None:
        renewal, candidate = self._renewal, self._candidate
        if renewal is None or candidate is None:
            return
        has_others = len(candidate.nodes) > 1
        try:
            candidate.resign()
            await asyncio.gather(
                _wait_end(self._candidate_ended, WITHDRAW_S), _forget_mount(self.start_calls, self._mount)
            )
            renewal.release(has_others=has_others)
            await _wait_end(self._renewal_ended, WITHDRAW_S)
        finally:
            candidate.stop()
            renewal.stop()
        await self._abandon()

    async def _abandon(self) -> None:
        """End the threads without another write."""
        for thread, ended in ((self._candidate, self._candidate_ended), (self._renewal, self._renewal_ended)):
            if thread is not None and thread.is_started:
                thread.stop()
                await _wait_end(ended, WITHDRAW_S)
                thread.join()
        if self._leadership is not None:
            self.deposed("it stops")

    # --- reports of the renewal thread ---------------------------------------------------------------

    def joined(self) -> None:
        assert self._joined is not None
        if not self._joined.done():
            self._joined.set_result(None)

    def not_answered(self, error: ColumnarError) -> None:
        assert self._joined is not None
        self._unanswered = error
        if not self._joined.done() and not isinstance(error, CasUnavailable | CasOutcomeUnknown):
            refused = CasRefused if isinstance(error, CasRefused) else HostError
            self._joined.set_exception(refused(f"{self._address}: {error.text}"))

    def lost(self, why: str) -> None:
        assert self._joined is not None
        assert self._events is not None
        if not self._joined.done():
            self._joined.set_exception(HostError(f"{self._address}: {why}"))
            return
        if self._candidate is not None:
            self._candidate.resign()
        self._events.lease_lost(why)

    def service_silent(self, since_ms: int, why: str) -> None:
        assert self._events is not None
        self._events.service_silent(since_ms, f"{self._address}: {why}")

    def service_answers(self, silent_ms: int) -> None:
        assert self._events is not None
        self._events.service_answers(silent_ms)

    # --- reports of the candidate thread -------------------------------------------------------------

    def nodes_changed(self, nodes: Mapping[str, NodeRecord]) -> None:
        assert self._events is not None
        self._events.nodes_changed(nodes)

    def node_ended(self, key: str, record: NodeRecord, *, is_by_time: bool) -> None:
        assert self._events is not None
        if self._leadership is not None:
            self._events.node_ended(key, record, is_by_time=is_by_time)

    def leader_changed(self, leader: LeaderRecord | None) -> None:
        assert self._events is not None
        self._events.leader_changed(leader)

    def elected(self, epoch: int) -> None:
        assert self._events is not None
        self._leadership = _Leadership(epoch)
        self._events.elected(epoch)

    def epoch_written(self, epoch: int) -> None:
        if self._leadership is not None:
            self._leadership.note_epoch(epoch)

    def unlisted_over(self, nodes: Mapping[str, NodeRecord]) -> None:
        if self._leadership is not None and not self._leadership.unlisted.done():
            self._leadership.unlisted.set_result(nodes)

    def deposed(self, why: str) -> None:
        leadership, self._leadership = self._leadership, None
        if leadership is not None:
            assert self._events is not None
            leadership.end(why)
            self._events.deposed(why)


def connect(url: str, lease_s: float = LEASE_MS / 1_000, access: ServiceAccess = NO_ACCESS) -> NodeCoordination:
    """Return the coordination of a node over the service at ``url`` (``service_address``).  Connects to nothing yet.

    Blocks while it reads files.  Raises BadServiceAddress, and HostError if a file of ``access`` cannot be used.
    """
    address = ServiceAddress.parse(url)
    times = LeaseTimes.of_lease(round(lease_s * 1_000))
    return NodeCoordination(address.connector(lease_s, access), str(address), address.find_local_address, times)


class _Leadership:
    """The results that wait for progress of a leadership.  Owned by the loop."""

    def __init__(self, epoch: int) -> None:
        loop = asyncio.get_running_loop()
        self.epoch = epoch  # written
        self.unlisted: asyncio.Future[Mapping[str, NodeRecord]] = loop.create_future()
        self._lifted: asyncio.Future[None] = loop.create_future()  # done when the epoch changes next

    async def wait_epoch(self, minimum: int) -> int:
        while self.epoch < minimum:
            await asyncio.shield(self._lifted)
        return self.epoch

    def note_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        lifted, self._lifted = self._lifted, asyncio.get_running_loop().create_future()
        lifted.set_result(None)

    def end(self, why: str) -> None:
        for waited in (self.unlisted, self._lifted):
            if not waited.done():
                waited.set_exception(NotLeading(why))
                waited.exception()  # nobody may wait for it


def _drawn_nonce() -> str:
    return secrets.token_hex(16)


async def _wait_end(ended: asyncio.Event, limit_s: float) -> None:
    """Wait for the end of a thread, but not longer than the limit."""
    try:
        async with asyncio.timeout(limit_s):
            await ended.wait()
    except TimeoutError:
        return


async def _forget_mount(calls: StartCalls, mount: str) -> None:
    """Delete the record of a node's mount, in WITHDRAW_S at most; else the leader does it at the withdrawal."""
    if not mount:
        return
    try:
        async with asyncio.timeout(WITHDRAW_S):
            await call_in_own_thread(lambda: calls.forget_mount(mount), "end of the mount")
    except (ColumnarError, TimeoutError) as error:
        why = error.text if isinstance(error, ColumnarError) else "no answer"
        _log.warning("the record %s stays until the leader deletes it: %s", mount, why)
