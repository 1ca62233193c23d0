"""Files of a page that is not saved yet: whole uploads that wait for its first save, each its owner's alone.

    upload = waiting.keep(upload, note="", alt="the harbour")     instead of a commit, which needs the page
    waiting.of("New page", owners)                                what an owner has for a page
    waiting.note_save("New page", owners, head, network)          before the page is saved
    waiting.take(upload)                                          before a commit, once the page is saved

Only the owner finds them.  A waiting upload ends by its commit, by its owner's hand, or after WAITING_MS by the
sweep; so a page that is never saved leaves nothing.  ``file_rows`` has the rows and their order.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from wikka_port.accounts.rows import Rows
from wikka_port.files.chunks import is_place
from wikka_port.files.contents import Contents
from wikka_port.files.file_rows import (
    COMMIT_MS,
    NOT_SAVED,
    SAVES_MAX,
    UPLOAD_FIELDS,
    UPLOAD_TIME,
    UPLOAD_WRITER,
    UPLOADS,
    WAITING,
    WAITING_MS,
    CurrentFile,
    NotedSave,
    Upload,
    is_waiting_row,
    noted_save,
    parse_found,
    parse_waiting_row,
    places_in,
    saves_in,
    waiting_column,
    waiting_row,
    waiting_rows_begin,
)
from wikka_port.files.refusals import UploadGone
from wikka_port.names import page_key
from wikka_port.schema import Head, fields_in
from wikka_port.store import NotPrepared


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """The files of one owner that wait for one page, and the saves of the page by this owner, the newest first."""

    row: bytes
    page: bytes  # the page's key
    owner: str
    places: tuple[bytes, ...]
    saves: tuple[NotedSave, ...]


class WaitingFiles:
    """Thread-safe.  Every method may raise StoreUnavailable and InvalidName."""

    def __init__(
        self, rows: Rows, contents: Contents, clock_ms: Callable[[], int], on_step_done: Callable[[str], None]
    ) -> None:
        """Call ``on_step_done`` after each step, for tests that crash there."""
        self._rows = rows
        self._contents = contents
        self._clock = clock_ms
        self._on_step_done = on_step_done
        # Set if files may wait for a page that is saved: after a save that was noted, and when a process begins, which
        # knows nothing of those before it.
        self.unfinished = threading.Event()
        self.unfinished.set()

    def keep(self, upload: Upload, *, note: str, alt: str) -> Upload:
        """Let a whole upload wait for the first save of its page."""
        assert upload.state == "whole", "settled before"
        fields, now_ms = json.dumps({"note": note, "alt": alt}), self._clock()
        held = replace(upload, state=WAITING, writer="", time_ms=now_ms, fields=fields)
        row = waiting_row(page_key(held.page), held.owner)
        self._rows.put(UPLOADS, row, {waiting_column(held.place): b"%d" % now_ms})
        self._on_step_done("name")
        self._contents.put_upload(held)
        self._on_step_done("wait")
        return held

    def of(self, page: str, owners: Collection[str]) -> list[Upload]:
        """Return the uploads of ``owners`` that wait for a page, the oldest first; one call if there are none."""
        wanted = [waiting_row(page_key(page), owner) for owner in owners]
        places = [place for cells in self._rows.rows(UPLOADS, wanted).values() for place in places_in(cells)]
        return self.at(places, owners)

    def at(self, places: Collection[bytes], owners: Collection[str]) -> list[Upload]:
        """Return the uploads of ``owners`` at the places that wait, the oldest first."""
        found = [
            Upload(place, **fields_in(Upload, cells))
            for place, cells in self._rows.rows(UPLOADS, places).items()
            if UPLOAD_TIME in cells
        ]
        own = [one for one in found if one.state == WAITING and one.time_ms and one.owner in owners]
        return sorted(own, key=lambda one: (one.time_ms, one.place))

    # --- the save of the page ----------------------------------------------------------------------

    def note_save(self, page: str, owners: Collection[str], head: Head, network: str) -> bool:
        """Note that those ``owners`` whose files wait for the page save this revision of it, before they do.

        Returns False if nothing waits, which costs one call of the store.  A folder that is not prepared for files has
        none.
        """
        key = page_key(page)
        try:
            rows = self._rows.rows(UPLOADS, [waiting_row(key, owner) for owner in owners])
        except NotPrepared:
            return False
        waiting = {row: cells for row, cells in rows.items() if places_in(cells)}
        for row, cells in waiting.items():
            noted = noted_save(head, key, self._clock(), network)
            self._rows.put(UPLOADS, row, noted)
            self._on_step_done("save noted")
            displaced = [one.column for one in saves_in(cells)[SAVES_MAX - 1 :] if one.column not in noted]
            if displaced:
                self._rows.delete(UPLOADS, row, displaced)
        return bool(waiting)

    def forget_saves(self, page: str, owners: Collection[str]) -> None:
        """Delete the noted saves of a page for which nothing of ``owners`` waits any more."""
        rows = self._rows.rows(UPLOADS, [waiting_row(page_key(page), owner) for owner in owners])
        for row, cells in rows.items():
            noted = [one.column for one in saves_in(cells)]
            if noted and not places_in(cells):
                self._rows.delete(UPLOADS, row, noted)

    def rows(self) -> Iterator[WaitingRow]:
        """Yield what waits, by page and owner.  O(what waits)."""
        for row, cells in self._rows.scan(UPLOADS, waiting_rows_begin()):
            if not is_waiting_row(row):
                return
            page, owner = parse_waiting_row(row)
            yield WaitingRow(row, page, owner, tuple(places_in(cells)), tuple(saves_in(cells)))

    def forget_old_saves(self, found: WaitingRow) -> None:
        """Delete the noted saves of a row that prove nothing any more, since nothing waits, or they are too old."""
        age_ms = WAITING_MS if found.places else COMMIT_MS
        old = [one.column for one in found.saves if self._clock() - one.time_ms > age_ms]
        if old:
            self._rows.delete(UPLOADS, found.row, old)

    # --- one upload --------------------------------------------------------------------------------

    def describe(self, upload: Upload, alt: str) -> None:
        """Give a waiting picture another description.  Raises UploadGone."""
        after = json.dumps({**fields_of(upload), "alt": alt}).encode()
        before = {UPLOAD_FIELDS: upload.fields.encode()}
        if not self._rows.change(UPLOADS, upload.place, before, {UPLOAD_FIELDS: after}):
            raise UploadGone

    def take(self, upload: Upload) -> Upload:
        """Give a waiting upload a new time, so that no sweep takes it now, and return it whole.

        All callers but one raise UploadGone, and that one, too, if the upload has ended.  The writer is put first: it
        is unique, and ``Rows.change`` takes an equal first cell for its own earlier attempt.  The time is compared in a
        second step on a plain HBase, which compares one cell.
        """
        now_ms, writer = self._clock(), secrets.token_hex(4)
        before = {UPLOAD_WRITER: upload.writer.encode(), UPLOAD_TIME: b"%d" % upload.time_ms}
        after = {UPLOAD_WRITER: writer.encode(), UPLOAD_TIME: b"%d" % now_ms}
        for step in [[*before]] if self._rows.is_atomic else [[one] for one in before]:
            expected, puts = ({one: cells[one] for one in step} for cells in (before, after))
            if not self._rows.change(UPLOADS, upload.place, expected, puts):
                self._clear(upload.place)
                raise UploadGone
        return replace(upload, state="whole", writer=writer, time_ms=now_ms)

    def _clear(self, place: bytes) -> None:
        """Remove the writer from the row of an upload that had ended before it was put (plain HBase)."""
        if not self._rows.is_atomic and not self._rows.row(UPLOADS, place, [UPLOAD_TIME]):
            self._rows.delete(UPLOADS, place)

    def release_taken(self, upload: Upload, taken: Upload) -> None:
        """Let an upload that was ``taken``, and not committed, wait on as before, until it would have ended."""
        before, after = {UPLOAD_TIME: b"%d" % taken.time_ms}, {UPLOAD_TIME: b"%d" % upload.time_ms}
        self._rows.change(UPLOADS, upload.place, before, after)
        writer = taken.writer.encode()
        self._rows.change(UPLOADS, upload.place, {UPLOAD_WRITER: writer}, {UPLOAD_WRITER: b""})

    def forget(self, owner: str) -> int:
        """Throw away all that waits of ``owner``; return the number.  O(all uploads under way).

        A save that makes a file of one at this moment goes on.
        """
        rows = ((row, cells) for row, cells in self._rows.scan(UPLOADS) if is_place(row) and UPLOAD_TIME in cells)
        found = [Upload(row, **fields_in(Upload, cells)) for row, cells in rows]
        own = [one for one in found if one.owner == owner and one.state == WAITING]
        for one in own:
            with suppress(UploadGone):
                self._contents.discard_upload(one)
        return len(own)

    def content(self, file: CurrentFile, start: int, stop: int) -> Iterator[bytes]:
        """Return bytes of a file that ``current_of`` has made.  Raises UploadGone."""
        return self._contents.read_upload(file.token.encode(), start, stop)


def fields_of(upload: Upload) -> dict[str, str]:
    """Return what the form said of a waiting upload."""
    found: dict[str, str] = json.loads(upload.fields or "{}")
    return found


def current_of(upload: Upload) -> CurrentFile:
    """Return a waiting upload as a file; its token is the upload's place."""
    found = parse_found(upload.found)
    return CurrentFile(
        NOT_SAVED,
        upload.place.decode(),
        upload.sha256,
        upload.stored_bytes,
        found.media_type,
        found.width,
        found.height,
        fields_of(upload).get("alt", ""),
    )
