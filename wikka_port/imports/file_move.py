"""The files of another wiki, moved to pages that are here; shared by all readers of other wikis.

A file keeps its content byte for byte, a picture's metadata too.  Its name may change: characters that mean something
in markup or addresses become ``-``, and an ending that contradicts the content is corrected (``files.file_names``).
A file whose content is on its page already is left alone, so that a second run brings only what is new.  A file of a
name that is taken by another content becomes its newest version.

A crash leaves uploads that nobody refers to, which the wiki's sweep removes; the next run continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from wikka_port.files.content_types import NotAccepted
from wikka_port.files.file_names import InvalidFileName, clean_file_name
from wikka_port.files.file_rows import Upload
from wikka_port.files.refusals import FileRefused, NoSavedPage
from wikka_port.files.stored_files import StoredFiles
from wikka_port.imports.source_folder import SourceFolder
from wikka_port.moving.mover import By
from wikka_port.rights.rules import PageRights
from wikka_port.wikkawiki.comparison import Compared, record_digest

_LARGE_FILE: Final = b"version https://git-lfs.github.com/spec/"


@dataclass(slots=True)
class FileReport:
    """Outcome of a move of files; each entry of a list is a line for a person."""

    stored: list[str] = field(default_factory=list)
    already: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    without_page: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MovedFile:
    """A file of the source, and its place in this wiki."""

    page: str
    path: str  # in the source's folder
    name: str  # on the page
    is_named: bool  # texts name it, so that it has to have this name, even if its content is on the page already

    @property
    def called(self) -> str:
        """The path as a person reads it."""
        return self.path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _anybody(_name: str, _rights: PageRights) -> None:
    """Allow the upload: a command is run by the operator of the wiki."""


class FileMove:
    """Moves files to the pages that are here."""

    def __init__(
        self,
        files: StoredFiles,
        folder: SourceFolder,
        found: Callable[[], Iterable[MovedFile]],
        by: By,
        report: FileReport,
        *,
        owner: str,
    ) -> None:
        """Take the files of ``folder``, which ``found`` lists twice, and the ``owner`` of uploads under way."""
        self.report = report
        self._files = files
        self._folder = folder
        self._found = found
        self._by = by
        self._owner = owner

    def run(self, progress: Callable[[int], None] = lambda files: None) -> None:
        """Move all files.  Raises StoreUnavailable."""
        for number, moved in enumerate(self._found(), 1):
            self._move(moved)
            progress(number)

    def compare(self) -> Compared:
        """Compare the contents of all files that were moved, read from the folder and from the store."""
        compared = Compared("files")
        refused = {line.partition(": ")[0] for line in self.report.refused} | set(self.report.without_page)
        for moved in self._found():
            if moved.called in refused:
                compared.leave_out(1)
                continue
            try:
                digest, size_bytes = self._folder.digest_of(moved.path)
            except OSError:
                compared.leave_out(1)
                continue
            there = record_digest(moved.page, digest, size_bytes)
            compared.add(moved.called, [there], self._stored(moved.page, digest))
        return compared

    def _stored(self, page: str, digest: str) -> Iterator[bytes]:
        for name in self._files.files_of(page):
            for version in self._files.committing.chain(page, name):
                if version.sha256 == digest:
                    read, size_bytes = sha256(), 0
                    for piece in self._files.content(version):
                        read.update(piece)
                        size_bytes += len(piece)
                    yield record_digest(page, read.hexdigest(), size_bytes)
                    return

    def _move(self, moved: MovedFile) -> None:
        try:
            digest, size_bytes = self._folder.digest_of(moved.path)
            if self._has(moved, digest):
                self.report.already.append(moved.called)
                return
            name = clean_file_name(moved.name)
            current = self._files.files_of(moved.page).get(name)
            upload = self._files.begin(moved.page, name, self._owner, size_bytes, allow=_anybody, follow=False)
            self._store(upload, moved.path, "" if current is None or not current.is_there else current.token)
            self.report.stored.append(moved.called)
        except NoSavedPage:
            self.report.without_page.append(moved.called)
        except (FileRefused, InvalidFileName, NotAccepted) as refused:
            self.report.refused.append(f"{moved.called}: {self._reason(moved, refused)}")
        except OSError as problem:
            self.report.refused.append(f"{moved.called}: {problem.strerror or problem}")

    def _reason(self, moved: MovedFile, refused: Exception) -> str:
        head = self._folder.read_bytes(moved.path, len(_LARGE_FILE))
        return (
            "its content is elsewhere: call “git lfs pull” in the folder first" if head == _LARGE_FILE else f"{refused}"
        )

    def _has(self, moved: MovedFile, digest: str) -> bool:
        found = self._files.files_of(moved.page)
        names = [moved.name] if moved.is_named else list(found)
        return any(found[name].sha256 == digest for name in names if name in found) or any(
            version.sha256 == digest
            for name in names
            if name in found
            for version in self._files.committing.chain(moved.page, name)
        )

    def _store(self, upload: Upload, path: str, replaces: str) -> None:
        """Raises FileRefused, NotAccepted, InvalidFileName, OSError; the upload is then thrown away."""
        try:
            writer = self._files.writer(upload)
            for piece in self._folder.pieces_of(path):
                writer.write_piece(piece)
            upload = self._files.settle(writer.finish_part(), keep_metadata=True)
            self._files.commit(upload, self._by, replaces=replaces, allow=_anybody)
        except (FileRefused, NotAccepted, InvalidFileName, OSError):
            self._files.abandon(upload)
            raise
