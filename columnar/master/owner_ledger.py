"""(pure) The ledger of owner rows (in memory, being written and on disk), and of the logs of dead incarnations.

    set          takes a region's next row, which goes out with the next ``take_write``
    take_write   returns the rows that are not on disk, as one write; writes are carried out in the order of their
                 numbers
    row_written  the rows of a write are on disk: their owners may be notified
    not_written  the rows of a write are not on disk, or were undone

Invariants (``check_invariants``, C2 and C3 of the cluster):
    L1. The epoch of a region's row never falls below the epoch on disk; no owner is notified of an epoch before that
        epoch is on disk.
    L2. An incarnation is asked to open a region only if each earlier incarnation that was asked to open it has closed
        it, has failed to open it, or is fenced.
    L3. A dead incarnation is forgotten only if no row, in memory or on disk, names it.

Knows nothing of servers, of their notifications, nor of why a region gets a new owner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from columnar.master.catalogue_rows import OperatorSettings
from columnar.master.instructions import Write
from columnar.model.owner import (
    Incarnation,
    Owner,
    OwnershipPeriod,
    first_owner,
    given_up,
    moved,
    redirected,
    renumbered,
    source_closed,
    source_fenced,
    taken_from_dead,
)
from columnar.model.owner_messages import Segments
from columnar.model.region_info import RegionInfo


class End(Enum):
    """The way in which a living owner has ended its ownership period."""

    CLOSED = auto()
    UNREPLAYED = auto()  # closed, but the owner's log may hold writes that the store lacks
    FAILED = auto()  # the owner could not open the region


@dataclass(slots=True)
class _Sent:
    owners: list[tuple[int, Owner]]
    sealed: dict[Incarnation, Segments]
    forgotten: tuple[Incarnation, ...]


@dataclass(slots=True)
class Outcome:
    """The consequences of a write's end, for the caller."""

    regions: list[int] = field(default_factory=list)  # regions whose newest row was in the write
    forgotten: tuple[Incarnation, ...] = ()


