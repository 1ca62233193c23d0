"""Frames between servers, cut anywhere and with bits flipped: whole frames, or a BadFrame, and nothing else."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from columnar.cluster import peer_frames
from columnar.cluster.peer_frames import (
    ANSWER,
    CALL,
    HEAD_BYTES,
    HELLO,
    REFUSED,
    REQUEST,
    RESPONSE,
    BadFrame,
    Frame,
    FrameReader,
    FrameTooLong,
)
from columnar.cluster.row_forms import PROTOCOL_BYTES, THRIFT2
from columnar.limits import PEER_FRAME_BYTES
from columnar.wire.detect import Protocol

MESSAGE = b"\x80\x01\x00\x01 a client's call"
REPLY = bytes(range(256)) * 3
STREAM = [
    peer_frames.hello({"cluster": "c"}),
    peer_frames.call_head(1, THRIFT2, PROTOCOL_BYTES[Protocol.COMPACT], len(MESSAGE)) + MESSAGE,
    peer_frames.answer_head(1 << 63, len(REPLY)) + REPLY,
    peer_frames.answer_head(2, 0),
    peer_frames.request_frame(3, "rows", {"table": "t", "rows": [b"\x00\xff"]}),
    peer_frames.response_frame(3, None),
    peer_frames.refused(4, "moved", {"epoch": 9}),
]
SEEN = [
    (HELLO, 0),
    (CALL, 1),
    (ANSWER, 1 << 63),
    (ANSWER, 2),
    (REQUEST, 3),
    (RESPONSE, 3),
    (REFUSED, 4),
]


def read(pieces: list[bytes]) -> list[Frame]:
    reader = FrameReader()
    return [frame for piece in pieces for frame in reader.feed(piece)]


def contents(frames: list[Frame]) -> list[tuple[int, int, bytes]]:
    return [(frame.kind, frame.number, bytes(frame.body)) for frame in frames]


WHOLE = contents(read(STREAM))


def test_each_kind_of_frame() -> None:
    frames = read([b"".join(STREAM)])
    assert [(frame.kind, frame.number) for frame in frames] == SEEN
    assert frames[0].unpacked() == {"cluster": "c"}
    call = frames[1]
    assert (call.service, call.protocol) == (THRIFT2, Protocol.COMPACT)
    assert call.buffer[call.message_start : call.end] == MESSAGE
    assert frames[2].body == REPLY
    assert frames[4].named() == ("rows", {"table": "t", "rows": [b"\x00\xff"]})
    assert frames[5].unpacked() is None
    assert frames[6].named() == ("moved", {"epoch": 9})


def test_a_body_is_not_copied_where_the_frame_came_whole() -> None:
    piece = b"".join(STREAM)
    assert all(frame.buffer is piece for frame in FrameReader().feed(piece))


def test_only_a_frame_in_two_pieces_is_copied() -> None:
    """A piece is up to 256 KB of others' replies."""
    stream = b"".join(STREAM)
    for at in range(1, len(stream)):
        reader = FrameReader()
        first = reader.feed(stream[:at])
        piece = stream[at:]
        copied = [frame for frame in reader.feed(piece) if frame.buffer is not piece]
        assert len(copied) == (sum(len(frame.body) + HEAD_BYTES for frame in first) != at), at


def test_a_stream_cut_at_every_byte_gives_the_same_frames() -> None:
    stream = b"".join(STREAM)
    assert contents(read([stream[at : at + 1] for at in range(len(stream))])) == WHOLE
    for at in range(len(stream)):
        reader = FrameReader()
        first = reader.feed(stream[:at])
        whole = sum(len(frame.body) + HEAD_BYTES for frame in first)
        assert reader.buffered_bytes == at - whole
        assert contents(first + reader.feed(stream[at:])) == WHOLE
        assert reader.buffered_bytes == 0


@given(st.lists(st.integers(1, 900), max_size=12), st.integers(0, 40))
def test_a_stream_in_any_pieces_gives_the_same_frames(sizes: list[int], empty: int) -> None:
    stream, pieces = b"".join(STREAM), [b""] * (empty % 3)
    for size in sizes:
        pieces.append(stream[:size])
        stream = stream[size:]
    assert contents(read([*pieces, stream])) == WHOLE


def test_a_large_frame_is_put_together_once() -> None:
    """A reader that joined all pieces with each new one would copy 400 MB here."""
    body = bytes(1 << 20)
    stream = peer_frames.answer_head(5, len(body)) + body
    pieces = [stream[at : at + 1_300] for at in range(0, len(stream), 1_300)]
    joins = CountingJoin()
    reader = FrameReader()
    reader._pieces = joins  # type: ignore[assignment]
    frames = [frame for piece in pieces for frame in reader.feed(piece)]
    assert contents(frames) == [(ANSWER, 5, body)]
    assert joins.times == 1


class CountingJoin(list[bytes]):
    times = 0

    def clear(self) -> None:
        self.times += 1
        super().clear()


