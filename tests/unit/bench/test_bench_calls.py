"""Packed calls mean what they say, and replies are judged by what they hold."""

from __future__ import annotations

from random import Random

import pytest

from columnar.bench import calls, dataset
from columnar.bench.calls import BadReply, CallSpec, Numbered, Success
from columnar.bench.protocols import BINARY, COMPACT, WIRES, Wire
from columnar.bench.workloads import LOAD_ROWS, STANDARD, Loading, Repeating, Scanning, Session
from columnar.wire import idl
from columnar.wire.codec import Request, ServiceCodec, application_error
from columnar.wire.codec_replies import RowList
from columnar.wire.detect import Protocol
from columnar.wire.framing import RequestStream

CODEC = ServiceCodec(idl.SERVICE)
DATA = 200


def heard(frame: bytes) -> Request:
    """The frame as a server takes it."""
    stream = RequestStream(CODEC)
    stream.feed(frame)
    request = stream.next()
    assert isinstance(request, Request)
    return request


def framed(message: bytes) -> bytes:
    return len(message).to_bytes(4, "big") + message


SPOKEN = {BINARY: Protocol.BINARY, COMPACT: Protocol.COMPACT}
BOTH = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)


def reply(method: str, result: object, wire: Wire = BINARY) -> bytes:
    return framed(CODEC.methods[method].reply(SPOKEN[wire], 0, result))


def sessions(name: str, connections: int, wire: Wire = BINARY) -> list[Session]:
    return STANDARD[name].sessions(DATA, Random(1), connections, wire)


@BOTH
def test_a_call_is_understood_by_a_server(wire: Wire) -> None:
    request = heard(calls.call("get", b"t", b"r", b"f:q", {}, wire=wire))
    assert request.method is not None
    assert (request.method.name, request.args[:3]) == ("get", [b"t", b"r", b"f:q"])


@BOTH
def test_a_good_answer_gives_the_next_call_and_its_worth(wire: Wire) -> None:
    (session,) = sessions("get-cell", 1, wire)
    asked = heard(session.first())
    frame, units = session.take_reply(reply("get", [(b"v" * dataset.SMALL_BYTES, 5)], wire))
    assert (asked.args[0], units) == (dataset.SMALL_TABLE, 1)
    assert heard(frame).method is not None


@BOTH
@pytest.mark.parametrize("answer", [[], [(b"", 5)], [(b"v" * 40, 5), (b"w" * 40, 4)]])
def test_an_answer_without_the_cell_is_a_failure(answer: list[tuple[bytes, int]], wire: Wire) -> None:
    (session,) = sessions("get-cell", 1, wire)
    session.first()
    if answer == [(b"", 5)]:
        one = CallSpec("get", (), calls.list_of(1), reply_bytes=100).packed(wire)
        with pytest.raises(BadReply):
            Repeating([one], 0).take_reply(reply("get", answer, wire))
    else:
        with pytest.raises(BadReply):
            session.take_reply(reply("get", answer, wire))


@BOTH
@pytest.mark.parametrize("count", [0, 1, 14, 15, 200])
def test_the_length_of_a_list_is_found(count: int, wire: Wire) -> None:
    answer = reply("scannerGetList", RowList([(b"r", [(b"f:q", b"v", 1)])] * count), wire)
    assert wire.count_at(answer, wire.good_begin("scannerGetList", calls.LIST_SUCCESS)) == count
    assert answer.startswith(wire.good_begin("scannerGetList", calls.list_of(count)), calls.FRAME_HEAD)


@BOTH
@pytest.mark.parametrize("number", [0, 1, 63, 64, 300, 2**31 - 1])
def test_the_number_of_a_scanner_is_found_and_put_into_a_packed_call(number: int, wire: Wire) -> None:
    good = wire.good_begin("scannerOpenWithScan", calls.I32_SUCCESS)
    assert wire.id_at(reply("scannerOpenWithScan", number, wire), good) == number
    assert heard(Numbered(wire, "scannerGetList", 77).frame(number)).args == [number, 77]
    assert Numbered(wire, "scannerGetList", 77).frame(number) == calls.call("scannerGetList", number, 77, wire=wire)


@BOTH
@pytest.mark.parametrize(
    ("method", "result", "success"),
    [("mutateRow", None, calls.VOID_SUCCESS), ("atomicIncrement", 7, calls.I64_SUCCESS)],
)
def test_an_answer_without_a_list_begins_as_it_should(
    method: str, result: object, success: Success, wire: Wire
) -> None:
    assert reply(method, result, wire).startswith(wire.good_begin(method, success), calls.FRAME_HEAD)


@BOTH
def test_an_exception_is_told_in_its_own_words(wire: Wire) -> None:
    error = idl.hbase.IOError(message="TableNotFoundException: t", canRetry=False)
    declared = framed(CODEC.methods["get"].declared_error(SPOKEN[wire], 0, error))
    assert calls.fault_of(declared) == "get: TableNotFoundException: t"
    with pytest.raises(BadReply, match="TableNotFoundException"):
        wire.count_at(declared, wire.good_begin("get", calls.LIST_SUCCESS))
    unknown = framed(application_error(b"nope", SPOKEN[wire], 0, 1, "Invalid method name: 'nope'"))
    assert calls.fault_of(unknown) == "nope: Invalid method name: 'nope'"
    assert calls.fault_of(b"HTTP/1.1 400 Bad").startswith("not a framed Thrift reply")
    for end in range(len(declared)):
        assert calls.fault_of(declared[:end])  # cut off anywhere, something is said


@BOTH
def test_a_scan_goes_to_the_end_and_begins_again(wire: Wire) -> None:
    scanning = Scanning(b"t", wire)
    assert heard(scanning.first()).name == b"scannerOpenWithScan"
    frame, units = scanning.take_reply(reply("scannerOpenWithScan", 7, wire))
    assert (heard(frame).name, heard(frame).args[0], units) == (b"scannerGetList", 7, 0)
    rows = RowList([(b"r%d" % number, [(b"f:q", b"v", 1)]) for number in range(3)])
    frame, units = scanning.take_reply(reply("scannerGetList", rows, wire))
    assert (heard(frame).name, units) == (b"scannerGetList", 3)
    frame, units = scanning.take_reply(reply("scannerGetList", RowList([]), wire))
    assert (heard(frame).name, heard(frame).args[0], units) == (b"scannerClose", 7, 0)
    frame, units = scanning.take_reply(reply("scannerClose", None, wire))
    assert (heard(frame).name, units) == (b"scannerOpenWithScan", 0)


@BOTH
def test_a_load_writes_new_rows_in_each_call(wire: Wire) -> None:
    (session,) = sessions("load", 1, wire)
    assert isinstance(session, Loading)
    first = [batch.row for batch in heard(session.first()).args[1]]
    frame, units = session.take_reply(reply("mutateRows", None, wire))
    second = heard(frame).args[1]
    assert len(first) == units == LOAD_ROWS
    assert len({*first, *(batch.row for batch in second)}) == 2 * LOAD_ROWS
    assert sum(len(put.value) for put in second[0].mutations) > dataset.ROW_BYTES - dataset.CELLS


def test_connections_begin_at_different_calls() -> None:
    begun = {session.first() for session in sessions("get-row", 8)}
    assert len(begun) > 4


@pytest.mark.parametrize("name", STANDARD)
def test_every_workload_packs_what_a_server_takes(name: str) -> None:
    for session in sessions(name, 2):
        assert heard(session.first()).method is not None
