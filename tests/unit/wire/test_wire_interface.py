"""The interface files as our clients and services find them."""

from __future__ import annotations

from columnar.wire import idl

OURS = [
    "columnarAcquireMaintenance",
    "columnarAlterNamespace",
    "columnarAlterTable",
    "columnarAssign",
    "columnarBalance",
    "columnarCheckAndMutate",
    "columnarCheckAndMutateRows",
    "columnarCheckView",
    "columnarCompact",
    "columnarCreateNamespace",
    "columnarCreateTable",
    "columnarDeadLetters",
    "columnarDecisions",
    "columnarDeleteRows",
    "columnarDescribeNamespace",
    "columnarDescribeTable",
    "columnarDrain",
    "columnarDrainNode",
    "columnarDropNamespace",
    "columnarDropTable",
    "columnarFence",
    "columnarFlows",
    "columnarFlush",
    "columnarIngest",
    "columnarListNamespaceTables",
    "columnarListNamespaces",
    "columnarLoadRows",
    "columnarLoadTarget",
    "columnarLocate",
    "columnarLocations",
    "columnarMaintenance",
    "columnarMerge",
    "columnarMove",
    "columnarMutateRows",
    "columnarRegionOwners",
    "columnarRegions",
    "columnarReleaseMaintenance",
    "columnarRestart",
    "columnarRoute",
    "columnarRowSlice",
    "columnarServers",
    "columnarSnapshotClone",
    "columnarSnapshotDelete",
    "columnarSnapshotList",
    "columnarSnapshotRestore",
    "columnarSnapshotTake",
    "columnarSplit",
    "columnarStage",
    "columnarStageAdopt",
    "columnarStageRelease",
    "columnarStatus",
    "columnarStop",
    "columnarSwitch",
    "columnarTableExists",
    "columnarTransitions",
    "columnarTriggerAdd",
    "columnarTriggerDead",
    "columnarTriggerDeadPurge",
    "columnarTriggerDeadRetry",
    "columnarTriggerDeadShow",
    "columnarTriggerDeadSkip",
    "columnarTriggerList",
    "columnarTriggerPause",
    "columnarTriggerReload",
    "columnarTriggerRemove",
    "columnarTriggerReplay",
    "columnarTriggerResume",
    "columnarTriggerRetry",
    "columnarTriggerSync",
    "columnarTriggerWait",
    "columnarTriggers",
    "columnarTruncateTable",
    "columnarUnassign",
    "columnarViewAdd",
    "columnarViewCheck",
    "columnarViewDrop",
    "columnarViewList",
    "columnarViewRebuild",
    "columnarViewRollback",
    "columnarViewSwap",
    "columnarViewWait",
    "columnarViews",
]


def test_the_methods() -> None:
    ours = [name for name in idl.SERVICE.thrift_services if name.startswith("columnar")]
    upstream = [name for name in idl.SERVICE.thrift_services if not name.startswith("columnar")]
    assert len(upstream) == 48  # HBase 2.6.1 has 47; getRowOrBefore is of older ones
    assert {"grant", "revoke", "getSlowLogResponses"}.isdisjoint(upstream)
    assert sorted(ours) == OURS


def test_all_of_ours_declare_the_two_errors() -> None:
    for name in idl.SERVICE.thrift_services:
        if name.startswith("columnar"):
            spec = getattr(idl.SERVICE, name + "_result").thrift_spec
            assert (spec[1][2], spec[2][2]) == (idl.hbase.IOError, idl.hbase.IllegalArgument), name


def test_defaults() -> None:
    family = idl.hbase.ColumnDescriptor(b"f:")
    assert (family.maxVersions, family.compression, family.timeToLive) == (3, "NONE", -1)
    mutation = idl.hbase.Mutation()
    assert (mutation.isDelete, mutation.writeToWAL) == (False, True)
    assert idl.columnar.CheckAndMutateResult().failedCondition == -1
    assert idl.columnar.Condition().op == idl.columnar.CompareOp.EQUAL
