"""Files of records into a wiki: all versions of each file in their order, with author, note and time.

A version that is here already is left alone, and so is a file that has other versions here: its name is reported.  A
content comes with the first version that has it; for later ones it is read from the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from wikka_port.exchange.page_source import file_record
from wikka_port.exchange.records import FileRecord, RecordedFile, RecordedPage
from wikka_port.files.content_types import NotAccepted
from wikka_port.files.file_names import InvalidFileName
from wikka_port.files.file_rows import FileVersion, Upload, parse_found
from wikka_port.files.refusals import FileRefused, MissingContent
from wikka_port.files.stored_files import StoredFiles
from wikka_port.moving.mover import By
from wikka_port.rights.rules import PageRights

_OWNER: Final = "import"  # of uploads under way


def _anybody(_name: str, _rights: PageRights) -> None:
    """Allow the upload: a command is run by the operator of the wiki."""


@dataclass(slots=True)
class FileReport:
    stored: int = 0  # versions
    already: int = 0
    refused: list[str] = field(default_factory=list)  # lines for a person

    def count(self, *, stored: int = 0, already: int = 0) -> None:
        self.stored += stored
        self.already += already


class FileImport:
    """Brings in the files of one page after another.  Raises StoreUnavailable."""

    def __init__(self, files: StoredFiles, report: FileReport | None = None) -> None:
        self.report = report or FileReport()
        self._files = files

    def bring_in(self, page: RecordedPage) -> None:
        name = page.record.name
        there: dict[str, list[FileVersion]] | None = None
        contents: dict[str, FileVersion] = {}
        refused: set[str] = set()
        for file in page.files():
            if there is None:
                there = self._versions_of(name)
                contents = {one.sha256: one for found in there.values() for one in found if one.sha256}
            one = file.record
            if one.name in refused:
                continue
            try:
                stored = self._bring_version(name, file, there.setdefault(one.name, []), contents)
            except (FileRefused, InvalidFileName, NotAccepted, MissingContent) as problem:
                self.report.refused.append(f"{name}: {one.name}: {problem}")
                refused.add(one.name)
                continue
            if stored.sha256:
                contents[stored.sha256] = stored

    def _versions_of(self, page: str) -> dict[str, list[FileVersion]]:
        """Return all versions of the page's files, the oldest first."""
        return {name: self._files.versions(page, name, limit=None)[::-1] for name in self._files.files_of(page)}

    def _bring_version(
        self, page: str, file: RecordedFile, there: list[FileVersion], contents: dict[str, FileVersion]
    ) -> FileVersion:
        """Return the version, which is here then.  ``there`` has all versions of the file and grows."""
        one = file.record
        if one.number <= len(there):
            present = there[one.number - 1]
            if file_record(present) != one:
                raise _OtherVersions(one.name)
            self.report.count(already=1)
            return present
        if one.number != len(there) + 1:
            raise _OtherVersions(one.name)
        newest = there[-1] if there else None
        by = By(one.author, one.signed, one.note)
        if not one.sha256:
            token = newest.token if newest is not None else ""
            stored = self._files.remove(page, one.name, token, by, time_ms=one.time_ms, allow=_anybody)
        else:
            content = file.content
            if content is None and one.sha256 in contents:
                content = self._files.content(contents[one.sha256])
            if content is None:
                raise MissingContent(one.sha256)
            replaces = newest.token if newest is not None and newest.sha256 else ""
            stored = self._store(page, one, content, by, replaces)
        there.append(stored)
        self.report.count(stored=1)
        return stored

    def _store(self, page: str, one: FileRecord, content: Iterator[bytes], by: By, replaces: str) -> FileVersion:
        upload: Upload = self._files.begin(page, one.name, _OWNER, one.size_bytes, allow=_anybody, follow=False)
        try:
            writer = self._files.writer(upload)
            for piece in content:
                writer.write_piece(piece)
            upload = self._files.settle(writer.finish_part(), keep_metadata=True)
            if upload.sha256 != one.sha256:
                raise _OtherContent(one.name)
            found = replace(parse_found(upload.found), metadata=one.metadata)
            upload = replace(upload, found=found.pack())
            return self._files.commit(upload, by, alt=one.alt, replaces=replaces, time_ms=one.time_ms, allow=_anybody)
        except Exception:
            self._files.abandon(upload)
            raise


class _OtherVersions(FileRefused):
    def __init__(self, name: str) -> None:
        super().__init__(f"{name} has other versions here, which stay")


class _OtherContent(FileRefused):
    def __init__(self, name: str) -> None:
        super().__init__(f"the content of {name} is not the one that its digest names")
