"""The bytes of docs/formats/peers.md."""

from __future__ import annotations

from columnar.cluster import message_codec, peer_frames, refusals
from columnar.cluster.hello import HELLO, Greeting, Hello
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


def greetings(connecting: Hello, accepting: Hello) -> tuple[tuple[bytes, bytes], tuple[bytes, bytes]]:
    """Return (hello, proof) of each side, by the secret 00 01 .. 1f."""
    secret = bytes(range(32))
    near = Greeting(connecting, lambda _hello: None, secret, connects=True)
    far = Greeting(accepting, lambda _hello: None, secret, connects=False)
    hellos = near.begin(b"\x11" * 16), far.begin(b"\x22" * 16)
    return (hellos[0], near.take_bytes(hellos[1])), (hellos[1], far.take_bytes(hellos[0]))


def test_frames() -> None:
    moved = Moved(RegionInfo("t", 5, b"m", b""), Incarnation("s2", 17), 9)
    hello = Hello("0f" * 16, Incarnation("s1", 3))
    connecting, accepting = greetings(hello, Hello("0f" * 16, Incarnation("s2", 17)))
    hold_to(
        "peer-frames.txt",
        {
            "hello": peer_frames.hello(HELLO.encode(hello)),
            "hello over TCP of the connecting side": connecting[0],
            "hello over TCP of the accepting side": accepting[0],
            "proof of the connecting side": connecting[1],
            "proof of the accepting side": accepting[1],
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
