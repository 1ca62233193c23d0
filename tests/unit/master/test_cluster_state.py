"""Single ways through the state of a cluster, by hand; any order of events: tests/model/test_cluster_state_model.py."""

from __future__ import annotations

from random import Random

from columnar.master.cluster_state import ClusterState
from columnar.master.instructions import Answer, Close, DrainServer, MoveRegion, Open, Output, Tell, Write
from columnar.master.placement import Phase
from columnar.master.wishes import Wishes
from columnar.model.owner import Incarnation, Owner, Tenure
from columnar.model.region_info import RegionInfo

S1, S2, S3 = Incarnation("s1", 2), Incarnation("s2", 2), Incarnation("s3", 2)
DEAD = Incarnation("s1", 1)
INFO = RegionInfo("t", 2)


def begun(*servers: Incarnation) -> ClusterState:
    """One region, which a dead incarnation owned at epoch 8, with writes in its log; its next row is being written."""
    state = ClusterState([(INFO, Owner(DEAD, 8))], {}, Wishes(), Random(1))
    state.fenced(DEAD, (("1", 64),), {(2, 8)}, 0)
    for server in servers:
        state.joined(server, 0)
        state.hello(server, {}, {}, 0)
    return state


def of(kind: type, outputs: list[Output]) -> list:
    return [output for output in outputs if isinstance(output, kind)]


def opened(state: ClusterState) -> ClusterState:
    (write,) = of(Write, state.begin(0))
    (tell,) = of(Tell, state.written(write.number, 10))
    state.opened(tell.server, 2, tell.ask.owner.epoch, 20)
    (write,) = of(Write, state.tick(1_100))
    state.written(write.number, 1_200)
    return state


def test_a_row_is_on_disk_before_its_owner_is_told() -> None:
    state = begun(S1)
    outputs = state.begin(0)
    assert of(Tell, outputs) == []
    (write,) = of(Write, outputs)
    assert write.owners == ((INFO, Owner(S1, 9, 0, None, (Tenure(DEAD, 8),))),)
    assert write.sealed == ((DEAD, (("1", 64),)),)
    (tell,) = of(Tell, state.written(write.number, 10))
    assert tell.server == S1
    assert isinstance(tell.ask, Open)


def test_a_source_that_is_behind_is_on_disk_before_the_next_owner_is_told() -> None:
    """Else the next master would not know of its log."""
    state = opened(begun(S1, S2))
    owner = state.current.places[2].owner
    assert owner is not None
    target = S2 if owner.server == S1 else S1
    (write,) = of(Write, state.asked(1, MoveRegion(2, target.name), 2_000))
    (tell,) = of(Tell, state.written(write.number, 2_010))
    assert tell == Tell(owner.server, Close(2, owner.epoch, "asked for"))
    outputs = state.closed(owner.server, 2, owner.epoch, 2_020, is_behind=True)
    assert of(Tell, outputs) == []
    (write,) = of(Write, outputs)
    assert write.owners[0][1].behind == (owner.tenure,)
    (tell,) = of(Tell, state.written(write.number, 2_030))
    assert tell.ask.owner.behind == (owner.tenure,)
    assert of(Answer, state.opened(target, 2, tell.ask.owner.epoch, 2_040)) == [Answer(1, None)]


def test_a_seal_that_was_not_written_is_written_again() -> None:
    state = begun(S1)
    (write,) = of(Write, state.begin(0))
    assert of(Write, state.not_written(write.number, 10)) == []
    (again,) = of(Write, state.tick(2_000))
    assert again.sealed == write.sealed
    assert again.owners == write.owners


def test_a_wish_that_was_not_written_is_taken_back() -> None:
    state = opened(begun(S1, S2))
    (write,) = of(Write, state.asked(1, DrainServer("s2"), 2_000))
    assert write.wishes == Wishes(frozenset({"s2"}))
    assert of(Answer, state.not_written(write.number, 2_010)) == [Answer(1, "the catalogue refused the write")]
    assert state.desired.wishes == Wishes()


def test_three_servers_that_cannot_open_a_region_are_enough() -> None:
    state = begun(S1, S2, S3)
    outputs = state.begin(0)
    for n in range(3):
        (write,) = of(Write, outputs)
        (tell,) = of(Tell, state.written(write.number, 10 * n))
        outputs = state.failed(tell.server, 2, tell.ask.owner.epoch, "no", False, 10 * n + 5)
    assert state.current.places[2].phase is Phase.FAILED_OPEN
    assert set(state.current.places[2].tried) == {"s1", "s2", "s3"}


def test_damaged_data_is_not_tried_elsewhere() -> None:
    state = begun(S1, S2)
    (write,) = of(Write, state.begin(0))
    (tell,) = of(Tell, state.written(write.number, 10))
    state.failed(tell.server, 2, tell.ask.owner.epoch, "a block is damaged", True, 20)
    assert state.current.places[2].phase is Phase.FAILED_OPEN


def test_tries_begin_anew_when_the_region_was_open() -> None:
    state = begun(S1, S2)
    (write,) = of(Write, state.begin(0))
    (tell,) = of(Tell, state.written(write.number, 10))
    (write,) = of(Write, state.failed(tell.server, 2, tell.ask.owner.epoch, "no", False, 20))
    (tell,) = of(Tell, state.written(write.number, 30))
    state.opened(tell.server, 2, tell.ask.owner.epoch, 40)
    assert state.current.places[2].tried == ()


def test_a_death_counts_and_a_stop_that_was_asked_for_does_not() -> None:
    state = opened(begun(S1, S2))
    state.fenced(S2, (), (), 2_000, asked=True)
    assert state.current.servers["s2"].deaths_ms == ()
    state.joined(S3, 2_000)
    state.fenced(S3, (), (), 3_000)
    assert state.current.servers["s3"].deaths_ms == (3_000,)
