"""Stop, restart and fence servers of a cluster, one at a time, at its master.

    restart   empty, stop, start; then the server's regions come home
    stop      empty, stop; the server stays down until it or the store is restarted
    fence     end the process at once, as if it had died: a new process takes its place (of nodes: ``node_fences``)

A server that stops answers the calls of its clients first.  If one of these clients requested the stop or restart, the
request is therefore answered when the work begins; the status says when the work is over (``BEING_CHANGED``).

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from columnar.errors import CallerError, NotAllowed
from columnar.master import cluster_status_builder as builder
from columnar.master.cluster_state import ClusterState
from columnar.master.instructions import DrainServer, EvacuateServer, Request
from columnar.master.placement_records import Server, ServerState
from columnar.master.requests import refusal
from columnar.model.cluster_status_records import BEING_CHANGED, CHANGE_FAILED, Change
from columnar.model.node_messages import ProcessLevels, ServerFacts
from columnar.model.owner import Incarnation
from columnar.model.region_info import counted

if TYPE_CHECKING:
    from columnar.master.node_fences import NodeFences  # which needs ``Servers``

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
        """Carry the request out; return when it is done.  Raises CallerError or NotServingRegion."""

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until ``is_so()`` holds; it is evaluated after each event."""

    def facts(self, server: Incarnation) -> ServerFacts: ...

    async def change_log_levels(self, changes: tuple[str, ...]) -> tuple[ProcessLevels, ...]:
        """Change the levels of loggers in all processes; return those in force."""

    def nodes(self) -> tuple[Mapping[str, str], tuple[str, ...]]:
        """Return the nodes by server, and those that live, the leader first; nothing for a store of one machine."""

    def nodes_without_servers(self) -> Collection[str]:
        """Return the living nodes that have no servers, and only may lead."""

    def successors(self) -> tuple[str, ...]:
        """Return the nodes that can lead in the place of this one."""

    async def resign(self) -> None:
        """Let another node lead; returns when this one makes no more decisions."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run ``work`` until the master closes, and log its failure."""

    def remarks(self) -> tuple[str, ...]:
        """Return sentences about what the shell cannot do now."""

    def unfenced_nodes(self) -> tuple[Incarnation, ...]:
        """Return the nodes that have ended by time, and may still reach the data folder."""

    def fence_node(self, node: Incarnation) -> None:
        """Count the node as shut out of the data folder, and end its lease; its end is an event."""

    async def fence(self, server: Incarnation, why: str) -> None:
        """Fence the server; return when it answers nothing any more."""

    async def stop_server(self, server: Incarnation) -> None:
        """Stop the server in order; return when it has ended.  It is not started again before ``start_server``."""

    async def start_server(self, name: str) -> None:
        """Start a new incarnation of the server; return when its process was started."""


def check_request(servers: Servers, request: Request) -> None:
    """Raise CallerError if the request is refused."""
    why = refusal(request, servers.state.desired, servers.state.current, servers.now_ms())
    if why is not None:
        raise CallerError(why)


def check_others(state: ClusterState, server: str) -> None:
    """Raise NotAllowed if no other server is up to take the regions of ``server``."""
    up = [one.name for one in state.current.servers.values() if one.state is ServerState.UP]
    if not set(up) - state.desired.drained - {server}:
        raise NotAllowed(f"no other server is up to take the regions of {server}; 'columnar servers' shows them")


async def wait_for(servers: Servers, seconds: float, is_so: Callable[[], bool]) -> bool:
    """Wait until ``is_so()`` holds, at most ``seconds``.  Return whether it holds."""
    if not is_so() and seconds > 0:
        with suppress(TimeoutError):
            await asyncio.wait_for(servers.until(is_so), seconds)
    return is_so()


