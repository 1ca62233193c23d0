r"""(pure) Names of the catalogue's rows, and mutations and values of their cells; the rows are listed in ``catalogue``.

    row ``s/NAME.INC``   info:sealed = JSON ``[[segment, length], ...]``: a dead incarnation's log when it was fenced
                         info:whole = 1: each length counts whole frames that are on disk, and none of them may be
                         missing; rows of older programs lack this cell, and their lengths are lengths of files
    row ``w/wishes``     info:wishes = JSON ``{"auto_split", "balancer", "drained", "unassigned"}``, and if it is not
                         empty ``"until_restart"``: of the drained servers those whose drain ends with their next
                         start, as NAME.INCARNATION.  Older programs drain them until an operator ends it

The owner of a region is a cell of the region's row (``model.owner``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from columnar.model.mutation import Delete, Operation, Put, RowMutation
from columnar.model.owner import Incarnation, incarnation_of
from columnar.model.region_info import RegionInfo

if TYPE_CHECKING:
    from columnar.model.owner_messages import Segments

INFO: Final = b"info"
Cells = Mapping[bytes, bytes]  # column -> value


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """Operator settings of a cluster; the catalogue keeps them over restarts."""

    drained: frozenset[str] = frozenset()  # names of servers
    unassigned: frozenset[int] = frozenset()  # regions
    balancer: bool = True
    auto_split: bool = True
    until_restart: frozenset[Incarnation] = frozenset()  # of the drained, those that a later incarnation ends


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


SEALED: Final = b"s/"
OPERATOR_SETTINGS_ROW: Final = b"w/wishes"


def sealed_row(server: Incarnation) -> bytes:
    return SEALED + str(server).encode()


def sealed_server(row: bytes) -> Incarnation:
    """Return the incarnation that the row of a seal names.  Raises ValueError for any other row."""
    return incarnation_of(row.removeprefix(SEALED).decode())


def sealed_to_json(segments: Segments) -> bytes:
    return json.dumps([list(segment) for segment in segments]).encode()


def sealed_from_json(data: bytes) -> Segments:
    """Decode the segments of a seal.  Raises ValueError or TypeError if ``data`` is malformed."""
    segments = tuple((name, length) for name, length in json.loads(data))
    if not all(isinstance(name, str) and isinstance(length, int) for name, length in segments):
        raise ValueError("names and lengths of segments are wanted")
    return segments


def operator_settings_to_json(settings: OperatorSettings) -> bytes:
    fields: dict[str, Any] = {
        "drained": sorted(settings.drained),
        "unassigned": sorted(settings.unassigned),
        "balancer": settings.balancer,
        "auto_split": settings.auto_split,
    }
    if settings.until_restart:
        fields["until_restart"] = sorted(map(str, settings.until_restart))
    return json.dumps(fields, sort_keys=True).encode()


def operator_settings_from_json(data: bytes) -> OperatorSettings:
    fields: dict[str, Any] = json.loads(data)
    return OperatorSettings(
        frozenset(fields["drained"]),
        frozenset(fields["unassigned"]),
        fields["balancer"],
        fields["auto_split"],
        frozenset(map(incarnation_of, fields.get("until_restart", ()))),
    )
