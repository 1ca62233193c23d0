"""A check of a view, and its repair, at a gateway: one pass over each side, then a closer check of the differences.

    pass      digests of the contributions of all source rows, and of all members, are added up to a balance of each
              bucket; each group is also checked against its own members, as of one moment, so that lag is no fault
    again     a row that changed between its two reads makes its bucket unequal once; so only unequal buckets are added
              up again, until FEW are left, at most PASSES times, as writers may be too fast
    listing   in buckets that were unequal each time, each entry of either side is compared with the opposite side
    verdict   a row that differed is read, and read again after the present lag, until both sides are equal, or
              differ although no cell of the row changed between the two reads: then the row is wrong
    repair    the owner gives the row a new sequence, as for a change; its contributions are set as of that sequence,
              and withdrawn from groups that it is not in; then groups are repaired from their own members

A lasting difference makes its bucket unequal each time, whatever else changes in the bucket, so no such difference is
missed.

A check keeps in memory a balance and at most CANDIDATES rows and groups, however large the tables are.

Knows nothing of links: ``CheckOwners`` sends requests to the owners of regions.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from columnar.cluster.peer_requests import (
    EntriesSnapshot,
    Entry,
    GroupsFound,
    GroupsPart,
    ReadGroupMembers,
    ReadSourceRows,
    RepairGroup,
    SayAgain,
    SourceFound,
    SourcePart,
)
from columnar.errors import printable
from columnar.model.flow_status import MOST_FINDINGS, CheckReport, Finding
from columnar.model.mutation import RowMutation
from columnar.model.view_definition import View
from columnar.views.check_owners import CheckOwners
from columnar.views.contributions import Rules, Share, operation_of, rules_of
from columnar.views.digests import BLOCK, BUCKETS, Balance, Buckets

# --- rows on both sides ------------------------------------------------------------------------------


BATCH: Final = 500

T = TypeVar("T")

Row = tuple[int, bytes]  # a side of the view, and a row of its source
Place = tuple[bytes, bytes]  # group, member


@dataclass(frozen=True, slots=True)
class Both:
    """A source row on both sides: the contributions that it gives and that groups store, as hashes by place."""

    places: frozenset[Place]  # places that it contributes to or was seen in
    given: Mapping[Place, bytes]
    stored: Mapping[Place, bytes]  # an empty hash if the member cannot be read
    prints: tuple[bytes, ...]  # of the row and of the members
    member_prints: Mapping[Place, bytes]


class RowInspector:
    def __init__(self, table: str, sides: Sequence[Rules], owners: CheckOwners) -> None:
        """``table`` is the view's table."""
        self._table = table
        self._sides = sides
        self._owners = owners

    def row_of(self, member: bytes) -> Row:
        for side, rules in enumerate(self._sides):
            if member.startswith(rules.side):
                return side, member[len(rules.side) :]
        return 0, member  # of a side that is missing from the view: no row contributes it

    def member_of(self, row: Row) -> bytes:
        return self._sides[row[0]].side + row[1]

    async def rows(self, rows: Sequence[Row]) -> dict[Row, EntriesSnapshot]:
        found: dict[Row, EntriesSnapshot] = {}
        for side, rules in enumerate(self._sides):
            wanted = [name for number, name in rows if number == side and name]
            for some in parts_of(wanted):
                snapshots = await self._owners.request_snapshots(rules.table, some, self._of_rows(side, some))
                found |= {(side, name): snapshot for name, snapshot in zip(some, snapshots, strict=True)}
        return {row: found.get(row, EntriesSnapshot()) for row in rows}

    async def members(self, places: Sequence[Place]) -> dict[Place, EntriesSnapshot]:
        found: dict[Place, EntriesSnapshot] = {}
        for some in parts_of(list(dict.fromkeys(places))):
            groups = [group for group, _ in some]
            snapshots = await self._owners.request_snapshots(self._table, groups, self._of_members(some))
            found |= dict(zip(some, snapshots, strict=True))
        return found

    def _of_rows(self, side: int, rows: Sequence[bytes]) -> Callable[[Sequence[int]], ReadSourceRows]:
        return lambda numbers: ReadSourceRows(self._table, side, tuple(rows[number] for number in numbers))

    def _of_members(self, places: Sequence[Place]) -> Callable[[Sequence[int]], ReadGroupMembers]:
        return lambda numbers: ReadGroupMembers(self._table, tuple(places[number] for number in numbers))

    async def both(self, candidates: Mapping[Row, Iterable[bytes]]) -> dict[Row, Both]:
        """Read each row on both sides; ``candidates`` has each row with the groups in which it was seen."""
        found: dict[Row, Both] = {}
        for some in parts_of(list(candidates)):
            given = await self.rows(some)
            places = {row: self._places(row, given[row], candidates[row]) for row in some}
            stored = await self.members([place for several in places.values() for place in several])
            for row in some:
                found[row] = _both(given[row], {place: stored[place] for place in sorted(places[row])})
        return found

    def _places(self, row: Row, snapshot: EntriesSnapshot, groups: Iterable[bytes]) -> set[Place]:
        member = self.member_of(row)
        return {(group, member) for group in (*groups, *(entry[0] for entry in snapshot.entries))}


