"""Single decisions of the planner: who gets a region, what is throttled, who is left alone, and what is said."""

from __future__ import annotations

from random import Random

import pytest

from columnar.limits import MIB
from columnar.master.catalogue_rows import OperatorSettings
from columnar.master.instructions import (
    Close,
    Give,
    Instruction,
    Merge,
    MergeRegions,
    MoveRegion,
    Plan,
    Prefer,
    Reason,
    Split,
    SplitRegion,
    UnassignRegion,
)
from columnar.master.placement import Current, Desired
from columnar.master.placement_records import (
    BENCHED_MS,
    BY_HAND_MS,
    SETTLED_MS,
    OpeningAttempts,
    Phase,
    Place,
    Server,
    ServerState,
    score,
)
from columnar.master.planner import SHARE_MS, plan
from columnar.model.owner import Incarnation, Owner, first_owner
from columnar.model.owner_messages import RegionRates
from columnar.model.region_info import RegionInfo

NOW_MS = 1_000_000


class Stage:
    def __init__(self, servers: int = 3) -> None:
        self.current = Current()
        self.desired = Desired()
        self.next_id = 2
        for n in range(servers):
            server = self.current.server(f"s{n + 1}")
            server.state, server.incarnation = ServerState.UP, Incarnation(server.name, 1)

    def region(self, at: str | None, load: float = 1.0, table: str = "t", ideal: str | None = None) -> Place:
        """Open at the server; None: it has no owner."""
        owner = None if at is None else first_owner(Incarnation(at, 1))
        place = Place(RegionInfo(table, self.next_id, b"%d" % self.next_id, b"%d" % (self.next_id + 1)), owner)
        self.next_id += 1
        self.current.add_place(place)
        if at is not None:
            self.current.set_server(place, at)
            self.current.set_phase(place, Phase.OPEN, 0)
        self.current.set_ideal(place, ideal or at, "")
        self.current.set_load(place, load)
        return place

    def plan(self, now_ms: int = NOW_MS) -> Plan:
        self.current.check_invariants()
        return plan(self.desired, self.current, now_ms, Random(1))

    def made(self, now_ms: int = NOW_MS) -> tuple[Instruction, ...]:
        return self.plan(now_ms).instructions


def given(instructions: tuple[Instruction, ...]) -> dict[int, str]:
    return {one.region: one.server for one in instructions if isinstance(one, Give)}


# --- regions without an owner --------------------------------------------------------------------


def test_a_region_without_an_owner_goes_to_the_least_load_at_once() -> None:
    stage = Stage()
    stage.region("s1", 10)
    stage.region("s2", 5)
    stage.region("s3", 20)
    lost = stage.region(None)
    assert given(stage.made()) == {lost.info.region_id: "s2"}


def test_among_equal_loads_the_fewest_regions_of_the_table_decide() -> None:
    stage = Stage()
    stage.region("s1", table="t")
    stage.region("s2", table="u")
    stage.region("s3", table="t")
    lost = stage.region(None, table="t")
    assert given(stage.made()) == {lost.info.region_id: "s2"}


def test_the_regions_of_a_dead_server_are_spread_without_a_throttle() -> None:
    stage = Stage(4)
    for _ in range(60):
        stage.region(None)
    counts = list(given(stage.made()).values())
    assert len(counts) == 60
    assert all(counts.count(f"s{n}") == 15 for n in (1, 2, 3, 4))


def test_without_a_server_it_is_said() -> None:
    stage = Stage(0)
    stage.region(None)
    assert stage.plan().instructions == ()
    assert "no server is up: 1 regions have no owner" in stage.plan().remarks


@pytest.mark.parametrize("state", [ServerState.STARTING, ServerState.FENCING, ServerState.DOWN])
def test_a_server_that_is_not_up_gets_nothing(state: ServerState) -> None:
    stage = Stage(2)
    stage.current.server("s1").state = state
    lost = stage.region(None)
    assert given(stage.made()) == {lost.info.region_id: "s2"}


def test_a_source_that_has_not_closed_the_region_keeps_it() -> None:
    stage = Stage(3)
    lost = stage.region(None)
    stage.region("s1", 100)
    lost.owner = Owner(Incarnation("s9", 1), 9, 0, first_owner(Incarnation("s1", 1), 8).ownership_period)
    assert given(stage.made()) == {lost.info.region_id: "s1"}


def test_a_server_that_could_not_open_the_region_is_not_asked_again() -> None:
    stage = Stage(2)
    lost = stage.region(None)
    lost.owner, lost.attempts = first_owner(Incarnation("s1", 1)), OpeningAttempts(tried=("s1",))
    lost.since_ms = NOW_MS
    stage.region("s2", 100)
    assert given(stage.made()) == {lost.info.region_id: "s2"}


