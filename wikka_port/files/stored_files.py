"""Files of pages in the store: uploads, versions, and the change of a page's row that decides (``file_rows``).

    upload = files.begin(page, "Photo.jpg", owner, allow=allow)
    writer = files.writer(upload); writer.write_piece(piece) for each piece; upload = writer.finish_part()
    upload = files.settle(upload, keep_metadata=False)
    version = files.commit(upload, By("Ada", "account", "a note"), alt="", replaces="", allow=allow)

``allow`` is called with the name of the page and the rights in its row: when an upload begins, and again in the step
that commits.  On Columnar the commit requires that rights and text are as they were then; on a plain HBase the rights
are read just before, and the page's row is read again afterwards, since a move may have taken the page along.

An upload that is led to a page which redirects belongs to the page that the redirect names.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from wikka_port import schema
from wikka_port.accounts.rows import Rows
from wikka_port.config import FileConfig
from wikka_port.files.chunks import CHUNK_BYTES, CHUNKS_MAX, is_place
from wikka_port.files.committing import Allow, Committing, FilledPage, OnFilePut, PageRows
from wikka_port.files.content_types import NotAccepted
from wikka_port.files.contents import Contents
from wikka_port.files.file_names import clean_file_name
from wikka_port.files.file_rows import (
    COMMIT_MS,
    FILE,
    GRACE_MS,
    UPLOAD_STATE,
    UPLOAD_TIME,
    UPLOAD_WRITER,
    UPLOADS,
    CurrentFile,
    FileVersion,
    Upload,
    files_in,
    parse_found,
)
from wikka_port.files.refusals import (
    FileConflict,
    NoSavedPage,
    NoSuchFile,
    TooLarge,
    TooManyFiles,
    UploadGone,
)
from wikka_port.files.sweeping import Sweep
from wikka_port.files.thumbnails import FAMILY as THUMB_FAMILY
from wikka_port.files.thumbnails import THUMBS, Thumbnail, thumbnail_in, thumbnail_row
from wikka_port.files.uploading import UploadWriter, settled
from wikka_port.files.waiting import WaitingFiles
from wikka_port.moving.mover import By
from wikka_port.names import normalise
from wikka_port.page_rows import is_there, text_in
from wikka_port.schema import fields_in
from wikka_port.texts import _

VERSIONS_MAX: Final = 1_000  # of one file that are listed at once
WRITER_IDLE_S: Final = 90  # after such a silence of a request, the next one may continue its upload


class StoredFiles:
    """The files of a wiki.  Thread-safe.  Every method may raise StoreUnavailable and InvalidName."""

    def __init__(
        self,
        rows: Rows,
        pages: PageRows,
        config: FileConfig,
        clock_ms: Callable[[], int],
        on_step_done: Callable[[str], None] = lambda step: None,
        on_committed: Callable[[FileVersion], None] = lambda version: None,
        on_file_put: OnFilePut = lambda place, name: None,
    ) -> None:
        """Call ``on_step_done`` after each step, for tests that crash there, and ``on_committed`` after an upload.

        ``on_file_put`` is called after each change of a file, with the row of the page.
        """
        self.contents = Contents(rows, clock_ms)
        self.config = config
        self.on_step_done = on_step_done
        self._rows = rows
        self.sweep = Sweep(rows, self.contents, clock_ms, lambda step: self.on_step_done(step))
        self.committing = Committing(rows, pages, self.contents, lambda step: self.on_step_done(step), on_file_put)
        self._clock = clock_ms
        self._on_committed = on_committed
        self.waiting = WaitingFiles(rows, self.contents, clock_ms, lambda step: self.on_step_done(step))

    def set_config(self, config: FileConfig) -> None:
        """Change the bounds, for a command that has its own.  Call before the first upload."""
        self.config = config

    # --- reading -----------------------------------------------------------------------------------

    def files_of(self, page: str) -> dict[str, CurrentFile]:
        """Return the files of a page by name, with those that were removed.  Raises NoSavedPage."""
        return dict(self.committing.find_page(normalise(page), b"").files)

    def all_files(self) -> Iterator[tuple[str, dict[str, CurrentFile]]]:
        """Yield each page that has files, with its files by name.  O(all pages), without their texts."""
        for _row, cells in self._rows.scan(schema.PAGES, columns=[FILE[:-1], schema.NAME, schema.VERSIONCOUNT]):
            if is_there(cells) and (files := files_in(cells)):
                yield text_in(cells, schema.NAME), files

    def versions(
        self, page: str, name: str, *, below: int | None = None, limit: int | None = VERSIONS_MAX
    ) -> list[FileVersion]:
        """Return versions of a file, the newest first, with ``below`` those of a smaller number; limit None: all.

        Raises NoSuchFile and NoSavedPage.
        """
        found = (one for one in self.committing.chain(page, name) if below is None or one.number < below)
        return list(islice(found, limit))

    def numbered(self, page: str, name: str, number: int) -> FileVersion | None:
        """Return the version of a number, or None.  Raises NoSuchFile and NoSavedPage.  O(versions that are newer)."""
        found = next((one for one in self.committing.chain(page, name) if one.number <= number), None)
        return found if found is not None and found.number == number else None

    def version(self, page: str, name: str, token: str) -> FileVersion:
        """Return one version of a file.  Raises NoSuchFile and NoSavedPage."""
        for one in self.committing.chain(page, name):
            if one.token == token:
                return one
        raise NoSuchFile(page, name)

    def content(self, version: FileVersion | CurrentFile, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Return the bytes of a version in pieces of at most a chunk; the first is read before this returns.

        Raises MissingContent, also from the iterator.
        """
        return self.contents.read_content(version.sha256, start, version.size_bytes if stop is None else stop)

    def thumbnail(self, sha256: str, width: int) -> Thumbnail | None:
        """Return a smaller version of a picture, or None if it is not made (yet)."""
        return thumbnail_in(self._rows.row(THUMBS, thumbnail_row(sha256, width), [THUMB_FAMILY]))

    # --- uploads -----------------------------------------------------------------------------------

    def begin(
        self,
        page: str,
        name: str,
        owner: str,
        length_bytes: int = 0,
        *,
        allow: Allow,
        fields: str = "",
        follow: bool = True,
        allow_new: Callable[[str], None] | None = None,
    ) -> Upload:
        """Begin an upload; ``length_bytes`` is 0 if it is not known.

        A page that redirects is replaced by its target, unless not to ``follow``: an import gives it its own files.
        A page that is not saved yet is refused without ``allow_new``, which is called with its name; the upload then
        waits for the page (``waiting``).

        Raises InvalidFileName, TooLarge, TooManyFiles, NoSavedPage and what ``allow`` raises.
        """
        cleaned = clean_file_name(name)
        if length_bytes > self.most_bytes:
            raise TooLarge(self.most_bytes)
        name_of_page, history = normalise(page), b""
        try:
            committing = self.committing
            place = committing.filled_page(name_of_page) if follow else committing.find_page(name_of_page, b"")
        except NoSavedPage:
            if allow_new is None:
                raise
            allow_new(name_of_page)
        else:
            allow(place.name, place.rights)
            self._check_count(place, place.named(cleaned)[1])
            name_of_page, history = place.name, place.history
        upload = Upload(
            place=_new_place(),
            state="open",
            writer="",
            owner=owner,
            page=name_of_page,
            name=cleaned,
            length_bytes=length_bytes,
            stored_bytes=0,
            time_ms=self._clock(),
            fields=fields,
            history=history,
        )
        self.contents.put_upload(upload)
        self.on_step_done("begin")
        return upload

    @property
    def most_bytes(self) -> int:
        return min(self.config.bytes_max, CHUNK_BYTES * CHUNKS_MAX)

    def _check_count(self, place: FilledPage, current: CurrentFile | None) -> None:
        """Raise TooManyFiles if the page cannot have one more file, which ``current`` was before it was removed.

        Removed files are in the page's row, too: there may be as many names again.
        """
        if current is not None and current.is_there:
            return
        there = sum(one.is_there for one in place.files.values())
        names = len(place.files) + (current is None)
        if there >= self.config.per_page or names > 2 * self.config.per_page:
            raise TooManyFiles(place.name, self.config.per_page)

    def upload(self, place: str, owner: str) -> Upload:
        """Return an upload under way, if it is ``owner``'s.  Raises UploadGone."""
        if not is_place(place.encode("utf-8", "replace")):
            raise UploadGone
        row = place.encode()
        cells = self._rows.row(UPLOADS, row)
        found = Upload(row, **fields_in(Upload, cells)) if UPLOAD_TIME in cells else None
        if found is None or found.owner != owner or found.state not in ("open", "whole") or not found.time_ms:
            raise UploadGone
        return found

    def uploads(self, owner: str) -> list[Upload]:
        """Return the uploads of ``owner`` that are not committed.  O(all uploads under way)."""
        found = ((row, cells) for row, cells in self._rows.scan(UPLOADS) if is_place(row))
        read = (Upload(row, **fields_in(Upload, cells)) for row, cells in found)
        return [one for one in read if one.owner == owner and one.state in ("open", "whole") and one.time_ms]

    def take(self, upload: Upload) -> Upload:
        """Take an upload for a further part.  Raises UploadGone if another request writes to it (F4)."""
        if upload.writer and self._clock() - upload.time_ms < WRITER_IDLE_S * 1000:
            raise UploadGone
        writer = secrets.token_hex(4)
        # the state, since a row that has ended has no writer either
        before = {UPLOAD_WRITER: upload.writer.encode(), UPLOAD_STATE: upload.state.encode()}
        if not self._rows.change(UPLOADS, upload.place, before, {UPLOAD_WRITER: writer.encode()}):
            raise UploadGone
        return replace(upload, writer=writer)

    def release_writer(self, upload: Upload) -> None:
        """Let the next part begin at once."""
        self._rows.change(UPLOADS, upload.place, {UPLOAD_WRITER: upload.writer.encode()}, {UPLOAD_WRITER: b""})

    def writer(self, upload: Upload) -> UploadWriter:
        """Return the writer of the next bytes; of an upload that was taken, it checks before each chunk whose it is."""

        def is_ours() -> bool:
            stored = self._rows.row(UPLOADS, upload.place, [UPLOAD_WRITER]).get(UPLOAD_WRITER)
            return stored == upload.writer.encode()

        return UploadWriter(
            self.contents, upload, self.most_bytes, self._clock, is_ours if upload.writer else lambda: True
        )

    def settle(self, upload: Upload, *, keep_metadata: bool = False) -> Upload:
        """Find out what was uploaded, and remove a picture's metadata unless it is to be kept.

        Raises NotAccepted, InvalidFileName, UploadGone; the caller then abandons the upload.
        """
        whole = settled(self.contents, upload, self.config, _new_place, keep_metadata=keep_metadata)
        whole = replace(whole, time_ms=self._clock())
        self.contents.put_upload(whole)
        self.on_step_done("settle")
        if whole.place != upload.place:
            self.contents.erase_place(upload.place)
            self.on_step_done("first place")
        return whole

    def abandon(self, upload: Upload) -> None:
        """Throw an upload away; a second call changes nothing."""
        self.contents.end_upload(upload)

    # --- versions ----------------------------------------------------------------------------------

    def commit(
        self,
        upload: Upload,
        by: By,
        *,
        alt: str = "",
        replaces: str = "",
        time_ms: int | None = None,
        history: bytes = b"",
        allow: Allow,
    ) -> FileVersion:
        """Make a whole upload the newest version of a file of its page, and end it.

        ``replaces`` is the token of the version that it replaces, "" for a new name; a file that was removed does not
        take a name.  An import gives the ``time_ms`` of the version.  ``history`` is that of the page for whose save
        the upload has waited, if the page may have another name by now.

        Raises FileConflict, TooManyFiles, NoSavedPage, NotAccepted, UploadGone, FilesBusy and what ``allow`` raises;
        the upload is then as it was.
        """
        assert upload.state == "whole", "settled before"
        upload = self._kept_alive(upload)
        found, at_ms = parse_found(upload.found), self._clock() if time_ms is None else time_ms

        def make(place: FilledPage) -> FileVersion:
            name, current = _replaced(place, upload.name, replaces)
            self._check_count(place, current)
            if (
                current is not None
                and current.is_there
                and current.media_type != found.media_type
                and name != upload.name
            ):
                said = _("{name} is of another type; add the new file under its own name.", name=name)
                raise NotAccepted(said)
            return replace(
                _following(name, current, by, at_ms),
                sha256=upload.sha256,
                size_bytes=upload.stored_bytes,
                media_type=found.media_type,
                alt=alt,
                width=found.width,
                height=found.height,
                metadata=found.metadata,
            )

        of = upload.history or history
        version = self.committing.commit_version(upload.page, of, make, allow, upload.place)
        self.contents.end_upload(upload)
        self.on_step_done("end")
        self._on_committed(version)
        return version

    def _kept_alive(self, upload: Upload) -> Upload:
        """Give an upload that has waited a new time, so that no sweep takes it now.  Raises UploadGone."""
        now_ms = self._clock()
        if now_ms - upload.time_ms <= COMMIT_MS:
            return upload
        before, after = b"%d" % upload.time_ms, b"%d" % now_ms
        if now_ms - upload.time_ms >= GRACE_MS or not self._rows.change(
            UPLOADS, upload.place, {UPLOAD_TIME: before}, {UPLOAD_TIME: after}
        ):
            raise UploadGone
        return replace(upload, time_ms=now_ms)

    def remove(
        self, page: str, name: str, token: str, by: By, *, time_ms: int | None = None, allow: Allow
    ) -> FileVersion:
        """Remove a file; its versions stay.  An import gives the time.

        Raises FileConflict unless ``token`` is its newest version's.
        """
        return self._changed(page, name, token, by, allow, lambda: None, time_ms)

    def restore(self, page: str, name: str, token: str, old: FileVersion, by: By, *, allow: Allow) -> FileVersion:
        """Make the content of the version ``old`` the newest again.  Raises as ``remove`` does, and MissingContent."""
        return self._changed(page, name, token, by, allow, lambda: old)

    def describe(self, page: str, name: str, token: str, by: By, *, alt: str, allow: Allow) -> FileVersion:
        """Give a file another description.  Raises as ``remove`` does, and NoSuchFile if it was removed."""

        def described() -> FileVersion:
            version = self.version(page, name, token)
            if not version.sha256:
                raise NoSuchFile(page, name)
            return replace(version, alt=alt)

        return self._changed(page, name, token, by, allow, described)

    def _changed(
        self,
        page: str,
        name: str,
        token: str,
        by: By,
        allow: Allow,
        source: Callable[[], FileVersion | None],
        time_ms: int | None = None,
    ) -> FileVersion:
        """Put a version with the content of ``source``, or without one if it returns None."""
        at_ms, page = self._clock() if time_ms is None else time_ms, normalise(page)
        found: list[FileVersion | None] = []

        def make(place: FilledPage) -> FileVersion:
            own, current = place.named(name)
            if current is None and (time_ms is None or token):
                raise NoSuchFile(place.name, name)  # an import has files whose first version was erased
            if current is not None and current.token != token:
                raise FileConflict(own, current)
            if not found:
                found.append(source())
            made, of = _following(own, current, by, at_ms), found[0]
            if of is None:
                return made
            self._check_count(place, current)
            return replace(
                made,
                sha256=of.sha256,
                size_bytes=of.size_bytes,
                media_type=of.media_type,
                alt=of.alt,
                width=of.width,
                height=of.height,
                metadata=of.metadata,
            )

        return self.committing.commit_version(page, b"", make, allow)


def _new_place() -> bytes:
    return secrets.token_hex(8).encode()


def _following(name: str, current: CurrentFile | None, by: By, time_ms: int) -> FileVersion:
    """Return the version after ``current``, without content."""
    number, previous = (0, "") if current is None else (current.number, current.token)
    return FileVersion(name, number + 1, previous, "", 0, "", time_ms, by.name, by.signed, by.reason)


def _replaced(place: FilledPage, name: str, replaces: str) -> tuple[str, CurrentFile | None]:
    """Return the file that an upload of ``name`` continues, by its name.  Raises FileConflict."""
    own, current = place.named(name)
    if replaces:
        found = next(((one, held) for one, held in place.files.items() if held.token == replaces), None)
        if found is None:
            raise FileConflict(own, current)
        return found
    if current is not None and current.is_there:
        raise FileConflict(own, current)
    return own, current
