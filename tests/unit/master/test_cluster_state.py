"""Single ways through the state of a cluster, by hand; any order of events: tests/model/test_cluster_state_model.py."""

from __future__ import annotations

from random import Random

import pytest

from columnar.master.catalogue_rows import OperatorSettings
from columnar.master.cluster_state import ClusterState
from columnar.master.instructions import (
    Answer,
    AssignRegion,
    Close,
    DrainServer,
    MergeRegions,
    MoveRegion,
    NotifyServer,
    Open,
    Output,
    SplitRegion,
    UnassignRegion,
    Write,
)
from columnar.master.placement_records import AVOIDED_MS, BENCHED_MS, OPENING_TRIES, RETRY_PAUSES_MS, Phase
from columnar.master.planner import OPENING_WAITS_MS
from columnar.model.owner import Incarnation, Owner, OwnershipPeriod
from columnar.model.region_info import RegionInfo

S1, S2, S3 = Incarnation("s1", 2), Incarnation("s2", 2), Incarnation("s3", 2)
DEAD = Incarnation("s1", 1)
INFO = RegionInfo("t", 2)


def begun(*servers: Incarnation) -> ClusterState:
    """One region, which a dead incarnation owned at epoch 8, with writes in its log; its next row is being written."""
    state = ClusterState([(INFO, Owner(DEAD, 8))], {}, OperatorSettings(), Random(1))
    state.fenced(DEAD, (("1", 64),), {(2, 8)}, 0)
    for server in servers:
        state.joined(server, 0)
        state.hello(server, {}, {}, 0)
    return state


def of(kind: type, outputs: list[Output]) -> list:
    return [output for output in outputs if isinstance(output, kind)]


def opened(state: ClusterState) -> ClusterState:
    (write,) = of(Write, state.begin_planning(0))
    (tell,) = of(NotifyServer, state.row_written(write.number, 10))
    state.opened(tell.server, 2, tell.request.owner.epoch, 20)
    (write,) = of(Write, state.tick(1_100))
    state.row_written(write.number, 1_200)
    return state


def test_the_remark_that_no_server_is_up_ends_with_the_hello_of_the_first() -> None:
    state = begun()
    state.begin_planning(0)
    assert state.plans.remarks == ("no server is up: 1 regions have no owner",)
    state.joined(S1, 1_000)
    assert state.plans.remarks == ("no server is up: 1 regions have no owner",)
    state.hello(S1, {}, {}, 1_100)
    assert state.plans.remarks == ()


def test_the_remark_that_no_server_is_up_stays_while_the_catalogue_cannot_be_written() -> None:
    state = begun(S1)
    (write,) = of(Write, state.begin_planning(0))
    state.fenced(S1, (), set(), 10)
    state.not_written(write.number, 20)
    assert state.plans.remarks == ("no server is up: 1 regions have no owner",)


def test_a_row_is_on_disk_before_its_owner_is_told() -> None:
    state = begun(S1)
    outputs = state.begin_planning(0)
    assert of(NotifyServer, outputs) == []
    (write,) = of(Write, outputs)
    assert write.owners == ((INFO, Owner(S1, 9, 0, None, (OwnershipPeriod(DEAD, 8),))),)
    assert write.sealed == ((DEAD, (("1", 64),)),)
    (tell,) = of(NotifyServer, state.row_written(write.number, 10))
    assert tell.server == S1
    assert isinstance(tell.request, Open)


def test_a_source_that_is_behind_is_on_disk_before_the_next_owner_is_told() -> None:
    """Else the next master would not know of its log."""
    state = opened(begun(S1, S2))
    owner = state.current.places[2].owner
    assert owner is not None
    target = S2 if owner.server == S1 else S1
    (write,) = of(Write, state.add_request(1, MoveRegion(2, target.name), 2_000))
    (tell,) = of(NotifyServer, state.row_written(write.number, 2_010))
    assert tell == NotifyServer(owner.server, Close(2, owner.epoch, "asked for"))
    outputs = state.closed(owner.server, 2, owner.epoch, 2_020, is_behind=True)
    assert of(NotifyServer, outputs) == []
    (write,) = of(Write, outputs)
    assert write.owners[0][1].unreplayed_logs == (owner.ownership_period,)
    (tell,) = of(NotifyServer, state.row_written(write.number, 2_030))
    assert tell.request.owner.unreplayed_logs == (owner.ownership_period,)
    assert of(Answer, state.opened(target, 2, tell.request.owner.epoch, 2_040)) == [Answer(1, None)]


