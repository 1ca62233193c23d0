"""(pure) The log of the server: batches of several regions under one fsync; its bytes.

A region's own log (the engine's) contains every write to the region.  If many regions are written to at once, an
fsync of each would be expensive: their unsynced batches are also written to the server's log, which is synced in
their place; their own logs are synced later, when no writer waits.  HBase has only such a log (its WAL).

    segment    := head frame*                                one file, ``00000001.segment``; big-endian
    head       := "columnar-server-log 2\n" era crc32:u32    of one run of the server; the checksum is the era's
    era        := log:16 bytes run:u64                       the log's own name, and which run of the server
    frame      := length:u32 crc32:u32 body                  the checksum is the body's
    body       := operations* records size:u32               ``size`` is that of the records, in bytes
    records    := msgpack [[region, epoch, number, previous, bytes of its operations], ...]
    operations := msgpack [[space, key, value | nil, stop | nil], ...]
    mark       := "server-log " era number:u64 -> floor:u64  a pair in MARK_SPACE of the region's store

A reader of one region skips the operations of other regions without unpacking them; the records come last so
that the operations are copied once when a frame is made.

Format 1 had no checksum in its head and no epochs; its bodies were one msgpack list of records, operations within:
``[[region, number, previous, [[space, ...], ...]], ...]``.  Such records are read as those of epoch 0.

``region`` is the region's encoded name and ``epoch`` its owner's: a region that left a server and came back has
records of both times in one log.  A record is one batch.  ``number`` rises over all regions of a run; ``previous`` is
the number of the region's batch before, or 0 for the first since it was opened.  With each batch the engine gets its
mark: after a crash the marks say which batches a store has.  The store has all batches up to ``floor``, which
were synced; their marks are removed with the next batch, and all marks of a newly opened store with its first batch.
Marks of another log, which came with a copy of a region, are ignored; marks that a daughter region has from
its parent do no harm: numbers continue to rise.

A frame is acknowledged only after an fsync that began after it was written.  The first frame that is not whole was
therefore never acknowledged, and ends the segment.  The next frame is written after that fsync: a whole frame after
one that is not whole shows that the latter was damaged later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any, Final, NamedTuple
from zlib import crc32

from columnar.errors import DamagedData

HEAD: Final = b"columnar-server-log 2\n"
HEAD_1: Final = b"columnar-server-log 1\n"
BEFORE_EPOCHS: Final = 0  # of records in format 1
LOG_BYTES: Final = 16
MARK_SPACE: Final = "default"  # every store has it, and else it is empty
MARK: Final = b"server-log "
MARKS_END: Final = b"server-log!"  # the first key after all marks

_FRAME: Final = Struct(">II")
_NUMBER: Final = Struct(">Q")
NUMBER_BYTES: Final = _NUMBER.size
_ERA_BYTES: Final = LOG_BYTES + NUMBER_BYTES
_CHECKSUM: Final = Struct(">I")
_SIZE: Final = Struct(">I")
_HEAD_1_BYTES: Final = len(HEAD_1) + _ERA_BYTES
_HEAD_BYTES: Final = len(HEAD) + _ERA_BYTES + _CHECKSUM.size
# The beginning of ``records``: a list of lists of five whose first element is text.  Format 1 has no such place.
_RECORDS_BEGIN: Final = re.compile(rb"(?:[\x91-\x9f]|\xdc..|\xdd....)\x95(?:\xd9.|[\xa1-\xbf])", re.DOTALL)
_RECORDS_BYTES: Final = 4 * 1024 * 1024  # of one frame: some 60,000 regions
assert len(HEAD) == len(HEAD_1), "the era stands at the same place in both"

Operation = tuple[str, bytes, bytes | None, bytes | None]  # space, key, value, stop of a range
Written = tuple[str, int, int, int, Sequence[Operation]]  # region, epoch, number, previous: a batch to be written


class Record(NamedTuple):
    """A batch of a region, read; its operations are still packed."""

    region: str
    epoch: int
    number: int
    previous: int
    packed: bytes

    @property
    def operations(self) -> list[Operation]:
        import msgpack

        return [tuple(operation) for operation in msgpack.unpackb(self.packed)]


def era(log: bytes, run: int) -> bytes:
    return log + _NUMBER.pack(run)


def log_and_run(era: bytes) -> tuple[bytes, int]:
    return era[:LOG_BYTES], _NUMBER.unpack_from(era, LOG_BYTES)[0]


def mark(era: bytes, number: int) -> bytes:
    """The key; those of one log rise with runs and numbers."""
    return MARK + era + _NUMBER.pack(number)


def marks_of(log: bytes) -> tuple[bytes, bytes]:
    """The half-open range of all marks of one log."""
    return MARK + log, MARK + log + b"\xff" * 2 * NUMBER_BYTES


def era_of_mark(key: bytes) -> bytes:
    return key[len(MARK) : -NUMBER_BYTES]


def pack_floor(number: int) -> bytes:
    return _NUMBER.pack(number)


def floor_of(key: bytes, value: bytes) -> bytes:
    """Return the mark up to which the store has every batch, from any mark of the store."""
    return key[:-NUMBER_BYTES] + value


def head(era: bytes) -> bytes:
    return HEAD + era + _CHECKSUM.pack(crc32(era))


class Framing:
    """Makes frames; belongs to one thread at a time.  Large values are copied as seldom as may be."""

    def __init__(self) -> None:
        self._packer: Any = None  # kept: its buffer is as large as the operations of one batch

    def frame(self, records: Sequence[Written]) -> bytearray:
        if self._packer is None:
            import msgpack  # half a megabyte that a server of few regions needs not

            self._packer = msgpack.Packer()
        pack = self._packer.pack
        made = bytearray(_FRAME.size)
        heads = []
        for region, epoch, number, previous, operations in records:
            packed: bytes = pack(operations)
            made += packed
            heads.append((region, epoch, number, previous, len(packed)))
        packed = pack(heads)
        made += packed
        made += _SIZE.pack(len(packed))
        _FRAME.pack_into(made, 0, len(made) - _FRAME.size, crc32(memoryview(made)[_FRAME.size :]))
        return made


def era_of(segment: bytes) -> bytes | None:
    """Return the era in the segment's head.  DamagedData.

    None: a power cut left the segment without its head, so none of its frames was acknowledged.
    """
    if not any(segment[:_HEAD_BYTES]):
        return None  # its length was on disk, and not its first page
    size = min(len(segment), len(HEAD))
    if segment[:size] not in (HEAD[:size], HEAD_1[:size]):
        raise DamagedData("a segment of the server's log begins as none of this version does")
    if len(segment) < head_bytes(segment):
        return None
    found = segment[len(HEAD) : _HEAD_1_BYTES]
    if segment.startswith(HEAD) and _CHECKSUM.unpack_from(segment, _HEAD_1_BYTES)[0] != crc32(found):
        raise DamagedData("the head of a segment of the server's log is damaged")
    return found


def head_bytes(segment: bytes) -> int:
    """The length of its head, by its format."""
    return _HEAD_1_BYTES if segment.startswith(HEAD_1) else _HEAD_BYTES


def bodies_of(segment: bytes) -> Iterator[tuple[int, bytes]]:
    """The body of each whole frame, and where the frame ends.  The segment has its head."""
    at = head_bytes(segment)
    while at + _FRAME.size <= len(segment):
        length, checksum = _FRAME.unpack_from(segment, at)
        body = segment[at + _FRAME.size : at + _FRAME.size + length]
        if not length or len(body) < length or crc32(body) != checksum:
            return
        at += _FRAME.size + length
        yield at, body


def frames_after(segment: bytes, at: int) -> Iterator[tuple[int, int, bytes]]:
    """Find whole frames at or after ``at``, which is no border of frames: begin, end and body of each.

    For a segment of format 2 that is damaged.  Cost: one search through the bytes.
    """
    found = _RECORDS_BEGIN.search(segment, at)
    while found is not None:
        frame = _frame_around(segment, at, found.start())
        if frame is not None:
            yield frame
            at = frame[1]
        found = _RECORDS_BEGIN.search(segment, max(at, found.start() + 1))


def _frame_around(segment: bytes, at: int, records: int) -> tuple[int, int, bytes] | None:
    """The frame, from ``at`` on, whose records begin at ``records``."""
    import msgpack

    unpacker = msgpack.Unpacker(max_buffer_size=_RECORDS_BYTES)
    unpacker.feed(memoryview(segment)[records : records + _RECORDS_BYTES])
    try:
        operations = sum(size_bytes for _, _, _, _, size_bytes in unpacker.unpack())
    except (msgpack.UnpackException, ValueError, TypeError):
        return None
    first = records - operations - _FRAME.size if isinstance(operations, int) else -1
    end = records + unpacker.tell() + _SIZE.size
    if first < at or end > len(segment):
        return None
    length, checksum = _FRAME.unpack_from(segment, first)
    body = segment[first + _FRAME.size : end]
    return (first, end, body) if length == len(body) and checksum == crc32(body) else None


def records_of(body: bytes) -> list[Record]:
    """The records of a frame of format 2.  DamagedData."""
    return _records(body)


def records_in(segment: bytes) -> tuple[list[Record], int]:
    """Return the records of all whole frames, as they were written, and the end of the last of these frames.

    DamagedData: a frame is whole, but its body is not readable.
    """
    found: list[Record] = []
    whole_bytes = min(len(segment), head_bytes(segment))
    read = _records_1 if segment.startswith(HEAD_1) else _records
    for end, body in bodies_of(segment):
        whole_bytes = end
        found += read(body)
    return found, whole_bytes


def _records(body: bytes) -> list[Record]:
    import msgpack

    end = len(body) - _SIZE.size
    first = end - _SIZE.unpack_from(body, end)[0]
    found: list[Record] = []
    at = 0
    for region, epoch, number, previous, size_bytes in msgpack.unpackb(body[first:end]):
        found.append(Record(region, epoch, number, previous, body[at : at + size_bytes]))
        at += size_bytes
    if at != first:
        raise DamagedData("a frame of the server's log has other operations than its records say")
    return found


def _records_1(body: bytes) -> list[Record]:
    import msgpack

    return [
        Record(region, BEFORE_EPOCHS, number, previous, msgpack.packb(operations))
        for region, number, previous, operations in msgpack.unpackb(body)
    ]
