"""(pure) Record batches of Kafka's protocol, version 2: their heads, which a store checks, and their records.

    batch  := base_offset:i64 length:i32 leader_epoch:i32 magic:i8(2) crc:u32 attributes:i16 last_offset_delta:i32
              base_timestamp:i64 max_timestamp:i64 producer:i64 epoch:i16 base_sequence:i32 count:i32 record*
                                                                                                     big-endian
    record := size:varint attributes:i8(0) timestamp_delta:varint offset_delta:varint key:varint-bytes
              value:varint-bytes headers:varint (key:varint-bytes value:varint-bytes)*
                                                                               varint: zigzag, of 64 bits; -1: null

``length`` counts from behind itself.  ``crc`` is CRC-32C of all behind itself, so base offset and leader epoch are set
by the store without a new checksum.  docs/formats/topics.md has an example.

Knows nothing of topics and of where batches are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from struct import Struct
from typing import Final, NamedTuple

from google_crc32c import value as crc32c

from columnar.errors import DamagedData

_HEAD: Final = Struct(">qiibIhiqqqhii")
_PLACE: Final = Struct(">qi")
_OFFSET: Final = Struct(">q")
_EPOCH: Final = Struct(">i")
HEAD_BYTES: Final = _HEAD.size
assert HEAD_BYTES == 61, "Kafka's format"
_AFTER_LENGTH: Final = 12
_AFTER_CRC: Final = 21
_EPOCH_AT: Final = 12
_LEAST_LENGTH: Final = HEAD_BYTES - _AFTER_LENGTH
MAGIC: Final = 2
NO_PRODUCER: Final = -1

COMPRESSION_BITS: Final = 0x07
_LOG_TIME: Final = 0x08
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_NULL: Final = -1


class BatchFault(Enum):
    """Why bytes are no batch of a producer."""

    SHORT = "the bytes end within a batch"
    OLD = "the batch has an older format than version 2"
    CHECKSUM = "the checksum does not match"
    WRONG = "no producer makes such a batch"


class BatchHead(NamedTuple):
    """The head of a batch, and where the batch is in the bytes that were looked at."""

    start: int
    stop: int
    base_offset: int
    attributes: int
    records: int  # how many
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer: int
    epoch: int
    base_sequence: int

    @property
    def size_bytes(self) -> int:
        return self.stop - self.start

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.records

    @property
    def is_compressed(self) -> bool:
        return bool(self.attributes & COMPRESSION_BITS)


class Record(NamedTuple):
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class ProducerMark:
    """The numbers by which a batch of an idempotent producer is known when it comes again."""

    producer: int = NO_PRODUCER
    epoch: int = -1
    base_sequence: int = -1


ANONYMOUS: Final = ProducerMark()


def read_head(data: bytes, start: int = 0) -> BatchHead | BatchFault:
    """Return the head of the batch that begins at ``start``, without a look at its checksum and its records."""
    if len(data) - start < HEAD_BYTES:
        return BatchFault.SHORT
    (base, length, _, magic, _, attributes, delta, first_ms, max_ms, producer, epoch, sequence, count) = (
        _HEAD.unpack_from(data, start)
    )
    if magic != MAGIC:
        return BatchFault.OLD if 0 <= magic < MAGIC else BatchFault.WRONG
    stop = start + _AFTER_LENGTH + length
    if length < _LEAST_LENGTH:
        return BatchFault.WRONG
    if stop > len(data):
        return BatchFault.SHORT
    if delta != count - 1:
        return BatchFault.WRONG
    return BatchHead(start, stop, base, attributes, count, first_ms, max_ms, producer, epoch, sequence)


def checked_heads(data: bytes) -> list[BatchHead] | BatchFault:
    """Return the heads of the batches that ``data`` is made of, if a store may keep each of them."""
    heads: list[BatchHead] = []
    at = 0
    while at < len(data):
        head = read_head(data, at)
        if isinstance(head, BatchFault):
            return head
        crc = int.from_bytes(data[at + _AFTER_CRC - 4 : at + _AFTER_CRC], "big")
        if crc32c(data[at + _AFTER_CRC : head.stop]) != crc:
            return BatchFault.CHECKSUM
        is_marked = head.producer >= 0
        if head.records < 1 or head.attributes & (_LOG_TIME | _TRANSACTIONAL | _CONTROL):
            return BatchFault.WRONG
        if is_marked and (head.epoch < 0 or head.base_sequence < 0):
            return BatchFault.WRONG
        heads.append(head)
        at = head.stop
    return heads or BatchFault.SHORT


def placed(data: bytes, head: BatchHead, offset: int) -> bytes:
    """Return the batch of ``head`` with its place in a log: its first record has ``offset``."""
    return _OFFSET.pack(offset) + data[head.start + 8 : head.start + _EPOCH_AT] + _EPOCH.pack(0) + (
        data[head.start + _AFTER_LENGTH + 4 : head.stop]
    )  # fmt: skip


# --- records ---------------------------------------------------------------------------------------------


def pack_batch(records: Sequence[Record], mark: ProducerMark = ANONYMOUS) -> bytes:
    """Return a batch of records, not compressed; their offsets are counted from the first one's.  At least one."""
    first = records[0]
    body = bytearray()
    for number, record in enumerate(records):
        packed = _pack_record(record, record.timestamp_ms - first.timestamp_ms, number)
        _put_varint(body, len(packed))
        body += packed
    count = len(records)
    latest_ms = max(record.timestamp_ms for record in records)
    tail = _HEAD.pack(
        first.offset, _LEAST_LENGTH + len(body), 0, MAGIC, 0, 0, count - 1, first.timestamp_ms, latest_ms,
        mark.producer, mark.epoch, mark.base_sequence, count,
    )  # fmt: skip
    checked = tail[_AFTER_CRC:] + bytes(body)
    checksum: int = crc32c(checked)
    return tail[: _AFTER_CRC - 4] + checksum.to_bytes(4, "big") + checked


