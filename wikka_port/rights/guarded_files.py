"""The files of one page within one visitor's rights: the entry point of ``files`` for handlers.

READ of the page is checked when the object is made (``GuardedWiki.files``), WRITE when an upload begins and again in
the step that commits, with the rights that this step itself finds in the page's row.

An object serves one request.
"""

from __future__ import annotations

from collections.abc import Iterator

from wikka_port.files.file_rows import CurrentFile, FileVersion, Upload, lookup_key
from wikka_port.files.stored_files import StoredFiles
from wikka_port.files.thumbnails import Thumbnail, widths_of
from wikka_port.files.uploading import UploadWriter
from wikka_port.limits import REASON_CHARS_MAX
from wikka_port.moving.mover import By
from wikka_port.rights.access import PageAccess
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.visitors import Visitor


class GuardedFiles:
    """Methods raise what those of ``StoredFiles`` raise, and NotAllowed."""

    def __init__(self, files: StoredFiles, access: PageAccess, visitor: Visitor, page: str) -> None:
        """``page`` is a normalised name; the caller has checked that the visitor may read it."""
        self.page = page
        self._files = files
        self._access = access
        self._visitor = visitor

    def _allow(self, name: str, rights: PageRights) -> None:
        self._access.require_of(name, rights, True, Privilege.WRITE)

    def _by(self, note: str) -> By:
        return By(self._visitor.signature, self._visitor.signed, note[:REASON_CHARS_MAX])

    # --- reading -----------------------------------------------------------------------------------

    def current(self) -> dict[str, CurrentFile]:
        """Return the files of the page, with those that were removed.  A page just read has them: ``Page.files``."""
        return self._files.files_of(self.page)

    def find(self, name: str) -> tuple[str, CurrentFile | None]:
        """Return the file that readers would take for ``name``, removed or not, by its own name."""
        wanted = lookup_key(name)
        return next(((own, one) for own, one in self.current().items() if lookup_key(own) == wanted), (name, None))

    def versions(self, name: str) -> list[FileVersion]:
        return self._files.versions(self.page, name)

    def newest_versions(self) -> dict[str, FileVersion]:
        return self._files.committing.newest_versions(self.page)

    def version(self, name: str, token: str) -> FileVersion:
        return self._files.version(self.page, name, token)

    def content(self, version: FileVersion | CurrentFile, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Return the bytes of a version that this object, or the page, has."""
        return self._files.content(version, start, stop)

    def thumbnail(self, version: FileVersion | CurrentFile, width: int) -> Thumbnail | None:
        """Return a smaller version of a picture that this object, or the page, has; None if it is not made (yet)."""
        return self._files.thumbnail(version.sha256, width) if width in widths_of(version) else None

    # --- writing -----------------------------------------------------------------------------------

    def require_write(self) -> None:
        """Raise NotAllowed unless the visitor may change the files; each change checks it again."""
        self._access.require(self.page, Privilege.WRITE)

    def begin(self, name: str, owner: str, length_bytes: int = 0, *, fields: str = "") -> Upload:
        return self._files.begin(self.page, name, owner, length_bytes, allow=self._allow, fields=fields)

    def upload(self, place: str, owner: str) -> Upload:
        """Return an upload under way; it is committed to the page at which it began.  Raises UploadGone."""
        return self._files.upload(place, owner)

    def take(self, upload: Upload) -> Upload:
        self._access.require(self.page, Privilege.WRITE)
        return self._files.take(upload)

    def release_writer(self, upload: Upload) -> None:
        self._files.release_writer(upload)

    def writer(self, upload: Upload) -> UploadWriter:
        return self._files.writer(upload)

    def settle(self, upload: Upload, *, keep_metadata: bool = False) -> Upload:
        return self._files.settle(upload, keep_metadata=keep_metadata)

    def commit(self, upload: Upload, *, note: str = "", alt: str = "", replaces: str = "") -> FileVersion:
        return self._files.commit(upload, self._by(note), alt=alt, replaces=replaces, allow=self._allow)

    def abandon(self, upload: Upload) -> None:
        self._files.abandon(upload)

    def remove(self, name: str, token: str, *, note: str = "") -> FileVersion:
        return self._files.remove(self.page, name, token, self._by(note), allow=self._allow)

    def restore(self, name: str, token: str, old: FileVersion, *, note: str = "") -> FileVersion:
        return self._files.restore(self.page, name, token, old, self._by(note), allow=self._allow)

    def describe(self, name: str, token: str, *, alt: str, note: str = "") -> FileVersion:
        return self._files.describe(self.page, name, token, self._by(note), alt=alt, allow=self._allow)
