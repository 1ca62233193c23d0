"""The role of a region server: regions with scanners and triggers, and the owner that handles master requests.

Owned by one event loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, cast

from columnar.config import StandaloneConfig
from columnar.coordination.lease_gate import LeaseGate
from columnar.flows.backpressure import LogBounds
from columnar.flows.hub import Hub
from columnar.limits import SCANNER_LEASE_S
from columnar.memory_plan import REGION_BYTES, MemoryPart, MemoryPlan
from columnar.operations.scanner_table import ScannerTable
from columnar.operations.table_operations import TableOperations
from columnar.regions.server import RegionServer
from columnar.roles.region_owner import RegionOwner
from columnar.roles.server_messages import ReaderLags, ServerMessages
from columnar.runtime.faults import surviving
from columnar.runtime.planned_step import PlannedStep
from columnar.storage.descriptors import stores_within
from columnar.storage.process_stores import StoresOfProcess
from columnar.storage.recovery import recovering
from columnar.triggers.trigger_manager import TriggerManager

if TYPE_CHECKING:
    from columnar.master.region_changes import RegionChanges
    from columnar.model.change_stream import StreamCounts
    from columnar.model.node_messages import JudgeVisitor, Verdict
    from columnar.model.region_messages import Peer
    from columnar.rights.rights_check import RightsHolder
    from columnar.streams.local_changes import LocalChanges
    from columnar.views.view_check_peer_handlers import ViewCheckPeerHandlers
    from columnar.wire.sockets import PrivateSocket

_log = logging.getLogger(__name__)

SCANNER_SWEEP_S: Final = 5.0
RECOVERY_PAUSE_S: Final = 0.03  # between the recoveries of two regions, each of which takes some 15 ms of the loop


class Serving:
    def __init__(
        self,
        config: StandaloneConfig,
        stores: StoresOfProcess,
        epoch: int | None,
        slot: int = 0,
        gate: LeaseGate | None = None,
    ) -> None:
        """Pass the epoch at which this process owns all regions, or None if it owns only regions that a master assigns.

        ``slot`` is this server's slot in the ids of its scanners.  ``gate``: no reply leaves the ports, and no call of
        a trigger or effect begins, unless it is open; None in a process without a lease.
        """
        self.gate = gate  # constant
        memory = stores.engine.plan
        self._config = config
        self._stores = stores
        self.server = RegionServer(
            stores.engine,
            stores.region_folders.root,
            stores.committer,
            stores.clock,
            open_regions=stores_within(min(config.memory.open_regions, memory.open_regions)),
            gathered_bytes=memory.gathered,
            epoch=epoch,
        )
        self.scanners = ScannerTable(time.monotonic, lease_s=SCANNER_LEASE_S, slot=slot, bound_bytes=memory.scanners)
        self.operations = TableOperations(self.server, self.scanners)
        hub = Hub(
            self.server,
            LogBounds(config.change_log.records, config.change_log.size_bytes),
            memory.tails_bytes,
            memory.at_hand_bytes,
        )
        self._followers = hub.listener
        self._peer_bytes: Callable[[], Mapping[str, int]] = dict  # of calls of other servers, if there are any
        self.rights = _rights_holder(config)  # constant
        self.trigger_manager = TriggerManager(self.server, hub, config.trigger_modules, self.operations, self.rights)
        self.trigger_manager.governor.gate = gate
        self.server.listener = hub.listener
        if self.rights is not None:
            self.rights.end_scanners = self.scanners.end_scanners_of
        hub.add_status_source(ReaderLags(self.server, hub, self.trigger_manager.system).flow_statuses)
        self.messages = ServerMessages(self.operations.access, self.trigger_manager)
        self.owner = RegionOwner(self.server, self.trigger_manager, config.region_bytes, self.rights)
        self._checks: ViewCheckPeerHandlers | None = None
        self._expiring = PlannedStep("expiry of scanners", self._sweep_scanners)
        self._recovery: asyncio.Task[None] | None = None

    def follow_master(self, master: Peer, changes: RegionChanges) -> None:
        """Send requests to ``master``, in the same process, from now on; ``changes`` are its splits and merges."""
        self.owner.follow_master(master)
        self.owner.changing.at = lambda step: changes.at(step)

    async def load(self) -> None:
        """Load the cursors of triggers.  Call before the first request; the master sends the triggers themselves."""
        await self.trigger_manager.load()

    def deliver(
        self,
        port: int,
        private: PrivateSocket | None,
        answered: Callable[[], int],
        has_waiting: Callable[[], bool],
    ) -> None:
        """Begin to deliver changes to triggers.  Call when the store listens on ``port``, so that triggers can write.

        ``answered`` and ``has_waiting`` are the arguments of ``Governor``, by which background work yields to requests.
        """
        self.trigger_manager.governor.answered = lambda: answered() - self._stream_replies()
        self.trigger_manager.governor.has_waiting = has_waiting
        self.trigger_manager.start(_reachable(self._config.host), port, private)

    def _stream_replies(self) -> int:
        """Return the number of replies to readers of change streams, which are background work."""
        changes = self._changes
        return 0 if changes is None else changes.replies

    def stream_counts(self) -> StreamCounts | None:
        """Return the counts of change streams; None if there was no request for one."""
        changes = self._changes
        return None if changes is None else changes.counts()

    def begin_background_work(self) -> None:
        """Start background work: clean-ups, expiry of scanners, and recovery of the server's log after a crash."""
        self.server.upkeep.start_sweeping()
        self._recovery = asyncio.ensure_future(self._recover_all())
        self._sweep_scanners()

    async def _recover_all(self) -> None:
        with surviving("what a crash left in the server's log"):  # a region also gets its part of the log when it opens
            await self._recover()

    async def _recover(self) -> None:
        """Replay the server log after a crash, also into regions that no client opens."""
        stores, logs = self._stores, self._stores.dead_logs
        unreplayed, epoch = len(logs.left), self.server.hosting.state.epoch
        if epoch is None:
            return  # a master assigns unreplayed logs
        for _ in recovering(stores.engine, logs, stores.region_folders, epoch):
            await asyncio.sleep(RECOVERY_PAUSE_S)
        if unreplayed:
            _log.info("%d regions are up to date with the server's log", unreplayed - len(logs.left))

    def _sweep_scanners(self) -> None:
        self.scanners.expire()
        self._expiring.after(SCANNER_SWEEP_S)

    def checks(self) -> ViewCheckPeerHandlers:
        """Return the handlers of this server for the requests of view checks."""
        if self._checks is None:
            from columnar.views.view_check_peer_handlers import ViewCheckPeerHandlers  # most stores have no views

            access, governor = self.operations.access, self.trigger_manager.governor
            self._checks = ViewCheckPeerHandlers(access, self.server, governor, self._definition)
        return self._checks

    def changes(self, regions_change: Callable[[], asyncio.Future[None]] | None) -> LocalChanges:
        """Return what change streams read of this server's regions; for ``regions_change`` see ``LocalChanges``."""
        found = self._changes
        if found is None:
            from columnar.streams.local_changes import LocalChanges  # most stores have no change streams

            governor, waits = self.trigger_manager.governor, self.operations.access.waits
            found = self._followers.readers = LocalChanges(self.server, governor, regions_change, waits)
        return found

    @property
    def _changes(self) -> LocalChanges | None:
        return cast("LocalChanges | None", self._followers.readers)

    def _definition(self, view: str) -> bytes:
        """Return the view's definition.  Raises ViewError."""
        return self.owner.views.views.known(view).definition

    async def judge_visitor(self, visitor: JudgeVisitor) -> Verdict:
        """Decide whether a request for a page is answered."""
        from columnar.rights.page_guard import MAY_SEE, VisitorJudge  # most stores have no users

        return MAY_SEE if self.rights is None else await VisitorJudge(self.rights).judge(visitor)

    def triggers_of(self, table: str) -> list[str]:
        return [one.name for one in self.trigger_manager.registrations() if one.table == table]

    @property
    def memory_plan(self) -> MemoryPlan:
        return self._stores.engine.plan

    def report_peers(self, peer_bytes: Callable[[], Mapping[str, int]]) -> None:
        """Take the function that returns the bytes of other servers' calls, by name of their part of the plan."""
        self._peer_bytes = peer_bytes

    def memory_parts(self, port_bytes: Mapping[str, int]) -> tuple[MemoryPart, ...]:
        """Return what is in use of each part of the memory plan, and its bound, in the plan's order."""
        used = {
            **self._stores.engine.used_bytes(),
            **port_bytes,
            "gathered": self.server.reply_memory.total_bytes,
            "scanners": self.scanners.size_bytes,
            "changes": self._followers.changes_bytes,
            "regions": self.server.open_count() * REGION_BYTES,
            **self._peer_bytes(),
        }
        bounds = self.memory_plan.bounds
        return tuple([MemoryPart(name, used[name], most) for name, most in bounds.items() if name in used])

    async def stop_triggers(self) -> None:
        """Stop the triggers.  Call before the port closes, which would make their calls fail."""
        self._expiring.cancel()
        if self._recovery is not None:
            self._recovery.cancel()
        await self.trigger_manager.close()

    async def close(self) -> None:
        """Sync and close every region."""
        await self.server.close()


def _rights_holder(config: StandaloneConfig) -> RightsHolder | None:
    if not config.rights.is_on:
        return None
    from columnar.rights.rights_check import RightsHolder  # most stores have no users
    from columnar.security.sign_in import SignIn

    return RightsHolder(config.rights.superusers, SignIn())


def _reachable(host: str) -> str:
    """Return the address at which a process of this machine reaches a server that listens on ``host``."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104 - compared, not bound
