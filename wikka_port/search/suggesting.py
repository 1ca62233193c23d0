"""Completions of a text that is being typed: names that begin with it, names with its words, and headings with them.

The last word may be unfinished: any word that begins with it counts.  A typed word that begins with a Chinese, Japanese
or Korean character may stand within a word, since these have few blanks.  Names come from the index of names and from
the words of titles; only names are read.  For headings, the index of words tells which pages have a word in a heading,
and the texts of these pages are read.  At most HEADING_PAGES pages and HEADING_CHARS characters are read, and no page
of more than 2 ** HEADING_WORDS words.  The constants of this module bound every call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from columnar.client import Connection
from wikka_port import schema
from wikka_port.page_rows import Cells, autolink_of, is_there, markup_of, text_in
from wikka_port.schema import folded
from wikka_port.search.beside_pages import kind_of
from wikka_port.search.found_documents import Readable
from wikka_port.search.page_text import headings, title_text
from wikka_port.search.postings import POSTINGS_FAMILY, Posting, key_of, parse_posting
from wikka_port.search.words import PAIRED, is_paired
from wikka_port.store import rows_in_steps

TYPED_CHARS: Final = 100  # of the typed text; the rest is ignored
ROWS: Final = 128  # of ``terms``, whose stems begin like the last word
POSTINGS: Final = 100  # read of each such row
CANDIDATES: Final = 500
# First letters of a word by which stems are found: a stem may be shorter than the typed word.
_BEGIN: Final = re.compile(f"[{PAIRED}]{{1,2}}|[^{PAIRED}]{{1,4}}")
HEADING_PAGES: Final = 16
HEADING_CHARS: Final = 60_000  # of texts whose headings are read: some 15 ms
HEADING_WORDS: Final = 13
SHORTEST: Final = 3  # letters of the last word; fewer begin words of too many headings.  1 of those taken in pairs
_STEP: Final = 8  # pages read together
_WORDS: Final = re.compile(r"\w+")


class HeadingOf(NamedTuple):
    page: str
    text: str
    id: str


def suggested(connection: Connection, typed: str, most: int) -> list[str]:
    """Return at most ``most`` names of pages that complete the typed text, those that begin with it first."""
    text = " ".join(typed[:TYPED_CHARS].replace("_", " ").split())
    if not folded(text).strip():
        return []  # a lone accent folds to nothing
    found = list(_beginning_so(connection, text, most))
    if len(found) < most:
        found += [name for name in _with_words(connection, text) if name not in found]
    return found[:most]


def _beginning_so(connection: Connection, text: str, most: int) -> list[str]:
    rows = connection.table(schema.NAMES).scan(
        row_prefix=schema.name_prefix(text), columns=[b"meta"], batch_size=most, limit=most
    )
    return [schema.name_of_row(row) for row, _ in rows]


def _with_words(connection: Connection, text: str) -> list[str]:
    """Return names with all the words, shorter names first."""
    parts = folded(text).split()
    keys = dict.fromkeys(key for key, posting in _postings(connection, parts[-1]) if posting.title)
    named = rows_in_steps(connection.table(schema.PAGES), islice(keys, CANDIDATES), schema.NAME)
    names = {text_in(cells, schema.NAME) for _, cells in named if schema.NAME in cells}
    return sorted((name for name in names if _has(name, parts)), key=lambda name: (len(name), name))


def _has(name: str, parts: list[str]) -> bool:
    words = folded(title_text(name)).split()
    return all(any(_begins(word, part) for word in words) for part in parts)


def _begins(word: str, part: str) -> bool:
    """Return whether a word begins with the typed one, or has it inside if that is of the characters in pairs."""
    return word.startswith(part) or (is_paired(part) and part in word)


def _postings(connection: Connection, part: str) -> Iterator[tuple[bytes, Posting]]:
    """Yield keys of pages with a word that may begin with ``part``, each with the word's posting."""
    rows = connection.table(schema.TERMS).scan(
        row_prefix=_BEGIN.findall(part)[0].encode(),
        columns=[POSTINGS_FAMILY],
        filter=f"ColumnPaginationFilter({POSTINGS}, 0)",
        batch_size=ROWS,
        limit=ROWS,
    )
    found = ((key_of(column), parse_posting(value)) for _, cells in rows for column, value in cells.items())
    return ((key, posting) for key, posting in found if kind_of(key) == "page")


# --- headings ------------------------------------------------------------------------------------


def suggested_headings(
    connection: Connection, typed: str, most: int, readable: Readable | None = None
) -> list[HeadingOf]:
    """Return at most ``most`` headings with all the words.

    Headings that begin with the typed text come first, then shorter ones before longer ones.
    """
    parts = _WORDS.findall(folded(typed[:TYPED_CHARS].replace("_", " ")))
    if not parts or (len(parts[-1]) < SHORTEST and not is_paired(parts[-1])):
        return []
    found: list[HeadingOf] = []
    left = HEADING_CHARS
    for pages in _read(connection, _with_headings(connection, parts[-1])):
        names = [text_in(cells, schema.NAME) for cells in pages]
        may_read = names if readable is None else readable(names)
        for name, cells in zip(names, pages, strict=True):
            body = text_in(cells, schema.BODY)
            if name in may_read and len(body) <= left and _has_line(body, parts):
                left -= len(body)
                found += _headings_of(name, body, cells, parts)
        if len(found) >= most:
            break
    begin = " ".join(parts)
    found.sort(key=lambda one: (not folded(one.text).startswith(begin), len(one.text), one))
    return found[:most]


def _with_headings(connection: Connection, part: str) -> list[bytes]:
    """Return keys of pages, sorted by how often words that begin with ``part`` occur in their headings."""
    times: dict[bytes, int] = {}
    for key, posting in _postings(connection, part):
        if posting.headings and posting.length <= HEADING_WORDS:
            times[key] = times.get(key, 0) + posting.headings
    return sorted(times, key=lambda key: (-times[key], key))[:HEADING_PAGES]


def _read(connection: Connection, keys: Sequence[bytes]) -> Iterator[list[Cells]]:
    columns = (schema.VERSIONCOUNT, schema.NAME, schema.BODY, schema.AUTOLINK, schema.FORMAT)
    for at in range(0, len(keys), _STEP):
        rows = rows_in_steps(connection.table(schema.PAGES), keys[at : at + _STEP], *columns)
        yield [cells for _, cells in rows if is_there(cells) and schema.NAME in cells and schema.BODY in cells]


def _has_line(body: str, parts: Sequence[str]) -> bool:
    """Return whether one line of the text has all parts; if none has, no heading can, and parsing is unnecessary."""
    return any(all(part in line for part in parts) for line in folded(body).splitlines() if parts[-1] in line)


def _headings_of(name: str, body: str, cells: Cells, parts: Sequence[str]) -> Iterator[HeadingOf]:
    for heading in headings(body, autolink=autolink_of(cells), markup=markup_of(cells)):
        words = _WORDS.findall(folded(heading.text))
        is_name = folded(heading.text) in folded(title_text(name)).split("\n")  # its page is suggested already
        if not is_name and all(any(_begins(word, part) for word in words) for part in parts):
            yield HeadingOf(name, heading.text, heading.id)
