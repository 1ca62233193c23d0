"""``/where``: which server has a row, why there, and what its requests may wait for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from werkzeug.wrappers import Request

from columnar.errors import ColumnarError
from columnar.model.cell import checked_row
from columnar.model.cluster_look import RowLook

_ESCAPE: Final = re.compile(rb"\\x([0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Answer:
    """``found`` or ``error``; neither where nothing was asked."""

    table: str
    row: str
    found: RowLook | None = None
    error: str = ""


def row_of(text: str) -> bytes:
    """Read a row as it was typed; ``\\xNN`` is that byte."""
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), text.encode("utf-8", "surrogateescape"))


def answered(request: Request, row_look: Callable[[str, bytes], RowLook]) -> Answer:
    """``row_look`` raises ColumnarError for what is not there."""
    table, row = request.args.get("table", "").strip(), request.args.get("row", "")
    if not table:
        return Answer(table, row)
    try:
        return Answer(table, row, row_look(table, checked_row(row_of(row))))
    except ColumnarError as error:
        return Answer(table, row, error=error.wire_message)
