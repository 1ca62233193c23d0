"""Reads of a check of single source rows and members, each at its owner, some hundreds with one request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from columnar.cluster.view_check_requests import EntriesSnapshot, ReadGroupMembers, ReadSourceRows
from columnar.views.check_owners import CheckOwners
from columnar.views.contributions import Rules

BATCH: Final = 500

T = TypeVar("T")

Row = tuple[int, bytes]  # a side of the view, and a row of its source
Place = tuple[bytes, bytes]  # group, member


@dataclass(frozen=True, slots=True)
class Both:
    """A source row on both sides: what it gives, and what groups have of it, as hashes by place."""

    places: frozenset[Place]  # places that it contributes to or was seen in
    given: Mapping[Place, bytes]
    stored: Mapping[Place, bytes]  # an empty hash: the member cannot be read
    prints: tuple[bytes, ...]  # of the row and of the members
    member_prints: Mapping[Place, bytes]


class RowInspector:
    def __init__(self, table: str, sides: Sequence[Rules], owners: CheckOwners) -> None:
        """``table``: in which the view stands."""
        self._table = table
        self._sides = sides
        self._owners = owners

    def row_of(self, member: bytes) -> Row:
        for side, rules in enumerate(self._sides):
            if member.startswith(rules.side):
                return side, member[len(rules.side) :]
        return 0, member  # of a side that the view does not have: no row contributes it

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
        """Read each row on both sides; ``candidates``: rows with groups that were seen to have them."""
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
    """BATCH of them at a time."""
    return (things[first : first + BATCH] for first in range(0, len(things), BATCH))
