"""(pure) The right that each method of both services needs, as HBase's AccessController asks it.

    ReadRule       R on the columns that a read selects; a user with less reads the columns that the user may read
    PartsRule      rights on the columns that a call names; each of them, or the call is refused; for sends also W on
                   everything, as for a push to a queue
    QueueRule      all of some rights on everything
    IncrementsRule as PartsRule, for each increment at its own table
    MakerRule      X or A on everything, and R on all that the new trigger or view reads; A if it posts to a URL
    TableRule      one of some rights on a whole table: C or A for its schema, A for its regions, X or A for triggers
    RegionsRule    one of some rights on the tables of regions, which the arguments name
    NamespaceRule  one of some rights on a namespace
    GlobalRule     one of some rights on everything
    AnyRightRule   any right within the table
    ScannerRule    the user who opened the scanner; ``operations.scanner_table`` checks that
    SignedInRule   a user, whatever the user's rights
    OpenRule       everybody

    LIST_FILTERS   methods that answer to every user, with the tables and namespaces in which the user has a right

Deviations from HBase, all of them stricter: methods whose reply has a new value (``append``, ``atomicIncrement``) need
R besides W; ``get`` of a whole family needs the family, where a read of rows is narrowed.

``tests/unit/rights/test_method_rights.py`` checks that each method of the IDL has one rule.

Knows nothing of users and grants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from columnar.cluster.row_forms import THRIFT1, THRIFT2
from columnar.model.rights import ADMIN, CREATE, EXEC, READ, WRITE
from columnar.model.schema import namespace_of, table_name_text
from columnar.rights import named_columns as named
from columnar.rights.derivation_parts import (
    PartsByTable,
    all_serving_rights,
    feed_reads,
    rebuilt_view_reads,
    serving_rights,
    trigger_reads,
    triggers_reads,
    view_reads,
)
from columnar.rights.named_columns import Parts, Selections

NameOf = Callable[[Sequence[Any]], str]  # of a call's arguments


@dataclass(frozen=True, slots=True)
class ReadRule:
    selections: Selections
    need: int = READ


@dataclass(frozen=True, slots=True)
class PartsRule:
    parts: Parts
    need: int  # the rights on the whole table that cover every part
    sends: Callable[[Sequence[Any]], bool] | None = None  # whether a call sends messages, which needs W on everything


@dataclass(frozen=True, slots=True)
class QueueRule:
    """Rights on everything: the table of queues is in the system's namespace, which has no grants of its own."""

    rights: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IncrementsRule:
    pass


@dataclass(frozen=True, slots=True)
class MakerRule:
    reads: Callable[[Sequence[Any]], PartsByTable]  # of a call's arguments
    any_of: int = EXEC | ADMIN
    also: Callable[[Sequence[Any]], Iterable[int]] | None = None  # returns the rights on everything needed besides


@dataclass(frozen=True, slots=True)
class TableRule:
    any_of: int
    table_of: NameOf  # "" if the argument names no table: then the right is needed at global scope
    is_region: bool = False  # the argument may name a region instead


@dataclass(frozen=True, slots=True)
class RegionsRule:
    any_of: int
    count: int  # of the first arguments, each of which names a region and never a table


@dataclass(frozen=True, slots=True)
class NamespaceRule:
    any_of: int
    namespace_of: NameOf


@dataclass(frozen=True, slots=True)
class GlobalRule:
    any_of: int


@dataclass(frozen=True, slots=True)
class AnyRightRule:
    table_of: NameOf


@dataclass(frozen=True, slots=True)
class ScannerRule:
    pass


@dataclass(frozen=True, slots=True)
class SignedInRule:
    pass


@dataclass(frozen=True, slots=True)
class OpenRule:
    pass


Rule = (
    ReadRule
    | PartsRule
    | QueueRule
    | IncrementsRule
    | MakerRule
    | TableRule
    | RegionsRule
    | NamespaceRule
    | GlobalRule
    | AnyRightRule
    | ScannerRule
    | SignedInRule
    | OpenRule
)
SCHEMA: Final = CREATE | ADMIN
DELIVERY: Final = EXEC | ADMIN


# --- names in arguments ------------------------------------------------------------------------------


def _text(value: Any) -> str:
    return table_name_text(value) if isinstance(value, bytes) else str(value or "")


def first_table(args: Sequence[Any]) -> str:
    return _text(args[0])


def _second_table(args: Sequence[Any]) -> str:
    return _text(args[1])


def _region_table(args: Sequence[Any]) -> str:
    """Return the table of a region's name ``table,start,id``; the argument may also be a row of the catalogue."""
    return table_name_text((args[0] or b"").partition(b",")[0])


