"""(pure) The start of a master while servers live: what it makes of the regions that they have.

    the row's owner serves the region at the row's epoch     OPEN, without a message; the settled row is to be written
    the owner leaves it, or an operator wants it closed      LEAVING: the owner is asked to close it, perhaps again
    the owner has closed it                                  HOMELESS, or OFFLINE if an operator wants it closed
    the owner lives, and has none of this                    OPENING: it is asked to open it, perhaps again
    the row's source lives and has not closed it             CLOSING: the source is asked to close it, perhaps again
    the source has closed it                                 as after that report
    neither owner nor source lives                           as the state was built: HOMELESS or OFFLINE

A server is fenced if it has a region at an epoch that the region's row does not give to it.  Such a region gets its
next owner when the server has ended, at an epoch above that of the server.

The requests of an earlier master that are repeated have no further effect at a server (``regions.life.region_state``).
An owner that serves at the row's epoch proves that its source has closed: the earlier master asked it after that.

Knows nothing of links, writes and plans.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from columnar.master.owner_ledger import End, OwnerLedger
from columnar.master.placement import Current, Desired
from columnar.master.placement_records import Phase, Place
from columnar.master.transitions import Transitions
from columnar.model.owner import Incarnation, Owner, OwnershipPeriod


@dataclass(frozen=True, slots=True)
class ServerRegions:
    """The regions that a server had when it said hello, by id: epochs, and for ``closed`` whether its log is needed."""

    serving: Mapping[int, int]
    closed: Mapping[int, tuple[int, bool]]
    leaving: Mapping[int, int]


class Resumption:
    def __init__(self, desired: Desired, current: Current, ledger: OwnerLedger, transitions: Transitions) -> None:
        self._desired = desired
        self._current = current
        self._ledger = ledger
        self._transitions = transitions
        self._reported: dict[Incarnation, ServerRegions] = {}  # by living server; the last hello counts

    def note_hello(self, server: Incarnation, regions: ServerRegions) -> None:
        self._reported[server] = regions

    def note_end(self, server: Incarnation) -> None:
        self._reported.pop(server, None)

    def resume_regions(self, now_ms: int) -> list[tuple[Incarnation, str]]:
        """Give every region its phase.  Returns the servers to fence, each with the reason.

        If there are any, rows that correct those on disk are to be written.
        """
        contradicting = self._find_contradicting()
        for place in self._current.places.values():
            if place.info.region_id not in contradicting and place.owner is not None:
                self._resume_place(place, place.owner, now_ms)
        found = {}
        for region, claims in contradicting.items():
            place = self._current.places[region]
            for claim in claims:
                found[claim.server] = _contradiction(place, claim)
            self._wait_for_end(place, claims, now_ms)
        self._reported.clear()
        return list(found.items())

    # --- what contradicts the rows -------------------------------------------------------------------

    def _find_contradicting(self) -> dict[int, list[OwnershipPeriod]]:
        """Return by region the periods that servers claim and the region's row does not give to them."""
        found: dict[int, list[OwnershipPeriod]] = {}
        for server, regions in self._reported.items():
            for region, epoch in (*regions.serving.items(), *regions.leaving.items()):
                place, claim = self._current.places.get(region), OwnershipPeriod(server, epoch)
                if place is not None and not self._is_given(place.owner, region, claim):
                    found.setdefault(region, []).append(claim)
        return found

    def _is_given(self, row: Owner | None, region: int, claim: OwnershipPeriod) -> bool:
        if row is None:
            return False
        if row.ownership_period == claim:
            return True
        if self._serves(region, row.ownership_period):
            return False
        periods = (row.ownership_period, row.source)
        return any(one is not None and one.server == claim.server and claim.epoch <= one.epoch for one in periods)

    def _wait_for_end(self, place: Place, claims: list[OwnershipPeriod], now_ms: int) -> None:
        """Let the region wait for the end of the server that has it, unless the row's owner serves it."""
        region, row = place.info.region_id, place.owner
        if row is not None and self._serves(region, row.ownership_period):
            self._resume_place(place, row, now_ms)
            return
        last = max(claims, key=lambda claim: claim.epoch)
        if row is None:
            corrected = Owner(last.server, last.epoch)
        else:
            corrected = replace(row, server=last.server, epoch=max(last.epoch, row.epoch), source=None)
        self._current.set_server(place, last.server.name)
        place.replace_row(corrected)
        self._ledger.set(region, corrected)
        self._current.set_phase(place, Phase.WRITING, now_ms)

    # --- what agrees with them -----------------------------------------------------------------------

    def _resume_place(self, place: Place, row: Owner, now_ms: int) -> None:
        region, period = place.info.region_id, row.ownership_period
        is_wanted = region not in self._desired.operator_settings.unassigned
        if is_wanted and self._serves(region, period):
            self._current.set_server(place, row.server.name)
            self._transitions.serves_already(place, now_ms)
            return
        has_source = row.source is not None and row.source.server in self._reported
        if row.source is not None and has_source:
            has_source = not self._note_close(region, row.source)
        if row.server not in self._reported and (row.source is None or row.source.server not in self._reported):
            return
        if self._has_closed(region, period) and not has_source:
            self._drop_source(place, row)
            self._note_close(region, period)
            self._transitions.orphan(place, now_ms)
            return
        self._current.set_server(place, row.server.name)
        is_leaving = row.server in self._reported and self._reported[row.server].leaving.get(region) == row.epoch
        if row.server in self._reported and not has_source and (is_leaving or not is_wanted):
            self._transitions.close(place, "asked for" if not is_wanted else "it is being closed", now_ms)
        else:
            self._transitions.advance(place, now_ms)

    def _drop_source(self, place: Place, row: Owner) -> None:
        """Drop a source that has ended: the ledger has one end of a region, and that of the owner comes next."""
        rest = self._ledger.without_source(place.info.region_id, row)
        if rest is not row:
            place.replace_row(rest)
            self._ledger.set(place.info.region_id, rest)

    def _serves(self, region: int, period: OwnershipPeriod) -> bool:
        regions = self._reported.get(period.server)
        return regions is not None and regions.serving.get(region) == period.epoch

    def _has_closed(self, region: int, period: OwnershipPeriod) -> bool:
        regions = self._reported.get(period.server)
        return regions is not None and regions.closed.get(region, (0, False))[0] >= period.epoch

    def _note_close(self, region: int, period: OwnershipPeriod) -> bool:
        """Note the close of the period if its server has closed the region.  Returns whether it has."""
        if not self._has_closed(region, period):
            return False
        _, is_behind = self._reported[period.server].closed[region]
        self._ledger.ended(region, period, End.UNREPLAYED if is_behind else End.CLOSED)
        return True


def _contradiction(place: Place, claim: OwnershipPeriod) -> str:
    row = place.owner
    named = "no owner" if row is None else f"{row.server} at epoch {row.epoch}"
    return f"it has region {place.info.encoded} at epoch {claim.epoch}, and the catalogue names {named}"
