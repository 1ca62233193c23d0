"""Each method of both services, called by an administrator: what the audit log says of it, or that it says nothing.

The lines stand here by hand; a new method must be put into one of the two lists.
"""

from __future__ import annotations

from typing import Any

import pytest

from columnar.cluster.row_forms import THRIFT1, THRIFT2
from columnar.model.feeds import Feed
from columnar.model.feeds import to_json as feed_to_json
from columnar.model.queue_service import service_of
from columnar.model.trigger_registration import Registration, to_json
from columnar.rights.audited_calls import NAMED
from columnar.rights.rights_check import RightsCheck
from columnar.wire.detect import Protocol
from columnar.wire.service import CallContext
from tests.unit.rights.test_method_rights import CASES, FAMILY, TABLE, holder, request_of

# What a line says of each method, when it is called with the arguments of ``request_of``.
LINES1 = """
team:t         enableTable disableTable deleteTable createTable columnarCreateTable columnarAlterTable columnarDropTable
team:t         columnarTruncateTable columnarSplit columnarMerge
team           columnarCreateNamespace columnarAlterNamespace columnarDropNamespace
x of team:t by m:f     columnarTriggerAdd
x of team:t by m:f,-a:1 columnarTriggerSync
all functions  columnarTriggerReload
x              columnarTriggerRemove columnarTriggerPause columnarTriggerResume columnarTriggerReplay
x              columnarTriggerRetry columnarTriggerDeadRetry columnarTriggerDeadSkip columnarTriggerDeadPurge
v              columnarViewAdd
team           columnarViewDrop columnarViewRebuild columnarViewSwap columnarViewRollback columnarFeedDrop
team           columnarSnapshotClone
f of team:t to topic:edits columnarFeedAdd
queue:x        columnarQueueConfigure columnarQueueRedrive columnarQueueRemoveDead columnarQueuePurge columnarQueueDrop
columnar:queues columnarQueuePrepare
topic:x        columnarTopicCreate columnarTopicConfigure columnarTopicDrop
columnar:topics columnarTopicPrepare
partition:x    columnarPartitionSet columnarPartitionDrop
x@team:t       columnarDropReaderGroup
lease:team     columnarLease
team           columnarCheckView
"""
SILENT1 = """
get getVer getVerTs getRow getRowWithColumns getRowTs getRowWithColumnsTs getRows getRowsWithColumns getRowsTs
getRowsWithColumnsTs getRowOrBefore columnarRowSlice scannerOpenWithScan scannerOpen scannerOpenWithStop
scannerOpenWithPrefix scannerOpenTs scannerOpenWithStopTs columnarReadGroup columnarChanges columnarCommit
columnarReaderGroups scannerGet scannerGetList scannerClose mutateRow mutateRowTs mutateRows mutateRowsTs increment
incrementRows deleteAll deleteAllTs deleteAllRow deleteAllRowTs columnarMutateRows columnarDeleteRows columnarLoadRows
columnarLoadTarget columnarIngest atomicIncrement append checkAndPut columnarCheckAndMutate columnarCheckAndMutateRows
columnarMutateGroup columnarConsumerGroup columnarQueuePop columnarQueueSettle columnarQueuePush columnarQueuePeek
columnarQueueStats columnarQueueDead columnarTopicProducer columnarPartitionProduce columnarTopicList columnarTopicWait
columnarPartitionFetch columnarPartitionWait columnarPartitionOffset columnarPartitionState columnarTopicGroups
columnarTopicAudit getColumnDescriptors columnarDescribeTable compact majorCompact columnarFlush columnarCompact
columnarRegions isTableEnabled columnarTableExists getTableRegions getRegionInfo columnarRegionOwners columnarLocations
columnarLocate getTableNames getTableNamesWithIsTableEnabled columnarListNamespaces columnarListNamespaceTables
getThriftServerType getClusterId columnarRoute columnarWait columnarTriggerWait columnarViewWait columnarViews
columnarFeeds columnarGrant columnarRevoke columnarPermissions columnarSetPassword columnarAddToken columnarRemoveToken
columnarWhoAmI columnarDescribeNamespace columnarTriggerDead columnarSnapshotList columnarUsers columnarTriggers
columnarTriggerList columnarFlows columnarViewList columnarViewCheck columnarDeadLetters columnarTriggerDeadShow
columnarStatus columnarServers columnarTransitions columnarDecisions columnarMaintenance
"""
OF_THE_CLUSTER = """
columnarSnapshotTake columnarSnapshotRestore columnarSnapshotDelete columnarStage columnarStageRelease
columnarStageAdopt columnarMove columnarAssign columnarUnassign columnarDrain columnarDrainNode columnarBalance
columnarSwitch columnarAcquireMaintenance columnarReleaseMaintenance columnarRestart columnarStop columnarFence
columnarDropUser columnarSetGroup columnarLogLevels
"""
FEED = feed_to_json(Feed("f", TABLE.decode(), "edits"))


