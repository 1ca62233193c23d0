r"""(pure) One record of a region's change log: what a row mutation changed, and its key.

    key     := origin:u64 epoch:u32 n:u64                                    big-endian
    record  := version:u8(1) flags:u8 timestamp:u64 row entry-count:u32 entry* before-count:u32 entry*
    row     := length:u16 bytes
    entry   := kind:u8 timestamp:u64 family:u8-length bytes  qualifier:u32-length bytes  value:u32-length bytes
    flags   := 1 the record was made for one trigger only (a backfill); its id follows the row: u16-length bytes

``kind`` of an entry: 1 put, 2 delete of a column at or below the timestamp, 3 delete of a whole
family, 4 delete of exactly the version of a column at the timestamp.  Increments and appends are
recorded as the put they amount to.  The entries after ``before-count`` are the cells that the touched
columns held before, where somebody asked for them.

The sequence of a change is ``(origin, epoch, n)``: origin is the region in which it was made, so
that daughters of a split can inherit a log and merged regions cannot clash (design D13); a new
epoch begins at each opening, because a crash may take unsynced numbers back (design D6).

Golden bytes: tests/golden/test_change_record_golden.py; the page: docs/formats/change-log.md.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from columnar.errors import DamagedData

_KEY: Final = Struct(">QIQ")
KEY_BYTES: Final = _KEY.size
assert KEY_BYTES == 20, "on disk: a new layout needs a new format version"
_HEAD: Final = Struct(">BBQH")
_COUNT: Final = Struct(">I")
_SHORT: Final = Struct(">H")
_ENTRY: Final = Struct(">BQB")
_VERSION: Final = 1
_FOR_ONE: Final = 1


class Sequence(NamedTuple):
    """Where a change stands in its region's log; ordered within one origin."""

    origin: int
    epoch: int
    n: int

    @property
    def token(self) -> str:
        """What clients hold on to: ``origin-epoch-n``."""
        return f"{self.origin}-{self.epoch}-{self.n}"


def parse_token(token: str) -> Sequence:
    """ValueError when ``token`` is none of ours."""
    origin, epoch, n = (int(part) for part in token.split("-"))
    return Sequence(origin, epoch, n)


class Kind(IntEnum):
    PUT = 1
    DELETE_COLUMN = 2
    DELETE_FAMILY = 3
    DELETE_VERSION = 4


class Entry(NamedTuple):
    kind: Kind
    family: bytes
    qualifier: bytes
    timestamp: int
    value: bytes


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    row: bytes
    timestamp: int  # the mutation's own; triggers stamp what they write with it
    entries: tuple[Entry, ...]
    before: tuple[Entry, ...] = ()
    only_for: str | None = None  # a backfill: the trigger that wants to see every row


def pack_key(sequence: Sequence) -> bytes:
    return _KEY.pack(*sequence)


def unpack_key(key: bytes) -> Sequence:
    return Sequence(*_KEY.unpack(key))


def pack(record: ChangeRecord) -> bytes:
    parts = [_HEAD.pack(_VERSION, _FOR_ONE if record.only_for is not None else 0, record.timestamp, len(record.row))]
    parts.append(record.row)
    if record.only_for is not None:
        name = record.only_for.encode()
        parts += [_SHORT.pack(len(name)), name]
    for entries in (record.entries, record.before):
        parts.append(_COUNT.pack(len(entries)))
        for kind, family, qualifier, timestamp, value in entries:
            parts += [
                _ENTRY.pack(kind, timestamp, len(family)),
                family,
                _COUNT.pack(len(qualifier)),
                qualifier,
                _COUNT.pack(len(value)),
                value,
            ]
    return b"".join(parts)


def unpack(data: bytes) -> ChangeRecord:
    """DamagedData when the bytes are no record of ours."""
    try:
        version, flags, timestamp, row_length = _HEAD.unpack_from(data)
        if version != _VERSION:
            raise DamagedData(f"change record of version {version}; this program knows {_VERSION}")
        at = _HEAD.size
        row, at = data[at : at + row_length], at + row_length
        only_for = None
        if flags & _FOR_ONE:
            (length,) = _SHORT.unpack_from(data, at)
            only_for, at = data[at + 2 : at + 2 + length].decode(), at + 2 + length
        entries, at = _entries(data, at)
        before, at = _entries(data, at)
    except (ValueError, struct.error) as error:
        raise DamagedData(f"change record: {error}") from error
    return ChangeRecord(row, timestamp, entries, before, only_for)


def _entries(data: bytes, at: int) -> tuple[tuple[Entry, ...], int]:
    (count,) = _COUNT.unpack_from(data, at)
    at += 4
    found = []
    for _ in range(count):
        kind, timestamp, family_length = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        family, at = data[at : at + family_length], at + family_length
        (length,) = _COUNT.unpack_from(data, at)
        qualifier, at = data[at + 4 : at + 4 + length], at + 4 + length
        (length,) = _COUNT.unpack_from(data, at)
        value, at = data[at + 4 : at + 4 + length], at + 4 + length
        found.append(Entry(Kind(kind), family, qualifier, timestamp, value))
    return tuple(found), at
