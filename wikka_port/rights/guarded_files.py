"""The files of one page within one visitor's rights: the entry point of ``files`` for handlers.

READ of the page is checked when the object is made (``GuardedWiki.files``), WRITE when an upload begins and again in
the step that commits, with the rights that this step itself finds in the page's row.

An object serves one request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from wikka_port.files.file_html import NO_FILES, Files, find_files
from wikka_port.files.file_rows import NOT_SAVED, CurrentFile, FileVersion, Upload, lookup_key
from wikka_port.files.refusals import NoSavedPage
from wikka_port.files.stored_files import VERSIONS_MAX, StoredFiles
from wikka_port.files.thumbnails import Thumbnail, widths_of
from wikka_port.files.uploading import UploadWriter
from wikka_port.limits import FILE_PAGES_MAX, LISTED_QUICK, LISTED_SCANNED, LISTED_STEP, REASON_CHARS_MAX
from wikka_port.markup.fragments import FileReference
from wikka_port.moving.mover import By
from wikka_port.names import pages_above
from wikka_port.rights.access import PageAccess
from wikka_port.rights.guarded_waiting import GuardedWaiting
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.schema import name_row
from wikka_port.sealed_places import SealedPlaces
from wikka_port.visitors import Visitor

_USES: Final = "uses"  # a kind of lists (``sealed_places``)
_USES_STEP: Final = 50  # pages whose files, and those of the pages above, are read together


class Naming(Protocol):
    """The index of files that texts name: ``listings.Listings``."""

    def naming(self, page: str, file: str, *, shared: bool, after: str = "", limit: int) -> list[tuple[str, bool]]: ...


class ReadableUses:
    """The pages that use files, as far as a visitor may read them.

    A name without a page is taken for the file that a view of the page would show to this visitor.
    """

    def __init__(
        self,
        lists: Naming,
        access: PageAccess,
        files_of: Callable[[Collection[str]], Mapping[str, Files]],
        before_expensive_read: Callable[[], object],
        places: SealedPlaces,
    ) -> None:
        """``files_of`` returns the files of those of the pages that may be read."""
        self._places = places
        self._lists = lists
        self._access = access
        self._files_of = files_of
        self._before_expensive_read = before_expensive_read

    def pages(
        self, page: str, file: str, shared_page: str, *, is_there: bool, after: str = "", limit: int
    ) -> tuple[list[str], str]:
        """Return up to ``limit`` pages that use a file, in the order of keys; of a removed file those that name it.

        With them comes the ``after`` of the next part, "" at the end (``name_parts``).
        """
        opened = self._places.opened(_USES, after)
        after = after if opened is None else opened
        found: list[str] = []
        looked, step = 0, limit + 1
        while True:
            items = self._lists.naming(page, file, shared=page == shared_page, after=after, limit=step)
            kept = self._access.listed(name for name, _ in items)
            unsure = [name for name, is_sure in items if name in kept and not is_sure]
            meant = self._meaning(page, file, unsure, shared_page, is_there)
            found += [name for name, is_sure in items if name in kept and (is_sure or name in meant)]
            looked += len(items)
            if len(found) > limit:
                return found[:limit], found[limit - 1]
            if len(items) < step:
                return found, ""
            after, step = items[-1][0], LISTED_STEP
            if looked >= max(limit, LISTED_SCANNED):
                return found, self._places.sealed(_USES, after)
            if looked > LISTED_QUICK:
                self._before_expensive_read()

    def _meaning(self, page: str, file: str, names: Sequence[str], shared_page: str, is_there: bool) -> set[str]:
        """Return those of the ``names`` whose texts mean the file of ``page`` by its name alone."""
        found: set[str] = set()
        reference = FileReference("", file)
        for at in range(0, len(names), _USES_STEP):
            step = names[at : at + _USES_STEP]
            near = {above for name in step for above in (name, *pages_above(name)[-FILE_PAGES_MAX:])}
            files = self._files_of(sorted({*near, shared_page} - {""}))
            for name in step:
                read = partial(_those_of, files)
                one = find_files([reference], name, files.get(name, NO_FILES), shared_page, read).get(reference)
                if one.page == page if one is not None else not is_there:
                    found.add(name)
        return found


def _those_of(files: Mapping[str, Files], names: Sequence[str]) -> dict[str, Files]:
    return {name: files[name] for name in names if name in files}


class GuardedFiles:
    """Methods raise what those of ``StoredFiles`` raise, and NotAllowed."""

    def __init__(
        self,
        files: StoredFiles,
        access: PageAccess,
        visitor: Visitor,
        page: str,
        uses: ReadableUses,
        owners: Collection[str] = (),
    ) -> None:
        """``page`` is a normalised name; the caller has checked that the visitor may read it.

        With ``owners`` (``GuardedWaiting``) a page that is not saved yet has the files that wait for it.
        """
        self.page = page
        self.waiting = GuardedWaiting(files, access, page, owners, self._by)
        self._uses = uses
        self._files = files
        self._access = access
        self._visitor = visitor

    def _allow(self, name: str, rights: PageRights) -> None:
        self._access.require_of(name, rights, True, Privilege.WRITE)

    def _by(self, note: str) -> By:
        return By(self._visitor.signature, self._visitor.signed, note[:REASON_CHARS_MAX])

    # --- reading -----------------------------------------------------------------------------------

    def current(self) -> dict[str, CurrentFile]:
        """Return the files of the page, with those that were removed.  A page just read has them: ``Page.files``.

        A page that is not saved has the files that wait for it, if there are any.  Raises NoSavedPage.
        """
        try:
            return self._files.files_of(self.page)
        except NoSavedPage:
            waiting = self.waiting.current()
            if not waiting:
                raise
            return waiting

    def find(self, name: str) -> tuple[str, CurrentFile | None]:
        """Return the file that readers would take for ``name``, removed or not, by its own name."""
        wanted = lookup_key(name)
        return next(((own, one) for own, one in self.current().items() if lookup_key(own) == wanted), (name, None))

    def versions(self, name: str, *, below: int | None = None, limit: int | None = VERSIONS_MAX) -> list[FileVersion]:
        return self._files.versions(self.page, name, below=below, limit=limit)

    def numbered(self, name: str, number: int) -> FileVersion | None:
        return self._files.numbered(self.page, name, number)

    def newest_versions(self) -> dict[str, FileVersion]:
        return self._files.committing.newest_versions(self.page)

    def content(self, version: FileVersion | CurrentFile, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Return the bytes of a version that this object, or the page, has."""
        if isinstance(version, CurrentFile) and version.number == NOT_SAVED:
            return self._files.waiting.content(version, start, version.size_bytes if stop is None else stop)
        return self._files.content(version, start, stop)

    def thumbnail(self, version: FileVersion | CurrentFile, width: int) -> Thumbnail | None:
        """Return a smaller version of a picture that this object, or the page, has; None if it is not made (yet)."""
        return self._files.thumbnail(version.sha256, width) if width in widths_of(version) else None

    def used_on_part(self, name: str, current: CurrentFile, *, after: str = "", limit: int) -> tuple[list[str], str]:
        """Return readable pages whose texts name a file, and the ``after`` of the next part, "" at the end.

        They are in the order of keys; if one part has all of them, alphabetical.  A part has fewer than ``limit`` if
        LISTED_SCANNED were read.
        """
        shared = self._files.config.shared_page
        found, onward = self._uses.pages(self.page, name, shared, is_there=current.is_there, after=after, limit=limit)
        return (found if after or onward else sorted(found, key=name_row)), onward

    # --- writing -----------------------------------------------------------------------------------

    def page_to_fill(self) -> str:
        """Return the page to which an upload goes.  Raises NotAllowed unless it may be read.

        A page that redirects, such as the old name of a page, passes uploads on; its own files stay its own.
        """
        target = self._files.committing.page_to_fill(self.page)
        self._access.require(target, Privilege.READ)
        return target

    def require_write(self) -> None:
        """Raise NotAllowed unless the visitor may change the files; each change checks it again."""
        self._access.require(self.page, Privilege.WRITE)

    def begin(self, name: str, owner: str, length_bytes: int = 0, *, fields: str = "") -> Upload:
        allow_new = partial(self.waiting.check_new, name=name) if self.waiting.owners else None
        return self._files.begin(
            self.page, name, owner, length_bytes, allow=self._allow, fields=fields, allow_new=allow_new
        )

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
        """Make an upload the page's; of a page that is not saved it waits, and the version has the number NOT_SAVED."""
        try:
            return self._files.commit(upload, self._by(note), alt=alt, replaces=replaces, allow=self._allow)
        except NoSavedPage:
            if upload.history or not self.waiting.owners:
                raise
            return self.waiting.keep(upload, note=note, alt=alt, replaces=replaces)

    def abandon(self, upload: Upload) -> None:
        self._files.abandon(upload)

    def cancel(self, upload: Upload) -> None:
        """Throw an upload away, from another request than the one that writes it.  Raises UploadGone."""
        self._files.contents.discard_upload(upload)

    def remove(self, name: str, token: str, *, note: str = "") -> FileVersion:
        return self._files.remove(self.page, name, token, self._by(note), allow=self._allow)

    def restore(self, name: str, token: str, old: FileVersion, *, note: str = "") -> FileVersion:
        return self._files.restore(self.page, name, token, old, self._by(note), allow=self._allow)

    def describe(self, name: str, token: str, *, alt: str, note: str = "") -> FileVersion:
        return self._files.describe(self.page, name, token, self._by(note), alt=alt, allow=self._allow)
