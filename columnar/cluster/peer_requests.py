"""(pure) The requests between servers for calls on several regions: rows, writes, scans, upkeep, triggers, logs, views.

A gateway splits a call by the owners of its rows, sends each a request, and merges the answers.  Rows travel in the
form of the reply to the client wherever they can, so that the gateway does not unpack them.

If a different server owns a region in a request, the region's rows are in ``not_local_rows`` of the answer, and nothing
was done for these rows.

Knows nothing of links and regions, nor of the packing of a reply (``columnar.wire``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from columnar.cluster.row_forms import Block, Figures, Place, RegionState, ReplyForm
from columnar.limits import ROWS_BYTES
from columnar.model.change_stream import StreamRange, StreamSpec
from columnar.model.flow_status import FlowStatus, TriggerStatus, ViewStatus
from columnar.model.mutation import RowWrite
from columnar.model.read import ReadSpec, ScanSpec
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Message
from columnar.model.row_ranges import RowRange

# --- the end of a server -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LeaveLinks(Message[None]):
    """Send nothing more over the links with the sender, which stops, and end each when all its answers have come."""


# --- rows --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that are read in the same way."""

    rows: tuple[bytes, ...]
    read: ReadSpec
    filter_string: bytes | None = None
    offset: int = 0  # cells of each family to skip (Thrift 2)
    limit: int = -1  # most cells of each family to return; -1: all


@dataclass(frozen=True, slots=True)
class RowsFound:
    rows: tuple[bytes | None, ...]  # packed, in the order of the groups and their rows; None for a row without cells
    not_local_rows: tuple[int, ...] = ()  # numbers of rows in that order


@dataclass(frozen=True, slots=True)
class Rows(Message[RowsFound]):
    """Read rows, for ``getRows``, ``getMultiple`` and similar calls.

    The answer may end early, after the row that passes ``max_bytes``.  Raises RequestTooBig if a single row is over
    ``limits.ROWS_BYTES``.
    """

    table: str
    form: ReplyForm
    groups: tuple[RowGroup, ...]
    max_bytes: int = ROWS_BYTES


# --- writes ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Applied:
    not_local_rows: tuple[int, ...] = ()  # numbers of rows that were not written; all others are on disk
    sequence: tuple[int, int, int] | None = None  # ``change_record.Sequence`` of the last change, if there was any
    earlier: tuple[tuple[int, int, int], ...] = ()  # the last changes of the other regions that were written into


@dataclass(frozen=True, slots=True)
class Apply(Message[Applied]):
    """Write rows without conditions, each row atomically.  After an error some rows may be written."""

    table: str
    rows: tuple[RowWrite, ...]  # each row once


@dataclass(frozen=True, slots=True)
class CellReplaced:
    is_done: bool = False  # False: the cell had a different value, and nothing was written
    is_not_local: bool = False  # a different server owns the row's region, or it was unavailable: nothing was written


@dataclass(frozen=True, slots=True)
class ReplaceCell(Message[CellReplaced]):
    """Replace the value of one cell, if the cell is as expected."""

    table: str
    row: bytes
    family: bytes
    qualifier: bytes
    expected: bytes | None  # None: no cell
    value: bytes | None  # None: delete the cell


@dataclass(frozen=True, slots=True)
class RowsDeleted:
    rows: int | None  # None: a range was dropped whole, without a count of its rows
    next_row: bytes | None  # where to continue; None: all is done
    is_not_local: bool = False  # a different server owns the region of ``next_row``


@dataclass(frozen=True, slots=True)
class DeleteRows(Message[RowsDeleted]):
    """Delete the rows ``start <= row < stop``, up to the first region that a different server owns."""

    table: str
    start: bytes
    stop: bytes  # empty: to the last row


@dataclass(frozen=True, slots=True)
class Ingested:
    came: bool  # False: the rows are not all of one region, or the region has data among them
    is_not_local: bool = False  # a different server owns the region: nothing was done


@dataclass(frozen=True, slots=True)
class Ingest(Message[Ingested]):
    """Ingest whole rows as sorted files from a folder that all servers share (``regions.write.ingestion``)."""

    table: str
    first: bytes
    last: bytes
    highest_timestamp: int
    rows: int
    files: tuple[tuple[str, tuple[str, ...]], ...]  # key space, paths relative to the data folder


# --- scans -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scanned:
    blocks: tuple[Block, ...] = ()  # if the scan has a form
    rows: tuple[tuple[bytes, tuple[tuple[bytes, bytes, int], ...]], ...] = ()  # else: row, (column, value, timestamp)
    place: Place | None = None  # of the next step; None: the scan is at its end
    cells_read: int = 0
    is_not_local: bool = False  # a different server owns the region: nothing was read


