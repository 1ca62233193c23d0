"""Walks over a region of a view or of a source, for a check: digests of what is there, or entries in some buckets.

Each function is a generator that yields wherever it may be interrupted (``stepping``).  It gives a source row, or a
group, as of one moment: the iterators over totals, members and order are made together, before any write can come
between.

A walk ends at the region's end, or with the row that it is in when its time is over.

Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Final

from columnar.errors import DamagedData
from columnar.model.contribution import given_bytes, unpack
from columnar.model.read import Projection, ReadSpec
from columnar.model.view_definition import MEMBERS, ORDERED, TOTALS
from columnar.regions.family_view import FamilyView, visible_value
from columnar.regions.region import Region
from columnar.regions.row_reader import RawRow, RowCursor, fetch_row, visible_cells
from columnar.routing.view_asks import Entry, Look
from columnar.storage.layout import END_OF_ROW, cell_key, escape, range_start, unescape
from columnar.views.contributions import Given, Rules, contributions
from columnar.views.digests import Digest, bucket_of, entry_hash, is_in
from columnar.views.entries import Entries
from columnar.views.group_check import GroupCheck

CURSOR_ROWS: Final = 64  # of a source, read by one cursor
LISTED: Final = 2_000  # entries of one answer
WRONG: Final = 1_000  # groups of one answer

IsOver = Callable[[], bool]


# --- sources ---------------------------------------------------------------------------------------


class SourceRows:
    """Rows of one source as a view sees them.  Constant."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._entries = Entries(rules)

    def spec(self, region: Region) -> ReadSpec:
        images = sorted(self._rules.images.items())
        families = [
            (family, None if columns is None else tuple(sorted(columns)))
            for family, columns in images
            if family in region.views
        ]
        return ReadSpec(Projection(tuple(families)))

    def given(self, region: Region, row: bytes, raw_row: RawRow, spec: ReadSpec) -> Given:
        cells = visible_cells(region.store, row, raw_row, spec, region.now_ms)
        return contributions(self._rules, row, {column: value for column, value, _ in cells})

    def entries(self, given: Given) -> tuple[Entry, ...]:
        return tuple(
            (share.group, share.member, entry_hash(share.group, share.member, self._entries.given(share)))
            for share in given.shares.values()
        )

    def look(self, region: Region, row: bytes) -> Look:
        """The row as it is now."""
        spec = self.spec(region)
        raw_row = fetch_row(region.store, region.views, row, spec.projection)
        stamp = blake2b(digest_size=16)
        for view, group in raw_row:
            for qualifier, raw in group:
                stamp.update(b"%d %d %d " % (view.number, len(qualifier), len(raw)) + qualifier + raw)
        return Look(stamp.digest(), self.entries(self.given(region, row, raw_row, spec)))


@dataclass(slots=True)
class SourceWalk:
    start: bytes
    next_row: bytes | None = None
    digest: Digest = field(default_factory=Digest)
    rows: int = 0
    rejected: int = 0
    entries: list[tuple[bytes, tuple[Entry, ...]]] = field(default_factory=list)
    listed: int = 0


def walk_source(
    region: Region, source: SourceRows, walk: SourceWalk, buckets: bytes, is_over: IsOver
) -> Iterator[None]:
    """``buckets``: empty for digests."""
    spec, place = source.spec(region), walk.start
    stop = range_start(region.info.end) if region.info.end else None
    while True:
        cursor = RowCursor.over(
            region.store, region.views, spec.projection, range_start(place), stop, reverse=False
        )  # fmt: skip
        for _ in range(CURSOR_ROWS):
            found = cursor.next_row()
            if found is None:
                walk.next_row = region.info.end or None
                return
            row, raw_row = found
            _take(walk, source.given(region, row, raw_row, spec), source, row, buckets)
            place = row + b"\0"
            yield
            if is_over() or walk.listed >= LISTED:
                walk.next_row = place
                return
        del cursor  # none is held while others write for long


def _take(walk: SourceWalk, given: Given, source: SourceRows, row: bytes, buckets: bytes) -> None:
    walk.rows += 1
    walk.rejected += bool(given.rejected)
    entries = source.entries(given)
    if not entries:
        return
    bucket = bucket_of(entries[0][1])  # all entries of a row have its member
    if not buckets:
        for _, _, entry in entries:
            walk.digest.add(bucket, entry)
    elif is_in(buckets, bucket):
        walk.entries.append((row, entries))
        walk.listed += len(entries)


# --- groups ----------------------------------------------------------------------------------------


