"""What people see of a cluster: each phase in HBase's words, why, and what stands in the way."""

from __future__ import annotations

import pytest

from columnar.errors import NotServingRegion, TableNotFound
from columnar.master import cluster_status_builder as looks
from columnar.master.instructions import (
    DrainServer,
    MergeRegions,
    MoveRegion,
    SplitRegion,
    SwitchSetting,
    UnassignRegion,
)
from columnar.master.placement_records import OPENING_TRIES, Phase
from columnar.model.cluster_status_records import RegionStatus, RowStatus
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo
from tests.support.operated_cluster import OperatedCluster, table_infos


def operated(regions: int = 6, servers: int = 3) -> OperatedCluster:
    return OperatedCluster(table_infos("t", regions), servers)


def region_of(operated: OperatedCluster, row: bytes) -> RegionStatus:
    return row_of(operated, row).region


def row_of(operated: OperatedCluster, row: bytes) -> RowStatus:
    return looks.build_row_status(operated.state, "t", row, operated.facts, operated.now_ms())


def states_during(operated: OperatedCluster, region: int, until_ms: int) -> list[str]:
    """HBase's words of a region, each once as it comes."""
    seen: list[str] = []
    end_ms = operated.now_ms() + until_ms
    while operated.now_ms() < end_ms:
        place = operated.state.current.places.get(region)
        word = looks.hbase_word(place) if place is not None else "gone"
        if not seen or seen[-1] != word:
            seen.append(word)
        operated.cluster.run(operated.now_ms() + 1)
    return seen


def test_a_cluster_that_rests() -> None:
    found = looks.build_cluster_status(at_rest := operated().state, operated().facts, 3_000)
    assert [(one.name, one.state, one.regions) for one in found.servers] == [(f"s{n}", "up", 2) for n in (1, 2, 3)]
    assert (found.regions, found.unassigned, found.transitions) == (6, 0, 0)
    assert (found.is_balancing, found.is_splitting, found.remarks) == (True, True, ())
    assert sum(one.load for one in found.servers) == pytest.approx(at_rest.current.load)
    assert [(one.address, one.pid, one.notes) for one in found.servers][:1] == [("127.0.0.1:40001", 4701, ())]


def test_a_log_of_a_dead_server_that_cannot_be_read_is_a_fault_until_it_can() -> None:
    cluster = operated()
    cluster.state.current.unread_logs[Incarnation("s1", 1)] = "the data folder is not at its place"
    found = looks.build_cluster_status(cluster.state, cluster.facts, 3_000)
    (fault,) = found.faults
    assert fault == (
        "the log of server s1.1, which is over, cannot be read, and is needed by 2 regions: "
        "the data folder is not at its place; it is tried again each second"
    )
    assert fault in found.remarks
    cluster.state.current.unread_logs.clear()
    assert not looks.build_cluster_status(cluster.state, cluster.facts, 3_000).faults


def test_a_region_tells_who_has_it_and_why() -> None:
    cluster = operated()
    found = region_of(cluster, b"bb")
    assert (found.info.start, found.state, found.epoch, found.source) == (b"b", "OPEN", 1, "")
    assert found.server == found.home
    assert (found.why, found.address) == (
        "new",
        cluster.facts(cluster.state.current.servers[found.server].incarnation).address,
    )
    cluster.rated({b"b": 30.0})
    assert region_of(cluster, b"b").reads_per_s == 30.0
    assert cluster.control.reports.cluster_status().servers[int(found.server[1]) - 1].requests_per_s == 30.0


