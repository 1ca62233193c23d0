"""Storage fences: regions of a node that ended by time wait for them, through failures, leaders and people."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

import pytest

from columnar.coordination.cas import CasUnavailable
from columnar.coordination.node_record import MountRecord
from columnar.model.owner import Incarnation
from columnar.roles import storage_fences
from columnar.roles.fence_commands import FenceFailed
from columnar.roles.storage_fences import StorageFences, is_node_of

N1, N2 = Incarnation("n1", 1), Incarnation("n2", 5)
SERVER = Incarnation("n2-s1", 6)
PATIENCE_S = 10.0


class Records:
    """The coordination service."""

    def __init__(self, *records: MountRecord, living: Iterable[str] = ()) -> None:
        self.records = {record.key: record for record in records}
        self.living = set(living)
        self.is_away = False

    def list_mounts(self) -> tuple[Mapping[str, MountRecord], Mapping[str, MountRecord]]:
        if self.is_away:
            raise CasUnavailable("it is away")
        living = {key: record for key, record in self.records.items() if key in self.living}
        return living, {key: record for key, record in self.records.items() if key not in living}

    def forget_mount(self, key: str) -> None:
        if self.is_away:
            raise CasUnavailable("it is away")
        self.records.pop(key, None)


class Fence:
    """A fence that fails until a test lets it succeed."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.run: list[str] = []
        self.sparing: MountRecord | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    def find_sparing(self, record: MountRecord, living: Iterable[MountRecord]) -> MountRecord | None:
        return self.sparing if self.sparing in list(living) else None

    async def fence_mount(self, record: MountRecord) -> None:
        self.run.append(f"{record.node}.{record.incarnation} {record.client}")
        await self.gate.wait()
        if len(self.run) <= self.failures:
            raise FenceFailed(f"the switch is off, {len(self.run)}")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_fences, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(storage_fences, "LONGEST_PAUSE_S", 0.002)
    monkeypatch.setattr(storage_fences, "NAMED_AFTER_S", 0.0)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), PATIENCE_S))


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)


def dead() -> MountRecord:
    return MountRecord("n2", 5, "10.0.0.2:9096", "client7")


def test_a_server_waits_until_its_node_is_fenced() -> None:
    async def test() -> None:
        records, fence = Records(dead()), Fence()
        fence.gate.clear()
        fences = StorageFences(fence, records)
        fences.begin_fence(N2)
        fences.begin_fence(N2)  # a node ends once; nothing is run twice
        waiting = asyncio.ensure_future(fences.until_fenced(SERVER))
        await until(lambda: bool(fence.run))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        assert records.records, "the next leader must find it"
        await fences.until_fenced(Incarnation("n1-s1", 9))  # of another node
        fence.gate.set()
        await waiting
        assert fence.run == ["n2.5 client7"]
        await until(lambda: not records.records)
        assert not fences.remarks()
        fences.stop()

    run(test)


