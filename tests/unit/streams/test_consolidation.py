"""Consolidated changes come to the same cells as the changes one by one, whoever applies them."""

from __future__ import annotations

import random

import pytest

from columnar.regions.log.change_record import ChangeRecord, Kind, Sequence
from columnar.regions.log.change_record import Entry as LoggedEntry
from columnar.streams import consolidation
from columnar.streams.consolidation import Consolidation, Entry, StreamChange, effective, size_of
from tests.support.deep import seeds

Cells = dict[tuple[bytes, bytes], bytes]
KINDS = (Kind.PUT, Kind.PUT, Kind.PUT, Kind.DELETE_COLUMN, Kind.DELETE_FAMILY, Kind.DELETE_VERSION)


def change(row: bytes, n: int, *entries: Entry, more: bool = False) -> StreamChange:
    return StreamChange(row, (1, 1, n), 1_000 + n, list(entries), {b"n": b"%d" % n}, {b"n": b"%d" % (n + 1)}, more)


def by_order(changes: list[StreamChange]) -> Cells:
    """Return the cells of a reader to whom the last entry counts."""
    cells: Cells = {}
    for one in changes:
        for kind, column, _, value in one.entries:
            if kind == Kind.PUT:
                cells[one.row, column] = value
            elif kind == Kind.DELETE_COLUMN:
                cells.pop((one.row, column), None)
            elif kind == Kind.DELETE_FAMILY:
                for key in [key for key in cells if key[0] == one.row and key[1].startswith(column + b":")]:
                    del cells[key]
    return cells


def by_timestamp(changes: list[StreamChange]) -> Cells:
    """Return the newest cells of a reader that keeps one version, and deletes up to a timestamp."""
    cells: dict[tuple[bytes, bytes], tuple[int, bytes]] = {}
    for one in changes:
        for kind, column, timestamp, value in one.entries:
            if kind == Kind.PUT:
                held = cells.get((one.row, column))
                if held is None or held[0] <= timestamp:
                    cells[one.row, column] = (timestamp, value)
                continue
            for key, held in list(cells.items()):
                meant = key[1].startswith(column + b":") if kind == Kind.DELETE_FAMILY else key[1] == column
                at_it = held[0] == timestamp if kind == Kind.DELETE_VERSION else held[0] <= timestamp
                if key[0] == one.row and meant and at_it:
                    del cells[key]
    return {key: value for key, (_, value) in cells.items()}


def random_changes(rng: random.Random) -> list[StreamChange]:
    found = []
    for n in range(rng.randrange(2, 30)):
        entries = []
        for _ in range(rng.randrange(1, 4)):
            kind, family = rng.choice(KINDS), rng.choice((b"f", b"ff"))
            column = family if kind == Kind.DELETE_FAMILY else family + b":" + rng.choice((b"a", b"b", b""))
            entries.append((int(kind), column, rng.randrange(5), b"%d" % n if kind == Kind.PUT else b""))
        found.append(change(rng.choice((b"r", b"s")), n, *entries, more=rng.random() < 0.1))
    return found


def test_the_cells_are_the_same() -> None:
    for seed in range(seeds("seeds of consolidated changes", deep=10_000, short=300)):
        hold(seed)


def hold(seed: int) -> None:
    changes = random_changes(random.Random(f"consolidation {seed}"))
    held = Consolidation()
    got: list[StreamChange] = []
    for one in changes:
        held.add_change(one)
        if random.Random(f"{seed} {one.sequence}").random() < 0.1 and not held.is_in_step:  # a reply ends
            got += held.take_changes()
    got += held.take_changes()
    assert by_order(got) == by_order(changes), seed
    without_versions = all(entry[0] != Kind.DELETE_VERSION for one in changes for entry in one.entries)
    if without_versions:  # one version is kept: what a deleted version had hidden is not known
        assert by_timestamp(got) == by_timestamp(changes), seed
    for row in (b"r", b"s"):
        mine = [one for one in got if one.row == row]
        assert [one.sequence for one in mine] == sorted(one.sequence for one in mine)
        last = [one for one in changes if one.row == row][-1:]
        assert [(one.sequence, one.stamp, one.after) for one in mine[-1:]] == [
            (one.sequence, one.stamp, one.after) for one in last
        ]
        first = [one for one in changes if one.row == row][:1]
        assert [one.before for one in mine[:1]] == [one.before for one in first]