def test_where_there_is_no_other_server_the_same_one_tries_again_later() -> None:
    stage = Stage(1)
    lost = stage.region(None)
    lost.owner, lost.attempts = first_owner(Incarnation("s1", 1)), OpeningAttempts(tried=("s1",))
    lost.since_ms = NOW_MS
    assert stage.plan().wake_at_ms == NOW_MS + 1_000
    assert stage.made() == ()
    assert given(stage.made(NOW_MS + 1_000)) == {lost.info.region_id: "s1"}


def test_a_server_that_died_three_times_in_five_minutes_gets_nothing_for_a_while() -> None:
    server = Server("s1")
    for at_ms in (0, 100_000, 200_000):
        server.failures.process_died(at_ms)
    assert server.failures.benched_until_ms == 200_000 + BENCHED_MS[0]
    server.failures.process_died(290_000)
    assert server.failures.benched_until_ms == 290_000 + BENCHED_MS[1]
    server.failures.process_died(3_000_000)
    assert server.failures.benches == 0, "forgiven"
    stage = Stage(2)
    stage.current.server("s1").failures.benched_until_ms = NOW_MS + 1
    lost = stage.region(None)
    stage.region("s2", 100)
    assert given(stage.made()) == {lost.info.region_id: "s2"}
    assert given(stage.made(NOW_MS + 1)) == {lost.info.region_id: "s1"}
    stage.current.server("s2").state = ServerState.DOWN
    assert given(stage.made()) == {lost.info.region_id: "s1"}, "it is the last"


# --- requests, drains, home ----------------------------------------------------------------------


def test_requests_of_people_become_instructions() -> None:
    stage = Stage()
    moved, closed, split, left, right = (stage.region("s1") for _ in range(5))
    stage.desired.requests = {
        1: MoveRegion(moved.info.region_id, "s2"),
        2: UnassignRegion(closed.info.region_id),
        3: SplitRegion(split.info.region_id, b"m"),
        4: MergeRegions(left.info.region_id, right.info.region_id),
    }
    assert stage.made() == (
        Give(moved.info.region_id, "s2", "asked for", Reason.REQUESTED),
        Close(closed.info.region_id, 1, "asked for"),
        Split(split.info.region_id, b"m", "asked for"),
        Merge((left.info.region_id, right.info.region_id), "asked for"),
    )


def test_regions_of_two_servers_are_brought_together_before_they_merge() -> None:
    stage = Stage()
    left, right = stage.region("s1"), stage.region("s2")
    stage.desired.requests[1] = MergeRegions(left.info.region_id, right.info.region_id)
    assert given(stage.made()) == {right.info.region_id: "s1"}


def test_moves_are_throttled() -> None:
    stage = Stage(10)
    for n in range(40):
        stage.desired.requests[n] = MoveRegion(stage.region("s1").info.region_id, "s2")
        stage.desired.requests[40 + n] = MoveRegion(stage.region(f"s{3 + n % 4}").info.region_id, f"s{7 + n % 4}")
    made = [(stage.current.places[region].server, server) for region, server in given(stage.made()).items()]
    assert len(made) == 8
    for n in range(1, 11):
        assert sum(f"s{n}" in names for names in made) <= 2


def test_a_drained_server_is_emptied_four_at_a_time_and_gets_nothing() -> None:
    stage = Stage(4)
    for _ in range(10):
        stage.region("s1")
    stage.desired.operator_settings = OperatorSettings(frozenset({"s1"}))
    lost = stage.region(None)
    made = given(stage.made())
    assert made.pop(lost.info.region_id) != "s1"
    assert len(made) == 4
    assert "s1" not in made.values()


def test_a_server_that_is_back_gets_its_regions_two_at_a_time() -> None:
    stage = Stage(3)
    mine = [stage.region(f"s{2 + n % 2}", ideal="s1").info.region_id for n in range(6)]
    made = given(stage.made())
    assert len(made) == 2
    assert set(made) <= set(mine)
    assert set(made.values()) == {"s1"}


def opening_elsewhere(stage: Stage, count: int) -> list[Place]:
    """Regions of s1 that s2 was told to open when s1 died."""
    places = [stage.region("s2", load=1.0 + n, ideal="s1") for n in range(count)]
    for place in places:
        stage.current.set_phase(place, Phase.OPENING, NOW_MS - 50)
    return places


def test_a_server_that_came_takes_half_of_what_the_other_has_not_opened_yet_least_loaded_first() -> None:
    """At whichever moment it came: the next owners of its regions may still be on their way to the disk then."""
    for late_ms in (0, 1, SHARE_MS - 1):
        stage = Stage(2)
        places = opening_elsewhere(stage, 64)
        open_already = stage.region("s2", ideal="s1")
        stage.current.servers["s1"].since_ms = NOW_MS - late_ms
        made = given(stage.made())
        assert made == {place.info.region_id: "s1" for place in places[:32]}
        assert open_already.info.region_id not in made, "a region that is served waits until all are"


