"""The bytes of docs/formats/queues.md."""

from __future__ import annotations

from dataclasses import replace

import pytest

from columnar.errors import DamagedData, IllegalArgument
from columnar.model.queue_place import first_row
from columnar.queues import keys
from columnar.queues.keys import LeaseCell, Message, Settings, Subqueue, Totals
from columnar.sqs.message_attributes import Attribute, OwnFields, headers_of
from columnar.sqs.queue_attributes import OwnAttributes, pack_cell
from tests.support.golden import hold_to

Q = b"thumbs"
SUBQUEUE = Subqueue(255 - 9, b"a\x00b")
MESSAGE = Message(b"name", ((b"k", b"v"), (b"", b"")), b"body\x00\xff")
SIZE = Attribute("size", "Number", b"7")
LEASE = LeaseCell(1 << 40, 3, 1 << 50, SUBQUEUE, b"name", b"why", 1 << 49)


def test_queue_bytes() -> None:
    hold_to(
        "queues.txt",
        {
            "row: a message": keys.message_row(Q, SUBQUEUE, 258),
            "row: a message without a group": keys.message_row(Q, Subqueue(255, b""), 1 << 50),
            "row: a lease": keys.lease_row(Q, 258),
            "row: a name": keys.name_row(Q, b"name"),
            "row: a dead message": keys.dead_row(Q, 258),
            "row: settings and totals": keys.state_row(Q),
            "a message": keys.pack_message(MESSAGE),
            "a message with a body alone": keys.pack_message(Message(b"", (), b"body")),
            "a lease": keys.pack_lease(LEASE),
            "settings": keys.pack_settings(Settings(60_000, 5, True)),
            "settings with retention": keys.pack_settings(Settings(60_000, 5, False, 86_400, b"others")),
            "purge": keys.pack_purge(keys.Purge(1 << 50)),
            "totals": keys.pack_totals(Totals(1 << 50, 2, 9, 6, 1)),
            "a name": keys.pack_named(258),
            "a receipt": keys.pack_receipt(258, 1 << 50),
            "header sqs:": headers_of((SIZE,), OwnFields("a-1", "Root=1", "AKID"))[b"sqs:"].decode(),
            "attributes that only SQS knows": pack_cell(OwnAttributes(9, 10, {"DelaySeconds": "5"})).decode(),
        },
    )


def test_what_is_packed_is_unpacked() -> None:
    assert keys.place_of(Q, keys.message_row(Q, SUBQUEUE, 258)) == (SUBQUEUE, 258)
    assert keys.n_of(keys.lease_row(Q, 258)) == 258
    assert keys.unpack_message(keys.pack_message(MESSAGE)) == MESSAGE
    assert keys.unpack_lease(keys.pack_lease(LEASE)) == LEASE
    assert keys.unpack_lease(keys.pack_lease(LEASE)[:-8]) == replace(LEASE, first=0), "of an older version"
    for settings in (
        Settings(60_000, 5, True),
        Settings(1, 0, False, 86_400, b"others"),
        Settings(1, 0, True, 0, b"o"),
    ):
        assert keys.unpack_settings(keys.pack_settings(settings)) == settings
    assert keys.unpack_purge(keys.pack_purge(keys.Purge(1 << 60))) == keys.Purge(1 << 60)
    assert keys.unpack_totals(keys.pack_totals(Totals(5, 4, 3, 2, 1))) == Totals(5, 4, 3, 2, 1)
    assert keys.unpack_receipt(keys.pack_receipt(7, 8)) == (7, 8)


def test_rows_are_in_the_order_of_priority_group_and_number() -> None:
    groups = (b"", b"\x00", b"\x00\x00", b"\x00\x01", b"\x00\xff", b"\x01", b"a", b"a\x00", b"ab", b"\xff")
    subqueues = [Subqueue(rank, group) for rank in (0, 1, 255) for group in groups]
    places = [(subqueue, n) for subqueue in subqueues for n in (0, 1, 255, 256, (1 << 64) - 1)]
    rows = [keys.message_row(Q, *place) for place in places]
    assert rows == sorted(rows)
    assert [keys.place_of(Q, row) for row in rows] == places
    start, stop = keys.messages_span(Q)
    assert all(first_row(Q) < start <= row < stop for row in rows)
    assert all((row < keys.after_subqueue(Q, SUBQUEUE)) == (keys.place_of(Q, row)[0] <= SUBQUEUE) for row in rows)


@pytest.mark.parametrize(
    "unpack", [keys.unpack_message, keys.unpack_lease, keys.unpack_settings, keys.unpack_totals, keys.unpack_purge]
)
@pytest.mark.parametrize("data", [b"", b"\x02" + b"\x00" * 60, b"\x01\xff\xff", b"\x01\x00\x00\xff\xff"])
def test_damaged_cells_are_refused(unpack: object, data: bytes) -> None:
    with pytest.raises(DamagedData):
        unpack(data)  # type: ignore[operator]


def test_damaged_rows_and_receipts_are_refused() -> None:
    with pytest.raises(DamagedData):
        keys.place_of(Q, Q + b"\x00r\xff")
    with pytest.raises(IllegalArgument):
        keys.unpack_receipt(None)
