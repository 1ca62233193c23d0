"""The bytes between a controller and its workers: another version of wikibench may be at the other end."""

from __future__ import annotations

import pytest

from tests.support.golden import hold_to
from wikibench.addresses.paths import Layout
from wikibench.crew import frames
from wikibench.crew.frames import (
    GREETING_BYTES,
    AnyFrame,
    Challenge,
    Credit,
    Done,
    FrameError,
    FrameReader,
    Go,
    Hello,
    Part,
    Ping,
    Plan,
    Pong,
    Proof,
    Standing,
    Stop,
    Tick,
    block_of,
    encoded,
    proof_of,
    rows_of,
)
from wikibench.latency import Sample
from wikibench.outcome import Kind, Outcome
from wikibench.pacing import Planned
from wikibench.targets.target import Target
from wikibench.trace.lines import Request
from wikibench.visits import Load

TOKEN, HELLO, CHALLENGE = bytes(range(32)), b"\x11" * 32, b"\x22" * 32
ROWS = (
    Planned(0.0, Request(0, "/A")),
    Planned(0.1, Request(0, "/B\udcff", "save"), 1),
    Planned(0.3, Request(0, "", "7|text\udcfe"), 2),
    Planned(0.4, Request(0, "/C", attributes="m=HEAD")),
    Planned(0.5, Request(0, "/D", "missing", attributes="m=HEAD")),
    Planned(0.6, Request(0, "", "8|text;m=HEAD"), 3),
)
LOAD = Load(
    Target("http://127.0.0.1:8080", "/wiki", "Basic YTpi"),
    Layout((("/w/", "/"),)),
    names=("A", "Ä"),
    headers=(("X", "y"),),
    planned_s=12.5,
)
FRAMES: dict[str, AnyFrame] = {
    "hello": Hello(frames.VERSION, "worker 0", HELLO),
    "challenge": Challenge(CHALLENGE, proof_of(TOKEN, "controller", HELLO, CHALLENGE)),
    "proof": Proof(proof_of(TOKEN, "worker", HELLO, CHALLENGE)),
    "plan": Plan(3, False, LOAD),
    "ping": Ping(1.5),
    "pong": Pong(1.5, 100.25),
    "credit": Credit(256, 65_792),
    "block": block_of(ROWS),
    "block of a takeover": block_of(ROWS[:1], is_takeover=True),
    "go": Go(102.25),
    "tick": Tick(
        Standing(finished=2, sent=2, open=1, most_open=2, connections=1, elapsed_s=1.0, cpu_s=0.25, clock_s=0.001),
        [
            Part("own", False, {1: 2}),
            Part("response", True, {1000: 1}, Kind.MISSING, Outcome.EXPECTED_404),
            Part("interval", False, {1000: 1}, index=2, requested=1, answered=1, outcomes={Outcome.OK: 1}),
        ],
        [Sample(Kind.PAGE, Outcome.BROKEN, 0.5, 0.5, 0.75, 10, "http://w/A", "cut")],
        (1000, 0),
        True,
    ),
    "done": Done("complete", 0),
    "done of one that refuses": Done("refused", 0, "not this machine"),
    "stop": Stop("interrupted"),
}


def decoded(data: bytes) -> AnyFrame | None:
    reader = FrameReader()
    reader.trust()
    reader.append(data)
    return reader.next_frame()


def test_frames() -> None:
    hold_to("crew-frames.txt", {name: encoded(frame) for name, frame in FRAMES.items()})


@pytest.mark.parametrize("name", FRAMES)
def test_frames_come_out_as_they_went_in_byte_by_byte(name: str) -> None:
    reader = FrameReader()
    data = encoded(FRAMES[name])
    reader.trust()
    for byte in data[:-1]:
        reader.append(bytes([byte]))
        assert reader.next_frame() is None
    reader.append(data[-1:])
    found = reader.next_frame()
    assert found is not None
    assert found == FRAMES[name] or name == "plan"  # a map has no equality
    assert encoded(found) == data
    assert reader.next_frame() is None


def test_requests_come_out_as_they_went_in() -> None:
    assert tuple(rows_of(block_of(ROWS))) == ROWS


def test_every_kind_is_recorded() -> None:
    kinds = {type(frame).__name__ for frame in FRAMES.values()}
    assert kinds == {kind.__name__ for kind in frames.Frame.__subclasses__()}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x80",
        b"\x81\xa2is\xa4ping",  # without its moment
        b"\x82\xa2is\xa4ping\xa6sent_s\xa11",  # a text for a moment
        b"\x83\xa2is\xa4ping\xa6sent_s\xcb" + bytes(8) + b"\xa1x\x01",  # one field more
        b"\x82\xa2is\xa4pang\xa6sent_s\xcb" + bytes(8),
    ],
)
def test_other_bytes_are_no_frame(body: bytes) -> None:
    with pytest.raises(FrameError):
        decoded(len(body).to_bytes(4, "little") + body)


def test_a_stranger_is_not_believed_a_length() -> None:
    reader = FrameReader()
    reader.append((GREETING_BYTES + 1).to_bytes(4, "little"))
    with pytest.raises(FrameError, match="believed"):
        reader.next_frame()
