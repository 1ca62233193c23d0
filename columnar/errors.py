"""The exception tree, grouped by who must act.

    ColumnarError
      CallerError       the caller must act: the same request would fail again; nothing was changed
        IllegalArgument   ... the request itself is malformed (sent as IllegalArgument if the method declares it)
      RetryLater        only time helps: the same request may succeed later; nothing was changed
      OutcomeUnknown    the host failed between write and fsync: the write may or may not exist after a restart
      DamagedData       the operator must act: bytes on disk are not what we wrote
      HostError         the operator must act: the machine refuses (disk full, no descriptors, folder in use)
      ProgramFault      the maintainers of this program must act: an unexpected exception

Each class has ``hbase_class``, the name of HBase's exception for the same case.  Clients match on that name, so every
message on the wire begins with it.  An exception keeps its fields and makes its one-line text from them.

Knows nothing of Thrift; a table in ``columnar.thrift.service`` maps the classes to exceptions that methods declare.
"""

from __future__ import annotations

from asyncio import Future
from typing import ClassVar

from columnar.limits import IMAGE_BYTES, IMAGE_CELLS


def printable(data: bytes) -> str:
    """Return ``data`` as one line, as HBase's ``Bytes.toStringBinary`` writes it."""
    return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02X}" for b in data)


def abbreviate(data: bytes) -> str:
    """Return the beginning of ``data`` as one short line."""
    text = printable(data[:80])
    return text if len(data) <= 80 else f"{text}... ({len(data)} bytes)"


class ColumnarError(Exception):
    """Base of all errors that we raise on purpose."""

    hbase_class: ClassVar[str] = "IOException"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    @property
    def wire_message(self) -> str:
        """The error as one line that begins with HBase's class name."""
        return f"{self.hbase_class}: {' '.join(self.text.split())}"


# --- the caller must act -------------------------------------------------------------------------


class CallerError(ColumnarError):
    hbase_class = "DoNotRetryIOException"


class IllegalArgument(CallerError):
    hbase_class = "IllegalArgumentException"


class NotSent(IllegalArgument):
    """A required argument is missing or has a wrong type: perhaps the client uses a different service."""


class VersionsNotPositive(IllegalArgument):
    hbase_class = "IOException"

    def __init__(self, versions: int) -> None:
        super().__init__(f"versions must be positive, not {versions}")


class FilterSyntaxError(IllegalArgument):
    """A filter string that the language does not allow; ``position`` counts bytes from 0."""

    def __init__(self, problem: str, position: int) -> None:
        super().__init__(f"filter string, at byte {position}: {problem}")
        self.problem = problem
        self.position = position


class IncompatibleFilter(CallerError):
    hbase_class = "org.apache.hadoop.hbase.filter.IncompatibleFilterException"

    def __init__(self) -> None:
        super().__init__("Cannot set batch on a scan using a filter that returns true for filter.hasFilterRow")


class FilterTooExpensive(CallerError):
    """A filter takes more time for one row than other requests can wait; ``why`` names the expensive part."""

    def __init__(self, row: bytes, filter_text: bytes, why: str) -> None:
        super().__init__(f"row '{abbreviate(row)}' cannot be filtered by {abbreviate(filter_text)}: {why}")
        self.row = row


class RowTooBig(CallerError):
    """A row is too large for one answer."""

    hbase_class = "RowTooBigException"

    def __init__(self, row: bytes, bound: int) -> None:
        text = f"row '{abbreviate(row)}' has over {bound} bytes in an answer"
        super().__init__(f"{text}; ask for some of its columns, or scan it with a ColumnPaginationFilter")
        self.row = row


class ServersEnded(CallerError):
    """Two owners of a row ended while they did the same work, so it is not sent to a third."""

    def __init__(self, table: str, row: bytes, server: str) -> None:
        text = f"two servers ended while they worked for this call on row '{abbreviate(row)}' of table {table}"
        super().__init__(f"{text}, the last one {server}; it is not repeated, as it may be what ends them")
        self.row = row


class _AboutTable(CallerError):
    wording: ClassVar[str] = "{}"

    def __init__(self, table: str) -> None:
        super().__init__(self.wording.format(table))
        self.table = table


class TableNotFound(_AboutTable):
    hbase_class = "TableNotFoundException"


class TableExists(_AboutTable):
    hbase_class = "TableExistsException"
    wording = "table {} exists already"


class TableNotEnabled(_AboutTable):
    hbase_class = "TableNotEnabledException"
    wording = "{} is disabled."