@dataclass(frozen=True, slots=True)
class Scan(Message[Scanned]):
    """Scan this server's regions until a bound is reached.  The gateway keeps the scanner's place."""

    table: str
    spec: ScanSpec  # without batch and limit, and without a filter that has state: the gateway runs such a filter
    place: Place
    max_rows: int
    max_cells: int  # to read
    max_bytes: int
    form: ReplyForm | None = None  # None: return cells, which the gateway filters or cuts
    versions: bool = False  # return the cells that a filter sees: also rows without visible cells, and older versions
    rows: RowRange | None = None  # without a filter: the only rows wanted; the scan ends after them
    values: bool = True  # with ``versions``: False if the filter needs no values


# --- upkeep ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tend(Message[bool]):
    """Flush or compact a region.  The answer is False if a different server owns it; then nothing was done."""

    region: RegionInfo
    work: str  # ``operations.descriptions.FLUSH`` and the like


# --- triggers ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TriggerStatuses(Message[tuple[TriggerStatus, ...]]):
    """Request the status of every trigger, as far as it concerns this server's regions."""


@dataclass(frozen=True, slots=True)
class ViewStatuses(Message[tuple[ViewStatus, ...]]):
    """Request the status of every view, as far as it concerns this server's regions of the view's sources."""


@dataclass(frozen=True, slots=True)
class FlowStatuses(Message[tuple[FlowStatus, ...]]):
    """Request the status of every flow, as far as it concerns this server's regions."""


@dataclass(frozen=True, slots=True)
class Waited:
    is_delivered: bool  # False: not in time
    is_not_local: bool  # a different server owned a region at some time: ``is_delivered`` means nothing then


@dataclass(frozen=True, slots=True)
class WaitForDelivery(Message[Waited]):
    """Wait until ``trigger`` has received the change ``token`` of these regions.

    An empty ``trigger`` means all triggers, an empty ``token`` all changes written so far.  ``trigger`` is the key of a
    follower: ``view:NAME`` waits for a view.  The answer may take as long as ``timeout_ms``.
    """

    trigger: str
    token: str
    timeout_ms: int
    regions: tuple[RegionInfo, ...]
    saved: bool = False  # wait also until the cursors are on disk: then none of these changes is sent again


@dataclass(frozen=True, slots=True)
class LogAgain(Message[bool]):
    """Log the row as it is now, or ``change``, for this trigger alone.

    The answer is False if a different server owns the row's region.
    """

    table: str
    row: bytes
    trigger: str
    change: bytes = b""  # as in a log (``change_record``), with its stamp; empty: the row as it is now


# --- change streams ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChangesPart:
    region: RegionInfo
    ranges: tuple[StreamRange, ...]  # cover the region's rows; empty: the stream begins here


@dataclass(frozen=True, slots=True)
class ChangesFound:
    events: bytes  # ``model.change_events``
    ranges: tuple[tuple[StreamRange, ...] | None, ...]  # after the events, by part; None: a different server owns it
    is_at_end: bool  # nothing more is to be read of any part now
    up_to_ms: int  # every change with a lower stamp is in the log and was read; 0: unknown
    tick: int  # of the server's logs, for ``WaitChanges``


@dataclass(frozen=True, slots=True)
class ReadChanges(Message[ChangesFound]):
    """Read the changes of regions for a change stream."""

    table: str
    spec: StreamSpec
    start: str  # of parts without ranges: ``now``, ``beginning``, or a time in ms since 1970
    parts: tuple[ChangesPart, ...]
    max_bytes: int
    gateway: str = ""  # which counts its rounds; in one round each log is read up to the same end
    round: int = 0


@dataclass(frozen=True, slots=True)
class StoredMessages:
    is_not_local: bool = False  # a different server owns the queue's region, or it was unavailable: nothing was done


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    body: bytes
    name: bytes  # of which a queue takes one message, so that a push may be repeated
    headers: tuple[tuple[bytes, bytes], ...]
    group: bytes = b""
    priority: int = 0
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class PushMessages(Message[StoredMessages]):
    """Store messages in a queue of the server; the answer comes when they are on disk."""

    queue: bytes
    messages: tuple[QueuedMessage, ...]


@dataclass(frozen=True, slots=True)
class AppendedRecords:
    error: int = 0  # ``model.topic.TopicError``; if it is not NONE, nothing was done
    is_not_local: bool = False  # a different server owns the partition's region: nothing was done


@dataclass(frozen=True, slots=True)
class PushedRecord:
    sequence: bytes  # rises, as bytes compare, within the records of its producer
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class AppendRecords(Message[AppendedRecords]):
    """Append records to a partition of the server; the answer comes when they are on disk.

    Records up to the highest sequence that the partition has of the producer are left out.
    """

    partition: bytes  # its row
    producer: bytes
    records: tuple[PushedRecord, ...]


