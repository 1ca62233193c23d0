"""Faults of files, reported as differences by ``wikka check``, and their repair by the steps of the sweep.

    pages, deleted   ``file:NAME`` is not what its row in ``files`` says                           different
                     ``file:NAME`` in a row that is no page                                        stale
    files            a version on the chain of a file is not there                                 lost
                     a row on no chain, older than GRACE_MS: an upload lost, or crashed            stale
                     ``v:erased``: a version that is not erased to the end                         stale
    blob_refs        the reference of a version is not there                                       missing
                     a reference of no version, older than GRACE_MS                                stale
    blobs            a version's content is not there, is gone, or has another size                lost
                     a content to which nothing refers                                             stale
    chunks           a chunk of a content is not there, or with ``contents`` its bytes differ      lost
                     (``column`` of a lost content names a file that has it)
                     chunks at a place that no content and no upload names                         stale
    uploads          an upload or a surplus place, older than GRACE_MS (waiting: WAITING_MS)       stale
                     the name of a waiting upload that is not there                                stale
    thumbs           a picture has neither smaller versions nor the reason why                     missing
                     smaller versions of no content                                                stale

Memory: a few versions, and some hundred bytes for each content and each page with files.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Final, TypeVar

from wikka_port import schema
from wikka_port.accounts.rows import Cells, Rows
from wikka_port.differences import Difference, Kind
from wikka_port.files.chunks import chunk_count, chunk_row, chunks_end, parse_chunk_row
from wikka_port.files.contents import Contents
from wikka_port.files.erasing import finish_erasure
from wikka_port.files.file_rows import (
    BLOB_REFS,
    BLOB_STATE,
    BLOBS,
    CHUNKS,
    ERASED,
    FILE,
    FILES,
    GRACE_MS,
    REFERENCE,
    UPLOAD_TIME,
    UPLOADS,
    BlobState,
    CurrentFile,
    FileVersion,
    is_waiting_row,
    parse_blob_state,
    parse_current_file,
    places_in,
    reference_column,
    saves_in,
    versions_of_page,
    waiting_column,
)
from wikka_port.files.sweeping import Sweep
from wikka_port.files.thumbnails import NONE, THUMBS, TYPE, all_rows, widths_of
from wikka_port.moving.journal import DELETED
from wikka_port.page_rows import head_of, is_there, text_in
from wikka_port.schema import fields_in

TABLES: Final = (FILES, BLOBS, BLOB_REFS, UPLOADS, CHUNKS, THUMBS)
_STEP: Final = 200
_LAST: Final = b"\xff"
T = TypeVar("T")


def _stale_versions(found: Iterable[Difference]) -> set[bytes]:
    return {one.row for one in found if one.kind is Kind.STALE and one.table == FILES and not one.column}


def is_of_files(one: Difference) -> bool:
    return one.table in TABLES or one.column.startswith(FILE)


@dataclass(frozen=True, slots=True)
class _Stored:
    """A version with its row."""

    row: bytes
    version: FileVersion
    page: str = ""  # that has the file

    @property
    def where(self) -> bytes:
        """The words by which a person finds the version."""
        return f"{self.page}: {self.version.name}, version {self.version.number}".encode()


class FileCheck:
    """A check of all files.  Every method may raise StoreUnavailable."""

    def __init__(
        self,
        rows: Rows,
        contents: Contents,
        sweep: Sweep,
        now_ms: int,
        make_pictures: Callable[[str], None],
        *,
        with_contents: bool,
    ) -> None:
        """Take ``make_pictures``, which makes the smaller versions of a content."""
        self._rows = rows
        self._contents = contents
        self._sweep = sweep
        self._now = now_ms
        self._make_pictures = make_pictures
        self._with_contents = with_contents
        self._chunks: Counter[bytes] = Counter()  # at each place
        self._stale = set[bytes]()  # rows of ``files``
        self._checked = set[str]()  # contents
        self._pictures = set[str]()  # contents that should have smaller versions

    def differences(self) -> Iterator[Difference]:
        """Yield all faults.  O(pages, versions and chunks), of the chunks only the keys."""
        for row in self._keys(CHUNKS):
            self._chunks[parse_chunk_row(row)[0]] += 1
        owned = set[bytes]()
        for table in (schema.PAGES, DELETED):
            yield from self._of_pages(table, owned)
        yield from self._of_no_page(owned)
        yield from self._of_references()
        for sha256 in self._sweep.unused():
            yield Difference(Kind.STALE, BLOBS, sha256.encode(), b"", None, b"no version has it", self._now)
        for upload in self._sweep.old_uploads():
            yield Difference(Kind.STALE, UPLOADS, upload.place, b"", None, upload.state.encode(), upload.time_ms)
        yield from self._of_waiting()
        yield from self._of_places()
        for together in _in_steps(sorted(self._pictures)):
            yield from self._of_pictures(together)

    def _keys(self, table: bytes) -> Iterator[bytes]:
        start = b""
        while keys := self._rows.row_keys(table, start, _LAST, limit=5 * _STEP):
            yield from keys
            start = keys[-1] + b"\0"

    def _is_old(self, time_ms: int) -> bool:
        return self._now - time_ms > GRACE_MS

    # --- pages and their versions ------------------------------------------------------------------

    def _of_pages(self, table: bytes, owned: set[bytes]) -> Iterator[Difference]:
        for key, cells in self._rows.scan(table, columns=[FILE[:-1], schema.NAME, schema.VERSIONCOUNT]):
            files = {column: cell for column, cell in cells.items() if column.startswith(FILE)}
            if not files:
                continue
            if not is_there(cells):
                yield from (Difference(Kind.STALE, table, key, c, None, v, self._now) for c, v in files.items())
                continue
            history = head_of(cells).place(key)
            owned.add(history)
            yield from self._of_page(table, key, history, files, text_in(cells, schema.NAME))

    def _of_page(self, table: bytes, key: bytes, history: bytes, files: Cells, page: str) -> Iterator[Difference]:
        left = dict(files)
        for name, group in groupby(self._versions(history, page), key=lambda one: one.version.name):
            stored = list(group)
            column = FILE + name.encode()
            cell = left.pop(column, None)
            yield from self._of_file(table, key, column, cell, stored)
        for column, cell in left.items():
            yield Difference(Kind.LOST, FILES, history + b"\0" + column[len(FILE) :], b"", None, cell, self._now)

    def _versions(self, history: bytes, page: str) -> Iterator[_Stored]:
        start, stop = versions_of_page(history)
        for row, cells in self._rows.scan(FILES, start):
            if row >= stop:
                return
            yield _Stored(row, FileVersion(**fields_in(FileVersion, cells)), page)

    def _of_file(
        self, table: bytes, key: bytes, column: bytes, cell: bytes | None, stored: Sequence[_Stored]
    ) -> Iterator[Difference]:
        """Compare a file's cell and chain with its rows, the newest first."""
        by_token = {one.version.token: one for one in stored}
        try:
            token = parse_current_file(cell).token if cell is not None else ""
        except ValueError:
            token = stored[0].version.token
        first, chain = by_token.get(token), list[_Stored]()
        while token and (one := by_token.pop(token, None)) is not None:
            chain.append(one)
            token = one.version.previous
        if token:
            where = chain[-1].row if chain else stored[0].row
            yield Difference(Kind.LOST, FILES, where, b"", None, f"the version {token}".encode(), self._now)
        if first is not None and (expected := CurrentFile.of(first.version).pack()) != cell:
            yield Difference(Kind.DIFFERENT, table, key, column, expected, cell, self._now)
        for one in chain:
            if one.version.leaving_sha256:
                yield Difference(Kind.STALE, FILES, one.row, ERASED, None, one.version.kept.encode(), self._now)
        yield from self._staged(by_token.values())
        for together in _in_steps(one for one in chain if one.version.sha256):
            yield from self._of_contents(together)

    def _staged(self, found: Collection[_Stored]) -> Iterator[Difference]:
        for one in found:
            if self._is_old(one.version.time_ms):
                self._stale.add(one.row)
                yield Difference(Kind.STALE, FILES, one.row, b"", None, one.version.name.encode(), one.version.time_ms)

    def _of_no_page(self, owned: Collection[bytes]) -> Iterator[Difference]:
        for row, cells in self._rows.scan(FILES):
            if row[: schema.KEY_BYTES] not in owned:
                yield from self._staged([_Stored(row, FileVersion(**fields_in(FileVersion, cells)))])

    # --- contents ----------------------------------------------------------------------------------

    def _of_contents(self, versions: Sequence[_Stored]) -> Iterator[Difference]:
        digests = {one.version.sha256.encode() for one in versions}
        references, blobs = self._rows.rows(BLOB_REFS, digests), self._rows.rows(BLOBS, digests, [BLOB_STATE])
        for one in versions:
            row = one.version.sha256.encode()
            column = reference_column(one.row)
            if column not in references.get(row, {}):
                yield Difference(Kind.MISSING, BLOB_REFS, row, column, b"a time", None, self._now)
            state = _state_in(blobs.get(row, {}))
            if state is None or state.life == "gone" or state.size_bytes != one.version.size_bytes:
                yield Difference(Kind.LOST, BLOBS, row, one.where, None, one.row, self._now)
            elif one.version.sha256 not in self._checked:
                self._checked.add(one.version.sha256)
                if widths_of(one.version):
                    self._pictures.add(one.version.sha256)
                yield from self._of_chunks(one, state)

    def _of_chunks(self, stored: _Stored, state: BlobState) -> Iterator[Difference]:
        sha256 = stored.version.sha256
        wanted = chunk_count(state.size_bytes)
        there = self._chunks[state.place]
        if there < wanted:  # it may have been written since the chunks were counted
            end = chunks_end(state.place)
            there = len(self._rows.row_keys(CHUNKS, chunk_row(state.place, 0), end, limit=wanted)) if wanted else 0
        is_whole = there >= wanted
        if is_whole and self._with_contents:
            digest = hashlib.sha256()
            for piece in self._contents.read_place(state.place, state.size_bytes):
                digest.update(piece)
            is_whole = digest.hexdigest() == sha256
        if not is_whole:
            yield Difference(Kind.LOST, CHUNKS, state.place, stored.where, None, sha256.encode(), self._now)

    def _of_references(self) -> Iterator[Difference]:
        for sha256, cells in self._rows.scan(BLOB_REFS):
            old = [
                column
                for column, time in cells.items()
                if not time.isdigit() or self._is_old(int(time)) or column[len(REFERENCE) :] in self._stale
            ]
            for columns in _in_steps(old):
                named = [column[len(REFERENCE) :] for column in columns]
                there = self._rows.rows(FILES, named, [b"v:number"]).keys() - self._stale
                for column in columns:
                    if column[len(REFERENCE) :] not in there:
                        yield Difference(Kind.STALE, BLOB_REFS, sha256, column, None, cells[column], self._now)

    def _of_waiting(self) -> Iterator[Difference]:
        for row, cells in self._rows.scan(UPLOADS):
            if is_waiting_row(row):
                there = self._rows.rows(UPLOADS, places_in(cells), [UPLOAD_TIME])
                for place in places_in(cells):
                    if place not in there:
                        column = waiting_column(place)
                        yield Difference(Kind.STALE, UPLOADS, row, column, None, cells[column], self._now)
                for save in () if there else saves_in(cells):
                    if self._is_old(save.time_ms):
                        yield Difference(Kind.STALE, UPLOADS, row, save.column, None, cells[save.column], self._now)

    def _of_places(self) -> Iterator[Difference]:
        left, live = set(self._chunks), set[bytes]()
        for row, cells in self._rows.scan(BLOBS, columns=[BLOB_STATE]):
            state = _state_in(cells)
            if state is not None and state.life != "gone":
                left.discard(state.place)
                live.add(row)
        left.difference_update(self._keys(UPLOADS))
        for place in sorted(left):
            found = b"%d chunks" % self._chunks[place]
            yield Difference(Kind.STALE, CHUNKS, place, b"", None, found, self._now)
        for row in self._keys(THUMBS):
            if row.partition(b":")[0] not in live:
                yield Difference(Kind.STALE, THUMBS, row, b"", None, b"no content", self._now)

    def _of_pictures(self, digests: Sequence[str]) -> Iterator[Difference]:
        wanted = [row for sha256 in digests for row in all_rows(sha256)]
        there = {row.partition(b":")[0] for row in self._rows.rows(THUMBS, wanted, [TYPE, NONE])}
        for sha256 in digests:
            if sha256.encode() not in there:
                yield Difference(Kind.MISSING, THUMBS, sha256.encode(), b"", b"smaller versions", None, self._now)

    # --- repair ------------------------------------------------------------------------------------

    def repair(self, found: Collection[Difference]) -> None:
        """Repair what can be.  A version is removed only if a further check, of all pages, calls it stale again."""
        stale = _stale_versions(found)
        if stale:
            again = FileCheck(
                self._rows, self._contents, self._sweep, self._now, self._make_pictures, with_contents=False
            )
            stale &= _stale_versions(again.differences())
        for one in found:
            if one.column.startswith(FILE) and one.table not in TABLES:
                self._repair_page(one)
            elif one.kind is Kind.MISSING and one.table == THUMBS:
                self._make_pictures(one.row.decode())
            elif one.kind is Kind.MISSING:
                self._contents.refer(one.row.decode(), one.column[len(REFERENCE) :])
        for row in stale:
            self._rows.delete(FILES, row)
        for one in found:
            if one.kind is Kind.STALE:
                self._remove_stale(one)

    def _repair_page(self, one: Difference) -> None:
        if one.kind is Kind.STALE:
            self._rows.delete(one.table, one.row, [one.column])
        elif one.expected is not None:
            self._rows.change(one.table, one.row, {one.column: one.found}, {one.column: one.expected})

    def _remove_stale(self, one: Difference) -> None:
        if one.column == ERASED:
            finish_erasure(self._rows, self._sweep, one.row)
        elif one.table == BLOB_REFS:
            version = one.column[len(REFERENCE) :]
            if not self._rows.row(FILES, version, [b"v:number"]):
                self._contents.unrefer(one.row.decode(), version)
        elif one.table == BLOBS:
            self._sweep.sweep_content(one.row.decode())
        elif one.table == UPLOADS and one.column:
            self._rows.delete(UPLOADS, one.row, [one.column])
        elif one.table == UPLOADS:
            for upload in self._sweep.old_uploads():
                if upload.place == one.row:
                    self._sweep.sweep_upload(upload)
        elif one.table == THUMBS:
            self._rows.delete(THUMBS, one.row)
        elif one.table == CHUNKS and not self._rows.row(UPLOADS, one.row):
            self._contents.erase_place(one.row)


def _in_steps(found: Iterable[T]) -> Iterator[list[T]]:
    left = iter(found)
    while step := list(islice(left, _STEP)):
        yield step


def _state_in(cells: Mapping[bytes, bytes]) -> BlobState | None:
    try:
        return parse_blob_state(cells.get(BLOB_STATE, b""))
    except ValueError:
        return None
