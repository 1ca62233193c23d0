"""Our methods on a cluster: states of servers and regions with the reasons, and instructions of operators.

In a cluster ``master.cluster_control`` serves them, in a standalone process ``SingleServer``.  A server of a cluster
forwards these calls to its master.
"""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from columnar.cluster.row_forms import RegionState
from columnar.errors import IllegalArgument, NotAllowed
from columnar.model.cell import checked_row
from columnar.model.cluster_status_records import (
    OPEN,
    Change,
    ClusterStatus,
    DecisionStatus,
    MaintenanceStatus,
    PlannedMove,
    RegionStatus,
    RowStatus,
    ServerStatus,
    TableStatus,
    TransitionStatus,
    split_address,
)
from columnar.model.node_messages import ProcessLevels
from columnar.model.region_info import RegionInfo
from columnar.operations.descriptions import Descriptions
from columnar.runtime.log_lines import change_levels
from columnar.runtime.log_settings import parse_changes
from columnar.wire.idl import columnar

_UPPER: Final = re.compile("[A-Z]")
_NONCE: Final = re.compile("[0-9a-f]{32}")
LONGEST_WAIT_S: Final = 3_600.0  # of one call for a drain


class ClusterReports(Protocol):
    def cluster_status(self) -> ClusterStatus: ...

    def regions(self, table: str) -> Sequence[RegionStatus]:
        """Return the status of the table's regions, in the order of their keys."""

    def locate_row(self, table: str, row: bytes) -> RowStatus: ...

    def transitions(self) -> Sequence[TransitionStatus]: ...

    def decisions(self) -> Sequence[DecisionStatus]: ...


class ProcessControl(Protocol):
    async def restart(self, server: str, dry_run: bool, came_by: str) -> Change:
        """Restart the server; ``came_by`` is the requesting client, as ``CallContext.peer`` names it."""

    async def stop(self, server: str, dry_run: bool, came_by: str) -> Change: ...

    async def fence(self, server: str, dry_run: bool) -> Change: ...

    async def change_log_levels(self, changes: tuple[str, ...]) -> tuple[ProcessLevels, ...]:
        """Return the levels in force.  Raises ValueError for too many."""


class MaintenanceControl(Protocol):
    async def read_lock(self) -> MaintenanceStatus: ...

    async def acquire_lock(self, nonce: str, holder: str, what: str, *, is_renewal: bool) -> MaintenanceStatus: ...

    async def release_lock(self, nonce: str) -> MaintenanceStatus: ...


class NodeDrains(Protocol):
    async def drain_node(self, name: str, on: bool, until_restart: bool, wait_s: float, dry_run: bool) -> Change: ...


class Cluster(Protocol):
    @property
    def node_drains(self) -> NodeDrains: ...

    @property
    def maintenance(self) -> MaintenanceControl: ...

    @property
    def reports(self) -> ClusterReports: ...

    @property
    def processes(self) -> ProcessControl: ...

    async def move(self, info: RegionInfo, server: str, dry_run: bool) -> Change: ...

    async def assign(self, info: RegionInfo, dry_run: bool) -> Change: ...

    async def unassign(self, info: RegionInfo, dry_run: bool) -> Change: ...

    async def drain(self, server: str, on: bool, wait_s: float, dry_run: bool) -> Change: ...

    async def balance(self, dry_run: bool) -> Change: ...

    async def switch(self, what: str, on: bool, dry_run: bool) -> Change: ...


