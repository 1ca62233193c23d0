"""A master that begins while servers live: what each region becomes, and what is asked of whom."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from columnar.master.catalogue_rows import OperatorSettings
from columnar.master.cluster_state import ClusterState
from columnar.master.instructions import AssignRegion, Close, Fence, NotifyServer, Open, Output, Renumber, Write
from columnar.master.placement_records import Phase
from columnar.model.owner import Incarnation, Owner, OwnershipPeriod
from columnar.model.region_info import RegionInfo

A, B, C = Incarnation("s1", 4), Incarnation("s2", 5), Incarnation("s3", 6)
DEAD = Incarnation("s9", 1)
INFO = RegionInfo("t", 2)


class Start:
    """A new master with the row ``owner`` of region 2; servers A, B and C are started, and say what they have."""

    def __init__(self, owner: Owner, *, is_wanted: bool = True) -> None:
        unassigned = frozenset[int]() if is_wanted else frozenset({2})
        self.state = ClusterState([(INFO, owner)], {}, OperatorSettings(unassigned=unassigned), Random(1))
        for server in (A, B, C):
            self.state.joined(server, 0)
        self.said: set[Incarnation] = set()

    def has(
        self, server: Incarnation, *, serves: int = 0, leaves: int = 0, closed: tuple[int, bool] | None = None
    ) -> Start:
        serving, leaving = {2: serves} if serves else {}, {2: leaves} if leaves else {}
        outputs = self.state.hello(server, serving, {2: closed} if closed else {}, 0, leaving)
        assert not [one for one in outputs if isinstance(one, NotifyServer | Write | Fence)], "nothing is planned yet"
        self.said.add(server)
        return self

    def ended(self, server: Incarnation, *, named: tuple[int, ...] = (), is_by_time: bool = False) -> Start:
        self.state.fenced(server, (("1", 64),), {(2, epoch) for epoch in named}, 0, is_by_time=is_by_time)
        self.said.add(server)
        return self

    def begin(self) -> list[Output]:
        for server in {A, B, C} - self.said:
            self.state.hello(server, {}, {}, 0)
        outputs = self.state.begin_planning(0)
        self.state.check_invariants()
        return outputs

    @property
    def phase(self) -> Phase:
        return self.state.current.places[2].phase

    @property
    def row(self) -> Owner | None:
        return self.state.ledger.rows[2]


def asked(outputs: list[Output]) -> list[tuple[Incarnation, object]]:
    return [(one.server, one.request) for one in outputs if isinstance(one, NotifyServer)]


def written(outputs: list[Output]) -> list[Owner]:
    return [row for one in outputs if isinstance(one, Write) for _, row in one.owners]


def on_disk(start: Start, outputs: list[Output]) -> list[Output]:
    (write,) = [one for one in outputs if isinstance(one, Write)]
    found = start.state.row_written(write.number, 10)
    start.state.check_invariants()
    return found


# --- regions that are served ---------------------------------------------------------------------------


def test_a_served_region_stays_as_it_is_without_a_message() -> None:
    start = Start(Owner(A, 9)).has(A, serves=9)
    outputs = start.begin()
    assert (asked(outputs), written(outputs), start.phase) == ([], [], Phase.OPEN)
    assert start.state.current.places[2].server == "s1"


def test_a_served_region_gets_its_settled_row_with_the_next_write() -> None:
    start = Start(Owner(B, 9, 1, OwnershipPeriod(A, 8), (OwnershipPeriod(DEAD, 7),))).ended(DEAD, named=(7,))
    start.has(A, closed=(8, False)).has(B, serves=9)
    outputs = start.begin()
    assert (asked(outputs), written(outputs), start.phase) == ([], [], Phase.OPEN)
    assert written(start.state.tick(1_000)) == [Owner(B, 9, 1)]


def test_a_served_region_proves_the_close_of_a_source_that_ended_by_time() -> None:
    start = Start(Owner(B, 9, 0, OwnershipPeriod(A, 8))).ended(A, named=(8,), is_by_time=True).has(B, serves=9)
    assert asked(start.begin()) == []
    assert (start.phase, start.row) == (Phase.OPEN, Owner(B, 9))


def test_the_end_of_a_server_that_served_gives_its_region_to_the_next() -> None:
    start = Start(Owner(A, 9)).has(A, serves=9)
    start.begin()
    (row,) = written(start.state.fenced(A, (("1", 64),), {(2, 9)}, 20, is_by_time=True))
    assert (row.epoch, row.generation, row.unreplayed_logs) == (10, 1, (OwnershipPeriod(A, 9),))


def test_a_server_that_ends_between_its_hello_and_the_start_has_nothing() -> None:
    start = Start(Owner(A, 9)).has(A, serves=9).ended(A)
    (row,) = written(start.begin())
    assert (row.epoch, row.generation) == (10, 0)
    assert row.server in (B, C)


def test_the_last_hello_counts() -> None:
    start = Start(Owner(A, 9)).has(A, serves=9).has(A, closed=(9, True))
    (row,) = written(start.begin())
    assert row.unreplayed_logs == (OwnershipPeriod(A, 9),), "its close could not sync"


# --- what was under way --------------------------------------------------------------------------------


def test_an_owner_that_does_not_serve_yet_is_asked_to_open_again() -> None:
    start = Start(Owner(A, 9))
    ((server, request),) = asked(start.begin())
    assert (server, start.phase) == (A, Phase.OPENING)
    assert isinstance(request, Open)
    start.state.opened(A, 2, 9, 20)
    assert start.phase is Phase.OPEN


def test_an_owner_that_serves_at_the_epoch_before_is_renumbered() -> None:
    start = Start(Owner(A, 9, 0, None, (OwnershipPeriod(A, 7),))).has(A, serves=7)
    ((server, request),) = asked(start.begin())
    assert server == A
    assert isinstance(request, Renumber)


def test_a_source_that_serves_is_asked_to_close() -> None:
    start = Start(Owner(B, 9, 0, OwnershipPeriod(A, 8))).has(A, serves=8)
    assert asked(start.begin()) == [(A, Close(2, 8, ""))]
    ((server, _),) = asked(start.state.closed(A, 2, 8, 20))
    assert server == B


def test_a_source_that_has_closed_is_not_waited_for() -> None:
    start = Start(Owner(B, 9, 0, OwnershipPeriod(A, 8))).has(A, closed=(8, False))
    ((server, _),) = asked(start.begin())
    assert (server, start.phase) == (B, Phase.OPENING)


def test_a_source_whose_close_could_not_sync_is_on_disk_before_the_owner_is_asked() -> None:
    start = Start(Owner(B, 9, 0, OwnershipPeriod(A, 8))).has(A, closed=(8, True))
    outputs = start.begin()
    assert asked(outputs) == []
    assert written(outputs) == [Owner(B, 9, 0, None, (OwnershipPeriod(A, 8),))]
    assert [server for server, _ in asked(on_disk(start, outputs))] == [B]


def test_a_source_that_ended_by_time_raises_epoch_and_generation_before_the_owner_is_asked() -> None:
    start = Start(Owner(B, 9, 3, OwnershipPeriod(A, 8))).ended(A, named=(8,), is_by_time=True)
    outputs = start.begin()
    assert asked(outputs) == []
    row = Owner(B, 10, 4, OwnershipPeriod(B, 9), (OwnershipPeriod(A, 8),))
    assert written(outputs) == [row], "an earlier leader may have had B open the folder of generation 3"
    assert asked(on_disk(start, outputs)) == [(B, Close(2, 9, ""))]
    ((server, request),) = asked(start.state.closed(B, 2, 9, 20))
    assert (server, request.owner) == (B, replace(row, source=None))


def test_an_owner_of_which_nobody_knows_whether_it_opened_is_replayed_at_its_epoch() -> None:
    start = Start(Owner(B, 9, 3, OwnershipPeriod(A, 8))).ended(A, is_by_time=True).ended(B, named=(9,), is_by_time=True)
    (row,) = written(start.begin())
    assert row.unreplayed_logs == (OwnershipPeriod(B, 9),)
    assert (row.epoch, row.generation) == (10, 5)


def test_the_source_serves_on_if_the_owner_has_ended() -> None:
    start = Start(Owner(B, 9, 0, OwnershipPeriod(A, 8))).has(A, serves=8).ended(B, is_by_time=True)
    outputs = start.begin()
    assert written(outputs) == [Owner(A, 10, 0, None, (OwnershipPeriod(A, 8),))]
    ((server, request),) = asked(on_disk(start, outputs))
    assert (server, type(request)) == (A, Renumber)


def test_a_region_that_its_owner_leaves_is_closed_before_the_next_opens() -> None:
    start = Start(Owner(A, 9)).has(A, leaves=9)
    outputs = start.begin()
    assert [(server, type(request)) for server, request in asked(outputs)] == [(A, Close)]
    assert (written(outputs), start.phase) == ([], Phase.LEAVING)
    (row,) = written(start.state.closed(A, 2, 9, 20, is_behind=True))
    assert (row.epoch, row.unreplayed_logs) == (10, (OwnershipPeriod(A, 9),))


def test_an_owner_that_gave_the_region_up_gets_a_successor() -> None:
    start = Start(Owner(B, 9, 0, OwnershipPeriod(A, 8))).has(A, closed=(8, False)).has(B, closed=(9, False))
    (row,) = written(start.begin())
    assert (row.epoch, row.source) == (10, None)


def test_a_region_whose_servers_have_ended_gets_the_next_generation() -> None:
    start = Start(Owner(B, 9, 1, OwnershipPeriod(A, 8))).ended(A, named=(8,), is_by_time=True).ended(B, is_by_time=True)
    (row,) = written(start.begin())
    assert row.server == C
    assert row.generation > 1
    assert row.unreplayed_logs == (OwnershipPeriod(A, 8),)


# --- what an operator wants closed ---------------------------------------------------------------------


def test_an_unassigned_region_is_closed_though_it_is_served() -> None:
    start = Start(Owner(A, 9), is_wanted=False).has(A, serves=9)
    assert [(server, type(request)) for server, request in asked(start.begin())] == [(A, Close)]
    start.state.closed(A, 2, 9, 20)
    assert start.phase is Phase.OFFLINE


def test_an_unassigned_region_that_was_moving_is_not_opened_again() -> None:
    start = Start(Owner(B, 9, 0, OwnershipPeriod(A, 8)), is_wanted=False).has(A, serves=8)
    assert [server for server, _ in asked(start.begin())] == [A]
    assert asked(start.state.closed(A, 2, 8, 20)) == []
    assert start.phase is Phase.OFFLINE
    outputs = start.state.add_request(1, AssignRegion(2), 30)
    start.state.check_invariants()
    assert [row.epoch for row in written(outputs)] == [10]


def test_an_unassigned_region_without_a_living_server_stays_closed() -> None:
    start = Start(Owner(DEAD, 9), is_wanted=False).ended(DEAD, is_by_time=True)
    assert asked(start.begin()) == []
    assert start.phase is Phase.OFFLINE


# --- what contradicts the catalogue --------------------------------------------------------------------


def fences(outputs: list[Output]) -> list[tuple[Incarnation, str]]:
    return [(one.server, one.why) for one in outputs if isinstance(one, Fence)]


def test_a_server_at_a_higher_epoch_than_the_row_is_fenced_and_its_region_waits() -> None:
    start = Start(Owner(A, 9)).has(A).has(B, serves=12)
    outputs = start.begin()
    ((server, why),) = fences(outputs)
    assert server == B
    assert why == f"it has region {INFO.encoded} at epoch 12, and the catalogue names s1.4 at epoch 9"
    assert asked(on_disk(start, outputs)) == []
    (row,) = written(start.state.fenced(B, (("1", 64),), {(2, 12)}, 20, is_by_time=True))
    assert (row.epoch, row.generation, row.unreplayed_logs) == (13, 1, (OwnershipPeriod(B, 12),))


def test_a_second_server_of_a_region_is_fenced_and_the_owner_serves_on() -> None:
    start = Start(Owner(B, 9, 0, OwnershipPeriod(A, 8))).has(A, serves=8).has(B, serves=9)
    outputs = start.begin()
    assert [server for server, _ in fences(outputs)] == [A]
    assert (asked(outputs), start.phase) == ([], Phase.OPEN)


def test_regions_that_the_catalogue_does_not_have_are_no_contradiction() -> None:
    start = Start(Owner(A, 9)).has(A, serves=9)
    start.state.hello(B, {77: 3}, {78: (1, False)}, 0, {79: 2})
    assert fences(start.begin()) == []
