"""The files of a WikkaWiki, moved here: its upload folder has one folder for each page, named like the page's tag.

A file keeps its content byte for byte, a picture's metadata too.  Its name may change: characters that mean something
in markup or addresses become ``-``, and an ending that contradicts the content is corrected (``files.file_names``).
A page that has a file of this content, under any name and in any version, is left alone, so a second run brings only
what is new.  Folders within a page's folder are passed over, and files whose names begin with a dot.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

from wikka_port.files.content_types import NotAccepted
from wikka_port.files.file_names import InvalidFileName, clean_file_name
from wikka_port.files.file_rows import Upload
from wikka_port.files.refusals import FileRefused, NoSavedPage
from wikka_port.files.stored_files import StoredFiles
from wikka_port.moving.mover import By
from wikka_port.schema import folded
from wikka_port.wikkawiki.comparison import Compared, record_digest

_PIECE_BYTES: Final = 256 * 1024
_OWNER: Final = "import-wikkawiki"  # of uploads under way
_BY: Final = By("WikkaWiki", "", "moved from WikkaWiki")


@dataclass(slots=True)
class UploadReport:
    """Outcome of a move of files; each entry of a list is a line for a person."""

    stored: list[str] = field(default_factory=list)
    already: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    without_page: list[str] = field(default_factory=list)


class UploadMove:
    """Moves the files of an upload folder to the pages that are here."""

    def __init__(self, files: StoredFiles, folder: Path, tags: Iterable[tuple[str, str]]) -> None:
        """Take the ``folder`` of uploads, and each tag with the name of its page here."""
        self.report = UploadReport()
        self._files = files
        self._folder = folder
        self._names = dict(_keyed(tags))

    def run(self) -> None:
        """Move all files.  Raises StoreUnavailable and OSError."""
        for page, path in self._found():
            self._move(page, path)

    def compare(self) -> Compared:
        """Compare the contents of all files that were moved, read from the folder and from the store."""
        compared = Compared("files")
        refused = {line.partition(": ")[0] for line in self.report.refused}
        for page, path in self._found(is_first=False):
            called = self._called(path)
            if called in refused:
                compared.leave_out(1)
                continue
            digest = _digest(path)
            there = record_digest(page, digest, path.stat().st_size)
            compared.add(called, [there], self._stored(page, digest))
        return compared

    def _stored(self, page: str, digest: str) -> Iterator[bytes]:
        for name in self._files.files_of(page):
            for version in self._files.versions(page, name):
                if version.sha256 == digest:
                    read, size_bytes = sha256(), 0
                    for piece in self._files.content(version):
                        read.update(piece)
                        size_bytes += len(piece)
                    yield record_digest(page, read.hexdigest(), size_bytes)
                    return

    def _found(self, *, is_first: bool = True) -> Iterator[tuple[str, Path]]:
        """Yield each file with the name of its page."""
        for folder in sorted(one for one in self._folder.iterdir() if one.is_dir() and not one.name.startswith(".")):
            page = self._names.get(folder.name) or self._names.get(_key(folder.name))
            if page is not None:
                files = (one for one in folder.iterdir() if one.is_file() and not one.name.startswith("."))
                yield from ((page, path) for path in sorted(files))
            elif is_first and any(folder.iterdir()):
                self.report.without_page.append(folder.name)

    def _called(self, path: Path) -> str:
        return os.fsencode(path.relative_to(self._folder)).decode("utf-8", "replace")

    def _move(self, page: str, path: Path) -> None:
        called = self._called(path)
        try:
            if self._has(page, _digest(path)):
                self.report.already.append(called)
                return
            name = clean_file_name(os.fsencode(path.name).decode("utf-8", "replace"))
            current = self._files.files_of(page).get(name)
            upload = self._files.begin(page, name, _OWNER, path.stat().st_size, allow=lambda _name, _rights: None)
            self._store(upload, path, "" if current is None or not current.is_there else current.token)
            self.report.stored.append(called)
        except NoSavedPage:
            self.report.without_page.append(called)
        except (FileRefused, InvalidFileName, NotAccepted) as refused:
            self.report.refused.append(f"{called}: {refused}")

    def _has(self, page: str, digest: str) -> bool:
        found = self._files.files_of(page)
        return any(one.sha256 == digest for one in found.values()) or any(
            version.sha256 == digest for name in found for version in self._files.versions(page, name)
        )

    def _store(self, upload: Upload, path: Path, replaces: str) -> None:
        """Raises FileRefused, NotAccepted, InvalidFileName; the upload is then thrown away."""
        try:
            writer = self._files.writer(upload)
            with path.open("rb") as stream:
                while piece := stream.read(_PIECE_BYTES):
                    writer.write_piece(piece)
            upload = self._files.settle(writer.finish_part(), keep_metadata=True)
            self._files.commit(upload, _BY, replaces=replaces, allow=lambda _name, _rights: None)
        except (FileRefused, NotAccepted, InvalidFileName):
            self._files.abandon(upload)
            raise


def _keyed(tags: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the names of pages by their tags, and by the tags without case."""
    exact: Mapping[str, str] = dict(tags)
    for tag, name in exact.items():
        yield _key(tag), name
    yield from exact.items()


def _key(tag: str) -> str:
    return folded(tag.replace("_", " "))


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        digest = sha256()
        while piece := stream.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()
