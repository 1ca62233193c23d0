"""Assembly of the Thrift 2 service, over the operations of the Thrift 1 service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from columnar.model.region_info import RegionInfo
from columnar.operations.slow_log import SlowLog
from columnar.operations.table_operations import TableOperations
from columnar.thrift.service import ThriftService
from columnar.thrift.sibling_hint import SiblingHint
from columnar.thrift2.alterations import AlterationMethods2
from columnar.thrift2.errors import to_wire
from columnar.thrift2.rows import RowMethods2
from columnar.thrift2.scans import ScanMethods2
from columnar.thrift2.tables import TableMethods2
from columnar.wire.idl2 import SERVICE2

if TYPE_CHECKING:  # a server of a cluster has no master within
    from columnar.master.alterations import Alterations
    from columnar.master.schema_changes import SchemaChanges

DEFINITION: Final[Any] = SERVICE2


@dataclass(frozen=True, slots=True)
class Facts:
    """The server that the service is part of, as its answers describe it."""

    address_of: Callable[[RegionInfo], tuple[str, int]]  # of its server; called only by requests
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
            changes,
            alterations,
            facts.address_of,
            facts.cluster_id,
            int(facts.started_s * 1000),
        ),
        AlterationMethods2(operations.descriptions, alterations),
        definition=DEFINITION,
        to_wire=to_wire,
        other_door=thrift1,
        of_master=of_master,
    )