def test_a_fence_that_fails_is_run_again_and_named(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        records, fence = Records(dead()), Fence(failures=3)
        fences = StorageFences(fence, records)
        fences.begin_fence(N2)
        await until(lambda: len(fence.run) == 2)
        (remark,) = fences.remarks()
        assert remark.startswith("node n2.5 (10.0.0.2:9096, client7) is not fenced at the file system yet, for 0 s")
        assert (
            "the switch is off, 1; it is tried again" in remark or "the switch is off, 2; it is tried again" in remark
        )
        assert "'columnar fence n2' says so" in remark
        await fences.until_fenced(SERVER)
        assert len(fence.run) == 4
        fences.stop()

    run(test)
    assert "node n2.5 is not fenced at the file system: the switch is off, 1; trying again" in caplog.text


@pytest.mark.usefixtures("expected_faults")
def test_a_fault_of_the_fence_is_a_failure() -> None:
    async def test() -> None:
        class Faulty(Fence):
            async def fence_mount(self, record: MountRecord) -> None:
                self.run.append(record.node)
                if len(self.run) == 1:
                    raise KeyError("a fault")

        fence = Faulty()
        fences = StorageFences(fence, Records(dead()))
        fences.begin_fence(N2)
        await fences.until_fenced(SERVER)
        assert fence.run == ["n2", "n2"]
        fences.stop()

    run(test)


def test_the_word_of_a_person_ends_a_fence_that_hangs() -> None:
    async def test() -> None:
        records, fence = Records(dead()), Fence()
        fence.gate.clear()
        fences = StorageFences(fence, records)
        fences.begin_fence(N2)
        await until(lambda: bool(fence.run))
        assert not fences.fence_by_hand(Incarnation("n3", 5)), "nothing is pending"
        assert not fences.fence_by_hand(Incarnation("n2", 4)), "nor for an earlier start of the node"
        await asyncio.sleep(0.01)
        assert fences.pending() == (N2,)
        assert fences.fence_by_hand(N2)
        assert fences.fence_by_hand(N2), "said twice"
        await fences.until_fenced(SERVER)
        await until(lambda: not records.records)
        fences.stop()

    run(test)


def test_the_word_of_a_person_counts_when_the_lease_is_over() -> None:
    async def test() -> None:
        records, fence = Records(dead()), Fence()
        fence.gate.clear()
        fences = StorageFences(fence, records)
        assert not fences.fence_by_hand(N2)
        assert fences.pending() == ()
        fences.begin_fence(N2)
        await fences.until_fenced(SERVER)
        assert fence.run == [], "no command is run for a machine that is off"
        await until(lambda: not records.records)
        fences.stop()

    run(test)


def test_the_next_leader_runs_what_an_earlier_one_has_not_finished() -> None:
    async def test() -> None:
        living = MountRecord("n1", 1, "10.0.0.1:9096", "client6")
        ending = MountRecord("n3", 9, "10.0.0.3:9096", "client8")  # the event of its end is still to come
        records, first = Records(living, dead(), ending, living=[living.key]), Fence()
        first.gate.clear()
        fences = StorageFences(first, records)
        fences.begin_fence(N2)
        await until(lambda: bool(first.run))
        fences.stop()
        fences.begin_fence(Incarnation("n4", 1))  # of a leader that is none any more
        second = Fence()
        fences = StorageFences(second, records)
        await fences.begin_all([ending.key])
        await fences.until_fenced(SERVER)
        await until(lambda: list(records.records) == [living.key, ending.key])
        assert second.run == ["n2.5 client7"]
        fences.stop()

    run(test)


def test_a_fence_that_would_shut_out_a_living_node_is_not_run() -> None:
    async def test() -> None:
        again = MountRecord("n2", 8, "10.0.0.2:9096", "client7")
        records, fence = Records(dead(), again, living=[again.key]), Fence()
        fence.sparing = again
        fences = StorageFences(fence, records)
        fences.begin_fence(N2)
        await fences.until_fenced(SERVER)
        assert fence.run == []
        await until(lambda: list(records.records) == [again.key])
        fences.stop()

    run(test)


def test_a_service_that_is_away_lets_no_server_pass() -> None:
    async def test() -> None:
        records, fence = Records(dead()), Fence()
        records.is_away = True
        fences = StorageFences(fence, records)
        fences.begin_fence(N2)
        waiting = asyncio.ensure_future(fences.until_fenced(SERVER))
        await until(lambda: any("it is away" in remark for remark in fences.remarks()))
        assert not waiting.done()
        records.is_away = False
        await waiting
        assert fence.run == ["n2.5 client7"]
        fences.stop()

    run(test)


@pytest.mark.parametrize("has_record", [True, False])
def test_without_a_command_or_a_record_nobody_waits(has_record: bool) -> None:
    async def test() -> None:
        records = Records(*([dead()] if has_record else []))
        fences = StorageFences(None if has_record else Fence(), records)
        fences.begin_fence(N2)
        await fences.until_fenced(SERVER)
        await until(lambda: not records.records)
        fences.stop()

    run(test)


def test_a_node_that_withdrew_is_forgotten_and_not_fenced() -> None:
    async def test() -> None:
        records, fence = Records(dead()), Fence()
        fences = StorageFences(fence, records)
        fences.forget(N2)
        await until(lambda: not records.records)
        assert fence.run == []
        fences.stop()

    run(test)


@pytest.mark.parametrize(
    ("server", "is_its"),
    [
        ("n2-s1.6", True),
        ("n2-s10.7", True),
        ("n2-s1.4", False),
        ("n2-s1.5", False),
        ("n2-sx.9", False),
        ("n22-s1.9", False),
    ],
)
def test_a_server_is_of_the_node_of_its_name_that_was_started_before_it(server: str, is_its: bool) -> None:
    name, _, number = server.rpartition(".")
    assert is_node_of(N2, Incarnation(name, int(number))) is is_its
    assert not is_node_of(N1, Incarnation(name, int(number)))
