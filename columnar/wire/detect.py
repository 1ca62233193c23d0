"""(pure) Detection of transport and protocol from the first bytes of a connection.

    80 01 ..                          binary, unframed
    82 x1 ..                          compact, unframed        (x is the kind of the message)
    00..40 .. .. ..  80 01            binary, framed: four bytes of frame length come first
    00..40 .. .. ..  82 x1            compact, framed
    00 00 00 nn  letter               binary without a version, unframed: nn is a method name's length
    00..40 .. .. ..  00 00 00 nn ..   the same, framed
    "GET ", "POST", ...               HTTP
    01 00 00 00 nn  letter            SASL, where nobody signs in: a store with users takes it before (``sasl``)
    16 03                             TLS

Six bytes are enough to decide.  All other bytes, and a frame length over the bound, are not Thrift.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from columnar.limits import DRAINED_FRAME_BYTES
from columnar.wire.codec_binary import NAME_BYTES
from columnar.wire.sasl import BAD, begins_sasl, sasl_message

ENOUGH_BYTES: Final = 6
_HTTP_METHODS: Final = {b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"TRAC", b"CONN", b"PRI "}


class Protocol(Enum):
    BINARY = "binary"
    COMPACT = "compact"


@dataclass(frozen=True, slots=True)
class Speech:
    framed: bool
    protocol: Protocol
    http: bool = False  # messages are bodies of POSTs, each in a protocol of its own

    def __str__(self) -> str:
        return f"{'HTTP' if self.http else 'framed' if self.framed else 'unframed'} {self.protocol.value}"


HTTP: Final = Speech(framed=False, protocol=Protocol.BINARY, http=True)


@dataclass(frozen=True, slots=True)
class NotThrift:
    why: str
    answer: bytes = b""  # for a client that waits for one before it speaks Thrift


def detect(head: bytes) -> Speech | NotThrift | None:
    """Detect transport and protocol from ``head``, the connection's first bytes; None if ``head`` is too short."""
    if len(head) < 4:
        return None
    protocol = _versioned(head[0], head[1])
    if protocol is not None:
        return Speech(framed=False, protocol=protocol)
    if head[:4] in _HTTP_METHODS:
        return HTTP
    if head[0] == 0x16 and head[1] == 0x03:
        return NotThrift(why="TLS; this port speaks plain TCP")
    length = int.from_bytes(head[:4], "big")
    if not 0 < length <= DRAINED_FRAME_BYTES:
        return NotThrift(why=f"no Thrift: it begins with {head[:8].hex(' ')}")
    if len(head) < ENOUGH_BYTES:
        return None
    protocol = _versioned(head[4], head[5])
    if protocol is not None:
        return Speech(framed=True, protocol=protocol)
    if length <= NAME_BYTES and chr(head[4]).isalpha() and head[4] < 128:
        return Speech(framed=False, protocol=Protocol.BINARY)
    if head[4] == head[5] == 0:
        return Speech(framed=True, protocol=Protocol.BINARY)
    if begins_sasl(head):
        why = "SASL: this store has no users, its rights are off; connect without SASL"
        return NotThrift(why, sasl_message(BAD, why.encode()))
    return NotThrift(why=f"no Thrift: it begins with {head[:8].hex(' ')}")


def _versioned(first: int, second: int) -> Protocol | None:
    if first == 0x80 and second == 0x01:
        return Protocol.BINARY
    if first == 0x82 and second & 0x1F == 1:
        return Protocol.COMPACT
    return None
