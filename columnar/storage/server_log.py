"""(pure) The log of the server: what several regions wrote, under one fsync; its bytes.

A region's own log (the engine's) holds all that was written to it.  Where many regions are written to at once,
an fsync of each would be dear: what they wrote since stands in the log of the server a second time, that is
synced in their place, and theirs later, when nobody waits.  HBase has no other log (its WAL).

    segment := head frame*                      one file, ``00000001.segment``; big-endian
    head    := "columnar-server-log 1\n" era               of one run of the server
    era     := log:16 bytes run:u64              the log's own name, and which run of the server
    frame   := length:u32 crc32:u32 body                     the checksum is the body's
    body    := msgpack [[region, number, previous, [[space, key, value | nil, stop | nil], ...]], ...]
    mark    := "server-log " era number:u64 -> floor:u64     a pair in MARK_SPACE of the region's store

``region`` is the name of the region's folder.  A record is one batch.  ``number`` rises over all regions of a
run; ``previous`` is the number of the region's batch before, or 0 for the first since it was opened.  With each
batch the engine gets its mark: after a crash the marks say which batches a store holds.  Those up to ``floor`` it
holds for sure, they were synced; their marks are removed with the next batch, and all that an opened store has
with its first.  Marks of another log, that came with a copy of a region, say nothing; those that a part of a
region that was split has from its origin do no harm: numbers go on rising.

A frame is acknowledged only after an fsync that began after it was written.  So the first frame that is not whole
was never acknowledged, and ends the segment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from columnar.errors import DamagedData

HEAD: Final = b"columnar-server-log 1\n"
LOG_BYTES: Final = 16
MARK_SPACE: Final = "default"  # every store has it, and else it is empty
MARK: Final = b"server-log "
MARKS_END: Final = b"server-log!"  # the first key after all marks

_FRAME: Final = Struct(">II")
_NUMBER: Final = Struct(">Q")
NUMBER_BYTES: Final = _NUMBER.size
_ERA_BYTES: Final = LOG_BYTES + NUMBER_BYTES
_HEAD_BYTES: Final = len(HEAD) + _ERA_BYTES

Operation = tuple[str, bytes, bytes | None, bytes | None]  # space, key, value, stop of a range


class Record(NamedTuple):
    """One batch of one region."""

    region: str
    number: int
    previous: int
    operations: Sequence[Operation]


def era(log: bytes, run: int) -> bytes:
    return log + _NUMBER.pack(run)


def log_and_run(era: bytes) -> tuple[bytes, int]:
    return era[:LOG_BYTES], _NUMBER.unpack_from(era, LOG_BYTES)[0]


def mark(era: bytes, number: int) -> bytes:
    """The key; those of one log rise with runs and numbers."""
    return MARK + era + _NUMBER.pack(number)


def era_of_mark(key: bytes) -> bytes:
    return key[len(MARK) : -NUMBER_BYTES]


def pack_floor(number: int) -> bytes:
    return _NUMBER.pack(number)


def floor_of(key: bytes, value: bytes) -> bytes:
    """The mark up to which the store holds all, from any mark of it."""
    return key[:-NUMBER_BYTES] + value


def head(era: bytes) -> bytes:
    return HEAD + era


def frame(records: Sequence[Record]) -> bytes:
    import msgpack  # half a megabyte that a server of few regions needs not

    body: bytes = msgpack.packb(records)
    return _FRAME.pack(len(body), crc32(body)) + body


def era_of(segment: bytes) -> bytes | None:
    """None: a power cut left the segment without its head, so nothing in it was acknowledged.  DamagedData."""
    if not any(segment[:_HEAD_BYTES]):
        return None  # its length was on disk, and not its first page
    if not segment.startswith(HEAD[: len(segment)]):
        raise DamagedData("a segment of the server's log begins as none of this version does")
    return segment[len(HEAD) : _HEAD_BYTES] if len(segment) >= _HEAD_BYTES else None


def whole_bytes(segment: bytes) -> int:
    """Up to the end of the last whole frame."""
    at = _HEAD_BYTES if len(segment) >= _HEAD_BYTES else 0
    while at and at + _FRAME.size <= len(segment):
        length, checksum = _FRAME.unpack_from(segment, at)
        body = segment[at + _FRAME.size : at + _FRAME.size + length]
        if not length or len(body) < length or crc32(body) != checksum:
            break
        at += _FRAME.size + length
    return at


def records_of(segment: bytes) -> Iterator[Record]:
    """Those of all whole frames, as they were written."""
    import msgpack

    at, end = _HEAD_BYTES, whole_bytes(segment)
    while at < end:
        (length, _) = _FRAME.unpack_from(segment, at)
        at += _FRAME.size
        for region, number, previous, operations in msgpack.unpackb(segment[at : at + length]):
            yield Record(region, number, previous, [tuple(operation) for operation in operations])
        at += length



Found = Sequence[tuple[bytes, Record]]  # records of one region with their marks, ascending


def missing(found: Found, marks: Mapping[bytes, bytes]) -> Found:
    """Those that a store with ``marks``, all of this log, does not hold."""
    newest = max(marks, default=None)
    floor = floor_of(newest, marks[newest]) if newest is not None else b""
    return [(wanted, record) for wanted, record in found if wanted > floor and wanted not in marks]


def has_hole(lost: Found, marks: Mapping[bytes, bytes]) -> bool:
    """Whether the store holds a batch after one that it lost: no prefix of what was written (S2)."""
    newest = max(marks, default=b"")
    return any(wanted < newest for wanted, _ in lost)
