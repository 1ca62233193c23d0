"""(pure) The route of each method of both services through a cluster: which server answers it.

    READ, WRITE   a single row: the owner of its region; the message is forwarded unchanged
    ROWS          several rows or regions: the gateway splits the call by owners
    SCANNER       an open scanner: the server that opened it
    MASTER        changes of tables, namespaces, regions and snapshots: the master
    OWNERS        all owners of a table, or all servers: requested concurrently, and their answers merged
    LOCAL         any server, from its copy of the catalogue or its own settings

``tests/unit/cluster/test_method_routing.py`` checks the tables against the IDL: each method has one route.

Knows nothing of bytes, servers and handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final

from columnar.cluster.row_forms import THRIFT1, THRIFT2
from columnar.model.lease import LEASES_TABLE
from columnar.model.queue_place import QUEUES_TABLE, first_row
from columnar.model.topic import TOPICS_TABLE


class MethodRoute(Enum):
    READ = auto()
    WRITE = auto()
    ROWS = auto()
    SCANNER = auto()
    MASTER = auto()
    OWNERS = auto()
    LOCAL = auto()


ONE_ROW: Final = frozenset({MethodRoute.READ, MethodRoute.WRITE})
RowOf = Callable[[Sequence[Any]], Any]  # the row among a method's arguments; None: it was left out


def _listed(route: MethodRoute, names: str) -> dict[str, MethodRoute]:
    return dict.fromkeys(names.split(), route)


_THRIFT1: Final = {
    **_listed(
        MethodRoute.READ,
        "get getVer getVerTs getRow getRowWithColumns getRowTs getRowWithColumnsTs columnarLoadTarget columnarRowSlice"
        " columnarReadGroup columnarQueuePeek columnarQueueStats columnarQueueDead"
        " columnarPartitionFetch columnarPartitionWait columnarPartitionOffset columnarPartitionState",
    ),
    **_listed(
        MethodRoute.WRITE,
        "mutateRow mutateRowTs atomicIncrement increment deleteAll deleteAllTs deleteAllRow deleteAllRowTs append"
        " checkAndPut columnarCheckAndMutate columnarMutateGroup columnarLease"
        " columnarQueuePush columnarQueuePop columnarQueueSettle columnarQueueConfigure columnarQueueRedrive"
        " columnarQueueRemoveDead columnarQueuePurge columnarQueueDrop"
        " columnarPartitionSet columnarPartitionDrop columnarPartitionProduce columnarConsumerGroup",
    ),
    **_listed(
        MethodRoute.ROWS,
        "getRows getRowsWithColumns getRowsTs getRowsWithColumnsTs getRowOrBefore mutateRows mutateRowsTs"
        " incrementRows columnarMutateRows columnarCheckAndMutateRows columnarLoadRows columnarDeleteRows"
        " columnarIngest",
    ),
    **_listed(
        MethodRoute.LOCAL,
        "scannerOpenWithScan scannerOpen scannerOpenWithStop scannerOpenWithPrefix scannerOpenTs scannerOpenWithStopTs",
    ),
    **_listed(MethodRoute.SCANNER, "scannerGet scannerGetList scannerClose"),
    **_listed(
        MethodRoute.LOCAL,
        "isTableEnabled getTableNames getTableNamesWithIsTableEnabled getColumnDescriptors getTableRegions"
        " getRegionInfo getThriftServerType getClusterId columnarDescribeTable columnarTableExists"
        " columnarListNamespaces columnarListNamespaceTables columnarDescribeNamespace"
        " columnarTriggerList columnarDeadLetters columnarTriggerDeadShow columnarViewList columnarViewCheck"
        " columnarRegionOwners columnarRoute columnarWhoAmI"
        " columnarTopicCreate columnarTopicConfigure columnarTopicDrop columnarTopicList columnarTopicProducer"
        " columnarTopicWait columnarTopicGroups columnarTopicAudit columnarFeeds",
    ),
    **_listed(
        MethodRoute.MASTER,
        "enableTable disableTable createTable deleteTable columnarCreateTable columnarAlterTable columnarDropTable"
        " columnarTruncateTable columnarSplit columnarMerge"
        " columnarCreateNamespace columnarAlterNamespace columnarDropNamespace"
        " columnarTriggerAdd columnarTriggerSync columnarTriggerReload"
        " columnarTriggerRemove columnarTriggerPause columnarTriggerResume columnarTriggerReplay"
        " columnarSnapshotTake columnarSnapshotList"
        " columnarSnapshotClone columnarSnapshotRestore columnarSnapshotDelete columnarStage columnarStageRelease"
        " columnarStageAdopt columnarServers columnarLocations columnarLocate columnarTransitions columnarDecisions"
        " columnarMove columnarAssign columnarUnassign columnarDrain columnarDrainNode columnarBalance columnarSwitch"
        " columnarRestart columnarStop columnarFence columnarMaintenance columnarAcquireMaintenance"
        " columnarReleaseMaintenance columnarViewAdd columnarViewDrop columnarViewRebuild columnarViewSwap"
        " columnarViewRollback columnarFeedAdd columnarFeedDrop"
        " columnarGrant columnarRevoke columnarPermissions columnarSetGroup columnarUsers"
        " columnarSetPassword columnarAddToken columnarRemoveToken columnarDropUser columnarLogLevels"
        " columnarQueuePrepare columnarTopicPrepare",
    ),
    **_listed(
        MethodRoute.OWNERS,
        "compact majorCompact columnarStatus columnarRegions columnarFlush columnarCompact columnarTriggerDead"
        " columnarTriggers columnarTriggerRetry columnarWait columnarTriggerWait columnarTriggerDeadRetry"
        " columnarTriggerDeadSkip columnarTriggerDeadPurge columnarViews columnarViewWait columnarFlows"
        " columnarCheckView columnarChanges columnarCommit columnarReaderGroups columnarDropReaderGroup",
    ),
}
_THRIFT2: Final = {
    **_listed(MethodRoute.READ, "exists get"),
    **_listed(
        MethodRoute.WRITE, "put checkAndPut deleteSingle checkAndDelete increment append mutateRow checkAndMutate"
    ),
    **_listed(MethodRoute.ROWS, "existsAll getMultiple putMultiple deleteMultiple getScannerResults"),
    **_listed(MethodRoute.SCANNER, "getScannerRows closeScanner"),
    **_listed(
        MethodRoute.LOCAL,
        "openScanner getRegionLocation getAllRegionLocations getTableDescriptor getTableDescriptors tableExists"
        " getTableDescriptorsByPattern getTableDescriptorsByNamespace getTableNamesByPattern getTableNamesByNamespace"
        " isTableEnabled isTableDisabled isTableAvailable isTableAvailableWithSplit getNamespaceDescriptor"
        " listNamespaceDescriptors listNamespaces getThriftServerType getClusterId",
    ),
    **_listed(
        MethodRoute.MASTER,
        "createTable deleteTable truncateTable enableTable disableTable addColumnFamily deleteColumnFamily"
        " modifyColumnFamily modifyTable createNamespace modifyNamespace deleteNamespace",
    ),
    **_listed(MethodRoute.OWNERS, "getSlowLogResponses clearSlowLogResponses"),
}
METHOD_ROUTES: Final[Mapping[int, Mapping[str, MethodRoute]]] = {THRIFT1: _THRIFT1, THRIFT2: _THRIFT2}


def _second(args: Sequence[Any]) -> Any:
    return args[1] if len(args) > 1 else None


def _of_first(args: Sequence[Any]) -> Any:
    return getattr(args[0], "row", None) if args else None


def _of_second(args: Sequence[Any]) -> Any:
    return getattr(args[1], "row", None) if len(args) > 1 else None


def _first(args: Sequence[Any]) -> Any:
    return args[0] if args else None


def _first_row(_args: Sequence[Any]) -> Any:
    return b""  # the first region of the table


def _of_queue(args: Sequence[Any]) -> Any:
    return first_row(args[0]) if args and args[0] else None


_QUEUE: Final = "columnarQueue"  # the methods of queues name their queue and no table
_PARTITION: Final = "columnarPartition"  # and those of partitions of topics the row of a partition
_CONSUMERS: Final = "columnarConsumerGroup"  # the same for the row of a group of consumers
_IN_FIRST: Final = frozenset({"increment", "append"})  # Thrift 1: TIncrement, TAppend
_BESIDE_TABLE: Final = frozenset({"checkAndPut", "checkAndDelete", "checkAndMutate"})  # Thrift 2; else TGet, TPut, ...

# methods of a single row of a table that they do not name; their first argument is the row, or the queue
TABLE_OF: Final[Mapping[str, bytes]] = {
    "columnarLease": LEASES_TABLE.encode(),
    **dict.fromkeys([name for name in _THRIFT1 if name.startswith(_QUEUE)], QUEUES_TABLE.encode()),
    **dict.fromkeys([name for name in _THRIFT1 if name.startswith((_PARTITION, _CONSUMERS))], TOPICS_TABLE.encode()),
}


def names_queue(method: str) -> bool:
    """Return whether a method of a single row names a queue, or a partition of a topic, instead of table and row."""
    return method.startswith((_QUEUE, _PARTITION, _CONSUMERS))


def _row_of(service: int, method: str) -> RowOf:
    if method.startswith(_QUEUE):
        return _of_queue
    if method == "columnarLoadTarget":
        return _first_row
    if method in TABLE_OF:
        return _first
    if service == THRIFT1:
        return _of_first if method in _IN_FIRST else _second
    return _second if method in _BESIDE_TABLE else _of_second


# service -> method of a single row -> its row in the arguments
ROWS_OF: Final[Mapping[int, Mapping[str, RowOf]]] = {
    service: {method: _row_of(service, method) for method, way in ways.items() if way in ONE_ROW}
    for service, ways in METHOD_ROUTES.items()
}
