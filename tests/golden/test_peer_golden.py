"""The bytes of docs/formats/peers.md."""

from __future__ import annotations

from columnar.cluster import message_codec, peer_frames, refusals
from columnar.cluster.hello import HELLO, Hello
from columnar.cluster.refusals import Moved, PeerFault, Refusal, Unknown
from columnar.cluster.row_forms import PROTOCOL_BYTES, THRIFT1, THRIFT2
from columnar.errors import FilterSyntaxError, RegionTooBusy, TableNotFound
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo
from columnar.wire.detect import Protocol
from tests.support.golden import hold_to
from tests.support.peer_messages import ANSWERS, MESSAGES

CALL = bytes.fromhex("800100010000000367657400000001" + "00")


def refused(refusal: Refusal) -> bytes:
    return peer_frames.refused(7, *refusals.to_plain(refusal))


def test_frames() -> None:
    moved = Moved(RegionInfo("t", 5, b"m", b""), Incarnation("s2", 17), 9)
    hello = Hello("0f" * 16, Incarnation("s1", 3))
    hold_to(
        "peer-frames.txt",
        {
            "hello": peer_frames.hello(HELLO.encode(hello)),
            "call": peer_frames.call_head(1, THRIFT1, PROTOCOL_BYTES[Protocol.BINARY], len(CALL)) + CALL,
            "call compact 2": peer_frames.call_head(1 << 40, THRIFT2, PROTOCOL_BYTES[Protocol.COMPACT], 0),
            "answer": peer_frames.answer_head(1, 3) + b"yes",
            "ask": peer_frames.request_frame(1, "rows", {}),
            "told nothing": peer_frames.response_frame(2, None),
            "moved": refused(moved),
            "unknown": refused(Unknown("no such table")),
            "error": refused(TableNotFound("pages")),
            "error of a filter": refused(FilterSyntaxError("no such filter", 12)),
            "later": refused(RegionTooBusy("its log is full")),
            "fault": refused(PeerFault("why")),
        },
    )


def test_messages() -> None:
    hold_to(
        "peer-messages.txt",
        {
            name: peer_frames.request_frame(1, name, fields)[peer_frames.HEAD_BYTES :]
            for name, fields in (message_codec.to_plain(message) for message in MESSAGES)
        },
    )


def test_answers() -> None:
    hold_to(
        "peer-answers.txt",
        {
            type(message).__name__: peer_frames.response_frame(1, message_codec.answer_to_plain(message, answer))[
                peer_frames.HEAD_BYTES :
            ]
            for message, answer in ANSWERS
        },
    )
