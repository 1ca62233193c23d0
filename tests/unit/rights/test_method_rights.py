"""Each method of both services, called by each of eleven roles: refused or not as HBase's matrix of rights has it.

The matrix stands here a second time, by hand, as the right that each method needs; the calls are generated from the
IDL, and go through the codec as a client's.
"""

from __future__ import annotations

from typing import Any

import pytest

from columnar.cluster.row_forms import THRIFT1, THRIFT2
from columnar.errors import AccessDenied
from columnar.model.rights import Grant, RightsRecord, Scope, rights_from
from columnar.model.trigger_registration import Registration, to_json
from columnar.model.view_definition import Source, View
from columnar.model.view_definition import to_json as view_to_json
from columnar.rights.method_rights import LIST_FILTERS, METHOD_RIGHTS
from columnar.rights.rights_check import RightsCheck, RightsHolder
from columnar.wire.codec import CALL, Request, ServiceCodec, read_message_begin
from columnar.wire.detect import Protocol
from columnar.wire.idl import SERVICE, columnar
from columnar.wire.idl2 import SERVICE2
from columnar.wire.service import CallContext

DEFINITIONS = {THRIFT1: SERVICE, THRIFT2: SERVICE2}
TABLE, NAMESPACE, FAMILY, COLUMN = b"team:t", "team", b"a", b"a:1"

# Who has what: the letters of the rights on the table, the namespace and everything.
ROLES = {
    "": ("", "", ""),  # nobody has signed in
    "stranger": ("", "", ""),
    "reader": ("R", "", ""),
    "writer": ("W", "", ""),
    "creator": ("", "C", ""),
    "owner": ("RWXCA", "", ""),
    "chief": ("", "RWXCA", ""),
    "monitor": ("", "", "X"),
    "programmer": ("R", "", "X"),
    "admin": ("", "", "A"),
    "root": ("", "", "RWXCA"),
}
# What a method needs: all of the letters on the table (t), one of them (t/), in the namespace (n/), on everything (g/),
# all of them on everything (g); "made" the letters on everything (g/), and R on the table; "seen" any right on the
# table, "in" a user, "open" nothing.
MATRIX1 = """
t R       get getVer getVerTs getRow getRowWithColumns getRowTs getRowWithColumnsTs getRows getRowsWithColumns getRowsTs
t R       getRowsWithColumnsTs getRowOrBefore columnarRowSlice scannerOpenWithScan scannerOpen scannerOpenWithStop
t R       scannerOpenWithPrefix scannerOpenTs scannerOpenWithStopTs columnarReadGroup columnarChanges
t R       columnarCommit columnarReaderGroups columnarDropReaderGroup
in        scannerGet scannerGetList scannerClose
t W       mutateRow mutateRowTs mutateRows mutateRowsTs increment incrementRows deleteAll deleteAllTs deleteAllRow
t W       deleteAllRowTs columnarMutateRows columnarDeleteRows columnarLoadRows columnarLoadTarget columnarIngest
t RW      atomicIncrement append checkAndPut columnarCheckAndMutate columnarCheckAndMutateRows
t RW      columnarMutateGroup
g RW      columnarConsumerGroup
g RW      columnarQueuePop columnarQueueSettle columnarQueueRedrive columnarQueueRemoveDead columnarQueuePurge
g W       columnarQueuePush
g R       columnarQueuePeek columnarQueueStats columnarQueueDead
g/ CA     columnarQueueConfigure columnarQueuePrepare columnarQueueDrop
g RW      columnarTopicProducer
g W       columnarPartitionProduce
g R       columnarTopicList columnarTopicWait columnarPartitionFetch columnarPartitionWait
g R       columnarPartitionOffset columnarPartitionState columnarTopicGroups columnarTopicAudit
g/ CA     columnarTopicCreate columnarTopicConfigure columnarTopicDrop
g/ CA     columnarTopicPrepare columnarPartitionSet columnarPartitionDrop
t/ CA     enableTable disableTable deleteTable columnarAlterTable columnarDropTable columnarTruncateTable
t/ CA     getColumnDescriptors columnarDescribeTable compact majorCompact columnarFlush columnarCompact
t/ A      columnarSplit columnarMerge columnarSnapshotTake
t/ XA     columnarRegions
n/ CA     createTable columnarCreateTable
seen      isTableEnabled columnarTableExists getTableRegions getRegionInfo columnarRegionOwners columnarLocations
seen      columnarLocate
in        getTableNames getTableNamesWithIsTableEnabled columnarListNamespaces columnarListNamespaceTables
in        getThriftServerType getClusterId columnarRoute columnarWait columnarTriggerWait columnarViewWait columnarViews
in        columnarFeeds
in        columnarGrant columnarRevoke columnarPermissions columnarSetPassword columnarAddToken columnarRemoveToken
open      columnarWhoAmI
n/ A      columnarAlterNamespace columnarDropNamespace columnarDescribeNamespace
g/ WXA    columnarLease
g/ A      columnarCreateNamespace columnarTriggerDead columnarCheckView columnarSnapshotList columnarSnapshotClone
g/ A      columnarSnapshotRestore columnarSnapshotDelete columnarStage columnarStageRelease columnarStageAdopt
g/ A      columnarMove columnarAssign columnarUnassign columnarDrain columnarDrainNode columnarBalance columnarSwitch
g/ A      columnarAcquireMaintenance columnarReleaseMaintenance columnarRestart columnarStop columnarFence
g/ A      columnarUsers columnarDropUser columnarSetGroup columnarLogLevels
made W    columnarFeedAdd
g/ WXA    columnarFeedDrop
made XA   columnarTriggerAdd columnarTriggerSync columnarViewAdd columnarViewRebuild
g/ XA     columnarTriggerReload columnarTriggerRemove columnarTriggers
g/ XA     columnarTriggerList columnarTriggerPause columnarTriggerResume columnarTriggerReplay columnarTriggerRetry
g/ XA     columnarTriggerDeadRetry columnarTriggerDeadSkip columnarTriggerDeadPurge columnarFlows
g/ XA     columnarViewList columnarViewDrop columnarViewSwap columnarViewRollback
g/ XA     columnarViewCheck columnarDeadLetters columnarTriggerDeadShow columnarStatus columnarServers
g/ XA     columnarTransitions columnarDecisions columnarMaintenance
"""
MATRIX2 = """
t R       exists get existsAll getMultiple openScanner getScannerResults
in        getScannerRows closeScanner
t W       put putMultiple deleteSingle deleteMultiple mutateRow
t RW      increment append checkAndPut checkAndDelete checkAndMutate
seen      getRegionLocation getAllRegionLocations tableExists isTableEnabled isTableDisabled isTableAvailable
seen      isTableAvailableWithSplit
in        getTableDescriptors getTableDescriptorsByPattern getTableDescriptorsByNamespace getTableNamesByPattern
in        getTableNamesByNamespace listNamespaces listNamespaceDescriptors getThriftServerType getClusterId
t/ CA     getTableDescriptor deleteTable truncateTable enableTable disableTable addColumnFamily deleteColumnFamily
t/ CA     modifyColumnFamily modifyTable
n/ CA     createTable
g/ A      createNamespace getSlowLogResponses clearSlowLogResponses
n/ A      modifyNamespace deleteNamespace getNamespaceDescriptor
"""


