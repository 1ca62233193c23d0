"""(pure) The asks between servers for calls that concern several regions: rows, apply, scan.

A gateway cuts a call by the owners of its rows, asks each of them, and puts the answers together.  Rows travel in the
form of the reply to the client wherever they can, so that the gateway does not unpack them.

A region of another server in an ask: its rows are in ``elsewhere`` of the answer, and nothing was done for them.

Knows nothing of links and regions, nor of how a reply is packed (``columnar.wire``).
"""

from __future__ import annotations

from dataclasses import dataclass

from columnar.model.read import ReadSpec, ScanSpec
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Message


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """The form in which rows are packed: structs of a service, in the client's protocol."""

    service: int  # ``peer_frames.THRIFT1``: TRowResult; THRIFT2: TResult
    protocol: int  # of ``peer_frames.PROTOCOL_BYTES``
    in_order: bool = False  # Thrift 1: columns as a sorted list instead of a map


# --- rows --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows of which the same is wanted."""

    rows: tuple[bytes, ...]
    read: ReadSpec
    filter_string: bytes | None = None
    offset: int = 0  # cells of each family that are passed over (Thrift 2)
    limit: int = -1  # cells of each family that are given; -1: all


@dataclass(frozen=True, slots=True)
class RowsFound:
    rows: tuple[bytes | None, ...]  # packed, in the order of the groups and their rows; None: no such cells
    elsewhere: tuple[int, ...] = ()  # numbers of rows in that order


@dataclass(frozen=True, slots=True)
class Rows(Message[RowsFound]):
    """``getRows``, ``getMultiple`` and their kin.  RequestTooBig over ``limits.ROWS_BYTES``."""

    table: str
    form: ReplyForm
    groups: tuple[RowGroup, ...]


# --- writes ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Applied:
    elsewhere: tuple[int, ...] = ()  # numbers of rows that were not written; all others are on disk


@dataclass(frozen=True, slots=True)
class Apply(Message[Applied]):
    """Write rows, each as a step of its own.  After an error some rows may be written, as after one of the call."""

    table: str
    service: int
    protocol: int
    struct: str  # BatchMutation, TPut or TDelete
    rows: tuple[bytes, ...]  # each row's struct as the client sent it
    timestamp: int | None = None  # of the call


# --- scans -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a scan: at ``row``, or just past it in the scan's direction."""

    row: bytes | None  # None: the table's end, for a reversed scan
    past: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """Packed rows, one after the other."""

    data: bytes
    row_count: int
    cell_count: int
    last_row: bytes


@dataclass(frozen=True, slots=True)
class Scanned:
    blocks: tuple[Block, ...] = ()  # of a scan with a form
    rows: tuple[tuple[bytes, tuple[tuple[bytes, bytes, int], ...]], ...] = ()  # else: row, (column, value, timestamp)
    place: Place | None = None  # of the next step; None: the scan is at its end
    cells_read: int = 0
    elsewhere: bool = False  # the region is another server's: nothing was read


@dataclass(frozen=True, slots=True)
class Scan(Message[Scanned]):
    """A step of a scan: rows of one region until a bound is reached.  The gateway keeps the scanner and its place."""

    table: str
    region: RegionInfo
    spec: ScanSpec  # its filter has no memory; the gateway runs one that has
    place: Place
    max_rows: int
    max_cells: int
    max_bytes: int
    form: ReplyForm | None = None  # None: as cells, for a filter or a cut of the gateway
