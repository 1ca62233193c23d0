"""(pure) The state of a cluster at its master: events in, outputs out.

    events    joined, hello, opened, closed, failed, unopened, loads, silent, fenced; written, not_written, unsound,
              sound; created, removed, changed, change_failed, pause_table_transitions, released; add_request, tick,
              begin
    outputs   Write, NotifyServer, Fence, Split, Merge, RemoveLog, Answer, Wake, in the order of their execution

A region's route to another owner, whatever the reason (Close and Open go out as NotifyServer):

    plan: Give -> Write its next row -> written -> Close to the source -> closed -> Open to the owner -> opened
                                        the source is fenced, or has none: Open at once

The row is on disk before anything pauses.  When the region is open, its settled row goes out with the next write.

Invariants (``check_invariants``; those of ``placement`` and ``owner_ledger`` with them):
    S1. (region, epoch) is on disk before an owner is notified (C3).  An owner is asked to open a region only when every
        earlier one has closed it, has failed to open it or is fenced (C2).
    S2. A region has one transition at a time, and its phase says which.
    S3. A log is removed only when no row names it (C6).

The planner runs after every event.  An event costs O(its regions): a server's death those of the server, a report one.

Knows nothing of files, processes, sockets and clocks: the shell around it carries outputs out and reports events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from columnar.master.catalogue_rows import OperatorSettings
from columnar.master.instructions import (
    DECISIONS_KEPT,
    Close,
    Decision,
    Fence,
    Give,
    Instruction,
    Merge,
    Output,
    Plan,
    Prefer,
    Reason,
    RemoveLog,
    Request,
    Split,
    Throttles,
    Wake,
)
from columnar.master.owner_ledger import OwnerLedger
from columnar.master.placement import Current, Desired, Phase, Place, ServerState, score
from columnar.master.plan_draft import Chance
from columnar.master.planner import is_large, plan
from columnar.master.requests import Requests, regions_changed
from columnar.master.transitions import Transitions
from columnar.model.owner import Incarnation, Owner, first_owner
from columnar.model.owner_messages import RegionRates, Segments
from columnar.model.region_info import RegionInfo

PLAN_INTERVAL_MS: Final = 1_000  # between two plans without an event
NOTIFY_AGAIN_MS: Final = 5_000  # after a notification without a report
NOTIFY_AGAIN_REGIONS: Final = 100  # regions, at one tick
UNWRITABLE_MS: Final = 1_000  # after a write that failed
HOME_FOR_MS: Final = 10 * 60_000  # the regions of an unavailable or drained server remain its own this long
Planner: TypeAlias = Callable[[Desired, Current, int, Chance], Plan]


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

        ``planner``: a shell that measures passes one that calls ``plan``.
        """
        self.current = Current()
        self.desired = Desired(operator_settings, throttles or Throttles())
        self.decisions: deque[Decision] = deque(maxlen=DECISIONS_KEPT)
        self.decisions_made = 0  # since the start
        self.remarks: tuple[str, ...] = ()  # of the last plan: what cannot be done
        self._rng = rng
        self._plan = planner
        self._has_begun = False
        self._is_write_due = False
        self._wake_at_ms: int | None = None
        rows: dict[int, Owner] = {}
        self._infos: dict[int, RegionInfo] = {}
        for info, owner in regions:
            self._add(info, owner, Phase.OFFLINE if info.region_id in operator_settings.unassigned else Phase.HOMELESS)
            if owner is not None:
                rows[info.region_id] = owner
        self.ledger = OwnerLedger(rows, sealed)
        self._transitions = Transitions(self.desired, self.current, self.ledger)
        self._outputs = self._transitions.outputs  # one list, in order
        self.tallies = self._transitions.tallies
        self._requests = Requests(self.desired, self.current, self._outputs)

    def _add(self, info: RegionInfo, owner: Owner | None, phase: Phase) -> Place:
        place = Place(info, owner, phase)
        self._infos[info.region_id] = info
        self.current.add_place(place)
        if owner is not None:
            self.current.set_ideal(place, owner.server.name, "")
        return place

    # --- servers -----------------------------------------------------------------------------------

    def begin_planning(self, now_ms: int) -> list[Output]:
        """Begin to plan: every living server has said hello, and each other incarnation that a row names is fenced."""
        self._has_begun = True
        for place in self.current.places.values():
            place.since_ms = now_ms  # else since the clock's beginning
        self.current.is_beginning = True
        self.current.changed_ms = now_ms
        outputs = self._done(now_ms)
        self.current.is_beginning = False
        return outputs

    def joined(self, server: Incarnation, now_ms: int, weight: float = 1.0) -> list[Output]:
        """The incarnation was started."""
        found = self.current.server(server.name)
        found.incarnation, found.state, found.since_ms, found.weight = server, ServerState.STARTING, now_ms, weight
        found.began()
        return self._done(now_ms)

    def hello(
        self,
        server: Incarnation,
        serving: Mapping[int, int],
        closed: Mapping[int, tuple[int, bool]],
        now_ms: int,
    ) -> list[Output]:
        """Handle a connection of the server, perhaps a repeated one.

        ``serving``: epochs by region.  ``closed``: the last epoch that it gave up, and whether its log may hold
        records that the store lacks.
        """
        found = self.current.server(server.name)
        if found.incarnation != server or found.state in (ServerState.FENCING, ServerState.DOWN):
            return []
        if found.state is not ServerState.UP:
            found.state, found.since_ms, found.was_up = ServerState.UP, now_ms, True
            self.current.changed_ms = now_ms
        for region, (epoch, is_behind) in closed.items():
            self._transitions.closed(server, region, epoch, is_behind, now_ms)
        for region, epoch in serving.items():
            self._transitions.opened(server, region, epoch, now_ms)
        for region in self.current.in_transition:
            if self.current.places[region].phase is not Phase.WRITING:
                self._transitions.notify_owner_again(self.current.places[region], server, now_ms)
        return self._done(now_ms)

    def silent(self, server: Incarnation, why: str, now_ms: int) -> list[Output]:
        """Mark the server as one to be fenced: it gets no more notifications."""
        self._silence(server, why, now_ms)
        return self._done(now_ms)

    def _silence(self, server: Incarnation, why: str, now_ms: int) -> None:
        found = self.current.servers.get(server.name)
        if found is not None and found.incarnation == server and found.state is not ServerState.DOWN:
            found.state, found.since_ms = ServerState.FENCING, now_ms
            self._decide(Fence(server, why), now_ms)
            self._outputs.append(Fence(server, why))

    def fenced(
        self,
        server: Incarnation,
        segments: Segments | None,
        named: Iterable[tuple[int, int]],
        now_ms: int,
        asked: bool = False,
        opened: Collection[int] = (),
    ) -> list[Output]:
        """Handle a server that answers nothing any more; its log is sealed; ``segments`` None: the log is damaged.

        ``named``: regions and epochs in the log's heads.  ``asked``: an operator stopped it, which is no death.
        ``opened``: regions that it was opening when it died, or had opened a moment before.
        """
        if self.ledger.is_fenced(server):
            return []
        self.ledger.fenced(server, segments, named)
        found = self.current.server(server.name)
        died_ms = found.since_ms if found.state is ServerState.FENCING else now_ms
        if found.incarnation == server:
            found.state, found.since_ms = ServerState.DOWN, now_ms
        self.current.changed_ms = now_ms
        if not asked and self._has_begun:
            if found.was_up or found.incarnation != server:  # a start that failed had no regions
                found.died(now_ms)
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
        return self._done(now_ms)

    # --- reports of servers ------------------------------------------------------------------------

    def opened(self, server: Incarnation, region: int, epoch: int, now_ms: int) -> list[Output]:
        """Handle a server that serves the region, with all logs replayed.  Also the answer to ``Renumber``."""
        self._transitions.opened(server, region, epoch, now_ms)
        return self._done(now_ms)

    def closed(
        self, server: Incarnation, region: int, epoch: int, now_ms: int, is_behind: bool = False
    ) -> list[Output]:
        """Handle a server that refuses the region at that epoch for ever.

        ``is_behind``: its log may hold records that the store lacks.
        """
        self._transitions.closed(server, region, epoch, is_behind, now_ms)
        return self._done(now_ms)

    def failed(
        self, server: Incarnation, region: int, epoch: int, why: str, is_damaged: bool, now_ms: int
    ) -> list[Output]:
        """The server could not open the region, and refuses it at that epoch for ever."""
        self._transitions.failed(server, region, epoch, why, is_damaged, now_ms)
        return self._done(now_ms)

    def unopened(
        self, server: Incarnation, region: int, epoch: int, why: str, is_damaged: bool, now_ms: int
    ) -> list[Output]:
        """The server owns the region and cannot open its store."""
        self._transitions.unopened(server, region, epoch, why, is_damaged, now_ms)
        return self._done(now_ms)

    def loads(self, server: Incarnation, rates: Sequence[RegionRates], now_ms: int) -> list[Output]:
        current = self.current
        up = [one.weight for one in current.servers.values() if one.state is ServerState.UP]
        share = current.load / max(1.0, sum(up))
        for one in rates:
            place = current.places.get(one.region)
            if place is None or place.owner is None or place.owner.server != server:
                continue
            current.rate(place, score(one), now_ms)
            place.reads_per_s, place.writes_per_s = one.reads_per_s, one.writes_per_s
            place.deliveries_per_s = one.deliveries_per_s
            place.size_bytes, place.limit_bytes = one.size_bytes, one.limit_bytes
            current.set_write_fault(place, one.write_fault)
            if is_large(place, share):
                current.large[one.region] = None
            else:
                current.large.pop(one.region, None)
        return self._done(now_ms)

    # --- writes ------------------------------------------------------------------------------------

    def row_written(self, number: int, now_ms: int) -> list[Output]:
        outcome = self.ledger.row_written(number)
        self._outputs += [RemoveLog(server) for server in outcome.forgotten]
        self._requests.row_written(number)
        for region in outcome.regions:
            place = self.current.places[region]
            if place.phase is Phase.WRITING:
                self._transitions.advance(place, now_ms)
        return self._done(now_ms)

    def not_written(self, number: int, now_ms: int) -> list[Output]:
        """The rows of the write are not on disk, or were taken back."""
        outcome = self.ledger.not_written(number)
        self.current.catalogue.unwritable_until_ms = now_ms + UNWRITABLE_MS
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
        return self._done(now_ms)

    def unsound(self, failure: str, now_ms: int) -> list[Output]:
        """Note that the catalogue cannot be written until ``sound``; writes under way end after that."""
        self.current.catalogue.unsound(failure, now_ms)
        self._requests.unsound(self.current.catalogue.remark(now_ms))
        return self._done(now_ms)

    def sound(self, now_ms: int) -> list[Output]:
        """The catalogue's disk equals the catalogue in memory again."""
        self.current.catalogue.sound()
        self._transitions.try_again(now_ms, all_at_once=True)  # the disk takes writes again
        return self._done(now_ms)

    # --- changes of tables -------------------------------------------------------------------------

    def created(self, infos: Sequence[RegionInfo], now_ms: int) -> list[Output]:
        """Regions of a new table, in the catalogue without an owner."""
        for info in infos:
            self._add(info, None, Phase.HOMELESS).since_ms = now_ms
        return self._done(now_ms)

    def removed(self, regions: Iterable[int], now_ms: int) -> list[Output]:
        """The catalogue does not have them any more."""
        for region in regions:
            self._remove(region)
        return self._done(now_ms)

    def _remove(self, region: int) -> None:
        if region in self.current.places:
            self.current.remove(region)
            self.tallies.stays_closed(region)
            self.ledger.drop(region)
            del self._infos[region]

    def successor_owner(self, region: int) -> Owner:
        """The owner row of each region that a split or merge of ``region`` makes: for the commit's write."""
        owner = self.current.places[region].owner
        assert owner is not None, "it is changed by its owner"
        return first_owner(owner.server)

    def changed(self, gone: Sequence[int], fresh: Sequence[RegionInfo], now_ms: int) -> list[Output]:
        """A split or a merge is committed, with ``successor_owner`` in the rows of ``fresh``."""
        old = self.current.places[gone[0]]
        row, ideal, load = self.successor_owner(gone[0]), old.ideal, sum(self.current.places[one].load for one in gone)
        self._requests.change_ended(gone, None)
        for region in gone:
            self._remove(region)
        for info in fresh:
            place = self._add(info, row, Phase.OPEN)
            self.ledger.add_written(info.region_id, row)
            place.since_ms = now_ms
            self.current.set_server(place, row.server.name)
            self.current.set_ideal(place, ideal, "")
            self.current.set_load(place, load / len(fresh))
            self._transitions.serves_on(place, now_ms)
        return self._done(now_ms)

    def change_failed(self, regions: Sequence[int], why: str, now_ms: int) -> list[Output]:
        """The old regions serve on."""
        self._requests.change_ended(regions, why)
        for region in regions:
            place = self.current.places.get(region)
            if place is None or place.phase is not Phase.CHANGING:
                continue
            self.current.end_change(region)
            place.unsplit_bytes = place.size_bytes
            self._transitions.serves_on(place, now_ms)
        return self._done(now_ms)

    def pause_table_transitions(self, table: str, now_ms: int) -> list[Output]:
        """The table is being copied: no transition of its regions begins."""
        self.current.paused_tables.add(table)
        return self._done(now_ms)

    def released(self, table: str, now_ms: int) -> list[Output]:
        self.current.paused_tables.discard(table)
        return self._done(now_ms)

    # --- people and time ---------------------------------------------------------------------------

    def add_request(self, number: int, request: Request, now_ms: int) -> list[Output]:
        """``number``: of the request, for its ``Answer``."""
        self._requests.add_request(number, request, now_ms)
        return self._done(now_ms)

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
        for name in list(self.current.astray):
            self._give_up_home(name, now_ms)
        self._is_write_due = self._is_write_due or self.ledger.has_unsent
        return self._done(now_ms)

    def _give_up_home(self, name: str, now_ms: int) -> None:
        """Make the present places of regions their home if their server was unavailable too long."""
        server = self.current.server(name)
        if name in self.desired.operator_settings.drained:
            since_ms = self._requests.drained_ms.setdefault(name, now_ms)
        elif server.state is ServerState.UP:
            return
        else:
            since_ms = server.since_ms
        if now_ms - since_ms > HOME_FOR_MS:
            for region in list(self.current.astray[name]):
                place = self.current.places[region]
                if place.server is not None:
                    self.current.set_ideal(place, place.server, "")

    # --- plans -------------------------------------------------------------------------------------

    def _done(self, now_ms: int) -> list[Output]:
        """Plan, send what has to be written, and return all outputs."""
        wake_at_ms = now_ms + PLAN_INTERVAL_MS
        for _ in range(2):  # moves to servers that balance prefers begin at once
            if not self._has_begun:
                break
            made = self._plan(self.desired, self.current, now_ms, self._rng)
            if made.has_balanced:
                self.current.balanced_ms = now_ms
            if made.remarks or made.has_balanced:
                self.remarks = made.remarks
            wake_at_ms = min(wake_at_ms, made.wake_at_ms or wake_at_ms)
            for instruction in made.instructions:
                self._carry_out(instruction, now_ms)
            if not any(isinstance(one, Prefer) for one in made.instructions):
                break
        self._requests.answer_ended_requests(now_ms)
        is_due = (
            self._is_write_due or self._transitions.is_urgent or self._requests.operator_settings_to_write is not None
        )
        if is_due and self._has_begun and now_ms >= self.current.catalogue.unwritable_until_ms:
            self._send_write()
        if self._wake_at_ms is None or not now_ms < self._wake_at_ms <= wake_at_ms:
            self._wake_at_ms = wake_at_ms
            self._outputs.append(Wake(wake_at_ms))
        outputs = list(self._outputs)
        self._outputs.clear()
        return outputs

    def _send_write(self) -> None:
        write = self.ledger.take_write(self._infos, self._requests.operator_settings_to_write)
        self._requests.sent(write.number)
        self._is_write_due = False
        self._transitions.is_urgent = False
        self._outputs.append(write)

    def _decide(self, what: Instruction | Fence, now_ms: int) -> None:
        self.decisions.append(Decision(now_ms, what))
        self.decisions_made += 1

    def _carry_out(self, instruction: Instruction, now_ms: int) -> None:
        self._decide(instruction, now_ms)
        if isinstance(instruction, Give):
            self._give(instruction, now_ms)
        elif isinstance(instruction, Prefer):
            place = self.current.places[instruction.region]
            self.current.set_ideal(place, instruction.server, instruction.why)
        elif isinstance(instruction, Close):
            self._transitions.close(self.current.places[instruction.region], instruction.why, now_ms)
        elif isinstance(instruction, Split | Merge):
            self._requests.change_begun(instruction)
            regions = regions_changed(instruction)
            for region in regions:
                place = self.current.places[region]
                assert place.server is not None, "it is open"
                place.partner = next((one for one in regions if one != region), None)
                self.current.begin_change(region, place.server)
                self.current.set_phase(place, Phase.CHANGING, now_ms)
            self._outputs.append(instruction)

    def _give(self, give: Give, now_ms: int) -> None:
        place = self.current.places[give.region]
        server = self.current.servers[give.server].incarnation
        assert server is not None, "it is up"
        by_hand = self._requests.is_by_hand(give)
        if by_hand:
            place.by_hand_ms = now_ms
        elif place.phase is Phase.OPEN and give.server == place.ideal and place.why_ideal:
            place.settled_ms = now_ms
        # A region that was tried would else go home at once, to a server that cannot open it, perhaps.
        is_chosen = give.reason in (Reason.FAILURE, Reason.ASSIGNED)
        if by_hand or is_chosen or place.ideal is None:
            self.current.set_ideal(place, give.server, "")
        place.why_ideal = "" if give.server == place.ideal else place.why_ideal
        self._transitions.give(place, server, give.why, give.reason, now_ms)

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
