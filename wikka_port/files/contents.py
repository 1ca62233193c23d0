"""The contents of files in the store: blobs, their references, and the chunks of places (``file_rows``).

Steps 4, 5 and 8 of an upload are ``refer``, ``claim_blob`` and ``erase_place``.  A reader has one chunk in memory.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from wikka_port.accounts.rows import Rows
from wikka_port.files.chunks import chunk_count, chunk_row, chunks_end, slices
from wikka_port.files.file_rows import (
    BLOB_REFS,
    BLOB_STATE,
    BLOBS,
    CHUNK,
    CHUNKS,
    SURPLUS,
    UPLOAD_STATE,
    UPLOAD_STORED,
    UPLOAD_TIME,
    UPLOAD_WRITER,
    UPLOADS,
    BlobState,
    Upload,
    parse_blob_state,
    reference_column,
    state_after_upload,
    waiting_column,
    waiting_row,
)
from wikka_port.files.refusals import FilesBusy, MissingContent, UploadGone
from wikka_port.names import page_key
from wikka_port.schema import cells_of

ATTEMPTS: Final = 6
_ERASED_STEP: Final = 200  # chunks that are deleted in one call


class Contents:
    """Thread-safe.  Every method may raise StoreUnavailable."""

    def __init__(self, rows: Rows, clock_ms: Callable[[], int]) -> None:
        self._rows = rows
        self._clock = clock_ms

    # --- reading -----------------------------------------------------------------------------------

    def blob_state(self, sha256: str) -> BlobState | None:
        """Return the state of a content; None if there is none, or its cell is damaged."""
        return self._state_and_cell(sha256)[0]

    def _state_and_cell(self, sha256: str) -> tuple[BlobState | None, bytes | None]:
        cell = self._rows.row(BLOBS, sha256.encode(), [BLOB_STATE]).get(BLOB_STATE)
        try:
            return (None if cell is None else parse_blob_state(cell)), cell
        except ValueError:
            return None, cell

    def read_content(self, sha256: str, start: int, stop: int) -> Iterator[bytes]:
        """Return the bytes ``start`` to ``stop``, a chunk at a time; the first one is read before this returns.

        Raises MissingContent, also from the iterator.
        """
        pieces = self._pieces(sha256, start, stop)
        return chain([next(pieces, b"")], pieces)

    def has_chunks(self, sha256: str, size_bytes: int) -> bool:
        """Return whether a content has all its chunks; of one chunk its state alone is read.

        For readers that cannot break off.  The store reads the chunks for it, and sends their keys.
        """
        state, wanted = self.blob_state(sha256), chunk_count(size_bytes)
        if state is None or state.life == "gone":
            return False
        if wanted < 2:
            return True
        end = chunks_end(state.place)
        return len(self._rows.row_keys(CHUNKS, chunk_row(state.place, 0), end, limit=wanted)) == wanted

    def _pieces(self, sha256: str, start: int, stop: int) -> Iterator[bytes]:
        place = self._place_of(sha256, b"")
        for one in slices(start, stop):
            piece = self._chunk(place, one.number)[one.start : one.stop]
            if len(piece) < one.stop - one.start:  # an upload has replaced a damaged content meanwhile
                place = self._place_of(sha256, place)
                piece = self._chunk(place, one.number)[one.start : one.stop]
            if len(piece) < one.stop - one.start:
                raise MissingContent(sha256)
            yield piece

    def _place_of(self, sha256: str, before: bytes) -> bytes:
        state = self.blob_state(sha256)
        if state is None or state.life == "gone" or state.place == before:
            raise MissingContent(sha256)
        return state.place

    def _chunk(self, place: bytes, number: int) -> bytes:
        return self._rows.row(CHUNKS, chunk_row(place, number), [CHUNK]).get(CHUNK, b"")

    def read_chunk(self, place: bytes, number: int, size_bytes: int) -> bytes:
        """Return the first ``size_bytes`` of a chunk.  Raises UploadGone if it has fewer."""
        found = self._chunk(place, number)[:size_bytes]
        if len(found) < size_bytes:
            raise UploadGone
        return found

    def read_upload(self, place: bytes, start: int, stop: int) -> Iterator[bytes]:
        """Return the bytes ``start`` to ``stop`` of a whole upload, as ``read_content`` does.  Raises UploadGone."""
        pieces = (self.read_chunk(place, one.number, one.stop)[one.start :] for one in slices(start, stop))
        return chain([next(pieces, b"")], pieces)

    def read_place(self, place: bytes, size_bytes: int) -> Iterator[bytes]:
        """Yield the first ``size_bytes`` at a place, a chunk at a time; ends early if chunks are missing or short."""
        for one in slices(0, size_bytes):
            piece = self._chunk(place, one.number)[: one.stop]
            if piece:
                yield piece
            if len(piece) < one.stop:
                return

    # --- writing -----------------------------------------------------------------------------------

    def put_chunk(self, place: bytes, number: int, chunk: bytes) -> None:
        self._rows.put(CHUNKS, chunk_row(place, number), {CHUNK: chunk})

    def put_upload(self, upload: Upload) -> None:
        self._rows.put(UPLOADS, upload.place, cells_of(upload))

    def note_progress(self, upload: Upload) -> None:
        cells = {UPLOAD_STORED: b"%d" % upload.stored_bytes, UPLOAD_TIME: b"%d" % upload.time_ms}
        self._rows.put(UPLOADS, upload.place, cells)

    def erase_place(self, place: bytes) -> None:
        """Delete the chunks of a place, then its row of ``uploads``; a second call changes nothing."""
        while found := self._rows.row_keys(CHUNKS, place, chunks_end(place), limit=_ERASED_STEP):
            self._rows.delete_rows(CHUNKS, found)
        self._rows.delete(UPLOADS, place)

    def end_upload(self, upload: Upload) -> None:
        """Run step 8: the chunks become surplus unless the blob has their place."""
        self._forget_waiting(upload)
        state = self.blob_state(upload.sha256) if upload.sha256 else None
        if state is not None and state.place == upload.place and state.life != "gone":
            self._rows.delete(UPLOADS, upload.place)
        else:
            self.erase_place(upload.place)

    def _forget_waiting(self, upload: Upload) -> None:
        if upload.page and not upload.history:  # it may wait for its page
            column = waiting_column(upload.place)
            self._rows.delete(UPLOADS, waiting_row(page_key(upload.page), upload.owner), [column])

    def discard_upload(self, upload: Upload) -> None:
        """End an upload that other requests may write or commit at this moment.

        The commit of one that has it goes on, so its chunks are left to the sweep.  Raises UploadGone, with nothing
        written, if the upload has ended, or if another request has taken it since it was read.
        """
        before = {UPLOAD_WRITER: upload.writer.encode(), UPLOAD_STATE: upload.state.encode()}
        writer, now_ms = secrets.token_hex(4).encode(), self._clock()
        after = {UPLOAD_WRITER: writer, UPLOAD_STATE: SURPLUS.encode(), UPLOAD_TIME: b"%d" % now_ms}
        if not self._rows.change(UPLOADS, upload.place, before, after):
            raise UploadGone
        if upload.writer:
            self._forget_waiting(upload)
        else:
            self.end_upload(upload)

    def refer(self, sha256: str, version_row: bytes) -> None:
        self._rows.put(BLOB_REFS, sha256.encode(), {reference_column(version_row): b"%d" % self._clock()})

    def unrefer(self, sha256: str, version_row: bytes) -> None:
        self._rows.delete(BLOB_REFS, sha256.encode(), [reference_column(version_row)])

    def claim_blob(self, sha256: str, size_bytes: int, place: bytes) -> BlobState:
        """Run step 5: make the content live; ``place`` has the chunks of an upload, b"" without one.

        Raises MissingContent if there is no content and no upload either.
        """
        for _attempt in range(ATTEMPTS):
            before, cell = self._state_and_cell(sha256)
            is_damaged = False
            if not place and (before is None or before.life == "gone"):
                raise MissingContent(sha256)
            if place and before is not None and before.life != "gone" and before.place != place:
                is_damaged = not self._is_whole(sha256, before)
            if is_damaged and before is not None:
                self.put_surplus(sha256, before)
            after = state_after_upload(before, place or _place(before), size_bytes, is_damaged=is_damaged)
            if after == before or self._rows.change(
                BLOBS, sha256.encode(), {BLOB_STATE: cell}, {BLOB_STATE: after.pack()}
            ):
                return after
        raise FilesBusy(sha256)

    def swap_state(self, sha256: str, before: BlobState, after: BlobState) -> bool:
        """Change the state of a content; return False if it is not ``before``."""
        return self._rows.change(BLOBS, sha256.encode(), {BLOB_STATE: before.pack()}, {BLOB_STATE: after.pack()})

    def put_surplus(self, sha256: str, state: BlobState) -> None:
        """List a place for the sweep, unless a content has it then."""
        time_ms = self._clock()
        self.put_upload(Upload(state.place, SURPLUS, "", "", "", "", 0, state.size_bytes, time_ms, sha256))

    def _is_whole(self, sha256: str, state: BlobState) -> bool:
        """Return whether the stored content has its digest.  Reads all of it."""
        digest, size_bytes = hashlib.sha256(), 0
        for piece in self.read_place(state.place, state.size_bytes):
            digest.update(piece)
            size_bytes += len(piece)
        return size_bytes == state.size_bytes and digest.hexdigest() == sha256


def _place(state: BlobState | None) -> bytes:
    return b"" if state is None else state.place
