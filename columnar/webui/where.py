"""``/where``: which server has a row, why there, and what its requests may wait for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from werkzeug.wrappers import Request

from columnar.errors import ColumnarError, printable
from columnar.model.cell import checked_row
from columnar.model.cluster_status_records import RowStatus

FIRST_ROW: Final = b"\0"
LINKED_BYTES: Final = 2_000
_ESCAPE: Final = re.compile(rb"\\x([0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Answer:
    """``found`` or ``error``; neither if nothing was searched."""

    table: str
    row: str
    found: RowStatus | None = None
    error: str = ""


def row_of(text: str) -> bytes:
    """Read a row as it was typed; ``\\xNN`` is that byte."""
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), text.encode("utf-8", "surrogateescape"))


def link_to(table: str, start: bytes) -> str:
    """The address at which the region that begins with ``start`` is looked up; of the table where that is too long."""
    row = {"row": printable(start)} if len(start) <= LINKED_BYTES else {}
    return f"/where?{urlencode({'table': table, **row})}"


def answered(request: Request, build_row_status: Callable[[str, bytes], RowStatus]) -> Answer:
    """``build_row_status`` raises ColumnarError for what is not there."""
    table, row = request.args.get("table", "").strip(), request.args.get("row", "")
    if not table:
        return Answer(table, row)
    try:
        return Answer(table, row, build_row_status(table, checked_row(row_of(row) or FIRST_ROW)))
    except ColumnarError as error:
        return Answer(table, row, error=error.wire_message)
