"""(pure) Values of calls that may concern several servers; a standalone uses these values as well.

Separate from ``peer_requests``, so that a process without other servers does not load that module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from columnar.model.region_info import RegionInfo
from columnar.wire.detect import Protocol

THRIFT1: Final = 1
THRIFT2: Final = 2
THRIFT1_OPERATOR: Final = 3  # Thrift 1 calls that a node forwards for an operator, who may end servers
PROTOCOL_BYTES: Final = {Protocol.BINARY: 1, Protocol.COMPACT: 2}


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """The form in which rows are packed: structs of a service, in the client's protocol."""

    service: int  # ``THRIFT1``: TRowResult; THRIFT2: TResult
    protocol: int  # of ``PROTOCOL_BYTES``
    in_order: bool = False  # Thrift 1: columns as a sorted list instead of a map


class Place(NamedTuple):
    """The place of a scan: at ``row``, or just past it in the scan's direction."""

    row: bytes | None  # None: the table's end, for a reversed scan
    is_after_row: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """Packed rows, one after the other."""

    data: bytes
    row_count: int
    cell_count: int
    last_row: bytes


@dataclass(frozen=True, slots=True)
class RegionState:
    """The state of a region at its server."""

    info: RegionInfo
    folder: str
    is_open: bool = False
    reads: int = 0  # since it was opened
    writes: int = 0
    log_records: int = 0
    log_bytes: int = 0
    size_bytes: int = 0  # 0 for a closed region until ``Descriptions.with_sizes``


@dataclass(frozen=True, slots=True)
class Figures:
    """The part of ``columnarStatus`` that each process counts for itself."""

    open_regions: int
    open_scanners: int
    connections: int
    requests: dict[str, int]  # by method
    remarks: tuple[str, ...] = ()  # about its regions
    memory: tuple[tuple[str, int, int], ...] = ()  # part of the plan, bytes in use, bound; none from an older server
