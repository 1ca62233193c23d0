"""(pure) The requests between servers for calls on several regions: rows, writes, scans, upkeep, triggers, views.

A gateway splits a call by the owners of its rows, sends each a request, and merges the answers.  Rows travel in the
form of the reply to the client wherever they can, so that the gateway does not unpack them.

If a region in a request is another server's, its rows are in ``not_local_rows`` of the answer, and nothing was done
for them.

Knows nothing of links and regions, nor of the packing of a reply (``columnar.wire``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from columnar.cluster.row_forms import Block, Figures, Place, RegionState, ReplyForm
from columnar.limits import ROWS_BYTES
from columnar.model.flow_status import FlowStatus, TriggerStatus, ViewStatus
from columnar.model.mutation import RowWrite
from columnar.model.read import ReadSpec, ScanSpec
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Message
from columnar.model.row_ranges import RowRange

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
    not_local_rows: tuple[int, ...] = ()  # numbers of rows in that order


@dataclass(frozen=True, slots=True)
class Rows(Message[RowsFound]):
    """``getRows``, ``getMultiple`` and their kin.  The answer may end early, after the row that passes ``max_bytes``.

    RequestTooBig: a row that is over ``limits.ROWS_BYTES`` by itself.
    """

    table: str
    form: ReplyForm
    groups: tuple[RowGroup, ...]
    max_bytes: int = ROWS_BYTES


# --- writes ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Applied:
    not_local_rows: tuple[int, ...] = ()  # numbers of rows that were not written; all others are on disk
    sequence: tuple[int, int, int] | None = None  # ``change_record.Sequence`` of the last change; None: no row


@dataclass(frozen=True, slots=True)
class Apply(Message[Applied]):
    """Write rows without conditions, each as a step of its own.  After an error some rows may be written."""

    table: str
    rows: tuple[RowWrite, ...]  # each row once


@dataclass(frozen=True, slots=True)
class RowsDeleted:
    rows: int | None  # None: a range was accepted whole
    next_row: bytes | None  # where to continue; None: all is done
    is_not_local: bool = False  # the region of ``next_row`` is another server's


@dataclass(frozen=True, slots=True)
class DeleteRows(Message[RowsDeleted]):
    """Rows ``start <= row < stop`` of this server's regions, from ``start`` to the first region of another."""

    table: str
    start: bytes
    stop: bytes  # empty: to the last row


@dataclass(frozen=True, slots=True)
class Ingested:
    came: bool  # False: the rows are not all of one region, or something stands among them
    is_not_local: bool = False  # the region is another server's: nothing was done


@dataclass(frozen=True, slots=True)
class Ingest(Message[Ingested]):
    """Take whole rows in as sorted files, which lie in a folder of all servers (``regions.ingestion``)."""

    table: str
    first: bytes
    last: bytes
    highest_timestamp: int
    rows: int
    files: tuple[tuple[str, tuple[str, ...]], ...]  # key space, paths


# --- scans -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scanned:
    blocks: tuple[Block, ...] = ()  # of a scan with a form
    rows: tuple[tuple[bytes, tuple[tuple[bytes, bytes, int], ...]], ...] = ()  # else: row, (column, value, timestamp)
    place: Place | None = None  # of the next step; None: the scan is at its end
    cells_read: int = 0
    is_not_local: bool = False  # the region is another server's: nothing was read


@dataclass(frozen=True, slots=True)
class Scan(Message[Scanned]):
    """Steps of a scan over this server's regions, until a bound is reached.  The gateway keeps the scanner's place."""

    table: str
    spec: ScanSpec  # without batch and limit; its filter has no memory: the gateway runs a filter that has
    place: Place
    max_rows: int
    max_cells: int  # that are walked
    max_bytes: int
    form: ReplyForm | None = None  # None: as cells, for a filter or a cut of the gateway
    versions: bool = False  # as cells, all that a filter sees: rows without visible cells, and older versions
    rows: RowRange | None = None  # without a filter: no other rows are wanted; at their end the scan is at its end
    values: bool = True  # with ``versions``; False: the filter needs none


# --- upkeep ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tend(Message[bool]):
    """Flush or compact a region.  False: it is another server's, and nothing was done."""

    region: RegionInfo
    work: str  # ``operations.descriptions.FLUSH`` and the like


# --- triggers ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TriggerStatuses(Message[tuple[TriggerStatus, ...]]):
    """Every trigger, as far as it concerns this server's regions."""


@dataclass(frozen=True, slots=True)
class ViewStatuses(Message[tuple[ViewStatus, ...]]):
    """Every view, as far as it concerns this server's regions of its sources."""


@dataclass(frozen=True, slots=True)
class FlowStatuses(Message[tuple[FlowStatus, ...]]):
    """Every flow, as far as it concerns this server's regions."""


@dataclass(frozen=True, slots=True)
class Waited:
    is_delivered: bool  # False: not in time
    is_not_local: bool  # a region was another server's at some time: nothing is said then


