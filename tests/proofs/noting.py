"""The trigger of the moves: for each change it appends the number that was written to the row's log.

A repeated append is visible: a change that is delivered twice stands in the log twice.
"""

from __future__ import annotations

from typing import Final

from columnar.client import Append, Connection
from columnar.triggers.api import Change

FUNCTION: Final = f"{__name__}:note"
TABLE: Final = b"noted"
COLUMN: Final = b"n:log"


def note(change: Change, client: Connection) -> None:
    for cell in change.changes:
        client.table(TABLE).mutate(change.row, [Append(COLUMN, cell.value + b" ")])
