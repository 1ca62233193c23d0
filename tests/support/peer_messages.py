"""A message of each class between servers and masters, and an answer to each, for golden files and round trips."""

from __future__ import annotations

from typing import Any

from columnar.cluster import peer_requests, row_forms
from columnar.model import node_messages as nodes
from columnar.model import owner_messages as owners
from columnar.model import region_messages as regions
from columnar.model.accounts import Account, Token
from columnar.model.change_stream import StreamRange, StreamSpec
from columnar.model.derivations import KeptView, Numbers, Reads, Replay, Trigger, Triggers, ViewSet
from columnar.model.feeds import Feed, FeedSet
from columnar.model.flow_status import FlowStatus, TriggerStatus, ViewStatus
from columnar.model.measures import SlowRequest, by_label
from columnar.model.mutation import Append, Contribute, Delete, Durability, Increment, Put, RowMutation, RowPuts
from columnar.model.owner import Incarnation, Owner, OwnershipPeriod
from columnar.model.read import Projection, ReadSpec, ScanSpec
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Message
from columnar.model.rights import Grant, RightsRecord, Scope
from columnar.model.route import ChangeRoutes, ReplaceRoutes, Route, RoutesVersion
from columnar.model.row_ranges import RowRange
from columnar.model.schema import Family, make_table
from columnar.model.send import Send
from columnar.model.trigger_registration import Registration

TABLE = make_table("ns:t", [Family("a", max_versions=3), Family("b\xff", ttl_s=9)], {"DURABILITY": "ASYNC_WAL"})
LOW, HIGH = RegionInfo("ns:t", 5, b"", b"m\x00"), RegionInfo("ns:t", 6, b"m\x00", b"")
CHANGE = regions.RegionChange((LOW, HIGH), (RegionInfo("ns:t", 7),), 3)
S1, S2 = Incarnation("s1", 4), Incarnation("s.2", 17)
MOVED = Route(HIGH, S2, 9, OwnershipPeriod(S1, 8))
OWNER = Owner(S2, 9, 0, OwnershipPeriod(S1, 8), (OwnershipPeriod(S1, 7), OwnershipPeriod(S1, 8)))
SEGMENTS = (("00000001.segment", 1 << 33), ("00000002.segment", 0))
READ = ReadSpec(Projection(((b"a", None), (b"b", (b"", b"q\xff")))), (0, 1 << 63), 3, ((b"a", (-5, 7)),))
PLAIN = ReadSpec(Projection(((b"a", None),)))
SPEC = ScanSpec(b"a", b"z\xff", READ, True, 10, True, b"PrefixFilter('x')", 100)
FORM = row_forms.ReplyForm(1, 2, True)
FLOW = FlowStatus(
    "trigger", "links", ("pages/a",), ("out",), ("in/f",), "paused", 7, 1.5, 2.25, 300, 4, 1, 2, (0.0, 3.0), 0.5, "why"
)
LINKS = Registration("links", "t", "wiki:links", ("a", "b\xff"), True, "beginning", 5_000, 3)
RIGHTS = RightsRecord(
    (Grant("bob", Scope(table="t", family="f\xff", qualifier="q"), 3), Grant("@ops", Scope("team"), 31)),
    {"ops": ("bob", "eve")},
    {"bob": Account("bob", "$argon2id$x", "SCRAM-SHA-256$4096:c2FsdA==$a:b", (Token("laptop", "0" * 64, 1),))},
    "5ec2e7",
)
TRIGGERS = Triggers(
    (
        Trigger(LINKS, "paused", 7, replay=Replay(2, 1_700_000_000_000)),
        Trigger(Registration("more", "ns:t", "wiki:more", ("a",)), "adding", 9),
        Trigger(Registration("old", "", "", ()), unusable_reason="registration of a trigger: no JSON"),
    ),
    Numbers(9, ((1, 6), (8, 8))),
)
VIEWS = ViewSet(
    (
        KeptView("ns:w.2", b'{"name": "ns:w"}', (Reads("t", ("a", "b\xff")), Reads("u", ("a",))), "building", 4),
        KeptView("rests", b"{", (), "live", 2, "there is no table t"),
    ),
    Numbers(4, ((1, 1), (3, 3))),
)
FEEDS = FeedSet(
    (
        Feed("edits", "ns:t", "edits.t", columns=("a", "b:q\xff"), values=("row=base64",), number=3),
        Feed("rests", state="adding", number=2, unusable_reason="there is no table t"),
    ),
    Numbers(3, ((1, 1),)),
)
LOADED = ((b"a", b"q"), (b"a", b""))
WRITES = (
    RowPuts(b"r1", LOADED, [b"v", b""]),
    RowPuts(b"r2", LOADED, [b"w", b"\xff"]),
    RowMutation(b"r3", (Put(b"a", b"q", b"v"), Put(b"a", b"q", b"v", -1, 5), Delete(b"a", None))),
    RowMutation(b"r4", (Delete(b"a", b"", 1 << 62, True), Increment(b"a", b"q", -1)), (), Durability.ASYNC),
    RowMutation(b"r5", (Append(b"a", b"q", b"more"),)),
    RowMutation(b"r6", (Put(b"a", b"q", b"v", 7),), hops=2),
    RowMutation(b"r8", (Contribute(b"m", b"s", (7, 2, 1 << 63), (1, -5), ((b"n", b""), (b"n", b"x"))),)),
    RowMutation(
        b"r7",
        (
            Contribute(b"m", b"s\xff", (0, 0, 9), (3,), ((b"n", b"x"),), b"o", b"\x00", ((b"c:d", b"e"),), True),
            Contribute(b"m", b"t", (0, 0, 9), None, ()),
        ),
    ),
    RowMutation(b"r9", (Contribute(b"m", b"s", (0, 0, 9), (3,), ((b"n", b"x"),), relative=True, part=2),), hops=1),
    RowMutation(
        b"s1",
        (Put(b"a", b"q", b"v"),),
        sends=(
            Send(b"queue:q", b"", b"n", b"g", 1 << 33, 255, b"body\xff", ((b"h", b"v\xff"), (b"", b""))),
            Send(b"topic:t", b"key", b"", b"", 0, 0, b""),
        ),
    ),
)
ENTRY = (b"g\0", b"m\xff", b"hash")