def test_openings_are_shared_again_where_one_server_is_quicker() -> None:
    stage = Stage(2)
    opening_elsewhere(stage, 20)
    for number in range(17):
        stage.current.set_phase(stage.region("s1"), Phase.OPENING if number < 13 else Phase.OPEN, NOW_MS - 50)
    stage.current.servers["s1"].since_ms = NOW_MS - 500
    stage.region("s2", ideal="s1")
    assert given(stage.made()) == {}, "20 and 13: three more are not worth it, and what is served goes home later"
    for place in list(stage.current.places.values())[-10:-1]:
        stage.current.set_phase(place, Phase.OPEN, NOW_MS - 50)
    assert len(given(stage.made())) == 6, "20 and 8: 14 each"


def test_a_server_that_is_here_for_long_takes_nothing_that_is_being_opened() -> None:
    stage = Stage(2)
    opening_elsewhere(stage, 64)
    stage.current.servers["s1"].since_ms = NOW_MS - SHARE_MS
    assert given(stage.made()) == {}


def test_no_transition_begins_in_a_table_that_is_copied() -> None:
    stage = Stage(2)
    place = stage.region("s1")
    stage.current.paused_tables.add("t")
    stage.desired.requests = {1: MoveRegion(place.info.region_id, "s2"), 2: SplitRegion(place.info.region_id)}
    assert stage.made() == ()


# --- splits and balance --------------------------------------------------------------------------


def test_the_region_most_over_its_limit_is_split_first_one_at_a_time_for_each_server() -> None:
    stage = Stage(2)
    for size in (150, 400, 120):
        place = stage.region("s1")
        place.measured.size_bytes, place.measured.limit_bytes = size * MIB, 100 * MIB
        stage.current.large[place.info.region_id] = None
    assert [one.region for one in stage.made() if isinstance(one, Split)] == [3]
    stage.desired.operator_settings = OperatorSettings(auto_split=False, balancer=False)
    assert stage.made() == ()


def test_a_region_that_alone_has_half_of_a_servers_share_is_split_if_it_is_not_tiny() -> None:
    stage = Stage(2)
    hot = stage.region("s1", 1_000)
    stage.region("s2", 500)
    stage.current.large[hot.info.region_id] = None
    assert not [one for one in stage.made() if isinstance(one, Split)]
    hot.measured.size_bytes = 64 * MIB
    assert [one.region for one in stage.made() if isinstance(one, Split)] == [hot.info.region_id]


def preferred(instructions: tuple[Instruction, ...]) -> dict[int, str]:
    return {one.region: one.server for one in instructions if isinstance(one, Prefer)}


def test_balance_looks_at_load_and_not_at_the_number_of_regions() -> None:
    stage = Stage(2)
    for _ in range(10):
        stage.region("s1", 10)
        stage.region("s2", 1)
    made = preferred(stage.made())
    assert set(made.values()) == {"s2"}
    assert 10 * (10 - len(made)) <= 1.2 * 55, "the load of s1 afterwards"


def test_balance_waits_after_a_server_came_or_went_and_between_rounds() -> None:
    stage = Stage(2)
    for _ in range(10):
        stage.region("s1", 10)
    stage.current.balance.changed_ms = NOW_MS - 59_999
    assert stage.made() == ()
    assert preferred(stage.made(NOW_MS + 1))
    stage.current.balance.balanced_ms = NOW_MS
    assert stage.made(NOW_MS + 9_999) == ()
    assert preferred(stage.made(NOW_MS + 10_000))
    stage.desired.operator_settings = OperatorSettings(balancer=False)
    assert stage.made(NOW_MS + 10_000) == ()


def test_regions_that_were_moved_lately_or_by_hand_stay() -> None:
    stage = Stage(2)
    for n in range(10):
        place = stage.region("s1", 10)
        if n % 2:
            place.stays_until_ms = NOW_MS - 299_999 + SETTLED_MS
        else:
            place.stays_until_ms = NOW_MS - 3_599_999 + BY_HAND_MS
    assert preferred(stage.made()) == {}
    assert preferred(stage.made(NOW_MS + 1))


def test_a_region_that_is_too_much_for_any_server_is_named_and_the_others_leave_its_server() -> None:
    stage = Stage(3)
    hot = stage.region("s1", 1_000)
    small = stage.region("s1", 90)
    stage.region("s2", 100)
    stage.region("s3", 90)
    made = stage.plan()
    assert set(preferred(made.instructions)) == {small.info.region_id}
    assert made.remarks == (f"region {hot.info.encoded} of t alone is 2.3 times the mean load",)


