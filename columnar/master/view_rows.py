"""(pure) Rows of the catalogue that hold views (``model.view_set``).

    row ``vw/NAME``       info:view = JSON of the definition, info:state = adding | building | live,
                          info:reads = JSON [[table, [family, ...]], ...], info:number = decimal
    row ``alias/NAME``    info:alias = JSON of a swap (``model.view_generations``): the live table, the one that is kept
    row ``vw/#numbers``   info:numbers = JSON of the record of numbers; ``#`` begins no table's name

A row that cannot be read stays as it is until its view is dropped.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from columnar.errors import DamagedData
from columnar.master.catalogue_rows import Cells, numbers_from, numbers_rows
from columnar.model import view_generations
from columnar.model.follower_numbers import Numbers
from columnar.model.view_generations import Swap, without_tables
from columnar.model.view_set import STATES, KeptView, Reads, ViewSet

_log = logging.getLogger(__name__)

PREFIX: Final = b"vw/"
NUMBERS_ROW: Final = b"vw/#numbers"
ALIAS: Final = b"alias/"


def view_row(name: str) -> bytes:
    return PREFIX + name.encode()


def views_from(rows: Iterable[tuple[bytes, Cells]], tables: Collection[str]) -> ViewSet:
    """The views that ``rows``, all with PREFIX, say.  ``tables``: names of those that there are."""
    found: list[KeptView] = []
    numbers: Numbers | None = Numbers()
    numbers_data = b""
    swaps: list[Swap] = []
    for row, cells in rows:
        if row == NUMBERS_ROW:
            numbers, numbers_data = numbers_from(cells, "view")
        elif row.startswith(ALIAS):
            swaps += _swap(row.removeprefix(ALIAS).decode(), cells, tables)
        else:
            found.append(_view(row.removeprefix(PREFIX).decode(), cells, tables))
    return ViewSet(tuple(sorted(found, key=lambda one: one.name)), numbers, numbers_data, tuple(swaps))


def _view(name: str, cells: Cells, tables: Collection[str]) -> KeptView:
    number, state = cells.get(b"info:number", b""), STATES.get(cells.get(b"info:state", b"").decode("latin-1"))
    reads, rests = (), ""  # type: tuple[Reads, ...], str
    try:
        reads = _reads_from_json(cells.get(b"info:reads", b""))
        missing = [table for table in (name, *(one.table for one in reads)) if table not in tables]
        if missing:
            rests = f"there is no table {missing[0]}"
    except DamagedData as error:
        rests = error.text
    if state is None:
        rests = rests or "it is in a state that this version does not know: upgrade"
    if rests:
        _log.warning("view %s rests, and its place in the logs is kept: %s", name, rests)
    return KeptView(
        name,
        cells.get(b"info:view", b""),
        reads,
        state or "live",
        int(number) if number.isdigit() else 0,
        rests,
    )


def _swap(name: str, cells: Cells, tables: Collection[str]) -> list[Swap]:
    """Decode a swap; nothing if it cannot be used: then the name means its own table, if there is one."""
    try:
        swap = view_generations.from_json(name, cells.get(b"info:alias", b""))
    except DamagedData as error:
        _log.error("the name %s means its own table: %s", name, error.text)
        return []
    return list(without_tables([swap], {swap.live, swap.kept} - set(tables)))


def reads_to_json(reads: Iterable[Reads]) -> bytes:
    return json.dumps([[one.table, list(one.families)] for one in reads]).encode()


def _reads_from_json(data: bytes) -> tuple[Reads, ...]:
    try:
        return tuple(Reads(str(table), tuple(map(str, families))) for table, families in json.loads(data))
    except (ValueError, TypeError) as error:
        raise DamagedData(f"sources of a view: {error}") from error


def rows_of(views: ViewSet, stored: Mapping[bytes, Cells]) -> dict[bytes, dict[bytes, bytes]]:
    """Return the rows of ``views``; ``stored``: rows on disk, of which those of unusable views stay as they are."""
    rows = {view_row(one.name): _cells(one, stored) for one in views.all}
    rows |= {ALIAS + one.name.encode(): {b"info:alias": view_generations.to_json(one)} for one in views.swaps}
    return rows | numbers_rows(NUMBERS_ROW, views.numbers, views.numbers_data)


def _cells(view: KeptView, stored: Mapping[bytes, Cells]) -> dict[bytes, bytes]:
    if view.unusable_reason and view_row(view.name) in stored:
        return dict(stored[view_row(view.name)])
    return {
        b"info:view": view.definition,
        b"info:reads": reads_to_json(view.reads),
        b"info:state": view.state.encode(),
        b"info:number": b"%d" % view.number,
    }