class ProcessControl:
    def __init__(self, servers: Servers, node_fences: NodeFences) -> None:
        self._servers = servers
        self._node_fences = node_fences
        self._state = servers.state
        self._busy_with: str | None = None  # the server that is being stopped or restarted
        self._begun: asyncio.Task[None] | None = None  # its stop or restart, if no request waits for the end
        self._failed: dict[str, str] = {}  # server -> why its last stop or restart failed, if no request waited

    def notes_on(self, server: str) -> Iterable[str]:
        """Yield notes for people on a stop or restart of the server that is under way or has failed."""
        if server == self._busy_with:
            yield BEING_CHANGED
        if server in self._failed:
            yield f"{CHANGE_FAILED}: {self._failed[server]}"

    def _server(self, name: str) -> Server:
        servers, (node_of, _) = self._state.current.servers, self._servers.nodes()
        # A server that was stopped under an earlier leader is known by its node alone.
        known = {one for one, state in servers.items() if state.incarnation is not None or one in node_of}
        if name not in known:
            raise CallerError(f"there is no server {name}; there are {', '.join(sorted(known))}")
        return servers[name]

    async def restart(self, name: str, dry_run: bool, came_by: str = "") -> Change:
        """Restart the server, or start it if it is down; return when it is up and its regions are at home.

        ``came_by``: the process that the requesting client is connected to, "server NAME.NUMBER" for a server.  If that
        is the server to be restarted, the method returns when the work has begun.
        """
        server = self._server(name)
        # The number of its next start is kept in the catalogue, which must be sound as for any setting.
        check_request(self._servers, DrainServer(name, on=False))
        is_up = server.state is ServerState.UP
        if is_up:
            check_others(self._state, name)
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
        if not await wait_for(self._servers, UP_S, has_restarted):
            raise CallerError(f"{name} is not up after {UP_S:.0f} s; its log says why")
        if name not in self._state.desired.operator_settings.drained:
            await wait_for(self._servers, HOME_S, lambda: not self._is_coming(name))
        return len(server.regions)

    def _is_coming(self, name: str) -> bool:
        """Return whether regions of the server are still to come, except those that a recent move keeps elsewhere."""
        current, now_ms = self._state.current, self._servers.now_ms()
        if any(target == name for _, target in current.moves.values()):
            return True
        astray = (current.places[region] for region in current.homes.astray.get(name, ()))
        return any(place.why_ideal or place.may_settle(now_ms) for place in astray)

    async def change_log_levels(self, changes: tuple[str, ...]) -> tuple[ProcessLevels, ...]:
        return await self._servers.change_log_levels(changes)

    async def stop(self, name: str, dry_run: bool, came_by: str = "") -> Change:
        """Stop the server; return when it has ended.  ``came_by``: as for ``restart``."""
        server = self._server(name)
        if server.state is not ServerState.UP:
            raise NotAllowed(f"{name} is {server.state.name.lower()}; 'columnar servers' shows the others")
        check_request(self._servers, DrainServer(name))
        check_others(self._state, name)
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
            if not await wait_for(self._servers, EMPTIED_S, lambda: not builder.left_on(self._state, server)):
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
        """Run ``work``, which stops a server.  Raises NotAllowed if a server is being stopped already.

        If several stopped at a time, the last would have no server to give their regions to.
        """
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
        """End a server at once, or count a node as off, whose machine is.  A server's name comes before a node's."""
        nodes = self._node_fences.list_nodes()
        if nodes and name not in self._state.current.servers:
            return await self._node_fences.fence_node(name, dry_run)
        server = self._server(name)
        if server.state is ServerState.DOWN or server.incarnation is None:
            raise NotAllowed(f"{name} is down: nothing is to be fenced")
        if dry_run:
            text = f"{server.incarnation} would be ended at once, and {counted(len(server.regions))} go to other owners"
            return Change(text, is_done=False)
        old, regions = server.incarnation, len(server.regions)
        await self._servers.fence(old, "a person had it fenced")
        return Change(f"{old} answers nothing any more; {counted(regions)} for other owners")
