"""The trigger of the linked list, which keeps for each node a row of the nodes that refer to it; runs in the worker."""

from __future__ import annotations

from typing import Final

from columnar.client import Connection
from columnar.triggers.api import Change

FUNCTION: Final = f"{__name__}:refer"
TABLE: Final = b"linked-list-referred"
FAMILY: Final = b"r"
PREVIOUS: Final = b"meta:prev"


def refer(change: Change, client: Connection) -> None:
    for cell in change.changes:
        if cell.kind == "put" and cell.column == PREVIOUS:
            client.table(TABLE).put(cell.value, {FAMILY + b":" + change.row: b""}, timestamp=change.timestamp)