class TableNotDisabled(_AboutTable):
    hbase_class = "TableNotDisabledException"
    wording = "{} is enabled; disable it first"


class NamespaceNotFound(CallerError):
    hbase_class = "NamespaceNotFoundException"


class NamespaceExists(CallerError):
    hbase_class = "NamespaceExistException"


class NotAllowed(CallerError):
    """The present state forbids the request; the text says why, and what to do first."""

    hbase_class = "ConstraintException"


class TopicRefused(CallerError):
    """A topic does not take records of the store; the text says why, and what to do."""


class ChangesGone(CallerError):
    """A change stream's position is before the changes that the log still has; the text says what to do."""

    hbase_class = "ChangesGoneException"  # ours alone: HBase has no such reader


class AccessDenied(CallerError):
    """The user lacks a right; the text names the user, the scope and the right, as HBase's does."""

    hbase_class = "org.apache.hadoop.hbase.security.AccessDeniedException"

    def __init__(self, user: str, scope: str, action: str) -> None:
        who = f"user={user}" if user else "nobody has signed in"
        super().__init__(f"Insufficient permissions ({who}, scope={scope or 'GLOBAL'}, action={action})")
        self.user = user
        self.scope = scope
        self.action = action


class SignInRefused(CallerError):
    """A client did not sign in; the text does not say whether the user or the secret was wrong."""

    hbase_class = "AccessDeniedException"


class TableReadOnly(_AboutTable):
    """The table is read-only; the text is HBase's "region is read only"."""

    wording = "region is read only: table {} has READONLY=true; set it to false to write"


class NoSuchColumnFamily(CallerError):
    hbase_class = "NoSuchColumnFamilyException"

    def __init__(self, family: bytes, table: str) -> None:
        hint = "" if family else "; a column is written family:qualifier"
        super().__init__(f"Column family {abbreviate(family) or repr('')} does not exist in table {table}{hint}")
        self.family = family
        self.table = table


class InvalidFamilyOperation(CallerError):
    """A family exists already, is missing, or is the table's last; HBase's answer to such a change."""

    hbase_class = "InvalidFamilyOperationException"


class NotALong(CallerError):
    def __init__(self, width_bytes: int) -> None:
        super().__init__(f"Field is not a long, it's {width_bytes} bytes wide")
        self.width_bytes = width_bytes


class NotAMember(CallerError):
    """The cell where a contribution stores its source's amounts was written by something else."""

    def __init__(self, table: str, row: bytes, column: bytes, why: str) -> None:
        super().__init__(
            f"the cell {abbreviate(column)} of row {abbreviate(row)} of {table} was not written by a contribution "
            f"({why}); nothing was stored: delete the cell, or keep members in another family"
        )
        self.row = row
        self.column = column


class CellTooBig(CallerError):
    hbase_class = "DoNotRetryIOException"

    def __init__(self, what: str, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"{what} of {size_bytes} bytes is over the limit of {limit_bytes}; nothing was stored")


class PutTooBig(IllegalArgument):
    """A put's cell is too large; HBase's client raises this.

    ``CellTooBig`` is HBase's server's answer to an append.
    """

    def __init__(self, column: bytes, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            f"KeyValue size too large: the cell {abbreviate(column)} of {size_bytes} bytes is over the limit of "
            f"{limit_bytes}; nothing was stored"
        )


class RequestTooBig(CallerError):
    hbase_class = "RequestTooBigException"


class ImageTooBig(CallerError):
    """A follower needs the row's whole family with each change, and that family is too large in this row."""

    def __init__(self, table: str, row: bytes, family: bytes, asker: str) -> None:
        super().__init__(
            f"row {abbreviate(row)} of table {table} has over {IMAGE_CELLS} cells or {IMAGE_BYTES} bytes in family "
            f"{abbreviate(family)}, all of which {asker} reads with each change; nothing was stored: spread the cells "
            f"over more rows, or remove {asker} or have it name columns"
        )
        self.row = row
        self.family = family
        self.asker = asker


class ScannerNotFound(IllegalArgument):
    def __init__(self, scanner_id: int) -> None:
        super().__init__(f"scanner ID is invalid: {scanner_id} is closed, expired or was never open; open a new one")
        self.scanner_id = scanner_id


class SnapshotNotFound(CallerError):
    hbase_class = "SnapshotDoesNotExistException"


class SnapshotExists(CallerError):
    hbase_class = "SnapshotExistsException"


class TriggerError(CallerError):
    """A trigger cannot be registered, found or run as requested."""


