"""The commands of a stream of ``git fast-export``: blobs into a file, commits one after another, and all their trees.

A commit has the changes since its first parent alone.  So the content of a path is found along the parents:

    run      commits that follow one another, each the first parent of the next
    place    of a commit: its run, and its number there
    tree     the newest change of a path in the run up to the place, else in the run from which that one branches off

The tables TABLES lie in the reader's private database.  Knows nothing of pages and their records (``git_reader``).
"""

from __future__ import annotations

import io
import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO, Final

from wikka_port.exchange.records import ExportError
from wikka_port.limits import RECORD_LINE_BYTES

COPIED_BYTES: Final = 256 * 1024
_HEAD_LINES: Final = (b"mark ", b"original-oid ", b"author ", b"committer ", b"encoding ")
_TRAILER: Final = re.compile(r"(Wikka-[A-Z][a-z]+): (.*)")
_ESCAPE: Final = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
TABLES: Final = (
    "CREATE TABLE blobs (mark TEXT PRIMARY KEY, start INTEGER, size INTEGER)",
    "CREATE TABLE runs (run INTEGER PRIMARY KEY, last INTEGER, parent INTEGER, number INTEGER)",  # parent NULL: a root
    "CREATE TABLE commits (mark TEXT PRIMARY KEY, run INTEGER, number INTEGER)",
    "CREATE TABLE changes (path TEXT, run INTEGER, number INTEGER, mark TEXT, PRIMARY KEY (path, run, number))"
    " WITHOUT ROWID",
)
Place = tuple[int, int]  # run and number of a commit


class DamagedStream(ExportError):
    def __init__(self, at_byte: int, why: str) -> None:
        super().__init__(f"byte {at_byte:,} of the stream of git: {why}")


def mark_at(database: sqlite3.Connection, path: str, place: Place) -> str:
    """Return the mark of the content that a path has after the commit at ``place``; "" if it has none there."""
    at: Place | None = place
    while at is not None:
        found = database.execute(
            "SELECT mark FROM changes WHERE path = ? AND run = ? AND number <= ? ORDER BY number DESC LIMIT 1",
            (path, *at),
        ).fetchone()
        if found is not None:
            return str(found[0])
        parent, number = database.execute("SELECT parent, number FROM runs WHERE run = ?", (at[0],)).fetchone()
        at = None if parent is None else (parent, number)
    return ""


@dataclass(slots=True)
class Commit:
    at_byte: int
    message: str
    place: Place
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

    def record(self, trailer: str) -> dict[str, Any]:
        """Return the record in a trailer.  Raises DamagedStream."""
        found = self.trailers[trailer]
        if not isinstance(found, dict):
            raise self.damaged(f"the trailer {trailer} is no record")
        return found

    def number(self, record: Mapping[str, Any], name: str) -> int:
        """Return a number of a record, 0 if it is not there.  Raises DamagedStream."""
        found = record.get(name, 0)
        if type(found) is not int:
            raise self.damaged(f"{name} is no number")
        return found

    def damaged(self, why: str) -> DamagedStream:
        return DamagedStream(self.at_byte, why)


class Commands:
    """Reads the commands, copies blobs to ``blobs``, and keeps the changes of all trees in the database."""

    def __init__(self, stream: BinaryIO, database: sqlite3.Connection, blobs: IO[bytes]) -> None:
        self._stream = stream
        self._database = database
        self._blobs = blobs
        self._line = b""
        self._tips: dict[bytes, Place] = {}  # of branches; there are as many as the repository has
        self._runs = 0
        self._is_whole = True  # no "feature done", or "done" was read

    def commits(self) -> Iterator[Commit]:
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
            elif self._line.startswith(b"reset "):
                self._reset()
                continue
            elif not self._line.startswith((b"progress ", b"feature ", b"option ", b"\n")):
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
                mark = self._line[5:].strip().decode(errors="replace")
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
            piece = self._stream.read(min(left, COPIED_BYTES))
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

    def _reset(self) -> None:
        """Let a branch begin anew, or at the commit that the next line names."""
        branch = self._line.split(b" ", 1)[1].strip()
        self._tips.pop(branch, None)
        self._next()
        if self._line.startswith(b"from "):
            place = self._place_of(self._line.split(b" ", 1)[1].strip())
            if place is not None:
                self._tips[branch] = place
            self._next()

    def _place_of(self, name: bytes) -> Place | None:
        """Return the place of the commit of a mark or a branch, or None if the stream does not have it."""
        if not name.startswith(b":"):
            return self._tips.get(name)
        found = self._database.execute(
            "SELECT run, number FROM commits WHERE mark = ?", (name.decode(errors="replace"),)
        ).fetchone()
        return None if found is None else (found[0], found[1])

    def _read_commit(self) -> Commit:
        at_byte, branch, mark = self._stream.tell(), self._line.split(b" ", 1)[1].strip(), b""
        self._next()
        while not self._line.startswith(b"data "):
            if not self._line.startswith(_HEAD_LINES):
                raise self._damaged(f"an unknown line of a commit: {self._line[:60]!r}")
            if self._line.startswith(b"mark "):
                mark = self._line[5:].strip()
            self._next()
        size = self._announced()
        if size > RECORD_LINE_BYTES:
            raise self._damaged("a message of a commit is too long")
        message = self._stream.read(size).decode(errors="replace")
        self._next()
        parent = self._tips.get(branch)
        while self._line == b"\n":
            self._next()
        if self._line.startswith(b"from "):
            parent = self._place_of(self._line.split(b" ", 1)[1].strip())
            self._next()
        self._tips[branch] = place = self._placed(parent)
        commit = Commit(at_byte, message, place)
        if mark:
            values = (mark.decode(errors="replace"), *place)
            self._database.execute("INSERT OR REPLACE INTO commits VALUES (?, ?, ?)", values)
        while self._line and self._read_change(commit):
            self._next()
        return commit

    def _placed(self, parent: Place | None) -> Place:
        """Return the place of a commit: the next one in the run of its parent, or the first of a new run."""
        if parent is not None:
            run, number = parent
            (last,) = self._database.execute("SELECT last FROM runs WHERE run = ?", (run,)).fetchone()
            if last == number:
                self._database.execute("UPDATE runs SET last = ? WHERE run = ?", (number + 1, run))
                return run, number + 1
        self._runs += 1
        of = parent or (None, None)
        self._database.execute("INSERT INTO runs VALUES (?, 1, ?, ?)", (self._runs, *of))
        return self._runs, 1

    def _read_change(self, commit: Commit) -> bool:
        """Take a change of the tree; return False if the line is none."""
        word, _, rest = self._line.rstrip(b"\n").partition(b" ")
        if word == b"M":
            parts = rest.split(b" ", 2)
            if len(parts) < 3:
                raise self._damaged(f"an unknown change of a commit: {self._line[:60]!r}")
            commit.changes.append((_unquoted(parts[2]), parts[1].decode(errors="replace")))
        elif word == b"D":
            commit.changes.append((_unquoted(rest), ""))
        elif word in (b"R", b"C", b"N", b"deleteall"):
            raise self._damaged("it has renames or copies: write it with “git fast-export --all” without -M and -C")
        elif word not in (b"", b"merge"):
            return False
        if word in (b"M", b"D"):
            path_of, mark_of = commit.changes[-1]
            values = (path_of, *commit.place, mark_of)
            self._database.execute("INSERT OR REPLACE INTO changes VALUES (?, ?, ?, ?)", values)
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
