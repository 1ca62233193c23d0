"""Walks over a region of a view or of a source, for a check: digests of the content, or entries in some buckets.

A walk over some buckets skips all other rows and members without unpacking them: the bucket depends on the name alone.

Each function is a generator that yields wherever it may be interrupted, every STRIDE cells or so.  It
reads a source row, or a group, as of one moment: the iterators over totals, members and order are made together, before
any write can come between.

A walk ends at the region's end, or with its present row when its time is over.

Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Final

from columnar.cluster.peer_requests import EntriesSnapshot, Entry
from columnar.errors import DamagedData
from columnar.model.contribution import (
    Member,
    given_bytes,
    order_qualifier,
    pack_carried,
    packed_given,
    unpack,
    wrapped,
)
from columnar.model.read import ReadSpec
from columnar.model.view_definition import MEMBERS, ORDERED, TOTALS
from columnar.regions.read.family_view import FamilyView, visible_value
from columnar.regions.read.row_reader import RawRow, RowCursor, fetch_row, visible_cells
from columnar.regions.region import Region
from columnar.storage.layout import END_OF_ROW, cell_key, escape, range_start, row_end, split_cell_key, unescape
from columnar.views.backfill import read_spec
from columnar.views.contributions import Given, Rules, Share, contributions
from columnar.views.digests import PART_BUCKETS, Digest, bucket_of, entry_hash, is_in

# --- a group within itself ---------------------------------------------------------------------------


class GroupCheck:
    """The check of a group's totals and ordered cells against its members, as of one moment.

    Each total must be the sum of the members' amounts, and have no cell if the sum is 0.  The ordered cells must be
    those of the members with an order, with the columns that these carry.  Ordered cells and members are read in
    different orders, so the hashes of both are added up to one number, which takes no memory for either.
    """

    __slots__ = ("_orders", "_stored", "_sums", "is_readable", "members")

    def __init__(self) -> None:
        self.members = 0  # that are not withdrawn
        self.is_readable = True
        self._stored: dict[bytes, bytes] = {}
        self._sums: dict[bytes, int] = {}
        self._orders = 0

    def total(self, qualifier: bytes, value: bytes) -> None:
        self._stored[TOTALS + b":" + qualifier] = value

    def member(self, source: bytes, data: bytes) -> bool:
        """Add a member; an unreadable member adds nothing.  Returns False only if the member was withdrawn."""
        try:
            member = unpack(data)
        except DamagedData:
            self.is_readable = False
            return True
        if member.is_gone:
            return False
        self.members += 1
        for total, amount in member.amounts:
            self._sums[total] = self._sums.get(total, 0) + amount
        cell = ordered_cell(source, member)
        if cell is not None:
            self._orders += hash(cell)
        return True

    def ordered(self, qualifier: bytes, value: bytes) -> None:
        self._orders -= hash((qualifier, value))

    def wrong(self) -> str:
        """Return the faults as words; empty if there is none."""
        found = []
        if not self.is_readable:
            found.append("members")
        if self._stored != self.right_totals():
            found.append("totals")
        if self._orders:
            found.append("order")
        return " ".join(found)

    def right_totals(self) -> dict[bytes, bytes]:
        """Return the right totals by column, without totals of 0, which have no cell."""
        sums = {total: wrapped(amount) for total, amount in self._sums.items()}
        return {total: amount.to_bytes(8, "big", signed=True) for total, amount in sums.items() if amount}

    def differences(self) -> dict[bytes, int]:
        """Return the amounts to be added to wrong stored totals; a total that is no number counts as 0."""
        found = {}
        for total in self._stored.keys() | self._sums.keys():
            value = self._stored.get(total, b"")
            stored = int.from_bytes(value, "big", signed=True) if len(value) == 8 else 0
            difference = wrapped(self._sums.get(total, 0) - stored)
            if difference or self._stored.get(total) != self.right_totals().get(total):
                found[total] = difference
        return found


def ordered_cell(source: bytes, member: Member) -> tuple[bytes, bytes] | None:
    """Return qualifier and value of the member's ordered cell, or None if it has none."""
    if member.ordered != ORDERED:
        return None
    return order_qualifier(member.order, source), pack_carried(member.carried)