def _table2(name: Any) -> str:
    if name is None:
        return ""
    qualifier = _text(name.qualifier)
    return f"{_text(name.ns)}:{qualifier}" if name.ns and name.ns != b"default" else qualifier


def _first_table2(args: Sequence[Any]) -> str:
    return _table2(args[0])


def _described2(args: Sequence[Any]) -> str:
    return _table2(getattr(args[0], "tableName", None))


def _namespace_first(args: Sequence[Any]) -> str:
    return _text(args[0])


def _namespace_described2(args: Sequence[Any]) -> str:
    return _text(getattr(args[0], "name", None))


def _namespace_of(table_of: NameOf) -> NameOf:
    return lambda args: namespace_of(table_of(args))


# --- the tables of rules -----------------------------------------------------------------------------


def _listed(rule: Rule, names: str) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


_WRITES: Final = PartsRule(named.writes_whole_table, WRITE)
_READ_WRITE: Final = READ | WRITE
_ANY: Final = AnyRightRule(first_table)

_THRIFT1: Final[Mapping[str, Rule]] = {
    # rows
    **_listed(PartsRule(named.column_at(2, READ), READ), "get getVer getVerTs"),
    **_listed(PartsRule(named.family_at(2), READ), "getRowOrBefore columnarRowSlice"),
    **_listed(ReadRule(named.attribute_at(2)), "getRow getRows"),
    **_listed(ReadRule(named.attribute_at(3)), "getRowTs getRowsTs"),
    **_listed(
        ReadRule(named.list_at(2)),
        "getRowWithColumns getRowWithColumnsTs getRowsWithColumns getRowsWithColumnsTs scannerOpen scannerOpenTs"
        " scannerOpenWithPrefix",
    ),
    **_listed(ReadRule(named.list_at(3)), "scannerOpenWithStop scannerOpenWithStopTs"),
    "scannerOpenWithScan": ReadRule(named.of_scan),
    "columnarChanges": ReadRule(named.of_changes),
    # who may read a table, or a part of it, may use every group of its readers
    **_listed(ReadRule(named.whole_table), "columnarCommit columnarReaderGroups columnarDropReaderGroup"),
    **_listed(ScannerRule(), "scannerGet scannerGetList scannerClose"),
    **_listed(PartsRule(named.mutated, WRITE), "mutateRow mutateRowTs"),
    **_listed(PartsRule(named.mutated_rows, WRITE), "mutateRows mutateRowsTs columnarMutateRows"),
    "atomicIncrement": PartsRule(named.column_at(2, WRITE, READ), _READ_WRITE),
    "increment": PartsRule(named.incremented, WRITE),
    "incrementRows": IncrementsRule(),
    **_listed(PartsRule(named.column_at(2, WRITE), WRITE), "deleteAll deleteAllTs"),
    **_listed(_WRITES, "deleteAllRow deleteAllRowTs columnarDeleteRows columnarIngest"),
    "columnarLoadRows": PartsRule(named.writes_whole_table, WRITE, named.rows_send),
    **_listed(_WRITES, "columnarLoadTarget"),
    "append": PartsRule(named.appended, _READ_WRITE),
    "checkAndPut": PartsRule(named.checked_put, _READ_WRITE),
    "columnarCheckAndMutate": PartsRule(named.checked_row, _READ_WRITE, named.row_sends),
    "columnarCheckAndMutateRows": PartsRule(named.checked_rows, _READ_WRITE, named.rows_send),
    "columnarMutateGroup": PartsRule(named.mutated_group, _READ_WRITE, named.group_sends),
    "columnarLease": GlobalRule(WRITE | EXEC | ADMIN),  # leases are of no table
    "columnarReadGroup": ReadRule(named.list_at(2)),
    # queues
    "columnarQueuePush": QueueRule((WRITE,)),
    **_listed(
        QueueRule((READ, WRITE)),
        "columnarQueuePop columnarQueueSettle columnarQueueRedrive columnarQueueRemoveDead columnarQueuePurge",
    ),
    **_listed(QueueRule((READ,)), "columnarQueuePeek columnarQueueStats columnarQueueDead"),
    **_listed(GlobalRule(SCHEMA), "columnarQueueConfigure columnarQueuePrepare columnarQueueDrop"),
    # topics
    "columnarPartitionProduce": QueueRule((WRITE,)),
    "columnarTopicProducer": QueueRule((READ, WRITE)),
    "columnarConsumerGroup": QueueRule((READ, WRITE)),
    **_listed(
        QueueRule((READ,)),
        "columnarTopicList columnarTopicWait columnarTopicGroups columnarTopicAudit"
        " columnarPartitionFetch columnarPartitionWait columnarPartitionOffset columnarPartitionState",
    ),
    **_listed(
        GlobalRule(SCHEMA),
        "columnarTopicCreate columnarTopicConfigure columnarTopicDrop columnarTopicPrepare"
        " columnarPartitionSet columnarPartitionDrop",
    ),
    # tables
    **_listed(
        TableRule(SCHEMA, first_table),
        "enableTable disableTable deleteTable columnarAlterTable columnarDropTable columnarTruncateTable"
        " getColumnDescriptors columnarDescribeTable",
    ),
    **_listed(TableRule(SCHEMA, first_table, is_region=True), "compact majorCompact columnarFlush columnarCompact"),
    **_listed(TableRule(ADMIN, first_table, is_region=True), "columnarSplit"),
    "columnarMerge": RegionsRule(ADMIN, 2),
    **_listed(TableRule(ADMIN | EXEC, first_table), "columnarRegions"),
    **_listed(NamespaceRule(SCHEMA, _namespace_of(first_table)), "createTable columnarCreateTable"),
    **_listed(
        _ANY,
        "isTableEnabled columnarTableExists getTableRegions columnarRegionOwners columnarLocations columnarLocate",
    ),
    "getRegionInfo": AnyRightRule(_region_table),
    **_listed(SignedInRule(), "getTableNames getTableNamesWithIsTableEnabled columnarListNamespaces"),
    "columnarListNamespaceTables": SignedInRule(),
    # namespaces
    **_listed(GlobalRule(ADMIN), "columnarCreateNamespace"),
    **_listed(
        NamespaceRule(ADMIN, _namespace_first),
        "columnarAlterNamespace columnarDropNamespace columnarDescribeNamespace",
    ),
    # triggers and views
    **_listed(
        GlobalRule(DELIVERY),
        "columnarTriggerReload columnarTriggerRemove columnarTriggers"
        " columnarTriggerList columnarTriggerPause columnarTriggerResume columnarTriggerReplay columnarTriggerRetry"
        " columnarTriggerDeadRetry columnarTriggerDeadSkip columnarTriggerDeadPurge columnarFlows"
        " columnarViewList columnarViewDrop columnarViewSwap columnarViewRollback"
        " columnarViewCheck columnarDeadLetters columnarTriggerDeadShow",
    ),
    "columnarViews": SignedInRule(),  # whoever reads a view needs its definition
    "columnarTriggerAdd": MakerRule(trigger_reads, also=serving_rights),
    "columnarTriggerSync": MakerRule(triggers_reads, also=all_serving_rights),
    "columnarViewAdd": MakerRule(view_reads),
    "columnarViewRebuild": MakerRule(rebuilt_view_reads),
    # feeds: who reads the table may have it in a topic into which they may write
    "columnarFeedAdd": MakerRule(feed_reads, WRITE),
    "columnarFeedDrop": GlobalRule(WRITE | DELIVERY),
    "columnarFeeds": SignedInRule(),
    **_listed(GlobalRule(ADMIN), "columnarTriggerDead columnarCheckView"),  # their answers have cells
    **_listed(SignedInRule(), "columnarWait columnarTriggerWait columnarViewWait"),
    # snapshots, staged files
    "columnarSnapshotTake": TableRule(ADMIN, _second_table),
    **_listed(
        GlobalRule(ADMIN),
        "columnarSnapshotList columnarSnapshotClone columnarSnapshotRestore columnarSnapshotDelete columnarStage"
        " columnarStageRelease columnarStageAdopt",
    ),
    # the cluster
    **_listed(GlobalRule(DELIVERY), "columnarStatus columnarServers columnarTransitions columnarDecisions"),
    **_listed(GlobalRule(DELIVERY), "columnarMaintenance"),
    **_listed(
        GlobalRule(ADMIN),
        "columnarMove columnarAssign columnarUnassign columnarDrain columnarDrainNode columnarBalance columnarSwitch"
        " columnarAcquireMaintenance columnarReleaseMaintenance columnarRestart columnarStop columnarFence"
        " columnarLogLevels",
    ),
    **_listed(SignedInRule(), "getThriftServerType getClusterId columnarRoute"),
    # users and rights: ``master.rights_changes`` checks A at the scope of a grant, and whose account it is
    "columnarWhoAmI": OpenRule(),
    **_listed(SignedInRule(), "columnarGrant columnarRevoke columnarPermissions"),
    **_listed(SignedInRule(), "columnarSetPassword columnarAddToken columnarRemoveToken"),
    **_listed(GlobalRule(ADMIN), "columnarUsers columnarDropUser columnarSetGroup"),
}
_THRIFT2: Final[Mapping[str, Rule]] = {
    **_listed(ReadRule(named.of_struct2), "exists get openScanner getScannerResults"),
    **_listed(ReadRule(named.of_structs2), "existsAll getMultiple"),
    **_listed(ScannerRule(), "getScannerRows closeScanner"),
    "put": PartsRule(named.put2, WRITE),
    "putMultiple": PartsRule(named.puts2, WRITE),
    "deleteSingle": PartsRule(named.delete2, WRITE),
    "deleteMultiple": PartsRule(named.deletes2, WRITE),
    **_listed(PartsRule(named.counted2, _READ_WRITE), "increment append"),
    "mutateRow": PartsRule(named.mutations2, WRITE),
    "checkAndPut": PartsRule(named.checked_put2, _READ_WRITE),
    "checkAndDelete": PartsRule(named.checked_delete2, _READ_WRITE),
    "checkAndMutate": PartsRule(named.checked_mutations2, _READ_WRITE),
    **_listed(_ANY, "getRegionLocation getAllRegionLocations"),
    **_listed(
        AnyRightRule(_first_table2),
        "tableExists isTableEnabled isTableDisabled isTableAvailable isTableAvailableWithSplit",
    ),
    "getTableDescriptor": TableRule(SCHEMA, _first_table2),
    **_listed(
        SignedInRule(),
        "getTableDescriptors getTableDescriptorsByPattern getTableDescriptorsByNamespace getTableNamesByPattern"
        " getTableNamesByNamespace listNamespaces listNamespaceDescriptors getThriftServerType getClusterId",
    ),
    "createTable": NamespaceRule(SCHEMA, _namespace_of(_described2)),
    **_listed(
        TableRule(SCHEMA, _first_table2),
        "deleteTable truncateTable enableTable disableTable addColumnFamily deleteColumnFamily modifyColumnFamily",
    ),
    "modifyTable": TableRule(SCHEMA, _described2),
    "createNamespace": GlobalRule(ADMIN),
    "modifyNamespace": NamespaceRule(ADMIN, _namespace_described2),
    **_listed(NamespaceRule(ADMIN, _namespace_first), "deleteNamespace getNamespaceDescriptor"),
    **_listed(GlobalRule(ADMIN), "getSlowLogResponses clearSlowLogResponses"),
}
METHOD_RIGHTS: Final[Mapping[int, Mapping[str, Rule]]] = {THRIFT1: _THRIFT1, THRIFT2: _THRIFT2}


