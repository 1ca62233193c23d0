"""Paths of the pages and files of a wiki in a static site, and the links between its pages.

    pages/Harbour/Pier.html         the page "Harbour/Pier"; paths are those of ``paths``
    files/Harbour/Pier/pier.png     a file of it
    files/Harbour/Pier/a.html.txt   a file that a browser would run as a page of its own gets an ending that it shows

All of it lies in a database on disk (``spool``), so memory does not grow with the wiki.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from wikka_port.exchange.paths import TakenPaths
from wikka_port.exchange.static_html import as_address
from wikka_port.files.content_types import BY_MEDIA_TYPE
from wikka_port.files.file_rows import CurrentFile, lookup_key
from wikka_port.limits import STATIC_BACKLINKS
from wikka_port.names import InvalidName
from wikka_port.page_rows import Page
from wikka_port.schema import folded
from wikka_port.urls import route

INDEX: Final = "index.html"
_AS_TEXT: Final = ".txt"
_TABLES: Final = (
    "CREATE TABLE pages (id INTEGER PRIMARY KEY, name TEXT UNIQUE, folded TEXT, path TEXT, author TEXT,"
    " time_ms INTEGER, written INTEGER DEFAULT 0)",
    "CREATE TABLE files (page TEXT, key TEXT, number INTEGER, link TEXT, picture TEXT, PRIMARY KEY (page, key))",
    "CREATE TABLE links (target TEXT, source INTEGER)",
    "CREATE TABLE contents (sha256 TEXT PRIMARY KEY, path TEXT)",
)
Link = tuple[str, str]  # a page's name and its path


class ListedPage(NamedTuple):
    """A page in the index, with author and time of its last edit."""

    name: str
    path: str
    author: str
    time_ms: int


class FilePaths(NamedTuple):
    link: str  # of a link to the file
    picture: str  # of the file as a picture; the same, but for pictures that can have script


def file_paths(taken: TakenPaths, page: str, name: str, media_type: str) -> FilePaths:
    """Return the paths of a file.  A type that a browser might run, opened by itself, is linked to as a text."""
    known = BY_MEDIA_TYPE.get(media_type)
    is_active = known is None or (known.text and not known.inline)
    if media_type == "image/svg+xml":
        return FilePaths(taken.path_for(page, name, _AS_TEXT), taken.path_for(page, name))
    path = taken.path_for(page, name, _AS_TEXT if is_active else "")
    return FilePaths(path, path)


class StaticPlaces:
    """The places of one export."""

    def __init__(self, database: sqlite3.Connection, taken: TakenPaths, root_page: str) -> None:
        self._database = database
        self._taken = taken
        self._root_page = root_page

    def create_tables(self) -> None:
        self._taken.create_table()
        for one in _TABLES:
            self._database.execute(one)
        self._taken.path_for(self._root_page)  # without a mark, whatever page is read first

    # --- what there is ------------------------------------------------------------------------------

    def add_page(self, page: Page, links: Iterable[str]) -> None:
        name = page.name
        path = f"pages/{self._taken.path_for(name)}.html"
        row = self._database.execute(
            "INSERT INTO pages (name, folded, path, author, time_ms) VALUES (?, ?, ?, ?, ?)",
            (name, folded(name), path, page.author, page.time_ms),
        )
        self._database.executemany(
            "INSERT INTO links VALUES (?, ?)", [(target, row.lastrowid) for target in links if target != name]
        )

    def add_file(self, page: str, name: str, file: CurrentFile) -> tuple[FilePaths, str]:
        """Return the paths of a file, and the path of an equal content that was added before, or ""."""
        paths = file_paths(self._taken, page, name, file.media_type)
        row = (page, lookup_key(name), file.number, *paths)
        self._database.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?)", row)
        equal = self._one("SELECT path FROM contents WHERE sha256 = ?", file.sha256)
        if not equal:
            self._database.execute("INSERT INTO contents VALUES (?, ?)", (file.sha256, paths.link))
        return paths, equal

    def forget_file(self, page: str, name: str, file: CurrentFile) -> None:
        """Drop a file whose content is missing."""
        self._database.execute("DELETE FROM files WHERE page = ? AND key = ?", (page, lookup_key(name)))
        self._database.execute("DELETE FROM contents WHERE sha256 = ?", (file.sha256,))

    def finish_adding(self) -> None:
        self._database.execute("CREATE INDEX links_by_target ON links (target)")
        self._database.execute("CREATE INDEX pages_by_name ON pages (folded, name)")
        self._database.execute("CREATE INDEX pages_by_path ON pages (path)")
        self._database.execute("CREATE INDEX files_by_link ON files (link)")
        self._database.execute("CREATE INDEX files_by_picture ON files (picture)")

    def mark_written(self, name: str) -> None:
        self._database.execute("UPDATE pages SET written = 1 WHERE name = ?", (name,))

    # --- where it is --------------------------------------------------------------------------------

    @property
    def page_count(self) -> int:
        (number,) = self._database.execute("SELECT count(*) FROM pages").fetchone()
        return int(number)

    @property
    def start(self) -> str:
        """The path at which a reader begins."""
        return self.page_path(self._root_page) or INDEX

    def page_path(self, name: str) -> str:
        """Return the path of a page, or "" if it is not in the export."""
        return self._one("SELECT path FROM pages WHERE name = ?", name)

    def is_page_path(self, path: str) -> bool:
        return bool(self._one("SELECT path FROM pages WHERE path = ?", path))

    def is_file_path(self, path: str) -> bool:
        found = self._one("SELECT link FROM files WHERE link = ?", path)
        return bool(found or self._one("SELECT picture FROM files WHERE picture = ?", path))

    def digest_of_files(self) -> str:
        """Return a digest of the places of all files.  O(files)."""
        made = sha256()
        for row in self._database.execute("SELECT * FROM files ORDER BY page, key"):
            made.update(repr(row).encode("utf-8", "replace"))
        return made.hexdigest()

    def pages(self) -> Iterator[ListedPage]:
        """Yield all pages in alphabetical order."""
        found = self._database.execute("SELECT name, path, author, time_ms FROM pages ORDER BY folded, name")
        return (ListedPage(*row) for row in found)

    def unwritten(self) -> list[Link]:
        return list(self._database.execute("SELECT name, path FROM pages WHERE NOT written"))

    def backlinks(self, name: str) -> tuple[list[Link], int]:
        """Return up to STATIC_BACKLINKS pages that link to a page, and the number of further ones."""
        joined = "FROM links JOIN pages ON pages.id = links.source WHERE links.target = ?"
        (number,) = self._database.execute(f"SELECT count(*) {joined}", (name,)).fetchone()
        order = f"SELECT pages.name, pages.path {joined} ORDER BY folded, name LIMIT {STATIC_BACKLINKS}"
        found = self._database.execute(order, (name,)).fetchall()
        return found, number - len(found)

    def of_page(self, path: str) -> PagePlaces:
        """Return the places as the page at ``path`` links to them."""
        return PagePlaces(self, path.count("/"))

    def target_of(self, address: str, *, as_picture: bool) -> str:
        """Return the path and the fragment of what an address of the wiki leads to, or ""."""
        try:
            parts = urlsplit(address)
            meant = route(unquote(parts.path), self._root_page)
        except (InvalidName, ValueError):
            return ""
        if meant.kind == "file":
            return self._file_path(meant.name, meant.file, parts.query, as_picture=as_picture)
        if as_picture:
            return "icon.svg" if meant.kind == "static" and meant.name == "icon.svg" else ""
        if meant.kind == "site" and meant.handler == "pageindex":
            return INDEX
        if meant.kind != "page" or meant.handler != "show" or parts.query not in ("", "redirect=no"):
            return ""
        path = self.page_path(meant.name)
        return f"{as_address(path)}#{parts.fragment}" if path and parts.fragment else as_address(path)

    def _file_path(self, page: str, name: str, query: str, *, as_picture: bool) -> str:
        """Return the address of a file's newest version; of older ones there is none."""
        found = self._database.execute(
            "SELECT number, link, picture FROM files WHERE page = ? AND key = ?", (page, lookup_key(name))
        ).fetchone()
        if found is None:
            return ""
        number, link, picture = found
        wanted = query.partition("v=")[2].partition("&")[0]
        if wanted.isdigit() and int(wanted[:10]) < number:
            return ""
        return as_address(picture if as_picture else link)

    def _one(self, query: str, value: str) -> str:
        found = self._database.execute(query, (value,)).fetchone()
        return "" if found is None else str(found[0])


class PagePlaces:
    """A ``static_html.Places`` of one page."""

    def __init__(self, places: StaticPlaces, depth: int) -> None:
        self.up = "../" * depth
        self._places = places

    def link(self, address: str) -> str | None:
        found = self._places.target_of(address, as_picture=False)
        return self.up + found if found else None

    def picture(self, address: str) -> str | None:
        found = self._places.target_of(address, as_picture=True)
        return self.up + found if found else None

    def links_to(self, links: Iterable[Link]) -> list[Link]:
        """Return names and addresses of pages."""
        return [(name, self.up + as_address(path)) for name, path in links]
