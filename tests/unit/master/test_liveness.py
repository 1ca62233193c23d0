"""Servers that say nothing, whose loop stands still, and false alarms."""

from __future__ import annotations

from random import Random

import pytest

from columnar.master.liveness import (
    BUSY_MS,
    CHECK_INTERVAL_MS,
    LATE_MS,
    SILENT_MS,
    STUCK_MS,
    STUCK_ON_NETWORK_MS,
    Liveness,
)
from columnar.model.owner import Incarnation
from tests.support.seeds import seed

SERVERS = [Incarnation(f"s{n}", 1) for n in range(6)]


class House:
    """Looks as often as it should; each server reports unless it is in ``silent``, iterates unless in ``stuck``."""

    def __init__(self, servers: int, stuck_ms: int = STUCK_MS) -> None:
        self.now_ms = 0
        self.liveness = Liveness(0, stuck_ms=stuck_ms)
        self.servers = SERVERS[:servers]
        self.silent: set[Incarnation] = set()
        self.stuck: set[Incarnation] = set()
        self.killed: dict[Incarnation, int] = {}
        self.remarks: list[str] = []
        self.is_folder_stalled = False
        for server in self.servers:
            self.liveness.joined(server, 0)

    def run(self, for_ms: int) -> None:
        end_ms = self.now_ms + for_ms
        while self.now_ms < end_ms:
            self.now_ms += CHECK_INTERVAL_MS
            self.report()
            self.look()

    def report(self) -> None:
        for server in self.servers:
            if server not in self.silent and server not in self.killed:
                self.liveness.heard(server, 7 if server in self.stuck else self.now_ms, self.now_ms)

    def look(self) -> None:
        verdict = self.liveness.check_liveness(self.now_ms, is_folder_stalled=self.is_folder_stalled)
        assert verdict.wake_at_ms == self.now_ms + CHECK_INTERVAL_MS
        self.remarks += verdict.remarks
        for server, _ in verdict.kill:
            assert server not in self.killed, "it was named"
            self.killed[server] = self.now_ms


def test_servers_that_work_are_left_alone() -> None:
    house = House(3)
    house.run(60_000)
    assert house.killed == {}
    assert house.remarks == []


def test_a_silent_server_is_to_be_killed_once() -> None:
    house = House(4)
    house.run(5_000)
    house.silent = {SERVERS[1]}
    house.run(10_000)
    assert house.killed == {SERVERS[1]: 5_000 + SILENT_MS}


def test_the_next_look_is_when_a_server_may_be_silent() -> None:
    house = House(4)
    house.run(5_000)
    house.silent = {SERVERS[3]}
    house.run(SILENT_MS - CHECK_INTERVAL_MS)
    end_ms = 5_130 + SILENT_MS
    house.liveness.heard(SERVERS[3], 1, 5_130)
    for now_ms in (end_ms - 200, end_ms - 1):
        verdict = house.liveness.check_liveness(now_ms)
        assert verdict.kill == ()
        assert verdict.wake_at_ms == end_ms
    verdict = house.liveness.check_liveness(end_ms)
    assert [server for server, _ in verdict.kill] == [SERVERS[3]]
    assert verdict.wake_at_ms == end_ms + CHECK_INTERVAL_MS


def test_a_server_whose_loop_stands_still_is_to_be_killed() -> None:
    house = House(4)
    house.run(5_000)
    house.stuck = {SERVERS[2]}
    house.run(STUCK_MS)
    assert house.killed == {}
    house.run(2 * CHECK_INTERVAL_MS)
    assert list(house.killed) == [SERVERS[2]]


def test_a_loop_that_waits_for_a_network_folder_has_a_minute() -> None:
    house = House(4, STUCK_ON_NETWORK_MS)
    house.run(5_000)
    house.stuck, house.silent = {SERVERS[2]}, {SERVERS[0]}
    house.run(STUCK_ON_NETWORK_MS)
    assert house.killed == {SERVERS[0]: 5_000 + SILENT_MS}, "a process that is stopped is found as ever"
    house.run(2 * CHECK_INTERVAL_MS)
    assert set(house.killed) == {SERVERS[0], SERVERS[2]}


