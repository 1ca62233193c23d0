"""(pure) The rows of queues in the table ``columnar:queues``; docs/formats/queues.md has an example of each.

    row      := NAME 00 rest                           NAME has no byte 0, so a queue is one group of rows (ROW_GROUP)
    rest     := 'r' (255 - priority):u8 subqueue n:u64     a message: q:m
              | 'l' n:u64                              who holds the message n, or until when it is delayed: q:l
              | 'n' name                               the message with this name, for which no second one is taken: q:n
              | 'x' n:u64                              a dead message: q:m as it was, and q:l
              | 's'                                    q:c settings, q:t totals, q:p a purge whose rows are still there,
                                                       q:a attributes that only SQS knows (``sqs/queue_attributes``)
    subqueue     := escape(group) 00 01                    escape: 00 becomes 00 FF
    message  := version:u8(1) name:u16-bytes count:u16 (key:u16-bytes value:u16-bytes)* body
    lease    := version:u8(1) until_ms:u64 attempts:u32 lease:u64 priority:u8 group:u16-bytes name:u16-bytes
                error:u16-bytes first:u64              lease 0: nobody holds the message; first: the lease of its first
                                                       pop, 0 before it; older cells do not have it
    settings := version:u8(1) lease_ms:u32 attempts:u32 fifo:u8 [retention_s:u32 dead_to:u16-bytes]
    purge    := version:u8(1) up_to:u64
    totals   := version:u8(1) last:u64 messages:u64 pushed:u64 committed:u64 dead:u64                 all big-endian

The header ``sqs:`` of a message is reserved: it has what only SQS knows of it (``sqs/message_attributes``).

``n`` is the time of the push in microseconds since 1970, or one more than the last ``n``: it rises with each push of a
queue.  A receipt is n:u64 lease:u64.

Invariant I1: in the order of rows messages are ordered by priority, highest first, then by group, then by ``n``.

Knows nothing of regions.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, error
from typing import Final, NamedTuple

from columnar.errors import DamagedData, IllegalArgument, RequestTooBig
from columnar.model.queue_place import checked_queue

MESSAGE, LEASE, NAMED, SETTINGS, TOTALS, PURGE = b"m", b"l", b"n", b"c", b"t", b"p"  # qualifiers
SUBQUEUE_END: Final = b"\x00\x01"
HIGHEST_PRIORITY: Final = 255
VERSION: Final = 1
LONGEST_NAME: Final = 200  # of a queue, of a message and of a group, in bytes
MESSAGE_BYTES: Final = 1024 * 1024  # name, headers and body
SQS_HEADER: Final = b"sqs:"  # what another protocol alone knows of a message
SQS_HEADER_BYTES: Final = 8 * 1024  # of that header, which does not count: a message as large as AWS allows must fit
HEADERS: Final = 100
ERROR_BYTES: Final = 1_000
LONGEST_MS: Final = 30 * 24 * 3_600 * 1_000  # of a lease and of a delay
MOST_ATTEMPTS: Final = 1_000_000
LONGEST_RETENTION_S: Final = 10 * 366 * 24 * 3_600

_U16: Final = Struct(">H")
_U32: Final = Struct(">I")
_U64: Final = Struct(">Q")
_PURGE: Final = Struct(">BQ")
_LEASE: Final = Struct(">BQIQB")
_SETTINGS: Final = Struct(">BIIB")
_TOTALS: Final = Struct(">BQQQQQ")
_RECEIPT: Final = Struct(">QQ")
assert (_LEASE.size, _SETTINGS.size, _TOTALS.size) == (22, 10, 41), "on disk: a new layout needs a new version"


class Subqueue(NamedTuple):
    """The messages of one group with one priority."""

    rank: int  # 255 - priority
    group: bytes


@dataclass(frozen=True, slots=True)
class Message:
    name: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class LeaseCell:
    until_ms: int
    attempts: int
    lease: int  # 0: nobody holds the message
    subqueue: Subqueue
    name: bytes = b""
    error: bytes = b""  # of the last rollback
    first: int = 0  # the lease of the first pop, which is its time; 0: it was not popped, or by an older version


@dataclass(frozen=True, slots=True)
class Settings:
    lease_ms: int = 30_000  # of a pop that names none
    attempts: int = 0  # after so many a message is dead; 0: never
    fifo: bool = False  # the messages of a group one at a time, in their order
    retention_s: int = 0  # older messages are removed, unless somebody holds them; 0: never
    dead_to: bytes = b""  # the queue to which dead messages are moved; empty: they stay


@dataclass(frozen=True, slots=True)
class Totals:
    last: int = 0  # the highest n
    messages: int = 0  # that are there: ready, delayed and in flight
    pushed: int = 0
    committed: int = 0
    dead: int = 0  # that are there


@dataclass(frozen=True, slots=True)
class Purge:
    """A purge whose rows are still to be removed."""

    up_to: int  # the highest n that is purged


def checked_message(message: Message, group: bytes, priority: int, delay_ms: int, name_ms: int = 0) -> None:
    """Raise IllegalArgument or RequestTooBig if the message cannot be stored."""
    if len(message.name) > LONGEST_NAME or len(group) > LONGEST_NAME:
        raise IllegalArgument(f"the name and the group of a message have at most {LONGEST_NAME} bytes each")
    if len(message.headers) > HEADERS or any(len(k) > 0xFFFF or len(v) > 0xFFFF for k, v in message.headers):
        raise IllegalArgument(f"a message has at most {HEADERS} headers, each with at most 65535 bytes")
    if not 0 <= priority <= HIGHEST_PRIORITY:
        raise IllegalArgument(f"priority {priority}: a priority is between 0 and {HIGHEST_PRIORITY}, the most urgent")
    if not 0 <= delay_ms <= LONGEST_MS:
        raise IllegalArgument(f"delay of {delay_ms} ms: a delay is between 0 and {LONGEST_MS} ms")
    if not 0 <= name_ms <= LONGEST_MS or (name_ms and not message.name):
        raise IllegalArgument(
            f"a name of {name_ms} ms: a name's time is between 0 and {LONGEST_MS} ms, and needs a name"
        )
    own = next((len(value) for key, value in message.headers if key == SQS_HEADER), 0)
    if own > SQS_HEADER_BYTES:
        raise RequestTooBig(f"the header {SQS_HEADER.decode()} has {own} bytes, at most {SQS_HEADER_BYTES} are allowed")
    size = size_of_message(message.headers, message.body)
    if size > MESSAGE_BYTES:
        raise RequestTooBig(f"a message of {size} bytes, at most {MESSAGE_BYTES} are allowed; push a reference to it")


def size_of_message(headers: tuple[tuple[bytes, bytes], ...], body: bytes) -> int:
    """Return the bytes that count for MESSAGE_BYTES."""
    return len(body) + sum([len(key) + len(value) for key, value in headers if key != SQS_HEADER])


def checked_settings(settings: Settings) -> Settings:
    if not 1 <= settings.lease_ms <= LONGEST_MS:
        raise IllegalArgument(f"a lease of {settings.lease_ms} ms: it is between 1 and {LONGEST_MS} ms")
    if not 0 <= settings.attempts <= MOST_ATTEMPTS:
        raise IllegalArgument(f"{settings.attempts} attempts: they are between 0 (no bound) and {MOST_ATTEMPTS}")
    if not 0 <= settings.retention_s <= LONGEST_RETENTION_S:
        raise IllegalArgument(
            f"a retention of {settings.retention_s} s: it is between 0 (no bound) and {LONGEST_RETENTION_S} s"
        )
    if settings.dead_to:
        checked_queue(settings.dead_to)
    return settings


# --- rows ------------------------------------------------------------------------------------------------


def state_row(queue: bytes) -> bytes:
    return queue + b"\x00s"


def lease_row(queue: bytes, n: int) -> bytes:
    return queue + b"\x00l" + _U64.pack(n)


def dead_row(queue: bytes, n: int) -> bytes:
    return queue + b"\x00x" + _U64.pack(n)


def name_row(queue: bytes, name: bytes) -> bytes:
    return queue + b"\x00n" + name


def subqueue_prefix(queue: bytes, subqueue: Subqueue) -> bytes:
    return queue + b"\x00r" + bytes((subqueue.rank,)) + subqueue.group.replace(b"\x00", b"\x00\xff") + SUBQUEUE_END


def message_row(queue: bytes, subqueue: Subqueue, n: int) -> bytes:
    return subqueue_prefix(queue, subqueue) + _U64.pack(n)


def after_subqueue(queue: bytes, subqueue: Subqueue) -> bytes:
    """Return the first row above all of the subqueue's."""
    return subqueue_prefix(queue, subqueue)[:-1] + b"\x02"


