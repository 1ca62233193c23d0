"""(pure) A beat: the sign of life of a server, with what it says of its connections.

    beat := iterations:u64 open:u32 taken:u64 given:u64        big-endian

A beat is written to a pipe at once, so it is never torn (PIPE_BUF).  Only the last one counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final

_BEAT: Final = Struct(">QIQQ")
BEAT_BYTES: Final = _BEAT.size
assert BEAT_BYTES == 28, "both ends are of one program; a server of another version says another number"


@dataclass(frozen=True, slots=True)
class Beat:
    iterations: int  # how often the loop was seen alive
    open: int = 0  # connections of clients now
    taken: int = 0  # connections that came over the channel so far
    given: int = 0  # connections that were returned over the channel so far


def packed(beat: Beat) -> bytes:
    return _BEAT.pack(beat.iterations, beat.open, beat.taken, beat.given)


def last_of(data: bytes) -> Beat:
    """The last beat of some whole ones, at least one."""
    return Beat(*_BEAT.unpack(data[-BEAT_BYTES:]))
