"""A stream of ``git fast-export`` as records: the way back of ``git_stream``.

The stream is read once, into a private database and a file of blobs, both on disk and gone with the process; pages are
then read from there in the order of their names.  So a reader needs as much room as the stream, and little memory.

Commits count that have the trailers of ``git_stream``, on any branch.  Commits without them, which people made in the
repository, are counted in ``remarks`` and left out: their texts belong to no revision of the wiki.

Knows nothing of the store, and starts no git.
"""

from __future__ import annotations

import io
import json
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO, Final

from wikka_port.exchange.git_stream import (
    COMMENTS,
    DELETED_TRAILER,
    FILE_TRAILER,
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

_COPIED_BYTES: Final = 256 * 1024
_HEAD_LINES: Final = (b"mark ", b"original-oid ", b"author ", b"committer ", b"encoding ")
_TRAILER: Final = re.compile(r"(Wikka-[A-Z][a-z]+): (.*)")
_ESCAPE: Final = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_TABLES: Final = (
    "CREATE TABLE blobs (mark TEXT PRIMARY KEY, start INTEGER, size INTEGER)",
    "CREATE TABLE state (path TEXT PRIMARY KEY, mark TEXT)",  # of the tree after the commit that is being read
    "CREATE TABLE revisions (page TEXT, time_ms INTEGER, record TEXT, text TEXT, source TEXT,"
    " PRIMARY KEY (page, time_ms))",
    "CREATE TABLE files (page TEXT, name TEXT, number INTEGER, record TEXT, content TEXT,"
    " PRIMARY KEY (page, name, number))",
    "CREATE TABLE texts (page TEXT PRIMARY KEY, path TEXT)",  # the path of a page's text after its last commit
    "CREATE TABLE pages (name TEXT PRIMARY KEY, record TEXT)",
    "CREATE TABLE comments (page TEXT, number INTEGER, record TEXT, PRIMARY KEY (page, number))",
)


class DamagedStream(ExportError):
    def __init__(self, at_byte: int, why: str) -> None:
        super().__init__(f"byte {at_byte:,} of the stream of git: {why}")


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
        for table in _TABLES:
            database.execute(table)
        with self._opened() as stream:
            reader = _Commands(stream, database, blobs)
            for commit in reader.commits():
                self._take(database, commit)
            self.consumed = stream.tell()
        self._read_rights(database)
        self._read_comments(database)
        return database

    def _take(self, database: sqlite3.Connection, commit: _Commit) -> None:
        trailers = commit.trailers
        if PAGE_TRAILER not in trailers:
            self._foreign += not any(path == PAGES for path, _ in commit.changes)
            return
        page, known = _identity(trailers[PAGE_TRAILER], trailers.get(DELETED_TRAILER)), trailers.get(REVISION_TRAILER)
        if known is not None:
            self._take_revision(database, commit, page, known)
        elif FILE_TRAILER in trailers:
            record = trailers[FILE_TRAILER]
            content = next((mark for _, mark in commit.changes if mark), "")
            key = (page, str(record.get("name")), int(record.get("number", 0)))
            database.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?)", (*key, json.dumps(record), content))

    def _take_revision(self, database: sqlite3.Connection, commit: _Commit, page: str, record: dict[str, Any]) -> None:
        for path, mark in commit.changes:
            if mark and not path.startswith(SOURCES):
                database.execute("INSERT OR REPLACE INTO texts VALUES (?, ?)", (page, path))
        found = database.execute("SELECT path FROM texts WHERE page = ?", (page,)).fetchone()
        if found is None:
            raise commit.damaged(f"the first commit of the page {page!r} has no text")
        path = str(found[0])
        text = _mark_at(database, path)
        source = _mark_at(database, source_path(path.rpartition(".")[0])) if SOURCE_TRAILER in commit.trailers else ""
        key = (page, int(record.get("time_ms", 0)))
        values = (*key, json.dumps(record), text, source)
        database.execute("INSERT OR REPLACE INTO revisions VALUES (?, ?, ?, ?, ?)", values)

    def _read_rights(self, database: sqlite3.Connection) -> None:
        mark = _mark_at(database, PAGES)
        if not mark:
            return
        data = b"".join(self.blob(mark))
        lines = JsonLines(lambda: io.BytesIO(data))
        self._site = lines.site()
        for line in data.splitlines():
            values = json.loads(line)
            if values.pop("kind") == "page":
                key = _identity(values["name"], values.get("deleted_ms"))
                database.execute("INSERT OR REPLACE INTO pages VALUES (?, ?)", (key, json.dumps(values)))

    def _read_comments(self, database: sqlite3.Connection) -> None:
        mark = _mark_at(database, COMMENTS)
        for line in _lines_of(self.blob(mark)) if mark else ():
            values = json.loads(line)
            if values.pop("kind", "") == "comment":
                page = _identity(values.pop("page", ""), values.pop("deleted_ms", None))
                key = (page, int(values.get("number", 0)))
                database.execute("INSERT OR REPLACE INTO comments VALUES (?, ?, ?)", (*key, json.dumps(values)))

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
            piece = self._blobs.read(min(left, _COPIED_BYTES))
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


def _mark_at(database: sqlite3.Connection, path: str) -> str:
    found = database.execute("SELECT mark FROM state WHERE path = ?", (path,)).fetchone()
    return str(found[0]) if found else ""


