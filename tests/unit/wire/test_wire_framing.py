"""Bytes in any pieces, sound and hostile: the same requests come out, in bounded memory and time."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thriftpy2.protocol.compact import TCompactProtocol
from thriftpy2.protocol.cybin import TCyBinaryProtocol
from thriftpy2.transport import TMemoryBuffer
from thriftpy2.transport.memory import TCyMemoryBuffer

from columnar.errors import CallQueueTooBig, RequestTooBig
from columnar.wire import codec_binary, idl
from columnar.wire.codec import Request, ServiceCodec
from columnar.wire.detect import NotThrift, Protocol, Speech, detect
from columnar.wire.framing import Hangup, Refusal, RequestStream, YieldLoop

CODEC = ServiceCodec(idl.SERVICE)
H = idl.hbase
SPEECHES = [Speech(framed, protocol) for framed in (False, True) for protocol in Protocol]


def message(speech: Speech, name: str, seqid: int = 7, kind: int = 1, **fields: Any) -> bytes:
    """A request as thriftpy2 sends it."""
    binary = speech.protocol is Protocol.BINARY
    buffer = TCyMemoryBuffer() if binary else TMemoryBuffer()
    protocol = TCyBinaryProtocol(buffer) if binary else TCompactProtocol(buffer)
    protocol.write_message_begin(name, kind, seqid)
    args = getattr(idl.SERVICE, name + "_args", None)
    protocol.write_struct(args(**fields) if args else H.TCell(b"x", 1))
    data = buffer.getvalue()
    return struct.pack(">I", len(data)) + data if speech.framed else data


def batch(rows: int = 3, size: int = 5) -> list[Any]:
    mutations = [H.Mutation(False, b"f:%d" % n, b"v" * size, True) for n in range(3)]
    return [H.BatchMutation(b"row%d" % n, [*mutations, H.Mutation(True, b"f:x", None, False)]) for n in range(rows)]


def calls(speech: Speech) -> list[bytes]:
    return [
        message(speech, "get", 1, tableName=b"t", row=b"r", column=b"f:q", attributes={}),
        message(speech, "mutateRows", 2, tableName=b"t", rowBatches=batch(), attributes={b"a": b"b"}),
        message(speech, "scannerGetList", 3, id=5, nbRows=-1),
        message(speech, "noSuchMethod", 4),
        message(
            speech, "getVerTs", 5, tableName=b"t", row=b"", column=b"f:", timestamp=-(2**63), numVersions=2**31 - 1
        ),
        message(speech, "getRowsWithColumns", 6, tableName=b"t", rows=[b"a"] * 20, columns=None, attributes=None),
        message(speech, "columnarTriggerWait", 7, trigger="é", token="1-2-3", timeoutMs=1),
        message(speech, "get", 8, kind=4, tableName=b"t", row=b"oneway", column=b"f:q", attributes={}),
    ]


def drain(stream: RequestStream) -> list[Request | Refusal]:
    found: list[Request | Refusal] = []
    while (item := stream.next()) is not None:
        if not isinstance(item, YieldLoop):
            found.append(item)
    return found


def facts(messages: list[Any]) -> list[object]:
    """What can be compared: a Request is no value."""
    return [
        (one.method, one.name, one.kind, one.seqid, one.args, one.size_bytes) if isinstance(one, Request) else one
        for one in messages
    ]


def decoded(pieces: list[bytes], stream: RequestStream | None = None) -> list[Any]:
    stream = stream or RequestStream(CODEC)
    found = []
    for piece in pieces:
        stream.feed(piece)
        found += drain(stream)
    return found


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces, pos = [], 0
    for size in sizes:
        pieces.append(data[pos : pos + size])
        pos += size
    return [*pieces, data[pos:]]


@pytest.mark.parametrize("speech", SPEECHES, ids=str)
def test_arguments_come_out_in_the_order_of_the_interface(speech: Speech) -> None:
    found = decoded(calls(speech))
    assert [(each.name, each.seqid, each.kind) for each in found][3:5] == [(b"noSuchMethod", 4, 1), (b"getVerTs", 5, 1)]
    assert found[0].args == [b"t", b"r", b"f:q", {}]
    assert found[1].args == [b"t", batch(), {b"a": b"b"}]
    assert found[2].args == [5, -1]
    assert found[3].method is None
    assert found[4].args == [b"t", b"", b"f:", -(2**63), 2**31 - 1, None]
    assert found[5].args == [b"t", [b"a"] * 20, None, None]
    assert found[6].args == ["é", "1-2-3", 1]
    assert found[7].kind == 4


@pytest.mark.parametrize("speech", SPEECHES, ids=str)
def test_split_at_every_byte(speech: Speech) -> None:
    data = b"".join(calls(speech))
    whole = decoded([data])
    assert len(whole) == 8
    assert facts(decoded([data[n : n + 1] for n in range(len(data))])) == facts(whole)
    for at in range(1, len(data)):
        assert facts(decoded([data[:at], data[at:]])) == facts(whole), at


@settings(max_examples=60)
@given(st.sampled_from(SPEECHES), st.permutations(range(8)), st.lists(st.integers(1, 200), max_size=12))
def test_pipelined_in_any_pieces(speech: Speech, order: list[int], sizes: list[int]) -> None:
    messages = calls(speech)
    data = b"".join(messages[n] for n in order)
    assert facts(decoded(cut(data, sizes))) == facts(decoded([data]))
    assert [each.seqid for each in decoded([data])] == [n + 1 for n in order]


@pytest.mark.parametrize("speech", SPEECHES, ids=str)
def test_a_truncated_message_never_comes_out(speech: Speech) -> None:
    for whole in calls(speech):
        for at in range(len(whole)):
            assert decoded([whole[:at]]) == []


def test_a_batch_in_many_pieces_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = message(SPEECHES[0], "mutateRows", tableName=b"t", rowBatches=batch(50, 5000), attributes={})
    decodes = []
    read_args = ServiceCodec.read_args
    monkeypatch.setattr(ServiceCodec, "read_args", lambda *args: (decodes.append(1), read_args(*args))[1])
    (found,) = decoded([data[n : n + 1400] for n in range(0, len(data), 1400)])
    assert len(found.args[1]) == 50
    assert len(decodes) == 2  # the short first try, and the whole


@pytest.mark.parametrize("protocol", list(Protocol))
def test_a_frame_must_hold_exactly_one_message(protocol: Protocol) -> None:
    data = message(Speech(False, protocol), "get", tableName=b"t", row=b"r", column=b"f:q", attributes={})
    for body in (data[:-1], data + b"\x00", data[:-5], b""):
        with pytest.raises(Hangup):
            decoded([message(Speech(True, protocol), "getTableNames"), struct.pack(">I", len(body)) + body])


def old(name: bytes, kind: int, seqid: int) -> bytes:
    return struct.pack(">I", len(name)) + name + struct.pack(">Bi", kind, seqid)


@pytest.mark.parametrize("framed", [False, True])
def test_the_header_from_before_versions(framed: bool) -> None:
    data = old(b"getTableNames", 1, -3) + b"\x00"
    data = struct.pack(">I", len(data)) + data if framed else data
    (found,) = decoded([data])
    assert (found.method.name, found.kind, found.seqid) == ("getTableNames", 1, -3)


# --- hostile -----------------------------------------------------------------------------------------

BEGIN = b"\x80\x01\x00\x01\x00\x00\x00\x03get\x00\x00\x00\x01"


@pytest.mark.parametrize(
    "args",
    [
        b"\x0b\x00\x01\x7f\xff\xff\xff",  # a string that claims 2 GB
        b"\x0b\x00\x01\xff\xff\xff\xff",  # or -1
        b"\x0f\x00\x63\x0c\x7f\xff\xff\xff",  # an unknown list of 2^31 structs
        b"\x0f\x00\x63\x00\x7f\xff\xff\xff",  # of 2^31 elements of no type
        b"\x0f\x00\x63\x02\x7f\xff\xff\xff",  # of 2^31 booleans
        b"\x0d\x00\x04\x0b\x0b\xff\xff\xff\xff",  # a map of -1 pairs
        b"\x0c\x00\x63" * 100,  # nested
        b"\x0f\x00\x63" + b"\x0f\x00\x00\x00\x01" * 100,
        b"\x55\x00\x01",  # an unknown type
        b"\x02\x00\x63\x01" * 100,  # more fields than any struct has
        b"\x0f\x00\x04\x0b\x00\x00\x00\x00",  # an empty list where a map belongs
    ],
)
def test_lies_in_a_binary_message(args: bytes) -> None:
    stream = RequestStream(CODEC, message_bytes=4096, drained_bytes=1 << 20)
    try:
        assert decoded([BEGIN + args], stream) == []
    except Hangup:
        pass
    else:
        assert stream.buffered_bytes <= len(BEGIN + args)
    framed = BEGIN + args
    with pytest.raises(Hangup):
        decoded([struct.pack(">I", len(framed)) + framed])


def test_an_element_of_no_bytes_is_refused_not_built() -> None:
    count = codec_binary.MUTATIONS_PER_CALL + 1
    head = b"\x80\x01\x00\x01\x00\x00\x00\x09mutateRow\x00\x00\x00\x01"
    body = head + b"\x0f\x00\x03\x0c" + struct.pack(">I", count) + b"\x00" * count + b"\x00"
    (found,) = decoded([struct.pack(">I", len(body)) + body])
    assert isinstance(found, Refusal)
    assert isinstance(found.error, RequestTooBig)
    (found, after) = decoded([body, BEGIN + b"\x00"])
    assert isinstance(found, Refusal)
    assert after.args == [None, None, None, None]


@pytest.mark.parametrize("speech", SPEECHES, ids=str)
def test_an_oversized_message_is_drained_in_little_memory(speech: Speech) -> None:
    stream = RequestStream(CODEC, message_bytes=1000, drained_bytes=1 << 20)
    big = message(speech, "mutateRows", 9, tableName=b"t", rowBatches=batch(10, 9000), attributes={})
    small = message(speech, "get", 10, tableName=b"t", row=b"r", column=b"f:q", attributes={})
    found = []
    most = 0
    data = big + small
    for at in range(0, len(data), 700):
        stream.feed(data[at : at + 700])
        found += drain(stream)
        most = max(most, stream.buffered_bytes)
    refusal, after = found
    assert isinstance(refusal, Refusal)
    assert refusal.method is CODEC.methods["mutateRows"]
    assert refusal.seqid == 9
    assert isinstance(refusal.error, RequestTooBig)
    assert after.seqid == 10
    assert most <= 1000 + 700


@pytest.mark.parametrize("speech", SPEECHES, ids=str)
def test_a_shed_message_is_answered_at_its_end(speech: Speech) -> None:
    stream = RequestStream(CODEC)
    big = message(speech, "mutateRows", 9, tableName=b"t", rowBatches=batch(10, 9000), attributes={})
    assert not stream.shed(CallQueueTooBig("x"))
    assert decoded([big[:50_000]], stream) == []
    assert stream.shed(CallQueueTooBig("x"))
    assert decoded([b""], stream) == []
    assert stream.buffered_bytes < 100
    (refusal, after) = decoded([big[50_000:] + calls(speech)[0]], stream)
    assert isinstance(refusal.error, CallQueueTooBig)
    assert after.args == [b"t", b"r", b"f:q", {}]


@pytest.mark.parametrize("speech", SPEECHES, ids=str)
def test_a_message_that_was_never_looked_at_can_be_shed(speech: Speech) -> None:
    """Its connection waits for its first turn while others fill the server."""
    stream = RequestStream(CODEC)
    big = message(speech, "mutateRows", 9, tableName=b"t", rowBatches=batch(10, 9000), attributes={})
    stream.feed(big[:50_000])
    assert stream.shed(CallQueueTooBig("x"))
    (refusal, after) = decoded([big[50_000:] + calls(speech)[0]], stream)
    assert isinstance(refusal.error, CallQueueTooBig)
    assert after.args == [b"t", b"r", b"f:q", {}]
    other = RequestStream(CODEC)
    other.feed(b"SSH-2.0-x")
    assert not other.shed(CallQueueTooBig("x"))


@pytest.mark.parametrize("speech", SPEECHES, ids=str)
def test_a_large_request_leaves_nothing_behind(speech: Speech) -> None:
    """What it came in is given back before it is answered, not when the next one comes."""
    stream = RequestStream(CODEC)
    big = message(speech, "mutateRows", 9, tableName=b"t", rowBatches=batch(10, 9000), attributes={})
    pieces = [big[at : at + 20_000] for at in range(0, len(big), 20_000)]
    for piece in pieces:
        stream.feed(piece)
        found = stream.next()
    assert isinstance(found, Request)
    assert len(stream._buf) == 0


def test_a_frame_over_the_drained_bound_hangs_up() -> None:
    with pytest.raises(Hangup, match="claims 1073741824"):
        decoded([message(SPEECHES[2], "getTableNames"), b"\x40\x00\x00\x00"], RequestStream(CODEC, drained_bytes=2**29))


def test_a_long_walk_gives_way() -> None:
    begin = b"\x80\x01\x00\x01\x00\x00\x00\x03xyz\x00\x00\x00\x01"
    stream = RequestStream(CODEC)
    stream.feed(begin + b"\x0f\x00\x01\x0c" + struct.pack(">I", 50_000) + b"\x00" * 50_001)
    turns = 0
    while isinstance(item := stream.next(), YieldLoop):
        turns += 1
    assert isinstance(item, Request)
    assert turns > 2


def bytes_within(value: Any) -> list[bytes]:
    """Every byte string anywhere in decoded arguments."""
    if isinstance(value, bytes):
        return [value]
    if isinstance(value, dict):
        value = [*value, *value.values()]
    elif hasattr(value, "thrift_spec"):
        value = [getattr(value, name) for name, _ in value.default_spec]
    return [inner for each in value for inner in bytes_within(each)] if isinstance(value, list) else []


@settings(max_examples=400)
@given(
    st.sampled_from(SPEECHES),
    st.integers(0, 7),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=6),
    st.lists(st.integers(1, 90), max_size=6),
)
def test_damaged_messages(speech: Speech, which: int, damage: list[tuple[int, int]], sizes: list[int]) -> None:
    """Whatever comes out was made of these bytes alone, however they were cut."""
    data = bytearray(calls(speech)[which])
    for at, byte in damage:
        data[at % len(data)] = byte
    results = []
    for pieces in ([bytes(data)], cut(bytes(data), sizes)):
        stream = RequestStream(CODEC, message_bytes=10_000, drained_bytes=100_000)
        try:
            found = decoded(pieces, stream)
            assert all(value in data for each in found for value in bytes_within(getattr(each, "args", [])))
            results.append(repr(facts(found)))
        except Hangup:
            results.append("hangup")
        assert stream.buffered_bytes <= len(data)
    assert len(results[0]) < 20 * len(data) + 2000
    if "hangup" not in results:
        assert results[0] == results[1]


@settings(max_examples=300)
@given(
    st.sampled_from([b"", b"\x80\x01\x00\x01", b"\x82\x21", b"\x00\x00\x00\x40\x82\x21", BEGIN]),
    st.binary(max_size=300),
)
def test_random_bytes(head: bytes, tail: bytes) -> None:
    stream = RequestStream(CODEC, message_bytes=10_000, drained_bytes=100_000)
    try:
        decoded([head + tail], stream)
    except Hangup:
        pass
    else:
        assert stream.buffered_bytes <= len(head + tail)


# --- detection -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("speech", SPEECHES, ids=str)
def test_detection(speech: Speech) -> None:
    data = calls(speech)[0]
    assert detect(data[:6]) == speech
    assert all(detect(data[:n]) in (None, speech) for n in range(6))


@pytest.mark.parametrize("head", [b"GET / HT", b"POST / H", b"PRI * HT"])
def test_http_is_recognised(head: bytes) -> None:
    found = detect(head)
    assert isinstance(found, Speech)
    assert found.http


@pytest.mark.parametrize(
    "head", [b"\x16\x03\x01\x02\x00\x01", b"\x00" * 6, b"\xff" * 6, b"SSH-2.0", b"\x00\x00\x01\x00\x90\x90"]
)
def test_others_are_no_thrift(head: bytes) -> None:
    assert isinstance(detect(head), NotThrift)