@dataclass(frozen=True, slots=True)
class WaitForDelivery(Message[Waited]):
    """Wait until ``trigger`` (empty: all) has the change ``token`` (empty: all that is written now) of these regions.

    ``trigger`` is the key of a follower: ``view:NAME`` waits for a view.

    The answer may take as long as ``timeout_ms``.
    """

    trigger: str
    token: str
    timeout_ms: int
    regions: tuple[RegionInfo, ...]
    saved: bool = False  # and the cursors that say so are on disk: nothing of it is sent again


@dataclass(frozen=True, slots=True)
class LogAgain(Message[bool]):
    """Log the row as it is now, or a change, for this trigger alone.  False: it is another server's."""

    table: str
    row: bytes
    trigger: str
    change: bytes = b""  # as in a log (``change_record``), with its stamp; empty: the row as it is now


# --- status requests ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OwnFigures(Message[Figures]):
    """The figures of this server."""


@dataclass(frozen=True, slots=True)
class RegionStates(Message[tuple[RegionState, ...]]):
    """How regions of tables stand, with their sizes: of those that this server has open."""

    tables: tuple[str, ...]


# --- checks of views ---------------------------------------------------------------------------------
#
# A gateway checks a view against its sources, and repairs it, at their regions' owners.  Each request is for the region
# that holds a row.  A walk continues at ``next_row`` until that is None; it requests digests (``views.digests``) or, if
# it names buckets, the entries in them.  An owner that does not have the region answers so (``is_not_local``, None
# among snapshots), and nothing was done there.


Entry = tuple[bytes, bytes, bytes]  # group, member, hash of what the member gives


@dataclass(frozen=True, slots=True)
class SourceFound:
    next_row: bytes | None = None  # where the walk continues; None: it is at its end
    digest: bytes = b""
    rows: int = 0
    rejected: int = 0  # rows that cannot be read: they give nothing
    entries: tuple[tuple[bytes, tuple[Entry, ...]], ...] = ()  # by row
    is_not_local: bool = False


@dataclass(frozen=True, slots=True)
class SourcePart(Message[SourceFound]):
    """Answer what rows of a source give, from ``start`` on."""

    view: str
    side: int  # of the view's sources
    start: bytes
    buckets: bytes = b""  # ``digests.Buckets``; empty: a digest of all is requested
    is_summed: bool = False  # a digest of the entries in ``buckets``, not their list


@dataclass(frozen=True, slots=True)
class GroupsFound:
    next_row: bytes | None = None  # None: the walk is at its end
    after: bytes = b""  # the member after which it continues there
    digest: bytes = b""
    groups: int = 0
    members: int = 0
    wrong: tuple[tuple[bytes, str], ...] = ()  # groups that are at odds with their own members, and in what
    entries: tuple[Entry, ...] = ()
    is_not_local: bool = False


@dataclass(frozen=True, slots=True)
class GroupsPart(Message[GroupsFound]):
    """Request the contents of members, from group ``start`` on; without buckets each group is checked within itself."""

    view: str
    start: bytes
    after: bytes = b""
    buckets: bytes = b""
    is_summed: bool = False


@dataclass(frozen=True, slots=True)
class EntriesSnapshot:
    """A source row and what it gives, or a member and what it holds, at one moment."""

    print: bytes = b""  # of the cells: different after each change, even if the values are the same
    entries: tuple[Entry, ...] = ()


EntriesSnapshots = tuple[EntriesSnapshot | None, ...]  # None: it is another server's


@dataclass(frozen=True, slots=True)
class ReadSourceRows(Message[EntriesSnapshots]):
    view: str
    side: int
    rows: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ReadGroupMembers(Message[EntriesSnapshots]):
    view: str
    members: tuple[tuple[bytes, bytes], ...]  # group, member


@dataclass(frozen=True, slots=True)
class Said:
    sequence: tuple[int, int, int] = (0, 0, 0)  # above all that the region had
    writes: tuple[RowWrite, ...] = ()  # the row's contributions as of it, one write for each group
    is_not_local: bool = False


@dataclass(frozen=True, slots=True)
class SayAgain(Message[Said]):
    """Number a source row as it is now, as a change of it would be, and say what it gives."""

    view: str
    side: int
    row: bytes


@dataclass(frozen=True, slots=True)
class RepairResult:
    totals: int = 0  # cells that were set right
    ordered: int = 0
    is_not_local: bool = False


@dataclass(frozen=True, slots=True)
class RepairGroup(Message[RepairResult]):
    """Correct the totals and the order of a group from its members; or only remove ``members`` from it.

    A member is removed if its cell still has the print with which it was seen.
    """

    view: str
    group: bytes
    members: tuple[tuple[bytes, bytes], ...] = ()  # member, print


VIEW_CHECKS: Final[tuple[type[Message[Any]], ...]] = (
    SourcePart, GroupsPart, ReadSourceRows, ReadGroupMembers, SayAgain, RepairGroup,
)  # fmt: skip
