"""YCSB's workloads: their mixes, and sessions whose operations have several calls."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from benchmarks.ycsb import FIELD_BYTES, LONGEST_SCAN, YCSB, Rows, ycsb_cells, ycsb_column, ycsb_key
from columnar.bench.calls import BadReply
from columnar.bench.protocols import BINARY
from columnar.bench.workloads import MORE_CALLS, Session
from columnar.wire import idl
from columnar.wire.codec import Request, ServiceCodec
from columnar.wire.codec_replies import RowList
from columnar.wire.detect import Protocol
from columnar.wire.framing import RequestStream

CODEC = ServiceCodec(idl.SERVICE)
DATA = 200
ROW = RowList([(b"r", [(column, value, 1) for column, value in ycsb_cells(0)])])
ANSWERS: dict[str, Any] = {
    "getRow": ROW,
    "mutateRow": None,
    "scannerOpenWithScan": 7,
    "scannerGetList": ROW,
    "scannerClose": None,
}


def heard(frame: bytes) -> Request:
    stream = RequestStream(CODEC)
    stream.feed(frame)
    request = stream.next()
    assert isinstance(request, Request)
    return request


def reply(request: Request, answer: Any = ...) -> bytes:
    name = request.name.decode()
    message = CODEC.methods[name].reply(Protocol.BINARY, 0, ANSWERS[name] if answer is ... else answer)
    return len(message).to_bytes(4, "big") + message


def session(name: str) -> Session:
    return YCSB[name].sessions(DATA, Random(1), 2, BINARY)[1]


def operations(name: str, count: int) -> list[list[Request]]:
    """So many operations of a connection, each with its calls."""
    one, found = session(name), []
    frame, calls = one.first(), []
    while len(found) < count:
        calls.append(heard(frame))
        frame, units = one.take_reply(reply(calls[-1]))
        if units == MORE_CALLS:
            continue
        assert units == 1
        found.append(calls)
        calls = []
    return found


@pytest.mark.parametrize(
    ("name", "mix"),
    [
        ("ycsb-a", {"getRow": 0.5, "mutateRow": 0.5}),
        ("ycsb-b", {"getRow": 0.95, "mutateRow": 0.05}),
        ("ycsb-c", {"getRow": 1.0}),
        ("ycsb-d", {"getRow": 0.95, "mutateRow": 0.05}),
        ("ycsb-e", {"scannerOpenWithScan scannerGetList scannerClose": 0.95, "mutateRow": 0.05}),
        ("ycsb-f", {"getRow": 0.5, "getRow mutateRow": 0.5}),
    ],
)
def test_the_mix_is_that_of_ycsb(name: str, mix: dict[str, float]) -> None:
    found = Counter(" ".join(call.name.decode() for call in calls) for calls in operations(name, 2_000))
    found.pop("mutateRow", None) if name == "ycsb-f" else None  # a ring may be entered between the two calls
    assert set(found) == set(mix)
    for kind, share in mix.items():
        assert found[kind] / found.total() == pytest.approx(share, abs=0.04)


def test_updates_are_of_one_field_and_inserts_of_a_row() -> None:
    ((put,), *_) = (calls for calls in operations("ycsb-a", 100) if calls[0].name == b"mutateRow")
    assert [len(mutation.value) for mutation in put.args[2]] == [FIELD_BYTES]
    ((insert,), *_) = (calls for calls in operations("ycsb-e", 200) if calls[0].name == b"mutateRow")
    assert [mutation.column for mutation in insert.args[2]] == [ycsb_column(field) for field in range(10)]


def test_a_read_and_its_put_are_of_one_row() -> None:
    pairs = [calls for calls in operations("ycsb-f", 200) if len(calls) == 2]
    assert all(read.args[1] == put.args[1] for read, put in pairs)


def test_a_scan_has_the_length_it_was_opened_with() -> None:
    scans = [calls for calls in operations("ycsb-e", 500) if len(calls) == 3]
    for opened, listed, closed in scans:
        assert listed.args == [7, opened.args[1].caching]
        assert closed.args[0] == 7
    lengths = [opened.args[1].caching for opened, _, _ in scans]
    assert (min(lengths) < 5, max(lengths) > 95) == (True, True)
    assert 1 <= min(lengths) <= max(lengths) <= LONGEST_SCAN


@pytest.mark.parametrize("rows", [0, LONGEST_SCAN + 1])
def test_a_scan_without_its_rows_is_a_failure(rows: int) -> None:
    one = session("ycsb-e")
    frame = one.first()
    while heard(frame).name != b"scannerGetList":
        frame, _ = one.take_reply(reply(heard(frame)))
    with pytest.raises(BadReply):
        one.take_reply(reply(heard(frame), RowList([(b"r", [(b"f:q", b"v", 1)])] * rows)))


def test_a_row_without_its_fields_is_a_failure() -> None:
    for name in ("ycsb-c", "ycsb-d"):
        one = session(name)
        frame = one.first()
        while heard(frame).name != b"getRow":
            frame, _ = one.take_reply(reply(heard(frame)))
        with pytest.raises(BadReply):
            one.take_reply(reply(heard(frame), RowList([(b"r", [(b"f:field0", b"v", 1)])])))


def test_the_latest_rows_are_those_that_were_acknowledged() -> None:
    rows = Rows(100, 5_000)
    assert [rows.newest(back) for back in (0, 99, 100)] == [99, 0, 99]
    inserted = [rows.new(), rows.new(), rows.new()]
    rows.came(inserted[0])
    rows.came(inserted[2])
    assert [rows.newest(back) for back in (0, 1, 2)] == [5_002, 5_000, 99]


def test_reads_of_the_latest_find_what_was_inserted() -> None:
    inserted: set[bytes] = set()
    read_again = 0
    known = {ycsb_key(number) for number in range(DATA)}
    for (call,) in operations("ycsb-d", 2_000):
        key = call.args[1]
        if call.name == b"mutateRow":
            inserted.add(key)
        else:
            read_again += key in inserted
            assert key in inserted | known
    assert len(inserted) > 50
    assert read_again > 500


def test_turns_insert_rows_of_their_own() -> None:
    def new_keys(seed: int) -> set[bytes]:
        one = YCSB["ycsb-d"].sessions(DATA, Random(seed), 1, BINARY)[0]
        found, frame = set(), one.first()
        for _ in range(300):
            call = heard(frame)
            found |= {call.args[1]} if call.name == b"mutateRow" else set()
            frame, _ = one.take_reply(reply(call))
        return found

    assert new_keys(1)
    assert not new_keys(1) & new_keys(2)