@dataclass(frozen=True, slots=True)
class SettledLeases:
    lasted: tuple[bool, ...] = ()  # by receipt, whether the lease lasted until then
    is_not_local: bool = False


@dataclass(frozen=True, slots=True)
class SettleLeases(Message[SettledLeases]):
    """End or extend leases on messages of a queue of the server (``queues.lease_ends``)."""

    queue: bytes
    receipts: tuple[bytes, ...]
    what: str
    ms: int
    error: bytes


@dataclass(frozen=True, slots=True)
class WaitChanges(Message[bool]):
    """Wait until a log of these regions has more durable changes than at ``tick``; the answer is False on timeout.

    The answer is True at once if this server does not own all the regions, or did not give the tick.
    """

    regions: tuple[RegionInfo, ...]
    tick: int
    timeout_ms: int


# --- status requests ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OwnFigures(Message[Figures]):
    """Request the figures of this server."""


@dataclass(frozen=True, slots=True)
class RegionStates(Message[tuple[RegionState, ...]]):
    """Request states and sizes of the tables' regions that this server has open."""

    tables: tuple[str, ...]


# --- checks of views ---------------------------------------------------------------------------------
#
# A gateway checks a view against its sources, and repairs it, by requests to the owners of their regions.  Each request
# is for the region that holds a row.  The gateway repeats a request from ``next_row`` on until that is None.  Such a
# request asks for digests (``views.digests``) or, if it names buckets, for the entries in them.  A server that does not
# own the region says so (``is_not_local``, None among snapshots), and has done nothing.


Entry = tuple[bytes, bytes, bytes]  # group, member, hash of the member's contribution


@dataclass(frozen=True, slots=True)
class SourceFound:
    next_row: bytes | None = None  # where the next request begins; None: there are no more rows
    digest: bytes = b""
    rows: int = 0
    rejected: int = 0  # rows that cannot be read, and so contribute nothing
    entries: tuple[tuple[bytes, tuple[Entry, ...]], ...] = ()  # by row
    is_not_local: bool = False


@dataclass(frozen=True, slots=True)
class SourcePart(Message[SourceFound]):
    """Request what rows of a source contribute, from ``start`` on."""

    view: str
    side: int  # number of the source among the view's sources
    start: bytes
    buckets: bytes = b""  # ``digests.Buckets``; empty: a digest of all is requested
    is_summed: bool = False  # a digest of the entries in ``buckets``, not their list


@dataclass(frozen=True, slots=True)
class GroupsFound:
    next_row: bytes | None = None  # where the next request begins; None: there are no more groups
    after: bytes = b""  # the member of that group after which the next request begins
    digest: bytes = b""
    groups: int = 0
    members: int = 0
    wrong: tuple[tuple[bytes, str], ...] = ()  # groups that are at odds with their own members, and in what
    entries: tuple[Entry, ...] = ()
    is_not_local: bool = False


@dataclass(frozen=True, slots=True)
class GroupsPart(Message[GroupsFound]):
    """Request the contents of members, from group ``start`` on; without buckets, check groups by their members."""

    view: str
    start: bytes
    after: bytes = b""
    buckets: bytes = b""
    is_summed: bool = False


@dataclass(frozen=True, slots=True)
class EntriesSnapshot:
    """The contributions of a source row, or the contents of a member, at one moment."""

    print: bytes = b""  # of the cells: different after each change, even if the values are the same
    entries: tuple[Entry, ...] = ()


EntriesSnapshots = tuple[EntriesSnapshot | None, ...]  # None: a different server owns the region


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
    sequence: tuple[int, int, int] = (0, 0, 0)  # above all earlier sequences of the region
    writes: tuple[RowWrite, ...] = ()  # the row's contributions at that sequence, one write for each group
    is_not_local: bool = False


@dataclass(frozen=True, slots=True)
class SayAgain(Message[Said]):
    """Give a source row the next sequence, as a change of the row would, and request its present contributions."""

    view: str
    side: int
    row: bytes


@dataclass(frozen=True, slots=True)
class RepairResult:
    totals: int = 0  # cells that were corrected
    ordered: int = 0
    is_not_local: bool = False


@dataclass(frozen=True, slots=True)
class RepairGroup(Message[RepairResult]):
    """Correct the totals and the order of a group from its members; or only remove ``members`` from it.

    A member is removed if its cell still has the given print.
    """

    view: str
    group: bytes
    members: tuple[tuple[bytes, bytes], ...] = ()  # member, print


CHANGE_READS: Final[tuple[type[Message[Any]], ...]] = (ReadChanges, WaitChanges)
VIEW_CHECKS: Final[tuple[type[Message[Any]], ...]] = (
    SourcePart, GroupsPart, ReadSourceRows, ReadGroupMembers, SayAgain, RepairGroup,
)  # fmt: skip
