"""Bytes of triggers on disk and on the worker's socket: cursors, registrations, dead letters, frames, marks."""

from __future__ import annotations

from dataclasses import replace

import msgpack
import pytest

from columnar.errors import DamagedData
from columnar.flows.delivery_cursor import LONG_OPEN, Cursor, Progress, _long_parts, pack_cursor, unpack_cursor
from columnar.model.mutation import Put
from columnar.model.trigger_registration import Registration, from_json, to_json
from columnar.regions.log.change_record import ChangeRecord, Entry, Kind, Sequence
from columnar.regions.log.change_record import pack as pack_record
from columnar.regions.log.log_retention import LogRetention
from columnar.storage.memory import MemoryEngine
from columnar.triggers import dead_letters
from columnar.triggers.dead_letters import DeadLetter
from columnar.triggers.frames import Frames, pack

CURSOR = Cursor(Sequence(7, 2, 300), ((Sequence(7, 1, 5), 0), (Sequence(7, 2, 299), 3)))
CURSOR_BYTES = bytes.fromhex("9301930702cd012c92929307010500929307" + "02cd012b03")
REGISTRATION = Registration("links", "pages", "wiki.triggers:links", ("link", "me\xff"), True, "beginning", 5_000, 3)
REGISTRATION_BYTES = (
    b'{"attempts": 3, "before": true, "families": ["link", "me\\u00ff"], "from_where": "beginning", '
    b'"function": "wiki.triggers:links", "name": "links", "table": "pages", "timeout_ms": 5000}'
)
LETTER = DeadLetter("links", "pages", b"row\xff", "7-2-300", 3, "Error: why", "said", 1_700_000_000_000)
LETTER_BYTES = (
    b'{"attempts": 3, "error": "Error: why", "output": "said", "row": "row\\u00ff", "sequence": "7-2-300", '
    b'"table": "pages", "timestamp_ms": 1700000000000, "trigger": "links"}'
)


def test_cursor() -> None:
    assert pack_cursor(CURSOR) == CURSOR_BYTES
    assert unpack_cursor(CURSOR_BYTES) == CURSOR
    assert pack_cursor(Cursor(None, ())) == b"\x93\x01\xc0\x90"
    assert unpack_cursor(b"\x93\x01\xc0\x90") == Cursor(None, ())


def test_cursors_of_changes_with_checkpoints() -> None:
    held = CURSOR._replace(progress=(Progress(Sequence(7, 2, 299), b"half"),))
    data = bytes.fromhex("9402930702cd012c92929307010500929307" + "02cd012b03" + "9192930702cd012bc40468616c66")
    assert (pack_cursor(held), unpack_cursor(data)) == (data, held)
    held = CURSOR._replace(progress=(Progress(Sequence(7, 1, 5), b"a"), Progress(Sequence(7, 2, 299), b"half", 2)))
    data = bytes.fromhex(
        "9504930702cd012c92929307010500929307"
        + "02cd012b03"
        + "929393070105c40161009393"
        + "0702cd012bc40468616c6602"
        + "c400"
    )
    assert (pack_cursor(held), unpack_cursor(data)) == (data, held)


def test_a_cursor_of_many_open_changes() -> None:
    one, two, three = Sequence(7, 2, 299), Sequence(7, 2, 300), Sequence(8, 1, 5)
    held = Cursor(three, ((one, 3), (two, 0), (three, 0)), (Progress(two, b"a", 2),), b"k", ((three, 9),))
    data = bytes.fromhex(
        "9606930801059292930702"
        + "92cd012b01"
        + "930801"
        + "9105"
        + "91920003"
        + "919301c4016102"
        + "c4016b"
        + "91920209"
    )
    assert (msgpack.packb(_long_parts(held)), unpack_cursor(data)) == (data, held)
    for at, worse in (
        (data.index(b"\x92\x00\x03") + 1, 9),
        (data.index(b"\x93\x01\xc4") + 1, 3),
        (len(data) - 2, 0xFF),
    ):
        with pytest.raises(DamagedData, match="trigger cursor"):
            unpack_cursor(data[:at] + bytes((worse,)) + data[at + 1 :])


def test_a_long_cursor_is_short() -> None:
    changes = tuple((Sequence(1 << 60, 1 << 20, 10_000_000 + 3 * n), 0) for n in range(8_192))
    held = Cursor(changes[-1][0], changes, tuple(Progress(one, b"\x00") for one, _ in changes))
    data = pack_cursor(held)
    assert unpack_cursor(data) == held
    assert len(data) < 10 * len(changes)
    short = held._replace(open=changes[:LONG_OPEN], progress=())
    assert pack_cursor(short)[1] == 1, "programs of before read it"


@pytest.mark.parametrize("data", [b"", b"\x93\x02\xc0\x90", b"\x93\x01\xc0", b"\x01", CURSOR_BYTES[:-1], b"\xff" * 9])
def test_damaged_cursors_are_told(data: bytes) -> None:
    with pytest.raises(DamagedData, match="trigger cursor"):
        unpack_cursor(data)


def test_registration() -> None:
    assert to_json(REGISTRATION) == REGISTRATION_BYTES
    assert from_json(REGISTRATION_BYTES) == REGISTRATION