class _Cells:
    """The visible cells of one family, one after the other."""

    __slots__ = ("_items", "_now_ms", "_view", "qualifier", "row", "value")

    def __init__(self, view: FamilyView, now_ms: int, items: Iterator[tuple[bytes, bytes]]) -> None:
        self._view, self._now_ms, self._items = view, now_ms, items
        self.row: bytes | None = None  # escaped; None: there are no more
        self.qualifier = self.value = b""

    @classmethod
    def of(cls, region: Region, family: bytes, low: bytes, high: bytes | None) -> _Cells:
        """At the first one."""
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
    next_row: bytes | None = None
    digest: Digest = field(default_factory=Digest)
    groups: int = 0
    members: int = 0
    wrong: list[tuple[bytes, str]] = field(default_factory=list)


def walk_groups(region: Region, walk: GroupsWalk, is_over: IsOver) -> Iterator[None]:
    low, high = range_start(walk.start), range_start(region.info.end) if region.info.end else None
    heads = [_Cells.of(region, family, low, high) for family in (TOTALS, MEMBERS, ORDERED)]
    while True:
        rows = [head.row for head in heads if head.row is not None]
        if not rows:
            walk.next_row = region.info.end or None
            return
        escaped = min(rows)
        if walk.groups and (is_over() or len(walk.wrong) >= WRONG):
            walk.next_row = unescape(escaped)
            return
        check = GroupCheck()
        yield from _check_group(escaped, heads, check, walk.digest)
        walk.groups += 1
        walk.members += check.members
        wrong = check.wrong()
        if wrong:
            walk.wrong.append((unescape(escaped), wrong))


def _check_group(escaped: bytes, heads: list[_Cells], check: GroupCheck, digest: Digest) -> Iterator[None]:
    totals, members, ordered = heads
    group = unescape(escaped)
    while totals.row == escaped:
        check.total(totals.qualifier, totals.value)
        totals.advance()
    while members.row == escaped:
        source, data = members.qualifier, members.value
        if check.member(source, data):
            digest.add(bucket_of(source), entry_hash(group, source, given_bytes(data)))
        members.advance()
        yield
    while ordered.row == escaped:
        check.ordered(ordered.qualifier, ordered.value)
        ordered.advance()
        yield


def check_one(region: Region, group: bytes, check: GroupCheck) -> Iterator[None]:
    """A group as of now."""
    low = range_start(group)
    heads = [_Cells.of(region, family, low, low + b"\x00\x02") for family in (TOTALS, MEMBERS, ORDERED)]
    yield from _check_group(escape(group), heads, check, Digest())


@dataclass(slots=True)
class MembersWalk:
    start: bytes
    after: bytes
    next_row: bytes | None = None
    entries: list[Entry] = field(default_factory=list)


def walk_members(region: Region, walk: MembersWalk, buckets: bytes, is_over: IsOver) -> Iterator[None]:
    """Members in some buckets, from behind ``after`` in the group ``start``; leaves the place of the next one."""
    view, now_ms = region.views[MEMBERS], region.now_ms
    low = cell_key(walk.start, walk.after) + b"\0" if walk.after else range_start(walk.start)
    high = range_start(region.info.end) if region.info.end else None
    while True:
        key = b""
        for key, raw in islice(region.store.scan(view.space, low, high), CURSOR_ROWS):
            value = visible_value(raw, view, now_ms)
            cut = key.index(END_OF_ROW)
            source = unescape(key[cut + 2 :])
            if value is not None and is_in(buckets, bucket_of(source)):
                group = unescape(key[:cut])
                held = _held_hash(group, source, value)
                if held is not None:
                    walk.entries.append((group, source, held))
        if not key:
            walk.next_row, walk.after = region.info.end or None, b""
            return
        low = key + b"\0"
        yield
        if is_over() or len(walk.entries) >= LISTED:
            cut = key.index(END_OF_ROW)
            walk.next_row, walk.after = unescape(key[:cut]), unescape(key[cut + 2 :])
            return


def _held_hash(group: bytes, source: bytes, data: bytes) -> bytes | None:
    """None: the member was withdrawn.  Empty: it cannot be read."""
    try:
        if unpack(data).is_gone:
            return None
    except DamagedData:
        return b""
    return entry_hash(group, source, given_bytes(data))


def look_at_member(region: Region, group: bytes, source: bytes) -> Look:
    """The member as it is now."""
    view = region.views[MEMBERS]
    raw = region.store.get(view.space, cell_key(group, source))
    value = visible_value(raw, view, region.now_ms)
    stamp = blake2b(raw or b"", digest_size=16).digest()
    held = _held_hash(group, source, value) if value is not None else None
    return Look(stamp, ((group, source, held),) if held is not None else ())