def _both(row: EntriesSnapshot, members: Mapping[Place, EntriesSnapshot]) -> Both:
    given = {(group, member): entry for group, member, entry in row.entries}
    stored = {place: snapshot.entries[0][2] for place, snapshot in members.items() if snapshot.entries}
    prints = (row.print, *(snapshot.print for snapshot in members.values()))
    return Both(
        frozenset(members), given, stored, prints, {place: snapshot.print for place, snapshot in members.items()}
    )


def parts_of(things: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the things in parts of BATCH."""
    return (things[first : first + BATCH] for first in range(0, len(things), BATCH))


CANDIDATES: Final = 100_000  # rows to read again, and groups, at most; the next check finds the rest
TRIES: Final = 20  # reads of a row that keeps changing
FEW: Final = 2_048  # unequal buckets, whose entries are compared one by one
PASSES: Final = 4  # over unequal buckets, at most; each also leaves buckets whose rows changed meanwhile


@dataclass(slots=True)
class _Found:
    """The outcome of passes and listing so far."""

    rows: int = 0
    rejected: int = 0
    groups: int = 0
    members: int = 0
    odd_groups: dict[bytes, str] = field(default_factory=dict)
    candidates: dict[Row, set[bytes]] = field(default_factory=dict)  # row -> groups that have or should have it

    def add_rows(self, rows: int, rejected: int) -> None:
        self.rows += rows
        self.rejected += rejected

    def add_groups(self, groups: int, members: int, wrong: Iterable[tuple[bytes, str]]) -> None:
        self.groups += groups
        self.members += members
        for group, why in wrong:
            if len(self.odd_groups) < CANDIDATES:
                self.odd_groups[group] = why


class ViewCheck:
    """A single check."""

    def __init__(self, view: View, table: str, owners: CheckOwners, advance: Callable[[int], None] = lambda _: None):
        """``table`` is the view's table; ``advance`` is called with the number of rows and members read so far."""
        self._view = view
        self._table = table
        self._owners = owners
        self._advance = advance
        self._sides = rules_of(view)
        self._inspector = RowInspector(table, self._sides, owners)
        self._read = 0

    async def run(self, *, repair: bool) -> CheckReport:
        found = _Found()
        unequal = await self._pass(found)
        for _ in range(PASSES):
            if unequal.count <= FEW:
                break
            unequal = await self._again(unequal)
        if unequal.count:
            buckets = unequal.pack()
            for side in range(len(self._sides)):
                await self._list_source(side, buckets, found)
            await self._list_members(buckets, found)
        wrong, unsure = await self._verdict(found.candidates)
        repaired = await self._repair(wrong, found.odd_groups) if repair else 0
        return CheckReport(
            self._view.name,
            found.rows,
            found.rejected,
            found.groups,
            found.members,
            tuple(self._findings(wrong, found.odd_groups))[:MOST_FINDINGS],
            len(wrong) + len(found.odd_groups),
            unsure,
            repaired,
        )

    # --- passes --------------------------------------------------------------------------------------

    async def _pass(self, found: _Found) -> Buckets:
        """Return the unequal buckets of a pass over all rows; add its counts and wrong groups to ``found``."""
        balance = Balance()
        for side in range(len(self._sides)):
            async for part in self._source_parts(side):
                balance.add(part.digest)
                found.add_rows(part.rows, part.rejected)
        async for groups in self._groups_parts():
            balance.subtract(groups.digest)
            found.add_groups(groups.groups, groups.members, groups.wrong)
            self._went(groups.members)
        return await _unequal(balance)

    async def _again(self, unequal: Buckets) -> Buckets:
        """Return the buckets of ``unequal`` that are still unequal, or again."""
        balance, buckets = Balance(), unequal.pack()
        for side in range(len(self._sides)):
            async for part in self._source_parts(side, buckets, is_summed=True):
                balance.add(part.digest)
        async for groups in self._groups_parts(buckets, is_summed=True):
            balance.subtract(groups.digest)
        return await _unequal(balance)

    async def _source_parts(
        self, side: int, buckets: bytes = b"", *, is_summed: bool = False
    ) -> AsyncIterator[SourceFound]:
        table, start = self._sides[side].table, b""  # type: str, bytes | None
        while start is not None:
            part = await self._owners.request_owner(
                table, start, SourcePart(self._table, side, start, buckets, is_summed)
            )
            yield part
            self._went(part.rows)
            start = part.next_row

    async def _groups_parts(self, buckets: bytes = b"", *, is_summed: bool = False) -> AsyncIterator[GroupsFound]:
        start, after = b"", b""  # type: bytes | None, bytes
        while start is not None:
            part = await self._owners.request_owner(
                self._table, start, GroupsPart(self._table, start, after, buckets, is_summed)
            )
            yield part
            start, after = part.next_row, part.after

    def _went(self, count: int) -> None:
        self._read += count
        self._advance(self._read)

    # --- listing -------------------------------------------------------------------------------------

    async def _list_source(self, side: int, buckets: bytes, found: _Found) -> None:
        """Note each source row with an entry that its group does not have."""
        async for part in self._source_parts(side, buckets):
            entries = [(row, entry) for row, several in part.entries for entry in several]
            stored = await self._inspector.members([(group, member) for _, (group, member, _) in entries])
            for row, entry in entries:
                if entry not in stored[entry[0], entry[1]].entries:
                    _suspect(found, (side, row), entry[0])

    async def _list_members(self, buckets: bytes, found: _Found) -> None:
        """Note the source row of each member for which that row gives no equal entry."""
        async for part in self._groups_parts(buckets):
            by_row: dict[Row, list[Entry]] = {}
            for entry in part.entries:
                by_row.setdefault(self._inspector.row_of(entry[1]), []).append(entry)
            given = await self._inspector.rows(list(by_row))
            for row, entries in by_row.items():
                for entry in entries:
                    if entry not in given[row].entries:
                        _suspect(found, row, entry[0])
            self._went(len(part.entries))

    # --- verdict -------------------------------------------------------------------------------------

    async def _verdict(self, candidates: Mapping[Row, Iterable[bytes]]) -> tuple[dict[Row, Both], int]:
        """Return (rows that are wrong, number of rows that changed at each read)."""
        wrong: dict[Row, Both] = {}
        before = await self._inspector.both(candidates)
        for _ in range(TRIES):
            if not before:
                break
            if not await self._owners.caught_up(self._table):
                break  # the difference may be lag
            now = await self._inspector.both({row: candidates[row] for row in before})
            differing = {row: both for row, both in now.items() if both.given != both.stored}
            wrong |= {row: both for row, both in differing.items() if both.prints == before[row].prints}
            before = {row: both for row, both in differing.items() if row not in wrong}
        return wrong, len(before)

    def _findings(self, wrong: Mapping[Row, Both], odd_groups: Mapping[bytes, str]) -> Iterable[Finding]:
        for (side, row), both in wrong.items():
            yield Finding("row", self._sides[side].table, row, _difference(both))
        for group, why in odd_groups.items():
            yield Finding("group", self._table, group, _ODD[why])

    # --- repair --------------------------------------------------------------------------------------

    async def _repair(self, wrong: Mapping[Row, Both], odd_groups: Mapping[bytes, str]) -> int:
        """Repair rows and groups.

        Returns the number of rows that are right now, plus the number of repaired groups.
        """
        await self._repair_groups(odd_groups)  # first: a total that is no number would refuse contributions
        dropped: set[bytes] = set()
        for row, both in wrong.items():
            dropped |= await self._drop(both, unreadable=True)
            await self._say(row, both)
        groups = {row: {place[0] for place in both.places} for row, both in wrong.items()}
        stuck, _ = await self._verdict(groups)  # changing rows are corrected by their changes
        for row, both in stuck.items():  # members with sequences that no change reaches
            dropped |= await self._drop(both, unreadable=False)
            await self._say(row, both)
        await self._repair_groups(dropped)
        left, _ = await self._verdict({row: groups[row] for row in stuck})
        return len(wrong) - len(left) + len(odd_groups)

    async def _repair_groups(self, groups: Iterable[bytes]) -> None:
        for group in groups:
            await self._owners.request_owner(self._table, group, RepairGroup(self._table, group))

    async def _drop(self, both: Both, *, unreadable: bool) -> set[bytes]:
        """Remove members that refuse new contributions, unless they changed since they were read.

        Returns their groups.
        """
        doomed: dict[bytes, list[tuple[bytes, bytes]]] = {}
        for place in both.places:  # a withdrawn member gives nothing, but may refuse contributions
            if not unreadable or both.stored.get(place) == b"":
                doomed.setdefault(place[0], []).append((place[1], both.member_prints[place]))
        for group, members in doomed.items():
            await self._owners.request_owner(self._table, group, RepairGroup(self._table, group, tuple(members)))
        return set(doomed)

    async def _say(self, row: Row, both: Both) -> None:
        """Set the row's present contributions, and withdraw the row from each other group in which it was seen."""
        side, name = row
        said = await self._owners.request_owner(self._sides[side].table, name, SayAgain(self._table, side, name))
        writes = {write.row: write for write in said.writes if isinstance(write, RowMutation)}
        nothing = Share(b"", self._inspector.member_of(row), None)
        withdrawal = operation_of(self._sides[side], nothing, said.sequence)
        for group, _ in both.places:
            if group not in writes:
                writes[group] = RowMutation(group, (withdrawal,))
        for some in parts_of(list(writes.values())):
            await self._owners.write_rows(self._table, some)


_ODD: Final = {
    "members": "it has members that cannot be read",
    "totals": "its totals are not the sums of its members",
    "order": "its order is not that of its members",
    "members totals": "it has members that cannot be read, and other totals",
    "members order": "it has members that cannot be read, and others in its order",
    "totals order": "its totals and its order are not those of its members",
    "members totals order": "it has members that cannot be read, and its totals and its order are of others",
}


async def _unequal(balance: Balance) -> Buckets:
    """Collect the unequal buckets, in steps, as there are many buckets."""
    found = Buckets()
    for first in range(0, BUCKETS, BLOCK):
        for bucket in balance.unequal(first, first + BLOCK):
            found.add_bucket(bucket)
        await asyncio.sleep(0)
    return found


def _suspect(found: _Found, row: Row, group: bytes) -> None:
    if row in found.candidates or len(found.candidates) < CANDIDATES:
        found.candidates.setdefault(row, set()).add(group)


def _difference(both: Both) -> str:
    for place in sorted(both.places):
        given, stored = both.given.get(place), both.stored.get(place)
        if given != stored:
            group = printable(place[0][:80])
            if stored is None:
                return f"group {group} has nothing of it"
            return f"group {group} has it, and it gives nothing" if given is None else f"group {group} has it otherwise"
    return "its groups have it otherwise"
