"""The shell of ``master.cluster_state``: carries out the state's outputs in order, and reports results as events.

    Write           write rows of the catalogue, one write after the other; then send the routes to every server; then
                    ``row_written``
    NotifyServer    send a request to one server; its answer is the event ``opened``, ``closed`` or ``failed``
    Fence           have the server ended by its node, then measure its log; ``fenced`` has the regions that the log
                    names
    Split, Merge    done by ``cluster_requests``; the commit is the event ``changed``
    RemoveLog       remove the folder of an incarnation, after the master has observed its clock
    Answer          complete the request of a client

Invariants:
    H1. Outputs of one event are begun in their order, before the next event is reported.
    H2. ``row_written`` is reported when the rows are on disk, and ``not_written`` when the disk equals the catalogue in
        memory again.  Neither is reported while the outcome of the write is unknown.
    H3. A server gets routes after their rows are on disk, and before it is requested to open or close regions by them.
    H4. An incarnation is reported as fenced only after it was reaped or its lease is over, and its log measured after
        that.

Knows nothing of processes: ``Servers`` starts and ends them.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Final

from columnar.clock import Clock
from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.master import instructions as do
from columnar.master.catalogue import Catalogue
from columnar.master.cluster_state import ClusterState
from columnar.model.owner import Incarnation, is_named
from columnar.model.owner_messages import Holding, Holdings
from columnar.model.region_messages import (
    CloseTable,
    FollowSchema,
    Message,
    PublishFeeds,
    PublishRights,
    PublishTriggers,
    PublishViews,
    Withdraw,
)
from columnar.roles.cluster_loops import LoadPolls, OwnerWrites
from columnar.roles.cluster_requests import ClusterRequests
from columnar.roles.cluster_servers import DeadServerLogs, Servers
from columnar.roles.hosted_tables import HostedTables
from columnar.roles.route_broadcast import RouteBroadcast
from columnar.roles.state_events import LOOP, Handler, StateEvents
from columnar.roles.transition_requests import TransitionRequests
from columnar.runtime.faults import FAULTS
from columnar.runtime.planned_step import PlannedStep, pause_after
from columnar.runtime.retry_work import retry_work

_log = logging.getLogger(__name__)

MEASURED_S: Final = 1.0


class ClusterHost:
    def __init__(
        self,
        state: ClusterState,
        catalogue: Catalogue,
        sound: Callable[[], Awaitable[None]],
        servers: Servers,
        dead_logs: DeadServerLogs,
        clock: Clock,
    ) -> None:
        """Pass ``sound``, which returns when the catalogue on disk equals the catalogue in memory."""
        self.state = state
        self.events = StateEvents(state)
        self.routes = RouteBroadcast(self.events, servers, catalogue.ownership.epoch)
        self.tables = HostedTables(self.events, self.routes, catalogue)
        self.requests = ClusterRequests(self.events, self.tables)
        self.transitions = TransitionRequests(self.events, catalogue, servers, dead_logs, clock)
        self._catalogue = catalogue
        self._servers = servers
        self._dead_logs = dead_logs
        self.published: Callable[[str], Message[None] | None] = lambda _table: None  # by which servers learn a table
        self.initial_message_for: Callable[[Incarnation], Message[None] | None] = lambda _server: (
            None
        )  # to a server that was greeted
        self._writes = OwnerWrites(catalogue, sound, self._is_written, self._is_not_written)
        self._ticking = PlannedStep(LOOP, self._tick)
        self._polls = LoadPolls(self.events, servers, dead_logs, self.routes.greeted)
        self._ended: set[Incarnation] = set()
        self.fenced = 0  # servers that died or were killed, since the start
        handlers: dict[type[Any], Handler] = {
            do.Write: self._writes.add_write,
            do.NotifyServer: self.transitions.notify_server,
            do.Fence: lambda one: self.events.spawn(self._to_its_end(lambda: servers.fence(one.server))),
            do.RemoveLog: lambda one: self.events.spawn(dead_logs.remove(one.server)),
            do.Split: self.requests.begin_change,
            do.Merge: self.requests.begin_change,
            do.Answer: self.requests.answered,
            do.Wake: self._wake_at,
        }
        self.events.handle_by(handlers, self.routes.publish_blocked_regions)

    # --- start and stop ------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin to assign regions; call once every living server is greeted."""
        now_ms = self.events.now_ms()
        self.events.event(self.state.begin_planning(now_ms))
        self._polls.poll_loads()

    def stop(self) -> None:
        """Make no more decisions, because the servers stop, and no longer wait for a disk that refuses writes."""
        self.events.stop()
        self._writes.stop()
        self._polls.stop()
        self._ticking.cancel()

    async def close(self) -> None:
        """End after the write under way has finished.  Call when no server is left."""
        await self._writes.close()
        await self.events.close()
        self.requests.stop()

    # --- servers -------------------------------------------------------------------------------------

    def joined(self, server: Incarnation, zone: str = "") -> None:
        self.events.event(self.state.joined(server, self.events.now_ms(), zone=zone))

    def _silence(self, server: Incarnation, why: str) -> None:
        _log.warning("server %s is killed: %s", server, why)
        self.events.event(self.state.silent(server, why, self.events.now_ms()))

    def unlinked(self, server: Incarnation, why: str) -> None:
        if not self.events.is_over:
            self._silence(server, why)

    async def linked(self, server: Incarnation) -> None:
        """Send the server all tables, triggers, views, feeds and routes; from then on the server is up.

        Published tables settle the splits and merges that an earlier master left, so the server is asked after that
        which regions it has.
        """
        self.routes.greeted[server] = False  # first, so that the server misses no change of tables
        first = self.initial_message_for(server)  # in the same step: later requests go to all greeted servers
        try:
            if first is not None:
                await self._servers.request_server(server, first)
            await self._servers.request_server(server, PublishRights(*self._catalogue.rights.record.as_tuples()))
            for table in sorted(self._catalogue.tables):
                publish = self.published(table)
                if publish is not None:
                    await self._servers.request_server(server, publish)
            await self._servers.request_server(server, PublishTriggers(self._catalogue.derivations.triggers))
            await self._servers.request_server(server, PublishViews(self._catalogue.derivations.views))
            if self._catalogue.derivations.feeds.were_any:  # an earlier version does not know the message
                await self._servers.request_server(server, PublishFeeds(self._catalogue.derivations.feeds))
            found = await self._servers.request_server(server, Holding())
            self.transitions.observe_clock(found.clock_ms)
            await self._replace_tables_and_routes(server, found)
        except (NotSent, LinkBroke):
            return  # the end of the server is reported separately
        except Exception as error:  # noqa: BLE001 - whatever the error is, this server cannot serve
            _log.exception("server %s cannot take the tables", server)
            self._silence(server, f"it could not take the tables: {error}")
            return
        closed = {region: (epoch, has_unreplayed_log) for region, epoch, has_unreplayed_log in found.closed}
        now_ms = self.events.now_ms()
        self.events.event(self.state.hello(server, dict(found.serving), closed, now_ms, dict(found.leaving)))
        if found.has_routes:
            self._repeat_steps_of_tables(server)

    async def _replace_tables_and_routes(self, server: Incarnation, found: Holdings) -> None:
        for table in found.tables:
            if table not in self._catalogue.tables:
                await self._servers.request_server(server, Withdraw(table))
        if found.has_routes and not self.state.plans.has_begun:
            self.tables.load_owners()  # else the server would lose routes until every region has its next owner
        await self.routes.replace_routes(server)

    def _repeat_steps_of_tables(self, server: Incarnation) -> None:
        """Repeat the steps that an earlier master may have left undone; most have nothing to do."""
        for table, entry in self._catalogue.tables.items():
            message = FollowSchema(table) if entry.enabled else CloseTable(table)
            self.routes.send_message(server, message)

    def ended(self, server: Incarnation, why: str, *, asked: bool, is_by_time: bool = False) -> None:
        """Take over the regions of a server that answers nothing any more.

        ``asked``: an operator stopped it.  ``is_by_time``: its lease is over, and nobody reaped its process.
        """
        if server in self._ended:
            return
        self._ended.add(server)
        self.fenced += not asked
        self.routes.greeted.pop(server, None)
        if self.events.is_over:
            return
        self.events.spawn(self._to_its_end(lambda: self._expire_server(server, why, asked, is_by_time)))

    def has_ended(self, server: Incarnation) -> bool:
        """Tell whether the server counts as ended, even if it was not reported."""
        return server in self._ended

    async def _to_its_end(self, work: Callable[[], Awaitable[None]]) -> None:
        """Retry the work after a growing pause if it raises; else regions of the server would stay without an owner."""

        async def work_once() -> bool:
            await work()
            return True

        await retry_work(
            work_once, lambda fault: FAULTS.met(LOOP, fault), pause_after, is_wanted=lambda: not self.events.is_over
        )

    async def _expire_server(self, server: Incarnation, why: str, asked: bool, is_by_time: bool) -> None:
        """Send no more to the server, whose regions get other owners after its log is measured."""
        self.events.event(self.state.silent(server, f"it ended {why}", self.events.now_ms()))
        await self.measured(server, asked=asked, is_by_time=is_by_time)

    async def measure_ended_by_time(self, servers: Iterable[Incarnation]) -> None:
        """Do ``measured`` for servers that ended by time before this leader; return after MEASURED_S at the latest.

        The regions of servers whose logs are not measured by then get owners when they are.
        """
        wanted = list(servers)
        self._ended.update(wanted)
        measuring = [
            self.events.spawn(self._to_its_end(partial(self.measured, server, is_by_time=True))) for server in wanted
        ]
        if measuring:
            await asyncio.wait(measuring, timeout=MEASURED_S)

    async def measured(self, server: Incarnation, *, asked: bool = True, is_by_time: bool = False) -> None:
        """Seal the log of an incarnation that has ended, now or before an earlier start, and report it as fenced."""
        dead_log = await self._dead_logs.read_dead_server_log(server, is_by_time=is_by_time)
        rows = ((region, place.info, place.owner) for region, place in self.state.current.places.items())
        ids = {info.encoded: region for region, info, row in rows if row is not None and is_named(row, server)}
        named = [(ids[encoded], epoch) for encoded, epoch in dead_log.named if encoded in ids]
        now_ms = self.events.now_ms()
        self.events.event(
            self.state.fenced(server, dead_log.lengths, named, now_ms, asked, dead_log.opened, is_by_time)
        )
        self.requests.owner_ended(server)

    def list_delays(self) -> tuple[str, ...]:
        """Return sentences for operators about servers that ended, and whose regions wait."""
        return self._dead_logs.list_delays()

    # --- writes --------------------------------------------------------------------------------------

    def _is_written(self, write: do.Write) -> None:
        for info, row in write.owners:
            self.routes.publishing.owned(info, row)
        self.routes.publish_routes()
        self.events.event(self.state.row_written(write.number, self.events.now_ms()))

    def _is_not_written(self, write: do.Write) -> None:
        self.events.event(self.state.not_written(write.number, self.events.now_ms()))

    # --- time ----------------------------------------------------------------------------------------

    def _wake_at(self, wake: do.Wake) -> None:
        self._ticking.cancel()
        self._ticking.after(wake.at_ms / 1000 - asyncio.get_running_loop().time())

    def _tick(self) -> None:
        self.events.event(self.state.tick(self.events.now_ms()))