def test_a_loop_that_goes_on_within_the_minute_lives() -> None:
    house = House(4, STUCK_ON_NETWORK_MS)
    house.run(5_000)
    for _ in range(3):
        house.stuck = {SERVERS[2]}
        house.run(STUCK_ON_NETWORK_MS - CHECK_INTERVAL_MS)
        house.stuck = set()
        house.run(1_000)
    assert house.killed == {}


@pytest.mark.parametrize("stuck_ms", [STUCK_MS, STUCK_ON_NETWORK_MS])
def test_a_stall_of_the_folder_counts_against_no_stuck_loop(stuck_ms: int) -> None:
    house = House(4, stuck_ms)
    house.run(5_000)
    house.stuck = {SERVERS[2]}
    house.run(stuck_ms - 1_000)
    house.is_folder_stalled = True
    house.run(2 * stuck_ms)
    house.is_folder_stalled = False
    answered_ms = house.now_ms
    house.run(stuck_ms - CHECK_INTERVAL_MS)
    assert house.killed == {}
    house.run(CHECK_INTERVAL_MS)
    assert house.killed == {SERVERS[2]: answered_ms + stuck_ms}


def test_a_server_that_starts_has_more_time() -> None:
    house = House(4)
    house.silent = {SERVERS[0]}
    house.run(LATE_MS - CHECK_INTERVAL_MS)
    assert house.killed == {}
    house.run(CHECK_INTERVAL_MS)
    assert list(house.killed) == [SERVERS[0]]