ANSWERS: list[tuple[Message[Any], Any]] = [
    (regions.Publish(TABLE, True, (LOW, HIGH)), None),
    (regions.Withdraw("ns:t"), None),
    (regions.CloseTable("t\u00e9"), None),
    (regions.CloseRegions((HIGH,)), None),
    (regions.FollowSchema("t"), None),
    (regions.PrepareRegions(TABLE, ()), None),
    (regions.PublishTriggers(TRIGGERS), None),
    (regions.PublishRights(*RIGHTS.as_tuples()), None),
    (regions.CheckFunction("wiki:links"), "it is no function"),
    (regions.CheckSource(("m:f", "m:g")), "m:g cannot be used: why"),
    (regions.ReloadFunctions(), None),
    (regions.Undelivered("t", ("links", "none")), {"links": 1 << 33, "none": 0}),
    (regions.LogReach("ns:t"), regions.NOWHERE),
    (regions.PublishViews(VIEWS), None),
    (regions.PublishFeeds(FEEDS), None),
    (regions.BackfilledRegions(("v", "ns:w.2")), {"v": [5, 1 << 33], "ns:w.2": []}),
    (regions.PauseDeliveries(), None),
    (regions.ReleaseDeliveries(), None),
    (regions.CopyRegion(LOW, "/data/copy"), None),
    (regions.MiddleRow(LOW), b"\xff\x00"),
    (regions.BeginChange(CHANGE), None),
    (regions.FinishChange(CHANGE), 0.25),
    (regions.CallOffChange(CHANGE), None),
    (regions.SettleChange(CHANGE), None),
    (regions.ReclaimSpace(HIGH), None),
    (regions.Loads(), (regions.RegionLoad(LOW, 1 << 40, 1 << 30), regions.RegionLoad(HIGH, 0, 1))),
    (regions.Commit(CHANGE), None),
    (regions.Backfilled("ns:w.2"), None),
    (
        owners.Holding(),
        owners.Holdings(((5, 9), (6, 1 << 40)), ((7, 3),), ((1 << 33, 2, True), (8, 1, False)), ("ns:t",), True, 9),
    ),
    (owners.OpenRegion(HIGH, OWNER, ((S1, SEGMENTS),), clock_ms=1_764_176_531_000), None),
    (owners.CloseRegion(HIGH, 8), owners.GivenUp(8, True, 1_764_176_531_001)),
    (owners.RenumberRegion(LOW, OWNER, (), 1), None),
    (owners.Rates(), (owners.RegionRates(5, 1.5, 0.0, 1e6, 1 << 40, 1 << 30),)),
    (owners.SlowRequests(), (SlowRequest(1_764_176_531_000, 1_234, "getRow", "table=t row=r", "s1"),)),
    (owners.Measures(), (by_label("columnar_forwarded", "counter", "Calls.", "method", [("get", 7), ("put", 2)]),)),
    (owners.Listening("0.0.0.0", 40_001, 40_002), None),
    (
        owners.Addresses((owners.Address(S1, "10.0.0.1", 9090), owners.Address(S2, "::1", 1)), (S1,)),
        None,
    ),
    (owners.HandOver(60_000), owners.HandoverResult(10_000, 0, 1, 2)),
    (owners.ReturnConnections(40, 2_000), 39),
    (owners.CannotOpen(HIGH, 9, "the disk is full", False), None),
    (nodes.FollowLeader(41, "[fe80::1]:9096"), None),
    (
        nodes.LiveSettings(
            "DEBUG", 250, ("https://app.example",), "/etc/store.crt", "/etc/store.key", ("columnar.wire=debug",)
        ),
        None,
    ),
    (nodes.JudgeVisitor("Bearer clmn_x", "::1"), nodes.Verdict(403, "no")),
    (
        nodes.ChangeLogLevels(("columnar.wire=debug", "root=default")),
        (nodes.ProcessLevels("n1.3", "root=info columnar.wire=debug"), nodes.ProcessLevels("n1-s1.4", "root=info")),
    ),
    (nodes.TakesConnections("0.1.0+337d94265ee8"), None),
    (nodes.AwaitRegions(), None),
    (nodes.KillServer(S1, "it hangs"), None),
    (nodes.StopServer(S2), None),
    (nodes.StartServer("n1-s2"), None),
    (
        nodes.DescribeServers(is_leaving=True, delay="node n2.17 is not fenced"),
        (
            nodes.NamedFacts(
                "n1-s1", nodes.ServerFacts("1.0", "10.0.0.1:1", 4_711, 12, 2_500, "n1-s1.3 died 12 s ago", ("why",))
            ),
            nodes.NamedFacts("n1-s2", nodes.ServerFacts()),
        ),
    ),
    (ChangeRoutes(1 << 33, (LOW,), (MOVED, Route(LOW, S1, 1))), RoutesVersion(12, True)),
    (ReplaceRoutes(7, (Route(LOW, S1, 1), MOVED)), RoutesVersion(7)),
    (
        peer_requests.Rows(
            "t",
            FORM,
            (peer_requests.RowGroup((b"r", b"\xff"), PLAIN), peer_requests.RowGroup((b"s",), READ, b"KeyOnly()", 1, 2)),
        ),
        peer_requests.RowsFound((b"packed", None), (2,)),
    ),
    (peer_requests.LeaveLinks(), None),
    (peer_requests.Apply("t", WRITES), peer_requests.Applied((1, 300), (5, 2, 1 << 40))),
    (peer_requests.ReplaceCell("t", b"r\xff", b"a", b"q", None, b"new"), peer_requests.CellReplaced(True)),
    (
        peer_requests.Ingest("t", b"a", b"z", 1 << 40, 7, (("f1", ("/data/x", "/data/y")), ("versions", ()))),
        peer_requests.Ingested(True),
    ),
    (peer_requests.DeleteRows("t", b"a", b"z\xff"), peer_requests.RowsDeleted(200, b"m", True)),
    (peer_requests.Tend(LOW, "flush"), True),
    (
        peer_requests.TriggerStatuses(),
        (
            TriggerStatus(
                "links",
                "ns:t",
                "wiki:links",
                "running",
                1 << 33,
                2.5,
                3,
                4,
                "ValueError: no",
                0.5,
                20,
                "slow",
                "share=20",
                True,
            ),
        ),
    ),
    (
        peer_requests.ViewStatuses(),
        (ViewStatus("ns:w.2", 1 << 33, 2.5, 3, 1 << 40, "TableNotEnabledException: t is disabled."),),
    ),
    (
        peer_requests.WaitForDelivery("links", "5-2-1099511627776", 600_000, (LOW, HIGH), saved=True),
        peer_requests.Waited(True, False),
    ),
    (peer_requests.FlowStatuses(), (FLOW, FlowStatus("view", "tops", ("t/f",), ("tops",)))),
    (peer_requests.LogAgain("ns:t", b"r\xff", "links", b"\x02change"), True),
    (
        peer_requests.SourcePart("v", 1, b"a\xff", b"\x80", True),
        peer_requests.SourceFound(b"n", b"", 7, 1, ((b"r", (ENTRY,)),)),
    ),
    (
        peer_requests.GroupsPart("v.2", b"g", b"m", b"\x01", True),
        peer_requests.GroupsFound(b"g", b"n", b"", 3, 4, ((b"g\0", "totals order"),), (ENTRY,)),
    ),
    (
        peer_requests.ReadSourceRows("v", 0, (b"a", b"b")),
        (peer_requests.EntriesSnapshot(b"print", (ENTRY,)), None),
    ),
    (peer_requests.ReadGroupMembers("v", ((b"g", b"m"),)), (peer_requests.EntriesSnapshot(b"print"),)),
    (peer_requests.SayAgain("v", 0, b"r\xff"), peer_requests.Said((5, 2, 1 << 40), WRITES[2:3])),
    (peer_requests.RepairGroup("v", b"g", ((b"m", b"print"),)), peer_requests.RepairResult(3, 1 << 33)),
    (
        peer_requests.ReadChanges(
            "t",
            StreamSpec((b"f", b"g:\xff"), ("f:a = b",), b"a", b"n", 1, 4, True, False, True, True),
            "beginning",
            (
                peer_requests.ChangesPart(
                    LOW, (StreamRange(b"", (5, 2, 1 << 40), None), StreamRange(b"m", None, b"m"))
                ),
                peer_requests.ChangesPart(HIGH, ()),
            ),
            1 << 20,
            "s1.1",
            1 << 50,
        ),
        peer_requests.ChangesFound(
            b"\x93events", ((StreamRange(b"", (5, 2, 1), b"x"),), None), False, 1 << 41, 1 << 50
        ),
    ),
    (
        peer_requests.PushMessages(
            b"jobs", (peer_requests.QueuedMessage(b"body", b"name", ((b"k", b"v\xff"),), b"group", 7, 1 << 33),)
        ),
        peer_requests.StoredMessages(True),
    ),
    (
        peer_requests.AppendRecords(
            b"edits\x00" + bytes(12),
            b"feed",
            (peer_requests.PushedRecord(b"\x01", b"row", None, (("s", b"\xff"), ("n", None)), 1 << 40),),
        ),
        peer_requests.AppendedRecords(3, True),
    ),
    (
        peer_requests.SettleLeases(b"jobs", (b"receipt", b"\xff"), "rollback", 1 << 31, b"no such file"),
        peer_requests.SettledLeases((True, False)),
    ),
    (peer_requests.WaitChanges((LOW, HIGH), 1 << 50, 10_000), True),
    (peer_requests.OwnFigures(), row_forms.Figures(7, 1, 64, {"get": 1 << 40, "mutateRow": 2})),
    (
        peer_requests.RegionStates(("t", "ns:t")),
        (row_forms.RegionState(LOW, "/data/regions/x", True, 1, 2, 3, 4, 1 << 40),),
    ),
    (
        peer_requests.Scan("t", SPEC, row_forms.Place(b"n", True), 10, 2_500, 4_194_304, FORM),
        peer_requests.Scanned((row_forms.Block(b"data", 2, 5, b"o"),), (), row_forms.Place(b"o", True), 5),
    ),
]
MESSAGES = [message for message, _ in ANSWERS]
# Other shapes of the same classes.
MORE: list[tuple[Message[Any], Any]] = [
    (peer_requests.SourcePart("", 0, b""), peer_requests.SourceFound(None, b"digest", is_not_local=True)),
    (peer_requests.GroupsPart("", b""), peer_requests.GroupsFound(None, is_not_local=True)),
    (peer_requests.SayAgain("", 0, b""), peer_requests.Said(is_not_local=True)),
    (peer_requests.RepairGroup("", b""), peer_requests.RepairResult(is_not_local=True)),
    (regions.MiddleRow(HIGH), None),
    (regions.Publish(make_table("t", [Family("f")]), False, ()), None),
    (regions.PublishTriggers(Triggers(numbers=None)), None),
    (regions.PublishRights(*RightsRecord().as_tuples()), None),
    (regions.CheckFunction("wiki:links"), None),
    (regions.Undelivered("t", ()), {}),
    (regions.LogReach("t"), 0),
    (regions.Loads(), ()),
    (ChangeRoutes(1), RoutesVersion(0)),
    (owners.OpenRegion(LOW, Owner(S1, 1), (), True), None),
    (owners.Rates(), ()),
    (owners.SlowRequests(), ()),
    (owners.Measures(), ()),
    (owners.Listening("h", 1), None),
    (owners.Listening("h", 1, -1, "unix:/run/columnar-4f/s1.4"), None),
    (owners.Addresses(()), None),
    (peer_requests.Apply("t", ()), peer_requests.Applied()),
    (peer_requests.ReplaceCell("t", b"r", b"a", b"", b"old", None), peer_requests.CellReplaced(is_not_local=True)),
    (peer_requests.Ingest("t", b"", b"", 0, 0, ()), peer_requests.Ingested(False, True)),
    (peer_requests.DeleteRows("t", b"", b""), peer_requests.RowsDeleted(None, None)),
    (peer_requests.Tend(HIGH, "compact"), False),
    (peer_requests.TriggerStatuses(), ()),
    (
        peer_requests.ViewStatuses(),
        (ViewStatus("ns:w.2", 1 << 33, 2.5, 3, 1 << 40, "TableNotEnabledException: t is disabled."),),
    ),
    (peer_requests.WaitForDelivery("", "", 0, ()), peer_requests.Waited(False, True)),
    (peer_requests.FlowStatuses(), ()),
    (peer_requests.LogAgain("t", b"", "x"), False),
    (peer_requests.OwnFigures(), row_forms.Figures(0, 0, 0, {})),
    (peer_requests.RegionStates(()), ()),
    (
        peer_requests.Scan(
            "t",
            ScanSpec(b"", b"", PLAIN),
            row_forms.Place(None),
            1,
            1,
            1,
            None,
            True,
            RowRange(b"a\xff", None),
            values=False,
        ),
        peer_requests.Scanned((), ((b"r", ((b"a:", b"v", 1 << 62), (b"a:q", b"", 0))), (b"s", ()))),
    ),
    (
        peer_requests.Scan("t", ScanSpec(b"", b"", PLAIN), row_forms.Place(b""), 1, 1, 1),
        peer_requests.Scanned(is_not_local=True),
    ),
]
