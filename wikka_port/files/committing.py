"""Steps 4 to 7 of the protocol (``file_rows``): a version is referred to, staged, and becomes the page's by one cell.

On Columnar the commit is conditional on the file, the rights and the text of the page.  On a plain HBase it is
conditional on the file; the rights are read just before, and the page's row is read again afterwards: if a move had
marked the page meanwhile, the commit is repeated at the row to which the page has moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from wikka_port import schema
from wikka_port.accounts.rows import Cells, Rows
from wikka_port.files.contents import ATTEMPTS, Contents
from wikka_port.files.file_rows import (
    FILES,
    CurrentFile,
    FileVersion,
    file_column,
    files_in,
    lookup_key,
    row_of_version,
    version_cells,
    version_row,
    versions_of_file,
)
from wikka_port.files.refusals import FilesBusy, MissingContent, NoSavedPage, NoSuchFile
from wikka_port.markup.links import redirect_target
from wikka_port.moving.refusals import Busy
from wikka_port.names import normalise
from wikka_port.page_rows import head_of, is_there, markup_of, text_in
from wikka_port.rights.rules import REVISION, PageRights, page_rights
from wikka_port.schema import fields_in

HOPS: Final = 4  # renames and redirects that an upload follows to its page
Place = tuple[bytes, bytes]
OnFilePut = Callable[[Place, str], None]
Allow = Callable[[str, PageRights], None]  # takes the page's name and rights; raises if not allowed


class PageRows(Protocol):
    """The rows of pages without marks of moves: ``moving.mover.Mover``, or those of deleted pages."""

    def page_row(self, name: str) -> Cells: ...

    def place_of(self, name: str) -> Place:
        """Return the table and the row of the page."""
        ...

    def renamed_to(self, move_id: bytes) -> str: ...


@dataclass(frozen=True, slots=True)
class FilledPage:
    """A page as a commit finds it."""

    name: str
    row: Cells
    files: Mapping[str, CurrentFile]
    place: Place  # table and row

    @property
    def key(self) -> bytes:
        return self.place[1]

    @property
    def rights(self) -> PageRights:
        return page_rights(self.row, self.row.get(schema.OWNER, b""))

    @property
    def history(self) -> bytes:
        return head_of(self.row).place(self.key)

    def named(self, name: str) -> tuple[str, CurrentFile | None]:
        """Return the file that readers would take for ``name``, removed or not, by its own name."""
        wanted = lookup_key(name)
        return next(((own, one) for own, one in self.files.items() if lookup_key(own) == wanted), (name, None))


Make = Callable[[FilledPage], FileVersion]  # raises FileRefused


class Committing:
    """Commits versions.  Thread-safe.  Every method may raise StoreUnavailable and InvalidName."""

    def __init__(
        self,
        rows: Rows,
        pages: PageRows,
        contents: Contents,
        on_step_done: Callable[[str], None],
        on_file_put: OnFilePut = lambda place, name: None,
    ) -> None:
        """Call ``on_file_put`` after each commit, with the row of the page and the name of the file."""
        self.on_step_done = on_step_done
        self._on_file_put = on_file_put
        self._rows = rows
        self._pages = pages
        self._contents = contents

    def commit_version(self, page: str, history: bytes, make: Make, allow: Allow, chunks: bytes = b"") -> FileVersion:
        """Run steps 4 to 7; ``chunks`` is the place of an upload's bytes."""
        place, version = self._committed(page, history, make, allow, chunks)
        self._on_file_put(place, version.name)
        return version

    def _committed(
        self, page: str, history: bytes, make: Make, allow: Allow, chunks: bytes
    ) -> tuple[Place, FileVersion]:
        staged: FileVersion | None = None  # None as well once it may be the page's (plain HBase)
        put: FileVersion | None = None
        for _attempt in range(ATTEMPTS):
            place = self.find_page(page, history)
            history = place.history
            for one in (staged, put):
                if one is not None and self._is_committed(place, one):
                    return (
                        place.place,
                        one,
                    )  # its answer was lost, or a text was saved or a move took the page along (plain HBase)
            try:
                allow(place.name, place.rights)
                version = make(place)
            except Exception:
                self._unstage(history, staged)
                raise
            if version not in (staged, put):
                self._unstage(history, staged)
                staged = version
                self._stage(history, version, chunks)
            if not self._put_current(place, version):
                continue
            self.on_step_done("commit")
            if self._rows.is_atomic or self._stayed(place):
                return place.place, version
            staged, put = None, version
            self._clear_left_row(place, version)
        raise FilesBusy(page)  # what is staged stays for the check: the answer to the last commit may be lost

    def _stage(self, history: bytes, version: FileVersion, chunks: bytes) -> None:
        row = version_row(history, version)
        if version.sha256:
            self._contents.refer(version.sha256, row)
            self.on_step_done("refer")
            try:
                self._contents.claim_blob(version.sha256, version.size_bytes, chunks)
            except (MissingContent, FilesBusy):
                self._contents.unrefer(version.sha256, row)
                raise
            self.on_step_done("blob")
        self._rows.put(FILES, row, version_cells(version))
        self.on_step_done("stage")

    def _unstage(self, history: bytes, version: FileVersion | None) -> None:
        """Remove what was staged and is not committed; first the row, then its reference."""
        if version is not None:
            row = version_row(history, version)
            self._rows.delete(FILES, row)
            if version.sha256:
                self._contents.unrefer(version.sha256, row)

    def _is_committed(self, place: FilledPage, version: FileVersion) -> bool:
        """Return whether the version is the file's newest, or others have followed it."""
        current = place.files.get(version.name)
        if current is None or current.number < version.number:
            return False
        newer = chain_of_versions(self._rows, place.history, version.name, current.token)
        found = next((one for one in newer if one.number <= version.number), None)
        return found is not None and found.token == version.token

    def _put_current(self, place: FilledPage, version: FileVersion) -> bool:
        """Run step 7; return False if the file, the rights or the text of the page have changed."""
        column = file_column(version.name)
        expected = {column: place.row.get(column)}
        if self._rows.is_atomic:
            expected |= {one: place.row.get(one) for one in (REVISION, schema.VERSIONCOUNT)}
        return self._rows.change(*place.place, expected, {column: CurrentFile.of(version).pack()})

    def _stayed(self, place: FilledPage) -> bool:
        """Return whether no move had marked the page when the file was put (plain HBase)."""
        now = self._rows.row(*place.place, [schema.VERSIONCOUNT])
        return now.get(schema.VERSIONCOUNT) == place.row.get(schema.VERSIONCOUNT)

    def _clear_left_row(self, place: FilledPage, version: FileVersion) -> None:
        """Remove the cell that was put in a row after the page had left it."""
        row = self._row(place.name)
        column = file_column(version.name)
        is_left = not is_there(row) or head_of(row).place(place.key) != place.history
        if is_left and row.get(column) == CurrentFile.of(version).pack():
            self._rows.delete(*place.place, [column])

    def _row(self, name: str) -> Cells:
        return _row_of(self._pages, name)

    def newest_versions(self, page: str) -> dict[str, FileVersion]:
        """Return the newest versions of a page's files by name; {} if the page has gone.  Two calls of the store."""
        try:
            place = self.find_page(page, b"")
        except NoSavedPage:
            return {}
        current = {name: file for name, file in place.files.items() if file.is_there}
        rows = {row_of_version(place.history, name, one.number, one.token): name for name, one in current.items()}
        found = self._rows.rows(FILES, rows)
        return {rows[row]: FileVersion(**fields_in(FileVersion, cells)) for row, cells in found.items()}

    def chain(self, page: str, name: str) -> Iterator[FileVersion]:
        """Return the versions of a file, the newest first.  Raises NoSuchFile and NoSavedPage before the first."""
        place = self.find_page(normalise(page), b"")
        name, current = place.named(name)
        if current is None:
            raise NoSuchFile(place.name, name)
        return chain_of_versions(self._rows, place.history, name, current.token)

    def find_page(self, name: str, history: bytes) -> FilledPage:
        return find_page(self._pages, name, history)

    def filled_page(self, name: str) -> FilledPage:
        """Return the page to which an upload at ``name`` goes: the target of a redirect, else the page itself.

        The latter also if redirects lead in a circle.  Raises NoSavedPage and FilesBusy.
        """
        place = first = self.find_page(name, b"")
        for _hop in range(HOPS):
            target = redirect_target(text_in(place.row, schema.BODY), markup=markup_of(place.row))
            if target is None or not is_there(self._row(target)):
                return place
            place = self.find_page(normalise(target), b"")
        return first

    def page_to_fill(self, name: str) -> str:
        """Return the name of the filled page, or ``name`` if that is refused: the upload will say why."""
        try:
            return self.filled_page(name).name
        except (NoSavedPage, FilesBusy):
            return name


