"""The format number of a wiki's own tables, stored in the folder, so that an older program misreads no newer folder.

    table ``site``, row "format", cell ``secret:number``: decimal; absent: 0
                                  cell ``secret:first``: the format with which the folder was made; absent: below 4

The number lies in the family ``secret`` only because every folder has that family; it is no secret.  ``wikka prepare``
writes the number and never lowers it.  Every program that opens a wiki compares it (``checked``) and refuses a number
higher than its own.

The formats, oldest first.  A change that an older program would misread or damage gets the next number, with a
paragraph here.  A new table or cell that an older program ignores gets none.

    0   Folders older than the number.
    1   Revisions lie under the key in the third part of ``meta:versioncount``; deleted pages are rows of ``deleted``;
        a fourth part is the move that holds a page (``schema``).  ``backlinks`` and ``wanted`` have the pages that
        others include.
    2   A page may have a language (``page_languages``), by whose rules its words stand in ``terms``.
    3   Imported revisions keep their original text in the family ``source`` (``schema``), which is no cell of a page.
    4   A page's row has its files (``file:``); their versions lie in ``files`` under the key of the page's history.
    5   ``backlinks`` has the files that texts name, under keys of their own (``file_uses``); ``terms`` and ``docs``
        have the words of comments and files (``search.beside_pages``).
    6   ``terms`` and ``docs`` have the characters of pairs besides (``search.words``); an older program would leave
        those of words that an edit removes.  A row of ``files`` may keep its token in ``v:erased`` though it is whole
        (``files.file_rows``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from columnar.client import Connection
from wikka_port.accounts.tables import SITE
from wikka_port.schema import TableSpec

FORMAT: Final = 6
INCLUDES_LISTED: Final = 1  # the first with included pages in ``backlinks``
ROW: Final = b"format"
NUMBER: Final = b"secret:number"
FIRST: Final = b"secret:first"
CHARACTERS_INDEXED: Final = 6  # the first in which a search for one character finds it within words
FILES_NAMED: Final = 5  # the first with the files that texts name in ``backlinks``
FILES_KNOWN: Final = 4  # the first with files; pages of older folders show pictures from anywhere


class NewerFolder(Exception):
    """A newer program wrote the folder; nothing was read or written."""

    def __init__(self, number: int) -> None:
        super().__init__(f"This wiki's folder is of format {number}; this program knows up to {FORMAT}: update it")
        self.number = number


@dataclass(frozen=True, slots=True)
class Folder:
    number: int
    missing: tuple[str, ...]  # tables of this program that the folder lacks
    first: int = 0  # the format with which it was made; 0: older than FILES_KNOWN

    def advice(self) -> str:
        """Return a sentence for the administrator, or "" if there is nothing to do."""
        if self.number == FORMAT and not self.missing:
            return ""
        lacks = f" and lacks the tables {', '.join(self.missing)}" if self.missing else ""
        return (
            f"This wiki's folder is of format {self.number}{lacks}; this program writes format {FORMAT}: "
            "run wikka prepare"
        )


def read_folder(connection: Connection, tables: tuple[TableSpec, ...]) -> Folder:
    """Read the folder's number and missing tables, in two calls.  Raises NewerFolder."""
    there = set(connection.tables())
    cells = connection.table(SITE).row(ROW, columns=[NUMBER, FIRST]) if SITE in there else {}
    number, first = (int(cells[column]) if cells.get(column, b"").isdigit() else 0 for column in (NUMBER, FIRST))
    if number > FORMAT:
        raise NewerFolder(number)
    return Folder(number, tuple(table.name.decode() for table in tables if table.name not in there), first)


def note(connection: Connection, *, is_new: bool) -> None:
    """Write this program's number.  Call ``read_folder`` before: it refuses a higher number, so none is lowered."""
    number = b"%d" % FORMAT
    connection.table(SITE).put(ROW, {NUMBER: number, FIRST: number} if is_new else {NUMBER: number})
