"""The bytes of docs/formats/change-events.md."""

from __future__ import annotations

import msgpack
import pytest

from columnar.errors import DamagedData
from columnar.model.change_events import ChangeEvent, EventEntry, EventPacker, ForgetEvent, RowEvent, unpack_events
from tests.support.golden import hold_to

ENTRIES = [(1, b"f:q\xff", 5, b"value"), (2, b"f:", 9, b""), (3, b"g", 1 << 40, b""), (4, b"f:v", 7, b"")]
SEQUENCE = (5, 2, 1 << 40)


def packed() -> dict[str, bytes]:
    pack = EventPacker()
    return {
        "a put": pack.pack_change(b"row", SEQUENCE, 1 << 41, ENTRIES[:1], None, None, more=False),
        "every kind, with more": pack.pack_change(b"r\x00", SEQUENCE, 7, ENTRIES, None, None, more=True),
        "with images": pack.pack_change(b"row", SEQUENCE, 7, ENTRIES[:1], {}, {b"f:q": b"1"}, more=False),
        "a row": pack.pack_row(b"row", SEQUENCE, [(b"f:q", 5, b"value"), (b"g:", 6, b"")]),
        "forget": pack.pack_forget(b"", b"\xff"),
    }


def test_events() -> None:
    found = packed()
    hold_to("change-events.txt", found)
    first = EventEntry(*ENTRIES[0])
    assert list(unpack_events(b"".join(found.values()))) == [
        ChangeEvent(b"row", SEQUENCE, 1 << 41, False, [first], None, None),
        ChangeEvent(b"r\x00", SEQUENCE, 7, True, [EventEntry(*one) for one in ENTRIES], None, None),
        ChangeEvent(b"row", SEQUENCE, 7, False, [first], {}, {b"f:q": b"1"}),
        RowEvent(b"row", SEQUENCE, [(b"f:q", 5, b"value"), (b"g:", 6, b"")]),
        ForgetEvent(b"", b"\xff"),
    ]


def test_readers_ignore_what_later_versions_add() -> None:
    known = packed()["forget"]
    later = msgpack.packb([1, b"row", SEQUENCE, 7, False, [[1, b"f:q", 5, b"v", "new"]], None, None, "new"])
    events = list(unpack_events(msgpack.packb([9, "of a later version"]) + later + known))
    assert events == [
        ChangeEvent(b"row", SEQUENCE, 7, False, [EventEntry(1, b"f:q", 5, b"v")], None, None),
        ForgetEvent(b"", b"\xff"),
    ]


@pytest.mark.parametrize("cut", [1, 5, -1])
def test_cut_bytes_are_an_error_and_never_fewer_events(cut: int) -> None:
    with pytest.raises(DamagedData):
        list(unpack_events(packed()["a row"][:cut]))


@pytest.mark.parametrize("data", [b"\xc0", msgpack.packb([1, b"row"]), msgpack.packb([1] * 8), b"\xc1"])
def test_other_bytes_are_an_error(data: bytes) -> None:
    with pytest.raises(DamagedData):
        list(unpack_events(data))
