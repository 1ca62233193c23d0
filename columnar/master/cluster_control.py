"""The control of a cluster by operators, at its master: reports, and requests that are answered when they are done.

Each request is checked before anything is done, and its answer has a sentence for people; ``dry_run`` only answers.  A
request that is carried out returns when the cluster is in the requested state.

``process_control`` has the requests that end processes.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from columnar.clock import system_ms
from columnar.coordination.maintenance_lock import Acquire, MaintenanceLock, MaintenanceState, Release
from columnar.errors import CallerError, NotAllowed
from columnar.master import cluster_status_builder as builder
from columnar.master.instructions import (
    DECISIONS_KEPT,
    AssignRegion,
    BalanceNow,
    DrainServer,
    MoveRegion,
    Plan,
    Prefer,
    Request,
    SwitchSetting,
    UnassignRegion,
)
from columnar.master.node_drains import NodeDrains
from columnar.master.node_fences import NodeFences
from columnar.master.placement_records import Phase, Place
from columnar.master.plan_draft import Draft
from columnar.master.planner import plan
from columnar.master.process_control import ProcessControl, Servers, check_others, check_request, wait_for
from columnar.model.cluster_status_records import (
    Change,
    ClusterStatus,
    DecisionStatus,
    MaintenanceStatus,
    PlannedMove,
    RegionStatus,
    RowStatus,
    TableStatus,
    TransitionStatus,
)
from columnar.model.region_info import RegionInfo, counted

_SWITCHES: Final[Mapping[str, Literal["balancer", "auto_split"]]] = {
    "balancer": "balancer",
    "auto-split": "auto_split",
}


HOLDER_CHARACTERS: Final = 200


class _Evenly:
    """A constant in place of chance: two dry runs show the same plan."""

    def random(self) -> float:
        return 0.5


class ClusterReports:
    def __init__(
        self, servers: Servers, notes_on: Callable[[str], Iterable[str]], wall_ms: Callable[[], int] | None = None
    ) -> None:
        """``notes_on``: returns further notes on a server, by its name.

        ``wall_ms``: returns milliseconds since the Unix epoch; None if the time of day is not known.
        """
        self._servers = servers
        self._state = servers.state
        self._notes_on = notes_on
        self._wall_ms = wall_ms
        self._earlier: Sequence[DecisionStatus] = ()  # decisions of masters before this one, newest first
        self._taken = 0  # decisions of this master that ``take_decisions`` has returned

    def cluster_status(self) -> ClusterStatus:
        found = builder.build_cluster_status(self._state, self._servers.facts, self._servers.now_ms())
        servers = (replace(one, notes=(*one.notes, *self._notes_on(one.name))) for one in found.servers)
        remarks = (*self._servers.remarks(), *found.remarks)
        nodes, living = self._servers.nodes()
        return replace(found, servers=tuple(servers), remarks=remarks, nodes=nodes, living_nodes=living)

    def tables(self) -> list[TableStatus]:
        return builder.list_table_statuses(self._state)

    def regions(self, table: str) -> list[RegionStatus]:
        return builder.list_region_statuses(self._state, table, self._servers.facts, self._servers.now_ms())

    def server_regions(self, server: str) -> list[RegionStatus]:
        return builder.server_regions(self._state, server, self._servers.facts, self._servers.now_ms())

    def locate_row(self, table: str, row: bytes) -> RowStatus:
        return builder.build_row_status(self._state, table, row, self._servers.facts, self._servers.now_ms())

    def transitions(self) -> list[TransitionStatus]:
        return builder.list_transition_statuses(self._state, self._servers.now_ms())

    def decisions(self) -> list[DecisionStatus]:
        """Return the last DECISIONS_KEPT decisions, newest first, including decisions of earlier masters."""
        wall_ms = self._wall_ms() if self._wall_ms is not None else 0
        own = builder.list_decision_statuses(self._state, self._servers.now_ms())
        if self._wall_ms is None:
            return own
        timed = [replace(one, at_ms=wall_ms - one.ago_ms) for one in own]
        earlier = (replace(one, ago_ms=max(0, wall_ms - one.at_ms)) for one in self._earlier)
        return [*timed, *earlier][:DECISIONS_KEPT]

    def follow_decisions(self, earlier: Iterable[DecisionStatus]) -> None:
        """Set the decisions of earlier masters.  ``earlier``: oldest first."""
        self._earlier = list(earlier)[::-1]

    def take_decisions(self) -> list[DecisionStatus]:
        """Return the decisions since the last call, oldest first; at most DECISIONS_KEPT."""
        fresh = min(self._state.plans.decisions_made - self._taken, DECISIONS_KEPT)
        self._taken = self._state.plans.decisions_made
        return self.decisions()[:fresh][::-1] if fresh else []


class Maintenance:
    """The maintenance lock for its callers.  A call at a time uses a thread, however long the service is silent."""

    def __init__(self, lock: MaintenanceLock) -> None:
        self._lock = lock
        self._one_call = asyncio.Lock()

    async def read_lock(self) -> MaintenanceStatus:
        async with self._one_call:
            return _maintenance(await asyncio.to_thread(self._lock.read_lock))

    async def acquire_lock(self, nonce: str, holder: str, what: str, *, is_renewal: bool) -> MaintenanceStatus:
        """Acquire or renew the lock for the holder of this nonce; return who has it then."""
        call = Acquire(nonce, _printable(holder), _printable(what), is_renewal)
        async with self._one_call:
            return _maintenance(await asyncio.to_thread(self._lock.acquire_lock, call), nonce)

    async def release_lock(self, nonce: str) -> MaintenanceStatus:
        """End the holding of this nonce, or with an empty one anybody's; return who had the lock before."""
        async with self._one_call:
            return _maintenance(await asyncio.to_thread(self._lock.release_lock, Release(nonce)), nonce)


