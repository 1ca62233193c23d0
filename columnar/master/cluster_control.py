"""The control of a cluster by operators, at its master: status, and requests that are answered when they are done.

Each request is checked before anything is done, and answers a sentence; ``dry_run`` answers the sentence alone.  A
request that is done returns when the cluster is in the requested state.

    restart   empty, stop, start; its regions come home
    stop      empty, stop; the server stays down until a restart of it, or of the store
    fence     end the process at once, as if it had died: another takes its place

A server that stops answers the calls of its clients first.  If a client of that very server requests its stop or
restart, the request is therefore answered when the work begins; the status says when it is over (``BEING_CHANGED``).

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Protocol

from columnar.errors import CallerError, NotAllowed
from columnar.master import cluster_status_builder as builder
from columnar.master.cluster_state import ClusterState
from columnar.master.cluster_status_builder import ServerFacts
from columnar.master.instructions import (
    DECISIONS_KEPT,
    AssignRegion,
    BalanceNow,
    DrainServer,
    EvacuateServer,
    MoveRegion,
    Plan,
    Prefer,
    Request,
    SwitchBalancer,
    SwitchSplits,
    UnassignRegion,
    UndrainServer,
)
from columnar.master.placement_records import Phase, Place, Server, ServerState
from columnar.master.plan_draft import Draft
from columnar.master.planner import plan
from columnar.master.requests import refusal
from columnar.model.cluster_status_records import (
    BEING_CHANGED,
    Change,
    ClusterStatus,
    DecisionStatus,
    PlannedMove,
    RegionStatus,
    RowStatus,
    TableStatus,
    TransitionStatus,
)
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo, counted

_log = logging.getLogger(__name__)

EMPTIED_S: Final = 600.0  # for a server that is to be stopped: its regions leave it four at a time
UP_S: Final = 60.0  # for a server that was started
HOME_S: Final = 120.0  # for its regions, after a restart


class Servers(Protocol):
    """The state's shell, and the servers' processes."""

    @property
    def state(self) -> ClusterState: ...

    def now_ms(self) -> int: ...

    async def request(self, request: Request) -> None:
        """Return when it is done.  CallerError, NotServingRegion."""

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until ``is_so()`` holds; it is evaluated after each event."""

    def facts(self, server: Incarnation) -> ServerFacts: ...

    async def fence(self, server: Incarnation, why: str) -> None:
        """Return when it answers nothing any more."""

    async def stop_server(self, server: Incarnation) -> None:
        """Stop in order; return when the server has ended.  Its name is not started again before ``start_server``."""

    async def start_server(self, name: str) -> None:
        """Start another incarnation; return when its process was started."""


class _Evenly:
    """Chance without chance: a dry run shows the same plan twice."""

    def random(self) -> float:
        return 0.5