# --- commands of the stream ----------------------------------------------------------------------


@dataclass(slots=True)
class _Commit:
    at_byte: int
    message: str
    changes: list[tuple[str, str]] = field(default_factory=list)  # path and mark; "": deleted

    @property
    def trailers(self) -> Mapping[str, Any]:
        found = {}
        for line in self.message.rstrip("\n").rpartition("\n\n")[2].split("\n"):
            match = _TRAILER.fullmatch(line)
            if match:
                try:
                    found[match[1]] = json.loads(match[2])
                except ValueError:
                    raise self.damaged(f"the trailer {match[1]} is no JSON") from None
        return found

    def damaged(self, why: str) -> DamagedStream:
        return DamagedStream(self.at_byte, why)


class _Commands:
    """Reads the commands, copies blobs to ``blobs``, and keeps the tree in the table ``state``."""

    def __init__(self, stream: BinaryIO, database: sqlite3.Connection, blobs: IO[bytes]) -> None:
        self._stream = stream
        self._database = database
        self._blobs = blobs
        self._line = b""
        self._is_whole = True  # no "feature done", or "done" was read

    def commits(self) -> Iterator[_Commit]:
        self._next()
        while self._line:
            if self._line == b"feature done\n":
                self._is_whole = False
            elif self._line == b"done\n":
                self._is_whole = True
                break
            elif self._line == b"blob\n":
                self._read_blob()
                continue
            elif self._line.startswith(b"commit "):
                yield self._read_commit()
                continue
            elif self._line.startswith(b"tag "):
                self._skip_tag()
                continue
            elif not self._line.startswith((b"reset ", b"from ", b"progress ", b"feature ", b"option ", b"\n")):
                raise self._damaged(f"an unknown command: {self._line[:60]!r}")
            self._next()
        if not self._is_whole:
            raise self._damaged("it ends without “done”: it was cut off")

    def _next(self) -> None:
        self._line = self._stream.readline(RECORD_LINE_BYTES)

    def _damaged(self, why: str) -> DamagedStream:
        return DamagedStream(self._stream.tell(), why)

    def _read_blob(self) -> None:
        mark = ""
        self._next()
        while not self._line.startswith(b"data "):
            if self._line.startswith(b"mark "):
                mark = self._line[5:].strip().decode()
            elif not self._line.startswith(b"original-oid "):
                raise self._damaged(f"an unknown line of a blob: {self._line[:60]!r}")
            self._next()
        self._store_data(mark)

    def _store_data(self, mark: str) -> None:
        """Copy the data that the present line announces to the file of blobs."""
        left = self._announced()
        start = self._blobs.seek(0, io.SEEK_END)
        self._database.execute("INSERT OR REPLACE INTO blobs VALUES (?, ?, ?)", (mark, start, left))
        while left > 0:
            piece = self._stream.read(min(left, _COPIED_BYTES))
            if not piece:
                raise self._damaged("it ends within a blob: it was cut off")
            self._blobs.write(piece)
            left -= len(piece)
        self._next()

    def _announced(self) -> int:
        size = self._line.removeprefix(b"data ").strip()
        if not self._line.startswith(b"data ") or not size.isdigit():
            raise self._damaged(f"data with a size is expected here: {self._line[:60]!r}")
        return int(size)

    def _read_commit(self) -> _Commit:
        at_byte = self._stream.tell()
        self._next()
        while not self._line.startswith(b"data "):
            if not self._line.startswith(_HEAD_LINES):
                raise self._damaged(f"an unknown line of a commit: {self._line[:60]!r}")
            self._next()
        size = self._announced()
        if size > RECORD_LINE_BYTES:
            raise self._damaged("a message of a commit is too long")
        commit = _Commit(at_byte, self._stream.read(size).decode(errors="replace"))
        self._next()
        while self._line and self._read_change(commit):
            self._next()
        return commit

    def _read_change(self, commit: _Commit) -> bool:
        """Take a change of the tree; return False if the line is none."""
        word, _, rest = self._line.rstrip(b"\n").partition(b" ")
        if word == b"M":
            _mode, mark, path = rest.split(b" ", 2)
            commit.changes.append((_unquoted(path), mark.decode()))
        elif word == b"D":
            commit.changes.append((_unquoted(rest), ""))
        elif word in (b"R", b"C", b"N", b"deleteall"):
            raise self._damaged("it has renames or copies: write it with “git fast-export --all” without -M and -C")
        elif word not in (b"", b"from", b"merge"):
            return False
        if word in (b"M", b"D"):
            path_of, mark_of = commit.changes[-1]
            self._database.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (path_of, mark_of))
        return True

    def _skip_tag(self) -> None:
        self._next()
        while self._line and not self._line.startswith(b"data "):
            self._next()
        self._stream.read(self._announced())
        self._next()


def _unquoted(path: bytes) -> str:
    """Return a path, which git quotes as in C if it has unusual characters."""
    if path.startswith(b'"'):
        path = _ESCAPE.sub(_unescaped, path[1:].removesuffix(b'"'))
    return path.decode(errors="replace")


def _unescaped(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes([int(code, 8)]) if len(code) == 3 else _LETTERS.get(code, code)