def messages_span(queue: bytes) -> tuple[bytes, bytes]:
    return queue + b"\x00r", queue + b"\x00s"


def leases_span(queue: bytes) -> tuple[bytes, bytes]:
    return queue + b"\x00l", queue + b"\x00m"


def names_span(queue: bytes) -> tuple[bytes, bytes]:
    return queue + b"\x00n", queue + b"\x00o"


def dead_span(queue: bytes) -> tuple[bytes, bytes]:
    return queue + b"\x00x", queue + b"\x00y"


def n_of(row: bytes) -> int:
    """Return ``n`` of a row that ends with it."""
    return int.from_bytes(row[-8:], "big")


def place_of(queue: bytes, row: bytes) -> tuple[Subqueue, int]:
    """Return the subqueue and ``n`` of a message's row.  Raises DamagedData."""
    rest = row[len(queue) + 2 :]
    if len(rest) < 11 or rest[-10:-8] != SUBQUEUE_END:
        raise DamagedData(f"a row of queue {queue.decode('latin-1')} is not one of a message: {row!r}")
    return Subqueue(rest[0], rest[1:-10].replace(b"\x00\xff", b"\x00")), int.from_bytes(rest[-8:], "big")


# --- cells -----------------------------------------------------------------------------------------------


def pack_message(message: Message) -> bytes:
    parts = [bytes((VERSION,)), _short(message.name), _U16.pack(len(message.headers))]
    for key, value in message.headers:
        parts += (_short(key), _short(value))
    return b"".join((*parts, message.body))


