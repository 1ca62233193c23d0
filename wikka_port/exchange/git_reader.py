"""A stream of ``git fast-export`` as records: the way back of ``git_stream``.

The stream is read once, into a private database and a file of blobs, both on disk and gone with the process; pages are
then read from there in the order of their names.  So a reader needs as much room as the stream, and little memory.

Commits count that have the trailers of ``git_stream``, on any branch, and the last one, with the rights.  Commits
without them, which people made in the repository, are counted in ``remarks`` and left out: their texts belong to no
revision of the wiki, and their changes of rights count for nothing.  A stream without the commit of the rights is
refused, since its pages would come open.

Knows nothing of the store, and starts no git.
"""

from __future__ import annotations

import io
import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from typing import IO, Any, BinaryIO, Final

from wikka_port.exchange import git_commands
from wikka_port.exchange.git_commands import COPIED_BYTES, Commands, Commit, Place, mark_at
from wikka_port.exchange.git_stream import (
    COMMENTS,
    DELETED_TRAILER,
    FILE_TRAILER,
    FORMER_LAST_MESSAGE,
    LAST_MESSAGE,
    PAGE_TRAILER,
    PAGES,
    REVISION_TRAILER,
    SOURCE_TRAILER,
    SOURCES,
    source_path,
)
from wikka_port.exchange.json_lines import JsonLines, checked_comment, checked_file, checked_page, checked_revision
from wikka_port.exchange.records import CommentRecord, ExportError, PageRecord, RecordedFile, RevisionRecord, SiteRecord
from wikka_port.exchange.spool import spool_database
from wikka_port.limits import RECORD_LINE_BYTES

_TABLES: Final = (
    "CREATE TABLE revisions (page TEXT, time_ms INTEGER, record TEXT, text TEXT, source TEXT,"
    " PRIMARY KEY (page, time_ms))",
    "CREATE TABLE files (page TEXT, name TEXT, number INTEGER, record TEXT, content TEXT,"
    " PRIMARY KEY (page, name, number))",
    "CREATE TABLE texts (page TEXT PRIMARY KEY, path TEXT)",  # the path of a page's text after its last commit
    "CREATE TABLE pages (name TEXT PRIMARY KEY, record TEXT)",
    "CREATE TABLE comments (page TEXT, number INTEGER, record TEXT, PRIMARY KEY (page, number))",
)


class GitStream:
    """A ``records.ReadSource``.  Its first use reads the whole stream."""

    def __init__(self, opened: Callable[[], BinaryIO]) -> None:
        self._foreign = 0  # commits without trailers
        self.consumed = 0
        self._opened = opened
        self._database: sqlite3.Connection | None = None
        self._blobs: IO[bytes] | None = None
        self._site: SiteRecord | None = None

    def site(self) -> SiteRecord | None:
        self._read()
        return self._site

    def pages(self) -> Iterator[GitPage]:
        database = self._read()
        after = ""
        while True:
            found = database.execute(
                "SELECT page, (SELECT record FROM pages WHERE name = page) FROM revisions WHERE page > ?"
                " ORDER BY page LIMIT 1",
                (after,),
            ).fetchone()
            if found is None:
                return
            after = found[0]
            record = checked_page(json.loads(found[1]), ExportError) if found[1] else PageRecord(after)
            yield GitPage(self, record)

    def close(self) -> None:
        """Remove the copy; the next use reads the stream anew."""
        if self._database is not None:
            self._database.close()
        if self._blobs is not None:
            self._blobs.close()
        self._database = self._blobs = None

    @property
    def remarks(self) -> list[str]:
        foreign = self._foreign
        return [f"{foreign:,} commits are none of the wiki's: they are left out"] if foreign else []

    # --- reading the stream ------------------------------------------------------------------------

    def _read(self) -> sqlite3.Connection:
        if self._database is not None:
            return self._database
        self._database = database = spool_database()
        self._blobs = blobs = tempfile.TemporaryFile()  # noqa: SIM115 - ``close`` closes it
        for table in (*git_commands.TABLES, *_TABLES):
            database.execute(table)
        with self._opened() as stream:
            reader = Commands(stream, database, blobs)
            last: Place | None = None  # of the commit with the rights
            for commit in reader.commits():
                if self._take(database, commit):
                    last = commit.place
            self.consumed = stream.tell()
        rights = "" if last is None else mark_at(database, PAGES, last)
        if last is None or not rights:
            remedy = "write it with “git fast-export --all”, of the whole history"
            raise ExportError(f"the stream of git has no commit “{LAST_MESSAGE}”: {remedy}")
        self._read_rights(database, rights)
        self._read_comments(database, mark_at(database, COMMENTS, last))
        return database

    def _take(self, database: sqlite3.Connection, commit: Commit) -> bool:
        """Take a commit of the wiki; return whether it is the one with the rights."""
        trailers = commit.trailers
        if PAGE_TRAILER not in trailers:
            is_last = commit.message.strip() in (LAST_MESSAGE, FORMER_LAST_MESSAGE)
            self._foreign += not is_last
            return is_last
        page, known = _identity(trailers[PAGE_TRAILER], trailers.get(DELETED_TRAILER)), REVISION_TRAILER in trailers
        if known:
            self._take_revision(database, commit, page, commit.record(REVISION_TRAILER))
        elif FILE_TRAILER in trailers:
            record = commit.record(FILE_TRAILER)
            content = next((mark for _, mark in commit.changes if mark), "")
            key = (page, str(record.get("name")), commit.number(record, "number"))
            database.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?)", (*key, json.dumps(record), content))
        return False

    def _take_revision(self, database: sqlite3.Connection, commit: Commit, page: str, record: dict[str, Any]) -> None:
        for path, mark in commit.changes:
            if mark and not path.startswith(SOURCES):
                database.execute("INSERT OR REPLACE INTO texts VALUES (?, ?)", (page, path))
        found = database.execute("SELECT path FROM texts WHERE page = ?", (page,)).fetchone()
        if found is None:
            raise commit.damaged(f"the first commit of the page {page!r} has no text")
        path = str(found[0])
        text, source = mark_at(database, path, commit.place), ""
        if SOURCE_TRAILER in commit.trailers:
            source = mark_at(database, source_path(path.rpartition(".")[0]), commit.place)
        key = (page, commit.number(record, "time_ms"))
        values = (*key, json.dumps(record), text, source)
        database.execute("INSERT OR REPLACE INTO revisions VALUES (?, ?, ?, ?, ?)", values)

    def _read_rights(self, database: sqlite3.Connection, mark: str) -> None:
        data = b"".join(self.blob(mark))
        lines = JsonLines(lambda: io.BytesIO(data))
        self._site = lines.site()
        for line in data.split(b"\n"):
            values = _record_in(PAGES, line)
            if values.pop("kind", "") == "page":
                key = _identity(values.get("name", ""), values.get("deleted_ms"))
                database.execute("INSERT OR REPLACE INTO pages VALUES (?, ?)", (key, json.dumps(values)))

    def _read_comments(self, database: sqlite3.Connection, mark: str) -> None:
        for line in _lines_of(self.blob(mark)) if mark else ():
            values = _record_in(COMMENTS, line)
            if values.pop("kind", "") == "comment":
                page, number = _identity(values.pop("page", ""), values.pop("deleted_ms", None)), values.get("number")
                if type(number) is not int:
                    raise ExportError(f"{COMMENTS}: a comment has no number")
                database.execute("INSERT OR REPLACE INTO comments VALUES (?, ?, ?)", (page, number, json.dumps(values)))

    # --- the copy ----------------------------------------------------------------------------------

    def blob(self, mark: str) -> Iterator[bytes]:
        assert self._database is not None, "read before"
        assert self._blobs is not None, "read before"
        found = self._database.execute("SELECT start, size FROM blobs WHERE mark = ?", (mark,)).fetchone()
        if found is None:
            raise ExportError(f"the stream of git has no blob {mark}")
        start, left = found
        while left > 0:
            self._blobs.seek(start)
            piece = self._blobs.read(min(left, COPIED_BYTES))
            start, left = start + len(piece), left - len(piece)
            yield piece

    def rows(self, query: str, page: str) -> Iterator[tuple[str, str, str]]:
        yield from self._read().execute(query, (page,))


