"""Files of a page that is not saved yet: whole uploads that wait for its first save, each its owner's alone.

    upload = waiting.keep(upload, note="", alt="the harbour")     instead of a commit, which needs the page
    waiting.of("New page", owners)                                what an owner has for a page
    waiting.take(upload)                                          before a commit, once the page is saved

Only the owner finds them.  A waiting upload ends by its commit, by its owner's hand, or after WAITING_MS by the
sweep; so a page that is never saved leaves nothing.  ``file_rows`` has the rows and their order.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import replace

from wikka_port.accounts.rows import Rows
from wikka_port.files.chunks import is_place
from wikka_port.files.contents import Contents
from wikka_port.files.file_rows import (
    NOT_SAVED,
    UPLOAD_FIELDS,
    UPLOAD_TIME,
    UPLOAD_WRITER,
    UPLOADS,
    WAITING,
    CurrentFile,
    Upload,
    parse_found,
    places_in,
    waiting_column,
    waiting_row,
)
from wikka_port.files.refusals import UploadGone
from wikka_port.names import page_key
from wikka_port.schema import fields_in


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
        found = [
            Upload(place, **fields_in(Upload, cells))
            for place, cells in self._rows.rows(UPLOADS, places).items()
            if UPLOAD_TIME in cells
        ]
        own = [one for one in found if one.state == WAITING and one.time_ms and one.owner in owners]
        return sorted(own, key=lambda one: (one.time_ms, one.place))

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