def test_a_move_in_words() -> None:
    cluster = operated()
    before = region_of(cluster, b"b")
    target = "s1" if before.server != "s1" else "s2"
    cluster.cluster.ask(MoveRegion(before.info.region_id, target, "for the test"))
    (moving,) = cluster.control.reports.transitions()
    assert (moving.kind, moving.source, moving.target, moving.why) == ("move", before.server, target, "for the test")
    (said, *_) = row_of(cluster, b"b").remarks
    assert said == f"it has been on its way from {before.server} to {target} for 0.0 s"
    assert states_during(cluster, before.info.region_id, 1_000) == ["CLOSING", "OPENING", "OPEN"]
    after = region_of(cluster, b"b")
    assert (after.server, after.home, after.epoch, after.why) == (target, target, 2, "for the test")
    assert row_of(cluster, b"b").remarks == ()
    assert row_of(cluster, b"b").decisions[0].text == f"t {after.info.encoded[:8]} goes to {target}: for the test"


def test_splits_and_merges_in_words() -> None:
    cluster = operated()
    parent = region_of(cluster, b"b").info
    cluster.cluster.ask(SplitRegion(parent.region_id))
    assert cluster.control.reports.transitions()[0].kind == "split"
    assert states_during(cluster, parent.region_id, 1_000) == ["SPLITTING", "gone"]
    assert cluster.control.reports.decisions()[0].regions == (str(parent.region_id),)
    halves = region_of(cluster, b"b").info.region_id, region_of(cluster, b"b\xff").info.region_id
    assert halves[0] != halves[1]
    cluster.cluster.ask(MergeRegions(*halves))
    assert cluster.control.reports.transitions()[0].kind == "merge"
    assert states_during(cluster, halves[1], 1_000) == ["MERGING", "gone"]


def test_what_a_person_closed_says_how_to_open_it() -> None:
    cluster = operated()
    info = region_of(cluster, b"b").info
    cluster.cluster.ask(UnassignRegion(info.region_id))
    assert states_during(cluster, info.region_id, 1_000) == ["CLOSING", "OFFLINE"]
    found = row_of(cluster, b"b")
    assert (found.region.server, found.region.why, found.server) == ("", "a person has unassigned it", None)
    assert found.remarks == (f"a person has unassigned the region; 'columnar assign {info.encoded}' opens it",)


def test_what_cannot_be_opened_says_who_tried() -> None:
    cluster = OperatedCluster(table_infos("t", 2), 2)
    cluster.cluster.faults = {"unopened": 1.0}
    server = cluster.state.current.servers["s1"].incarnation
    assert server is not None
    cluster.cluster.kill(server)
    cluster.cluster.run(cluster.now_ms() + 60_000)
    (place, *_) = [one for one in cluster.state.current.places.values() if one.phase is Phase.FAILED_OPEN]
    found = row_of(cluster, place.info.start or b"a")
    assert found.region.state == "FAILED_OPEN"
    encoded = place.info.encoded
    (said, *_) = found.remarks
    why = f"it could not be opened by s2, {len(place.attempts.tried)} times in all: it cannot be opened"
    assert len(place.attempts.tried) > OPENING_TRIES, "it is tried again by itself"
    assert said == f"{why}; it is tried again by itself; 'columnar assign {encoded}' tries again"
    assert found.region.why == why
    (shown, *_) = cluster.control.reports.transitions()
    assert (shown.kind, shown.state, shown.target, shown.why) == ("failed", "FAILED_OPEN", "", why)
    look = cluster.control.reports.cluster_status()
    assert (look.unassigned, look.remarks[-1][:30]) == (1, "1 region could not be opened; ")


def test_regions_that_no_server_may_take_are_listed_as_waiting() -> None:
    cluster = operated()
    for server in list(cluster.cluster.servers):
        cluster.cluster.kill(server)
    cluster.cluster.run(cluster.now_ms() + 500)
    made = RegionInfo("u", 99)
    cluster.cluster.event("created", [made])
    found = {one.info: one for one in cluster.control.reports.transitions()}
    assert found.keys() == {place.info for place in cluster.state.current.places.values()}
    assert {(one.kind, one.state, one.source, one.target) for one in found.values()} == {("waiting", "OFFLINE", "", "")}
    why = "no server may take it as yet"
    for info, one in found.items():
        before = cluster.state.current.places[info.region_id].owner
        assert one.why == (why if before is None else f"{before.server} had it last, and {why}")
        assert 0 <= one.state_ms <= 500
    assert (found[made].why, found[made].state_ms) == (why, 0)
    assert cluster.control.reports.cluster_status().remarks == ("no server is up: 7 regions have no owner",)


