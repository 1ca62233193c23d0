"""(pure) Names of the catalogue's rows, and mutations of their cells; the rows are listed in ``catalogue``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from columnar.model.mutation import Delete, Operation, Put, RowMutation
from columnar.model.region_info import RegionInfo

INFO: Final = b"info"


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


def deletes(held: Mapping[bytes, bytes], wanted: Mapping[bytes, bytes]) -> list[Delete]:
    return [Delete(INFO, column.removeprefix(b"info:")) for column in held.keys() - wanted.keys()]


def erase(row: bytes) -> RowMutation:
    return RowMutation(row, (Delete(INFO, None),))
