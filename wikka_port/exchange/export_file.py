"""The one file of an export: whole under its name, and continued after a kill.

    OUT.part            the file as it grows; a name that ends in .gz is compressed, in members one after another
    OUT.part-written    which pages are in it (``written_pages``), and the tables of its writer

At a checkpoint, every NOTED pages or CHECKPOINT_BYTES, the file is synced up to the end of a page (and of a member),
and the record is written in one step.  The next export of the same command cuts OUT.part to its last checkpoint,
passes over the pages that it has, and writes the others behind it.  Checkpoints depend on the pages alone, so the
finished file has the same bytes as one that was written without a stop, unless the wiki was changed meanwhile: a page
stays as it was written.  An export that fails keeps what the last checkpoint has.

A pipe has no checkpoints.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from sqlite3 import Connection
from typing import Any, BinaryIO, Final

from wikka_port.exchange import written_pages
from wikka_port.exchange.records import RecordedPage, RecordSource, SiteRecord
from wikka_port.exchange.spool import spool_database
from wikka_port.exchange.whole_file import PART, sync_all, sync_folder
from wikka_port.exchange.written_pages import WrittenPages

CHECKPOINT_BYTES: Final = 32 << 20  # of an export, before it is compressed
_RECORD: Final = "-written"
_BYTES: Final = "bytes"  # of a checkpoint: the length of OUT.part
_WRITTEN: Final = "written"  # pages
_MISSING: Final = "missing"
_PACKED: Final = ".gz"
_PAGE: Final = "page "  # begins the places of pages in the record, with their identity behind it
_FILE: Final = "file "  # and those of files beside this one, with their path


def _silent(pages: int) -> None:
    """Say nothing of an export that is continued."""


@dataclass(frozen=True, slots=True)
class ExportCall:
    """A call of the command."""

    about: str = ""  # what is exported, and how: an export that was killed is continued by an equal one
    restart: bool = False  # begin anew; for a reader, too, who may have lost the right to read what was written
    missing: list[str] = field(default_factory=list)  # lines on what the source lacks, which a continued export keeps
    note_written: Callable[[int], None] = _silent  # called with the number of pages, if an export is continued


class ExportFile:
    """An export that is being written.  Not thread-safe.

    ``database`` is for the tables of its writer; ``values`` are those of the writer at the last checkpoint, {} if the
    export begins.
    """

    def __init__(self, write: Callable[[bytes], object], database: Connection) -> None:
        self.database = database
        self.values: Mapping[str, Any] = {}
        self._put = write
        self._values_of: list[Callable[[], Mapping[str, Any]]] = []

    @property
    def is_continued(self) -> bool:
        return bool(self.values)

    def write(self, data: bytes) -> None:
        self._put(data)

    def keep_values(self, values_of: Callable[[], Mapping[str, Any]]) -> None:
        """Call ``values_of`` at each checkpoint for what the writer has to know to go on: JSON."""
        self._values_of.append(values_of)

    def rest_of(self, source: RecordSource) -> RecordSource:
        """Return the source without the pages that are written.  A page is written when the next one is asked for."""
        return source

    def note_file(self, path: Path) -> None:
        """Record a file beside this one."""

    def has_file(self, path: str) -> bool:
        """Return whether a file beside this one, named by its path from here, is part of the export, or this is it."""
        return True


@contextmanager
def piped(write: Callable[[bytes], object]) -> Iterator[ExportFile]:
    """Write to ``write``, without checkpoints."""
    with closing(spool_database()) as database:
        yield ExportFile(write, database)


class _KeptFile(ExportFile):
    """An export in OUT.part, with its record."""

    def __init__(self, part: Path, growing: _GrowingFile, record: WrittenPages, *, has_files: bool) -> None:
        super().__init__(growing.write, record.database)
        self._part = part
        self.values = record.values()
        self._growing = growing
        self._record = record
        self._has_files = has_files
        self._waiting = 0  # pages since the last checkpoint
        self._written = int(self.values.get(_WRITTEN, 0))  # pages

    def rest_of(self, source: RecordSource) -> RecordSource:
        return _Rest(source, self)

    def note_file(self, path: Path) -> None:
        self._record.note_page(_FILE + path.relative_to(self._part.parent).as_posix())

    def has_file(self, path: str) -> bool:
        return path in _names_of(self._part) or self._record.has(_FILE + path)

    def has(self, page: RecordedPage) -> bool:
        return self._record.has(_PAGE + page.record.identity)

    def end_page(self, page: RecordedPage) -> None:
        self._record.note_page(_PAGE + page.record.identity)
        self._waiting += 1
        self._written += 1
        if self._waiting >= written_pages.NOTED or self._growing.since_bytes >= CHECKPOINT_BYTES:
            self.checkpoint()

    def checkpoint(self) -> None:
        """Make what is written durable: the export goes on behind it."""
        if not self._waiting:
            return
        if self._has_files:
            sync_all()
        kept: dict[str, Any] = {_WRITTEN: self._written, _BYTES: self._growing.end_piece()}
        for values_of in self._values_of:
            kept |= values_of()
        self._record.save_values(kept)
        self._waiting = 0


class _Rest:
    """The pages of a source that are not written yet."""

    def __init__(self, source: RecordSource, kept: _KeptFile) -> None:
        self._source = source
        self._kept = kept

    def site(self) -> SiteRecord | None:
        return self._source.site()

    def pages(self) -> Iterator[RecordedPage]:
        for page in self._source.pages():
            if not self._kept.has(page):
                yield page
                self._kept.end_page(page)
        self._kept.checkpoint()


class _GrowingFile:
    """A file that is written at its end; a compressed one is a chain of members, each whole in itself (RFC 1952)."""

    def __init__(self, raw: BinaryIO, *, packs: bool) -> None:
        self.since_bytes = 0  # that were written since the last piece, before they are compressed
        self._raw = raw
        self._packs = packs
        self._member: gzip.GzipFile | None = None

    def write(self, data: bytes) -> None:
        self.since_bytes += len(data)
        if not self._packs:
            self._raw.write(data)
            return
        if self._member is None:
            self._member = gzip.GzipFile("", "wb", 6, self._raw, mtime=0)
        self._member.write(data)

    def close(self) -> None:
        """End the member that is being written."""
        if self._member is not None:
            self._member.close()
            self._member = None

    def end_piece(self) -> int:
        """Sync what is written, and return the length of the file."""
        self.close()
        self._raw.flush()
        os.fsync(self._raw.fileno())
        self.since_bytes = 0
        return self._raw.tell()


@contextmanager
def export_file(
    path: Path, call: ExportCall, *, has_files: bool = False, discard: Callable[[], None] = lambda: None
) -> Iterator[ExportFile]:
    """Write the export ``path``, or go on with one that was killed.

    With ``has_files`` the export has files beside this one, which are synced with it.  ``discard`` removes these before
    the export begins anew.  If the block raises, ``path`` is as it was.  Raises ExportError if another export writes
    there.
    """
    part = path.with_name(path.name + PART)
    record = _record(part, call, discard)
    length = int(record.values().get(_BYTES, 0))
    packs = path.suffix == _PACKED
    try:
        with part.open("r+b" if length else "wb") as raw, closing(_GrowingFile(raw, packs=packs)) as growing:
            raw.truncate(length)
            raw.seek(length)
            made = _KeptFile(part, growing, record, has_files=has_files)
            if made.is_continued:
                call.missing.extend(made.values[_MISSING])
                call.note_written(int(made.values[_WRITTEN]))
            made.keep_values(lambda: {_MISSING: call.missing})
            yield made
            growing.end_piece()
        part.replace(path)
        sync_folder(path.parent)
    finally:
        has_checkpoint = bool(record.values())
        record.abandon()
        if not has_checkpoint:
            part.unlink(missing_ok=True)
        if not part.exists():
            record.remove()


def _names_of(part: Path) -> tuple[str, ...]:
    """Return the names of OUT.part, of its record, and of the file in which a change of the record begins."""
    return part.name, f"{part.name}{_RECORD}", f"{part.name}{_RECORD}-journal"


def is_begun(path: Path) -> bool:
    """Return whether an export of ``path`` was begun and killed."""
    return path.with_name(f"{path.name}{PART}{_RECORD}").is_file()


def _record(part: Path, call: ExportCall, discard: Callable[[], None]) -> WrittenPages:
    """Open the record of OUT.part, or begin a new one if it does not fit the file."""
    file = part.with_name(part.name + _RECORD)

    def begin_anew() -> None:
        part.unlink(missing_ok=True)
        discard()

    record = WrittenPages.opened(file, part.parent, call.about, begin_anew)
    length = int(record.values().get(_BYTES, 0))
    if length and not call.restart and part.is_file() and part.stat().st_size >= length:
        return record
    record.close()
    record.remove()
    begin_anew()
    return WrittenPages.opened(file, part.parent, call.about, begin_anew)
