r"""(pure) One record of a region's change log: what a row mutation changed, and its key.

    key     := origin:u64 epoch:u32 n:u64                                    big-endian
    record  := version:u8(2) flags:u8 timestamp:u64 stamp:u64 hops:u8 row [only-for] entries before after sends
               [headers] [images]
    row     := length:u16 bytes
    flags   := 1 made for one trigger only (a backfill): the trigger's name follows the row as ``only-for``, u16-length
    bytes
               | 2 more records of the same atomic step follow | 4 ``images`` are there | 8 ``headers`` are there
    entries, before, after := count:u32 entry*
    entry   := kind:u8 timestamp:u64 family:u8-length bytes  qualifier:u32-length bytes  value:u32-length bytes
    sends   := count:u32 send*
    send    := target:u16-length bytes  key:u16-length bytes  name:u16-length bytes  group:u16-length bytes
               delay_ms:u64 priority:u8 body:u32-length bytes
    headers := (count:u16 (key:u16-length bytes  value:u16-length bytes)*)*      one list for each send
    images  := touched:u32 count:u16 covered*
    covered := family:u8-length bytes  whole:u8  count:u32 (qualifier:u32-length bytes)*     ascending; whole: count 0

Version 1, which stays readable for ever, has no ``stamp``, ``hops``, ``after`` or ``sends``; its ``timestamp`` is its
stamp, too.

``timestamp`` is the highest that the mutation gave a cell: a client may have invented it.  ``stamp`` is given by the
region and rises with each record of a row (``change_logging``), so that data derived from a row's records can be
ordered by it.

``kind`` of an entry: 1 put, 2 delete of a column at or below the timestamp, 3 delete of a whole
family, 4 delete of exactly the version of a column at the timestamp.  Increments and appends are
recorded as the put they amount to.  ``hops`` counts the changes that led to this one through flows; it is 0 for a
client's change.  Flag 2 joins the records of a mutation of several rows (``regions.write.group_writes``), which have
the same stamp.  ``sends`` are messages for the region's outbox (``model.send``); a record that has them may be without
entries, where nobody follows the row.

``before`` begins with the previous cells of the touched columns, for the families whose previous cells a follower
requested; ``touched`` is their number.  If the record has no images, ``before`` has no other cells.  Images are the
cells that a reader saw in the ``covered`` columns before and after the change: ``before`` has each such cell, ``after``
only the columns whose value changed, as a put, or as a delete of the column if no cell is left.
``regions.write.images`` reads the images of a record.

The sequence of a change is ``(origin, epoch, n)``: origin is the region in which the change was made, so
that daughters of a split can inherit a log and merged regions cannot clash (design D13); a new
epoch begins at each opening, because a crash may lose unsynced numbers, which then are given again (design D6).

Golden bytes: tests/golden/test_change_record_golden.py; the page: docs/formats/change-log.md.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache
from struct import Struct
from typing import Any, Final, NamedTuple

from columnar.errors import DamagedData
from columnar.model.send import Send

_KEY: Final = Struct(">QIQ")
KEY_BYTES: Final = _KEY.size
assert KEY_BYTES == 20, "on disk: a new layout needs a new format version"
_HEAD: Final = Struct(">BBQQBH")  # to the length of the row
_OLD_HEAD: Final = Struct(">BBQH")  # of version 1
_COUNT: Final = Struct(">I")
_SHORT: Final = Struct(">H")
_ENTRY: Final = Struct(">BQB")
_SEND: Final = Struct(">QB")
_NO_MORE: Final = bytes(8)  # neither ``after`` nor ``sends``
_VERSION: Final = 2
MOST_HOPS: Final = 255  # the highest number that a record holds
_OLD_VERSION: Final = 1
_FOR_ONE: Final = 1
_MORE_FOLLOWS: Final = 2
_IMAGES: Final = 4
_HEADERS: Final = 8
_COVERED: Final = Struct(">BI")

Images = Mapping[bytes, frozenset[bytes] | None]  # family -> qualifiers of columns; None: all its columns


class Sequence(NamedTuple):
    """The place of a change in its region's log; ordered within one origin."""

    origin: int
    epoch: int
    n: int

    @property
    def token(self) -> str:
        """Return the token that clients keep: ``origin-epoch-n``."""
        return f"{self.origin}-{self.epoch}-{self.n}"