def test_a_balanced_cluster_is_left_alone() -> None:
    stage = Stage(3)
    for n in range(30):
        stage.region(f"s{1 + n % 3}", 10 + n % 2)
    made = stage.plan()
    assert made.has_balanced
    assert made.instructions == made.remarks == ()


def test_a_server_that_tiny_regions_take_over_the_most_gives_them_away() -> None:
    """They are less than 5 % of the mean, but without them its large region is all that it has too much."""
    stage = Stage(4)
    stage.region("s1", 124.7)
    tiny = {stage.region("s1", 0.4).info.region_id for _ in range(4)}
    for n in range(30 * 3):
        stage.region(f"s{2 + n % 3}", 3.04)
    assert 1.25 < stage.current.servers["s1"].load / (stage.current.load / 4) < 1.27
    given = preferred(stage.made())
    assert given
    assert set(given) <= tiny
    left = stage.current.servers["s1"].load - 0.4 * len(given)
    assert left / (stage.current.load / 4) <= 1.25


def test_another_server_makes_room_for_a_large_region() -> None:
    """The two large ones fit nowhere as it is: every other server has nearly the mean."""
    stage = Stage(4)
    stage.region("s1", 75)
    stage.region("s1", 65)
    for n in range(3):
        for _ in range(88):
            stage.region(f"s{2 + n}", 1.0)
    made = preferred(stage.made())
    after = {name: server.load for name, server in stage.current.servers.items()}
    for region, server in made.items():
        place = stage.current.places[region]
        after[str(place.server)] -= place.load
        after[server] += place.load
    assert any(stage.current.places[region].load > 60 for region in made)
    assert max(after.values()) <= 1.2 * sum(after.values()) / 4


def test_a_region_that_is_too_much_for_any_server_goes_where_little_was_moved_lately() -> None:
    """All else leaves its server then, and what was moved lately would do so 5 minutes later."""
    stage = Stage(4)
    large = [stage.region("s1", 300), stage.region("s1", 290)]
    for _ in range(30):
        lately = stage.region("s2", 3.0)
        lately.stays_until_ms = NOW_MS - 1_000 + SETTLED_MS
        stage.region("s3", 3.1)
        stage.region("s4", 4.0)
    made = preferred(stage.made())
    assert {made.get(place.info.region_id) for place in large} == {None, "s3"}


def test_a_region_that_leaves_room_for_others_goes_where_the_least_load_is() -> None:
    stage = Stage(4)
    for _ in range(4):
        stage.region("s1", 50)
    for _ in range(30):
        stage.region("s2", 3.0).stays_until_ms = NOW_MS - 1_000 + SETTLED_MS
        stage.region("s3", 3.1)
        stage.region("s4", 4.0)
    assert set(preferred(stage.made()).values()) == {"s2"}


# --- loads ---------------------------------------------------------------------------------------


def test_the_score_of_a_region() -> None:
    assert score(RegionRates(2, 0, 0, 0, 0, 0)) == 1
    assert score(RegionRates(2, 10, 20, 30, 200 * MIB, 0)) == 1 + 10 + 40 + 60 + 2


def rated(stage: Stage, place: Place, load: float, times: int, every_ms: int = 5_000) -> float:
    for _ in range(times):
        stage.current.rate(place, load, max(0, place.measured.rated_ms) + every_ms)
    return place.load


def test_an_average_is_over_a_minute_however_often_a_load_is_reported() -> None:
    for every_ms in (1_000, 5_000, 60_000):
        stage = Stage()
        place = stage.region("s1")
        assert rated(stage, place, 10, 1) == 10, "the first one counts alone"
        assert rated(stage, place, 10, 7 * 60_000 // every_ms, every_ms) == pytest.approx(10)
        assert rated(stage, place, 100, 60_000 // every_ms, every_ms) == pytest.approx(100)
    assert rated(stage, place, 1, 6) == pytest.approx(100 - 99 / 2), "half a minute"


def test_after_two_minutes_an_average_knows_nothing_of_what_was_before() -> None:
    stage = Stage()
    place = stage.region("s1")
    rated(stage, place, 30_000, 26)
    assert rated(stage, place, 7, 22) > 7
    assert rated(stage, place, 7, 1) == 7
    assert stage.current.servers["s1"].load == pytest.approx(7)


def test_a_clock_that_goes_back_stands_still() -> None:
    stage = Stage()
    place = stage.region("s1")
    rated(stage, place, 10, 30)
    stage.current.rate(place, 1_000, place.measured.rated_ms - 40_000)
    assert place.load == pytest.approx(10)