def records_of(data: bytes, head: BatchHead) -> Iterator[Record]:
    """Yield the records of a batch that is not compressed.  Raises DamagedData."""
    at = head.start + HEAD_BYTES
    try:
        for _ in range(head.records):
            size, at = _varint(data, at)
            stop = at + size
            if size < 0 or stop > head.stop:
                raise DamagedData(f"a record ends behind its batch, which begins at offset {head.base_offset}")
            yield _record(data, at + 1, head)
            at = stop
    except IndexError:
        raise DamagedData(f"a record is cut, in the batch that begins at offset {head.base_offset}") from None


def _record(data: bytes, at: int, head: BatchHead) -> Record:
    time_delta, at = _varint(data, at)
    offset_delta, at = _varint(data, at)
    key, at = _read_bytes(data, at)
    value, at = _read_bytes(data, at)
    count, at = _varint(data, at)
    headers = []
    for _ in range(count):
        name, at = _read_bytes(data, at)
        content, at = _read_bytes(data, at)
        headers.append(((name or b"").decode(errors="replace"), content))
    return Record(head.base_offset + offset_delta, head.base_timestamp_ms + time_delta, key, value, tuple(headers))


def _pack_record(record: Record, time_delta: int, offset_delta: int) -> bytearray:
    packed = bytearray(1)  # attributes
    _put_varint(packed, time_delta)
    _put_varint(packed, offset_delta)
    _put_bytes(packed, record.key)
    _put_bytes(packed, record.value)
    _put_varint(packed, len(record.headers))
    for name, content in record.headers:
        _put_bytes(packed, name.encode())
        _put_bytes(packed, content)
    return packed


def _put_bytes(packed: bytearray, value: bytes | None) -> None:
    if value is None:
        _put_varint(packed, _NULL)
        return
    _put_varint(packed, len(value))
    packed += value


def _read_bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _varint(data, at)
    if size < 0:
        return None, at
    if at + size > len(data):
        raise IndexError
    return data[at : at + size], at + size


def _put_varint(packed: bytearray, value: int) -> None:
    left = (value << 1) ^ (value >> 63)
    while left > 0x7F:
        packed.append(left & 0x7F | 0x80)
        left >>= 7
    packed.append(left)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    at += 1
    found, shift = byte & 0x7F, 7
    while byte & 0x80:
        byte = data[at]
        at += 1
        found |= (byte & 0x7F) << shift
        shift += 7
        if shift > 70:
            raise DamagedData("a number of a record has more than ten bytes")
    return (found >> 1) ^ -(found & 1), at
