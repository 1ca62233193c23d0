"""The bytes of docs/formats/change-log.md."""

from __future__ import annotations

import pytest

from columnar.errors import DamagedData
from columnar.model.send import Send
from columnar.regions.log.change_record import (
    ChangeRecord,
    Entry,
    Kind,
    Sequence,
    pack,
    pack_key,
    unpack,
    unpack_key,
)
from tests.support.golden import FOLDER, hold_to

PUT = Entry(Kind.PUT, b"f", b"q", 5, b"value")
DELETES = (PUT, Entry(Kind.DELETE_COLUMN, b"f", b"", 9, b""), Entry(Kind.DELETE_FAMILY, b"g", b"", 8, b""))
OLD = (Entry(Kind.PUT, b"f", b"q", 4, b"old"),)
OTHER = Entry(Kind.PUT, b"g", b"", 3, b"untouched")
GONE = Entry(Kind.DELETE_COLUMN, b"g", b"", 6, b"")
IMAGES = {b"f": frozenset({b"q", b"a"}), b"g": None}
SEND = Send(b"q:mail", b"key", b"name", b"group", 1_500, 3, b"body\x00")
WITH_HEADERS = SEND._replace(headers=((b"", b""), (b"h", b"v\xff")))
RECORDS = {
    "one put": ChangeRecord(b"row", 5, (PUT,), stamp=1_000),
    "every kind": ChangeRecord(b"r\x00", 9, DELETES, stamp=1_001),
    "with what was before": ChangeRecord(b"row", 6, (PUT,), OLD, stamp=1_002),
    "a delete of one version": ChangeRecord(b"row", 9, (Entry(Kind.DELETE_VERSION, b"f", b"q", 5, b""),), stamp=1_003),
    "a backfill": ChangeRecord(b"row", 5, (), (), "trigger-1", 1_004),
    "with images": ChangeRecord(
        b"row", 6, (PUT,), (*OLD, OTHER), None, 1_006, 0, (PUT, GONE), images=IMAGES, touched=1
    ),
    "images of nothing": ChangeRecord(b"row", 6, (PUT,), stamp=1_007, images={}),
    "everything there can be": ChangeRecord(
        b"row", 6, (PUT,), OLD, "t", 1_005, 7, (PUT,), (SEND, SEND), True, IMAGES, 1
    ),
    "sends alone": ChangeRecord(b"row", 1_008, (), stamp=1_008, sends=(SEND,)),
    "sends with headers": ChangeRecord(b"row", 5, (PUT,), stamp=1_009, sends=(SEND, WITH_HEADERS)),
    "sends with headers, and images": ChangeRecord(
        b"row", 6, (PUT,), OLD, None, 1_010, 0, (PUT,), (WITH_HEADERS,), False, IMAGES, 1
    ),
}
OF_VERSION_1 = {
    "one put": ChangeRecord(b"row", 5, (PUT,), stamp=5),
    "every kind": ChangeRecord(b"r\x00", 9, DELETES, stamp=9),
    "with what was before": ChangeRecord(b"row", 6, (PUT,), OLD, stamp=6),
    "a delete of one version": ChangeRecord(b"row", 9, (Entry(Kind.DELETE_VERSION, b"f", b"q", 5, b""),), stamp=9),
    "a backfill": ChangeRecord(b"row", 5, (), (), "trigger-1", 5),
}


def test_records() -> None:
    hold_to("change-records.txt", {name: pack(record) for name, record in RECORDS.items()})
    assert {name: unpack(pack(record)) for name, record in RECORDS.items()} == RECORDS


def test_records_of_version_1_are_read_for_ever() -> None:
    found = dict(line.split("  ") for line in (FOLDER / "change-records-1.txt").read_text().splitlines())
    assert {name: unpack(bytes.fromhex(data)) for name, data in found.items()} == OF_VERSION_1


def test_keys() -> None:
    sequences = [Sequence(7, 1, 1), Sequence(7, 1, 256), Sequence(7, 2, 1), Sequence(8, 1, 1)]
    hold_to("change-keys.txt", {sequence.token: pack_key(sequence) for sequence in sequences})
    assert [unpack_key(pack_key(sequence)) for sequence in sequences] == sequences
    assert sorted(map(pack_key, sequences)) == [pack_key(sequence) for sequence in sequences]


def test_what_is_no_record_is_damage() -> None:
    for name in ("everything there can be", "sends with headers", "sends with headers, and images"):
        whole = RECORDS[name]
        data = pack(whole)
        for length in range(len(data)):
            try:
                held = unpack(data[:length])
            except DamagedData:
                continue
            assert held != whole
    data = pack(RECORDS["everything there can be"])
    with pytest.raises(DamagedData, match="version 9"):
        unpack(b"\x09" + data[1:])
