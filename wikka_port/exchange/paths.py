"""Paths of pages and files in an export: safe on every disk, and the same for the same wiki.

    page "Harbour/Pier" in Markdown     Harbour/Pier.md             subpages are folders
    page "CON"                          %43ON.wikka                 a device of Windows
    page "Who?"                         Who%3F.wikka                characters that some disk refuses
    file "pier.png" of "Harbour/Pier"   files/Harbour/Pier/pier.png

A segment escapes characters as ``%`` and the hexadecimal digits of their bytes in UTF-8, as in addresses.  Escaped are
``< > : " | ? * \\ %`` and controls, a dot or a blank at the beginning, a dot or a blank at the end, the first letter of
a device's name, the dot of a folder that ends like a file, and the ``f`` of a page's first folder "files".  An empty
segment is ``%``.

Two names whose paths differ only in case, or in the composition of accents, cannot lie side by side on every disk: the
later one gets ``%~`` and six digits of its name's MD5.  So does a segment over SEGMENT_BYTES, which is cut.  The
metadata of the export has the names of such paths; ``name_of`` does not read them.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import unicodedata
from typing import Final
from urllib.parse import unquote

from wikka_port.markup.formats import MARKDOWN, WIKKA

SEGMENT_BYTES: Final = 180  # disks take 255; an ending and a mark have room beside it
FILES: Final = "files"
ENDINGS: Final = {MARKDOWN: ".md", WIKKA: ".wikka"}
_REFUSED: Final = re.compile(r'[<>:"|?*\\%\x00-\x1f\x7f]|\A[. ]|[. ]\Z')
_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|git~[0-9]+)(?:\..*)?", re.IGNORECASE)
_LIKE_A_FILE: Final = re.compile(r"\.(?=[A-Za-z0-9]{1,10}\Z)")
_MARK: Final = "%~"
_MARK_DIGITS: Final = 6


def page_path(name: str) -> str:
    """Return the path of a page without its ending."""
    *folders, last = name.split("/")
    segments = [_folder(segment) for segment in folders] + [safe_segment(last)]
    if folders and segments[0].casefold() == FILES:
        segments[0] = _escaped(segments[0][0]) + segments[0][1:]
    return "/".join(segments)


def file_path(page: str, file: str) -> str:
    return "/".join([FILES, *map(_folder, page.split("/")), safe_segment(file)])


def name_of(path: str) -> tuple[str, str] | None:
    """Return name and format of the page at a path, or None if the path does not say them."""
    for markup, ending in ENDINGS.items():
        if path.endswith(ending) and not path.startswith((f"{FILES}/", ".")) and _MARK not in path:
            segments = path.removesuffix(ending).split("/")
            return "/".join("" if one == "%" else unquote(one) for one in segments), markup
    return None


def _folder(segment: str) -> str:
    return safe_segment(_LIKE_A_FILE.sub("\x00", segment)).replace("%00", "%2E")


def safe_segment(segment: str) -> str:
    """Return a part of a path that every disk takes."""
    if not segment:
        return "%"
    escaped = _REFUSED.sub(lambda found: _escaped(found[0]), segment)
    if _DEVICE.fullmatch(segment):
        escaped = _escaped(segment[0]) + escaped[1:]
    data = escaped.encode()
    if len(data) <= SEGMENT_BYTES:
        return escaped
    cut = re.sub(r"%[0-9A-F]?\Z", "", data[:SEGMENT_BYTES].decode(errors="ignore")).rstrip(". ")
    return f"{cut}{_mark_of(segment)}"


def _escaped(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def _mark_of(name: str) -> str:
    return _MARK + hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:_MARK_DIGITS]


def folded_path(path: str) -> str:
    """Return the form in which disks that ignore case and composition compare paths."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFKC", path).casefold())


class TakenPaths:
    """The paths of an export that are taken.  They lie in a table of a database on disk, which the caller opens."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def create_table(self) -> None:
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS taken (folded TEXT PRIMARY KEY, owner TEXT, path TEXT) WITHOUT ROWID"
        )

    def path_for(self, page: str, file: str | None = None, ending: str = "") -> str:
        """Return the path of a page without its ending, or of a file of it; the same at each call.

        ``page`` is its name, or for a deleted page its ``records.PageRecord.identity``, which gives it a path of its
        own.  ``ending`` is added to the path of a file.
        """
        name = page.partition("\0")[0]
        path, owner = (page_path(name), page)
        if file is not None:
            path, owner = file_path(name, file) + ending, f"{page}\0{file}\0{ending}".rstrip("\0")
        if self._take(path, owner):
            return path
        stem, dot, ending = path.rpartition(".") if file is not None else (path, "", "")
        marked = f"{stem}{_mark_of(owner)}{dot}{ending}" if stem else path + _mark_of(owner)
        self._take(marked, owner)
        return marked

    def _take(self, path: str, owner: str) -> bool:
        self._database.execute("INSERT OR IGNORE INTO taken VALUES (?, ?, ?)", (folded_path(path), owner, path))
        (there,) = self._database.execute("SELECT owner FROM taken WHERE folded = ?", (folded_path(path),)).fetchone()
        return bool(there == owner)