CURSOR_ROWS: Final = 256  # of a source, or of members, read by one cursor: it is open for some milliseconds
STRIDE: Final = 16  # cells, at some microseconds each, between two places where a walk may be interrupted
LISTED: Final = 2_000  # entries of one answer
WRONG: Final = 1_000  # groups of one answer

IsOver = Callable[[], bool]


# --- sources ---------------------------------------------------------------------------------------


class SourceRows:
    """Rows of one source as a view sees them.  Constant."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._names = [family + b":" + qualifier for family, qualifier in rules.totals]

    def spec(self, region: Region) -> ReadSpec:
        return read_spec(region, self._rules.images)

    def member_of(self, row: bytes) -> bytes:
        return self._rules.side + row

    def given(self, region: Region, row: bytes, raw_row: RawRow, spec: ReadSpec) -> Given:
        cells = visible_cells(region.store, row, raw_row, spec, region.now_ms)
        return contributions(self._rules, row, {column: value for column, value, _ in cells})

    def entries(self, given: Given) -> tuple[Entry, ...]:
        return tuple(
            (share.group, share.member, entry_hash(share.group, share.member, self._given(share)))
            for share in given.shares.values()
        )

    def _given(self, share: Share) -> bytes:
        """Return the share's bytes as they stand in a member after its head, without the sequence."""
        assert share.amounts is not None, "what is withdrawn gives nothing"
        amounts = tuple(sorted(zip(self._names, map(wrapped, share.amounts), strict=True)))
        ordered = ORDERED if self._rules.order is not None and share.order is not None else b""
        return packed_given(amounts, ordered, share.order or b"", share.carry)

    def inspect_row(self, region: Region, row: bytes) -> EntriesSnapshot:
        """Return a snapshot of the row as it is now."""
        spec = self.spec(region)
        raw_row = fetch_row(region.store, region.views, row, spec.projection)
        stamp = blake2b(digest_size=16)
        for view, group in raw_row:
            for qualifier, raw in group:
                stamp.update(b"%d %d %d " % (view.number, len(qualifier), len(raw)) + qualifier + raw)
        return EntriesSnapshot(stamp.digest(), self.entries(self.given(region, row, raw_row, spec)))


@dataclass(slots=True)
class SourceWalk:
    start: bytes
    next_row: bytes | None = None
    digest: Digest = field(default_factory=Digest)
    rows: int = 0
    rejected: int = 0
    entries: list[tuple[bytes, tuple[Entry, ...]]] = field(default_factory=list)
    listed: int = 0

    def walk_rows(
        self, region: Region, source: SourceRows, buckets: bytes, is_over: IsOver, *, is_summed: bool = True
    ) -> Iterator[None]:
        """Walk over rows from ``start`` on, until ``is_over``; set ``next_row``.

        ``buckets`` is empty for all buckets.  ``is_summed`` adds the entries to the digest instead of listing them.
        """
        spec, place = source.spec(region), self.start
        stop = range_start(region.info.end) if region.info.end else None
        left = STRIDE
        while True:
            cursor = RowCursor.over(
                region.store, region.views, spec.projection, range_start(place), stop, reverse=False
            )  # fmt: skip
            for _ in range(CURSOR_ROWS):
                found = cursor.next_row()
                if found is None:
                    self.next_row = region.info.end or None
                    return
                row, raw_row = found
                self.rows += 1
                place = row + b"\0"
                left -= 1
                if not buckets or is_in(buckets, bucket_of(source.member_of(row))):
                    given = source.given(region, row, raw_row, spec)
                    self.rejected += bool(given.rejected)
                    self._take(source.entries(given), row, is_summed)
                    left -= sum([len(group) for _, group in raw_row])
                if left > 0:
                    continue
                left = STRIDE
                yield
                if is_over() or self.listed >= LISTED or len(self.digest) >= PART_BUCKETS:
                    self.next_row = place
                    return
            del cursor  # no cursor is open during long writes of others

    def _take(self, entries: tuple[Entry, ...], row: bytes, is_summed: bool) -> None:
        if is_summed:
            for _, member, entry in entries:
                self.digest.add(bucket_of(member), entry)
        elif entries:
            self.entries.append((row, entries))
            self.listed += len(entries)