class TooManyHops(TriggerError):
    """A client's change caused such a long chain of further changes that it must be a cycle."""

    def __init__(self, hops: int, most: int) -> None:
        super().__init__(f"{hops} changes led to this one, and its effects would be more than {most}: they go round")


class ViewError(CallerError):
    """A view cannot be found, or not be changed as requested."""


class FeedError(CallerError):
    """A feed cannot be found, or not be changed as requested."""


# --- only time -----------------------------------------------------------------------------------


class RetryLater(ColumnarError):
    hbase_class = "RegionTooBusyException"


class RegionTooBusy(RetryLater):
    pass


class CallQueueTooBig(RetryLater):
    hbase_class = "CallQueueTooBigException"


class Throttled(RetryLater):
    """A quota of the table is used up; ``exceeded`` has HBase's wording, from which its clients read the wait."""

    hbase_class = "RpcThrottlingException"

    def __init__(self, table: str, exceeded: str, wait_ms: int, limit: str) -> None:
        super().__init__(f"{exceeded} - wait {wait_ms}ms; table {table} has THROTTLE {limit}")
        self.table = table
        self.wait_ms = wait_ms
        self.limit = limit


class SignInBusy(RetryLater):
    """Passwords are not verified now: too many wait, or this client sent too many wrong ones."""

    hbase_class = "CallQueueTooBigException"

    def __init__(self, why: str, wait_s: int = 1) -> None:
        super().__init__(f"{why}; sign in again in {wait_s} s")
        self.wait_s = wait_s


class NotServingRegion(RetryLater):
    hbase_class = "NotServingRegionException"


class FolderTakenOver(NotServingRegion):
    """A later owner, which may not be known here yet, has taken the region's folder over."""

    def __init__(self, region: str, generation: int, found: int) -> None:
        super().__init__(
            f"the folder of region {region} is at generation {found}, and the owner here at {generation}: another "
            "server owns the region"
        )


class RegionUnavailable(NotServingRegion):
    """The region is being opened or replaced, or its failed store closed.  Nothing was done; retry after ``available``.

    The calls of clients wait; clients get this error only if the wait is too long.
    """

    def __init__(self, region: str, available: Future[None], *, is_opening: bool = False) -> None:
        super().__init__(f"region {region} is being opened, split or merged; try again shortly")
        self.available = available
        self.is_opening = is_opening  # waits in the queue of openings, which may be long


class RegionNotLocal(NotServingRegion):
    """Another server owns the region: nothing was done here, so the caller's message can be forwarded unchanged."""

    def __init__(self, table: str, region: str) -> None:
        super().__init__(f"region {region} of {table} is served by another; ask again")
        self.table = table
        self.region = region  # encoded


class RegionMoved(NotServingRegion):
    """Another server owns the region, and the client calls owners itself: nothing was done.

    The text is HBase's, from which clients read the owner's address.
    """

    hbase_class = "RegionMovedException"


class ForwardToMaster(RetryLater):
    """The master answers this method: nothing was done here, so the caller's message can be forwarded unchanged."""

    hbase_class = "MasterNotRunningException"

    def __init__(self, method: str) -> None:
        super().__init__(f"{method} is answered by the master, which cannot be reached; try again")
        self.method = method


class TooManyScanners(RetryLater):
    hbase_class = "CallQueueTooBigException"


class ClientGone(RetryLater):
    """The connection has ended, so its call begins no further step.  Only metrics and tests see this error."""

    def __init__(self) -> None:
        super().__init__("the client has gone; nothing further was done for it")


# --- the operator --------------------------------------------------------------------------------


class OutcomeUnknown(ColumnarError):
    """The write may or may not survive: read the row again before repeating it."""

    hbase_class = "CallTimeoutException"


class DamagedData(ColumnarError):
    hbase_class = "CorruptHFileException"


class HostError(ColumnarError):
    hbase_class = "IOException"


class DiskFails(HostError):
    """The disk failed to read or write; its later answers about the same bytes cannot be trusted."""


class FolderInUse(HostError):
    def __init__(self, folder: str, owner: str) -> None:
        super().__init__(f"the data folder {folder} is in use by {owner}; stop that one first or choose another --data")


# --- the maintainer ------------------------------------------------------------------------------


class ProgramFault(ColumnarError):
    """Work met an unexpected exception; its traceback is in the server's log (``faults``)."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"a fault of the program, see the server's log: {type(cause).__name__}: {cause}"[:500])