class SequenceRange(NamedTuple):
    """The changes of one origin from ``first`` to ``last``, both included."""

    first: Sequence
    last: Sequence

    @property
    def token(self) -> str:
        """Return the token of the changes: that of the only one, or ``origin-epoch-n-epoch-n``."""
        first, last = self
        return first.token if first == last else f"{first.token}-{last.epoch}-{last.n}"


def up_to(sequence: Sequence) -> SequenceRange:
    """Return all changes of the origin up to this one."""
    return SequenceRange(Sequence(sequence.origin, 0, 0), sequence)


def parse_token(token: str) -> Sequence:
    """Return the sequence of a token.  Raises ValueError if ``token`` is not the token of a sequence."""
    origin, epoch, n = (int(part) for part in token.split("-"))
    if max(origin, n) >= 1 << 64 or epoch >= 1 << 32:  # no key of a log
        raise ValueError(f"'{token}' is no sequence")
    return Sequence(origin, epoch, n)


def parse_tokens(tokens: str) -> list[SequenceRange]:
    """Return the changes of tokens that are joined by commas: for each origin the range that has all of them.

    Raises ValueError.
    """
    found: dict[int, SequenceRange] = {}
    for token in tokens.split(","):
        head, *tail = token.rsplit("-", 2) if token.count("-") == 4 else [token]
        first = parse_token(head)
        last = parse_token("-".join([str(first.origin), *tail])) if tail else first
        if last < first:
            raise ValueError(f"'{token}' ends before it begins")
        known = found.get(first.origin, SequenceRange(first, last))
        found[first.origin] = SequenceRange(min(known.first, first), max(known.last, last))
    return list(found.values())


class Kind(IntEnum):
    PUT = 1
    DELETE_COLUMN = 2
    DELETE_FAMILY = 3
    DELETE_VERSION = 4


_KINDS: Final = {int(kind): kind for kind in Kind}
KIND_WORDS: Final = {
    Kind.PUT: "put",
    Kind.DELETE_COLUMN: "delete",
    Kind.DELETE_FAMILY: "delete family",
    Kind.DELETE_VERSION: "delete version",
}  # as clients get them


class Entry(NamedTuple):
    kind: Kind
    family: bytes
    qualifier: bytes
    timestamp: int
    value: bytes


class ChangeRecord:
    """A change record, constant.  A plain object takes 1 us, a frozen dataclass would take 4."""

    __slots__ = (
        "after", "before", "entries", "hops", "images", "more_follows", "only_for", "row", "sends", "stamp",
        "timestamp", "touched",
    )  # fmt: skip

    def __init__(
        self,
        row: bytes,
        timestamp: int,
        entries: tuple[Entry, ...],
        before: tuple[Entry, ...] = (),
        only_for: str | None = None,
        stamp: int = 0,
        hops: int = 0,
        after: tuple[Entry, ...] = (),
        sends: tuple[Send, ...] = (),
        more_follows: bool = False,
        images: Images | None = None,
        touched: int = 0,
    ) -> None:
        self.row = row
        self.timestamp = timestamp  # the highest of its entries: maybe a client's invention
        self.entries = entries
        self.before = before
        self.only_for = only_for  # the one trigger that gets it: a row of a backfill, or a dead letter again
        self.stamp = stamp  # rises with each record of the row: the timestamp of cells derived from the record
        self.hops = hops  # how many changes led to this one
        self.after = after
        self.sends = sends
        self.more_follows = more_follows  # the next record is of the same atomic step
        self.images = images  # columns with images in ``before`` and ``after``; None: the record has none
        self.touched = touched  # if it has images: the number of touched cells, which begin ``before``

    @property
    def touched_before(self) -> tuple[Entry, ...]:
        """The previous cells of the touched columns, in the families whose previous cells a follower requested."""
        return self.before if self.images is None else self.before[: self.touched]

    @property
    def stands_for_row(self) -> bool:
        """Whether the record is no change, but shows one trigger a row as the row is at the delivery."""
        return self.only_for is not None and not self.entries

    def but(self, **changes: Any) -> ChangeRecord:
        """Return a copy of the record with these fields replaced."""
        return ChangeRecord(**(dict(zip(_FIELDS, self._as_tuple(), strict=True)) | changes))

    def _as_tuple(self) -> tuple[Any, ...]:
        return (
            self.row, self.timestamp, self.entries, self.before, self.only_for, self.stamp, self.hops, self.after,
            self.sends, self.more_follows, self.images, self.touched,
        )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChangeRecord) and other._as_tuple() == self._as_tuple()

    def __hash__(self) -> int:
        return hash((self.row, self.stamp))

    def __repr__(self) -> str:
        named = zip(_FIELDS, self._as_tuple(), strict=True)
        return f"ChangeRecord({', '.join(f'{name}={value!r}' for name, value in named)})"