# --- lists -------------------------------------------------------------------------------------------

Sees = Callable[[str], bool]  # whether the user may see the table, or the namespace, of this name
ListFilter = Callable[[Any, Sees, Sees, Sees], Any]  # the answer; for names, descriptors and namespaces


def _table_names(found: Any, sees: Sees, _describes: Sees, _namespaces: Sees) -> Any:
    return [name for name in found if sees(_text(name))]


def _table_states(found: Any, sees: Sees, _describes: Sees, _namespaces: Sees) -> Any:
    return {name: state for name, state in found.items() if sees(_text(name))}


def _views(found: Any, sees: Sees, _describes: Sees, _namespaces: Sees) -> Any:
    from columnar.model.flow_status import ViewStatus  # a store without views need not load it
    from columnar.model.record_codec import pack_records, unpack_records

    return pack_records([one for one in unpack_records(found, ViewStatus) if sees(one.name)])


def _table_names2(found: Any, sees: Sees, _describes: Sees, _namespaces: Sees) -> Any:
    return [name for name in found if sees(_table2(name))]


def _descriptors2(found: Any, _sees: Sees, describes: Sees, _namespaces: Sees) -> Any:
    return [one for one in found if describes(_table2(one.tableName))]


def _namespace_names(found: Any, _sees: Sees, _describes: Sees, namespaces: Sees) -> Any:
    return [name for name in found if namespaces(_text(name))]


def _namespaces2(found: Any, _sees: Sees, _describes: Sees, namespaces: Sees) -> Any:
    return [one for one in found if namespaces(_text(one.name))]


LIST_FILTERS: Final[Mapping[int, Mapping[str, ListFilter]]] = {
    THRIFT1: {
        "getTableNames": _table_names,
        "getTableNamesWithIsTableEnabled": _table_states,
        "columnarListNamespaces": _namespace_names,
        "columnarListNamespaceTables": _table_names,
        "columnarViews": _views,
    },
    THRIFT2: {
        "getTableDescriptors": _descriptors2,
        "getTableDescriptorsByPattern": _descriptors2,
        "getTableDescriptorsByNamespace": _descriptors2,
        "getTableNamesByPattern": _table_names2,
        "getTableNamesByNamespace": _table_names2,
        "listNamespaces": _namespace_names,
        "listNamespaceDescriptors": _namespaces2,
    },
}
