"""Pages of an older wiki that include others: listed as linking there, as those are that are saved today.

Older programs had no included page in ``backlinks``, so the links of a rename did not find it there.  The pages are
found by their texts, once, on the store's side and in steps that are short for a large wiki, too.
"""

from __future__ import annotations

from typing import Final

from columnar.client import Connection
from columnar.triggers.api import Change, ChangedCell
from wikka_port import schema
from wikka_port.application_indexes import run_indexes
from wikka_port.page_rows import is_there, stamp_of

_STEPS: Final = tuple(b"%02x" % number for number in range(256))  # beginnings of keys
_CALL: Final = rb"\{\{\s*[iI][nN][cC][lL][uU][dD][eE]\s"
_FILTER: Final = b"SingleColumnValueFilter('body', 'latest', =, 'regexstring:%s', true, true)" % _CALL
_FAMILIES: Final = (b"meta", b"body", b"user", b"note")


def list_includes(connection: Connection) -> int:
    """How many pages include others.  Doing it twice is doing it once.  O(all texts)."""
    count = 0
    for begin in _STEPS:
        found = connection.table(schema.PAGES).scan(
            row_prefix=begin, columns=list(_FAMILIES), filter=_FILTER, batch_size=50
        )
        for row, cells in found:
            if is_there(cells):
                at_ms = stamp_of(cells)
                steps = tuple(ChangedCell("put", column, at_ms, value) for column, value in cells.items())
                # not the first attempt: what the indexes know is not taken for granted
                run_indexes(connection, Change(schema.PAGES, row, at_ms, "", steps, cells, {}, attempt=2))
                count += 1
    return count