class ClusterMethods:
    def __init__(self, descriptions: Descriptions, cluster: Cluster, *, may_end_servers: bool) -> None:
        """Pass ``may_end_servers`` if the caller uses the private socket or has presented a certificate."""
        self._descriptions = descriptions
        self._cluster = cluster
        self._may_end_servers = may_end_servers

    # --- status ------------------------------------------------------------------------------------

    def columnarServers(self, _ctx: Any) -> Any:
        look = self._cluster.reports.cluster_status()
        servers = [_server(one) for one in look.servers]
        return _struct(
            columnar.ClusterStatus, look, servers=servers, balancer=look.is_balancing, autoSplit=look.is_splitting
        )

    def columnarLocations(self, _ctx: Any, table: bytes) -> list[Any]:
        regions = self._cluster.reports.regions
        return [_region(one) for one in regions(self._descriptions.known(table or b"").schema.name)]

    def columnarLocate(self, _ctx: Any, table: bytes, row: bytes) -> Any:
        locate = self._cluster.reports.locate_row
        served = self._descriptions.known(table or b"")
        look = locate(served.schema.name, checked_row(row))
        if not served.enabled:
            said = f"the table is disabled; 'columnar enable {served.schema.name}' opens it"
            look = replace(look, remarks=(said, *look.remarks))
        return columnar.RowLocation(
            region=_region(look.region),
            server=_server(look.server) if look.server is not None else None,
            remarks=list(look.remarks),
            decisions=[_decision(one) for one in look.decisions],
        )

    def columnarTransitions(self, _ctx: Any) -> list[Any]:
        return [
            _struct(columnar.RegionTransition, one, **_names(one.info), **_ends(one))
            for one in self._cluster.reports.transitions()
        ]

    def columnarDecisions(self, _ctx: Any) -> list[Any]:
        return [_decision(one) for one in self._cluster.reports.decisions()]

    # --- regions -----------------------------------------------------------------------------------

    async def columnarMove(self, _ctx: Any, region: bytes, server: str, dry_run: bool) -> Any:
        move = self._cluster.move
        return await _changed(move(self._descriptions.given_region(region), server or "", bool(dry_run)))

    async def columnarAssign(self, _ctx: Any, region: bytes, dry_run: bool) -> Any:
        assign = self._cluster.assign
        return await _changed(assign(self._descriptions.given_region(region), bool(dry_run)))

    async def columnarUnassign(self, _ctx: Any, region: bytes, dry_run: bool) -> Any:
        unassign = self._cluster.unassign
        info = self._descriptions.given_region(region)
        if self._descriptions.known(info.table.encode()).schema.is_system:
            raise NotAllowed(f"{info.table} is the system's own: it stays open")
        return await _changed(unassign(info, bool(dry_run)))

    # --- the whole ---------------------------------------------------------------------------------

    async def columnarDrain(self, _ctx: Any, server: str, on: bool, wait_ms: int, dry_run: bool) -> Any:
        wait_s = min(max(0, wait_ms or 0) / 1_000, LONGEST_WAIT_S)
        return await _changed(self._cluster.drain(_named(server), bool(on), wait_s, bool(dry_run)))

    async def columnarDrainNode(
        self, _ctx: Any, node: str, on: bool, until_restart: bool, wait_ms: int, dry_run: bool
    ) -> Any:
        drain = self._cluster.node_drains.drain_node
        if not node:
            raise IllegalArgument("say which node, by its name as 'columnar nodes' shows it")
        wait_s = min(max(0, wait_ms or 0) / 1_000, LONGEST_WAIT_S)
        return await _changed(drain(node, bool(on), bool(until_restart), wait_s, bool(dry_run)))

    async def columnarBalance(self, _ctx: Any, dry_run: bool) -> Any:
        return await _changed(self._cluster.balance(bool(dry_run)))

    async def columnarSwitch(self, _ctx: Any, what: str, on: bool, dry_run: bool) -> Any:
        return await _changed(self._cluster.switch(what or "", bool(on), bool(dry_run)))

    # --- maintenance -------------------------------------------------------------------------------

    async def columnarMaintenance(self, _ctx: Any) -> Any:
        return _maintenance(await self._cluster.maintenance.read_lock())

    async def columnarAcquireMaintenance(self, _ctx: Any, nonce: str, holder: str, what: str, renews: bool) -> Any:
        maintenance = self._cluster.maintenance
        if not _NONCE.fullmatch(nonce or ""):
            raise IllegalArgument("the nonce of a holder has 32 hexadecimal digits")
        return _maintenance(await maintenance.acquire_lock(nonce, holder or "", what or "", is_renewal=bool(renews)))

    async def columnarReleaseMaintenance(self, _ctx: Any, nonce: str) -> Any:
        return _maintenance(await self._cluster.maintenance.release_lock(nonce or ""))

    # --- processes ---------------------------------------------------------------------------------

    async def columnarRestart(self, ctx: Any, server: str, dry_run: bool) -> Any:
        restart = self._cluster.processes.restart
        self._check_may_end("restart")
        return await _changed(restart(_named(server), bool(dry_run), ctx.peer))

    async def columnarStop(self, ctx: Any, server: str, dry_run: bool) -> Any:
        stop = self._cluster.processes.stop
        self._check_may_end("stop")
        return await _changed(stop(_named(server), bool(dry_run), ctx.peer))

    async def columnarFence(self, _ctx: Any, server: str, dry_run: bool) -> Any:
        fence = self._cluster.processes.fence
        self._check_may_end("fence")
        return await _changed(fence(_named(server), bool(dry_run)))

    async def columnarLogLevels(self, _ctx: Any, changes: list[str]) -> dict[str, str]:
        given = tuple(changes or ())
        try:
            parse_changes(given, {})  # before any process changes its own
            found = await asyncio.shield(asyncio.ensure_future(self._cluster.processes.change_log_levels(given)))
        except ValueError as error:
            raise IllegalArgument(str(error)) from None
        return {one.process: one.levels for one in found}

    def _check_may_end(self, what: str) -> None:
        if not self._may_end_servers:
            raise NotAllowed(
                f"{what} ends a server's process, which not everybody who reaches this port may do: use the private "
                "socket of the store, on its machine and as its user (--data DIR), or a port that asks for client "
                "certificates (--tls-client-ca at its start)"
            )


