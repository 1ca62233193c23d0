"""Records of a change log on an older copy: which are applied, and what they do to a row."""

from __future__ import annotations

import pytest

from columnar.backup.change_replay import OlderCopy
from columnar.backup.region_reader import cells_of
from columnar.errors import CallerError
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, Table
from columnar.regions.log.change_record import ChangeRecord, Entry, Kind, Sequence, pack, pack_key
from columnar.regions.log.log_retention import LOG_SPACE
from columnar.regions.log.lost_changes import LostSpan
from columnar.regions.read.family_view import views_of
from columnar.regions.region import spaces_of
from columnar.storage.api import Store
from columnar.storage.memory import MemoryEngine

TABLE = Table("t", (Family("f", max_versions=2),))


def key(n: int) -> bytes:
    return pack_key(Sequence(1, 1, n))


def record(kind: Kind, timestamp: int, value: bytes = b"", row: bytes = b"r") -> ChangeRecord:
    return ChangeRecord(row, timestamp, (Entry(kind, b"f", b"q", timestamp, value),), stamp=timestamp)


@pytest.fixture
def store() -> Store:
    store = MemoryEngine().open_store("older", spaces_of(TABLE))
    batch = store.batch()
    batch.put(LOG_SPACE, key(5), pack(record(Kind.PUT, 5, b"five")))
    store.write_batch(batch)
    return store


def cells(store: Store) -> list[tuple[int, bytes]]:
    return [(cell.timestamp, cell.value) for cell in cells_of(store, views_of(TABLE), 0)]


def test_a_record_that_the_copy_has_is_not_applied_again(store: Store) -> None:
    copy = OlderCopy.of_stores(TABLE, [(RegionInfo("t", 1, b"", b""), store)])
    for n in (1, 5):
        copy.apply_record(key(n), record(Kind.PUT, n, b"old"))
    assert (copy.applied, cells(store)) == (0, [])
    copy.apply_record(key(6), record(Kind.PUT, 6, b"new"))
    assert (copy.applied, cells(store)) == (1, [(6, b"new")])


def test_each_kind_of_change_does_what_it_did(store: Store) -> None:
    copy = OlderCopy.of_stores(TABLE, [(RegionInfo("t", 1, b"", b""), store)])
    for n in (10, 20):
        copy.apply_record(key(n), record(Kind.PUT, n, b"%d" % n))
    copy.apply_record(key(21), record(Kind.DELETE_VERSION, 20))
    assert cells(store) == [(10, b"10")]
    copy.apply_record(key(22), record(Kind.DELETE_COLUMN, 9))
    assert cells(store) == [(10, b"10")]
    copy.apply_record(key(23), record(Kind.DELETE_COLUMN, 10))
    assert cells(store) == []
    copy.apply_record(key(24), record(Kind.PUT, 24, b"x"))
    copy.apply_record(key(25), record(Kind.DELETE_FAMILY, 24))
    assert cells(store) == []


def test_changes_of_another_history_are_not_applied(store: Store) -> None:
    copy = OlderCopy.of_stores(TABLE, [(RegionInfo("t", 1, b"", b""), store)])
    until = Sequence(1, 900, 0)
    copy.check_history([LostSpan(Sequence(1, 1, 5), until)])  # restored from a copy with the same end
    with pytest.raises(CallerError, match="restored from an older one"):
        copy.check_history([LostSpan(Sequence(1, 1, 4), until)])