# --- groups ----------------------------------------------------------------------------------------


class _Cells:
    """The visible cells of one family, one after the other."""

    __slots__ = ("_items", "_now_ms", "_view", "qualifier", "row", "value")

    def __init__(self, view: FamilyView, now_ms: int, items: Iterator[tuple[bytes, bytes]]) -> None:
        self._view, self._now_ms, self._items = view, now_ms, items
        self.row: bytes | None = None  # escaped; None if there are no more cells
        self.qualifier = self.value = b""

    @classmethod
    def of(cls, region: Region, family: bytes, low: bytes, high: bytes | None) -> _Cells:
        """Return the cells of a family from ``low`` to ``high``, positioned at the first cell."""
        view = region.views[family]
        cells = cls(view, region.now_ms, iter(region.store.scan(view.space, low, high)))
        cells.advance()
        return cells

    def advance(self) -> None:
        for key, raw in self._items:
            value = visible_value(raw, self._view, self._now_ms)
            if value is not None:
                cut = key.index(END_OF_ROW)
                self.row, self.qualifier, self.value = key[:cut], unescape(key[cut + 2 :]), value
                return
        self.row = None


@dataclass(slots=True)
class GroupsWalk:
    start: bytes
    after: bytes = b""  # if set, the group ``start`` was checked, and its members up to this one are in a digest
    next_row: bytes | None = None
    digest: Digest = field(default_factory=Digest)
    groups: int = 0
    members: int = 0
    wrong: list[tuple[bytes, str]] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        return len(self.digest) >= PART_BUCKETS

    def add_member(self, group: bytes, source: bytes, data: bytes) -> bool:
        """Add a member to the digest.  Returns True if the digest is full: the next walk continues after the member."""
        self.digest.add(bucket_of(source), entry_hash(group, source, given_bytes(data)))
        if self.is_full:
            self.after = source
        return self.is_full

    def walk_groups(self, region: Region, is_over: IsOver) -> Iterator[None]:
        """Check each group completely, as of one moment.

        If the digest is full, the next walk adds the remaining members of the group.
        """
        low = range_start(self.start)
        if self.after:
            yield from self._rest_of_group(region)
            if self.next_row is not None:
                return
            low = row_end(self.start)
        high = range_start(region.info.end) if region.info.end else None
        heads = [_Cells.of(region, family, low, high) for family in (TOTALS, MEMBERS, ORDERED)]
        while True:
            rows = [head.row for head in heads if head.row is not None]
            if not rows:
                self.next_row = region.info.end or None
                return
            escaped = min(rows)
            if (self.groups and is_over()) or len(self.wrong) >= WRONG or self.is_full:
                self.next_row = unescape(escaped)
                return
            check = GroupCheck()
            yield from _check_group(escaped, heads, check, self)
            self.groups += 1
            self.members += check.members
            wrong = check.wrong()
            if wrong:
                self.wrong.append((unescape(escaped), wrong))
            if self.after:
                self.next_row = unescape(escaped)
                return
            yield

    def _rest_of_group(self, region: Region) -> Iterator[None]:
        """Add the members after ``after`` to the digest.  Sets ``next_row`` if more members are left."""
        view, now_ms, left = region.views[MEMBERS], region.now_ms, STRIDE
        low, self.after = cell_key(self.start, self.after) + b"\0", b""
        for key, raw in region.store.scan(view.space, low, row_end(self.start)):
            source, value = split_cell_key(key)[1], visible_value(raw, view, now_ms)
            if value is not None:
                _add(self.digest, bucket_of(source), self.start, source, value)
            if self.is_full:
                self.next_row, self.after = self.start, source
                return
            left -= 1
            if left <= 0:
                left = STRIDE
                yield