def test_a_region_between_two_tries_of_its_opening_is_listed_as_waiting() -> None:
    cluster = OperatedCluster(table_infos("t", 2), 2)
    cluster.cluster.faults = {"unopened": 1.0}
    server = cluster.state.current.servers["s1"].incarnation
    assert server is not None
    cluster.cluster.kill(server)
    last_ms = cluster.now_ms() + 10_000
    while not cluster.state.current.homeless and cluster.now_ms() < last_ms:
        cluster.cluster.run(cluster.now_ms() + 1)
    (one,) = cluster.control.reports.transitions()
    assert (one.kind, one.state, one.source, one.target) == ("waiting", "OFFLINE", "", "")
    assert one.why == "it could not be opened by s2 and is tried again: it cannot be opened"


def test_a_busy_server_says_what_makes_it_so() -> None:
    cluster = operated()
    found = region_of(cluster, b"b")
    cluster.rated({b"b": 900.0})
    (said, *_) = row_of(cluster, b"b").remarks
    assert said.startswith(f"{found.server} has 3.0 times the mean load, and this region alone makes 100% of it; ")
    assert said.endswith(f"'columnar split {found.info.encoded}' divides it")
    # A neighbour on the same server waits behind it, and alone cannot help.
    other = next(one for one in cluster.control.reports.server_regions(found.server) if one.info != found.info)
    (said, *_) = row_of(cluster, other.info.start or b"a").remarks
    assert said == f"{found.server} has 3.0 times the mean load; the balancer looks at it every 10 s"
    cluster.cluster.ask(SwitchSetting("balancer", False))
    (said, *_) = row_of(cluster, other.info.start or b"a").remarks
    assert said.endswith("and the balancer is off; 'columnar balancer on' or 'columnar move' helps")


def test_a_copied_table_and_a_large_region_say_so() -> None:
    cluster = operated()
    place = next(one for one in cluster.state.current.places.values() if one.info.contains_row(b"b"))
    cluster.cluster.event("pause_table_transitions", "t")
    place.measured.size_bytes, place.measured.limit_bytes = 3 << 30, 1 << 30
    assert row_of(cluster, b"b").remarks == (
        "the table is being copied: none of its regions moves, splits or merges meanwhile",
        "it has 3072 MiB, over its table's limit of 1024: it is split next",
    )


def test_a_server_that_dies_drains_or_is_away_says_so() -> None:
    cluster = operated()
    s1 = cluster.state.current.servers["s1"].incarnation
    assert s1 is not None
    cluster.cluster.ask(DrainServer("s2"))
    cluster.cluster.run(cluster.now_ms() + 2_000)
    cluster.cluster.kill(s1)
    cluster.cluster.run(cluster.now_ms() + 2_000)
    first, second, third = cluster.control.reports.cluster_status().servers
    assert (first.state, first.regions, first.notes) == ("down", 0, ("elsewhere, though at home here: 2 regions",))
    assert (second.is_drained, second.regions) == (True, 0)
    assert second.notes == ("drained: it gets no region", "elsewhere, though at home here: 2 regions")
    assert (third.state, third.regions, third.notes) == ("up", 6, ())
    fenced = [one for one in cluster.control.reports.decisions() if one.kind == "give" and "is gone" in one.why]
    assert {one.why for one in fenced} == {"s1.1 is gone"}


def test_what_is_not_there_is_refused() -> None:
    cluster = operated()
    with pytest.raises(TableNotFound):
        looks.build_row_status(cluster.state, "u", b"r", cluster.facts, 0)
    places = looks.table_places(cluster.state, "t")
    with pytest.raises(NotServingRegion):
        looks.place_of(places[1:], b"a")  # of a table whose first region is being made