def _needs(matrix: str) -> dict[str, tuple[str, str]]:
    found = {}
    for line in matrix.strip().splitlines():
        words = line.split()
        letters = "" if words[0] in ("in", "seen", "open") else words.pop(1)
        found.update(dict.fromkeys(words[1:], (words[0], letters)))
    return found


NEEDS = {THRIFT1: _needs(MATRIX1), THRIFT2: _needs(MATRIX2)}
CASES = [(service, name) for service, definition in DEFINITIONS.items() for name in definition.signatures]


def _may(role: str, kind: str, letters: str) -> bool:
    on_table, on_namespace, everywhere = ROLES[role]
    in_namespace = on_namespace + everywhere
    has = {
        "t": on_table + in_namespace,
        "t/": on_table + in_namespace,
        "n/": in_namespace,
        "g": everywhere,
        "g/": everywhere,
    }
    if kind == "open":
        return True
    if not role or kind == "in":
        return bool(role)
    if kind == "made":
        return any(letter in everywhere for letter in letters) and "R" in has["t"]
    if kind == "seen":
        return bool(on_table + in_namespace)
    return (all if kind in ("t", "g") else any)(letter in has[kind] for letter in letters)


def holder() -> RightsHolder:
    grants = []
    for role, letters in ROLES.items():
        scopes = (Scope(table=TABLE.decode()), Scope(namespace=NAMESPACE), Scope())
        pairs = zip(scopes, letters, strict=True)
        grants += [Grant(role, scope, rights_from(text)) for scope, text in pairs if role and text]
    holder = RightsHolder()
    holder.take_record(RightsRecord(tuple(grants)))
    return holder