# --- bytes that are no frames --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\xff" * 12 + b"\x01", "4294967295 bytes is over the bound"),
        ((PEER_FRAME_BYTES + 1).to_bytes(4, "big") + bytes(8) + b"\x01", "over the bound"),
        (bytes(13), "0 bytes is shorter than its head"),
        (b"\x00\x00\x00\x08" + bytes(9), "8 bytes is shorter"),
        (b"\x00\x00\x00\x09" + bytes(9), "kind 0"),
        (b"\x00\x00\x00\x09" + bytes(8) + b"\x07", "kind 7"),
    ],
)
def test_a_bad_head_is_told_and_nothing_comes_after_it(data: bytes, why: str) -> None:
    reader = FrameReader()
    assert len(reader.feed(STREAM[0])) == 1
    with pytest.raises(BadFrame, match=why):
        reader.feed(data)
    with pytest.raises(BadFrame, match=why):
        reader.feed(STREAM[0])


@pytest.mark.parametrize("body", [b"", b"\x01", b"\x04\x01", b"\x00\x02", b"\x01\x03m", b"\x02\x00m"])
def test_a_call_of_no_service_or_protocol_is_told(body: bytes) -> None:
    (frame,) = FrameReader().feed((9 + len(body)).to_bytes(4, "big") + bytes(8) + bytes([CALL]) + body)
    with pytest.raises(BadFrame):
        assert (frame.service, frame.protocol) is None


@pytest.mark.parametrize(
    "body",
    [b"", b"\xc1", b"\x92", b"\x93\xa4rows", b"\xa4row", b"\x80\x80", b"\x81\x90\x01", b"\xa1\xff", b"\x91" * 2_000],
)
def test_a_body_that_is_no_msgpack_is_told(body: bytes) -> None:
    (frame,) = FrameReader().feed((9 + len(body)).to_bytes(4, "big") + bytes(8) + bytes([RESPONSE]) + body)
    with pytest.raises(BadFrame, match="no msgpack"):
        frame.unpacked()


@pytest.mark.parametrize("plain", [None, [], ["rows"], [1, {}], ["rows", []], {"rows": {}}])
def test_an_ask_without_a_name_and_a_map_is_told(plain: object) -> None:
    (frame,) = FrameReader().feed(peer_frames.response_frame(1, plain))
    with pytest.raises(BadFrame, match="no list of a name and a map"):
        frame.named()


def test_elements_of_a_newer_version_behind_name_and_map_are_passed_over() -> None:
    (frame,) = FrameReader().feed(peer_frames.response_frame(1, ["rows", {}, "more"]))
    assert frame.named() == ("rows", {})


def test_frames_with_flipped_bits_and_missing_bytes_are_frames_or_bad_frames() -> None:
    rng, stream = random.Random(17), b"".join(STREAM)
    bad = 0
    for _ in range(3_000):
        data = bytearray(stream)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data))
            if rng.random() < 0.5:
                data[at] ^= 1 << rng.randrange(8)
            else:
                del data[at : at + rng.randrange(1, 30)]
        try:
            for frame in read([bytes(data[at : at + 700]) for at in range(0, len(data), 700)]):
                assert frame.start <= frame.end <= len(frame.buffer)
                if frame.kind == CALL:
                    assert frame.service
                    assert frame.protocol
                elif frame.kind in (REQUEST, REFUSED):
                    frame.named()
                elif frame.kind in (RESPONSE, HELLO):
                    frame.unpacked()
        except BadFrame:
            bad += 1
    assert bad > 500


def test_noise_is_never_anything_but_frames_or_a_bad_frame() -> None:
    rng = random.Random(18)
    for _ in range(2_000):
        reader = FrameReader()
        try:
            for _ in range(4):
                reader.feed(rng.randbytes(rng.randrange(40)))
        except BadFrame:
            continue
        assert reader.buffered_bytes < 160


def test_a_body_over_the_bound_is_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FrameTooLong, match="over the bound"):
        peer_frames.call_head(1, 1, 1, PEER_FRAME_BYTES - 10)
    assert peer_frames.call_head(1, 1, 1, PEER_FRAME_BYTES - 11)
    with pytest.raises(FrameTooLong):
        peer_frames.answer_head(1, PEER_FRAME_BYTES - 8)
    assert peer_frames.answer_head(1, PEER_FRAME_BYTES - 9)
    monkeypatch.setattr(peer_frames, "PEER_FRAME_BYTES", 20)
    with pytest.raises(FrameTooLong):
        peer_frames.response_frame(1, "twelve bytes")


def test_a_call_carries_its_user_and_one_without_a_user_is_as_before() -> None:
    for user in ("", "bob", "ann\u00e9", "u" * 128):
        head = peer_frames.call_head(7, THRIFT2, 2, 5, user)
        (frame,) = read([head + b"hello"])
        assert (frame.service, frame.protocol, frame.user) == (THRIFT2, Protocol.COMPACT, user)
        assert frame.buffer[frame.message_start : frame.end] == b"hello"
    assert len(peer_frames.call_head(7, THRIFT2, 2, 5)) == peer_frames.HEAD_BYTES + 2


@pytest.mark.parametrize("body", [b"\x11\x01", b"\x11\x01\x00", b"\x11\x01\x05bob", b"\x11\x01\x02\xff\xfe"])
def test_a_call_whose_user_has_no_name_is_a_bad_frame(body: bytes) -> None:
    frame = Frame(peer_frames.CALL, 1, body, 0, len(body))
    with pytest.raises(BadFrame, match="no name"):
        assert frame.user is None, "it is not answered"
