"""WikkaWiki's own tables in a SQLite file, whatever they came from: a dump, a server, or WikkaWiki's own SQLite.

    pages     id tag time body owner user latest note; title since 1.3, handler until 1.2
    acls      page_tag read_acl write_acl; comment_acl until 1.2, then comment_read_acl comment_post_acl
    users     name password email revisioncount changescount doubleclickedit signuptime status theme ...
    comments  id page_tag time comment user; parent, status and deleted since 1.3

A dump and a server are copied into a temporary file, texts as text and numbers as they are written; tables with other
names than these are left out.  WikkaWiki's own file is opened read-only.  The names begin with a prefix, ``wikka_`` by
habit.  The one table that ends with "pages" and has the columns of pages says which it is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from wikka_port.wikkawiki.sql_dump import Row, SqlDump
from wikka_port.wikkawiki.stored_text import TextReader, WordLinks, word_links

KINDS: Final = ("pages", "acls", "users", "comments")
_OF_PAGES: Final = frozenset({"id", "tag", "time", "body", "owner", "user", "latest", "note"})
_ROWS_AT_ONCE: Final = 200
_CHARS_AT_ONCE: Final = 4_000_000
_CACHE_KB: Final = 16_384


class NoWikkaWiki(Exception):
    """The source has no tables of a WikkaWiki; ``str()`` says what to do."""


@dataclass(slots=True)
class Source:
    """The tables of one WikkaWiki."""

    database: sqlite3.Connection
    tables: dict[str, str]  # kind -> its table
    columns: dict[str, tuple[str, ...]]  # kind -> columns
    repaired: int = 0  # texts that were encoded twice
    damaged: int = 0  # texts that were not valid in the dump's character set
    prefix: str = ""
    version: str = ""  # of the program that showed the pages, by its configuration; "": unknown
    counts: dict[str, int] = field(default_factory=dict)  # kind -> rows

    @property
    def escapes_html(self) -> bool:
        """Whether notes, names and lists are stored with HTML entities: since 1.3, when pages got titles."""
        return "title" in self.columns["pages"]

    @property
    def word_links(self) -> WordLinks | None:
        """To which pages links have words behind a blank; None if that is not known."""
        return word_links(self.version, has_titles=self.has("pages", "title"))

    def has(self, kind: str, column: str) -> bool:
        return column in self.columns.get(kind, ())

    def rows(self, kind: str, columns: Sequence[str], order: str) -> Iterator[tuple[str, ...]]:
        """Yield the ``columns`` of all rows by ``order``, a column; "" for NULL, and for a column that is missing."""
        if kind not in self.tables:
            return
        wanted = ", ".join(quoted(one) if self.has(kind, one) else "''" for one in columns)
        found = self.database.execute(f"SELECT {wanted} FROM {quoted(self.tables[kind])} ORDER BY {quoted(order)}")
        for row in found:
            yield tuple("" if value is None else str(value) for value in row)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def is_kind(table: str) -> bool:
    return table.lower().endswith(KINDS)


# --- a dump, or a server -----------------------------------------------------------------------


def copied(pieces: Iterable[bytes], path: Path, prefix: str | None = None) -> Source:
    """Copy the tables of a dump into a new file at ``path``.  Raises SqlDumpError, DumpError or NoWikkaWiki."""
    dump = SqlDump(pieces, is_kind)
    reader = TextReader(lambda: dump.charset)
    with Copy(path, reader.text) as copy:
        for row in dump:
            copy.add(row)
        for table, columns in dump.columns.items():
            if is_kind(table):
                copy.make(table, columns)  # those without rows
    return replace(opened(path, prefix), repaired=reader.repaired, damaged=reader.damaged)


class Copy:
    """Writes rows into a new SQLite file.  A context manager; leaving it writes the last rows."""

    def __init__(self, path: Path, text: Callable[[bytes], str]) -> None:
        """Take the ``path`` of the file, and ``text``, which reads a value."""
        self._path = path
        self._text = text
        self._made: dict[str, tuple[str, ...]] = {}
        self._waiting: list[list[str | None]] = []
        self._waiting_chars = 0
        self._of: tuple[str, tuple[str, ...]] | None = None  # table and columns of the rows that wait

    def __enter__(self) -> Copy:
        self._database = sqlite3.connect(self._path, isolation_level=None)
        self._database.execute("PRAGMA journal_mode=OFF")
        self._database.execute("PRAGMA synchronous=OFF")
        self._database.execute("BEGIN")
        return self

    def __exit__(self, kind: object, error: object, at: object) -> None:
        if error is None:
            self._write()
            self._database.execute("COMMIT")
        self._database.close()

    def make(self, table: str, columns: tuple[str, ...]) -> None:
        if table not in self._made:
            self._made[table] = columns
            listed = ", ".join(f"{quoted(name)}{' INTEGER' if name == 'id' else ' TEXT'}" for name in columns)
            self._database.execute(f"CREATE TABLE {quoted(table)} ({listed})")

    def add(self, row: Row) -> None:
        of = (row.table, row.columns)
        if of != self._of:
            self._write()
            self._of = of
            self.make(*of)
        values = [None if value is None else self._text(value) for value in row.values]
        self._waiting.append(values)
        self._waiting_chars += sum(len(value) for value in values if value is not None)
        if len(self._waiting) >= _ROWS_AT_ONCE or self._waiting_chars >= _CHARS_AT_ONCE:
            self._write()

    def _write(self) -> None:
        if self._of is not None and self._waiting:
            table, columns = self._of
            listed, marks = ", ".join(map(quoted, columns)), ", ".join("?" * len(columns))
            self._database.executemany(f"INSERT INTO {quoted(table)} ({listed}) VALUES ({marks})", self._waiting)
        self._waiting, self._waiting_chars = [], 0


class _Reading(sqlite3.Connection):
    """A connection that reads bytes that are no UTF-8, too."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **{**options, "isolation_level": None})
        self.text_factory = lambda value: value.decode("utf-8", "replace")


