"""The bytes of docs/formats/change-log.md."""

from __future__ import annotations

import pytest

from columnar.errors import DamagedData
from columnar.regions.change_record import ChangeRecord, Entry, Kind, Sequence, pack, pack_key, unpack, unpack_key
from tests.support.golden import hold_to

PUT = Entry(Kind.PUT, b"f", b"q", 5, b"value")
RECORDS = {
    "one put": ChangeRecord(b"row", 5, (PUT,)),
    "every kind": ChangeRecord(
        b"r\x00", 9, (PUT, Entry(Kind.DELETE_COLUMN, b"f", b"", 9, b""), Entry(Kind.DELETE_FAMILY, b"g", b"", 8, b""))
    ),
    "with what was before": ChangeRecord(b"row", 6, (PUT,), (Entry(Kind.PUT, b"f", b"q", 4, b"old"),)),
    "a delete of one version": ChangeRecord(b"row", 9, (Entry(Kind.DELETE_VERSION, b"f", b"q", 5, b""),)),
    "a backfill": ChangeRecord(b"row", 5, (), (), "trigger-1"),
}


def test_records() -> None:
    hold_to("change-records.txt", {name: pack(record) for name, record in RECORDS.items()})
    assert {name: unpack(pack(record)) for name, record in RECORDS.items()} == RECORDS


def test_keys() -> None:
    sequences = [Sequence(7, 1, 1), Sequence(7, 1, 256), Sequence(7, 2, 1), Sequence(8, 1, 1)]
    hold_to("change-keys.txt", {sequence.token: pack_key(sequence) for sequence in sequences})
    assert [unpack_key(pack_key(sequence)) for sequence in sequences] == sequences
    assert sorted(map(pack_key, sequences)) == [pack_key(sequence) for sequence in sequences]


def test_what_is_no_record_is_damage() -> None:
    data = pack(RECORDS["with what was before"])
    for length in range(len(data)):
        try:
            held = unpack(data[:length])
        except DamagedData:
            continue
        assert held != RECORDS["with what was before"]
    with pytest.raises(DamagedData, match="version 9"):
        unpack(b"\x09" + data[1:])