_FIELDS: Final = (
    "row", "timestamp", "entries", "before", "only_for", "stamp", "hops", "after", "sends", "more_follows", "images",
    "touched",
)  # fmt: skip
Appended = tuple[Sequence, ChangeRecord, int]  # a record appended to a log, and its size there


def pack_key(sequence: Sequence) -> bytes:
    return _KEY.pack(*sequence)


def unpack_key(key: bytes) -> Sequence:
    return Sequence(*_KEY.unpack(key))


def pack(record: ChangeRecord) -> bytes:
    flags = 0 if record.only_for is None else _FOR_ONE
    if record.more_follows:
        flags |= _MORE_FOLLOWS
    if record.images is not None:
        flags |= _IMAGES
    has_headers = bool(record.sends) and any(bool(send.headers) for send in record.sends)
    if has_headers:
        flags |= _HEADERS
    parts = [_HEAD.pack(_VERSION, flags, record.timestamp, record.stamp, record.hops, len(record.row)), record.row]
    if record.only_for is not None:
        name = record.only_for.encode()
        parts += [_SHORT.pack(len(name)), name]
    is_plain = not record.after and not record.sends and record.images is None
    for entries in (record.entries, record.before) if is_plain else (record.entries, record.before, record.after):
        parts.append(_count(len(entries)))
        _pack_entries(entries, parts)
    if is_plain:
        parts.append(_NO_MORE)
        return b"".join(parts)
    parts.append(_COUNT.pack(len(record.sends)))
    for send in record.sends:
        for short in (send.target, send.key, send.name, send.group):
            parts += [_SHORT.pack(len(short)), short]
        parts += [_SEND.pack(send.delay_ms, send.priority), _COUNT.pack(len(send.body)), send.body]
    if has_headers:
        _pack_headers(record.sends, parts)
    if record.images is not None:
        parts += [_COUNT.pack(record.touched), _known.packed(record.images)]
    return b"".join(parts)


def _pack_headers(sends: tuple[Send, ...], parts: list[bytes]) -> None:
    for send in sends:
        parts.append(_SHORT.pack(len(send.headers)))
        for key, value in send.headers:
            parts += [_SHORT.pack(len(key)), key, _SHORT.pack(len(value)), value]


def _pack_entries(entries: tuple[Entry, ...], parts: list[bytes]) -> None:
    """Append the bytes of the entries to ``parts``.  Most entries begin with the same bytes as the entry before."""
    last_kind: Kind | None = None
    last_timestamp, last_length, head = -1, -1, b""
    for kind, family, qualifier, timestamp, value in entries:
        if timestamp != last_timestamp or kind is not last_kind or len(family) != last_length:
            last_kind, last_timestamp, last_length = kind, timestamp, len(family)
            head = _ENTRY.pack(kind, timestamp, last_length)
        parts += (head, family, _count(len(qualifier)), qualifier, _count(len(value)), value)


_COUNTS: Final = [_COUNT.pack(count) for count in range(256)]


def _count(count: int) -> bytes:
    return _COUNTS[count] if count < 256 else _COUNT.pack(count)


class _KnownImages:
    """The packed images of the last record: the records of one table share one ``Images`` object."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[Images, bytes] | None = None

    def packed(self, images: Images) -> bytes:
        last = self._last
        if last is None or last[0] is not images:
            last = self._last = images, pack_images(images)
        return last[1]


_known: Final = _KnownImages()


def pack_images(images: Images) -> bytes:
    """Return the bytes of the images from ``count`` on."""
    parts = [_SHORT.pack(len(images))]
    for family, qualifiers in sorted(images.items()):
        named = () if qualifiers is None else sorted(qualifiers)
        parts += [bytes((len(family),)), family, _COVERED.pack(qualifiers is None, len(named))]
        for qualifier in named:
            parts += [_COUNT.pack(len(qualifier)), qualifier]
    return b"".join(parts)


def unpack(data: bytes) -> ChangeRecord:
    """Return the record.  Raises DamagedData if the bytes are no change record."""
    try:
        if not data or data[0] not in (_VERSION, _OLD_VERSION):
            version = data[0] if data else "none"
            raise DamagedData(f"change record of version {version}; this program knows {_VERSION}")
        return _unpacked_old(data) if data[0] == _OLD_VERSION else _unpacked(data)
    except (ValueError, struct.error, LookupError) as error:
        raise DamagedData(f"change record: {error}") from error


def is_old(data: bytes) -> bool:
    """Tell whether the record is of version 1: its stamp may be a client's invention."""
    return data[0] == _OLD_VERSION