def test_a_seal_that_was_not_written_is_written_again() -> None:
    state = begun(S1)
    (write,) = of(Write, state.begin_planning(0))
    assert of(Write, state.not_written(write.number, 10)) == []
    (again,) = of(Write, state.tick(2_000))
    assert again.sealed == write.sealed
    assert again.owners == write.owners


def test_a_wish_that_was_not_written_is_taken_back() -> None:
    state = opened(begun(S1, S2))
    (write,) = of(Write, state.add_request(1, DrainServer("s2"), 2_000))
    assert write.operator_settings == OperatorSettings(frozenset({"s2"}))
    assert of(Answer, state.not_written(write.number, 2_010)) == [Answer(1, REFUSED)]
    assert state.desired.operator_settings == OperatorSettings()


def test_a_region_is_tried_a_few_times_at_different_servers_with_growing_waits() -> None:
    state = begun(S1, S2, S3)
    outputs, now_ms, tried, waits = state.begin_planning(0), 0, [], []
    for _ in range(OPENING_TRIES):
        began_ms = now_ms
        while not of(NotifyServer, outputs):
            outputs = [one for write in of(Write, outputs) for one in state.row_written(write.number, now_ms)]
            if not outputs:
                now_ms += 100
                outputs = state.tick(now_ms)
        (tell,) = of(NotifyServer, outputs)
        tried.append(tell.server.name)
        waits.append(now_ms - began_ms)
        outputs = state.failed(tell.server, 2, tell.request.owner.epoch, "no", False, now_ms)
        state.check_invariants()
    place = state.current.places[2]
    assert (place.phase, place.attempts.failure, list(state.current.failed)) == (Phase.FAILED_OPEN, "no", [2])
    assert set(tried[:3]) == {"s1", "s2", "s3"}
    assert waits == [0, *OPENING_WAITS_MS]
    for later_ms in (100, RETRY_PAUSES_MS[0] - 1):
        assert not of(Write, state.tick(now_ms + later_ms)), "a pause, or a person who assigns it, comes first"
    now_ms += RETRY_PAUSES_MS[0] - 1
    (write,) = of(Write, state.add_request(1, AssignRegion(2), now_ms))
    (tell,) = of(NotifyServer, state.row_written(write.number, now_ms))
    assert tell.request.is_doubted
    assert of(Answer, state.opened(tell.server, 2, tell.request.owner.epoch, now_ms)) == [Answer(1, None)]
    assert not state.current.failed


def test_damaged_data_is_not_tried_elsewhere() -> None:
    state = begun(S1, S2)
    (write,) = of(Write, state.begin_planning(0))
    (tell,) = of(NotifyServer, state.row_written(write.number, 10))
    state.failed(tell.server, 2, tell.request.owner.epoch, "a block is damaged", True, 20)
    assert state.current.places[2].phase is Phase.FAILED_OPEN


def owner_and_other(state: ClusterState) -> tuple[Owner, Incarnation]:
    owner = state.current.places[2].owner
    assert owner is not None
    return owner, S2 if owner.server == S1 else S1


def test_an_owner_that_cannot_open_its_region_gives_it_up_before_another_tries() -> None:
    state = opened(begun(S1, S2))
    owner, other = owner_and_other(state)
    outputs = state.unopened(owner.server, 2, owner.epoch, "no file", False, 2_000)
    assert outputs[0] == NotifyServer(
        owner.server, Close(2, owner.epoch, f"{owner.server.name} cannot open it: no file")
    )
    assert not of(Write, outputs)
    assert not of(NotifyServer, state.unopened(owner.server, 2, owner.epoch, "no file", False, 2_001)), "it was heard"
    (write,) = of(Write, state.closed(owner.server, 2, owner.epoch, 2_010))
    (tell,) = of(NotifyServer, state.row_written(write.number, 2_020))
    assert tell.server == other
    assert tell.request == Open(2, tell.request.owner, f"could not be opened by {owner.server.name}: no file", True)
    state.opened(other, 2, tell.request.owner.epoch, 2_030)
    place = state.current.places[2]
    assert (place.phase, place.attempts.tried, place.attempts.is_doubted) == (Phase.OPEN, (), False)
    assert place.ideal == other.name, "it does not go home to a server that cannot open it"
    state.check_invariants()


def test_an_owner_that_finds_its_region_damaged_gives_it_up_for_good() -> None:
    state = opened(begun(S1, S2))
    owner, _ = owner_and_other(state)
    state.unopened(owner.server, 2, owner.epoch, "a block is damaged", True, 2_000)
    assert not of(Write, state.closed(owner.server, 2, owner.epoch, 2_010))
    assert state.current.places[2].phase is Phase.FAILED_OPEN
    assert not of(NotifyServer, state.tick(100_000))