def _filled(spec: tuple[Any, ...], name: str) -> Any:
    """Return a value of an argument or field: real names where the IDL has table, family, column and namespace."""
    kind = spec[0]
    if name in ("registration", "registrations"):
        registration = to_json(Registration("x", TABLE.decode(), "m:f", (FAMILY.decode(),)))
        return registration if name == "registration" else [registration]
    if name == "definition":
        return view_to_json(View("v", Source(TABLE.decode(), ("row",))))
    if kind == 12:
        return _struct(spec[2])
    if kind in (15, 14):
        inner = spec[2]
        return [_struct(inner[1]) if isinstance(inner, tuple) and inner[0] == 12 else COLUMN]
    if kind == 13:
        return {}
    if kind == 2:
        return False
    if kind in (3, 6, 8, 10):
        return 1
    if name in ("table", "tableName", "tableNameOrRegionName", "tableOrRegion", "region", "other"):
        return TABLE
    if name == "name" or name == "namespaceName":
        return NAMESPACE.encode()
    return {"family": FAMILY, "column": COLUMN, "ns": NAMESPACE.encode(), "qualifier": b"t"}.get(name, b"x")


def _struct(made: Any) -> Any:
    fields = {field[1]: _filled(field, field[1]) for field in made.thrift_spec.values()}
    if made.__name__ in ("TColumn", "TColumnValue", "TColumnIncrement"):
        fields["qualifier"] = b"1"
    if made.__name__ == "RowOperation":
        fields |= {"kind": 0, "contribution": None, "send": None}
    if made.__name__ == "Mutation":
        fields["column"] = COLUMN
    return made(**fields)


def request_of(service: int, name: str, protocol: Protocol) -> Request:
    """Return a call as it comes from a client."""
    codec, definition = ServiceCodec(DEFINITIONS[service]), DEFINITIONS[service]
    method = codec.methods[name]
    spec = definition.signatures[name].args
    args = [_filled(spec[number], spec[number][1]) for number in sorted(spec)]
    if name == "getRegionInfo":
        args = [TABLE + b",x,1"]
    message = method.call_message(protocol, 7, args)
    said, kind, seqid, at = read_message_begin(protocol, message, 0, len(message))
    assert (said, kind, seqid) == (name.encode(), CALL, 7)
    decoded, end = codec.read_args(protocol, method, message, at, len(message))
    assert end == len(message), "the encoder of calls and the decoder agree"
    return Request(method, said, kind, seqid, decoded, len(message), message)


def test_each_method_has_a_rule_and_each_rule_a_method() -> None:
    for service, definition in DEFINITIONS.items():
        assert set(METHOD_RIGHTS[service]) == set(definition.signatures)
        assert set(NEEDS[service]) == set(definition.signatures)
        assert set(LIST_FILTERS[service]) <= set(definition.signatures)


@pytest.mark.parametrize("protocol", list(Protocol))
def test_each_method_by_each_role(protocol: Protocol) -> None:
    wrong = []
    for service, name in CASES:
        check = RightsCheck(
            service,
            holder(),
            lambda table: [FAMILY] if table == TABLE else None,
            lambda region: TABLE.decode() if region == TABLE else None,
        )
        for role in ROLES:
            try:
                check.check(CallContext(1, "test", protocol, user=role), request_of(service, name, protocol))
                passed = True
            except AccessDenied:
                passed = False
            if passed != _may(role, *NEEDS[service][name]):
                wrong.append((service, name, role, passed))
    assert not wrong
    assert len(CASES) > 150


SENDING = ["columnarCheckAndMutate", "columnarCheckAndMutateRows", "columnarMutateGroup", "columnarLoadRows"]


@pytest.mark.parametrize("name", SENDING)
def test_a_call_that_sends_messages_needs_the_right_to_push_them_too(name: str) -> None:
    request = request_of(THRIFT1, name, Protocol.BINARY)
    rows = [row for arg in request.args if isinstance(arg, list) for row in arg]
    operations = next(
        (one.operations for one in rows if hasattr(one, "operations")), request.args[3] if name == SENDING[0] else None
    )
    assert operations is not None
    operations.append(columnar.RowOperation(kind=columnar.OperationKind.SEND, column=b""))
    check = RightsCheck(THRIFT1, holder(), lambda _table: [FAMILY])

    def may(role: str) -> bool:
        try:
            check.check(CallContext(1, "test", Protocol.BINARY, user=role), request)
        except AccessDenied:
            return False
        return True

    assert [role for role in ROLES if may(role)] == ["root"], "W on everything"
    operations.pop()
    assert may("owner")
