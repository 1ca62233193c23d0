"""The history of a folder's files in git: each version of a file with its time, its author and its note.

``git log`` is read once, from the newest commit to the oldest, into a private temporary database; a file is followed
over its renames.  The versions of a file are then read from one ``git cat-file``.  Memory does not grow with either.

    time     the author's, or the committer's if that is earlier; never before that of the version below it
    author   the author's name, as .mailmap has it
    note     the subject of the commit

A version counts once, in the commit that made it; a merge that itself changed the file adds a last version with the
name of the newest commit, and a file that differs from the newest commit a last version as it is on the disk.  Files
that are in no commit have one version, and so have all files where there is no git.  Files that were deleted do not
come.

A clone may have been made by anybody: git runs without its hooks, helpers, signatures, replacements and the network.
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Final

from wikka_port.imports.markdown_folder import FileTexts, PageText
from wikka_port.imports.source_text import decoded
from wikka_port.next_revision import BODY_BYTES_MAX

_SAFE: Final = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false"),
    *("-c", "core.quotePath=false", "-c", "protocol.allow=never", "-c", "core.pager=cat"),
)
_LOG: Final = (
    *("log", "--raw", "-z", "-M", "--no-abbrev", "--relative", "--no-color", "--no-ext-diff", "--no-textconv"),
    *("--encoding=UTF-8", "--topo-order", "--format=tformat:%x02%H%x00%aN%x00%at %ct%x00%s"),
)
_PIECE_BYTES: Final = 65_536
_FIELD_BYTES_MAX: Final = 1_000_000  # a longer name or subject is damage
_NOTE_CHARS: Final = 500
_CACHE_KB: Final = 8_192
_WHOLE_FOLDER: Final = "."
_REMOTE: Final = re.compile(
    r"(?:https?://(?:[^@/\s]*@)?|ssh://(?:[^@/\s]*@)?|[\w.-]+@)(?P<host>[\w.-]+)(?::\d+)?[/:](?P<path>[\w./-]+?)\.wiki(?:\.git)?/?"
)


class NoHistory(Exception):
    """The folder has no history that could be read; ``str()`` says why."""


@dataclass(frozen=True, slots=True)
class _Commit:
    author: str
    time_s: int
    note: str


class GitHistory:
    """The versions of a folder's files (``markdown_folder.PageTexts``).  A context manager, owned by one thread."""

    def __init__(self, folder: Path, files: FileTexts, database: sqlite3.Connection) -> None:
        self.is_shallow = False
        self.deleted = 0  # pages of the history that are no files any more
        self._folder = folder
        self._files = files
        self._database = database
        self._contents: subprocess.Popen[bytes] | None = None

    @classmethod
    def read(cls, folder: Path, files: FileTexts, pages: Collection[str]) -> GitHistory:
        """Read the history of the files ``pages``.  Raises NoHistory."""
        made = cls(folder, files, sqlite3.connect(""))  # "": a private file, which goes with the connection
        try:
            made._fill(frozenset(pages))
        except BaseException:
            made.close()
            raise
        return made

    def __enter__(self) -> GitHistory:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()
        if self._contents is not None:
            for stream in (self._contents.stdin, self._contents.stdout):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
            self._contents.wait()
            self._contents = None

    # --- reading the log -----------------------------------------------------------------------------

    def _fill(self, pages: Collection[str]) -> None:
        database = self._database
        database.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
        database.execute("CREATE TABLE versions (page TEXT, place INTEGER, blob TEXT, done INTEGER)")
        database.execute("CREATE TABLE commits (number INTEGER PRIMARY KEY, author TEXT, time INTEGER, note TEXT)")
        if _output(self._folder, "rev-parse", "--is-inside-work-tree").strip() != b"true":
            raise NoHistory("it is no clone of git")
        self.is_shallow = _output(self._folder, "rev-parse", "--is-shallow-repository").strip() == b"true"
        newest = {path: blob for path, blob in _tree(self._folder) if path in pages}
        followed = {path: path for path in newest}  # path at this point of the history -> path now
        ended: dict[str, str] = {}
        gone: set[str] = set()
        place = 0
        for number, (commit, changes) in enumerate(_commits(self._folder)):
            database.execute(
                "INSERT INTO commits VALUES (?, ?, ?, ?)", (number, commit.author, commit.time_s, commit.note)
            )
            for status, blob, old, new in changes:
                page = followed.get(new)
                if status == "D":
                    if new in ended and new not in followed:
                        followed[new] = ended.pop(new)  # an earlier life of the same file
                    elif page is None and new not in pages and new.lower().endswith((".md", ".markdown")):
                        gone.add(new)
                elif page is not None:
                    database.execute("INSERT INTO versions VALUES (?, ?, ?, ?)", (page, place, blob, number))
                    place += 1
                    if status == "A":
                        ended[new] = followed.pop(new)
                    elif status == "R":
                        followed.setdefault(old, followed.pop(new))
        database.execute("CREATE INDEX of_page ON versions (page, place)")
        self._add_newest(newest)
        self.deleted = len(gone)
        database.commit()

    def _add_newest(self, newest: dict[str, str]) -> None:
        """Add the version of the newest commit where a merge made it, so that no line of the log has it."""
        database = self._database
        for path, blob in newest.items():
            last = database.execute(
                "SELECT blob FROM versions WHERE page = ? ORDER BY place LIMIT 1", (path,)
            ).fetchone()
            if last is None or last[0] != blob:
                database.execute("INSERT INTO versions VALUES (?, -1, ?, 0)", (path, blob))

    # --- the versions of a file --------------------------------------------------------------------

    def is_timed(self, path: str) -> bool:
        """Return whether the times of the versions are those of a history."""
        return self._database.execute("SELECT 1 FROM versions WHERE page = ? LIMIT 1", (path,)).fetchone() is not None

    def revisions_of(self, path: str) -> Iterator[PageText]:
        """Yield the versions of a file, the oldest first.  Raises OSError."""
        now = next(self._files.revisions_of(path))
        time_ms, last = 0, b""
        found = self._database.execute(
            "SELECT v.blob, c.author, c.time, c.note FROM versions v JOIN commits c ON c.number = v.done"
            " WHERE v.page = ? ORDER BY v.place DESC",
            (path,),
        )
        blob_before = ""
        for blob, author, time_s, note in found.fetchall():
            if blob == blob_before:
                continue
            blob_before, last = blob, self._content(blob)
            time_ms = max(time_s * 1000, time_ms, 1)
            yield PageText(time_ms, author, note, last)
        if not time_ms:
            yield now
        elif last != now.data and decoded(last) != decoded(now.data):
            yield PageText(max(now.time_ms, time_ms), now.author, now.note, now.data)

    def _content(self, blob: str) -> bytes:
        """Return the bytes of a version, up to one more than a page may have.  Raises OSError."""
        process = self._contents
        if process is None or process.poll() is not None:
            process = self._contents = subprocess.Popen(
                _command(self._folder, "cat-file", "--batch"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
            )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(blob.encode() + b"\n")
        process.stdin.flush()
        head = process.stdout.readline().split()
        if len(head) != 3 or head[1] != b"blob" or not head[2].isdigit():
            raise OSError(f"git has no content {blob}")
        size_bytes = int(head[2])
        kept = process.stdout.read(min(size_bytes, BODY_BYTES_MAX + 1))
        left = size_bytes - len(kept) + 1  # the line end behind it
        while left > 0:
            piece = process.stdout.read(min(left, _PIECE_BYTES))
            if not piece:
                raise OSError(f"git ended within the content {blob}")
            left -= len(piece)
        return kept


def wiki_address(folder: Path) -> str:
    """Return the address at which the wiki of a clone is read, on GitHub and sites like it; "" if it is none."""
    try:
        remote = _output(folder, "config", "--get", "remote.origin.url").decode(errors="replace").strip()
    except NoHistory:
        return ""
    found = _REMOTE.fullmatch(remote)
    if found is None:
        return ""
    host, path = found["host"].lower(), found["path"]
    return f"https://{host}/{path}/{'-/wikis' if 'gitlab' in host else 'wiki'}/"


# --- git ------------------------------------------------------------------------------------------


def _command(folder: Path, *words: str) -> list[str]:
    return ["git", "-C", str(folder), *_SAFE, *words]


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return {
        **kept,
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def _output(folder: Path, *words: str) -> bytes:
    """Return the output of a short command of git.  Raises NoHistory."""
    try:
        done = subprocess.run(_command(folder, *words), capture_output=True, env=_environment(), check=False)
    except OSError:
        raise NoHistory("git is not installed") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise NoHistory(lines[0].removeprefix("fatal: ") if lines else "git failed")
    return done.stdout


def _fields(folder: Path, *words: str) -> Iterator[bytes]:
    """Yield the fields of an output, which end with null characters.  Raises NoHistory."""
    with tempfile.TemporaryFile() as problems:
        process = subprocess.Popen(
            _command(folder, *words),
            stdout=subprocess.PIPE,
            stderr=problems,
            stdin=subprocess.DEVNULL,
            env=_environment(),
        )
        assert process.stdout is not None
        try:
            yield from _split(process.stdout)
        finally:
            process.stdout.close()
            process.wait()
        if process.returncode:
            problems.seek(0)
            lines = problems.read(2_000).decode(errors="replace").splitlines()
            raise NoHistory(lines[0].removeprefix("fatal: ") if lines else "git failed")


def _split(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while piece := stream.read(_PIECE_BYTES):
        *whole, rest = (rest + piece).split(b"\0")
        yield from whole
        if len(rest) > _FIELD_BYTES_MAX:
            raise NoHistory("a name or a subject in the history is too long")
    if rest.strip():
        yield rest


def _tree(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield path and content of each file of the newest commit."""
    for field in _fields(folder, "ls-tree", "-r", "-z", "HEAD", "--", _WHOLE_FOLDER):
        about, tab, path = field.partition(b"\t")
        words = about.split()
        if tab and len(words) == 3 and words[1] == b"blob" and words[0] != b"120000":
            yield os.fsdecode(path), words[2].decode()


_Change = tuple[str, str, str, str]  # status, content, path before, path after


def _commits(folder: Path) -> Iterator[tuple[_Commit, list[_Change]]]:
    """Yield the commits with their changes of the folder, the newest first."""
    fields = _fields(folder, *_LOG, "--", _WHOLE_FOLDER)
    commit: _Commit | None = None
    changes: list[_Change] = []
    for field in fields:
        if field.startswith(b"\x02"):
            if commit is not None:
                yield commit, changes
            author, times, subject = (next(fields, b"").decode(errors="replace") for _ in range(3))
            written, committed = (int(one) if one.lstrip("-").isdigit() else 0 for one in (*times.split(), "", "")[:2])
            commit = _Commit(author, max(min(written, committed), 0), subject[:_NOTE_CHARS])
            changes = []
            continue
        words = field.strip().split()
        if len(words) != 5 or not words[0].startswith(b":"):
            continue
        status = words[4][:1].decode()
        old = os.fsdecode(next(fields, b""))
        new = os.fsdecode(next(fields, b"")) if status in "RC" else old
        changes.append((status, words[3].decode(), old, new))
    if commit is not None:
        yield commit, changes
