"""Triggers of data folders of format 5 and older: rows of a system table, moved into the catalogue at a start.

    table columnar:triggers     row NAME        info:registration JSON, info:state running | paused,
                                                info:number decimal (missing in versions before numbers)
                                row #numbers    info:numbers JSON {"given", "removed", "beginning"}

``beginning`` is the number of the registration that was being made, or 0.

Invariant: one write of the catalogue drops the table and adds its triggers, so after a kill the triggers are either in
the table or in the catalogue.  The table's regions are remembered as dropped, like the regions of any dropped table,
and their folders are removed when the start is over.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Final

from columnar.errors import DamagedData
from columnar.master import derivation_rows
from columnar.master.catalogue import Catalogue
from columnar.master.derivation_rows import TRIGGERS_TABLE
from columnar.model.derivations import Triggers, numbers_from_json
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table

_log = logging.getLogger(__name__)

_NUMBERS: Final = b"#numbers"

Rows = Iterable[tuple[bytes, dict[bytes, bytes]]]  # row, column -> value


async def take_in(catalogue: Catalogue, rows_of: Callable[[Table, RegionInfo], Rows]) -> None:
    """Move the triggers into the catalogue, before any table is served.

    ``rows_of`` reads one region.  If it raises HostError or DamagedData, nothing has changed.
    """
    entry = catalogue.tables.get(TRIGGERS_TABLE)
    if entry is None:
        return
    rows = [row for info in entry.regions for row in rows_of(entry.schema, info)]
    triggers = triggers_of(rows, catalogue.tables)
    await catalogue.drop(TRIGGERS_TABLE, triggers)
    _log.info("%d triggers moved from %s to the catalogue", len(triggers.all), TRIGGERS_TABLE)


def triggers_of(rows: Rows, tables: Collection[str]) -> Triggers:
    """Return the triggers that the table's rows hold.  ``tables``: the names of all tables."""
    kept: list[tuple[bytes, dict[bytes, bytes]]] = []
    beginning = 0
    for row, cells in rows:
        if row == _NUMBERS:
            beginning = _beginning(cells.get(b"info:numbers", b""))
            kept.append((b"tr/#numbers", cells))
        elif _is_text(row) and (b"info:registration" in cells or b"info:number" in cells):
            kept.append((b"tr/" + row, cells))
        else:
            _log.warning("row %r of %s has neither a registration nor a number: passed over", row, TRIGGERS_TABLE)
    found = derivation_rows.sets_from(kept, tables)[Triggers]
    assert isinstance(found, Triggers)
    return _settled(found, beginning)


def _settled(found: Triggers, beginning: int) -> Triggers:
    """Remove triggers that were half removed, and the number of a trigger that was half made."""
    if found.numbers is None:
        return found
    highest = max([found.numbers.given, *(one.number for one in found.all)])
    removed = replace(found.numbers, given=highest)
    kept = tuple(one for one in found.all if not (one.number and removed.is_removed(one.number)))
    if beginning and beginning not in [one.number for one in kept]:
        removed = removed.with_removed(beginning)
    return Triggers(kept, removed)


def _is_text(row: bytes) -> bool:
    try:
        row.decode()
    except UnicodeDecodeError:
        return False
    return True


def _beginning(numbers: bytes) -> int:
    try:
        numbers_from_json(numbers)
    except DamagedData:
        return 0
    beginning = json.loads(numbers).get("beginning", 0)
    return beginning if isinstance(beginning, int) else 0