def test_what_was_said_of_an_earlier_epoch_or_by_another_server_changes_nothing() -> None:
    state = opened(begun(S1, S2))
    owner, other = owner_and_other(state)
    for server, epoch in ((owner.server, owner.epoch - 1), (other, owner.epoch)):
        assert not of(NotifyServer, state.unopened(server, 2, epoch, "no file", False, 2_000))
    assert state.current.places[2].phase is Phase.OPEN


def test_a_region_that_a_report_overtakes_is_given_up_all_the_same() -> None:
    """The report of a failed opening may come before the answer that the region may be served."""
    state = begun(S1)
    (write,) = of(Write, state.begin_planning(0))
    (tell,) = of(NotifyServer, state.row_written(write.number, 10))
    (close,) = of(NotifyServer, state.unopened(S1, 2, tell.request.owner.epoch, "no file", False, 20))
    assert isinstance(close.request, Close)
    state.opened(S1, 2, tell.request.owner.epoch, 21)
    assert state.current.places[2].phase is Phase.LEAVING


def test_a_report_that_comes_amid_a_split_is_taken_when_it_comes_again() -> None:
    state = opened(begun(S1, S2))
    owner, _ = owner_and_other(state)
    state.add_request(1, SplitRegion(2, b"m"), 2_000)
    assert state.current.places[2].phase is Phase.CHANGING
    assert not of(NotifyServer, state.unopened(owner.server, 2, owner.epoch, "no file", False, 2_010)), (
        "the split goes on"
    )
    state.tables.change_failed([2], "no file", 2_020)
    (tell,) = of(NotifyServer, state.unopened(owner.server, 2, owner.epoch, "no file", False, 12_010))
    assert isinstance(tell.request, Close)


def test_tries_begin_anew_when_the_region_was_open() -> None:
    state = begun(S1, S2)
    (write,) = of(Write, state.begin_planning(0))
    (tell,) = of(NotifyServer, state.row_written(write.number, 10))
    (write,) = of(Write, state.failed(tell.server, 2, tell.request.owner.epoch, "no", False, 20))
    (tell,) = of(NotifyServer, state.row_written(write.number, 30))
    state.opened(tell.server, 2, tell.request.owner.epoch, 40)
    assert state.current.places[2].attempts.tried == ()


def test_a_death_counts_and_a_stop_that_was_asked_for_does_not() -> None:
    state = opened(begun(S1, S2))
    state.fenced(S2, (), (), 2_000, asked=True)
    assert state.current.servers["s2"].failures.deaths_ms == ()
    state.joined(S3, 2_000)
    state.hello(S3, {}, {}, 2_500)
    state.fenced(S3, (), (), 3_000)
    assert state.current.servers["s3"].failures.deaths_ms == (3_000,)


def test_starts_that_fail_do_not_keep_regions_from_the_one_that_succeeds() -> None:
    """As while the data folder is not mounted: such a process had no region that its death could have moved."""
    state = opened(begun(S1, S2))
    state.fenced(S2, (), (), 2_000)
    for number in range(10, 30):
        state.joined(Incarnation("s2", number), 2_000 + number)
        state.silent(Incarnation("s2", number), "it ended with status 2", 2_000 + number)
        state.fenced(Incarnation("s2", number), (), (), 2_000 + number)
    found = state.current.servers["s2"]
    assert found.failures.deaths_ms == (2_000,)
    assert found.failures.shunned_until_ms < 2_000


def test_a_server_that_could_not_open_several_regions_is_avoided_until_it_starts_again() -> None:
    state = begun(S1, S2)
    server = state.current.servers["s1"]
    for region in (2, 2, 3, 4):
        assert server.failures.shunned_until_ms < 1_000
        server.failures.could_not_open(region, 1_000)
    assert server.failures.shunned_until_ms == 1_000 + AVOIDED_MS
    assert "could not open 3 regions" in server.failures.why_shunned(1_001)
    (write,) = of(Write, state.begin_planning(1_001))
    assert write.owners[0][1].server == S2
    state.joined(Incarnation("s1", 3), 1_002)
    assert server.failures.shunned_until_ms < 1_000, "it is another process"


# --- requests that nobody can carry out ----------------------------------------------------------


def answers(outputs: list[Output]) -> list[str]:
    return [one.error or "done" for one in of(Answer, outputs)]


def moved_anywhere(state: ClusterState, now_ms: int = 2_000) -> list[str]:
    return answers(state.add_request(7, MoveRegion(2, None), now_ms))


