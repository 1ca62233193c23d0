"""The cluster of a standalone process: one server with every region.

``SingleServer`` answers as a cluster does, and refuses requests that need another server, naming how to get one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from columnar.cluster.row_forms import RegionState
from columnar.errors import NotAllowed
from columnar.model.cluster_status_records import (
    OPEN,
    Change,
    ClusterStatus,
    DecisionStatus,
    RegionStatus,
    RowStatus,
    ServerStatus,
    TableStatus,
    TransitionStatus,
)
from columnar.model.region_info import RegionInfo
from columnar.operations.descriptions import Descriptions

ALONE: Final = "this store is one process, which serves everything: there is no other server"
NEXT_STEP: Final = "start it with --servers N, N over 1"
WHY: Final = "this store is one process: everything is here"


class SingleServer:
    def __init__(self, descriptions: Descriptions, server: Callable[[], ServerStatus]) -> None:
        """``server``: this process, without its number of regions."""
        self._descriptions = descriptions
        self._server = server

    # --- status ------------------------------------------------------------------------------------

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
        return [_region(state, server) for state in self._descriptions.states_of([served])]

    def server_regions(self, _server: str) -> list[RegionStatus]:
        server = self._server()
        return [_region(state, server) for state in self._descriptions.states_of(self._descriptions.all())]

    def row(self, table: str, row: bytes) -> RowStatus:
        served = self._descriptions.known(table.encode())
        at = bisect_right(served.regions, row, key=lambda info: info.start) - 1
        state = self._descriptions.states_of([served])[at]
        closed = () if state.is_open else ("its store is closed: the next request opens it, which takes some 12 ms",)
        fault = self._descriptions.write_fault(state.info)
        faults = (f"it cannot be written: {fault}",) if fault else ()
        return RowStatus(_region(state, self._server()), self.cluster_status().servers[0], (*faults, *closed), ())

    def transitions(self) -> list[TransitionStatus]:
        return []

    def decisions(self) -> list[DecisionStatus]:
        return []

    # --- what needs another server -----------------------------------------------------------------

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

    async def restart(self, _server: str, _dry_run: bool, _came_by: str) -> Change:
        raise NotAllowed(f"{ALONE} to serve meanwhile; stop it with SIGTERM and start it again, or {NEXT_STEP}")

    async def stop(self, _server: str, _dry_run: bool, _came_by: str) -> Change:
        raise NotAllowed(f"{ALONE}; SIGTERM stops it")

    async def fence(self, _server: str, _dry_run: bool) -> Change:
        raise _alone("there is nobody to fence")


def _alone(what: str) -> NotAllowed:
    return NotAllowed(f"{what}: {ALONE}; {NEXT_STEP}")


def _region(state: RegionState, server: ServerStatus) -> RegionStatus:
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
