"""What tests read of change streams, and the tables that they make for it."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from columnar.client import Connection
from columnar.client.changes import Change, Changes, ChangesGone, Forget, Row, StreamEvent

KEPT = {"CHANGE_LOG": "3600"}
IMAGES = KEPT | {"CHANGE_LOG_IMAGES": "true"}
Families = dict[str, dict[str, Any]]
F: Families = {"f": {}}
FG: Families = {"f": {}, "g": {}}


def now(stream: Changes) -> list[StreamEvent]:
    """Return all events up to the log's end."""
    return list(stream)


def rows_of(events: list[StreamEvent]) -> list[bytes]:
    return [one.row for one in events if isinstance(one, Change | Row)]


def state_after(events: list[StreamEvent]) -> dict[bytes, dict[bytes, bytes]]:
    """Return the table that a reader keeps who has these events."""
    table: dict[bytes, dict[bytes, bytes]] = {}
    for event in events:
        if isinstance(event, Forget):
            table = {r: c for r, c in table.items() if r < event.start or (event.stop and r >= event.stop)}
        elif isinstance(event, Row):
            table[event.row] = {column: value for column, (value, _) in event.cells.items()}
        elif isinstance(event, Change):
            cells = table.setdefault(event.row, {})
            for entry in event.entries:
                if entry.kind == "put":
                    cells[entry.column] = entry.value
                elif entry.kind == "delete":
                    cells.pop(entry.column, None)
                else:
                    for column in [one for one in cells if one.startswith(entry.column + b":")]:
                        del cells[column]
    return {row: cells for row, cells in table.items() if cells}


def noted_time(connection: Connection, name: str) -> datetime:
    """Write a row, and return a time that the log has noted."""
    deadline = time.monotonic() + 20
    connection.table(name).put(b"earlier", {b"f:x": b"1"})
    while True:
        noted = datetime.now(UTC)
        with suppress(ChangesGone):
            now(connection.changes(name, start=noted, follow=False))
            return noted
        assert time.monotonic() < deadline
        time.sleep(0.05)