def unpack_message(data: bytes) -> Message:
    """Raises DamagedData."""
    try:
        _check_version(data)
        name, at = _take(data, 1)
        (count,) = _U16.unpack_from(data, at)
        at += 2
        headers = []
        for _ in range(count):
            key, at = _take(data, at)
            value, at = _take(data, at)
            headers.append((key, value))
    except (error, IndexError):
        raise DamagedData("a message of a queue is cut off") from None
    return Message(name, tuple(headers), data[at:])


def pack_lease(cell: LeaseCell) -> bytes:
    fixed = _LEASE.pack(VERSION, cell.until_ms, cell.attempts, cell.lease, HIGHEST_PRIORITY - cell.subqueue.rank)
    named = _short(cell.subqueue.group) + _short(cell.name) + _short(cell.error[:ERROR_BYTES])
    return fixed + named + _U64.pack(cell.first)


def unpack_lease(data: bytes) -> LeaseCell:
    """Raises DamagedData."""
    try:
        _check_version(data)
        _, until_ms, attempts, lease, priority = _LEASE.unpack_from(data)
        group, at = _take(data, _LEASE.size)
        name, at = _take(data, at)
        text, at = _take(data, at)
        first = _U64.unpack_from(data, at)[0] if at < len(data) else 0
    except (error, IndexError):
        raise DamagedData("a lease of a queue is cut off") from None
    return LeaseCell(until_ms, attempts, lease, Subqueue(HIGHEST_PRIORITY - priority, group), name, text, first)


def pack_settings(settings: Settings) -> bytes:
    fixed = _SETTINGS.pack(VERSION, settings.lease_ms, settings.attempts, settings.fifo)
    if settings == Settings(settings.lease_ms, settings.attempts, settings.fifo):
        return fixed
    return fixed + _U32.pack(settings.retention_s) + _short(settings.dead_to)


def unpack_settings(data: bytes) -> Settings:
    """Raises DamagedData."""
    try:
        _check_version(data)
        _, lease_ms, attempts, fifo = _SETTINGS.unpack_from(data)
        retention_s, dead_to = 0, b""
        if len(data) > _SETTINGS.size:
            (retention_s,) = _U32.unpack_from(data, _SETTINGS.size)
            dead_to, _ = _take(data, _SETTINGS.size + _U32.size)
    except (error, IndexError):
        raise DamagedData("the settings of a queue are damaged") from None
    return Settings(lease_ms, attempts, bool(fifo), retention_s, dead_to)


def pack_totals(totals: Totals) -> bytes:
    return _TOTALS.pack(VERSION, totals.last, totals.messages, totals.pushed, totals.committed, totals.dead)


def unpack_totals(data: bytes) -> Totals:
    """Raises DamagedData."""
    try:
        _check_version(data)
        return Totals(*_TOTALS.unpack(data)[1:])
    except (error, IndexError):
        raise DamagedData("the totals of a queue are damaged") from None


def pack_purge(purge: Purge) -> bytes:
    return _PURGE.pack(VERSION, purge.up_to)


def unpack_purge(data: bytes) -> Purge:
    """Raises DamagedData."""
    try:
        _check_version(data)
        return Purge(_PURGE.unpack(data)[1])
    except (error, IndexError):
        raise DamagedData("the purge of a queue is damaged") from None


def pack_named(n: int) -> bytes:
    return _U64.pack(n)


def unpack_named(data: bytes) -> int:
    return int.from_bytes(data, "big")


def pack_receipt(n: int, lease: int) -> bytes:
    return _RECEIPT.pack(n, lease)


def unpack_receipt(receipt: bytes | None) -> tuple[int, int]:
    """Return ``n`` and the lease.  Raises IllegalArgument."""
    if receipt is None or len(receipt) != _RECEIPT.size:
        raise IllegalArgument("a receipt is the 16 bytes that a pop has returned with the message")
    n, lease = _RECEIPT.unpack(receipt)
    return n, lease


def _check_version(data: bytes) -> None:
    if data[0] != VERSION:
        raise DamagedData(f"a cell of a queue has version {data[0]}; this program reads version {VERSION}")


def _short(data: bytes) -> bytes:
    return _U16.pack(len(data)) + data


def _take(data: bytes, at: int) -> tuple[bytes, int]:
    (size,) = _U16.unpack_from(data, at)
    end = at + 2 + size
    if end > len(data):
        raise IndexError
    return data[at + 2 : end], end
