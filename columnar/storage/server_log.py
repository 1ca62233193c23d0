"""(pure) The bytes of the server's log, which has batches of several regions under one fsync.

A region's own log (that of its RocksDB) has every write to the region.  If many regions are written to at once, an
fsync of each own log would be expensive.  So the regions' unsynced batches are also written to the server's log,
which is synced instead; the regions' own logs are synced later, when no writer waits.  HBase has only such a log (its
WAL).

    segment    := head frame*                                one file, ``00000001.segment``; big-endian
    head       := "columnar-server-log 2\\n" era crc32:u32    a segment is of one run; the checksum is that of the era
    era        := log:16 bytes run:u64                       the log's own name, and the number of the server's run
    frame      := length:u32 crc32:u32 body                  the checksum is that of the body
    body       := operations* records size:u32               ``size`` is that of the records, in bytes
    records    := msgpack [[region, epoch, number, previous, bytes of its operations], ...]
    operations := msgpack [[space, key, value | nil, stop | nil], ...]
    mark       := "server-log " era number:u64 -> floor:u64  a pair in MARK_SPACE of the region's store

A reader of one region skips the operations of other regions without unpacking them.  The records follow the operations
so that the operations are copied only once when a frame is made.

Format 1 had no checksum in its head and no epochs; a body was one msgpack list of records with their operations:
``[[region, number, previous, [[space, ...], ...]], ...]``.  Such records are read as records of epoch 0.

``region`` is the region's encoded name, and ``epoch`` is that of its owner.  If a region left a server and came back,
the server's log has records of both periods.  A record is one batch.  ``number`` rises over all regions of a run;
``previous`` is the number of the region's previous batch, or 0 for the first batch since the opening.

Each batch is written to RocksDB with its mark, so after a crash the marks tell which batches a store has.  The store
has all batches up to ``floor``, which were synced.  Their marks are removed with the next batch, and all marks of a
newly opened store with its first batch.  Marks of a different log, which came with a copy of a region, are ignored.
Marks that a daughter region has from its parent do no harm, because numbers continue to rise.

A frame is acknowledged only after an fsync that began after the frame was written.  So the first incomplete frame was
never acknowledged, and ends the segment.  A frame is written only after the fsync of the previous frame.  So if a
complete frame follows an incomplete one, the latter was complete and was damaged later.
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
MARK_SPACE: Final = "default"  # every store has this space, which is otherwise empty
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
# The beginning of ``records``: a list of lists of five elements, the first of which is text.  Not for format 1.
_RECORDS_BEGIN: Final = re.compile(rb"(?:[\x91-\x9f]|\xdc..|\xdd....)\x95(?:\xd9.|[\xa1-\xbf])", re.DOTALL)
_RECORDS_BYTES: Final = 4 * 1024 * 1024  # of one frame: some 60,000 regions
assert len(HEAD) == len(HEAD_1), "the era stands at the same place in both"

Operation = tuple[str, bytes, bytes | None, bytes | None]  # space, key, value, stop of a range
Written = tuple[str, int, int, int, Sequence[Operation]]  # region, epoch, number, previous; a batch to write


class Record(NamedTuple):
    """A batch of a region that was read from the log; its operations are still packed."""

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
    """Return the key of a mark.  The keys of a log's marks rise with runs and numbers."""
    return MARK + era + _NUMBER.pack(number)


def marks_of(log: bytes) -> tuple[bytes, bytes]:
    """Return the half-open key range of all marks of a log."""
    return MARK + log, MARK + log + b"\xff" * 2 * NUMBER_BYTES


def era_of_mark(key: bytes) -> bytes:
    return key[len(MARK) : -NUMBER_BYTES]


def pack_floor(number: int) -> bytes:
    return _NUMBER.pack(number)


def floor_of(key: bytes, value: bytes) -> bytes:
    """Return the mark up to which the store has every batch; key and value are those of any mark in the store."""
    return key[:-NUMBER_BYTES] + value


def head(era: bytes) -> bytes:
    return HEAD + era + _CHECKSUM.pack(crc32(era))


class Framing:
    """Makes frames, and copies large values as seldom as possible.  Belongs to one thread at a time."""

    def __init__(self) -> None:
        self._packer: Any = None  # kept because its buffer has grown to the largest batch

    def frame(self, records: Sequence[Written]) -> bytearray:
        if self._packer is None:
            import msgpack  # half a megabyte, which a server of few regions does not need

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
    """Return the era in the segment's head.  Raises DamagedData if the head is damaged or of an unknown version.

    Returns None if a power cut left the segment without its head; then none of its frames was acknowledged.
    """
    if not any(segment[:_HEAD_BYTES]):
        return None  # its length was on disk, but not its first page
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
    """Return the length of the segment's head, which depends on the format."""
    return _HEAD_1_BYTES if segment.startswith(HEAD_1) else _HEAD_BYTES


def bodies_of(segment: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (end of the frame, body) for each complete frame; the segment must have its head."""
    at = head_bytes(segment)
    while at + _FRAME.size <= len(segment):
        length, checksum = _FRAME.unpack_from(segment, at)
        body = segment[at + _FRAME.size : at + _FRAME.size + length]
        if not length or len(body) < length or crc32(body) != checksum:
            return
        at += _FRAME.size + length
        yield at, body


def frames_after(segment: bytes, at: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield (begin, end, body) of complete frames at or after ``at``, which need not be the beginning of a frame.

    This is for a damaged segment of format 2, and searches the bytes once.
    """
    found = _RECORDS_BEGIN.search(segment, at)
    while found is not None:
        frame = _frame_around(segment, at, found.start())
        if frame is not None:
            yield frame
            at = frame[1]
        found = _RECORDS_BEGIN.search(segment, max(at, found.start() + 1))


def _frame_around(segment: bytes, at: int, records: int) -> tuple[int, int, bytes] | None:
    """Return the frame whose records begin at ``records``, or None if there is no such frame at or after ``at``."""
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
    """Return the records of a frame of format 2.  Raises DamagedData."""
    return _records(body)


def records_in(segment: bytes) -> tuple[list[Record], int]:
    """Return the records of all complete frames, in the order of writing, and the end of the last of these frames.

    Raises DamagedData if a frame is complete, but its body is unreadable.
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
