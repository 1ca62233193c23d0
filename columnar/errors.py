"""The exception tree, grouped by who must act.

    ColumnarError
      CallerError       the caller: the same request again fails again; nothing was changed
        IllegalArgument   ... the request itself is malformed (a declared IllegalArgument where the method has one)
      RetryLater        only time: the same request may succeed later; nothing was changed
      OutcomeUnknown    the host failed between write and fsync: it may or may not be there after a restart
      DamagedData       the operator: bytes on disk are not what we wrote
      HostError         the operator: the machine refuses (disk full, no descriptors, folder in use)
      ProgramFault      the maintainers of this program: an unexpected exception

Each class carries ``hbase_class``, the name of the exception that HBase gives in the same
place: clients match on it, so every message on the wire begins with it.  An exception keeps
its fields and makes its one-line text from them.

Knows nothing of Thrift: which declared exception a method answers with is one table in
``columnar.thrift.service``.
"""

from __future__ import annotations

from asyncio import Future
from typing import ClassVar

from columnar.limits import IMAGE_BYTES, IMAGE_CELLS


def printable(data: bytes) -> str:
    """Return ``data`` as one line, as HBase's ``Bytes.toStringBinary`` writes it."""
    return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02X}" for b in data)


def abbreviate(data: bytes) -> str:
    """The beginning of ``data`` as one short line."""
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
        """Return one line that begins with HBase's class name."""
        return f"{self.hbase_class}: {' '.join(self.text.split())}"


# --- the caller must act -------------------------------------------------------------------------


class CallerError(ColumnarError):
    hbase_class = "DoNotRetryIOException"


class IllegalArgument(CallerError):
    hbase_class = "IllegalArgumentException"


class NotSent(IllegalArgument):
    """A required argument is not there, or is of another type: perhaps the client speaks another service."""


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
    """A filter that takes more time for one row than other requests can wait; ``why`` says which part of it."""

    def __init__(self, row: bytes, filter_text: bytes, why: str) -> None:
        super().__init__(f"row '{abbreviate(row)}' cannot be filtered by {abbreviate(filter_text)}: {why}")
        self.row = row


class RowTooBig(CallerError):
    """A row that is too large for one answer."""

    hbase_class = "RowTooBigException"

    def __init__(self, row: bytes, bound: int) -> None:
        text = f"row '{abbreviate(row)}' has over {bound} bytes in an answer"
        super().__init__(f"{text}; ask for some of its columns, or scan it with a ColumnPaginationFilter")
        self.row = row


class ServersEnded(CallerError):
    """Work under which two owners of its row ended: it is not sent to the next one."""

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
    """Something else stands against it; the text says what, and what to do first."""

    hbase_class = "ConstraintException"


class TableReadOnly(_AboutTable):
    """HBase's HRegion says "region is read only"."""

    wording = "region is read only: table {} has READONLY=true; set it to false to write"


class NoSuchColumnFamily(CallerError):
    hbase_class = "NoSuchColumnFamilyException"

    def __init__(self, family: bytes, table: str) -> None:
        hint = "" if family else "; a column is written family:qualifier"
        super().__init__(f"Column family {abbreviate(family) or repr('')} does not exist in table {table}{hint}")
        self.family = family
        self.table = table


class InvalidFamilyOperation(CallerError):
    """HBase's answer to a change of a family that is there already, that is missing, or that is the last."""

    hbase_class = "InvalidFamilyOperationException"


class NotALong(CallerError):
    def __init__(self, width_bytes: int) -> None:
        super().__init__(f"Field is not a long, it's {width_bytes} bytes wide")
        self.width_bytes = width_bytes


class NotAMember(CallerError):
    """Somebody else's cell stands where a contribution keeps what its source gives."""

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
    """As HBase's client answers a put; ``CellTooBig`` is its server's answer to an append."""

    def __init__(self, column: bytes, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            f"KeyValue size too large: the cell {abbreviate(column)} of {size_bytes} bytes is over the limit of "
            f"{limit_bytes}; nothing was stored"
        )


class RequestTooBig(CallerError):
    hbase_class = "RequestTooBigException"


class ImageTooBig(CallerError):
    """A follower wants all of a family with each change of a row, and the row has too much there."""

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
    """A change of a client led to so many others, one after the other, that it must be a cycle."""

    def __init__(self, hops: int, most: int) -> None:
        super().__init__(f"{hops} changes led to this one, and its effects would be more than {most}: they go round")


class ViewError(CallerError):
    """A view cannot be found, or not be changed as requested."""


# --- only time -----------------------------------------------------------------------------------


class RetryLater(ColumnarError):
    hbase_class = "RegionTooBusyException"


class RegionTooBusy(RetryLater):
    pass


class CallQueueTooBig(RetryLater):
    hbase_class = "CallQueueTooBigException"


class Throttled(RetryLater):
    """A quota of the table is used up; ``exceeded`` in HBase's words, so that its clients find the wait."""

    hbase_class = "RpcThrottlingException"

    def __init__(self, table: str, exceeded: str, wait_ms: int, limit: str) -> None:
        super().__init__(f"{exceeded} - wait {wait_ms}ms; table {table} has THROTTLE {limit}")
        self.table = table
        self.wait_ms = wait_ms
        self.limit = limit


class NotServingRegion(RetryLater):
    hbase_class = "NotServingRegionException"


class RegionUnavailable(NotServingRegion):
    """The region is being opened or replaced, or its failed store closed: nothing was done, retry after ``available``.

    Clients get this error only if that takes too long; until then their calls wait.
    """

    def __init__(self, region: str, available: Future[None], *, is_opening: bool = False) -> None:
        super().__init__(f"region {region} is being opened, split or merged; try again shortly")
        self.available = available
        self.is_opening = is_opening  # in a queue of openings, which may be long


class RegionNotLocal(NotServingRegion):
    """Another server owns the region: nothing was done here, so the caller's message can be forwarded unchanged."""

    def __init__(self, table: str, region: str) -> None:
        super().__init__(f"region {region} of {table} is served by another; ask again")
        self.table = table
        self.region = region  # encoded


class ForwardToMaster(RetryLater):
    """The master answers this method: nothing was done here, so the caller's message can be forwarded unchanged."""

    hbase_class = "MasterNotRunningException"

    def __init__(self, method: str) -> None:
        super().__init__(f"{method} is answered by the master, which cannot be reached; try again")
        self.method = method


class TooManyScanners(RetryLater):
    hbase_class = "CallQueueTooBigException"


class ClientGone(RetryLater):
    """The connection has ended: what its call had not begun is not begun.  Only metrics and tests see this error."""

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
    """The disk has failed to read or write: its later answers about the same bytes are not to be believed."""


class FolderInUse(HostError):
    def __init__(self, folder: str, owner: str) -> None:
        super().__init__(f"the data folder {folder} is in use by {owner}; stop that one first or choose another --data")


# --- the maintainer ------------------------------------------------------------------------------


class ProgramFault(ColumnarError):
    """Work met an unexpected exception; its traceback is in the server's log (``faults``)."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"a fault of the program, see the server's log: {type(cause).__name__}: {cause}"[:500])