def test_a_move_to_any_server_says_at_once_why_there_is_none() -> None:
    assert moved_anywhere(opened(begun(S1))) == ["the store has no other server"]
    state = opened(begun(S1, S2))
    _, other = owner_and_other(state)
    state.current.servers[other.name].failures.benched_until_ms = 2_000 + BENCHED_MS[0]
    (said,) = moved_anywhere(state)
    assert said.startswith(f"no other server may take the region now: {other.name} is to be left alone for 60 s more")
    assert not moved_anywhere(state, 2_000 + BENCHED_MS[0]), "it moves"
    state = opened(begun(S1, S2))
    (write,) = of(Write, state.add_request(1, DrainServer(owner_and_other(state)[1].name), 1_500))
    state.row_written(write.number, 1_600)
    (said,) = moved_anywhere(state)
    assert "is drained ('columnar undrain s" in said
    state = opened(begun(S1, S2))
    state.fenced(owner_and_other(state)[1], (), (), 1_500, asked=True)
    assert moved_anywhere(state)[0].endswith("is down")


def test_a_move_that_waits_hears_when_the_last_other_server_is_gone() -> None:
    state = opened(begun(S1, S2))
    state.tables.pause_table_transitions("t", 1_900)
    assert moved_anywhere(state) == []
    _, other = owner_and_other(state)
    assert answers(state.fenced(other, (), (), 2_500)) == [
        f"no other server may take the region now: {other.name} is down"
    ]


def test_a_region_that_could_not_be_opened_is_not_split_nor_moved() -> None:
    state = opened(begun(S1, S2))
    owner, _ = owner_and_other(state)
    state.tables.pause_table_transitions("t", 1_900)
    assert not answers(state.add_request(6, SplitRegion(2), 1_950))
    state.unopened(owner.server, 2, owner.epoch, "a block is damaged", True, 2_000)
    (said,) = answers(state.closed(owner.server, 2, owner.epoch, 2_010))
    assert said == f"region {INFO.encoded} is not open; 'columnar assign {INFO.encoded}' opens it"
    assert answers(state.add_request(8, SplitRegion(2), 2_020)) == [said]
    assert moved_anywhere(state) == [said]


REFUSED = "the catalogue refused the write"


def unassigned(state: ClusterState) -> ClusterState:
    """The region is closed for people, and that is on disk."""
    owner, _ = owner_and_other(state)
    (write,) = of(Write, state.add_request(90, UnassignRegion(2), 1_300))
    outputs = state.closed(owner.server, 2, owner.epoch, 1_310) + state.row_written(write.number, 1_320)
    assert answers(outputs) == ["done"]
    assert state.current.places[2].phase is Phase.OFFLINE
    return state


def test_an_assign_whose_write_fails_is_answered_and_the_region_stays_closed() -> None:
    state = unassigned(opened(begun(S1, S2)))
    (write,) = of(Write, state.add_request(1, AssignRegion(2), 2_000))
    assert write.owners, "the wish and the next owner in one"
    assert answers(state.not_written(write.number, 2_010)) == [REFUSED]
    assert (state.current.places[2].phase, state.desired.requests) == (Phase.OFFLINE, {})
    assert state.desired.operator_settings.unassigned == {2}
    state.check_invariants()
    (write,) = of(Write, state.add_request(2, AssignRegion(2), 4_000))
    (tell,) = of(NotifyServer, state.row_written(write.number, 4_010))
    assert answers(state.opened(tell.server, 2, tell.request.owner.epoch, 4_020)) == ["done"]


def test_an_assign_that_waits_for_a_server_closes_the_region_again_when_its_wish_is_not_written() -> None:
    state = unassigned(opened(begun(S1, S2)))
    for server in (S1, S2):
        state.fenced(server, (), (), 1_900)
    (write,) = of(Write, state.add_request(1, AssignRegion(2), 2_000))
    assert state.current.places[2].phase is Phase.HOMELESS
    assert answers(state.not_written(write.number, 2_010)) == [REFUSED]
    state.joined(S3, 4_000)
    state.hello(S3, {}, {}, 4_000)
    assert state.current.places[2].phase is Phase.OFFLINE
    state.check_invariants()


def test_an_unassign_is_answered_when_it_will_hold_over_a_restart() -> None:
    state = opened(begun(S1, S2))
    owner, _ = owner_and_other(state)
    (write,) = of(Write, state.add_request(1, UnassignRegion(2), 2_000))
    assert answers(state.closed(owner.server, 2, owner.epoch, 2_010)) == [], "its wish is not on disk"
    assert answers(state.row_written(write.number, 2_020)) == ["done"]


