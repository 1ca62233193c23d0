"""(pure) Reader of RocksDB's logs, and of its MANIFEST, which names the tables and logs that a store must have.

The records of a region's log (``N.log``) and of the MANIFEST (``MANIFEST-N``):

    file    := block*                                    32 KiB each, the last one may be shorter; little-endian
    block   := piece* filler                             filler if fewer than 7 bytes are left
    piece   := crc:u32 length:u16 type:u8 data           type 1: a whole record; 2, 3, 4: its first, middle, last piece
    crc     := masked CRC-32C of type and data
    batch   := sequence:u64 count:u32 operation*         a record of a log

RocksDB cannot know how long a file was.  So if the end of the file cuts a piece off, RocksDB silently ends reading
there, and it skips pieces of zeros.  ``Records`` stops at the first byte that is not believed, and reports why.

The records of the MANIFEST are edits (``VersionEdit`` of RocksDB 9.8).  An edit is a sequence of fields, each with a
numeric tag.

    edit   := (tag:varint value)*
    1 comparator  2 log number of a family  3 next file  4 last sequence  6 deleted table  9 -
    10 oldest log that is kept  103 new table  200 family of the edit  201 added  202 dropped
    from 8192 on: length-prefixed, may be ignored

Each opening begins a new MANIFEST with the present state; so does a write to a large MANIFEST.

These facts follow from RocksDB's order of steps; ``rocks_verified`` relies on them:

    * a log is removed only after an edit with a higher ``oldest log`` is on disk.  The content of all logs below that
      number is then in tables, and no log from that number on was removed;
    * after an opening ``oldest log`` is the number after the last replayed log; a log with that number need not exist.
      If a flush notes a higher ``oldest log``, that log exists;
    * a flush, an ingestion and a compaction sync their tables, then their edit, and then remove the replaced files.

Knows nothing of files, of fsyncs and of the rest of the folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import Final

from columnar.errors import DamagedData

BLOCK_BYTES: Final = 32 * 1024
_PIECE: Final = Struct("<IHB")  # crc, length, type
_BATCH: Final = Struct("<QI")  # sequence, count
HEADER_BYTES: Final = _PIECE.size
BATCH_BYTES: Final = _BATCH.size
assert HEADER_BYTES == 7, "on disk: RocksDB's"
assert BATCH_BYTES == 12, "on disk: RocksDB's"
_WHOLE: Final = 1
_FIRST: Final = 2
_LAST: Final = 4
_MASK: Final = 0xA282EAD8


class Records:
    """The complete records of a file.  After one iteration ``end`` and ``fault`` describe where and why it stopped."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.end = 0  # after the last complete record
        self.fault = ""  # why the next record is not believed; empty if the file ends there

    def __iter__(self) -> Iterator[bytes]:
        from google_crc32c import value as crc32c  # half a megabyte, which a store without regions does not need

        data, size, at = self._data, len(self._data), 0
        unpack_piece = _PIECE.unpack_from
        begun: list[bytes] | None = None  # pieces of a record that is not complete yet
        while at < size:
            start = at + HEADER_BYTES
            block_end = at - at % BLOCK_BYTES + BLOCK_BYTES
            if start > block_end:
                at = block_end
                continue
            if start > size:
                self.fault = "short"
                return
            crc, length, kind = unpack_piece(data, at)
            at = start + length
            if at > size or at > block_end:
                self.fault = "length" if at > block_end else "short"
                return
            typed = data[start - 1 : at]
            found = crc32c(typed)
            if (((found >> 15) | (found << 17)) + _MASK) & 0xFFFFFFFF != crc:
                self.fault = "zeros" if crc == length == kind == 0 else "checksum"
                return
            piece = typed[1:]
            if kind != _WHOLE or begun is not None:
                if kind > _LAST:
                    self.end = at
                    continue  # a piece of a later format, which describes the encoding of records
                if (kind in (_WHOLE, _FIRST)) != (begun is None):
                    self.fault = "order"
                    return
                begun = [*(begun or ()), piece]
                if kind != _LAST:
                    continue
                piece, begun = b"".join(begun), None
            self.end = at
            yield piece
        if begun is not None:
            self.fault = "short"


def batch_head(record: bytes) -> tuple[int, int]:
    """Return the sequence of the batch's first operation, and the number of operations."""
    found: tuple[int, int] = _BATCH.unpack_from(record)
    return found


_MAY_BE_PASSED_OVER: Final = 8192
_NUMBERS: Final = {2: "log", 3: "next", 4: "sequence", 9: "", 10: "oldest", 200: "family", 203: "", 300: ""}
_COMPARATOR, _CURSOR, _DELETED, _NEW, _ADDED, _DROPPED = 1, 5, 6, 103, 201, 202
_END_OF_TABLE: Final = 1