def _maintenance(state: MaintenanceState, nonce: str = "") -> MaintenanceStatus:
    record = state.record
    if record.is_free:
        return MaintenanceStatus("", "", 0, 0)
    age_ms = max(0, system_ms() - record.since_ms)
    return MaintenanceStatus(record.holder, record.what, age_ms, state.silent_ms, record.nonce == nonce)


def _printable(text: str) -> str:
    """Return the text of a holder, as terminals of others may show it."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:HOLDER_CHARACTERS])


class ClusterControl:
    def __init__(
        self, servers: Servers, maintenance: MaintenanceLock, wall_ms: Callable[[], int] | None = None
    ) -> None:
        """``wall_ms``: as for ``ClusterReports``."""
        self._servers = servers
        self._state = servers.state
        self.processes = ProcessControl(servers, NodeFences(servers))
        self.maintenance = Maintenance(maintenance)
        self.node_drains = NodeDrains(servers)
        self.reports = ClusterReports(servers, self.processes.notes_on, wall_ms)

    # --- regions -----------------------------------------------------------------------------------

    async def move(self, info: RegionInfo, server: str, dry_run: bool) -> Change:
        """Move the region to ``server``; if ``server`` is empty, the planner chooses one."""
        request = MoveRegion(info.region_id, server or None)
        place = self._checked(request, info)
        source = place.server or ""
        if server and server == source:
            return Change(f"{_named(info)} is on {server} already", is_done=not dry_run)
        if dry_run:
            target = server or self._choice(place)
            move = PlannedMove(info, source, target, request.why)
            return Change(f"{_named(info)} would move from {source} to {target}", is_done=False, moves=(move,))
        await self._servers.request(request)
        target = place.server or ""
        moved = PlannedMove(info, source, target, request.why)
        return Change(f"{_named(info)} serves on {target}, it came from {source}", moves=(moved,))

    def _choice(self, place: Place) -> str:
        """Return the server that the planner would move the region to now."""
        draft = Draft(self._state.desired, self._state.current, self._servers.now_ms(), _Evenly())
        return draft.choose(place, apart_from=(place.server or "",)) or ""

    async def assign(self, info: RegionInfo, dry_run: bool) -> Change:
        place = self._checked(AssignRegion(info.region_id), info)
        if place.phase is Phase.OPEN:
            return Change(f"{_named(info)} is open on {place.server} already", is_done=not dry_run)
        if dry_run:
            return Change(f"{_named(info)} would be opened", is_done=False)
        await self._servers.request(AssignRegion(info.region_id))
        return Change(f"{_named(info)} serves on {place.server}")

    async def unassign(self, info: RegionInfo, dry_run: bool) -> Change:
        place = self._checked(UnassignRegion(info.region_id), info)
        if place.phase is Phase.OFFLINE:
            return Change(f"{_named(info)} is closed already", is_done=not dry_run)
        if dry_run:
            where = f", {place.server} has it" if place.server is not None else ""
            text = f"{_named(info)} would be closed{where}: its rows would not answer until it is assigned"
            return Change(text, is_done=False)
        await self._servers.request(UnassignRegion(info.region_id))
        text = f"{_named(info)} is closed: its rows do not answer until 'columnar assign {info.encoded}'"
        return Change(text)

    def _checked(self, request: Request, info: RegionInfo) -> Place:
        check_request(self._servers, request)
        return self._state.current.places[info.region_id]

    # --- servers and settings ----------------------------------------------------------------------

    async def drain(self, server: str, on: bool, wait_s: float, dry_run: bool) -> Change:
        """Keep a server empty if ``on``; otherwise let it get regions again.

        Returns after ``wait_s`` at the latest, with the number of regions that are left on the server.
        """
        request = DrainServer(server, on)
        check_request(self._servers, request)
        found = self._state.current.servers[server]
        if on:
            check_others(self._state, server)
        if dry_run:
            text = f"{counted(len(found.regions))} would leave {server}" if on else f"{server} would get regions again"
            return Change(text, is_done=False, left=len(found.regions))
        await self._servers.request(request)
        if not on:
            return Change(f"{server} gets regions again")
        await wait_for(self._servers, wait_s, lambda: not builder.left_on(self._state, found))
        left = builder.left_on(self._state, found)
        text = f"{counted(left)} left on {server}" if left else f"{server} is empty, and stays so"
        return Change(text, remarks=tuple(self._state.plans.remarks), left=left)

    async def balance(self, dry_run: bool) -> Change:
        """Run a round of balance now, whenever the last round was."""
        if not self._state.desired.operator_settings.balancer:
            raise NotAllowed("the balancer is off; 'columnar balancer on' switches it on")
        made = self._balancing()
        if not made.has_balanced:
            raise NotAllowed(self._unbalanceable())
        if dry_run:
            moves = self._moves(made.instructions)
            text = f"{counted(len(moves))} would move" if moves else "nothing would move"
            return Change(text, is_done=False, moves=moves, remarks=made.remarks)
        last = self._state.plans.decisions[-1] if self._state.plans.decisions else None
        await self._servers.request(BalanceNow())
        fresh = []
        for decision in reversed(self._state.plans.decisions):
            if decision is last:
                break
            fresh.append(decision.what)
        moves = self._moves(tuple(reversed(fresh)))
        text = f"another server for {counted(len(moves))}" if moves else "nothing is to move"
        return Change(text, moves=moves, remarks=tuple(self._state.plans.remarks))

    def _balancing(self) -> Plan:
        """Return the plan that would follow if balance were due now; none of it is carried out."""
        return plan(self._state.desired, self._state.current, self._servers.now_ms(), _Evenly(), balances_now=True)

    def _moves(self, instructions: tuple[object, ...]) -> tuple[PlannedMove, ...]:
        places = self._state.current.places
        return tuple(
            PlannedMove(places[one.region].info, _source(places[one.region]), one.server, one.why)
            for one in instructions
            if isinstance(one, Prefer) and one.region in places
        )

    def _unbalanceable(self) -> str:
        if self._state.current.homeless:
            return f"{counted(len(self._state.current.homeless))} without an owner; that comes first"
        return "moves of the last round are under way; 'columnar transitions' shows them"

    async def switch(self, what: str, on: bool, dry_run: bool) -> Change:
        """Switch a setting on or off.  ``what``: balancer or auto-split."""
        setting = _SWITCHES.get(what)
        if setting is None:
            raise CallerError(f"there is no switch '{what}'; there are {' and '.join(_SWITCHES)}")
        request = SwitchSetting(setting, on)
        check_request(self._servers, request)
        settings = self._state.desired.operator_settings
        was = settings.balancer if what == "balancer" else settings.auto_split
        text = f"{what} is {_on(on)}" if was != on else f"{what} was {_on(on)} already"
        if dry_run:
            return Change(f"{what} would be {_on(on)}, and is {_on(was)}", is_done=False)
        await self._servers.request(request)
        return Change(text)


def _source(place: Place) -> str:
    """Return the server that has the region, even if its move has begun."""
    source = place.owner.source if place.owner is not None else None
    return source.server.name if source is not None else place.server or ""


def _on(on: bool) -> str:
    return "on" if on else "off"


def _named(info: RegionInfo) -> str:
    return f"region {info.encoded} of {info.table}"
