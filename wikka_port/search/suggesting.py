"""Names of pages while one is being typed: those that begin so, then those that have the words in them.

The last word may be unfinished: any word that begins so counts.  Names come from the index of names and from the words
of titles; nothing but names is read, in calls that are bounded by names here.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from columnar.client import Connection
from wikka_port import schema
from wikka_port.schema import folded
from wikka_port.search.page_text import title_text
from wikka_port.search.postings import POSTINGS_FAMILY, key_of, parse_posting
from wikka_port.store import rows_in_steps

TYPED_CHARS: Final = 100  # of what was typed
ROWS: Final = 128  # of terms that begin as the last word does
POSTINGS: Final = 100  # read of each
CANDIDATES: Final = 500
_BEGIN: Final = 4  # letters of a word by which its stem is looked for: a stem may be shorter than what was typed


def suggested(connection: Connection, typed: str, most: int) -> list[str]:
    """At most ``most`` names."""
    text = " ".join(typed[:TYPED_CHARS].replace("_", " ").split())
    if not folded(text).strip():
        return []  # an accent alone folds to nothing
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
    """Shorter names first."""
    parts = folded(text).split()
    begin = parts[-1][:_BEGIN].encode()
    rows = connection.table(schema.TERMS).scan(
        row_prefix=begin,
        columns=[POSTINGS_FAMILY],
        filter=f"ColumnPaginationFilter({POSTINGS}, 0)",
        batch_size=ROWS,
        limit=ROWS,
    )
    keys = dict.fromkeys(
        key_of(column) for _, cells in rows for column, value in cells.items() if parse_posting(value).title
    )
    named = rows_in_steps(connection.table(schema.PAGES), islice(keys, CANDIDATES), schema.NAME)
    names = {cells[schema.NAME].decode(errors="replace") for _, cells in named if schema.NAME in cells}
    return sorted((name for name in names if _has(name, parts)), key=lambda name: (len(name), name))


def _has(name: str, parts: list[str]) -> bool:
    words = folded(title_text(name)).split()
    return all(any(word.startswith(part) for word in words) for part in parts)
