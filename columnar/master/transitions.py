"""(pure) Transitions: the steps of a region from one owner to the next.

    give      the region's next row is to be written            WRITING
    advance   the row is on disk: the source is asked to close  CLOSING
              the source has closed it, or is fenced            OPENING: the owner is asked to open it
    opened    the owner serves it, with all logs replayed       OPEN, and its settled row is to be written
    unopened  the owner said that it serves, but cannot open it LEAVING: the owner gives it up first
    orphan    its owner cannot open it, or is gone              HOMELESS; OFFLINE if an operator wants it closed;
                                                                FAILED_OPEN after too many tries, or if it is damaged
    try_again it is FAILED_OPEN, and its host was the cause     HOMELESS, after growing pauses, or when another region
                                                                opened that had failed for such a cause
    died_opening  its owner died, perhaps of opening it         counts as a try; regions that two owners died of are
                                                                opened one at a time, to find the region at fault; after
                                                                ``DEATHS_DEADLY`` deaths it is not opened any more

If the row's ``unreplayed_logs`` or its epoch change during the transition, the row goes to disk before the owner is
notified.  The epoch rises with the folder's generation.  Each step checks which servers are alive now, so a repeated
or late step is harmless.

Knows nothing of plans, requests and writes; ``cluster_state`` carries its outputs out and reports to it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from columnar.master.instructions import Close, NotifyServer, Open, Output, Reason, Renumber
from columnar.master.owner_ledger import End, OwnerLedger
from columnar.master.placement import PROVEN_MS, Current, Desired
from columnar.master.placement_records import NO_ATTEMPTS, Phase, Place
from columnar.model.histogram import Histogram
from columnar.model.owner import Incarnation, Owner, OwnershipPeriod, moved, settled

RETRIED_AT_ONCE: Final = 100  # regions, at one tick
CLOSING_MS: Final = 120_000  # a server that takes longer to close a region is fenced; a compaction may take a minute


class Tallies:
    """Tallies of a master: how often regions got a new owner, and how long they were without an owner.

    A pause begins when the owner is asked to close the region, is found dead or says that it cannot open it, and ends
    when the next owner serves.  A region that stays closed has no pause.

    Knows nothing of clocks and of the readers of the tallies.

    Owned by the loop.
    """

    def __init__(self) -> None:
        self.moves: dict[Reason, int] = {}  # completed moves
        self.pauses: dict[Reason, Histogram] = {}
        self._paused_ms: dict[int, int] = {}  # region that no server serves -> since when

    def paused(self, region: int, now_ms: int) -> None:
        """Begin a pause, unless one has begun already: a pause lasts over several failures of a region."""
        self._paused_ms.setdefault(region, now_ms)

    def stays_closed(self, region: int) -> None:
        self._paused_ms.pop(region, None)

    def opened(self, region: int, reason: Reason | None, now_ms: int) -> None:
        """End the pause.  ``reason``: why the region was given to this owner; None if the owner had it before."""
        paused_ms = self._paused_ms.pop(region, None)
        if reason is None or not reason.is_move:
            return
        self.moves[reason] = self.moves.get(reason, 0) + 1
        if paused_ms is not None:
            self.pauses.setdefault(reason, Histogram()).observe((now_ms - paused_ms) / 1_000)


class Transitions:
    def __init__(self, desired: Desired, current: Current, ledger: OwnerLedger) -> None:
        self.outputs: list[Output] = []
        self.is_urgent = False  # a region waits for its row to be written (``write_sent`` resets it)
        self._desired = desired
        self._current = current
        self._ledger = ledger
        self.tallies = Tallies()

    def give(self, place: Place, server: Incarnation, why: str, reason: Reason, now_ms: int) -> None:
        region, source = place.info.region_id, place.server
        owner = self._ledger.next_owner(region, server)
        place.give(owner, why, reason)
        self._ledger.set(region, owner)
        self._current.end_move(region)
        self._current.set_server(place, server.name)
        self._current.set_phase(place, Phase.WRITING, now_ms)
        if source is not None and source != server.name:
            self._current.begin_move(region, source, server.name)
        self.is_urgent = True

    def take_outputs(self) -> list[Output]:
        outputs = list(self.outputs)
        self.outputs.clear()
        return outputs

    def write_sent(self) -> None:
        """Note that the rows are being written."""
        self.is_urgent = False

    def close(self, place: Place, why: str, now_ms: int) -> None:
        """Have the owner close the region; no server opens it meanwhile."""
        place.leave(why)
        self._current.set_phase(place, Phase.LEAVING, now_ms)
        self.notify_owner(place, now_ms)

    def revert_owner_row(self, place: Place, now_ms: int) -> None:
        """Continue from the row on disk, because its next row could not be written."""
        region = place.info.region_id
        self._current.end_move(region)
        owner = self._ledger.revert(region)
        place.revert(owner)
        if owner is None:
            self.orphan(place, now_ms)
        else:
            self._current.set_server(place, owner.server.name)
            self.advance(place, now_ms)

    def advance(self, place: Place, now_ms: int) -> None:
        """Take the next step of a region whose row is on disk."""
        region, current = place.info.region_id, self._current
        assert place.owner is not None, "a row on disk"
        row = self._ledger.without_source(region, place.owner)
        if row is not place.owner:
            needs_disk = row.unreplayed_logs != place.owner.unreplayed_logs
            if row.generation != place.owner.generation and not self._ledger.is_fenced(row.server):
                # An earlier leader may have had the owner open the folder of the generation before, after a close of
                # the source that no later leader can learn of.  So the owner closes at this epoch, as its own source.
                row, needs_disk = moved(row, row.server), True
            place.replace_row(row)
            self._ledger.set(region, row)
            if needs_disk:
                self.is_urgent = True
                current.set_phase(place, Phase.WRITING, now_ms)
                return
        is_wanted = region not in self._desired.operator_settings.unassigned
        if self._has_ended(place) or (row.source is None and not is_wanted):
            self.orphan(place, now_ms)
        elif row.source is None:
            current.set_phase(place, Phase.OPENING, now_ms)
            self.notify_owner(place, now_ms)
        elif current.is_alive(row.source.server) and not current.is_alive(row.server):
            self.orphan(place, now_ms)  # the source continues to serve it
        else:
            current.set_phase(place, Phase.CLOSING, now_ms)
            self.tallies.paused(region, now_ms)
            self.notify_owner(place, now_ms)

    def _has_ended(self, place: Place) -> bool:
        row = place.owner
        assert row is not None, "a row"
        if row.source is not None:
            return False  # the owner's period has not begun
        return self._ledger.is_fenced(row.server) or self._ledger.has_ended(place.info.region_id, row.ownership_period)

    def notify_owner(self, place: Place, now_ms: int) -> None:
        """Notify the server that has the next step; a server without a link is notified at its hello."""
        region, row = place.info.region_id, place.owner
        assert row is not None, "it has an owner"
        place.note_notification(now_ms)
        if place.phase is Phase.CLOSING and row.source is not None:
            if self._current.is_alive(row.source.server):
                self.outputs.append(NotifyServer(row.source.server, Close(region, row.source.epoch, place.why)))
        elif place.phase is Phase.LEAVING:
            self.outputs.append(NotifyServer(row.server, Close(region, row.epoch, place.why)))
        elif place.phase is Phase.OPENING and self._current.is_alive(row.server):
            self._ledger.record_opener(region, row)
            has_it = any(period.server == row.server for period in row.unreplayed_logs)
            request = (
                Renumber(region, row, place.why) if has_it else Open(region, row, place.why, place.attempts.is_doubted)
            )
            self.outputs.append(NotifyServer(row.server, request))

    def notify_owner_again(self, place: Place, server: Incarnation, now_ms: int) -> None:
        """Notify the server again after its hello: earlier notifications may not have reached it."""
        row = place.owner
        if row is not None and server == (row.source.server if row.source is not None else row.server):
            self.notify_owner(place, now_ms)

    # --- reports -----------------------------------------------------------------------------------

    def opened(self, server: Incarnation, region: int, epoch: int, now_ms: int) -> None:
        place = self._expected(server, region, epoch)
        if place is None or place.owner is None:
            return
        self._current.end_move(region)
        self._current.set_phase(place, Phase.OPEN, now_ms)
        has_passed = place.attempts.rounds > 0
        if place.attempts.deaths:
            self._current.suspects[region] = None  # its server may die of it in a moment
        else:
            place.note_attempt(NO_ATTEMPTS)
        if has_passed:
            self.try_again(now_ms, all_at_once=True)
        self.tallies.opened(region, place.end_give(), now_ms)
        self._settle_row(place, place.owner)

    def _settle_row(self, place: Place, owner: Owner) -> None:
        row = settled(owner)
        if row != self._ledger.durable.get(place.info.region_id):
            place.replace_row(row)
            self._ledger.set(place.info.region_id, row)

    def serves_already(self, place: Place, now_ms: int) -> None:
        """Note that the owner serves the region since the time of an earlier master, so no request is due."""
        assert place.owner is not None, "it is named by the row"
        self._ledger.record_opener(place.info.region_id, place.owner)
        self._current.set_phase(place, Phase.OPEN, now_ms)
        self._settle_row(place, place.owner)

    def failed(self, server: Incarnation, region: int, epoch: int, why: str, is_damaged: bool, now_ms: int) -> None:
        place = self._expected(server, region, epoch)
        if place is None:
            return
        self._ledger.ended(region, OwnershipPeriod(server, epoch), End.FAILED)
        self._note_failure(place, why, is_damaged, now_ms)
        self.orphan(place, now_ms)

    def unopened(self, server: Incarnation, region: int, epoch: int, why: str, is_damaged: bool, now_ms: int) -> None:
        """Handle an owner that said that it serves the region and then cannot open it: the owner closes it first."""
        place = self._current.places.get(region)
        if place is None or place.owner is None or place.phase not in (Phase.OPENING, Phase.OPEN):
            return
        if place.owner.ownership_period != OwnershipPeriod(server, epoch) or not self._current.is_alive(server):
            return
        self._note_failure(place, why, is_damaged, now_ms)
        self.tallies.paused(region, now_ms)
        self.close(place, f"{server.name} cannot open it: {why}", now_ms)

    def _note_failure(self, place: Place, why: str, is_damaged: bool, now_ms: int) -> None:
        assert place.owner is not None, "it was told to open it"
        name = place.owner.server.name
        place.note_attempt(place.attempts.failed(name, why, is_damaged))
        if not is_damaged:
            self._current.servers[name].failures.could_not_open(place.info.region_id, now_ms)

    def died_opening(self, server: Incarnation, opened: Collection[int]) -> None:
        """Note that the server died while it opened these regions, or a moment later.

        That counts as a try of each region, and each may be the cause.
        """
        for region in opened:
            place = self._current.places.get(region)
            row = place.owner if place is not None else None
            if place is None or row is None or server not in (row.server, row.source and row.source.server):
                continue
            place.note_attempt(place.attempts.owner_died(server))

    def acquit(self, now_ms: int) -> None:
        """Forgive regions that servers have survived for PROVEN_MS."""
        for region in list(self._current.suspects):
            place = self._current.places[region]
            if place.phase is not Phase.OPEN:
                del self._current.suspects[region]
            elif now_ms - place.since_ms >= PROVEN_MS:
                del self._current.suspects[region]
                place.note_attempt(NO_ATTEMPTS)

    def try_again(self, now_ms: int, *, all_at_once: bool = False) -> None:
        """Release regions that stayed closed for a cause that may have passed, once their pauses are over.

        ``all_at_once`` ends the pauses.  At most RETRIED_AT_ONCE regions are released now, the rest at later ticks.
        """
        current = self._current
        due = [current.places[region] for region in current.failed]
        due = [one for one in due if one.attempts.is_due(now_ms, all_at_once=all_at_once)]
        for place in due[:RETRIED_AT_ONCE]:
            place.note_attempt(place.attempts.due_at(None))
            current.set_phase(place, Phase.HOMELESS, now_ms)
        for place in due[RETRIED_AT_ONCE:]:
            place.note_attempt(place.attempts.due_at(now_ms))

    def _expected(self, server: Incarnation, region: int, epoch: int) -> Place | None:
        """Return the region if that server is opening it at that epoch, else None."""
        place = self._current.places.get(region)
        if place is None or place.owner is None or place.phase is not Phase.OPENING:
            return None
        is_its = place.owner.ownership_period == OwnershipPeriod(server, epoch) and self._current.is_alive(server)
        return place if is_its else None

    def closed(self, server: Incarnation, region: int, epoch: int, is_behind: bool, now_ms: int) -> None:
        place = self._current.places.get(region)
        period = OwnershipPeriod(server, epoch)
        if place is None or place.owner is None or self._ledger.is_fenced(server):
            return
        if period not in (place.owner.ownership_period, place.owner.source):
            return
        self._ledger.ended(region, period, End.UNREPLAYED if is_behind else End.CLOSED)
        if place.phase is Phase.WRITING or place.phase is Phase.CHANGING:
            return  # the end of the write, or of the change, continues from here
        if period == place.owner.source:
            self.advance(place, now_ms)
        else:
            self.orphan(place, now_ms)

    def stuck(self, now_ms: int) -> list[tuple[Incarnation, str]]:
        """Return living servers that have not closed a region for CLOSING_MS, with the reason to fence them.

        Until such a server is fenced, no other server may open the region.
        """
        found = {}
        for region in self._current.in_transition:
            place = self._current.places[region]
            row = place.owner
            if place.phase not in (Phase.CLOSING, Phase.LEAVING) or now_ms - place.since_ms < CLOSING_MS or row is None:
                continue
            server = row.server if row.source is None else row.source.server
            if self._current.is_alive(server):
                found[server] = f"it has not closed region {place.info.encoded} for {CLOSING_MS // 1000} s"
        return list(found.items())

    def owner_fenced(self, place: Place, died_ms: int, now_ms: int) -> None:
        self.tallies.paused(place.info.region_id, died_ms)
        if place.phase is not Phase.WRITING and place.phase is not Phase.CHANGING:
            self.orphan(place, now_ms)

    def serves_on(self, place: Place, now_ms: int) -> None:
        """Continue to serve a region after its split or merge was committed or called off."""
        self._current.set_phase(place, Phase.OPEN, now_ms)
        if self._has_ended(place):
            self.orphan(place, now_ms)

    def orphan(self, place: Place, now_ms: int) -> None:
        region = place.info.region_id
        self._current.end_move(region)
        self._current.set_server(place, None)
        phase = Phase.HOMELESS
        if region in self._desired.operator_settings.unassigned:
            phase = Phase.OFFLINE
        elif place.attempts.is_hopeless:
            phase = Phase.FAILED_OPEN
        elif place.attempts.is_exhausted:
            phase = Phase.FAILED_OPEN
            place.note_attempt(place.attempts.paused(now_ms))
        if phase is not Phase.HOMELESS:
            self.tallies.stays_closed(region)
        self._current.set_phase(place, phase, now_ms)
