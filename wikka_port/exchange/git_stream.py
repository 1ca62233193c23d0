"""A wiki as a stream for ``git fast-import``: a commit for each revision of a page and each version of a file.

    feature done
    blob, mark :N, data ...                      texts and contents, in the order of pages
    commit refs/heads/main                       in the order of time over the whole wiki
      author and committer NAME <> SECONDS +0000
      data                                       the note, and the trailers below
      M 100644 :N Harbour/Pier.md                or D, when the format changed or a file was removed (``paths``)
      M 100644 :N .wikka/source/Harbour/Pier.txt the original text of an imported revision
    commit ...                                   of the deletion of a page: D for its text and its files
    commit ...                                   the last one: .wikka/pages.jsonl, the rights as in ``json_lines``, and
                                                 .wikka/comments.jsonl, the comments with their pages, if there are any
    done

Trailers of a message, each on one line:
    Wikka-Page: "Harbour/Pier"                   the name as JSON
    Wikka-Revision: {"number":3,...}             the record without its texts, as in ``json_lines``
    Wikka-File: {"name":"pier.png",...}          instead of it, for a version of a file
    Wikka-Source: 1                              if the revision has an original text
    Wikka-Deleted: 1267458432000                 when the page was deleted: of all commits of a deleted page

All revisions of a page lie under its present name; those of a deleted page under the name that it had, or beside that
if another page has it.  A revision that repeats the text of the one before changes no file of its commit; ``git
fast-export`` writes no ``M`` for it, and a reader takes the text that the page had.

Git knows seconds, and authors without ``< >`` and line ends; the trailers have the exact values.  ``done`` at the end
lets ``git fast-import`` refuse a stream that was cut off.

Commits are sorted in the database of ``export_file``, without texts; so lie the lines of the last commit.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from wikka_port.exchange.export_file import ExportFile
from wikka_port.exchange.json_lines import VERSION, line_of, record_fields
from wikka_port.exchange.paths import ENDINGS, TakenPaths
from wikka_port.exchange.records import (
    DigestingSource,
    Digests,
    ExportError,
    FileRecord,
    PageRecord,
    RecordedFile,
    RecordedPage,
    RecordSource,
    RevisionRecord,
)

MARK: Final = b"feature done\n"
BRANCH: Final = "refs/heads/main"
PAGES: Final = ".wikka/pages.jsonl"
COMMENTS: Final = ".wikka/comments.jsonl"
SOURCES: Final = ".wikka/source/"
PAGE_TRAILER: Final = "Wikka-Page"
REVISION_TRAILER: Final = "Wikka-Revision"
FILE_TRAILER: Final = "Wikka-File"
SOURCE_TRAILER: Final = "Wikka-Source"
DELETED_TRAILER: Final = "Wikka-Deleted"
LAST_MESSAGE: Final = "Rights and comments of the wiki"  # by which a reader knows the last commit
FORMER_LAST_MESSAGE: Final = "Rights of the wiki"  # before exports had comments
_MADE_BY: Final = "wikka"  # its author
_DIGESTS: Final = "digests"  # of a checkpoint
_BLOBS: Final = "blobs"
_NO_IDENT: Final = re.compile(r"[<>\x00-\x1f]+")

Write = Callable[[bytes], object]


def write_git(source: RecordSource, out: ExportFile) -> Digests:
    """Write the whole stream."""
    digesting = DigestingSource(out.rest_of(source), Digests(out.values.get(_DIGESTS)))
    writer = _GitWriter(out.database, out.write, int(out.values.get(_BLOBS, 0)))
    if not out.is_continued:
        writer.create_tables()
        out.write(MARK)
        site = source.site()
        writer.keep_line(PAGES, line_of("wikka-export", {"version": VERSION, "rights": site is not None}))
        if site is not None:
            writer.keep_line(PAGES, line_of("site", {"lists": site.lists}))
    out.keep_values(lambda: {_DIGESTS: digesting.digests.values(), _BLOBS: writer.blobs})
    for page in digesting.pages():
        writer.add_page(page)
        writer.keep_line(PAGES, line_of("page", record_fields(page.record)))
        for comment in page.comments():
            of = {
                "page": page.record.name,
                **({"deleted_ms": page.record.deleted_ms} if page.record.is_deleted else {}),
            }
            writer.keep_line(COMMENTS, line_of("comment", {**of, **record_fields(comment)}))
    writer.write_commits("\n".join(writer.put_lines()))
    out.write(b"done\n")
    return digesting.digests


class _GitWriter:
    """Writes blobs at once and keeps commits for ``write_commits``."""

    def __init__(self, database: sqlite3.Connection, write: Write, blobs: int) -> None:
        """Go on behind so many ``blobs``."""
        self.blobs = blobs
        self._database = database
        self._paths = TakenPaths(database)
        self._write = write

    def create_tables(self) -> None:
        self._paths.create_table()
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS lines (number INTEGER PRIMARY KEY, file TEXT, line BLOB, bytes INTEGER)"
        )
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS commits (time_ms INTEGER, page TEXT, kind INTEGER, place INTEGER, author TEXT,"
            " message TEXT, changes TEXT, PRIMARY KEY (time_ms, page, kind, place)) WITHOUT ROWID"
        )

    def put_blob(self, size_bytes: int, pieces: Iterator[bytes]) -> int:
        """Write a blob of exactly ``size_bytes``, and return its mark.  Raises ExportError if it has others."""
        self.blobs += 1
        self._write(b"blob\nmark :%d\ndata %d\n" % (self.blobs, size_bytes))
        for piece in pieces:
            size_bytes -= len(piece)
            self._write(piece)
        if size_bytes:
            raise ExportError("a content is not as long as its record says: wikka check names the damage")
        self._write(b"\n")
        return self.blobs

    def keep_line(self, file: str, line: bytes) -> None:
        """Keep a line of a file of the last commit."""
        self._database.execute("INSERT INTO lines (file, line, bytes) VALUES (?, ?, ?)", (file, line, len(line)))

    def put_lines(self) -> list[str]:
        """Write the files of kept lines, and return their changes."""
        changes = []
        for file in (PAGES, COMMENTS):
            (size,) = self._database.execute("SELECT SUM(bytes) FROM lines WHERE file = ?", (file,)).fetchone()
            if size is not None:
                found = self._database.execute("SELECT line FROM lines WHERE file = ? ORDER BY number", (file,))
                changes.append(_modified(self.put_blob(size, (line for (line,) in found)), file))
        return changes

    def add_page(self, page: RecordedPage) -> None:
        path = self._paths.path_for(page.record.identity)
        before = ""
        removed: dict[str, None] = {}  # paths that the page has had, in their order
        last_ms = 0
        for place, one in enumerate(page.revisions(), 1):
            present = path + ENDINGS[one.markup]
            changes = [_modified(self._put_text(one.body), present)]
            if before not in ("", present):
                changes.insert(0, f"D {before}")
            if one.source is not None:
                changes.append(_modified(self._put_text(one.source), source_path(path)))
            self._add_commit(page.record, one.time_ms, 0, place, one, _revision_trailers(one), changes)
            before, last_ms = present, one.time_ms
            removed |= dict.fromkeys((present, source_path(path)) if one.source is not None else (present,))
        marks: dict[str, int] = {}
        at_ms: dict[str, int] = {}  # of the last version of a file: a clock may have gone backwards in between
        for place, file in enumerate(page.files(), 1):
            changes = self._changes_of_file(page.record, file, marks)
            trailers = {FILE_TRAILER: record_fields(file.record)}
            one_file = file.record
            at_ms[one_file.name] = max(one_file.time_ms, at_ms.get(one_file.name, 0))
            self._add_commit(page.record, at_ms[one_file.name], 1, place, one_file, trailers, changes)
            removed[self._paths.path_for(page.record.identity, one_file.name)] = None
        if page.record.is_deleted:
            self._add_deletion(page.record, max(last_ms, *at_ms.values(), page.record.deleted_ms), removed)

    def _add_deletion(self, page: PageRecord, at_ms: int, paths: Iterable[str]) -> None:
        lines = [_line(page.reason) or f"{page.name}: deleted", "", *_trailers(page, {})]
        changes = "\n".join(f"D {path}" for path in paths)
        values = (at_ms, page.identity, 2, 0, page.deleted_by, "\n".join(lines) + "\n", changes)
        self._database.execute("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def _put_text(self, text: str) -> int:
        data = text.encode("utf-8", "replace")
        return self.put_blob(len(data), iter((data,)))

    def _changes_of_file(self, page: PageRecord, file: RecordedFile, marks: dict[str, int]) -> list[str]:
        """Return the change of a version; ``marks`` has those of the page's contents by digest."""
        one = file.record
        path = self._paths.path_for(page.identity, one.name)
        if not one.sha256:
            return [f"D {path}"]
        if file.content is not None:
            marks[one.sha256] = self.put_blob(one.size_bytes, file.content)
        return [_modified(marks[one.sha256], path)] if one.sha256 in marks else []

    def _add_commit(
        self,
        page: PageRecord,
        at_ms: int,
        kind: int,
        place: int,
        one: RevisionRecord | FileRecord,
        trailers: dict[str, Any],
        changes: list[str],
    ) -> None:
        of = one.name if isinstance(one, FileRecord) else "revision"
        lines = [_line(one.note) or f"{page.name}: {of} {one.number}", "", *_trailers(page, trailers)]
        self._database.execute(
            "INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?)",
            (at_ms, page.identity, kind, place, one.author, "\n".join(lines) + "\n", "\n".join(changes)),
        )

    def write_commits(self, last: str) -> None:
        """Write all commits by time, and then one with the changes ``last``."""
        newest_ms = 0
        found = self._database.execute(
            "SELECT time_ms, author, message, changes FROM commits ORDER BY time_ms, page, kind, place"
        )
        for newest_ms, author, message, changes in found:
            self._write_commit(newest_ms, author, message, changes)
        self._write_commit(newest_ms, _MADE_BY, f"{LAST_MESSAGE}\n", last)

    def _write_commit(self, time_ms: int, author: str, message: str, changes: str) -> None:
        ident = f"{_NO_IDENT.sub(' ', author).strip()} <> {time_ms // 1000} +0000".lstrip()
        data = message.encode("utf-8", "replace")
        head = f"commit {BRANCH}\nauthor {ident}\ncommitter {ident}\ndata {len(data)}\n"
        lines = f"{changes}\n" if changes else ""
        self._write(head.encode("utf-8", "replace") + data + b"\n" + lines.encode() + b"\n")


def _line(text: str) -> str:
    return text.replace("\0", " ").strip()


def _trailers(page: PageRecord, of_commit: Mapping[str, Any]) -> Iterator[str]:
    of_page = {PAGE_TRAILER: page.name, **({DELETED_TRAILER: page.deleted_ms} if page.is_deleted else {})}
    for name, value in {**of_page, **of_commit}.items():
        yield f"{name}: {json.dumps(value, ensure_ascii=False, separators=(',', ':'))}"


def source_path(path: str) -> str:
    """Return the path of the original text of a page, whose own path without its ending is ``path``."""
    return f"{SOURCES}{path}.txt"


def _modified(mark: int, path: str) -> str:
    return f"M 100644 :{mark} {path}"


def _revision_trailers(one: RevisionRecord) -> dict[str, Any]:
    values = record_fields(replace(one, body="", source=None))
    values.pop("body")
    return {REVISION_TRAILER: values, **({SOURCE_TRAILER: 1} if one.source is not None else {})}
