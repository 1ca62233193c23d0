"""Routes of a few regions: gaps, changes that do not fit, and what costs nothing."""

from __future__ import annotations

import pytest

from columnar.cluster.routes import Routes
from columnar.model.owner import Incarnation, first_owner, moved, taken_from_dead
from columnar.model.region_info import RegionInfo
from columnar.model.route import ChangeRoutes, ReplaceRoutes, Route, RoutesVersion, route_to

S1, S2 = Incarnation("s1", 1), Incarnation("s2", 7)
LOW, HIGH = RegionInfo("t", 2, b"", b"m"), RegionInfo("t", 3, b"m", b"")


def copied() -> Routes:
    routes = Routes()
    routes.replace(ReplaceRoutes(10, (Route(HIGH, S2, 4), Route(LOW, S1, 1))))
    return routes


def test_an_empty_copy_needs_all_routes() -> None:
    routes = Routes()
    assert routes.find("t", b"") is None
    assert routes.apply(ChangeRoutes(1)) == RoutesVersion(0, needs_all=True)
    assert routes.replace(ReplaceRoutes(0, ())) == RoutesVersion(0)
    assert routes.apply(ChangeRoutes(1)) == RoutesVersion(1)


def test_rows_find_their_regions() -> None:
    routes = copied()
    assert [routes.find("t", row) for row in (b"", b"l\xff")] == [Route(LOW, S1, 1)] * 2
    assert [routes.find("t", row) for row in (b"m", b"\xff")] == [Route(HIGH, S2, 4)] * 2
    assert routes.find("u", b"") is None
    assert routes.of_table("u") == ()
    assert list(routes.tables) == ["t"]
    assert routes.of_table("t") is routes.of_table("t"), "a lookup copies nothing"


def test_a_gap_is_refused_and_a_repeat_passed_over() -> None:
    routes = copied()
    ahead = ChangeRoutes(12, routes=(Route(LOW, S2, 2),))
    assert routes.apply(ahead) == RoutesVersion(10)
    assert routes.apply(ChangeRoutes(9, gone=(LOW, HIGH))) == RoutesVersion(10)
    assert routes.apply(ChangeRoutes(11)) == RoutesVersion(11)
    assert routes.apply(ahead) == RoutesVersion(12)
    assert routes.find("t", b"") == Route(LOW, S2, 2)


@pytest.mark.parametrize(
    "change",
    [
        ChangeRoutes(11, gone=(LOW,)),  # a hole
        ChangeRoutes(11, gone=(RegionInfo("t", 99, b"", b"m"),)),
        ChangeRoutes(11, gone=(RegionInfo("u", 2),)),
        ChangeRoutes(11, gone=(LOW,), routes=(Route(RegionInfo("t", 4, b"", b"k"), S1, 1),)),
        ChangeRoutes(11, gone=(LOW,), routes=(Route(RegionInfo("t", 4, b"a", b"m"), S1, 1),)),
        ChangeRoutes(
            11,
            gone=(LOW,),
            routes=(Route(RegionInfo("t", 4, b"", b"f"), S1, 1), Route(RegionInfo("t", 5, b"g", b"m"), S1, 1)),
        ),
        ChangeRoutes(11, routes=(Route(RegionInfo("t", 4, b"", b"k"), S1, 1),)),  # an overlap
        ChangeRoutes(11, routes=(Route(RegionInfo("u", 4, b"", b"k"), S1, 1),)),  # half a table
        ChangeRoutes(11, gone=(LOW, HIGH, LOW)),
    ],
)
def test_a_change_that_does_not_fit_changes_nothing_and_all_routes_are_needed(change: ChangeRoutes) -> None:
    routes = copied()
    assert routes.apply(change) == RoutesVersion(10, needs_all=True)
    assert list(routes.of_table("t")) == [Route(LOW, S1, 1), Route(HIGH, S2, 4)]
    assert routes.apply(ChangeRoutes(11)) == RoutesVersion(10, needs_all=True), "until they come"
    assert routes.replace(ReplaceRoutes(11, (Route(RegionInfo("t", 9), S1, 1),))) == RoutesVersion(11)
    routes.check_invariants()


def test_one_part_that_does_not_fit_spoils_the_whole_change() -> None:
    routes = copied()
    table = Route(RegionInfo("u", 8), S1, 1)
    routes.apply(ChangeRoutes(11, gone=(LOW,), routes=(table, Route(HIGH, S1, 9))))
    assert routes.find("u", b"") is None
    assert routes.find("t", b"z") == Route(HIGH, S2, 4)


def test_routes_that_leave_a_hole_are_a_mistake_of_the_sender() -> None:
    routes = copied()
    with pytest.raises(ValueError, match="routes of table t: no region ends at the last row"):
        routes.replace(ReplaceRoutes(11, (Route(LOW, S1, 1),)))
    assert routes.report_version == RoutesVersion(10)


def test_an_owner_that_refuses_names_a_later_one() -> None:
    routes = copied()
    assert not routes.moved(HIGH, S1, 4), "it is not later"
    assert not routes.moved(RegionInfo("t", 99, b"m", b""), S1, 9), "another region"
    assert routes.moved(HIGH, S1, 6)
    assert routes.apply(ChangeRoutes(11, routes=(Route(HIGH, S2, 5),))) == RoutesVersion(11)
    found = routes.find("t", b"z")
    assert found is not None
    assert found.epoch == 6, "R3"
    routes.replace(ReplaceRoutes(12, (Route(LOW, S1, 1), Route(HIGH, S2, 5))))
    assert routes.find("t", b"z") == found, "R3"
    routes.apply(ChangeRoutes(13, routes=(Route(HIGH, S1, 6),)))
    assert routes.find("t", b"z") == Route(HIGH, S1, 6), "the catalogue's word of the same epoch"


def test_a_route_knows_whether_the_owner_before_still_answers() -> None:
    owner = first_owner(S1)
    assert route_to(LOW, moved(owner, S2)) == Route(LOW, S2, 2, Route(LOW, S1, 1).ownership_period)
    assert route_to(LOW, taken_from_dead(owner, S2, in_log=True)) == Route(LOW, S2, 2)
