"""The shell of ``master.cluster_state``: carries its outputs out, in order, and reports their results as events.

    Write       the catalogue's rows, one write after the other; then the routes to every server; then ``row_written``
    NotifyServer    a request to one server; its answer is ``opened``, ``closed`` or ``failed``
    Fence       SIGKILL and reaped; then the log is measured, and ``fenced`` says which regions it names
    Split, Merge    ``cluster_requests``; the commit is ``changed``
    RemoveLog   the folder of an incarnation, whose clock the master has observed
    Answer      completes the request of a client

Invariants:
    H1. Outputs of one event are begun in their order, before the next event is reported.
    H2. ``row_written`` is reported when the rows are on disk, and ``not_written`` when the disk equals the catalogue in
        memory again: never while the outcome of the write is unknown.
    H3. A server gets routes after the rows are on disk, and before it is asked to open or close regions by them.
    H4. An incarnation is reported as fenced when it was reaped and its log was measured after that.

Knows nothing of processes: ``Servers`` starts and ends them.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, Protocol, TypeVar

from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.errors import ColumnarError, DamagedData
from columnar.master import instructions as do
from columnar.master.catalogue import Catalogue
from columnar.master.cluster_state import ClusterState
from columnar.master.cluster_status_builder import list_blocked_regions
from columnar.master.dead_servers import DeadServerLog
from columnar.master.placement_records import Phase
from columnar.master.publishing import Publishing
from columnar.model import owner_messages as messages
from columnar.model.owner import Incarnation, Owner, is_named, servers_to_replay
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Message, PublishTriggers, PublishViews
from columnar.model.route import ChangeRoutes, RoutesVersion
from columnar.roles.cluster_loops import OwnerWrites, ServerWatch
from columnar.roles.cluster_requests import ClusterRequests
from columnar.runtime.background import Background
from columnar.runtime.faults import FAULTS, surviving
from columnar.runtime.planned_step import PlannedStep, pause_after
from columnar.runtime.retry_work import retry_work

_log = logging.getLogger(__name__)

LOADS_S: Final = 1.0
AGAIN_S: Final = 0.1  # after an unexpected exception
LOOP: Final = "the master of the cluster"
WAITING: Final = frozenset({Phase.HOMELESS, Phase.WRITING, Phase.OPENING})  # of a new region: not yet served
R = TypeVar("R")


class Servers(Protocol):
    async def request_server(self, server: Incarnation, message: Message[R]) -> R:
        """Send ``message`` and return the answer; concurrent requests leave in the order of the calls.

        Errors as of ``PeerLink.send_request``.
        """

    async def fence(self, server: Incarnation) -> None:
        """Return when it answers nothing any more and was reported as ended."""

    async def gone(self, server: Incarnation) -> None: ...

    def has_worked(self, server: Incarnation) -> bool:
        """Return whether its process has used a processor since the last call, a moment ago."""


class DeadServerLogs(Protocol):
    """The remains of incarnations that are over."""

    async def read_dead_server_log(self, server: Incarnation) -> DeadServerLog: ...

    async def remove(self, server: Incarnation) -> None:
        """Observe its clock, and remove its folder.  HostError."""

    async def extents(self, server: Incarnation, *, is_over: bool) -> messages.Segments:
        """The extents of the log of a server that lives, or that left a damaged log, now.  HostError, DamagedData."""

    def free_bytes(self) -> int | None:
        """Return how much of the disk is free, by the last probe; None: that is not known now."""

    def is_folder_stalled(self) -> bool:
        """Return whether the data folder does not answer."""


class ClusterHost:
    def __init__(
        self,
        state: ClusterState,
        catalogue: Catalogue,
        sound: Callable[[], Awaitable[None]],
        servers: Servers,
        dead_logs: DeadServerLogs,
    ) -> None:
        """``sound``: returns when the catalogue's disk equals the catalogue in memory."""
        self.state = state
        self.publishing = Publishing()
        self._catalogue = catalogue
        self._servers = servers
        self._pasts = dead_logs
        self.watch = ServerWatch(self.now_ms, servers.has_worked, self._silence, dead_logs.is_folder_stalled)
        self.greeted: dict[Incarnation, None] = {}  # linked, and not reaped: these servers get each change
        self.published: Callable[[str], Message[None] | None] = lambda _table: None  # how servers know a table
        self.initial_message_for: Callable[[Incarnation], Message[None] | None] = lambda _server: (
            None
        )  # to one that was greeted
        self.on_table: Callable[[str], None] = lambda _table: None  # the catalogue has another state of it
        self.is_over = False
        self._writes = OwnerWrites(catalogue, sound, self._is_written, self._is_not_written)
        self._background = Background(LOOP)
        self._ticking = PlannedStep(LOOP, self._tick)
        self._loading = PlannedStep(LOOP, self._poll_loads)
        self.requests = ClusterRequests(self)
        self._rated: set[Incarnation] = set()  # servers whose rates were requested and have not arrived yet
        self._happened: asyncio.Future[None] | None = None  # resolved by the next event: ``until`` waits for it
        self._ended: set[Incarnation] = set()
        self._blocked_regions: dict[int, str] = {}  # regions that stay closed, as was published
        self.fenced = 0  # servers that died or were killed, since the start
        self._tables: dict[str, tuple[int, ...]] = {}  # the regions of each, as ``state`` has them
        self._do: dict[type[Any], Callable[[Any], None]] = {
            do.Write: self._writes.add_write,
            do.NotifyServer: self._notify_server,
            do.Fence: lambda one: self.spawn(self._to_its_end(lambda: self._servers.fence(one.server))),
            do.RemoveLog: lambda one: self.spawn(self._pasts.remove(one.server)),
            do.Split: self.requests.begin_change,
            do.Merge: self.requests.begin_change,
            do.Answer: self.requests.answered,
            do.Wake: self._wake_at,
        }

    # --- events and outputs --------------------------------------------------------------------------

    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    def event(self, outputs: list[do.Output]) -> None:
        """Carry out what an event of ``state`` gave."""
        if self.is_over:
            return
        for output in outputs:
            self._carry_out(output)
        with surviving(LOOP):
            self._publish_blocked_regions()
        happened, self._happened = self._happened, None
        if happened is not None and not happened.done():
            happened.set_result(None)

    def _carry_out(self, output: do.Output) -> None:
        if self.is_over:
            return
        try:
            self._do[type(output)](output)
        except Exception as fault:  # noqa: BLE001 - the outputs after it are carried out, and this one again
            FAULTS.met(LOOP, fault)
            asyncio.get_running_loop().call_later(AGAIN_S, self._carry_out, output)

    def _publish_blocked_regions(self) -> None:
        """Publish why regions stay closed, so that calls for them are refused with the reason at every server."""
        blocked = list_blocked_regions(self.state)
        if blocked != self._blocked_regions:
            self._blocked_regions = blocked
            self.publishing.set_blocked_regions(blocked)
            self.publish_routes()

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until ``is_so()`` holds; it is evaluated after each event."""
        while not is_so():
            if self._happened is None:
                self._happened = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._happened)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Carry something out beside the events; a failure is logged."""
        self._background.spawn(work)

    def send(self, server: Incarnation, message: Message[None]) -> None:
        """Send a request without waiting for the answer."""
        self.spawn(self._sent(server, message))

    async def _sent(self, server: Incarnation, message: Message[None]) -> None:
        try:
            await self._servers.request_server(server, message)
        except (NotSent, LinkBroke):
            return  # the end of the server is reported by itself

    def begin(self) -> None:
        """Give regions owners from now on: every living server is greeted."""
        now_ms = self.now_ms()
        self.event(self.state.begin_planning(now_ms))
        self._poll_loads()

    def stop(self) -> None:
        """Decide nothing more, because servers stop.  A disk that refuses writes is not waited for any more."""
        self.is_over = True
        self._writes.stop()
        self.watch.stop()
        self._loading.cancel()
        self._ticking.cancel()

    async def close(self) -> None:
        """Stop after the write under way has finished.  Call when no server is left."""
        await self._writes.close()
        self._background.close()
        await self._background.ended()
        self.requests.stop()

    # --- servers -------------------------------------------------------------------------------------

    def joined(self, server: Incarnation) -> None:
        self.watch.joined(server)
        self.event(self.state.joined(server, self.now_ms()))

    def heard(self, server: Incarnation, iterations: int) -> None:
        self.watch.heard(server, iterations)

    def _silence(self, server: Incarnation, why: str) -> None:
        _log.warning("server %s is killed: %s", server, why)
        self.event(self.state.silent(server, why, self.now_ms()))

    def unlinked(self, server: Incarnation, why: str) -> None:
        if not self.is_over:
            self._silence(server, why)

    async def linked(self, server: Incarnation) -> None:
        """Send the server all tables, triggers, views and routes; from then on the server is up."""
        self.greeted[server] = None  # first: no change is missed
        first = self.initial_message_for(server)  # same step: requests that begin later go to all greeted servers
        try:
            if first is not None:
                await self._servers.request_server(server, first)
            for table in sorted(self._catalogue.tables):
                publish = self.published(table)
                if publish is not None:
                    await self._servers.request_server(server, publish)
            await self._servers.request_server(server, PublishTriggers(self._catalogue.derivations.triggers))
            await self._servers.request_server(server, PublishViews(self._catalogue.derivations.views))
            await self._replace_routes(server)
        except (NotSent, LinkBroke):
            return  # the end of the server is reported by itself
        except Exception as error:  # noqa: BLE001 - whatever the error is, this server cannot serve
            _log.exception("server %s cannot take the tables", server)
            self._silence(server, f"it could not take the tables: {error}")
            return
        self.event(self.state.hello(server, {}, {}, self.now_ms()))

    def ended(self, server: Incarnation, why: str, *, asked: bool) -> None:
        if server in self._ended:
            return
        self._ended.add(server)
        self.fenced += not asked
        self.greeted.pop(server, None)
        self.watch.left(server)
        if self.is_over:
            return
        self.spawn(self._to_its_end(lambda: self._expire_server(server, why, asked)))

    async def _to_its_end(self, work: Callable[[], Awaitable[None]]) -> None:
        """Retry the work after a growing pause if it raises: otherwise regions of the server would have no owner."""

        async def work_once() -> bool:
            await work()
            return True

        await retry_work(
            work_once, lambda fault: FAULTS.met(LOOP, fault), pause_after, is_wanted=lambda: not self.is_over
        )

    async def _expire_server(self, server: Incarnation, why: str, asked: bool) -> None:
        """Send the server nothing from now on; after its log is measured its regions get other owners."""
        self.event(self.state.silent(server, f"it ended {why}", self.now_ms()))
        await self.measured(server, asked=asked)

    async def measured(self, server: Incarnation, *, asked: bool = True) -> None:
        """The incarnation was reaped, now or by an earlier start: seal its log and report it as fenced."""
        dead_log = await self._pasts.read_dead_server_log(server)
        rows = ((region, place.info, place.owner) for region, place in self.state.current.places.items())
        ids = {info.encoded: region for region, info, row in rows if row is not None and is_named(row, server)}
        named = [(ids[encoded], epoch) for encoded, epoch in dead_log.named if encoded in ids]
        self.event(self.state.fenced(server, dead_log.lengths, named, self.now_ms(), asked, dead_log.opened))
        self.requests.owner_ended(server)

    # --- writes and routes ---------------------------------------------------------------------------

    def _is_written(self, write: do.Write) -> None:
        for info, row in write.owners:
            self.publishing.owned(info, row)
        self.publish_routes()
        self.event(self.state.row_written(write.number, self.now_ms()))

    def _is_not_written(self, write: do.Write) -> None:
        self.event(self.state.not_written(write.number, self.now_ms()))

    def publish_routes(self) -> None:
        """Send every server the change since the last one, if there is any."""
        change = self.publishing.take()
        if change is not None:
            for server in self.greeted:
                self.spawn(self._send_routes(server, change))

    async def _send_routes(self, server: Incarnation, change: ChangeRoutes) -> None:
        try:
            version: RoutesVersion = await self._servers.request_server(server, change)
            if version.needs_all or version.number < change.number:
                await self._replace_routes(server)
        except (NotSent, LinkBroke):
            return  # the end of the server is reported by itself

    async def _replace_routes(self, server: Incarnation) -> None:
        await self._servers.request_server(server, self.publishing.everything())

    # --- regions of tables ---------------------------------------------------------------------------

    def table_stands(self, table: str, regions: Sequence[RegionInfo]) -> list[RegionInfo]:
        """The regions of the table by the catalogue, now; none: it was dropped.  The new ones among them."""
        places = self.state.current.places
        wanted = tuple(info.region_id for info in regions)
        fresh = [info for info in regions if info.region_id not in places]
        gone = sorted(set(self._tables.get(table, ())) - set(wanted))
        self._stands(table, regions)
        if not fresh and not gone:
            return []
        if gone:
            self.event(self.state.tables.removed(gone, self.now_ms()))
        if fresh:
            self.event(self.state.tables.created(fresh, self.now_ms()))
        self.publish_routes()
        return fresh

    def _stands(self, table: str, regions: Sequence[RegionInfo]) -> None:
        self.publishing.stands(table, regions)
        if regions:
            self._tables[table] = tuple(info.region_id for info in regions)
        else:
            self._tables.pop(table, None)
        self.on_table(table)

    def load(self) -> None:
        """The tables of the catalogue, with the rows of owners on disk, of which ``state`` was made."""
        for table, entry in self._catalogue.tables.items():
            self._stands(table, entry.regions)
        for place in self.state.current.places.values():
            if place.phase is Phase.OFFLINE and place.owner is not None:  # no write publishes it: the start would wait
                self.publishing.owned(place.info, place.owner)
        self._publish_blocked_regions()

    async def served(self, table: str, fresh: Sequence[RegionInfo]) -> None:
        """Wait until every region of the table has an owner and published routes, and new ones opened or failed."""
        waiting = [info.region_id for info in fresh]

        def is_so() -> bool:
            """Check one waiting region, not all of them: there are as many events as regions."""
            places = self.state.current.places
            while waiting and (waiting[-1] not in places or places[waiting[-1]].phase not in WAITING):
                waiting.pop()
            return not waiting and self.publishing.is_out(table)

        await self.until(is_so)

    def replaced(self, table: str, fresh: Sequence[RegionInfo], row: Owner) -> None:
        """The catalogue has exchanged regions of the table for ``fresh``, which have this owner."""
        self._stands(table, self._catalogue.tables[table].regions)
        for info in fresh:
            self.publishing.owned(info, row)
        self.publish_routes()

    def pause_table_transitions(self, table: str) -> None:
        """Begin no transition of the table's regions until ``release``: the table is being copied."""
        self.event(self.state.tables.pause_table_transitions(table, self.now_ms()))

    def release(self, table: str) -> None:
        self.event(self.state.tables.released(table, self.now_ms()))

    def owner_of(self, region: RegionInfo) -> Incarnation | None:
        """Return the server that serves the region now; None if the region is in transition or closed."""
        place = self.state.current.places.get(region.region_id)
        if place is None or place.owner is None or place.phase not in (Phase.OPEN, Phase.CHANGING):
            return None
        return place.owner.server if self.state.current.is_alive(place.owner.server) else None

    def is_changing(self, region: RegionInfo) -> bool:
        """Return whether the region is being split or merged: no other transition of it begins meanwhile."""
        place = self.state.current.places.get(region.region_id)
        return place is not None and place.phase is Phase.CHANGING

    # --- notifying servers ---------------------------------------------------------------------------

    def _notify_server(self, notification: do.NotifyServer) -> None:
        self.spawn(self._request_transition(notification.server, notification.request))

    async def _request_transition(self, server: Incarnation, request: do.OwnerRequest) -> None:
        place = self.state.current.places.get(request.region)
        if place is None:
            return  # dropped meanwhile
        epoch = request.epoch if isinstance(request, do.Close) else request.owner.epoch
        try:
            if isinstance(request, do.Close):
                given_up = await self._servers.request_server(server, messages.CloseRegion(place.info, request.epoch))
            else:
                sealed = self._sealed(request.owner, server)
                for one in self._unsealed(request.owner, server):
                    is_over = self.state.ledger.is_fenced(one)
                    sealed += ((one, await self._pasts.extents(one, is_over=is_over)),)
                if isinstance(request, do.Open):
                    await self._servers.request_server(
                        server, messages.OpenRegion(place.info, request.owner, sealed, request.is_doubted)
                    )
                else:
                    await self._servers.request_server(
                        server, messages.RenumberRegion(place.info, request.owner, sealed)
                    )
        except (NotSent, LinkBroke):
            return  # the end of the server is reported by itself
        except Exception as error:  # noqa: BLE001 - whatever the error is, the server has refused the region's epoch
            self._refused(server, request, epoch, error)
            return
        if isinstance(request, do.Close):
            self.event(
                self.state.closed(
                    server, request.region, given_up.epoch, self.now_ms(), is_behind=given_up.has_unreplayed_log
                )
            )
        else:
            self.event(self.state.opened(server, request.region, epoch, self.now_ms()))

    def _refused(self, server: Incarnation, request: do.OwnerRequest, epoch: int, error: Exception) -> None:
        place = self.state.current.places.get(request.region)
        if not isinstance(request, do.Close) and (place is None or place.owner != request.owner):
            return  # the region has another owner by now
        what = "close" if isinstance(request, do.Close) else "open"
        text = error.text if isinstance(error, ColumnarError) else f"{type(error).__name__}: {error}"
        _log.error("server %s cannot %s region %d at epoch %d: %s", server, what, request.region, epoch, text)
        if not isinstance(error, ColumnarError):
            FAULTS.met(LOOP, error)
        if not isinstance(request, do.Close):  # a close is sent again
            is_damaged = isinstance(error, DamagedData)
            self.event(self.state.failed(server, request.region, epoch, text, is_damaged, self.now_ms()))

    async def cannot_open(self, server: Incarnation, said: messages.CannotOpen) -> None:
        """The server owns the region, and each request for it meets the same failure."""
        what = "is damaged" if said.is_damaged else "cannot be opened"
        _log.error(
            "region %s of %s %s at server %s: %s", said.region.encoded, said.region.table, what, server, said.why
        )
        region, now_ms = said.region.region_id, self.now_ms()
        self.event(self.state.unopened(server, region, said.epoch, said.why, said.is_damaged, now_ms))

    def _sealed(self, owner: Owner, server: Incarnation) -> tuple[tuple[Incarnation, messages.Segments], ...]:
        sealed = self._catalogue.ownership.firm_seals()
        return tuple((one, sealed[one]) for one in servers_to_replay(owner, server) if one in sealed)

    def _unsealed(self, owner: Owner, server: Incarnation) -> list[Incarnation]:
        """Return the servers whose logs have no seal.

        Such a server lives on after a close whose fsync failed: its writes to the region are in its log.  Or the server
        is dead, and its log was damaged when it was last read.
        """
        sealed = self._catalogue.ownership.firm_seals()
        return [one for one in servers_to_replay(owner, server) if one not in sealed]

    # --- time ----------------------------------------------------------------------------------------

    def _wake_at(self, wake: do.Wake) -> None:
        self._ticking.cancel()
        self._ticking.after(wake.at_ms / 1000 - asyncio.get_running_loop().time())

    def _tick(self) -> None:
        self.event(self.state.tick(self.now_ms()))

    def _poll_loads(self) -> None:
        if self.is_over:
            return
        self._loading.after(LOADS_S)
        free_bytes = self._pasts.free_bytes()
        if free_bytes is not None:  # else splits continue with the last known free space
            self.state.current.free_bytes = free_bytes
        for server in self.greeted:
            if server not in self._rated:
                self._rated.add(server)
                self.spawn(self._rates(server))

    async def _rates(self, server: Incarnation) -> None:
        try:
            rates = await self._servers.request_server(server, messages.Rates())
        except (NotSent, LinkBroke):
            return  # the end of the server is reported by itself
        finally:
            self._rated.discard(server)
        self.event(self.state.loads(server, rates, self.now_ms()))