async def _changed(work: Coroutine[Any, Any, Change]) -> Any:
    """Complete the change even if the caller disconnects, because half a restart would leave a server stopped."""
    change = await asyncio.shield(asyncio.ensure_future(work))
    moves = [_struct(columnar.RegionMove, one, **_names(one.info), **_ends(one)) for one in change.moves]
    return _struct(
        columnar.ClusterChange,
        change,
        moves=moves,
        done=change.is_done,
        regionsLeft=change.left,
        resigning=change.is_resigning,
    )


def _named(server: str) -> str:
    if not server:
        raise IllegalArgument("say which server, by its name as 'columnar servers' shows it")
    return server


def _maintenance(status: MaintenanceStatus) -> Any:
    return _struct(columnar.MaintenanceStatus, status, own=status.is_own)


def _server(status: ServerStatus) -> Any:
    return _struct(columnar.ServerStatus, status, drained=status.is_drained)


def _region(status: RegionStatus) -> Any:
    info, (host, port) = status.info, split_address(status.address)
    keys = {"startKey": info.start, "endKey": info.end, "regionId": info.region_id}
    return _struct(
        columnar.RegionLocation, status, **_names(info), **keys, host=host, port=port, comingFrom=status.source
    )


def _decision(status: DecisionStatus) -> Any:
    return _struct(columnar.ClusterDecision, status, atMs=status.at_ms or None)


def _names(info: RegionInfo) -> dict[str, Any]:
    return {"name": info.name, "encodedName": info.encoded.encode(), "table": info.table.encode()}


def _ends(status: TransitionStatus | PlannedMove) -> dict[str, Any]:
    return {"fromServer": status.source, "toServer": status.target}


def _struct(kind: Any, record: Any, **given: Any) -> Any:
    """Make a struct of ``kind`` from ``given`` and the record's fields, which have the same names in our spelling."""
    for _, name, *_ in kind.thrift_spec.values():
        if name not in given:
            value = getattr(record, _UPPER.sub(_lower, name).replace("per_second", "per_s"))
            given[name] = list(value) if isinstance(value, tuple) else value
    return kind(**given)


def _lower(letter: re.Match[str]) -> str:
    return "_" + letter[0].lower()


ALONE: Final = "this store is one process, which serves everything: there is no other server"
NEXT_STEP: Final = "start it with --servers N, N over 1"
WHY: Final = "this store is one process: everything is here"


class SingleServer:
    """The reports of a standalone process about itself: one server that owns every region."""

    def __init__(self, descriptions: Descriptions, server: Callable[[], ServerStatus]) -> None:
        """Pass ``server``, which returns the status of this process without its number of regions."""
        self._descriptions = descriptions
        self._server = server

    def cluster_status(self) -> ClusterStatus:
        regions = sum(len(served.regions) for served in self._descriptions.all())
        faults, server = self._descriptions.faults(), replace(self._server(), regions=regions)
        server = replace(server, notes=(*server.notes, *faults))
        return ClusterStatus((server,), regions, unassigned=0, transitions=0, remarks=faults, faults=faults)

    def tables(self) -> list[TableStatus]:
        found = []
        for served in self._descriptions.all():
            size_bytes = sum(state.size_bytes for state in self._descriptions.states_of([served]))
            found.append(TableStatus(served.schema.name, len(served.regions), 1, 0.0, size_bytes))
        return found

    def regions(self, table: str) -> list[RegionStatus]:
        served = self._descriptions.known(table.encode())
        server = self._server()
        return [_own_region(state, server) for state in self._descriptions.states_of([served])]

    def server_regions(self, _server: str) -> list[RegionStatus]:
        server = self._server()
        return [_own_region(state, server) for state in self._descriptions.states_of(self._descriptions.all())]

    def locate_row(self, table: str, row: bytes) -> RowStatus:
        served = self._descriptions.known(table.encode())
        at = bisect_right(served.regions, row, key=lambda info: info.start) - 1
        state = self._descriptions.states_of([served])[at]
        closed = () if state.is_open else ("its store is closed: the next request opens it, which takes some 12 ms",)
        fault = self._descriptions.write_fault(state.info)
        faults = (f"it cannot be written: {fault}",) if fault else ()
        return RowStatus(_own_region(state, self._server()), self.cluster_status().servers[0], (*faults, *closed), ())

    def transitions(self) -> list[TransitionStatus]:
        return []

    def decisions(self) -> list[DecisionStatus]:
        return []


