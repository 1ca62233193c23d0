"""The leadership of a node beside others, by the events of its coordination (``coordination.api``).

    elected    the catalogue is taken over and read; each server that owns regions has linked, or ended; regions get
               owners.  If that fails, it is tried again while the leadership lasts
    deposed    the catalogue is closed; servers go on without a leader until they follow the next one

The leader learns of servers by the nodes' records (``member_feed``), and of those of its own node directly.

Invariant: after each write of the catalogue the lease is checked (``Term``), and links send nothing without it.  So
whatever another process hears of this leader follows from a write that the next leader has read.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Final

from columnar.clock import system_ms
from columnar.cluster.peers import LinkTerms
from columnar.coordination.api import Coordination
from columnar.coordination.lease_gate import LeaseGate
from columnar.coordination.maintenance_lock import MaintenanceLock
from columnar.coordination.node_record import MOUNTS, NODES, LeaderRecord, NodeRecord
from columnar.errors import ColumnarError, HostError, OutcomeUnknown
from columnar.memory_plan import CATALOGUE
from columnar.model.owner import Incarnation
from columnar.roles.fence_commands import StorageFence
from columnar.roles.leading_node import LeaderTerms, LeadingNode
from columnar.roles.member_feed import MemberFeed
from columnar.roles.membership import NodeParts
from columnar.roles.meta_region import CatalogueTerms
from columnar.roles.storage_fences import StorageFences
from columnar.runtime.faults import FAULTS
from columnar.runtime.slow_work import report_if_slow
from columnar.storage.data_folder import META
from columnar.storage.process_stores import LeaderStores
from columnar.storage.rocks import RocksEngine
from columnar.storage.warming import warm

_log = logging.getLogger(__name__)

LOOP: Final = "the leader of the cluster"
LEAD_AGAIN_S: Final = 2.0  # after the catalogue could not be opened
LEAD_TRIES: Final = 3  # then another node leads, whose way to the folder may be whole
SLOW_S: Final = 1.5  # a longer wait for the file system is named to people
DELAY: Final = (
    "this node leads, and waits for the catalogue's files, or the logs of servers that ended: the file system may hold "
    "them back (CephFS for 60 s, unless the client of the node that ended is evicted: --fence-command)"
)
HELLO_S: Final = 10.0  # for a server that lived before a new leader to link with it


class Leadership:
    """The ``CoordinationEvents`` of a node."""

    def __init__(
        self,
        parts: NodeParts,
        coordination: Coordination,
        own: Incarnation,
        links: LinkTerms,
        follow: Callable[[LeaderRecord | None], None],
        on_change: Callable[[], None],
        fence: StorageFence | None = None,
    ) -> None:
        """Pass the terms of the node's links, to which a leader adds the gate of its lease.

        ``follow`` is called with each leader, or None if it resigned; ``on_change`` is called when this node serves as
        a leader.  ``fence`` shuts nodes that ended by time out of the data folder.
        """
        self._parts = parts
        self._coordination = coordination
        self.own = own
        self._follow = follow
        self._on_change = on_change
        self.leading: LeadingNode | None = None  # if this node leads, and its catalogue is open
        self.silence = ""  # why the coordination service does not answer, for people
        self._links = links
        self._fence = fence
        self._term = self._make_term()
        self._members = MemberFeed(parts, coordination, own)
        self._task: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()  # also of earlier leaderships, until they are closed
        self._is_closed = False

    def delay(self) -> str:
        """Return a sentence on what this node waits for before it leads, otherwise an empty text."""
        return self._term.delay

    # --- who lives -----------------------------------------------------------------------------------

    def nodes_changed(self, nodes: Mapping[str, NodeRecord]) -> None:
        self._members.nodes_changed(nodes, self.leading)

    def node_ended(self, key: str, record: NodeRecord, *, is_by_time: bool) -> None:
        node = Incarnation(record.node, record.incarnation)
        if is_by_time:
            self._term.fences.begin_fence(node)  # first: the catalogue may be held back by the same client
        else:
            self._term.fences.forget(node)
        self._members.node_ended(node, record, self.leading, is_by_time=is_by_time)

    def elected(self, epoch: int) -> None:
        self._term.end()
        self._term = self._make_term()
        if self._is_closed:
            return  # the node withdraws
        self._members.begin_term()
        self._task = asyncio.ensure_future(self._lead(epoch, frozenset(self._tasks)))
        self._tasks.add(self._task)
        self._task.add_done_callback(self._tasks.discard)

    def deposed(self, why: str) -> None:
        _log.warning("this node does not lead any more: %s", why)
        self.leading = None  # at once: what is reported from now on is for the next leadership
        self._term.end()
        if self._task is not None:
            self._task.cancel()

    def leader_changed(self, leader: LeaderRecord | None) -> None:
        self._follow(leader)

    def lease_lost(self, why: str) -> None:
        self._parts.end_now(why)

    def service_silent(self, since_ms: int, why: str) -> None:
        self.silence = f"the coordination service does not answer: {why}"
        _log.error("%s. Servers withhold answers while the lease of this node is over", self.silence)

    def service_answers(self, silent_ms: int) -> None:
        self.silence = ""
        _log.warning("the coordination service answers again, after %.1f s", silent_ms / 1_000)

    def _make_term(self) -> Term:
        return Term(self._coordination.leads, StorageFences(self._fence, self._coordination.start_calls))

    # --- leading -------------------------------------------------------------------------------------

    async def _lead(self, epoch: int, before: frozenset[asyncio.Task[None]]) -> None:
        """Lead until cancelled.  ``before`` end first: all earlier leaderships of this process."""
        if before:
            await asyncio.wait(before)
        for tries in itertools.count(1):
            try:
                await self._lead_once(epoch)
            except ColumnarError as error:
                _log.error("this node leads, and cannot read the catalogue: %s; trying again", error.text)
            except Exception as fault:  # noqa: BLE001 - without a leader no region gets an owner
                FAULTS.met(LOOP, fault)
            if tries % LEAD_TRIES == 0:
                _log.error("this node could not begin to lead %d times: it resigns, so that another one may", tries)
                self._coordination.step_down()
            await asyncio.sleep(LEAD_AGAIN_S)

    async def _lead_once(self, epoch: int) -> None:
        """Lead until cancelled.  Raises what keeps the leader from starting."""
        parts, coordination, term = self._parts, self._coordination, self._term
        number = await asyncio.to_thread(coordination.next_number)
        async with AsyncExitStack() as undo:
            stores = LeaderStores(parts.folder, self.own.name, number, RocksEngine.planned(CATALOGUE), self._cluster_ms)
            undo.callback(term.note_delay, "")
            taking = asyncio.ensure_future(self._take_catalogue_over(stores, epoch))
            undo.push_async_callback(_abandon, taking)
            # Meanwhile, because a file system may hold the catalogue back until the last leader is fenced.
            records = await coordination.wait_unlisted_over()
            await term.fences.begin_all(key.replace(NODES, MOUNTS, 1) for key in records)
            await taking
            stores.begin_commits()
            undo.callback(stores.close)
            catalogue = CatalogueTerms(parts.watched_folder.until_it_answers, term.until_leads, epoch)
            links = replace(self._links, gate=term.gate)
            terms = LeaderTerms(
                catalogue,
                epoch,
                links,
                coordination.lift_epoch,
                self._fence_node,
                self._synced_lengths,
                term.fences,
                successors=lambda: _list_successors(coordination.nodes, self.own),
                step_down=coordination.step_down,
                maintenance=MaintenanceLock(coordination.start_calls.call_store),
                is_leased=True,
            )
            leading = LeadingNode(parts.current_config(), stores, parts.watched_folder, terms)
            starting = leading.start(parts.own, self.own, self._members.find_living)
            await report_if_slow(starting, SLOW_S, term.note_delay)
            term.note_delay("")
            undo.push_async_callback(leading.close)
            undo.callback(self._forget_leading)
            await asyncio.to_thread(_remove_older, stores, epoch)
            members = self._members.members_of(records)
            self._members.take_members(leading, members)
            self.leading = leading  # in the same step: events from now on go there
            _log.info("node %s leads, at epoch %d", self.own, leading.epoch)
            owners = leading.owner_servers()
            await self._greet(leading, owners)
            leading.host.events.spawn(self._greet(leading, members.keys() - owners))
            await leading.begin_assignment(members.keys())
            self._members.note_assigned()
            self._on_change()
            await asyncio.get_running_loop().create_future()  # until cancelled

    async def _take_catalogue_over(self, stores: LeaderStores, epoch: int) -> None:
        """Take the catalogue's folder over, read its files once, and open the files of ``stores``."""
        folders = stores.region_folders

        def take() -> None:
            folders.take_over(META, epoch, epoch)
            warm(folders.catalogue(epoch))

        term = self._term
        if term.taking is not None:
            # The thread of a start that failed may still make this generation, which one at a time may do.
            await report_if_slow(asyncio.wait([term.taking]), SLOW_S, term.note_delay)
        term.taking = taking = asyncio.get_running_loop().run_in_executor(None, take)
        taking.add_done_callback(_take_exception)
        await report_if_slow(asyncio.wait([taking]), SLOW_S, term.note_delay)  # a cancellation leaves the thread
        taking.result()
        opening = asyncio.get_running_loop().run_in_executor(None, stores.open_files)
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(lambda done: None if done.exception() else stores.close_files())
            raise

    def _forget_leading(self) -> None:
        self.leading = None

    async def _greet(self, leading: LeadingNode, servers: Collection[Incarnation]) -> None:
        """Wait until each of the servers, which lived before this leader, is up; fence those that do not link."""
        with suppress(TimeoutError):
            await asyncio.wait_for(leading.greeted(servers), HELLO_S)
        for server in servers:
            if not leading.links.is_linked(server) and not leading.host.has_ended(server):
                leading.unlinked(server, f"it has not linked with the new leader within {HELLO_S:g} s")
        await leading.greeted(servers)

    def _cluster_ms(self) -> int:
        """Return the time by the fastest clock of the cluster's machines."""
        return max(system_ms(), self._parts.lease_page.read_cluster_ms())

    def _synced_lengths(self, server: str) -> Mapping[int, int]:
        """Return what the server had synced; for any thread.  This node's own pages know it best."""
        return self._parts.pages.synced_lengths(server) or self._coordination.synced_lengths(server)

    def _fence_node(self, node: Incarnation) -> None:
        self._coordination.request_fence(NodeRecord("", node.name, node.number, "").key)

    # --- the end -------------------------------------------------------------------------------------

    async def begin_stop(self) -> None:
        leading = self.leading
        if leading is not None and not leading.nodes.nodes():
            await leading.stop_changes()  # nobody else would take this node's regions

    async def close(self) -> None:
        self._is_closed = True
        if self._task is not None:
            if self.leading is not None:
                await self.leading.stop_changes()
            self._task.cancel()
        self._term.fences.stop()
        if self._tasks:
            await asyncio.wait(self._tasks)