class OwnerLedger:
    def __init__(self, rows: Mapping[int, Owner], sealed: Mapping[Incarnation, Segments]) -> None:
        self.rows = dict(rows)
        self.durable = dict(rows)
        self._sealed = dict(sealed)
        self._named: Counter[Incarnation] = Counter()  # how many rows in memory and on disk name it
        for row in rows.values():
            self._count(row, 2)
        self._fenced: set[Incarnation] = set()
        self._ended_by_time: set[Incarnation] = set()  # fenced ones whose processes may still write to their folders
        self._logs: dict[Incarnation, frozenset[tuple[int, int]]] = {}  # the regions and epochs it names
        self._ends: dict[int, tuple[OwnershipPeriod, End]] = {}
        self._openers: dict[int, OwnershipPeriod] = {}  # asked to open the region; neither ended nor fenced
        self._unsent: dict[int, None] = {}
        self._seals_unsent: dict[Incarnation, Segments] = {}
        self._sent: dict[int, _Sent] = {}
        self._newest: dict[int, int] = {}  # region -> the last write under way that has its row
        self._number = 0
        self._unnamed: dict[Incarnation, None] = {}

    def _count(self, row: Owner, by: int) -> None:
        named = self._named
        named[row.server] += by
        if row.source is not None:
            named[row.source.server] += by
        for period in row.unreplayed_logs:
            named[period.server] += by
        if by < 0:
            for server in (row.server, *(period.server for period in row.unreplayed_logs)):
                self._note_if_unnamed(server)
            if row.source is not None:
                self._note_if_unnamed(row.source.server)

    def _note_if_unnamed(self, server: Incarnation) -> None:
        if self._named[server] <= 0:
            del self._named[server]
            if server in self._logs:
                self._unnamed[server] = None

    # --- facts -------------------------------------------------------------------------------------

    def is_fenced(self, server: Incarnation) -> bool:
        return server in self._fenced

    def fenced(
        self,
        server: Incarnation,
        segments: Segments | None,
        named: Iterable[tuple[int, int]],
        *,
        is_by_time: bool = False,
    ) -> None:
        """Note the sealed log of a fenced server.  ``named``: regions and epochs that the log's heads name.

        If ``segments`` is None, the log is damaged and is not sealed: each region that needs the log reads it again.
        ``is_by_time``: nobody reaped the server's process, so its regions get the next generation of their folders.
        """
        self._fenced.add(server)
        if is_by_time:
            self._ended_by_time.add(server)
        self._logs[server] = frozenset(named)
        if self._logs[server] and segments is not None and server not in self._sealed:
            self._seals_unsent[server] = self._sealed[server] = segments
        if server not in self._named:
            self._unnamed[server] = None

    def ended(self, region: int, period: OwnershipPeriod, end: End) -> None:
        self._ends[region] = (period, end)
        if self._openers.get(region) == period:
            del self._openers[region]

    def has_ended(self, region: int, period: OwnershipPeriod) -> bool:
        return self._ends.get(region, (None, None))[0] == period

    def record_opener(self, region: int, owner: Owner) -> None:
        before = self._openers.get(region)
        if before is not None and before.server != owner.server:
            assert self.is_fenced(before.server), f"L2: {before} has region {region}"
        assert self.durable[region].epoch >= owner.epoch, "L1"
        self._openers[region] = owner.ownership_period

    def in_log(self, region: int, period: OwnershipPeriod) -> bool:
        return (region, period.epoch) in self._logs.get(period.server, ())

    def next_owner(self, region: int, server: Incarnation) -> Owner:
        row = self.rows.get(region)
        if row is None:
            return first_owner(server)
        row = self.without_source(region, row)
        if row.source is not None:
            return renumbered(row) if row.source.server == server else redirected(row, server)
        period, end = self._ends.get(region, (None, End.FAILED))
        if period == row.ownership_period and end is not End.FAILED:
            return given_up(row, server, is_behind=end is End.UNREPLAYED)
        if period == row.ownership_period:
            return taken_from_dead(row, server, in_log=False)
        if self.is_fenced(row.server):
            in_log, is_by_time = self.in_log(region, row.ownership_period), row.server in self._ended_by_time
            return taken_from_dead(row, server, in_log=in_log, is_by_time=is_by_time)
        return moved(row, server)

    def without_source(self, region: int, row: Owner) -> Owner:
        """Return the row, without its source if the source has closed the region or is fenced.

        If the source was fenced by time, the row has the next generation.
        """
        source = row.source
        if source is None:
            return row
        period, end = self._ends.get(region, (None, End.FAILED))
        if period == source:
            return source_closed(row, is_behind=end is End.UNREPLAYED)
        if self.is_fenced(source.server):
            is_by_time = source.server in self._ended_by_time
            return source_fenced(row, in_log=self.in_log(region, source), is_by_time=is_by_time)
        return row

    # --- rows --------------------------------------------------------------------------------------

    def set(self, region: int, row: Owner) -> None:
        before = self.rows.get(region)
        assert before is None or row.epoch >= before.epoch, "L1"
        self.rows[region] = row
        self._count(row, 1)
        if before is not None:
            self._count(before, -1)
        self._unsent[region] = None

    def drop(self, region: int) -> None:
        """Remove the region, which the catalogue does not have any more."""
        for rows in (self.rows, self.durable):
            row = rows.pop(region, None)
            if row is not None:
                self._count(row, -1)
        for index in (self._ends, self._openers, self._unsent, self._newest):
            index.pop(region, None)

    def add_written(self, region: int, row: Owner) -> None:
        """Add a row that the catalogue has already."""
        assert region not in self.rows, "a new region"
        self.rows[region] = self.durable[region] = row
        self._openers[region] = row.ownership_period
        self._count(row, 2)

    # --- writes ------------------------------------------------------------------------------------

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent or self._seals_unsent or self._unnamed)

    def take_write(self, info_of: Callable[[int], RegionInfo], operator_settings: OperatorSettings | None) -> Write:
        self._number += 1
        owners = [(region, self.rows[region]) for region in self._unsent]
        gone = tuple(server for server in self._unnamed if server not in self._named)
        seals = {server: segments for server, segments in self._seals_unsent.items() if server not in gone}
        for region in self._unsent:
            self._newest[region] = self._number
        self._sent[self._number] = _Sent(owners, seals, gone)
        self._unsent, self._seals_unsent, self._unnamed = {}, {}, {}
        return Write(
            self._number,
            tuple((info_of(region), row) for region, row in owners),
            tuple(seals.items()),
            gone,
            operator_settings,
        )

    def row_written(self, number: int) -> Outcome:
        sent = self._sent.pop(number)
        outcome = Outcome([], sent.forgotten)
        for region, row in sent.owners:
            if region not in self.rows:
                continue  # dropped meanwhile
            before = self.durable.get(region)
            assert before is None or row.epoch >= before.epoch, "L1"
            self.durable[region] = row
            self._count(row, 1)
            if before is not None:
                self._count(before, -1)
            if self._newest.get(region) == number:
                del self._newest[region]
                if region not in self._unsent:
                    outcome.regions.append(region)
        for server in sent.forgotten:
            assert server not in self._named, "L3"
            self._logs.pop(server, None)
            self._sealed.pop(server, None)
        return outcome

    def not_written(self, number: int) -> Outcome:
        """Keep the newest rows of the write's regions in memory, to be written again or undone by ``revert``."""
        sent = self._sent.pop(number)
        outcome = Outcome()
        self._seals_unsent |= sent.sealed
        self._unnamed |= dict.fromkeys(sent.forgotten)
        for region, _ in sent.owners:
            if region in self.rows and self._newest.get(region) == number:
                del self._newest[region]
                self._unsent[region] = None
                outcome.regions.append(region)
        return outcome

    def revert(self, region: int) -> Owner | None:
        """Return to the row on disk, and return it.  Returns None if no row is on disk."""
        row, durable = self.rows.pop(region), self.durable.get(region)
        self._unsent.pop(region, None)
        if durable is not None:
            self.rows[region] = durable
            self._count(durable, 1)
        self._count(row, -1)
        return durable

    # --- invariants --------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        named: Counter[Incarnation] = Counter()
        for rows in (self.rows, self.durable):
            for row in rows.values():
                named.update([row.server, *(period.server for period in row.unreplayed_logs)])
                if row.source is not None:
                    named[row.source.server] += 1
        assert named == self._named, "L3"
        for server in named:
            assert server not in self._fenced or server in self._logs, f"L3: {server} is named and forgotten"
        for region, durable in self.durable.items():
            assert self.rows[region].epoch >= durable.epoch, "L1"
            opener = self._openers.get(region)
            assert opener is None or opener.epoch <= durable.epoch, "L1"
