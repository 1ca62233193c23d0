"""The files of one visitor that wait for the first save of a page, within his rights.

A visitor who may make the page may add files to it before.  The right is checked when an upload begins and when it
begins to wait, and that of the page as it then is once more in the step that makes it the page's file.

An object serves one request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from wikka_port.files.file_rows import (
    NOT_SAVED,
    WAITING_MAX,
    CurrentFile,
    FileVersion,
    Upload,
    lookup_key,
    parse_found,
)
from wikka_port.files.refusals import FileConflict, FileRefused, FilesBusy, NoSuchFile, TooManyFiles, UploadGone
from wikka_port.files.stored_files import StoredFiles
from wikka_port.files.waiting import current_of, fields_of
from wikka_port.moving.mover import By
from wikka_port.rights.access import PageAccess
from wikka_port.rights.judging import NotAllowed
from wikka_port.rights.rules import NO_RIGHTS, PageRights, Privilege
from wikka_port.store import StoreUnavailable


class GuardedWaiting:
    """Methods may raise NotAllowed and StoreUnavailable."""

    def __init__(
        self,
        files: StoredFiles,
        access: PageAccess,
        page: str,
        owners: Collection[str],
        by: Callable[[str], By],
    ) -> None:
        """Take ``owners``, whose uploads they are: the account and the browser of the request; () has none."""
        self.owners = owners
        self._files = files
        self._access = access
        self._page = page
        self._by = by

    def uploads(self) -> list[Upload]:
        return self._files.waiting.of(self._page, self.owners) if self.owners else []

    def current(self) -> dict[str, CurrentFile]:
        """Return what waits, by name, as the files of a page; the newest of each name."""
        newest = {lookup_key(one.name): one for one in self.uploads()}
        return {one.name: current_of(one) for _key, one in sorted(newest.items())}

    def versions(self) -> list[FileVersion]:
        """Return what waits as the versions that it may become."""
        said = [(one, fields_of(one)) for one in self.uploads()]
        return [self._version(one, fields.get("note", ""), fields.get("alt", "")) for one, fields in said]

    def _one(self, name: str, token: str) -> Upload:
        """Return the upload of that name and token.  Raises NoSuchFile, if it has ended, and NotAllowed."""
        self._access.require(self._page, Privilege.WRITE)
        for one in self.uploads():
            if (one.name, one.place.decode()) == (name, token):
                return one
        raise NoSuchFile(self._page, name)

    def check_new(self, page: str, name: str) -> None:
        """Check that the visitor may make the page and let this file wait for it.

        Raises NotAllowed, and TooManyFiles if too many others wait; one of this name would be replaced.
        """
        self._access.require_of(page, NO_RIGHTS, False, Privilege.WRITE)
        if sum(lookup_key(one.name) != lookup_key(name) for one in self.uploads()) >= WAITING_MAX:
            raise TooManyFiles(page, WAITING_MAX)

    def keep(self, upload: Upload, *, note: str, alt: str, replaces: str) -> FileVersion:
        """Let an upload wait; ``replaces`` is the token of the newest one of its name.  Raises FileRefused.

        Several of one name wait if a crash comes between the two steps, or if two uploads come at once.
        """
        self.check_new(self._page, upload.name)
        same = [one for one in self.uploads() if lookup_key(one.name) == lookup_key(upload.name)]
        if (same[-1].place.decode() if same else "") != replaces:
            raise FileConflict(upload.name, current_of(same[-1]) if same else None)
        held = self._files.waiting.keep(upload, note=note, alt=alt)
        for one in same:
            # A save makes it the page's file at this moment.  Or the store is away: this one waits on beside the newer
            # one, which a refusal would throw away, perhaps after both.
            with suppress(UploadGone, StoreUnavailable):
                self._files.contents.discard_upload(one)
        return self._version(held, note, alt)

    def _version(self, held: Upload, note: str, alt: str) -> FileVersion:
        """Return what waits as the version that it may become."""
        found, by = parse_found(held.found), self._by(note)
        return FileVersion(
            name=held.name,
            number=NOT_SAVED,
            previous="",
            sha256=held.sha256,
            size_bytes=held.stored_bytes,
            media_type=found.media_type,
            time_ms=held.time_ms,
            author=by.name,
            signed=by.signed,
            note=note,
            alt=alt,
            width=found.width,
            height=found.height,
            metadata=found.metadata,
        )

    def describe(self, name: str, token: str, alt: str) -> None:
        """Say what a picture shows.  Raises NoSuchFile, UploadGone."""
        self._files.waiting.describe(self._one(name, token), alt)

    def drop(self, name: str, token: str) -> None:
        """Throw a waiting file away.  Raises NoSuchFile, and FilesBusy if a save makes it the page's at this moment."""
        one = self._one(name, token)
        try:
            self._files.contents.discard_upload(one)
        except UploadGone:
            raise FilesBusy(self._page) from None
        self._files.waiting.forget_saves(self._page, self.owners)

    def adopt(self) -> dict[str, str]:
        """Make all that waits the page's, which is saved by now; return why some are not, by name.

        These go on waiting.  After a crash a second call, or ``rights.adoption``, finishes.
        """
        found = self.uploads()
        refused = self.adopt_uploads(found)
        if found and not refused:
            self._files.waiting.forget_saves(self._page, self.owners)
        return {one.name: refused[one.place] for one in found if one.place in refused}

    def adopt_uploads(self, found: Sequence[Upload], history: bytes = b"") -> dict[bytes, str]:
        """Adopt these, which are given the oldest first; return why some are not, by place.

        The newest of several of one name becomes the file.  ``history`` is the page's, which may have had another name
        when they came.
        """
        refused = {}
        for one in reversed(found):
            try:
                self._adopt(one, history)
            except FileRefused as why:
                refused[one.place] = str(why)
        return refused

    def _adopt(self, one: Upload, history: bytes) -> None:
        fields = fields_of(one)
        by = self._by(fields.get("note", ""))
        if self._is_made(one, by):
            self._files.abandon(one)
            return
        taken = self._files.waiting.take(one)
        try:
            self._files.commit(taken, by, alt=fields.get("alt", ""), history=history, allow=self._allow)
        except (FileRefused, NotAllowed):
            self._files.waiting.release_taken(one, taken)
            raise

    def _is_made(self, one: Upload, by: By) -> bool:
        """Return whether the file is the page's already, since a crash came before the upload ended.

        Somebody may have removed or replaced it since; it would come back otherwise.
        """
        name, current = self._files.committing.find_page(self._page, b"").named(one.name)
        if current is None or current.sha256 == one.sha256:
            return current is not None
        if not one.writer:  # no request has taken it
            return False
        made = (one.sha256, by.name, by.signed)
        versions = self._files.committing.chain(self._page, name)
        return any(
            (version.sha256, version.author, version.signed) == made and version.time_ms >= one.time_ms
            for version in versions
        )

    def _allow(self, name: str, rights: PageRights) -> None:
        self._access.require_of(name, rights, True, Privilege.WRITE)
