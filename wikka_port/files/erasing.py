"""A version of a file is erased: its bytes leave the store, and its place in the file's history stays.

    1. remove   if it is the newest version, the file is removed first, by a version of its own
    2. blank    files[ROW]: digest, size, type and description become empty; v:erased is "TOKEN:SHA256"
    3. release  blob_refs[sha] r:ROW is deleted, and the content is swept (``file_rows``, a to e)
    4. note     v:erased becomes "TOKEN"

The row keeps its key, which has the token, so the chain of versions is whole.  After step 2 no reader finds the content
by this version.  After a crash between 2 and 4 the same call, or ``wikka check --repair``, finishes.

A content that another version has stays, on this page or elsewhere: the reference of that version keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from wikka_port.accounts.rows import Rows
from wikka_port.files.committing import Allow, FilledPage
from wikka_port.files.file_rows import BLOB_REFS, FILES, FileVersion, row_of_version, version_cells
from wikka_port.files.refusals import NoSuchVersion
from wikka_port.files.stored_files import StoredFiles
from wikka_port.files.sweeping import Sweep
from wikka_port.files.thumbnails import THUMBS, all_rows
from wikka_port.moving.mover import By
from wikka_port.names import normalise
from wikka_port.schema import fields_in


@dataclass(frozen=True, slots=True)
class Erased:
    name: str  # of the file
    number: int
    size_bytes: int  # of the content that left the store; 0 if it stays
    others: int  # versions that have the same content, here and on other pages; the bytes stay for them


class Erasure:
    """Erases versions.  Thread-safe.  Every method may raise StoreUnavailable."""

    def __init__(self, files: StoredFiles, rows: Rows) -> None:
        self._files = files
        self._rows = rows

    def erase(self, page: str, name: str, number: int, by: By, allow: Allow) -> Erased:
        """Erase a version of a file; a second call changes nothing.

        Raises NoSuchFile, NoSuchVersion, NoSavedPage, FileConflict, FilesBusy, InvalidName and what ``allow`` raises.
        """
        place = self._place(page, allow)
        own, current = place.named(name)
        version = self._files.numbered(page, own, number)
        if version is None or not (version.sha256 or version.is_erased):
            raise NoSuchVersion(own, number)
        if version.sha256 and current is not None and current.token == version.token:
            self._files.remove(page, own, version.token, by, allow=allow)
        row = row_of_version(place.history, own, number, version.token)
        if version.sha256:
            self._rows.put(FILES, row, _changed(version, blanked(version)))
            self._files.on_step_done("blank")
        size_bytes, others = finish_erasure(self._rows, self._files.sweep, row)
        self._files.on_step_done("erased")
        return Erased(own, number, size_bytes, others)

    def _place(self, page: str, allow: Allow) -> FilledPage:
        place = self._files.committing.find_page(normalise(page), b"")
        allow(place.name, place.rights)
        return place


def blanked(version: FileVersion) -> FileVersion:
    """Return the version without its content, which is about to be erased."""
    return replace(
        version,
        sha256="",
        size_bytes=0,
        media_type="",
        alt="",
        width=0,
        height=0,
        metadata="",
        kept=f"{version.token}:{version.sha256}",
    )


def _changed(before: FileVersion, after: FileVersion) -> dict[bytes, bytes]:
    """Return the cells that differ: to put all would bring back an author who was renamed meanwhile."""
    former = version_cells(before)
    return {column: cell for column, cell in version_cells(after).items() if former.get(column) != cell}


def finish_erasure(rows: Rows, sweep: Sweep, row: bytes) -> tuple[int, int]:
    """Run steps 3 and 4 for a version that is blank; return the bytes that left, and the other versions that have them.

    A version that is erased already is left as it is.
    """
    version = FileVersion(**fields_in(FileVersion, rows.row(FILES, row)))
    sha256 = version.leaving_sha256
    if not sha256:
        return 0, 0
    sweep.release(sha256, row)
    size_bytes = sweep.sweep_content(sha256)
    others = len(rows.row(BLOB_REFS, sha256.encode())) if size_bytes < 0 else 0
    if size_bytes >= 0:
        rows.delete_rows(THUMBS, list(all_rows(sha256)))  # a trigger does it, too, if there is one
    rows.put(FILES, row, _changed(version, replace(version, kept=version.token)))
    return max(0, size_bytes), others