def _check_group(escaped: bytes, heads: list[_Cells], check: GroupCheck, walk: GroupsWalk | None) -> Iterator[None]:
    """Check a group.  The digest of ``walk`` gets its members; ``walk.after`` is the last member of a full digest."""
    totals, members, ordered = heads
    group, left = unescape(escaped), STRIDE
    while totals.row == escaped:
        check.total(totals.qualifier, totals.value)
        totals.advance()
    while members.row == escaped:
        source, data = members.qualifier, members.value
        if check.member(source, data) and walk is not None and walk.add_member(group, source, data):
            walk = None
        members.advance()
        left -= 1
        if left <= 0:
            left = STRIDE
            yield
    while ordered.row == escaped:
        check.ordered(ordered.qualifier, ordered.value)
        ordered.advance()
        left -= 1
        if left <= 0:
            left = STRIDE
            yield


def check_one(region: Region, group: bytes, check: GroupCheck) -> Iterator[None]:
    """Check one group as it is now."""
    low = range_start(group)
    heads = [_Cells.of(region, family, low, low + b"\x00\x02") for family in (TOTALS, MEMBERS, ORDERED)]
    yield from _check_group(escape(group), heads, check, None)


@dataclass(slots=True)
class MembersWalk:
    start: bytes
    after: bytes
    next_row: bytes | None = None
    digest: Digest = field(default_factory=Digest)
    entries: list[Entry] = field(default_factory=list)

    def walk_members(
        self, region: Region, buckets: bytes, is_over: IsOver, *, is_summed: bool = False
    ) -> Iterator[None]:
        """Walk over the members in some buckets, beginning after ``after`` in the group ``start``.

        Sets ``next_row`` and ``after`` for the next walk.  ``is_summed`` adds the members to the digest instead of
        listing them.
        """
        view, now_ms = region.views[MEMBERS], region.now_ms
        low = cell_key(self.start, self.after) + b"\0" if self.after else range_start(self.start)
        high = range_start(region.info.end) if region.info.end else None
        while True:
            key = b""
            left = STRIDE
            for key, raw in islice(region.store.scan(view.space, low, high), CURSOR_ROWS):
                cut = key.index(END_OF_ROW)
                source = unescape(key[cut + 2 :])
                bucket = bucket_of(source)
                left -= 1
                if is_in(buckets, bucket):
                    value = visible_value(raw, view, now_ms)
                    if value is not None and is_summed:
                        _add(self.digest, bucket, unescape(key[:cut]), source, value)
                    elif value is not None:
                        group = unescape(key[:cut])
                        member_hash = _member_hash(group, source, value)
                        if member_hash is not None:
                            self.entries.append((group, source, member_hash))
                if left <= 0:
                    left = STRIDE
                    yield
            if not key:
                self.next_row, self.after = region.info.end or None, b""
                return
            low = key + b"\0"
            yield
            if is_over() or len(self.entries) >= LISTED or len(self.digest) >= PART_BUCKETS:
                cut = key.index(END_OF_ROW)
                self.next_row, self.after = unescape(key[:cut]), unescape(key[cut + 2 :])
                return


def _member_hash(group: bytes, source: bytes, data: bytes) -> bytes | None:
    """Return the hash of a member: None if it was withdrawn, empty if it cannot be read."""
    try:
        if unpack(data).is_gone:
            return None
    except DamagedData:
        return b""
    return entry_hash(group, source, given_bytes(data))


def _add(digest: Digest, bucket: int, group: bytes, source: bytes, data: bytes) -> None:
    """Add a member, unless it was withdrawn.  An unreadable member counts as an entry that no source row gives."""
    member_hash = _member_hash(group, source, data)
    if member_hash is not None:
        digest.add(bucket, member_hash or entry_hash(group, source, given_bytes(data)))


def inspect_member(region: Region, group: bytes, source: bytes) -> EntriesSnapshot:
    """Return a snapshot of the member as it is now."""
    view = region.views[MEMBERS]
    raw = region.store.get(view.space, cell_key(group, source))
    value = visible_value(raw, view, region.now_ms)
    stamp = blake2b(raw or b"", digest_size=16).digest()
    member_hash = _member_hash(group, source, value) if value is not None else None
    return EntriesSnapshot(stamp, ((group, source, member_hash),) if member_hash is not None else ())
