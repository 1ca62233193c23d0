"""Packed calls mean what they say, and replies are judged by what they hold."""

from __future__ import annotations

from random import Random

import pytest

from columnar.bench import calls, dataset
from columnar.bench.calls import BadReply
from columnar.bench.dataset import DataSet
from columnar.bench.sessions import Repeating, Session
from columnar.bench.workloads import LOAD_ROWS, WORKLOADS, Loading, Scanning
from columnar.wire import idl
from columnar.wire.codec import Request, ServiceCodec, application_error
from columnar.wire.codec_replies import RowList
from columnar.wire.detect import Protocol
from columnar.wire.framing import RequestStream

CODEC = ServiceCodec(idl.SERVICE)
DATA = DataSet(200)


def heard(frame: bytes) -> Request:
    """The frame as a server takes it."""
    stream = RequestStream(CODEC)
    stream.feed(frame)
    request = stream.next()
    assert isinstance(request, Request)
    return request


def framed(message: bytes) -> bytes:
    return len(message).to_bytes(4, "big") + message


def reply(method: str, result: object) -> bytes:
    return framed(CODEC.methods[method].reply(Protocol.BINARY, 0, result))


def sessions(name: str, connections: int) -> list[Session]:
    return WORKLOADS[name].sessions(DATA, Random(1), connections)


def test_a_call_is_understood_by_a_server() -> None:
    request = heard(calls.call("get", b"t", b"r", b"f:q", {}))
    assert request.method is not None
    assert (request.method.name, request.args[:3]) == ("get", [b"t", b"r", b"f:q"])


def test_a_good_answer_gives_the_next_call_and_its_worth() -> None:
    (session,) = sessions("get-cell", 1)
    asked = heard(session.first())
    frame, units = session.answered(reply("get", [(b"v" * dataset.SMALL_BYTES, 5)]))
    assert (asked.args[0], units) == (dataset.SMALL_TABLE, 1)
    assert heard(frame).method is not None


@pytest.mark.parametrize("answer", [[], [(b"", 5)], [(b"v" * 40, 5), (b"w" * 40, 4)]])
def test_an_answer_without_the_cell_is_a_failure(answer: list[tuple[bytes, int]]) -> None:
    (session,) = sessions("get-cell", 1)
    session.first()
    if answer == [(b"", 5)]:
        with pytest.raises(BadReply):
            Repeating([calls.exchange("get", (), calls.list_of(1), reply_bytes=100)], 0).answered(reply("get", answer))
    else:
        with pytest.raises(BadReply):
            session.answered(reply("get", answer))


def test_an_exception_is_told_in_its_own_words() -> None:
    error = idl.hbase.IOError(message="TableNotFoundException: t", canRetry=False)
    declared = framed(CODEC.methods["get"].declared_error(Protocol.BINARY, 0, error))
    assert calls.fault_of(declared) == "get: TableNotFoundException: t"
    unknown = framed(application_error(b"nope", Protocol.BINARY, 0, 1, "Invalid method name: 'nope'"))
    assert calls.fault_of(unknown) == "nope: Invalid method name: 'nope'"
    assert calls.fault_of(b"HTTP/1.1 400 Bad").startswith("not a framed Thrift reply")


def test_a_scan_goes_to_the_end_and_begins_again() -> None:
    scanning = Scanning(b"t")
    assert heard(scanning.first()).name == b"scannerOpenWithScan"
    frame, units = scanning.answered(reply("scannerOpenWithScan", 7))
    assert (heard(frame).name, heard(frame).args[0], units) == (b"scannerGetList", 7, 0)
    rows = RowList([(b"r%d" % number, [(b"f:q", b"v", 1)]) for number in range(3)])
    frame, units = scanning.answered(reply("scannerGetList", rows))
    assert (heard(frame).name, units) == (b"scannerGetList", 3)
    frame, units = scanning.answered(reply("scannerGetList", RowList([])))
    assert (heard(frame).name, heard(frame).args[0], units) == (b"scannerClose", 7, 0)
    frame, units = scanning.answered(reply("scannerClose", None))
    assert (heard(frame).name, units) == (b"scannerOpenWithScan", 0)


def test_a_load_writes_new_rows_in_each_call() -> None:
    (session,) = sessions("load", 1)
    assert isinstance(session, Loading)
    first = [batch.row for batch in heard(session.first()).args[1]]
    frame, units = session.answered(reply("mutateRows", None))
    second = heard(frame).args[1]
    assert len(first) == units == LOAD_ROWS
    assert len({*first, *(batch.row for batch in second)}) == 2 * LOAD_ROWS
    assert sum(len(put.value) for put in second[0].mutations) > dataset.ROW_BYTES - dataset.CELLS


def test_connections_begin_at_different_calls() -> None:
    begun = {session.first() for session in sessions("get-row", 8)}
    assert len(begun) > 4


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_packs_what_a_server_takes(name: str) -> None:
    for session in sessions(name, 2):
        assert heard(session.first()).method is not None