def test_an_unassign_that_follows_an_assign_waits_for_the_writes_of_both() -> None:
    """The disk says unassigned, and would not any more if only the first of them were written."""
    state = unassigned(opened(begun(S1, S2)))
    for server in (S1, S2):
        state.fenced(server, (), (), 1_900)
    (first,) = of(Write, state.add_request(1, AssignRegion(2), 2_000))
    outputs = state.add_request(2, UnassignRegion(2), 2_001)
    (second,) = of(Write, outputs)
    assert answers(outputs) == [INSTEAD]
    assert answers(state.row_written(first.number, 2_010)) == []
    assert answers(state.not_written(second.number, 2_020)) == [REFUSED]
    assert state.current.places[2].phase is Phase.HOMELESS
    state.check_invariants()


@pytest.mark.parametrize("is_closed_first", [True, False])
def test_a_region_whose_unassigning_was_not_written_is_opened_again_once(is_closed_first: bool) -> None:
    state = opened(begun(S1, S2))
    owner, _ = owner_and_other(state)
    (write,) = of(Write, state.add_request(1, UnassignRegion(2), 2_000))
    if is_closed_first:
        state.closed(owner.server, 2, owner.epoch, 2_005)
    assert answers(state.not_written(write.number, 2_010)) == [REFUSED]
    if not is_closed_first:
        state.closed(owner.server, 2, owner.epoch, 2_020)
    (write,) = of(Write, state.tick(4_000))
    (tell,) = of(NotifyServer, state.row_written(write.number, 4_010))
    outputs = state.opened(tell.server, 2, tell.request.owner.epoch, 4_020) + state.tick(5_000)
    assert of(NotifyServer, outputs) == [], "nobody wants it closed any more"
    assert state.current.places[2].phase is Phase.OPEN
    state.check_invariants()


def test_a_wish_that_waits_behind_one_that_is_not_written_is_refused_with_it() -> None:
    state = opened(begun(S1, S2))
    (first,) = of(Write, state.add_request(1, MoveRegion(2, owner_and_other(state)[1].name), 2_000))
    (second,) = of(Write, state.add_request(2, DrainServer("s1"), 2_005))
    state.not_written(first.number, 2_010)
    assert not of(Write, state.add_request(3, DrainServer("s2"), 2_015)), "nothing is written for a second"
    assert of(Answer, state.not_written(second.number, 2_020)) == [Answer(2, REFUSED), Answer(3, REFUSED)]
    assert state.desired.operator_settings == OperatorSettings()


LEFT, RIGHT = RegionInfo("t", 2, b"", b"m"), RegionInfo("t", 3, b"m")
INSTEAD = "another request for the region came meanwhile"


def waiting(wishes: OperatorSettings) -> ClusterState:
    """Two regions and two servers; nothing is planned yet."""
    state = ClusterState([(LEFT, None), (RIGHT, None)], {}, wishes, Random(1))
    for server in (S1, S2):
        state.joined(server, 0)
        state.hello(server, {}, {}, 0)
    return state


def test_of_a_merge_and_a_move_of_its_right_region_the_newer_one_counts() -> None:
    """The merge brings that region to its neighbour's server: both would move it to and fro for ever."""
    state = waiting(OperatorSettings())
    assert of(Answer, state.add_request(1, MergeRegions(2, 3), 10)) == []
    assert of(Answer, state.add_request(2, MoveRegion(3, "s2"), 20)) == [Answer(1, INSTEAD)]
    assert of(Answer, state.add_request(3, MergeRegions(2, 3), 30)) == [Answer(2, INSTEAD)]
    assert of(Answer, state.add_request(4, MoveRegion(2, "s2"), 40)) == [], "the right one follows"
    state.current.set_phase(state.current.places[3], Phase.CHANGING, 50)
    assert of(Answer, state.add_request(5, MoveRegion(3, "s2"), 60)) == [], "it has begun"


def test_a_region_that_is_closed_for_people_is_neither_split_nor_merged() -> None:
    state = waiting(OperatorSettings(unassigned=frozenset({3})))
    closed = f"region {RIGHT.encoded} is not open; 'columnar assign {RIGHT.encoded}' opens it"
    assert of(Answer, state.add_request(1, MergeRegions(2, 3), 10)) == [Answer(1, closed)]
    assert of(Answer, state.add_request(2, SplitRegion(3, b"x"), 20)) == [Answer(2, closed)]
    assert of(Answer, state.add_request(3, SplitRegion(2, b"c"), 30)) == []
    refused = Answer(3, closed.replace(RIGHT.encoded, LEFT.encoded))
    assert of(Answer, state.add_request(4, UnassignRegion(2), 40)) == [refused]