@pytest.mark.parametrize("servers", [2, 3, 6])
def test_many_that_are_silent_at_once_have_more_time(servers: int) -> None:
    house = House(servers)
    house.run(5_000)
    house.silent = set(SERVERS[: max(2, servers // 3 + 1)])
    house.run(2 * SILENT_MS - CHECK_INTERVAL_MS)
    assert house.killed == {}
    assert len(house.remarks) == 1
    assert "silent at once" in house.remarks[0]
    house.run(CHECK_INTERVAL_MS)
    assert set(house.killed) == house.silent


def test_servers_that_were_silent_together_and_report_again_are_left_alone() -> None:
    house = House(3)
    house.run(5_000)
    house.silent = set(SERVERS[:3])
    house.run(SILENT_MS + 1_000)
    house.silent = set()
    house.run(30_000)
    assert house.killed == {}


def test_time_in_which_the_master_did_not_run_counts_against_nobody() -> None:
    house = House(4)
    house.run(5_000)
    house.now_ms += 60_000  # all of them were stopped; its own look comes before the reports that wait
    house.look()
    assert house.killed == {}
    assert "the master did not run for 60" in house.remarks[0]
    house.run(5_000)
    assert house.killed == {}


def test_a_server_that_left_is_not_named() -> None:
    house = House(3)
    house.run(1_000)
    house.liveness.left(SERVERS[0])
    house.silent = {SERVERS[0]}
    house.liveness.heard(SERVERS[0], 1, house.now_ms)
    house.run(20_000)
    assert house.killed == {}


@pytest.mark.parametrize("number", range(20))
def test_whoever_is_killed_had_its_time_and_whoever_is_silent_long_is_killed(number: int) -> None:
    rng = Random(seed(300) + number)
    house = House(rng.randint(1, 6))
    house.run(1_000)
    since: dict[Incarnation, int] = {}
    for _ in range(60):
        for server in house.servers:
            if server not in house.killed and rng.random() < 0.1:
                (house.silent.discard if server in house.silent else house.silent.add)(server)
                since[server] = house.now_ms
        house.run(rng.choice((250, 1_000, 2_000)))
        for server, at_ms in house.killed.items():
            if at_ms >= since.get(server, at_ms + 1):
                assert at_ms - since[server] >= SILENT_MS
        for server in house.silent - set(house.killed):
            assert house.now_ms - since[server] < 3 * SILENT_MS + 2_000, "it should have been killed"


class BusyHouse(House):
    """Servers in ``busy`` use a processor."""

    def __init__(self, servers: int) -> None:
        super().__init__(servers)
        self.busy: set[Incarnation] = set()
        self.looked_at: set[Incarnation] = set()
        self.liveness = Liveness(0, self.works)
        for server in self.servers:
            self.liveness.joined(server, 0)

    def works(self, server: Incarnation) -> bool:
        self.looked_at.add(server)
        return server in self.busy

    def busy_now(self) -> dict[Incarnation, int]:
        return dict(self.liveness.check_liveness(self.now_ms).busy)


def test_a_silent_server_that_works_lives_and_is_named_as_busy() -> None:
    house = BusyHouse(3)
    house.run(5_000)
    house.silent = house.busy = {SERVERS[1]}
    house.run(SILENT_MS - CHECK_INTERVAL_MS)
    assert house.busy_now() == {}, "a step of 2 s is none to speak of"
    house.run(60_000)
    assert house.killed == {}
    assert house.busy_now() == {SERVERS[1]: 5_000}
    assert len(house.remarks) == 1
    assert "server s1.1 is busy in one step for 3.0 s" in house.remarks[0]
    house.silent = set()
    house.run(1_000)
    assert house.busy_now() == {}
    assert house.remarks[1:] == ["server s1.1 goes on after a step that kept it busy"]
    assert house.looked_at == {SERVERS[1]}, "nobody else is looked at"


def test_a_loop_that_works_for_long_is_busy() -> None:
    house = BusyHouse(3)
    house.run(5_000)
    house.stuck = house.busy = {SERVERS[1]}
    house.run(60_000)
    assert house.killed == {}
    assert house.busy_now() == {SERVERS[1]: 5_250}


def test_a_step_that_does_not_end_is_ended() -> None:
    house = BusyHouse(3)
    house.run(5_000)
    house.silent = house.busy = {SERVERS[1]}
    house.run(BUSY_MS - CHECK_INTERVAL_MS)
    assert house.killed == {}
    house.run(CHECK_INTERVAL_MS)
    assert house.killed == {SERVERS[1]: 5_000 + BUSY_MS}


def test_a_busy_server_that_is_stopped_is_found_as_any_other() -> None:
    house = BusyHouse(3)
    house.run(5_000)
    house.silent = house.busy = {SERVERS[1]}
    house.run(30_000)
    house.busy = set()
    house.run(SILENT_MS)
    assert house.killed == {SERVERS[1]: 35_000 + SILENT_MS}


def test_busy_servers_are_not_many_that_are_silent() -> None:
    house = BusyHouse(3)
    house.run(5_000)
    house.silent = {SERVERS[0], SERVERS[1]}
    house.busy = {SERVERS[0]}
    house.run(SILENT_MS)
    assert house.killed == {SERVERS[1]: 5_000 + SILENT_MS}, "at once: the machine is not at fault"


@pytest.mark.parametrize("stall_ms", [5_000, 60_000, 2 * BUSY_MS])
def test_nobody_is_killed_while_the_data_folder_does_not_answer(stall_ms: int) -> None:
    """A loop waits for a file, or an opening does with the interpreter; whoever else is silent has time as well."""
    house = House(4)
    house.run(5_000)
    house.silent, house.stuck = {SERVERS[1]}, {SERVERS[2]}
    house.run(2_000)  # until the stall is known
    house.is_folder_stalled = True
    house.run(stall_ms)
    assert house.killed == {}
    house.is_folder_stalled = False
    house.silent = house.stuck = set()
    house.run(60_000)
    assert house.killed == {}
    assert house.remarks == []


def test_counts_begin_anew_when_the_data_folder_answers() -> None:
    house = House(4)
    house.run(1_000)
    house.silent, house.stuck = {SERVERS[1]}, {SERVERS[2]}
    house.is_folder_stalled = True
    house.run(60_000)
    house.is_folder_stalled = False
    answered_ms = house.now_ms
    house.run(20_000)
    assert house.killed == {SERVERS[1]: answered_ms + SILENT_MS, SERVERS[2]: answered_ms + STUCK_MS}


def test_a_server_that_starts_while_the_folder_stalls_has_its_time_afterwards() -> None:
    house = House(2)
    house.is_folder_stalled = True
    house.silent = set(house.servers)
    house.run(2 * LATE_MS)
    house.is_folder_stalled = False
    house.run(LATE_MS - CHECK_INTERVAL_MS)
    assert house.killed == {}
    house.silent = set()
    house.run(10_000)
    assert house.killed == {}
