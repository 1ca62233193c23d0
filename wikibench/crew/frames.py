"""(pure) Frames between a controller and its workers: the bytes, and the proof that both know the token.

    frame := length:u32 map                 little-endian; length is that of the map, in msgpack, with its kind as "is"

    worker                          controller
        hello  ---------------------->          version, nonce
        <---------------------- challenge       nonce, proof(controller)
        proof  ---------------------->          proof(worker)
        <--------------------------- plan       the load, without its requests
        ping   ---------------------->          a moment of the worker's clock; PINGS at once, later each PING_S
        <--------------------------- pong       that moment, and the controller's
        credit ---------------------->          requests received, and requests that may be dealt, since the beginning
        <-------------------------- block       requests with their starts
        <----------------------------- go       the moment from which starts count, of the controller's clock
        tick   ---------------------->          figures since the last tick
        <--------------------------- stop       no more requests come; or end early
        done   ---------------------->          the end, after the last tick

    proof(role) := HMAC-SHA256(token, role | nonce of the worker | nonce of the controller)

Invariants:
    F1. A length is not believed over FRAME_BYTES, nor over GREETING_BYTES before the proof.
    F2. A frame that is no known kind with all its fields, each of its type, is a FrameError; the connection then ends.
    F3. Starts are the plan's doubles, bit by bit.  Addresses and texts that are no UTF-8 come out as they went in.

Knows nothing of sockets.  The states say which frame may come when.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from wikibench.errors import PlanError
from wikibench.latency import Sample
from wikibench.outcome import Kind, Outcome
from wikibench.pacing import Planned
from wikibench.trace.lines import HEAD, VIEW, Request
from wikibench.visits import Load

VERSION: Final = 4  # 1 had no HEAD in a block, 2 no review in a map, 3 no root in a map
FRAME_BYTES: Final = 1 << 20
GREETING_BYTES: Final = 1 << 12
BLOCK_REQUESTS: Final = 256
BLOCK_BYTES: Final = FRAME_BYTES // 2  # of addresses and texts; a block of longer ones has fewer requests
NONCE_BYTES: Final = 32
_LENGTH: Final = struct.Struct("<I")


class FrameError(ValueError):
    """The bytes are no frame of this version."""


class Frame(msgspec.Struct, frozen=True, tag_field="is", tag=str.lower, forbid_unknown_fields=True):
    """The base of all kinds; the kind is the name of the class."""


class Hello(Frame, frozen=True):
    version: int
    name: str
    nonce: bytes


class Challenge(Frame, frozen=True):
    nonce: bytes
    proof: bytes


class Proof(Frame, frozen=True):
    proof: bytes


class Plan(Frame, frozen=True):
    """The load of a worker; ``is_same_clock`` if it has the controller's clock."""

    number: int
    is_same_clock: bool
    load: Load


class Ping(Frame, frozen=True):
    sent_s: float


class Pong(Frame, frozen=True):
    sent_s: float
    at_s: float


class Credit(Frame, frozen=True):
    """Both are counts since the beginning, so that a repeated credit does no harm."""

    received: int
    granted: int


class Block(Frame, frozen=True):
    """Requests in the order of their starts; ``is_takeover`` if another worker had them first."""

    starts: bytes  # doubles, little-endian
    urls: bytes  # with line ends between them
    flags: dict[int, bytes]  # by place in the block, of requests that are no plain view, as a line of a trace has it
    edits: dict[int, int]  # the numbers of edits, by place
    is_takeover: bool = False


class Go(Frame, frozen=True):
    begin_s: float