def record_of(one: StreamChange) -> ChangeRecord:
    entries = []
    for kind, column, timestamp, value in one.entries:
        family, _, qualifier = column.partition(b":")
        entries.append(LoggedEntry(Kind(kind), family, qualifier, timestamp, value))
    return ChangeRecord(one.row, 0, tuple(entries), stamp=one.stamp, more_follows=one.more)


def random_puts(rng: random.Random) -> list[StreamChange]:
    """Return changes that often put the same columns of their row, and sometimes do something else."""
    columns = {row: rng.sample((b"f:a", b"f:b", b"ff:a"), rng.randrange(1, 4)) for row in (b"r", b"s", b"t")}
    found = []
    for n in range(rng.randrange(2, 40)):
        row = rng.choice((b"r", b"s", b"t"))
        entries = [(int(Kind.PUT), column, n // 2 - rng.randrange(2), b"%d" % n) for column in columns[row]]
        if rng.random() < 0.1:
            found += random_changes(rng)[:2]
        found.append(change(row, 100 * n, *entries, more=rng.random() < 0.05)._replace(before=None, after=None))
    return [one._replace(sequence=(1, 1, n), stamp=n, before=None, after=None) for n, one in enumerate(found)]


def test_records_that_put_the_same_cells_again_are_the_same_as_their_changes() -> None:
    replaced = 0
    for seed in range(seeds("seeds of consolidated records", deep=10_000, short=300)):
        changes = random_puts(random.Random(f"records {seed}"))
        held, plain = Consolidation(), Consolidation()
        for one in changes:
            record = record_of(one)
            if held.add_record(Sequence(*one.sequence), record):
                replaced += 1
            else:
                held.add_change(one)
            plain.add_change(one)
            assert (held.is_in_step, held.size_bytes) == (plain.is_in_step, plain.size_bytes), seed
        assert held.take_changes() == plain.take_changes(), seed
    assert replaced > 1_000


def test_a_hot_column_is_one_entry_however_often_it_changed() -> None:
    held = Consolidation()
    for n in range(1_000):
        held.add_change(change(b"r", n, (1, b"f:a", n, b"%d" % n), (1, b"f:%d" % (n % 3), n, b"x")))
    size = held.size_bytes
    (one,) = held.take_changes()
    assert len(one.entries) == 4
    assert size == size_of(one)
    assert (one.before, one.after) == ({b"n": b"0"}, {b"n": b"1000"})
    assert held.size_bytes == 0


def test_the_cost_of_a_change_does_not_rise_with_the_columns_of_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row to which columns are added, such as a timeline, is the usual backlog of a reader that is far behind."""
    looked_at = 0

    def counted(entries: list[Entry]) -> list[Entry]:
        nonlocal looked_at
        looked_at += len(entries)
        return effective(entries)

    monkeypatch.setattr(consolidation, "effective", counted)
    held = Consolidation()
    for n in range(5_000):
        held.add_change(change(b"r", n, (1, b"f:%d" % n, n, b"x")))
    (one,) = held.take_changes()
    assert len(one.entries) == 5_000
    assert looked_at < 10 * 5_000
    for n in range(20_000):
        held.add_change(change(b"r", n, (1, b"f:%d" % (n % 100), n, b"x")))
        assert held.size_bytes <= 2 * 101 * 40
    (one,) = held.take_changes()
    assert len(one.entries) == 100


def test_nothing_is_consolidated_across_a_step_of_several_rows() -> None:
    held = Consolidation()
    changes = [
        change(b"r", 1, (1, b"f:a", 1, b"1")),
        change(b"r", 2, (1, b"f:a", 2, b"2")),
        change(b"r", 3, (1, b"f:a", 3, b"3"), more=True),
        change(b"s", 4, (1, b"f:a", 4, b"4")),
        change(b"r", 5, (1, b"f:a", 5, b"5")),
        change(b"r", 6, (1, b"f:a", 6, b"6")),
    ]
    for one in changes:
        held.add_change(one)
    found = held.take_changes()
    assert [(one.row, one.sequence[2], one.more) for one in found] == [
        (b"r", 2, False),
        (b"r", 3, True),
        (b"s", 4, False),
        (b"r", 6, False),
    ]
