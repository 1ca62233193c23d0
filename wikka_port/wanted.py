"""Reading the table ``wanted``: its rows are candidates, and the reader checks whether the page of each exists.

``triggers`` writes the cells; its W1 to W3 prove that no wanted page lacks one.  Names of files, as in [[Picture.png]],
are links to pages for the index, and no wanted pages.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from columnar.client import Connection
from wikka_port import schema
from wikka_port.markup.file_slots import names_file
from wikka_port.page_rows import Cells, is_there
from wikka_port.store import rows_in_steps

_STEP: Final = 200  # candidates read together


def existing(connection: Connection, keys: Iterable[bytes]) -> set[bytes]:
    """Return those of the ``keys`` that are pages."""
    found = rows_in_steps(connection.table(schema.PAGES), keys, schema.VERSIONCOUNT)
    return {row for row, cells in found if is_there(cells)}


def wanted_pages(connection: Connection, start: bytes, limit: int) -> list[tuple[str, int]]:
    """Return up to ``limit`` wanted names from the row ``start`` on, in row order, with the number of linking pages."""
    found: list[tuple[str, int]] = []
    rows = connection.table(schema.WANTED).scan(row_start=start, batch_size=min(limit, _STEP))
    while len(found) < limit and (step := dict(islice(rows, min(limit, _STEP)))):
        found += _entries(connection, step)
    return found[:limit]


def most_wanted(connection: Connection, limit: int) -> list[tuple[str, int]]:
    """Return the ``limit`` names with the most linking pages, most wanted first, then alphabetical.

    Reads every candidate.
    """
    rows = connection.table(schema.WANTED).scan(batch_size=_STEP)
    steps = iter(lambda: dict(islice(rows, _STEP)), {})
    return heapq.nsmallest(limit, (entry for step in steps for entry in _entries(connection, step)), key=_rank)


def _rank(entry: tuple[str, int]) -> tuple[int, bytes]:
    return -entry[1], schema.name_row(entry[0])


def _entries(connection: Connection, step: Mapping[bytes, Cells]) -> Iterator[tuple[str, int]]:
    there = existing(connection, step)
    entries = (_entry(connection, row, cells) for row, cells in step.items() if row not in there)
    yield from (entry for entry in entries if entry is not None and not names_file(entry[0]))


def _entry(connection: Connection, row: bytes, cells: Cells) -> tuple[str, int] | None:
    """Return a wanted name and the number of linking pages, or None if no page links there."""
    if schema.GONE not in cells:  # W3
        return next(iter(cells.values())).decode(), len(cells)
    backlinks = connection.table(schema.BACKLINKS)
    sources = backlinks.row(row, columns=[b"from"])
    if not sources:
        return None
    name = cells[schema.GONE] or _name_in_link(connection, row, next(iter(sources)))
    return name.decode(), len(sources)


def _name_in_link(connection: Connection, row: bytes, source: bytes) -> bytes:
    """Return the name of the page ``row`` as the page of the column ``source``, which links to it, writes the name."""
    column = schema.TO + row
    found: bytes = connection.table(schema.BACKLINKS).row(source[len(schema.FROM) :], columns=[column]).get(column, b"")
    return found