def _unpacked(data: bytes) -> ChangeRecord:
    _, flags, timestamp, stamp, hops, row_length = _HEAD.unpack_from(data)
    row, only_for, at = _row(data, _HEAD.size, row_length, flags)
    entries, at = _entries(data, at)
    before, at = _entries(data, at)
    if data[at:] == _NO_MORE and not flags & (_MORE_FOLLOWS | _IMAGES):
        return ChangeRecord(row, timestamp, entries, before, only_for, stamp, hops)
    after, at = _entries(data, at)
    sends, at = _sends(data, at)
    if flags & _HEADERS:
        sends, at = _with_headers(data, at, sends)
    more = bool(flags & _MORE_FOLLOWS)
    if not flags & _IMAGES:
        return ChangeRecord(row, timestamp, entries, before, only_for, stamp, hops, after, sends, more)
    (touched,) = _COUNT.unpack_from(data, at)
    images = _images(data[at + 4 :])
    return ChangeRecord(row, timestamp, entries, before, only_for, stamp, hops, after, sends, more, images, touched)


def _unpacked_old(data: bytes) -> ChangeRecord:
    _, flags, timestamp, row_length = _OLD_HEAD.unpack_from(data)
    row, only_for, at = _row(data, _OLD_HEAD.size, row_length, flags)
    entries, at = _entries(data, at)
    before, _ = _entries(data, at)
    return ChangeRecord(row, timestamp, entries, before, only_for, timestamp)


def _row(data: bytes, at: int, length: int, flags: int) -> tuple[bytes, str | None, int]:
    row, at = data[at : at + length], at + length
    if not flags & _FOR_ONE:
        return row, None, at
    name, at = _short(data, at)
    return row, name.decode(), at


def _short(data: bytes, at: int) -> tuple[bytes, int]:
    (length,) = _SHORT.unpack_from(data, at)
    return data[at + 2 : at + 2 + length], at + 2 + length


@lru_cache(maxsize=64)
def _images(data: bytes) -> Images:
    """Unpack the covered columns.  Cached: one table's followers request the same columns for many records."""
    (count,), at = _SHORT.unpack_from(data), 2
    found: dict[bytes, frozenset[bytes] | None] = {}
    for _ in range(count):
        length = data[at]
        family, at = data[at + 1 : at + 1 + length], at + 1 + length
        whole, named = _COVERED.unpack_from(data, at)
        at += _COVERED.size
        qualifiers = []
        for _ in range(named):
            (length,) = _COUNT.unpack_from(data, at)
            qualifiers.append(data[at + 4 : at + 4 + length])
            at += 4 + length
        found[family] = None if whole else frozenset(qualifiers)
    if at != len(data):
        raise ValueError(f"images end {abs(len(data) - at)} bytes {'early' if at > len(data) else 'late'}")
    return found


def _sends(data: bytes, at: int) -> tuple[tuple[Send, ...], int]:
    (count,) = _COUNT.unpack_from(data, at)
    at += 4
    found = []
    for _ in range(count):
        target, at = _short(data, at)
        key, at = _short(data, at)
        name, at = _short(data, at)
        group, at = _short(data, at)
        delay_ms, priority = _SEND.unpack_from(data, at)
        (length,) = _COUNT.unpack_from(data, at + _SEND.size)
        at += _SEND.size + 4
        found.append(Send(target, key, name, group, delay_ms, priority, data[at : at + length]))
        at += length
    return tuple(found), at


def _with_headers(data: bytes, at: int, sends: tuple[Send, ...]) -> tuple[tuple[Send, ...], int]:
    found = []
    for send in sends:
        (count,) = _SHORT.unpack_from(data, at)
        at += 2
        headers = []
        for _ in range(count):
            key, at = _short(data, at)
            value, at = _short(data, at)
            headers.append((key, value))
        found.append(send._replace(headers=tuple(headers)))
    return tuple(found), at


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
        found.append(Entry(_KINDS[kind], family, qualifier, timestamp, value))
    return tuple(found), at