def said(name: str, caplog: pytest.LogCaptureFixture, service: int = THRIFT1, **changed: Any) -> str | None:
    """Return what the line of an allowed call says the call is about; None if the call has no line."""
    caplog.clear()
    request = request_of(service, name, Protocol.BINARY)
    for number, value in changed.items():
        request.args[int(number[1:])] = value
    check = RightsCheck(service, holder(), lambda _table: [FAMILY], lambda _region: TABLE.decode())
    with caplog.at_level("INFO", "columnar.audit"):
        check.check(CallContext(1, "test", Protocol.BINARY, user="root"), request)
    if not caplog.records:
        return None
    (line,) = [one.getMessage() for one in caplog.records]
    assert f"allowed user=root peer=test method={name} of=" in line
    return line.partition(" of=")[2]


def lines() -> dict[str, str]:
    found = {}
    for line in LINES1.strip().splitlines():
        words = line.split()
        names = [word for word in words if (word.startswith("columnar") and ":" not in word) or word.endswith("Table")]
        found.update(dict.fromkeys(names, line[: line.index(names[0])].strip()))
    return found


def test_every_method_is_in_one_of_the_lists() -> None:
    known = [*lines(), *SILENT1.split(), *OF_THE_CLUSTER.split()]
    assert sorted(known) == sorted({name for service, name in CASES if service == THRIFT1})


def test_each_change_of_a_definition_has_a_line_that_names_it(caplog: pytest.LogCaptureFixture) -> None:
    changed = {"columnarFeedAdd": {"_0": FEED}, "columnarLease": {"_2": 0}, "columnarCheckView": {"_1": True}}
    found = {name: said(name, caplog, **changed.get(name, {})) for name in lines()}
    assert found == lines()


def test_each_command_of_the_cluster_has_a_line(caplog: pytest.LogCaptureFixture) -> None:
    assert [name for name in OF_THE_CLUSTER.split() if said(name, caplog) is None] == []


def test_uses_and_reads_have_no_line(caplog: pytest.LogCaptureFixture) -> None:
    assert {name: line for name in SILENT1.split() if (line := said(name, caplog)) is not None} == {}


def test_looks_of_methods_that_also_change_have_no_line(caplog: pytest.LogCaptureFixture) -> None:
    assert said("columnarCheckView", caplog) is None
    assert said("columnarLease", caplog) is None, "a renewal"
    assert said("columnarLease", caplog, _2=0, _3=0) is None, "a look"


def test_changes_through_the_second_service_have_lines(caplog: pytest.LogCaptureFixture) -> None:
    for name in ("createTable", "modifyTable", "deleteTable", "addColumnFamily"):
        assert said(name, caplog, THRIFT2) == "t", name
    assert said("createNamespace", caplog, THRIFT2) == "team"


def test_a_served_queue_is_named_with_its_target_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    hook = to_json(service_of("thumbs", "https://host/hook?token=secret"))
    assert said("columnarTriggerAdd", caplog, _0=hook) == "queue:thumbs by https://host/hook"
    function = to_json(service_of("thumbs", "jobs:make"))
    assert said("columnarTriggerAdd", caplog, _0=function) == "queue:thumbs by jobs:make"
    assert said("columnarTriggerRemove", caplog, _0="queue:thumbs") == "queue:thumbs"


def test_no_client_writes_lines_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    forged = to_json(Registration("x\nallowed user=root", "t\n", "m:f\r\n", ("f",)))
    for name, changed in (
        ("columnarTriggerAdd", {"_0": forged}),
        ("columnarTriggerSync", {"_0": ["a\nb"], "_1": [forged] * 50}),
        ("columnarQueueDrop", {"_0": b"a\nb" * 10_000}),
        ("columnarDropReaderGroup", {"_1": "a\nb"}),
        ("columnarFeedAdd", {"_0": feed_to_json(Feed("f\n", "t\n", "x\n"))}),
    ):
        line = said(name, caplog, **changed)
        assert line is not None
        assert "\n" not in line, name
        assert len(line) < 10_000, name
    assert f"and {51 - NAMED} more" in (said("columnarTriggerSync", caplog, _0=["a"], _1=[forged] * 50) or "")


@pytest.mark.parametrize("unread", [b"", b"{", None])
@pytest.mark.parametrize("name", ["columnarTriggerAdd", "columnarViewAdd", "columnarFeedAdd"])
def test_what_cannot_be_read_names_nothing(name: str, unread: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert said(name, caplog, _0=unread) == "-"