async def _abandon(work: asyncio.Future[None]) -> None:
    """End the work, whose result nobody needs, without waiting for its thread."""
    work.cancel()
    await asyncio.wait([work])
    _take_exception(work)


def _take_exception(work: asyncio.Future[None]) -> None:
    """Mark the exception as retrieved: perhaps nobody waits for the work any more."""
    if not work.cancelled():
        work.exception()


def _list_successors(nodes: Mapping[str, NodeRecord], own: Incarnation) -> tuple[str, ...]:
    """Return the other nodes that may lead."""
    records = (one for one in nodes.values() if not (one.never_leads or one.withdrawn))
    found = sorted(Incarnation(one.node, one.incarnation) for one in records)
    return tuple(str(node) for node in found if node != own)


def _remove_older(stores: LeaderStores, generation: int) -> None:
    """Remove the catalogue's folders of earlier leaders.  Blocks."""
    try:
        stores.region_folders.remove_older(META, generation)
    except HostError as error:
        _log.warning("earlier folders of the catalogue stay until the next leader: %s", error.text)


class Term:
    """The leadership of this node from an election until the node is deposed."""

    def __init__(self, leads: Callable[[], bool], fences: StorageFences) -> None:
        self._leads = leads
        self.fences = fences
        self.delay = ""  # what a new leader waits for, for people
        self.taking: asyncio.Future[None] | None = None  # the last takeover of the catalogue, in a thread
        self.gate = LeaseGate(self._is_open)  # of the term's links; a later term of the node does not open it again
        self._is_over = False
        self._waiting: set[_AtGate] = set()

    def _is_open(self) -> bool:
        return not self._is_over and self._leads()

    async def until_leads(self) -> None:
        """Return when this node leads, as checked now, after all that was done before.

        Raises OutcomeUnknown if the node was deposed: another leader may have read the catalogue before.
        """
        while not self._is_over and not self.gate.is_open():
            waiting = _AtGate()
            self._waiting.add(waiting)
            self.gate.wait(waiting)
            try:
                await waiting.settled
            finally:
                self._waiting.discard(waiting)
                self.gate.forget(waiting)
        if self._is_over:
            raise OutcomeUnknown("another node leads now, which may not know this change; read before you repeat")

    def note_delay(self, text: str = DELAY) -> None:
        """Note what the leader waits for; an empty text: it waits no more."""
        self.delay = text
        if text:
            _log.warning("%s", text)

    def end(self) -> None:
        self._is_over = True
        self.fences.stop()
        for waiting in self._waiting:
            waiting.gate_opened()


class _AtGate:
    """Waits at the gate of the leader's lease."""

    def __init__(self) -> None:
        self.settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def gate_opened(self) -> None:
        if not self.settled.done():
            self.settled.set_result(None)

    def gate_expired(self) -> None:
        self.gate_opened()  # its caller asks again
