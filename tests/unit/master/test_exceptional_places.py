"""Lists in which one element is another: first, second or last among ordinary ones, which are served all the same."""

from __future__ import annotations

from random import Random

import pytest

from columnar.limits import MIB
from columnar.master.catalogue_rows import OperatorSettings
from columnar.master.instructions import MoveRegion, Throttles
from columnar.master.placement_records import BY_HAND_MS, ServerState
from columnar.model.owner_messages import RegionRates
from columnar.model.region_info import RegionInfo
from tests.support.planned_cluster import PlannedCluster
from tests.unit.master.test_planner import NOW_MS, Stage, given

AT = pytest.mark.parametrize("at", [0, 1, 3])


@AT
@pytest.mark.parametrize("why", ["drained", "down", "benched"])
def test_a_server_that_takes_no_region_back_keeps_no_other_from_its_own(at: int, why: str) -> None:
    stage = Stage(5)
    stage.desired.throttles = Throttles(moves_per_server=8)
    homes = [(f"s{n + 1}", stage.region("s5", ideal=f"s{n + 1}").info.region_id) for n in range(4)]
    odd, region = homes.pop(at)
    if why == "drained":
        stage.desired.operator_settings = OperatorSettings(frozenset({odd}))
    elif why == "down":
        stage.current.servers[odd].state = ServerState.DOWN
    else:
        stage.current.servers[odd].failures.benched_until_ms = NOW_MS + 1
    assert given(stage.made()) == {one: home for home, one in homes}
    assert region not in given(stage.made())


@AT
def test_a_server_without_a_slot_keeps_no_other_from_its_own(at: int) -> None:
    """Two moves that a person asked for take all that it has."""
    stage = Stage(9)
    homes = [(f"s{n + 1}", stage.region(f"s{n + 5}", ideal=f"s{n + 1}").info.region_id) for n in range(4)]
    odd, _ = homes.pop(at)
    asked = [stage.region(odd).info.region_id for _ in range(2)]
    stage.desired.requests = {one: MoveRegion(one, "s9") for one in asked}
    assert given(stage.made()) == dict.fromkeys(asked, "s9") | {one: home for home, one in homes}


@AT
@pytest.mark.parametrize("why", ["down", "empty", "no slot"])
def test_a_drained_server_that_gives_nothing_keeps_no_other_from_being_emptied(at: int, why: str) -> None:
    stage = Stage(6)
    stage.desired.throttles = Throttles(moves=16, moves_per_server=8, moves_per_drained=1)
    drained = ["s1", "s2", "s3", "s4"]
    stage.desired.operator_settings = OperatorSettings(frozenset(drained))
    odd = drained[at]
    regions = {one: stage.region(one).info.region_id for one in drained if one != odd or why != "empty"}
    if why == "down":
        stage.current.servers[odd].state = ServerState.DOWN
    elif why == "no slot":
        stage.desired.requests = {1: MoveRegion(stage.region(odd).info.region_id, "s5")}
    assert regions.keys() - {odd} == set(drained) - {odd}
    made = given(stage.made())
    assert {region for one, region in regions.items() if one != odd} <= made.keys()
    assert regions.get(odd) not in made


@AT
def test_a_region_of_a_table_that_is_copied_keeps_no_other_from_leaving_a_drained_server(at: int) -> None:
    stage = Stage(2)
    stage.desired.throttles = Throttles(moves=16, moves_per_server=8, moves_per_drained=8)
    stage.desired.operator_settings = OperatorSettings(frozenset({"s1"}))
    regions = [stage.region("s1", table="copied" if n == at else "t").info.region_id for n in range(4)]
    stage.current.paused_tables.add("copied")
    regions.pop(at)
    assert given(stage.made()) == dict.fromkeys(regions, "s2")


@AT
def test_a_region_that_may_not_leave_keeps_no_other_from_going_home(at: int) -> None:
    """One was moved by hand a moment ago, the others have been where they are for long."""
    stage = Stage(6)
    stage.desired.throttles = Throttles(moves_per_server=8)
    mine = [stage.region(f"s{n + 2}", ideal="s1") for n in range(4)]
    odd = mine.pop(at)
    odd.stays_until_ms = NOW_MS - 1 + BY_HAND_MS
    assert given(stage.made()) == {one.info.region_id: "s1" for one in mine}


@AT
@pytest.mark.parametrize("odd", ["of another server", "unknown"])
def test_a_report_of_a_region_that_is_not_its_servers_keeps_no_other_from_being_rated(at: int, odd: str) -> None:
    """The region has left the server, or is gone, since the report was made."""
    cluster = PlannedCluster([RegionInfo("t", n, b"%d" % n, b"%d" % (n + 1)) for n in range(2, 9)], Random(1))
    for name in ("s1", "s2"):
        cluster.start(name)
    cluster.run(1_000)
    cluster.event("begin_planning")
    cluster.run(5_000)
    current = cluster.state.current
    mine, others = list(current.servers["s1"].regions), list(current.servers["s2"].regions)
    assert len(mine) >= 3
    reported = mine[:3]
    reported.insert(at, others[0] if odd == "of another server" else 99)
    incarnation = current.servers["s1"].incarnation
    assert incarnation is not None
    cluster.event("loads", incarnation, [RegionRates(one, 50.0, 2.0, 1.0, MIB, 1 << 34) for one in reported])
    for one in mine[:3]:
        place = current.places[one]
        assert (place.measured.reads_per_s, place.measured.writes_per_s, place.measured.size_bytes) == (
            50.0,
            2.0,
            MIB,
        ), one
    assert current.places[others[0]].measured.reads_per_s == 0.0
