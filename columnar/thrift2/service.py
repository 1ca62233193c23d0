"""Assembly of the Thrift 2 service, over the operations of the Thrift 1 service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from columnar.errors import CallerError, ColumnarError, ScannerNotFound
from columnar.model.region_info import RegionInfo
from columnar.operations.slow_log import SlowLog
from columnar.operations.table_operations import TableOperations
from columnar.thrift.service import SiblingHint, ThriftService
from columnar.thrift2.rows import RowMethods2, ScanMethods2
from columnar.thrift2.tables import AlterationMethods2, TableMethods2
from columnar.wire.idl2 import SERVICE2, hbase2
from columnar.wire.service import NO_ERROR

if TYPE_CHECKING:  # a server of a cluster has no master within
    from columnar.master.alterations import Alterations
    from columnar.master.schema_changes import SchemaChanges

DEFINITION: Final[Any] = SERVICE2


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about this server that answers of the service state."""

    address_of: Callable[[RegionInfo], tuple[str, int]]  # of the region's server; called only during requests
    cluster_id: str
    started_s: float  # time.time()


def make(
    operations: TableOperations,
    slow_log: SlowLog,
    changes: SchemaChanges,
    alterations: Alterations,
    facts: Facts,
    thrift1: SiblingHint,
    of_master: frozenset[str] = frozenset(),
) -> ThriftService:
    return ThriftService(
        operations.scanners,
        slow_log,
        RowMethods2(operations),
        ScanMethods2(operations),
        TableMethods2(
            operations.descriptions,
            alterations,
            facts.address_of,
            facts.cluster_id,
            int(facts.started_s * 1000),
        ),
        AlterationMethods2(operations.descriptions, changes, alterations),
        definition=DEFINITION,
        to_wire=to_wire,
        other_door=thrift1,
        of_master=of_master,
    )


# --- errors ------------------------------------------------------------------------------------------


def to_wire(method: str, error: Exception) -> Any | None:
    """Return the struct with which to answer ``error``; None if we do not raise such errors on purpose."""
    if not isinstance(error, ColumnarError):
        return None
    if isinstance(error, ScannerNotFound) and method == "closeScanner":
        return NO_ERROR  # closing an unknown scanner is no error, as in HBase 2.6.1
    declared = {field[2].__name__ for number, field in SERVICE2.signatures[method].result.items() if number}
    if isinstance(error, ScannerNotFound) and "TIllegalArgument" in declared:
        return hbase2.TIllegalArgument(message=f"Invalid scanner Id: {error.scanner_id} is closed or expired")
    if "TIOError" in declared:
        return hbase2.TIOError(message=error.wire_message, canRetry=not isinstance(error, CallerError))
    return None
