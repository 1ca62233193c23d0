"""(pure) The state of a cluster at its master: events in, outputs out.

    events    joined, hello, opened, closed, failed, unopened, loads, silent, fenced; row_written, not_written, unsound,
              sound; the events of ``table_regions``; add_request, tick, begin_planning
    outputs   Write, NotifyServer, Fence, Split, Merge, RemoveLog, Answer, Wake, in the order of their execution

The steps of a region to a new owner, whatever the reason (Close and Open go out as NotifyServer):

    plan: Give -> Write its next row -> row_written -> Close to the source -> closed -> Open to the owner -> opened
                                                       if the source is fenced or there is none: Open at once

The row is on disk before requests of clients pause.  When the region is open, its settled row goes out with the next
write.

Invariants (``check_invariants`` checks also the invariants of ``placement`` and ``owner_ledger``):
    S1. (region, epoch) is on disk before an owner is notified (C3).  An owner is asked to open a region only when every
        earlier owner has closed it, has failed to open it or is fenced (C2).
    S2. A region has one transition at a time, and its phase says which.
    S3. A log is removed only when no row names it (C6).

The planner runs after every event (``plan_executor``).  An event costs O(its regions): the death of a server concerns
the server's regions, a report one region.

Knows nothing of files, processes, sockets and clocks: the shell around it carries outputs out and reports events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from columnar.master.catalogue_rows import OperatorSettings
from columnar.master.instructions import Fence, Output, RemoveLog, Request, Throttles
from columnar.master.owner_ledger import OwnerLedger
from columnar.master.placement import Current, Desired
from columnar.master.placement_records import Phase, ServerState
from columnar.master.plan_draft import Chance
from columnar.master.plan_executor import PlanExecutor, Planner
from columnar.master.planner import is_large, plan
from columnar.master.requests import Requests
from columnar.master.resumption import Resumption, ServerRegions
from columnar.master.table_regions import TableRegions, add_region
from columnar.master.transitions import Transitions
from columnar.model.owner import Incarnation, Owner
from columnar.model.owner_messages import RegionRates, Segments
from columnar.model.region_info import RegionInfo

NOTIFY_AGAIN_MS: Final = 5_000  # after a notification without a report
NOTIFY_AGAIN_REGIONS: Final = 100  # at most this many regions at one tick
HOME_FOR_MS: Final = 10 * 60_000  # an unavailable or drained server remains the home of its regions this long


class ClusterState:
    def __init__(
        self,
        regions: Iterable[tuple[RegionInfo, Owner | None]],
        sealed: Mapping[Incarnation, Segments],
        operator_settings: OperatorSettings,
        rng: Chance,
        throttles: Throttles | None = None,
        planner: Planner = plan,
    ) -> None:
        """Build the state from the catalogue's rows.  Nothing is planned before ``begin_planning``.

        ``planner``: ``plan``, or a function that measures and calls ``plan``.
        """
        self.current = Current()
        self.desired = Desired(operator_settings, throttles or Throttles())
        rows: dict[int, Owner] = {}
        for info, owner in regions:
            is_unassigned = info.region_id in operator_settings.unassigned
            add_region(self.current, info, owner, Phase.OFFLINE if is_unassigned else Phase.HOMELESS)
            if owner is not None:
                rows[info.region_id] = owner
        self.ledger = OwnerLedger(rows, sealed)
        self._transitions = Transitions(self.desired, self.current, self.ledger)
        self._outputs = self._transitions.outputs  # one list, in order
        self.tallies = self._transitions.tallies
        self._requests = Requests(self.desired, self.current, self._outputs)
        self.plans = PlanExecutor(
            self.desired, self.current, self.ledger, self._transitions, self._requests, planner, rng
        )
        self._resumption = Resumption(self.desired, self.current, self.ledger, self._transitions)
        self.tables = TableRegions(self.current, self.ledger, self._transitions, self._requests, self.plans)

    # --- servers -----------------------------------------------------------------------------------

    def begin_planning(self, now_ms: int) -> list[Output]:
        """Begin to plan.  Every living server has said hello, and all other incarnations that rows name are fenced.

        Regions that living servers have since the time of an earlier master continue as they are (``resumption``).
        """
        self.plans.begin()
        self.current.begin_start(now_ms)
        self._requests.end_drains(now_ms)
        contradicting = self._resumption.resume_regions(now_ms)
        if contradicting:
            self.plans.write_unsent()
        for server, why in contradicting:
            self._silence(server, why, now_ms)
        outputs = self.plans.end_event(now_ms)
        self.current.balance.end_start()
        return outputs

    def joined(self, server: Incarnation, now_ms: int, weight: float = 1.0, zone: str = "") -> list[Output]:
        """Note that the incarnation was started, on a node in ``zone``."""
        found = self.current.server(server.name)
        self.current.zones.change_zone(found, zone)
        found.begin(server, weight, now_ms)
        return self.plans.end_event(now_ms)

    def hello(
        self,
        server: Incarnation,
        serving: Mapping[int, int],
        closed: Mapping[int, tuple[int, bool]],
        now_ms: int,
        leaving: Mapping[int, int] | None = None,
    ) -> list[Output]:
        """Handle a connection of the server, perhaps a repeated one.

        ``serving``: epochs by region.  ``closed``: by region, the last epoch that the server gave up, and whether its
        log may hold records that the store lacks.  ``leaving``: epochs of regions that it gave up and has not closed.
        Before ``begin_planning`` the hello is only noted.
        """
        found = self.current.server(server.name)
        if found.incarnation != server or found.state in (ServerState.FENCING, ServerState.DOWN):
            return []
        self.current.server_up(found, now_ms)
        if not self.plans.has_begun:
            self._resumption.note_hello(server, ServerRegions(dict(serving), dict(closed), dict(leaving or {})))
            return self.plans.end_event(now_ms)
        self._requests.end_drains(now_ms)
        for region, (epoch, is_behind) in closed.items():
            self._transitions.closed(server, region, epoch, is_behind, now_ms)
        for region, epoch in serving.items():
            self._transitions.opened(server, region, epoch, now_ms)
        for region in self.current.in_transition:
            if self.current.places[region].phase is not Phase.WRITING:
                self._transitions.notify_owner_again(self.current.places[region], server, now_ms)
        return self.plans.end_event(now_ms)

    def silent(self, server: Incarnation, why: str, now_ms: int) -> list[Output]:
        """Mark the server as one to be fenced: it gets no more notifications."""
        self._silence(server, why, now_ms)
        return self.plans.end_event(now_ms)

    def _silence(self, server: Incarnation, why: str, now_ms: int) -> None:
        found = self.current.servers.get(server.name)
        if found is not None and found.incarnation == server and found.state is not ServerState.DOWN:
            found.begin_fencing(now_ms)
            self.plans.record_decision(Fence(server, why), now_ms)
            self._outputs.append(Fence(server, why))

    def fenced(
        self,
        server: Incarnation,
        segments: Segments | None,
        named: Iterable[tuple[int, int]],
        now_ms: int,
        asked: bool = False,
        opened: Collection[int] = (),
        is_by_time: bool = False,
    ) -> list[Output]:
        """Handle a server that answers nothing any more.

        ``segments``: its sealed log; None if the log is damaged.  ``named``: regions and epochs in the log's heads.
        ``asked``: an operator stopped it, which does not count as a death.  ``opened``: regions that it was opening
        when it died, or had opened a moment before.  ``is_by_time``: its lease is over, and nobody reaped its process:
        the next owners of its regions get the next generation of the regions' folders.
        """
        if self.ledger.is_fenced(server):
            return []
        self.ledger.fenced(server, segments, named, is_by_time=is_by_time)
        self._resumption.note_end(server)
        found = self.current.server(server.name)
        died_ms = found.since_ms if found.state is ServerState.FENCING else now_ms
        self.current.server_fenced(found, server, now_ms)
        if not asked and self.plans.has_begun:
            if found.was_up or found.incarnation != server:  # a start that failed had no regions
                found.failures.process_died(now_ms)
            self._transitions.died_opening(server, opened)
        for region in list(found.regions):
            place = self.current.places[region]
            if place.owner is not None and place.owner.server == server:
                self._transitions.owner_fenced(place, died_ms, now_ms)
        for region in list(self.current.closing):
            place = self.current.places[region]
            source = place.owner.source if place.owner is not None else None
            if source is not None and source.server == server:
                self._transitions.advance(place, now_ms)
        return self.plans.end_event(now_ms)

    # --- reports of servers ------------------------------------------------------------------------

    def opened(self, server: Incarnation, region: int, epoch: int, now_ms: int) -> list[Output]:
        """Handle the report that the server serves the region, with all logs replayed.  Also answers ``Renumber``."""
        self._transitions.opened(server, region, epoch, now_ms)
        return self.plans.end_event(now_ms)

    def closed(
        self, server: Incarnation, region: int, epoch: int, now_ms: int, is_behind: bool = False
    ) -> list[Output]:
        """Handle the report that the server refuses the region at that epoch for ever.

        ``is_behind``: the server's log may hold records that the store lacks.
        """
        self._transitions.closed(server, region, epoch, is_behind, now_ms)
        return self.plans.end_event(now_ms)

    def failed(
        self, server: Incarnation, region: int, epoch: int, why: str, is_damaged: bool, now_ms: int
    ) -> list[Output]:
        """Handle the report that the server could not open the region, and refuses it at that epoch for ever."""
        self._transitions.failed(server, region, epoch, why, is_damaged, now_ms)
        return self.plans.end_event(now_ms)

    def unopened(
        self, server: Incarnation, region: int, epoch: int, why: str, is_damaged: bool, now_ms: int
    ) -> list[Output]:
        """Handle the report that the server owns the region and cannot open its store."""
        self._transitions.unopened(server, region, epoch, why, is_damaged, now_ms)
        return self.plans.end_event(now_ms)

    def loads(self, server: Incarnation, rates: Sequence[RegionRates], now_ms: int) -> list[Output]:
        current = self.current
        up = [one.weight for one in current.servers.values() if one.state is ServerState.UP]
        share = current.load / max(1.0, sum(up))
        for one in rates:
            place = current.places.get(one.region)
            if place is None or place.owner is None or place.owner.server != server:
                continue
            current.report_rates(place, one, now_ms)
            if is_large(place, share):
                current.large[one.region] = None
            else:
                current.large.pop(one.region, None)
        return self.plans.end_event(now_ms)

    # --- writes ------------------------------------------------------------------------------------

    def row_written(self, number: int, now_ms: int) -> list[Output]:
        outcome = self.ledger.row_written(number)
        self._outputs += [RemoveLog(server) for server in outcome.forgotten]
        self._requests.row_written(number)
        for region in outcome.regions:
            place = self.current.places[region]
            if place.phase is Phase.WRITING:
                self._transitions.advance(place, now_ms)
        return self.plans.end_event(now_ms)

    def not_written(self, number: int, now_ms: int) -> list[Output]:
        """Handle a write whose rows are not on disk, or were undone."""
        outcome = self.ledger.not_written(number)
        self.current.catalogue.write_failed(now_ms)
        wanted = self.desired.operator_settings.unassigned
        self._requests.not_written(number)
        for region in wanted ^ self.desired.operator_settings.unassigned:  # settings that were withdrawn
            place = self.current.places.get(region)
            if place is not None and place.phase in (Phase.HOMELESS, Phase.OFFLINE, Phase.FAILED_OPEN):
                self._transitions.orphan(place, now_ms)
        for region in outcome.regions:
            place = self.current.places[region]
            if place.phase is Phase.WRITING:
                self._transitions.revert_owner_row(place, now_ms)
        return self.plans.end_event(now_ms)

    def unsound(self, failure: str, now_ms: int) -> list[Output]:
        """Note that the catalogue cannot be written until ``sound``; writes under way end after that."""
        self.current.catalogue.unsound(failure, now_ms)
        self._requests.unsound(self.current.catalogue.remark(now_ms))
        return self.plans.end_event(now_ms)

    def sound(self, now_ms: int) -> list[Output]:
        """Note that the catalogue on disk equals the catalogue in memory again."""
        self.current.catalogue.sound()
        self._transitions.try_again(now_ms, all_at_once=True)  # the disk takes writes again
        return self.plans.end_event(now_ms)

    # --- people and time ---------------------------------------------------------------------------

    def add_request(self, number: int, request: Request, now_ms: int) -> list[Output]:
        """Add a request of an operator.  ``number``: names it in its ``Answer``."""
        self._requests.add_request(number, request, now_ms)
        return self.plans.end_event(now_ms)

    def tick(self, now_ms: int) -> list[Output]:
        overdue = []
        for region in self.current.in_transition:
            place = self.current.places[region]
            if place.phase not in (Phase.WRITING, Phase.CHANGING) and now_ms - place.notified_ms >= NOTIFY_AGAIN_MS:
                overdue.append(place)
                if len(overdue) == NOTIFY_AGAIN_REGIONS:
                    break
        for place in overdue:
            self._transitions.notify_owner(place, now_ms)
        self._transitions.acquit(now_ms)
        self._transitions.try_again(now_ms)
        for server, why in self._transitions.stuck(now_ms):
            self._silence(server, why, now_ms)
        for name in list(self.current.homes.astray):
            self._give_up_home(name, now_ms)
        self._requests.end_drains(now_ms)  # again, if the catalogue could not be written
        self.plans.write_unsent()
        return self.plans.end_event(now_ms)

    def _give_up_home(self, name: str, now_ms: int) -> None:
        """Make the present places of regions their home if their home server was unavailable or drained too long."""
        server = self.current.server(name)
        if name in self.desired.operator_settings.drained:
            since_ms = self._requests.drained_ms.setdefault(name, now_ms)
        elif server.state is ServerState.UP:
            return
        else:
            since_ms = server.since_ms
        if now_ms - since_ms > HOME_FOR_MS:
            for region in list(self.current.homes.astray[name]):
                place = self.current.places[region]
                if place.server is not None:
                    self.current.set_ideal(place, place.server, "")

    # --- invariants --------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        self.current.check_invariants()
        self.ledger.check_invariants()
        for region, place in self.current.places.items():
            assert place.owner == self.ledger.rows.get(region), "S2"
            if place.phase in (Phase.CLOSING, Phase.OPENING, Phase.LEAVING, Phase.OPEN):
                assert place.owner is not None, "S1"
                assert self.ledger.durable[region].epoch == place.owner.epoch, "S1"
            if place.phase in (Phase.OPENING, Phase.OPEN, Phase.CHANGING) and place.owner is not None:
                assert place.owner.source is None, "S1"
            if place.phase is Phase.CLOSING:
                assert place.owner is not None, "S2"
                assert place.owner.source is not None, "S2"