class Part(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """Counts of one histogram, or of one interval, since the last tick; ``what`` says which."""

    what: str
    is_warm_up: bool
    counts: dict[int, int]
    kind: Kind = Kind.PAGE
    outcome: Outcome = Outcome.OK
    index: int = 0
    requested: int = 0
    answered: int = 0
    outcomes: dict[Outcome, int] = {}


class Standing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A worker's own figures since the beginning."""

    finished: int = 0  # planned requests that have been recorded, in whatever class
    sent: int = 0
    open: int = 0
    most_open: int = 0
    connections: int = 0
    retried: int = 0
    starved: int = 0  # requests that were due while the worker had none
    elapsed_s: float = 0.0
    cpu_s: float = 0.0
    clock_s: float = 0.0  # how far its starts may be from the controller's


class Tick(Frame, frozen=True):
    """Figures since the last tick, in one or more frames; nothing of them counts before ``is_last``."""

    standing: Standing
    parts: list[Part]
    failures: list[Sample]
    received_bytes: tuple[int, int]  # of counted requests, and of the warm-up
    is_last: bool


class Done(Frame, frozen=True):
    """The end of a worker; ``left`` requests were not due yet.  ``refusal`` is why it does not take the plan."""

    ending: str
    left: int
    refusal: str = ""


class Stop(Frame, frozen=True):
    """``why`` is "complete" if the plan is at its end, else how the replay ends early."""

    why: str


AnyFrame = Hello | Challenge | Proof | Plan | Ping | Pong | Credit | Block | Go | Tick | Done | Stop
_ENCODER: Final = msgspec.msgpack.Encoder()
_PLAN_ENCODER: Final = msgspec.msgpack.Encoder(order="deterministic")  # a map of a wiki has sets
_DECODER: Final = msgspec.msgpack.Decoder(AnyFrame)


def encoded(frame: AnyFrame) -> bytes:
    """Return the bytes of a frame.  Raises PlanError if it is over FRAME_BYTES."""
    body = (_PLAN_ENCODER if isinstance(frame, Plan) else _ENCODER).encode(frame)
    if len(body) > FRAME_BYTES:
        what = type(frame).__name__.lower()
        raise PlanError(f"a request of the trace is too long for a worker: {len(body)} bytes of a {what}")
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """The frames of a stream of bytes.  Owned by the loop that reads the connection."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._most = GREETING_BYTES

    def trust(self) -> None:
        """Believe lengths up to FRAME_BYTES: the peer has proved the token."""
        self._most = FRAME_BYTES

    def append(self, data: bytes) -> None:
        self._data += data

    def next_frame(self) -> AnyFrame | None:
        """Return the next frame; None if it is not complete.  Raises FrameError."""
        data = self._data
        if len(data) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(data)
        if length > self._most:
            raise FrameError(f"a frame of {length} bytes; {self._most} are believed")
        if len(data) < _LENGTH.size + length:
            return None
        body = bytes(data[_LENGTH.size : _LENGTH.size + length])
        del data[: _LENGTH.size + length]
        try:
            frame: AnyFrame = _DECODER.decode(body)
        except msgspec.MsgspecError as error:
            raise FrameError(f"no frame of version {VERSION}: {error}") from error
        return frame


def proof_of(token: bytes, role: str, hello_nonce: bytes, challenge_nonce: bytes) -> bytes:
    """Return the proof that ``role`` ("worker" or "controller") knows the token."""
    return hmac.digest(token, role.encode() + b"|" + hello_nonce + challenge_nonce, "sha256")


def is_proof(found: bytes, wanted: bytes) -> bool:
    return hmac.compare_digest(found, wanted)


def block_of(rows: Sequence[Planned], *, is_takeover: bool = False) -> Block:
    """Return the block of at most BLOCK_REQUESTS requests."""
    urls = _packed("\n".join([row.request.url for row in rows]))
    if urls.count(b"\n") != len(rows) - 1:
        raise PlanError("an address of the trace has a line end in it")
    return Block(
        struct.pack(f"<{len(rows)}d", *[row.start_s for row in rows]),
        urls,
        {at: _packed(flag) for at, row in enumerate(rows) if (flag := _flag_of(row.request)) != VIEW},
        {at: row.edit for at, row in enumerate(rows) if row.edit},
        is_takeover,
    )


def rows_of(block: Block, *, dealt_s: float = 0.0, shift_s: float = 0.0) -> list[Planned]:
    """Return the requests of a block, moved by ``shift_s``.  Raises FrameError.

    ``dealt_s`` is when they came, if the controller is to blame for starts before it.
    """
    if len(block.starts) % 8:
        raise FrameError("a block with a part of a start")
    starts = struct.unpack(f"<{len(block.starts) // 8}d", block.starts)
    urls = block.urls.decode("utf-8", "surrogateescape").split("\n")
    if len(urls) != len(starts):
        raise FrameError(f"a block of {len(starts)} starts and {len(urls)} addresses")
    flags: Mapping[int, bytes] = block.flags
    if not flags:
        return [
            Planned(start_s + shift_s, Request(0, url), dealt_s=dealt_s)
            for start_s, url in zip(starts, urls, strict=True)
        ]
    return [
        Planned(
            start_s + shift_s,
            _with_flag(url, flags[at].decode("utf-8", "surrogateescape")) if at in flags else Request(0, url),
            block.edits.get(at, 0),
            dealt_s,
        )
        for at, (start_s, url) in enumerate(zip(starts, urls, strict=True))
    ]


def size_of(row: Planned) -> int:
    """Return an upper bound of a request's bytes in a block."""
    request = row.request
    return 40 + 4 * len(request.url) + (0 if (flag := _flag_of(request)) == VIEW else 4 * len(flag))


def _flag_of(request: Request) -> str:
    return f"{request.flag};{HEAD}" if request.is_head else request.flag


def _with_flag(url: str, flag: str) -> Request:
    mark, semicolon, attributes = flag.partition(";")
    if semicolon and "|" not in mark:
        return Request(0, url, mark, attributes=attributes)
    return Request(0, url, flag)


def _packed(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