def _row_of(pages: PageRows, name: str) -> Cells:
    try:
        return pages.page_row(name)
    except Busy:
        raise FilesBusy(name) from None


def find_page(pages: PageRows, name: str, history: bytes) -> FilledPage:
    """Return the page, by its history if that is given, whatever its name.  Raises NoSavedPage, FilesBusy."""
    first = name
    for _hop in range(HOPS):
        row = _row_of(pages, name)
        place = FilledPage(name, row, files_in(row), pages.place_of(name))
        if is_there(row) and history in (b"", place.history):
            return place
        if is_there(row):
            onward = redirect_target(text_in(row, schema.BODY), markup=markup_of(row))
        else:
            onward = pages.renamed_to(head_of(row).token) if schema.VERSIONCOUNT in row else None
        if not history or not onward:
            break
        name = normalise(onward)
    raise NoSavedPage(first)


def chain_of_versions(rows: Rows, history: bytes, name: str, token: str) -> Iterator[FileVersion]:
    """Yield the versions of a file from the one of ``token`` back to the first; O(versions and staged rows read)."""
    start, stop = versions_of_file(history, name)
    for row, cells in rows.scan(FILES, start):
        if row >= stop:
            return
        if row.endswith(token.encode()):  # others were staged by uploads that lost, or crashed
            version = FileVersion(**fields_in(FileVersion, cells))
            yield version
            token = version.previous
            if not token:
                return