class SingleServerControl:
    """The control of a standalone process, which refuses requests that need a second server and says how to get one."""

    def __init__(self, reports: SingleServer, on_levels: Callable[[], None] = lambda: None) -> None:
        """``on_levels`` is called when levels of loggers have changed."""
        self.reports = reports
        self.processes = SingleProcess(on_levels)
        self.maintenance = SingleMaintenance()
        self.node_drains = SingleNode()

    async def move(self, info: RegionInfo, _server: str, _dry_run: bool) -> Change:
        raise _alone(f"region {info.encoded} cannot move")

    async def assign(self, info: RegionInfo, dry_run: bool) -> Change:
        return Change(f"region {info.encoded} is open already: {WHY}", is_done=not dry_run)

    async def unassign(self, info: RegionInfo, _dry_run: bool) -> Change:
        raise NotAllowed(
            f"region {info.encoded} stays open: one process closes no single region; 'columnar disable {info.table}' "
            "turns requests for its table away"
        )

    async def drain(self, server: str, _on: bool, _wait_s: float, _dry_run: bool) -> Change:
        raise _alone(f"{server} cannot be drained")

    async def balance(self, _dry_run: bool) -> Change:
        raise _alone("nothing is to be balanced")

    async def switch(self, what: str, _on: bool, _dry_run: bool) -> Change:
        if what == "auto-split":
            raise NotAllowed(
                "one process always splits what grows large; the table's MAX_FILESIZE says how large "
                "('columnar alter TABLE --set MAX_FILESIZE=100g')"
            )
        raise _alone("there is no balancer")


class SingleProcess:
    """The process control of a standalone process, which cannot be replaced by another server."""

    def __init__(self, on_levels: Callable[[], None]) -> None:
        self._on_levels = on_levels

    async def change_log_levels(self, changes: tuple[str, ...]) -> tuple[ProcessLevels, ...]:
        levels = change_levels(changes)
        self._on_levels()
        return (ProcessLevels("standalone", levels),)

    async def restart(self, _server: str, _dry_run: bool, _came_by: str) -> Change:
        raise NotAllowed(f"{ALONE} to serve meanwhile; stop it with SIGTERM and start it again, or {NEXT_STEP}")

    async def stop(self, _server: str, _dry_run: bool, _came_by: str) -> Change:
        raise NotAllowed(f"{ALONE}; SIGTERM stops it")

    async def fence(self, _server: str, _dry_run: bool) -> Change:
        raise _alone("there is nobody to fence")


class SingleNode:
    """The drains of a standalone process, which has no other node."""

    async def drain_node(self, name: str, _on: bool, _until_restart: bool, _wait_s: float, _dry_run: bool) -> Change:
        raise _alone(f"{name} cannot be drained")


class SingleMaintenance:
    """The maintenance lock of a standalone process: it keeps nobody apart, because every maintenance is refused."""

    async def read_lock(self) -> MaintenanceStatus:
        return MaintenanceStatus("", "", 0, 0)

    async def acquire_lock(self, nonce: str, holder: str, what: str, *, is_renewal: bool) -> MaintenanceStatus:
        return MaintenanceStatus(holder, what, 0, 0, is_own=True)

    async def release_lock(self, nonce: str) -> MaintenanceStatus:
        return MaintenanceStatus("", "", 0, 0)


def _alone(what: str) -> NotAllowed:
    return NotAllowed(f"{what}: {ALONE}; {NEXT_STEP}")


def _own_region(state: RegionState, server: ServerStatus) -> RegionStatus:
    return RegionStatus(
        info=state.info,
        state=OPEN,
        state_ms=server.state_ms,
        server=server.name,
        address=server.address,
        home=server.name,
        why=WHY,
        size_bytes=state.size_bytes,
    )