# --- the file ----------------------------------------------------------------------------------


def opened(path: Path, prefix: str | None = None) -> Source:
    """Open a SQLite file read-only and find its tables.  Raises NoWikkaWiki."""
    try:
        database = sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True, factory=_Reading)
        database.execute(f"PRAGMA cache_size=-{_CACHE_KB}")
        return _found(database, prefix)
    except sqlite3.Error as error:
        raise NoWikkaWiki(f"{path} is no SQLite database: {error}") from None


def _found(database: sqlite3.Connection, prefix: str | None) -> Source:
    names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    columns = {name: _columns(database, name) for name in names if is_kind(name)}
    found = [name[: -len("pages")] for name in columns if name.endswith("pages") and set(columns[name]) >= _OF_PAGES]
    if prefix is not None:
        found = [one for one in found if one == prefix]
    if len(found) != 1:
        database.close()
        raise NoWikkaWiki(_unclear(found, prefix))
    begin = found[0]
    tables = {kind: begin + kind for kind in KINDS if begin + kind in columns}
    source = Source(database, tables, {kind: columns[name] for kind, name in tables.items()}, prefix=begin)
    for kind, name in tables.items():
        source.counts[kind] = database.execute(f"SELECT count(*) FROM {quoted(name)}").fetchone()[0]
    return source


def _columns(database: sqlite3.Connection, table: str) -> tuple[str, ...]:
    return tuple(row[1] for row in database.execute(f"PRAGMA table_info({quoted(table)})"))


def _unclear(found: Sequence[str], prefix: str | None) -> str:
    if found:
        return f"there are several wikis, with the prefixes {', '.join(map(repr, found))}: choose one with --prefix"
    begin = "" if prefix is None else f"whose names begin with {prefix!r} "
    needed = ", ".join(sorted(_OF_PAGES))
    return f"there are no tables of a WikkaWiki {begin}(one whose name ends with “pages”, with the columns {needed})"