def test_registration_of_an_author() -> None:
    """Fields that came later stand where they say something."""
    held = Registration(
        "tags", "pages", "m:tags", ("meta",), True, row=False, columns=("meta:tags",), where=("meta:n=1",),
        look=(("fans", "followers", "row"),), images=True, writes=("tags",), of_module="m",
    )  # fmt: skip
    data = (
        b'{"attempts": 8, "before": true, "columns": ["meta:tags"], "families": ["meta"], "from_where": "now", '
        b'"function": "m:tags", "images": true, "look": [["fans", "followers", "row"]], "name": "tags", '
        b'"of_module": "m", "row": false, "table": "pages", "timeout_ms": 30000, "where": ["meta:n=1"], '
        b'"writes": ["tags"]}'
    )
    assert to_json(held) == data
    assert from_json(data) == held
    with pytest.raises(DamagedData, match="condition 'meta:n'"):
        from_json(data.replace(b"meta:n=1", b"meta:n"))


def test_dead_letter() -> None:
    writing = dead_letters.writing(LETTER)
    assert writing.row == b"links\x00" + bytes.fromhex("0000000000000007" + "00000002" + "000000000000012c")
    (put,) = writing.operations
    assert put == Put(b"info", b"letter", LETTER_BYTES)
    assert dead_letters.from_cell(LETTER_BYTES) == LETTER


def test_dead_letter_with_its_change() -> None:
    entry = Entry(Kind.PUT, b"f", b"q", 5, b"v")
    image = Entry(Kind.PUT, b"f", b"r", 4, b"w" * 20)
    images = {b"f": None}
    change = ChangeRecord(b"row\xff", 5, (entry,), (image,), None, 1_700, 2, images=images)
    letter = replace(LETTER, change=change)
    put, more = dead_letters.writing(letter).operations
    assert put == Put(b"info", b"letter", LETTER_BYTES), "earlier versions read it"
    assert more == Put(b"info", b"change", b"\x01" + pack_record(change))
    assert dead_letters.from_cells({b"info:letter": LETTER_BYTES, b"info:change": more.value}) == letter
    assert dead_letters.from_cells({b"info:letter": LETTER_BYTES}) == LETTER, "a letter of an earlier version"
    with pytest.raises(DamagedData, match="is not known"):
        dead_letters.from_cells({b"info:letter": LETTER_BYTES, b"info:change": b"\x09" + more.value[1:]})


def test_a_change_that_is_too_large_loses_its_images_then_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    entry, image = Entry(Kind.PUT, b"f", b"q", 5, b"v"), Entry(Kind.PUT, b"f", b"r", 4, b"w" * 200)
    change = ChangeRecord(b"row", 5, (entry,), (image,), None, 1_700, images={b"f": None})
    monkeypatch.setattr(dead_letters, "CHANGE_BYTES", 200)
    _, more = dead_letters.writing(replace(LETTER, change=change)).operations
    assert isinstance(more, Put)
    found = dead_letters.from_cells({b"info:letter": LETTER_BYTES, b"info:change": more.value})
    assert (found.lacks_images, found.change) == (True, change.but(before=(), images=None))
    monkeypatch.setattr(dead_letters, "CHANGE_BYTES", 20)
    assert len(dead_letters.writing(replace(LETTER, change=change)).operations) == 1


def test_letters_of_a_trigger_stand_together_oldest_first() -> None:
    rows = [dead_letters.letter_row("a", f"7-1-{n}") for n in (2, 9, 10, 300)]
    start, stop = dead_letters.rows_of("a")
    assert rows == sorted(rows)
    assert all(start <= row < stop for row in rows)
    assert not start <= dead_letters.letter_row("ab", "7-1-1") < stop


def test_frames() -> None:
    assert pack("ran", 258, None, "said") == bytes.fromhex("0000000e" + "94a372616ecd0102c0a473616964")
    both = pack("ran", 1, None, "") + pack("began", 2)
    frames = Frames()
    found = [frame for at in range(len(both)) for frame in frames.feed(both[at : at + 1])]
    assert found == [["ran", 1, None, ""], ["began", 2]]


@pytest.mark.parametrize(
    "data", [b"\xff" * 8, b"\x00\x00\x00\x01\xc1", b"\x00\x00\x00\x01\x05", b"\x00\x00\x00\x01\x90"]
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        list(Frames().feed(data))


def test_marks_of_retention() -> None:
    store = MemoryEngine().open_store("r", frozenset({"meta"}))
    kept = LogRetention(store)
    for second in range(0, 1_000, 5):
        kept.note(Sequence(7, 1, second), second * 1_000, 100)
        past = kept.older_than(second * 1_000, 100)
        assert past is None or past.n < second - 100
    assert past == Sequence(7, 1, 890)
    marks = list(store.scan("meta", b"", None))
    assert len(marks) <= 64 + 2
    assert marks[0] == (
        b"time/" + (890_000).to_bytes(8, "big"),
        bytes.fromhex("0000000000000007" + "00000001" + "000000000000037a"),
    )
    assert LogRetention(store).older_than(995_000, 100) == past, "after a restart"
