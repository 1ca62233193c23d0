"""Positions: what they promise to a reader while regions split and merge and it starts anew."""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass, field

import pytest

from columnar.flows import position
from columnar.flows.position import Position, Range
from columnar.regions.log.change_record import Sequence

HELD = Position(
    (Range(b"", Sequence(7, 2, 300), None), Range(b"m", None, b"m"), Range(b"t", Sequence(9, 1, 5), b"u\xff"))
)


# --- ranges ----------------------------------------------------------------------------------------


def test_what_is_wanted() -> None:
    assert not HELD.wants(b"a", Sequence(7, 2, 300))
    assert HELD.wants(b"a", Sequence(7, 2, 301))
    assert HELD.wants(b"l\xff", Sequence(9, 1, 1))
    assert not HELD.wants(b"m", Sequence(99, 1, 1)), "it was not read yet"
    assert HELD.wants(b"u", Sequence(9, 1, 6))
    assert not HELD.wants(b"u\xff", Sequence(9, 1, 6))


def test_what_is_cut_and_put_together_is_the_same() -> None:
    parts = [position.clip(HELD, b"", b"g"), position.clip(HELD, b"g", b"t"), position.clip(HELD, b"t", b"")]
    assert [part[0].start for part in parts] == [b"", b"g", b"t"]
    assert position.join(parts) == HELD


def test_a_sequence_never_goes_back() -> None:
    held = position.at([(b"", Sequence(5, 1, 9))])
    assert position.advance(held, b"c", b"f", Sequence(4, 1, 1)) == held
    later = position.advance(held, b"c", b"f", Sequence(5, 2, 1))
    assert [one.start for one in later.ranges] == [b"", b"c", b"f"]
    assert position.advance(later, b"", b"", Sequence(5, 2, 1)) == position.at([(b"", Sequence(5, 2, 1))])


# --- a reader against the table ----------------------------------------------------------------------

ROWS = [b"%02d" % n for n in range(24)]


@dataclass
class Region:
    number: int
    start: bytes
    end: bytes
    log: list[tuple[Sequence, bytes, int]] = field(default_factory=list)  # sequence, row, version
    epoch: int = 1
    n: int = 0

    def contains_row(self, row: bytes) -> bool:
        return self.start <= row and (not self.end or row < self.end)

    @property
    def last(self) -> Sequence:
        return Sequence(self.number, self.epoch, self.n)

    def write(self, row: bytes, version: int) -> None:
        self.n += 1
        self.log.append((self.last, row, version))


class Table:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.rows: dict[bytes, int] = {}
        self.regions = [Region(1, b"", b"")]
        self.last_number, self.version = 1, 0

    def region_number(self) -> int:
        self.last_number += 1
        return self.last_number

    def step(self) -> None:
        rng = self.rng
        kind = rng.random()
        if kind < 0.7:
            row = rng.choice(ROWS)
            self.version += 1
            self.rows[row] = self.version
            next(region for region in self.regions if region.contains_row(row)).write(row, self.version)
        elif kind < 0.8:
            self.split(rng.choice(self.regions))
        elif kind < 0.9 and len(self.regions) > 1:
            self.merge(rng.randrange(len(self.regions) - 1))
        else:
            region = rng.choice(self.regions)
            region.epoch, region.n = region.epoch + 1, 0

    def split(self, parent: Region) -> None:
        inner = [row for row in ROWS if parent.contains_row(row) and row > parent.start]
        if not inner:
            return
        middle = self.rng.choice(inner)
        pair = [(parent.start, middle), (middle, parent.end)]
        daughters = [Region(self.region_number(), start, end, list(parent.log)) for start, end in pair]
        at = self.regions.index(parent)
        self.regions[at : at + 1] = daughters

    def merge(self, at: int) -> None:
        left, right = self.regions[at : at + 2]
        both = {sequence: (row, version) for region in (left, right) for sequence, row, version in region.log}
        log = sorted((sequence, *change) for sequence, change in both.items())
        self.regions[at : at + 2] = [Region(self.region_number(), left.start, right.end, log)]


class Reader:
    """A snapshot and the changes behind it; it knows nothing but its position between two steps."""

    def __init__(self, table: Table, held: Position) -> None:
        self.table, self.rng = table, table.rng
        self.held = held
        self.seen: dict[bytes, int] = {}

    def saw(self, row: bytes, version: int) -> None:
        assert version > self.seen.get(row, 0), "no change comes twice, none before an older one"
        self.seen[row] = version

    def step(self) -> None:
        self.held, _ = position.unpack(position.pack(self.held, "t"))
        self.held.check_invariants()
        region = self.rng.choice(self.table.regions)
        part = position.clip(self.held, region.start, region.end)
        at = self.rng.randrange(len(part))
        end = part[at + 1].start if at + 1 < len(part) else region.end
        if part[at].x is not None and self.rng.random() < 0.5:
            self.show(region, part[at], end)
        else:
            self.follow(region, part[at], end, self.rng.randrange(1, 4))

    def follow(self, region: Region, held: Range, end: bytes, most: int) -> None:
        """At most ``most`` records; to the end of the log where there are fewer."""
        first = bisect_right(region.log, held.p, key=lambda change: change[0]) if held.p is not None else 0
        found = region.log[first : first + most]
        for sequence, row, version in found:
            if held.start <= row and (not end or row < end) and held.wants(row, sequence):
                self.saw(row, version)
        to = found[-1][0] if len(found) == most else region.last
        self.held = position.advance(self.held, held.start, end, to)

    def show(self, region: Region, held: Range, end: bytes) -> None:
        """The next rows, read while nothing is written: the changes are read to the log's end first."""
        self.follow(region, held, end, 1_000_000)
        assert held.x is not None
        low = max(held.x, held.start)
        rows = [row for row in ROWS if low <= row and (not end or row < end)]
        chunk = rows[: self.rng.randrange(1, 4)]
        for row in chunk:
            if row in self.table.rows:
                self.saw(row, self.table.rows[row])
        x = chunk[-1] + b"\x00" if len(chunk) < len(rows) else None
        self.held = position.show(self.held, held.start, end, x)


@pytest.mark.parametrize("seed", range(150))
def test_snapshot_and_changes_join_without_gap_or_repeat(seed: int) -> None:
    rng = random.Random(seed)
    table = Table(rng)
    for _ in range(rng.randrange(30)):
        table.step()
    reader = Reader(table, position.unread())
    for _ in range(120):
        rng.choice([table.step, reader.step])()
    while any(one.x is not None for one in reader.held.ranges):
        reader.step()
    for region in table.regions:
        for _ in range(len(ROWS)):  # each range of it
            for at, held in enumerate(part := position.clip(reader.held, region.start, region.end)):
                end = part[at + 1].start if at + 1 < len(part) else region.end
                reader.follow(region, held, end, 1_000_000)
    assert reader.seen == table.rows
    assert len(reader.held.ranges) == len(table.regions), "nothing is left of regions that are no more"


@pytest.mark.parametrize("seed", range(50))
def test_from_now_on_only_what_comes_is_seen(seed: int) -> None:
    rng = random.Random(seed)
    table = Table(rng)
    for _ in range(40):
        table.step()
    reader = Reader(table, position.at([(region.start, region.last) for region in table.regions]))
    before = dict(table.rows)
    for _ in range(150):
        rng.choice([table.step, reader.step])()
    for _ in range(600):
        reader.step()
    newer = {row: version for row, version in table.rows.items() if before.get(row) != version}
    assert reader.seen.keys() == newer.keys()