class ClusterControl:
    def __init__(self, servers: Servers, wall_ms: Callable[[], int] | None = None) -> None:
        """``wall_ms``: milliseconds of the Unix epoch; None: times of day are not known."""
        self._wall_ms = wall_ms
        self._earlier: Sequence[DecisionStatus] = ()  # decisions of masters before this one, newest first
        self._taken = 0  # decisions of this one that were taken
        self._servers = servers
        self._state = servers.state
        self._busy_with: str | None = None  # the server that is being stopped or restarted
        self._begun: asyncio.Task[None] | None = None  # the work on it, if no request waits for that
        self._failed: dict[str, str] = {}  # why the last such work failed, by server

    # --- status ------------------------------------------------------------------------------------

    def cluster_status(self) -> ClusterStatus:
        found = builder.build_cluster_status(self._state, self._servers.facts, self._servers.now_ms())
        servers = (replace(one, notes=(*one.notes, *self._notes(one.name))) for one in found.servers)
        return replace(found, servers=tuple(servers))

    def _notes(self, server: str) -> Iterable[str]:
        if server == self._busy_with:
            yield BEING_CHANGED
        if server in self._failed:
            yield f"its last stop or restart failed: {self._failed[server]}"

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
        """The last DECISIONS_KEPT, newest first; those of masters before this one among them."""
        wall_ms = self._wall_ms() if self._wall_ms is not None else 0
        own = builder.list_decision_statuses(self._state, self._servers.now_ms())
        if self._wall_ms is None:
            return own
        timed = [replace(one, at_ms=wall_ms - one.ago_ms) for one in own]
        earlier = (replace(one, ago_ms=max(0, wall_ms - one.at_ms)) for one in self._earlier)
        return [*timed, *earlier][:DECISIONS_KEPT]

    def follow_decisions(self, earlier: Iterable[DecisionStatus]) -> None:
        """``earlier``: of masters before this one, oldest first."""
        self._earlier = list(earlier)[::-1]

    def take_decisions(self) -> list[DecisionStatus]:
        """Return the decisions since the last call, oldest first; at most DECISIONS_KEPT."""
        fresh = min(self._state.plans.decisions_made - self._taken, DECISIONS_KEPT)
        self._taken = self._state.plans.decisions_made
        return self.decisions()[:fresh][::-1] if fresh else []

    # --- regions -----------------------------------------------------------------------------------

    async def move(self, info: RegionInfo, server: str, dry_run: bool) -> Change:
        """``server`` empty: the planner chooses."""
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
        """The server that the planner would move the region to now."""
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
        self._check(request)
        return self._state.current.places[info.region_id]

    def _check(self, request: Request) -> None:
        why = refusal(request, self._state.desired, self._state.current, self._servers.now_ms())
        if why is not None:
            raise CallerError(why)

    # --- the whole ---------------------------------------------------------------------------------

    async def drain(self, server: str, on: bool, wait_s: float, dry_run: bool) -> Change:
        """Keep a server empty, or no longer.  Return after ``wait_s`` at the latest, with what it still has."""
        request = DrainServer(server) if on else UndrainServer(server)
        self._check(request)
        found = self._state.current.servers[server]
        if on:
            self._check_others(server)
        if dry_run:
            text = f"{counted(len(found.regions))} would leave {server}" if on else f"{server} would get regions again"
            return Change(text, is_done=False, left=len(found.regions))
        await self._servers.request(request)
        if not on:
            return Change(f"{server} gets regions again")
        await self._within(wait_s, lambda: not builder.left_on(self._state, found))
        left = builder.left_on(self._state, found)
        text = f"{counted(left)} left on {server}" if left else f"{server} is empty, and stays so"
        return Change(text, remarks=tuple(self._state.plans.remarks), left=left)

    def _check_others(self, server: str) -> None:
        drained = self._state.desired.drained
        up = [one.name for one in self._state.current.servers.values() if one.state is ServerState.UP]
        if not set(up) - drained - {server}:
            raise NotAllowed(f"no other server is up to take the regions of {server}; 'columnar servers' shows them")

    async def _within(self, seconds: float, is_so: Callable[[], bool]) -> bool:
        if not is_so() and seconds > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._servers.until(is_so), seconds)
        return is_so()

    async def balance(self, dry_run: bool) -> Change:
        """A round of balance now, whenever the last one was."""
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
        """The plan, if balance were due now; nothing of it is carried out."""
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
        """``what``: balancer or auto-split."""
        switches: dict[str, Request] = {"balancer": SwitchBalancer(on), "auto-split": SwitchSplits(on)}
        request = switches.get(what)
        if request is None:
            raise CallerError(f"there is no switch '{what}'; there are {' and '.join(switches)}")
        self._check(request)
        settings = self._state.desired.operator_settings
        was = settings.balancer if what == "balancer" else settings.auto_split
        text = f"{what} is {_on(on)}" if was != on else f"{what} was {_on(on)} already"
        if dry_run:
            return Change(f"{what} would be {_on(on)}, and is {_on(was)}", is_done=False)
        await self._servers.request(request)
        return Change(text)

    # --- processes ---------------------------------------------------------------------------------

    def _server(self, name: str) -> Server:
        found = self._state.current.servers.get(name)
        if found is None or found.incarnation is None:
            known = sorted(one for one, state in self._state.current.servers.items() if state.incarnation is not None)
            raise CallerError(f"there is no server {name}; there are {', '.join(known)}")
        return found

    async def restart(self, name: str, dry_run: bool, came_by: str = "") -> Change:
        """Return when the server is up again and its regions are at home; a server that is down is started.

        ``came_by``: whose client sent the request, "server NAME.NUMBER" for a server: if that server is to be
        restarted, the method returns when the work has begun.
        """
        server = self._server(name)
        self._check(UndrainServer(name))  # its next start has a number, which the catalogue keeps
        is_up = server.state is ServerState.UP
        if is_up:
            self._check_others(name)
        if dry_run:
            text = f"{counted(len(server.regions))} would leave {name}, and come back to its next start"
            return Change(text if is_up else f"{name} would be started", is_done=False)
        old = server.incarnation
        work = self._alone(name, self._restart(server))
        if came_by == f"server {old}":
            return self._begin(name, work, f"{old} begins to restart")
        brought = await work
        done = f"{name} is up again as {server.incarnation}"
        came = "".join(f"; {text}" for text in self._home(server, brought))
        return Change(f"{done}, in the place of {old}{came}" if is_up else f"{done}{came}")

    def _home(self, server: Server, brought: int) -> Iterable[str]:
        if server.name in self._state.desired.operator_settings.drained:
            yield "it is drained, and gets no region"
            return
        if brought:
            yield f"{counted(brought)} at home again"
        missing = len(self._state.current.homes.astray.get(server.name, ()))
        if missing:
            yield f"{counted(missing)} not moved again so soon"

    async def _restart(self, server: Server) -> int:
        name = server.name
        before = server.incarnation

        def has_restarted() -> bool:
            return server.state is ServerState.UP and server.incarnation != before

        if server.state is ServerState.UP:
            await self._emptied_and_stopped(server)
        elif server.state is not ServerState.DOWN and before is not None:  # it starts, or dies
            await self._servers.stop_server(before)
        await self._servers.start_server(name)
        if not await self._within(UP_S, has_restarted):
            raise CallerError(f"{name} is not up after {UP_S:.0f} s; its log says why")
        if name not in self._state.desired.operator_settings.drained:
            await self._within(HOME_S, lambda: not self._is_coming(name))
        return len(server.regions)

    def _is_coming(self, name: str) -> bool:
        """Return whether regions of the server are still to come, except those that a recent move keeps elsewhere."""
        current, now_ms = self._state.current, self._servers.now_ms()
        if any(target == name for _, target in current.moves.values()):
            return True
        astray = (current.places[region] for region in current.homes.astray.get(name, ()))
        return any(place.why_ideal or place.may_settle(now_ms) for place in astray)

    async def stop(self, name: str, dry_run: bool, came_by: str = "") -> Change:
        """Return when it has ended; ``came_by`` as of ``restart``."""
        server = self._server(name)
        if server.state is not ServerState.UP:
            raise NotAllowed(f"{name} is {server.state.name.lower()}; 'columnar servers' shows the others")
        self._check(DrainServer(name))
        self._check_others(name)
        if dry_run:
            return Change(f"{counted(len(server.regions))} would leave {name}, and it would stop", is_done=False)
        old = server.incarnation
        work = self._alone(name, self._emptied_and_stopped(server))
        if came_by == f"server {old}":
            return self._begin(name, work, f"{old} begins to stop")
        await work
        return Change(f"{old} has stopped; 'columnar restart {name}' starts it again")

    async def _emptied_and_stopped(self, server: Server) -> int:
        """Empty and stop the server without a failed request: it serves no client when it stops."""
        incarnation = server.incarnation
        assert incarnation is not None, "it is up"
        try:
            await self._servers.request(EvacuateServer(server.name, on=True))
            if not await self._within(EMPTIED_S, lambda: not builder.left_on(self._state, server)):
                left = counted(builder.left_on(self._state, server))
                raise NotAllowed(
                    f"{server.name} is not stopped: {left} left on it after {EMPTIED_S:.0f} s; 'columnar transitions' "
                    "shows what they wait for"
                )
            await self._servers.stop_server(incarnation)
        finally:
            await self._servers.request(EvacuateServer(server.name, on=False))
        return 0

    def _alone(self, name: str, work: Coroutine[Any, Any, int]) -> Coroutine[Any, Any, int]:
        """Stop one server at a time, or the last ones would have no server to give their regions to."""
        if self._busy_with is not None:
            work.close()
            raise NotAllowed(f"{self._busy_with} is being stopped or restarted; wait for it")
        self._busy_with = name
        self._failed.pop(name, None)
        return self._to_its_end(work)

    async def _to_its_end(self, work: Coroutine[Any, Any, int]) -> int:
        try:
            return await work
        finally:
            self._busy_with = None

    def _begin(self, name: str, work: Coroutine[Any, Any, int], text: str) -> Change:
        self._begun = asyncio.ensure_future(self._by_itself(name, work))
        remark = f"{name} ends the connection of this call on the way; 'columnar servers' shows when it is over"
        return Change(text, is_done=False, remarks=(remark,))

    async def _by_itself(self, name: str, work: Coroutine[Any, Any, int]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - no request waits for it: the status has the failure
            _log.exception("the stop or restart of %s failed", name)
            self._failed[name] = str(error)

    async def fence(self, name: str, dry_run: bool) -> Change:
        server = self._server(name)
        if server.state is ServerState.DOWN or server.incarnation is None:
            raise NotAllowed(f"{name} is down: nothing is to be fenced")
        if dry_run:
            text = f"{server.incarnation} would be ended at once, and {counted(len(server.regions))} go to other owners"
            return Change(text, is_done=False)
        old, regions = server.incarnation, len(server.regions)
        await self._servers.fence(old, "a person had it fenced")
        return Change(f"{old} answers nothing any more; {counted(regions)} for other owners")


def _source(place: Place) -> str:
    """The server that has the region, also where its move has begun."""
    source = place.owner.source if place.owner is not None else None
    return source.server.name if source is not None else place.server or ""


def _on(on: bool) -> str:
    return "on" if on else "off"


def _named(info: RegionInfo) -> str:
    return f"region {info.encoded} of {info.table}"
