"""A folder of texts as people edit them, with everything else beside them.

    Harbour/Pier.md               the newest text of a page in Markdown, byte for byte
    Harbour/Ship.wikka            of a page in Wikka markup; with ``convert`` Harbour/Ship.md, converted
    files/Harbour/Pier/pier.png   the files that the pages have now
    wikka-pages.jsonl             all records in JSON lines: revisions, rights, metadata of files (``json_lines``)
    .wikka/contents/ab/abcdef...  contents of all versions of files, each once; the files above are links to them

Paths are those of ``paths``, in the order of the pages in wikka-pages.jsonl, so a reader finds them again.  Deleted
pages are in wikka-pages.jsonl alone.

Somebody may edit the texts in the folder.  A text that differs from what the export wrote is one more revision of its
page when the folder is read: its time is that of the file, its author AUTHOR.  It is read as a text of any folder
(``imports.source_text``): other ends of lines are no edit, and one that is not UTF-8 is read as Windows-1252 and named.
Texts whose pages are not in wikka-pages.jsonl are left out, and so are changes to files.  Links and other things that
are no regular files are named and left out: a link in a folder of somebody else would bring any file of this machine
into a page.

The folder is written as OUT.part and renamed, so a folder of the name OUT is whole.  An export that was killed is
continued (``export_file``, of wikka-pages.jsonl): files that the last checkpoint does not have go first.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final, cast

from wikka_port.exchange.export_file import ExportCall, export_file, is_begun
from wikka_port.exchange.json_lines import JsonLines, write_lines
from wikka_port.exchange.paths import ENDINGS, TakenPaths
from wikka_port.exchange.records import (
    CommentRecord,
    Digests,
    ExportError,
    FileRecord,
    PageRecord,
    RecordedFile,
    RecordedPage,
    RecordSource,
    RevisionRecord,
    SiteRecord,
)
from wikka_port.exchange.spool import spool_database
from wikka_port.exchange.whole_file import (
    PART,
    ContentFolder,
    clear_folder,
    remove_others,
    sync_all,
    sync_folder,
)
from wikka_port.imports.source_folder import NoRegularFile, SourceFolder
from wikka_port.imports.source_text import decoded
from wikka_port.markup.converting import to_markdown
from wikka_port.markup.formats import MARKDOWN, WIKKA
from wikka_port.next_revision import BODY_BYTES_MAX

PAGES: Final = "wikka-pages.jsonl"
AUTHOR: Final = "Folder"  # of revisions that were made by editing a text of the folder
NOTE: Final = "edited in the folder of an export"
_OWN: Final = ".wikka"
_CONTENTS: Final = "contents"


# --- writing -----------------------------------------------------------------------------------


def write_folder(source: RecordSource, out: Path, *, convert: bool, call: ExportCall | None = None) -> Digests:
    """Write the folder, or go on with one that was killed.

    Raises ExportError if there is something of the folder's name, and OSError.
    """
    if out.exists():
        raise ExportError(f"{out} is there already: name another folder, or remove it")
    part = out.with_name(out.name + PART)
    _begin_folder(part)
    contents = ContentFolder(part / _OWN / _CONTENTS)
    with export_file(part / PAGES, call or ExportCall(), has_files=True, discard=lambda: _clear(part)) as to:
        if to.is_continued:
            remove_others(part, part, to.has_file)
        paths = TakenPaths(to.database)
        paths.create_table()
        texts = _Texts(source, part, paths, contents, convert, to.note_file)

        def keep(record: FileRecord, content: Iterator[bytes]) -> None:
            contents.keep(record, content)
            to.note_file(contents.path_of(record.sha256))

        digests = write_lines(texts, to, keep)
    sync_all()
    part.rename(out)
    sync_folder(out.parent)
    return digests


def _begin_folder(part: Path) -> None:
    """Make the folder of an export, or take over that of a killed one.  Raises ExportError."""
    if (part / _OWN).is_dir() or is_begun(part / PAGES):
        return
    try:
        (part / _OWN).mkdir(parents=True)
    except (FileExistsError, NotADirectoryError):
        raise ExportError(f"{part} is there, and is none of an export: remove it") from None
    if any(one.name != _OWN for one in part.iterdir()):
        (part / _OWN).rmdir()
        raise ExportError(f"{part} is there, and is none of an export: remove it")


def _clear(part: Path) -> None:
    """Remove what is in the folder of an export, but for the folder by which the next one recognises it."""
    (part / _OWN).mkdir(exist_ok=True)
    clear_folder(part / _OWN, lambda name: False)
    clear_folder(part, lambda name: name == _OWN)


class _Texts:
    """Passes a source's pages on, and writes their newest texts and files beside."""

    def __init__(
        self,
        source: RecordSource,
        folder: Path,
        paths: TakenPaths,
        contents: ContentFolder,
        convert: bool,
        note_file: Callable[[Path], None],
    ) -> None:
        self._note_file = note_file
        self._source = source
        self._folder = folder
        self._paths = paths
        self._contents = contents
        self._convert = convert

    def site(self) -> SiteRecord | None:
        return self._source.site()

    def pages(self) -> Iterator[RecordedPage]:
        for page in self._source.pages():
            yield page if page.record.is_deleted else _TextPage(page, self)

    def write_text(self, page: str, newest: RevisionRecord) -> None:
        body, markup = text_of(newest, convert=self._convert)
        path = self._folder / (self._paths.path_for(page) + ENDINGS[markup])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        self._note_file(path)

    def write_file(self, page: str, one: FileRecord) -> None:
        """Link a file to its content, or copy it where the disk has no links."""
        content = self._contents.path_of(one.sha256)
        path = self._folder / self._paths.path_for(page, one.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if content.is_file():  # it is missing if the store has lost it
            try:
                os.link(content, path)
            except OSError:
                shutil.copyfile(content, path)
            self._note_file(path)


class _TextPage:
    def __init__(self, page: RecordedPage, texts: _Texts) -> None:
        self.record = page.record
        self._page = page
        self._texts = texts

    def revisions(self) -> Iterator[RevisionRecord]:
        newest = None
        for newest in self._page.revisions():
            yield newest
        if newest is not None:
            self._texts.write_text(self.record.name, newest)

    def files(self) -> Iterator[RecordedFile]:
        current: dict[str, FileRecord] = {}
        for file in self._page.files():
            yield file
            current[file.record.name] = file.record
        for one in current.values():
            if one.sha256:
                self._texts.write_file(self.record.name, one)

    def comments(self) -> Iterator[CommentRecord]:
        return self._page.comments()


def text_of(newest: RevisionRecord, *, convert: bool) -> tuple[bytes, str]:
    """Return the bytes of a page's text in the folder, and their format."""
    if convert and newest.markup == WIKKA:
        return to_markdown(newest.body, autolink=newest.autolink).text.encode("utf-8", "replace"), MARKDOWN
    return newest.body.encode("utf-8", "replace"), newest.markup


# --- reading -----------------------------------------------------------------------------------


class MarkdownFolder:
    """A ``records.ReadSource`` of a folder that ``write_folder`` wrote."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines = JsonLines(self._opened, ContentFolder(folder / _OWN / _CONTENTS).find)
        self._said: set[str] = set()  # remarks

    def _opened(self) -> BinaryIO:
        return cast(BinaryIO, (self._folder / PAGES).open("rb"))

    @property
    def consumed(self) -> int:
        return self._lines.consumed

    @property
    def remarks(self) -> list[str]:
        return sorted(self._said)

    def site(self) -> SiteRecord | None:
        return self._lines.site()

    def pages(self) -> Iterator[RecordedPage]:
        texts = _FolderTexts(SourceFolder(self._folder), self._folder.resolve(), self._said.add)
        with closing(spool_database()) as database:
            paths = TakenPaths(database)
            paths.create_table()
            for page in self._lines.pages():
                if page.record.is_deleted:
                    yield page
                    continue
                yield EditedPage(page, paths.path_for(page.record.name), texts)


class _FolderTexts:
    """The texts of a folder, by their paths."""

    def __init__(self, folder: SourceFolder, top: Path, note: Callable[[str], None]) -> None:
        """Take the folder, its resolved path, and a function that takes remarks."""
        self.note = note
        self._folder = folder
        self._top = top

    def read(self, path: str) -> tuple[bytes, int] | None:
        """Return bytes and time of a text, or None if there is none; what is no file of the folder is noted."""
        whole = self._folder.root / path
        try:
            # ``Path.resolve`` fails on links that lead in a circle; these are refused when the file is opened
            if not Path(os.path.realpath(whole.parent)).is_relative_to(self._top):
                raise NoRegularFile("its folder is a link to another place")
            with self._folder.open_file(path) as stream:
                return stream.read(BODY_BYTES_MAX + 1), os.fstat(stream.fileno()).st_mtime_ns // 1_000_000
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as problem:
            why = "it is a link to another place" if whole.is_symlink() else problem.strerror or problem
            self.note(f"{path}: left out: {why}")
            return None


class EditedPage:
    """A ``records.RecordedPage``, with one more revision if its text was edited in the folder."""

    def __init__(self, page: RecordedPage, base: str, texts: _FolderTexts) -> None:
        """Take the path of the page's text without its ending."""
        self.record: PageRecord = page.record
        self._page = page
        self._base = base
        self._texts = texts

    def revisions(self) -> Iterator[RevisionRecord]:
        newest = None
        for newest in self._page.revisions():
            yield newest
        edited = None if newest is None else self._edited(newest)
        if edited is not None:
            self._texts.note(f"{self.record.name}: edited in the folder")
            yield edited

    def files(self) -> Iterator[RecordedFile]:
        return self._page.files()

    def comments(self) -> Iterator[CommentRecord]:
        return self._page.comments()

    def _edited(self, newest: RevisionRecord) -> RevisionRecord | None:
        for convert in (False, True):
            body, markup = text_of(newest, convert=convert)
            found = self._texts.read(self._base + ENDINGS[markup])
            if found is None:
                continue
            data, time_ms = found
            text, is_utf8 = decoded(data)
            if data == body or text == decoded(body)[0]:
                return None
            if not is_utf8:
                self._texts.note(f"{self._base}{ENDINGS[markup]}: not in UTF-8: read as Windows-1252")
            return replace(
                newest,
                number=newest.number + 1,
                time_ms=max(time_ms, newest.time_ms + 1),
                author=AUTHOR,
                body=text,
                note=NOTE,
                signed="",
                minor=False,
                markup=markup,
                was="",
                source=None,
                origin="",
            )
        return None