class GitPage:
    """A ``records.RecordedPage``."""

    def __init__(self, stream: GitStream, record: PageRecord) -> None:
        self.record = record
        self._stream = stream

    def revisions(self) -> Iterator[RevisionRecord]:
        query = "SELECT record, text, source FROM revisions WHERE page = ? ORDER BY time_ms"
        for record, text, source in self._stream.rows(query, self.record.identity):
            values = {**json.loads(record), "body": self._text(text)}
            if source:
                values["source"] = self._text(source)
            yield checked_revision(values, self._damaged)

    def _text(self, mark: str) -> str:
        return b"".join(self._stream.blob(mark)).decode(errors="replace")

    def _damaged(self, why: str) -> ExportError:
        return ExportError(f"{self.record.name}: {why}")

    def files(self) -> Iterator[RecordedFile]:
        query = "SELECT record, content, '' FROM files WHERE page = ? ORDER BY name, number"
        seen: set[str] = set()
        for record, content, _ in self._stream.rows(query, self.record.identity):
            one = checked_file(json.loads(record), self._damaged)
            is_first = bool(one.sha256 and content) and one.sha256 not in seen
            seen.add(one.sha256)
            yield RecordedFile(one, self._stream.blob(content) if is_first else None)

    def comments(self) -> Iterator[CommentRecord]:
        last = 0
        query = "SELECT record, '', '' FROM comments WHERE page = ? ORDER BY number"
        for record, _, _ in self._stream.rows(query, self.record.identity):
            one = checked_comment(json.loads(record), self._damaged, last)
            yield one
            last = one.number


def _identity(name: object, deleted_ms: object) -> str:
    """Return the key of a page in the tables (``PageRecord.identity``)."""
    return PageRecord(str(name), deleted_ms=deleted_ms if isinstance(deleted_ms, int) else 0).identity


def _lines_of(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines of a content.  Raises ExportError for one that is too long."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
        if len(rest) > RECORD_LINE_BYTES:
            raise ExportError(f"a line of {COMMENTS} is longer than {RECORD_LINE_BYTES:,} bytes")
    if rest:
        yield rest


def _record_in(file: str, line: bytes) -> dict[str, Any]:
    """Return the record in a line, {} in a blank one.  Raises ExportError."""
    try:
        values = json.loads(line) if line.strip() else {}
    except ValueError as error:
        raise ExportError(f"{file}: a line is no JSON ({error})") from None
    if not isinstance(values, dict):
        raise ExportError(f"{file}: a line is no record")
    return values
