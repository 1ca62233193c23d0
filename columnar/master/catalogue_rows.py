"""(pure) Names of the catalogue's rows, and mutations of their cells; the rows are listed in ``catalogue``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from columnar.errors import DamagedData
from columnar.model import follower_numbers
from columnar.model.follower_numbers import Numbers
from columnar.model.mutation import Delete, Operation, Put, RowMutation
from columnar.model.region_info import RegionInfo

_log = logging.getLogger(__name__)

INFO: Final = b"info"
Cells = Mapping[bytes, bytes]  # column -> value


def table_row(name: str) -> bytes:
    return b"t/" + name.encode()


def namespace_row(name: str) -> bytes:
    return b"ns/" + name.encode()


def region_row(info: RegionInfo) -> bytes:
    return b"r/%s\x00%s\x00%d" % (info.table.encode(), info.start, info.region_id)


def dropped_row(info: RegionInfo) -> bytes:
    return b"d/" + info.encoded.encode()


def u64(number: int) -> bytes:
    return number.to_bytes(8, "big")


def put(row: bytes, **columns: bytes) -> RowMutation:
    operations: tuple[Operation, ...] = tuple(Put(INFO, name.encode(), value) for name, value in columns.items())
    return RowMutation(row, operations)


def puts(cells: Mapping[bytes, bytes]) -> list[Put]:
    return [Put(INFO, column.removeprefix(b"info:"), value) for column, value in cells.items()]


def deletes(stored: Mapping[bytes, bytes], wanted: Mapping[bytes, bytes]) -> list[Delete]:
    return [Delete(INFO, column.removeprefix(b"info:")) for column in stored.keys() - wanted.keys()]


def erase(row: bytes) -> RowMutation:
    return RowMutation(row, (Delete(INFO, None),))


def changes(stored: Mapping[bytes, Cells], wanted: Mapping[bytes, Cells]) -> list[RowMutation]:
    """Return the mutations that turn the rows ``stored`` into ``wanted``."""
    mutations = [erase(row) for row in stored if row not in wanted]
    for row, cells in wanted.items():
        if stored.get(row) != cells:
            mutations.append(RowMutation(row, (*deletes(stored.get(row, {}), cells), *puts(cells))))
    return mutations


# --- the record of numbers of a kind of followers ------------------------------------------------------


def numbers_from(cells: Cells, kind: str) -> tuple[Numbers | None, bytes]:
    """The record, or None and its bytes where it cannot be read."""
    data = cells.get(b"info:numbers", b"")
    try:
        return follower_numbers.from_json(data), b""
    except DamagedData as error:
        _log.error("no %s can be added or dropped: %s", kind, error.text)
        return None, data


def numbers_rows(row: bytes, numbers: Numbers | None, data: bytes) -> dict[bytes, dict[bytes, bytes]]:
    """The row of a record as ``numbers_from`` gave it; none where it says nothing."""
    if numbers is None:
        return {row: {b"info:numbers": data}}
    return {} if numbers == Numbers() else {row: {b"info:numbers": follower_numbers.to_json(numbers)}}