@dataclass(slots=True)
class Manifest:
    """The state that the complete edits of a MANIFEST describe."""

    end: int = 0  # after the last complete edit
    fault: str = ""  # why the next edit is not believed; empty if the file ends there
    families: dict[int, str] = field(default_factory=lambda: {0: "default"})
    tables: dict[int, int] = field(default_factory=dict)  # number -> bytes
    named: set[int] = field(default_factory=set)  # tables that were ever named
    oldest_log: int = 0
    known_log: int = 0  # the highest number of a log that the opening named
    first_file: int | None = None  # files with a lower number are older than this MANIFEST
    flushed_to: int = 0  # all operations up to this sequence were in tables when the opening had ended
    sequence: int = 0
    alone: set[int] = field(default_factory=set)  # sequences that are alone in a table, as those of ingestions
    flushes: list[tuple[int, int]] = field(default_factory=list)  # number of the log after it, highest flushed sequence

    def apply_edit(self, edit: _Edit) -> None:
        if edit.sequence is not None:
            self.sequence = max(self.sequence, edit.sequence)
        if edit.next is not None and self.first_file is None:
            self.first_file = edit.next
        self.oldest_log = max(self.oldest_log, edit.oldest or 0)
        if edit.added is not None:
            self.families[edit.family] = edit.added
        if edit.is_dropped:
            self.families.pop(edit.family, None)
        for number in edit.deleted:
            self.tables.pop(number, None)
        for number, size, lowest, highest in edit.new:
            self.tables[number] = size
            self.named.add(number)
            if lowest == highest:
                self.alone.add(highest)
            if edit.log is not None:
                self.flushes.append((edit.log, highest))

    def note_opening(self, log: int | None) -> None:
        """Note that the opening wrote the edits so far; ``log`` is the log that the last of them names."""
        self.known_log = max(self.known_log, self.oldest_log, log or 0)
        self.flushed_to = self.sequence

    def end_records(self, records: Records) -> None:
        self.end, self.fault = records.end, records.fault


def read_manifest(data: bytes, opened: int | None) -> Manifest:
    """Read the edits; ``opened`` is the length of the MANIFEST after the opening, or None if unknown.

    Raises DamagedData if an edit is not understood.
    """
    found, records = Manifest(), Records(data)
    for record in records:
        try:
            edit = _Edit(record)
        except (IndexError, ValueError) as error:
            raise DamagedData(f"holds an edit that this version does not know ({error})") from error
        found.apply_edit(edit)
        if opened is None or records.end <= opened:
            found.note_opening(edit.log)
    found.end_records(records)
    return found


class _Edit:
    """An edit of the MANIFEST.  Raises IndexError or ValueError if the record is no edit."""

    __slots__ = ("added", "deleted", "family", "is_dropped", "log", "new", "next", "oldest", "sequence")

    def __init__(self, record: bytes) -> None:
        numbers: dict[str, int] = {}
        self.added: str | None = None
        self.is_dropped = False
        self.deleted: list[int] = []
        self.new: list[tuple[int, int, int, int]] = []  # number, bytes, lowest and highest sequence
        fields = _Fields(record)
        for tag in fields.tags():
            if tag in _NUMBERS:
                numbers[_NUMBERS[tag]] = fields.number()
            elif tag == _NEW:
                self.new.append(_table(fields))
            elif tag == _DELETED:
                fields.number()
                self.deleted.append(fields.number())
            elif tag == _ADDED:
                self.added = fields.bytes().decode()
            elif tag == _DROPPED:
                self.is_dropped = True
            elif tag == _CURSOR:
                fields.number()
                fields.bytes()
            elif tag == _COMPARATOR or tag >= _MAY_BE_PASSED_OVER:
                fields.bytes()
            else:
                raise ValueError(f"field {tag}")
        self.family = numbers.get("family", 0)
        self.log = numbers.get("log")
        self.next = numbers.get("next")
        self.sequence = numbers.get("sequence")
        self.oldest = numbers.get("oldest")


def _table(fields: _Fields) -> tuple[int, int, int, int]:
    fields.number()  # level
    number, size = fields.number(), fields.number()
    fields.bytes()  # first key
    fields.bytes()  # last key
    lowest, highest = fields.number(), fields.number()
    for tag in fields.tags():
        if tag == _END_OF_TABLE:
            break
        fields.bytes()
    return number, size, lowest, highest


class _Fields:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def tags(self) -> Iterator[int]:
        while self._at < len(self._data):
            yield self.number()

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def bytes(self) -> bytes:
        size = self.number()
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise ValueError("a field is longer than its record")
        self._at += size
        return found
