"""A check of a view, and its repair, at a gateway: one pass over each side, then a closer look at what differs.

    passes    digests of what all source rows give, and of what all members hold, each added up over its regions;
              meanwhile each group is checked within itself, as of one moment: a fault there is none of lag
    listing   entries in unequal buckets, from either side, are held against the other side one by one; while writers
              write all buckets are unequal, and few entries
    verdict   a row that differed is looked at, the lag of now is waited for, and the row is looked at again, until it
              is equal, or it differs and no cell of it changed in between: that counts
    repair    the row is numbered anew at its owner, as a change of it would be, and what it gives is said as of that
              number, "nothing" to groups that it is not in; then groups are set right within themselves

Memory is that of the digests and of CANDIDATES rows and groups, however large the tables are.

Knows nothing of links: ``CheckOwners`` asks whoever has a region.  Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from columnar.errors import printable
from columnar.model.mutation import RowMutation
from columnar.model.view_check import SHOWN, CheckReport, Finding
from columnar.model.view_definition import View
from columnar.routing.view_asks import Entry, GroupsPart, MendGroup, SayAgain, SourcePart
from columnar.views.check_looks import Both, CheckLooks, Row, parts_of
from columnar.views.check_owners import CheckOwners
from columnar.views.contributions import rules_of
from columnar.views.digests import Digest, pack_buckets, unpack
from columnar.views.entries import Entries

CANDIDATES: Final = 100_000  # rows that are looked at once more, and groups; more are left to the next check
TRIES: Final = 20  # looks at a row that changes all the while


@dataclass(slots=True)
class _Found:
    """The outcome of passes and listing so far."""

    given: Digest = field(default_factory=Digest)
    held: Digest = field(default_factory=Digest)
    rows: int = 0
    rejected: int = 0
    groups: int = 0
    members: int = 0
    odd_groups: dict[bytes, str] = field(default_factory=dict)
    candidates: dict[Row, set[bytes]] = field(default_factory=dict)  # and groups that have the row, or should


class ViewCheck:
    """A single check."""

    def __init__(self, view: View, table: str, owners: CheckOwners, advance: Callable[[int], None] = lambda _: None):
        """``table``: in which the view stands; ``advance`` is told how many rows and members were read by now."""
        self._view = view
        self._table = table
        self._owners = owners
        self._advance = advance
        self._sides = rules_of(view)
        self._looks = CheckLooks(table, self._sides, owners)
        self._read = 0

    async def run(self, *, repair: bool) -> CheckReport:
        found = _Found()
        for side in range(len(self._sides)):
            await self._pass_source(side, found)
        await self._pass_groups(found)
        unequal = found.given.unequal(found.held)
        if unequal:
            buckets = pack_buckets(unequal)
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
            tuple(self._findings(wrong, found.odd_groups))[:SHOWN],
            len(wrong) + len(found.odd_groups),
            unsure,
            repaired,
        )

    # --- passes --------------------------------------------------------------------------------------

    async def _pass_source(self, side: int, found: _Found) -> None:
        table, start = self._sides[side].table, b""  # type: str, bytes | None
        while start is not None:
            part = await self._owners.ask(table, start, SourcePart(self._table, side, start))
            found.given.merge(unpack(part.digest))
            found.rows, found.rejected = found.rows + part.rows, found.rejected + part.rejected
            self._went(part.rows)
            start = part.next_row

    async def _pass_groups(self, found: _Found) -> None:
        start: bytes | None = b""
        while start is not None:
            part = await self._owners.ask(self._table, start, GroupsPart(self._table, start))
            found.held.merge(unpack(part.digest))
            found.groups, found.members = found.groups + part.groups, found.members + part.members
            for group, why in part.wrong:
                if len(found.odd_groups) < CANDIDATES:
                    found.odd_groups[group] = why
            self._went(part.members)
            start = part.next_row

    def _went(self, count: int) -> None:
        self._read += count
        self._advance(self._read)

    # --- listing -------------------------------------------------------------------------------------

    async def _list_source(self, side: int, buckets: bytes, found: _Found) -> None:
        """Rows that give what a group has not of them."""
        table, start = self._sides[side].table, b""  # type: str, bytes | None
        while start is not None:
            part = await self._owners.ask(table, start, SourcePart(self._table, side, start, buckets))
            entries = [(row, entry) for row, several in part.entries for entry in several]
            held = await self._looks.members([(group, member) for _, (group, member, _) in entries])
            for row, entry in entries:
                if entry not in held[entry[0], entry[1]].entries:
                    _suspect(found, (side, row), entry[0])
            self._went(part.rows)
            start = part.next_row

    async def _list_members(self, buckets: bytes, found: _Found) -> None:
        """Members that their source rows do not give."""
        start, after = b"", b""  # type: bytes | None, bytes
        while start is not None:
            part = await self._owners.ask(self._table, start, GroupsPart(self._table, start, after, buckets))
            by_row: dict[Row, list[Entry]] = {}
            for entry in part.entries:
                by_row.setdefault(self._looks.row_of(entry[1]), []).append(entry)
            given = await self._looks.rows(list(by_row))
            for row, entries in by_row.items():
                for entry in entries:
                    if entry not in given[row].entries:
                        _suspect(found, row, entry[0])
            self._went(len(part.entries))
            start, after = part.next_row, part.after

    # --- verdict -------------------------------------------------------------------------------------

    async def _verdict(self, candidates: Mapping[Row, Iterable[bytes]]) -> tuple[dict[Row, Both], int]:
        """(rows that are wrong, how many changed whenever they were looked at)."""
        wrong: dict[Row, Both] = {}
        before = await self._looks.both(candidates)
        for _ in range(TRIES):
            if not before:
                break
            if not await self._owners.caught_up(self._table):
                break  # what differs may be lag
            now = await self._looks.both({row: candidates[row] for row in before})
            differing = {row: both for row, both in now.items() if both.given != both.held}
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
        """How many of them are right now."""
        await self._mend(odd_groups)  # first: a total that is no number would refuse what is said
        dropped: set[bytes] = set()
        for row, both in wrong.items():
            dropped |= await self._drop(both, unreadable=True)
            await self._say(row, both)
        groups = {row: {place[0] for place in both.places} for row, both in wrong.items()}
        stuck, _ = await self._verdict(groups)  # rows that change are said again by their changes
        for row, both in stuck.items():  # members with numbers that no change reaches
            dropped |= await self._drop(both, unreadable=False)
            await self._say(row, both)
        await self._mend(dropped)
        left, _ = await self._verdict({row: groups[row] for row in stuck})
        return len(wrong) - len(left) + len(odd_groups)

    async def _mend(self, groups: Iterable[bytes]) -> None:
        for group in groups:
            await self._owners.ask(self._table, group, MendGroup(self._table, group))

    async def _drop(self, both: Both, *, unreadable: bool) -> set[bytes]:
        """Remove members that nothing said now can follow, where they are as they were seen; their groups."""
        doomed: dict[bytes, list[tuple[bytes, bytes]]] = {}
        for place in both.places:  # a withdrawn member gives nothing, and may be what refuses
            if not unreadable or both.held.get(place) == b"":
                doomed.setdefault(place[0], []).append((place[1], both.member_prints[place]))
        for group, members in doomed.items():
            await self._owners.ask(self._table, group, MendGroup(self._table, group, tuple(members)))
        return set(doomed)

    async def _say(self, row: Row, both: Both) -> None:
        """Say what the row gives now, and nothing to each other group that was seen to have it."""
        side, name = row
        said = await self._owners.ask(self._sides[side].table, name, SayAgain(self._table, side, name))
        writes = {write.row: write for write in said.writes if isinstance(write, RowMutation)}
        withdrawal = Entries(self._sides[side]).withdrawal(self._looks.member_of(row), said.sequence)
        for group, _ in both.places:
            if group not in writes:
                writes[group] = RowMutation(group, (withdrawal,))
        for some in parts_of(list(writes.values())):
            await self._owners.write(self._table, some)


_ODD: Final = {
    "members": "it has members that cannot be read",
    "totals": "its totals are not the sums of its members",
    "order": "its order is not that of its members",
    "members totals": "it has members that cannot be read, and other totals",
    "members order": "it has members that cannot be read, and others in its order",
    "totals order": "its totals and its order are not those of its members",
    "members totals order": "it has members that cannot be read, and its totals and its order are of others",
}


def _suspect(found: _Found, row: Row, group: bytes) -> None:
    if row in found.candidates or len(found.candidates) < CANDIDATES:
        found.candidates.setdefault(row, set()).add(group)


def _difference(both: Both) -> str:
    for place in sorted(both.places):
        given, held = both.given.get(place), both.held.get(place)
        if given != held:
            group = printable(place[0][:80])
            if held is None:
                return f"group {group} has nothing of it"
            return f"group {group} has it, and it gives nothing" if given is None else f"group {group} has it otherwise"
    return "its groups have it otherwise"
