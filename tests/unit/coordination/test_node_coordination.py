"""Nodes over one compare-and-set store in memory: leases, elections, ends, fences, withdrawals, a service that fails.

The threads are real, and so is time: leases are short.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from columnar.clock import system_ms
from columnar.coordination import candidate_thread, node_coordination, renewal_thread, service_thread, start_calls
from columnar.coordination.api import NotLeading
from columnar.coordination.cas import CasOutcomeUnknown, CasRefused, CasUnavailable, Condition, Versioned
from columnar.coordination.cas_memory import CasMemory
from columnar.coordination.election import LEADER
from columnar.coordination.lease import LeaseTimes
from columnar.coordination.lease_page import LeasePage, boot_ms
from columnar.coordination.node_coordination import NodeCoordination
from columnar.coordination.node_record import (
    NUMBER,
    NodeRecord,
    decode_leader_record,
    decode_node_record,
    encode_record,
)
from columnar.coordination.server_page import ServerPage, ServerPages
from columnar.errors import HostError
from tests.support.heard_coordination import HeardCoordination

TIMES = LeaseTimes.of_lease(600)
LONG = LeaseTimes(20_000, 100, 40, 22_000, 8_000)  # nothing may wait for such a lease
RARELY = LeaseTimes(20_000, 10_000, 40, 22_000, 8_000)  # nor for such a renewal


class FailingStore:
    """A client of the store in memory, which a test makes fail before or after the call takes effect."""

    def __init__(self, store: CasMemory, before: Callable[[str, str], None], after: Callable[[str, str], None]) -> None:
        self._store = store
        self._before = before
        self._after = after

    def create_key(self, key: str, value: bytes) -> int:
        self._before("create", key)
        version = self._store.create_key(key, value)
        self._after("create", key)
        return version

    def put_key(self, key: str, value: bytes, version: int) -> int:
        self._before("put", key)
        new = self._store.put_key(key, value, version)
        self._after("put", key)
        return new

    def delete_key(self, key: str, version: int, also: Condition | None = None) -> None:
        self._before("delete", key)
        self._store.delete_key(key, version, also)
        self._after("delete", key)

    def read_key(self, key: str) -> Versioned | None:
        self._before("read", key)
        return self._store.read_key(key)

    def list_keys(self, folder: str) -> dict[str, Versioned]:
        self._before("list", folder)
        return self._store.list_keys(folder)

    def close(self) -> None:
        pass


class Node:
    """A node's coordination with its page and what it has heard."""

    def __init__(self, store: CasMemory, name: str, times: LeaseTimes = TIMES) -> None:
        self.store = store
        self.heard = HeardCoordination()
        self.page = LeasePage.create()
        self.pages = ServerPages()
        self.server, descriptor = ServerPage.create()
        os.close(descriptor)
        self.pages.add_server(f"{name}-s1.1", self.server)
        self.before: Callable[[str, str], None] = lambda _call, _key: None
        self.after: Callable[[str, str], None] = lambda _call, _key: None
        self.coordination = NodeCoordination(self._connect, "memory://test", lambda: "10.0.0.1", times)
        self.record = NodeRecord("", name, self.coordination.next_number(), f"{name}:9096", (f"{name}-s1.1",))

    def _connect(self) -> FailingStore:
        return FailingStore(
            self.store, lambda call, key: self.before(call, key), lambda call, key: self.after(call, key)
        )

    async def start(self, *, may_lead: bool = True, epoch_floor: int = 0) -> None:
        await self.coordination.start(
            self.record,
            self.page,
            self.heard,
            self.pages,
            may_lead=may_lead,
            epoch_floor=epoch_floor,
            client=f"client of {self.record.node}",
        )

    def die(self) -> None:
        """Stop the threads where they are, as the death of the process does."""
        for thread in (self.coordination._renewal, self.coordination._candidate):
            if thread is not None:
                thread.stop()

    def stored(self) -> NodeRecord | None:
        found = self.store.read_key(self.record.key)
        return None if found is None else decode_node_record(found.value)


@asynccontextmanager
async def nodes(*names: str, times: LeaseTimes = TIMES) -> AsyncIterator[list[Node]]:
    """Make nodes of one store, and stop whatever of them was started."""
    store = CasMemory()
    made = [Node(store, name, times) for name in names]
    try:
        yield made
    finally:
        for node in made:
            await node.coordination.withdraw()
            node.page.close()


def run(test: Coroutine[None, None, None]) -> None:
    asyncio.run(test)
    assert [one.name for one in threading.enumerate() if one.name.startswith(("renewal", "election"))] == []


def test_a_node_alone_is_elected_and_sees_itself() -> None:
    async def test() -> None:
        async with nodes("n1") as [node]:
            await node.start()
            assert node.page.is_valid()
            await node.heard.until_heard("nodes_changed")
            await node.heard.until_heard("elected")
            assert node.coordination.leads()
            (seen,), stored = node.heard.nodes.values(), node.stored()
            assert stored is not None
            assert stored.system_ms >= seen.system_ms > 0
            assert replace(seen, system_ms=0, cluster_ms=0) == replace(stored, system_ms=0, cluster_ms=0)
            assert node.heard.leader is not None
            assert (node.heard.leader.node, node.heard.leader.address, node.heard.leader.epoch) == ("n1", "n1:9096", 1)
            listed = await node.coordination.wait_unlisted_over()
            assert listed.keys() == {node.record.key}

    run(test())


def test_the_mount_of_a_node_is_noted_until_it_withdraws_and_outlives_its_death() -> None:
    async def test() -> None:
        async with nodes("n1", "n2") as [one, two]:
            await one.start()
            await two.start()
            living, others = one.coordination.start_calls.list_mounts()
            number = two.record.incarnation
            assert [(mount.node, mount.client) for mount in living.values()] == [
                ("n1", "client of n1"),
                ("n2", "client of n2"),
            ]
            assert others == {}
            two.die()
            await one.heard.until(lambda: two.record.key in one.heard.ended, "the end of n2")
            living, others = one.coordination.start_calls.list_mounts()
            assert (list(living), list(others)) == ([f"mounts/n1.{one.record.incarnation}"], [f"mounts/n2.{number}"])
            one.coordination.start_calls.forget_mount(f"mounts/n2.{number}")
            one.coordination.start_calls.forget_mount(f"mounts/n2.{number}")
            assert one.coordination.start_calls.list_mounts()[1] == {}
            await one.coordination.withdraw()
            assert one.coordination.start_calls.list_mounts() == ({}, {})

    run(test())


def test_a_withdrawal_does_not_wait_for_the_record_of_the_mount(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither for a service that does not answer, nor for threads that wait for the folder."""
    monkeypatch.setattr(node_coordination, "WITHDRAW_S", 0.5)
    goes_on = threading.Event()

    def blocks(_call: str, key: str) -> None:
        if key.startswith("mounts/"):
            goes_on.wait(20)

    async def test() -> None:
        async with nodes("n1", "n2") as [one, two]:
            await one.start()
            await two.start()
            await two.heard.until(lambda: len(two.heard.nodes) == 2)
            two.before = blocks
            began_s = time.monotonic()
            await two.coordination.withdraw()
            assert time.monotonic() - began_s < 10
            assert not goes_on.is_set()
            await one.heard.until(lambda: two.record.key in one.heard.ended, "the end of n2")
            assert one.heard.ended[two.record.key][1] is False, "it has withdrawn in order"
            goes_on.set()

    run(test())
    assert "the record mounts/n2.2 stays until the leader deletes it: no answer" in caplog.text


def test_the_record_of_the_mount_goes_though_the_loops_threads_wait_for_the_folder() -> None:
    goes_on = threading.Event()

    async def test() -> None:
        async with nodes("n1") as [node]:
            await node.start()
            loop = asyncio.get_running_loop()
            loop.set_default_executor(ThreadPoolExecutor(1))
            stalled = asyncio.ensure_future(asyncio.to_thread(goes_on.wait, 20))
            await node.coordination.withdraw()
            assert node.store.list_keys("mounts") == {}
            assert not stalled.done()
            goes_on.set()
            await stalled

    run(test())


def test_a_mount_is_noted_before_the_node_can_lead() -> None:
    async def test() -> None:
        async with nodes("n1") as [node]:
            seen: list[bool] = []

            def before(call: str, key: str) -> None:
                if key.startswith("leader/"):
                    seen.append(bool(node.store.list_keys("mounts")))

            node.before = before
            await node.start()
            await node.heard.until_heard("elected")
            assert seen
            assert all(seen)

    run(test())


def test_a_mount_whose_write_had_an_unknown_outcome_is_noted_once() -> None:
    async def test() -> None:
        async with nodes("n1") as [node]:
            failed: list[str] = []

            def after(call: str, key: str) -> None:
                if call == "create" and key.startswith("mounts/") and not failed:
                    failed.append(key)
                    raise CasOutcomeUnknown(key, "the answer was lost")

            node.after = after
            await node.start()
            assert failed == list(node.coordination.start_calls.list_mounts()[0])

    run(test())


def test_a_damaged_record_of_a_mount_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with nodes("n1") as [node]:
            node.store.create_key("mounts/n7.7", b"{}")
            await node.start()
            assert list(node.coordination.start_calls.list_mounts()[0]) == [f"mounts/n1.{node.record.incarnation}"]

    run(test())
    assert "mounts/n7.7" in caplog.text


def test_an_epoch_is_above_the_folders_and_lifted_before_it_is_used() -> None:
    async def test() -> None:
        async with nodes("n1") as [node]:
            with pytest.raises(NotLeading):
                await node.coordination.lift_epoch(3)
            await node.start(epoch_floor=41)
            await node.heard.until_heard("elected")
            assert ("elected", 42) in node.heard.events
            assert await node.coordination.lift_epoch(7) == 42
            assert await node.coordination.lift_epoch(50) == 50
            found = node.store.read_key(LEADER)
            assert found is not None
            assert decode_leader_record(found.value).epoch == 50
            assert ("leader_changed", ("n1", 50)) in node.heard.events

    run(test())


def test_a_lift_that_is_not_answered_waits_and_ends_with_the_leadership() -> None:
    async def test() -> None:
        async with nodes("n1") as [node]:
            await node.start()
            await node.heard.until_heard("elected")

            def fails(call: str, key: str) -> None:
                if (call, key) == ("put", LEADER):
                    raise CasOutcomeUnknown(key, "a test")

            node.before = fails
            lifted = asyncio.ensure_future(node.coordination.lift_epoch(9))
            await asyncio.wait([lifted], timeout=0.1)
            assert not lifted.done(), "no record with that epoch was certainly written"
            node.before = lambda _call, _key: None
            assert await lifted == 9
            node.before = fails
            lifted = asyncio.ensure_future(node.coordination.lift_epoch(10))
            await asyncio.sleep(0)
            await node.coordination.withdraw()
            with pytest.raises(NotLeading):
                await lifted

    run(test())


def test_a_node_that_dies_is_fenced_by_time_and_another_leads() -> None:
    async def test() -> None:
        async with nodes("n1", "n2") as [one, other]:
            await one.start()
            await one.heard.until_heard("elected")
            await other.start()
            await one.heard.until(lambda: other.record.key in one.heard.nodes)
            began_ms = boot_ms()
            one.die()
            await other.heard.until_heard("node_ended")
            assert boot_ms() - began_ms >= TIMES.fence_ms - TIMES.renew_ms
            assert other.heard.ended.keys() == {one.record.key}
            record, is_by_time = other.heard.ended[one.record.key]
            assert is_by_time
            assert (record.node, record.servers) == ("n1", ("n1-s1.1",))
            assert other.heard.names().index("elected") < other.heard.names().index("node_ended")
            assert ("elected", 2) in other.heard.events
            assert not one.coordination.leads()
            assert not one.page.is_valid()

    run(test())


def test_a_node_that_withdraws_has_ended_by_itself_and_its_place_is_taken_at_once() -> None:
    async def test() -> None:
        async with nodes("n1", "n2", times=LONG) as [one, other]:
            await one.start()
            await one.heard.until_heard("elected")
            await other.start()
            await one.heard.until(lambda: other.record.key in one.heard.nodes)
            began_ms = boot_ms()
            await one.coordination.withdraw()
            await other.heard.until_heard("node_ended")
            assert boot_ms() - began_ms < LONG.lease_ms, "nobody waits for a lease"
            assert other.heard.ended[one.record.key][1] is False
            assert not one.coordination.leads()
            assert not one.page.is_valid()
            assert one.stored() is None
            assert one.heard.names()[-1] == "deposed"
            assert ("leader_changed", None) not in one.heard.events

    run(test())


def test_a_leader_that_steps_down_is_followed_at_once_and_may_lead_again() -> None:
    async def test() -> None:
        async with nodes("n1", "n2", times=LONG) as [one, other]:
            await one.start()
            await one.heard.until_heard("elected")
            await other.start()
            await one.heard.until(lambda: other.record.key in one.heard.nodes)
            began_ms = boot_ms()
            one.coordination.step_down()
            assert not one.coordination.leads(), "from this moment"
            await other.heard.until_heard("elected")
            await one.heard.until(lambda: ("deposed", "it resigned") in one.heard.events)
            await one.heard.until(lambda: ("leader_changed", ("n2", 2)) in one.heard.events)
            assert boot_ms() - began_ms < LONG.lease_ms, "nobody waits for a lease"
            assert one.page.is_valid(), "the node lives"
            assert not one.heard.ended
            assert not other.heard.ended
            other.coordination.step_down()
            await one.heard.until(lambda: ("elected", 3) in one.heard.events)
            assert one.coordination.leads()

    run(test())


def test_a_leader_that_nobody_follows_leads_again() -> None:
    async def test() -> None:
        async with nodes("n1", times=TIMES) as [node]:
            node.coordination.step_down()
            await node.start()
            await node.heard.until_heard("elected")
            node.coordination.step_down()
            await node.heard.until(lambda: ("elected", 2) in node.heard.events)
            assert node.coordination.leads()

    run(test())


def test_a_node_may_withdraw_while_it_steps_down() -> None:
    async def test() -> None:
        async with nodes("n1", "n2", times=LONG) as [one, other]:
            await one.start()
            await one.heard.until_heard("elected")
            await other.start()
            await one.heard.until(lambda: other.record.key in one.heard.nodes)
            one.coordination.step_down()
            await one.coordination.withdraw()
            await other.heard.until_heard("node_ended")
            assert other.heard.ended[one.record.key][1] is False
            assert one.stored() is None

    run(test())


def test_a_node_alone_withdraws_without_waiting_and_the_next_one_leads_at_once() -> None:
    async def test() -> None:
        async with nodes("n1", "n2", times=LONG) as [one, other]:
            await one.start()
            await one.heard.until_heard("elected")
            await one.heard.until_heard("nodes_changed")
            began_ms = boot_ms()
            await one.coordination.withdraw()
            await other.start()
            await other.heard.until_heard("elected")
            assert boot_ms() - began_ms < LONG.lease_ms
            assert ("elected", 2) in other.heard.events
            assert not other.heard.ended, "it was gone before"

    run(test())


def test_a_new_leader_waits_for_leases_that_it_has_not_seen() -> None:
    async def test() -> None:
        async with nodes("n1") as [node]:
            began_ms = boot_ms()
            await node.start()
            await node.heard.until_heard("elected")
            await node.coordination.wait_unlisted_over()
            assert boot_ms() - began_ms >= TIMES.fence_ms

    run(test())


def test_a_fence_on_request_ends_a_node_that_renews() -> None:
    async def test() -> None:
        async with nodes("n1", "n2") as [one, other]:
            await one.start()
            await one.heard.until_heard("elected")
            await other.start()
            await one.heard.until(lambda: other.record.key in one.heard.nodes)
            other.coordination.request_fence(one.record.key)  # it does not lead
            one.coordination.request_fence(other.record.key)
            await other.heard.until_heard("lease_lost")
            assert not other.page.is_valid()
            fenced_ms = boot_ms()
            await one.heard.until_heard("node_ended")
            assert boot_ms() - fenced_ms >= TIMES.lease_ms // 2, "its last lease must be over"
            assert one.heard.ended[other.record.key][1] is True
            assert "lease_lost" not in one.heard.names()

    run(test())


def test_a_thread_sleeps_between_its_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of the loop woke the thread at once, which checked again: an idle node used a whole processor."""
    steps = {"renewal": 0, "candidate": 0}
    for name, kind in (("renewal", renewal_thread.RenewalThread), ("candidate", candidate_thread.CandidateThread)):

        def count(self: object, store: object, name: str = name, step: Callable[..., None] = kind._step) -> None:
            steps[name] += 1
            step(self, store)

        monkeypatch.setattr(kind, "_step", count)

    async def test() -> None:
        async with nodes("n1", times=LONG) as (node,):
            await node.start()
            await node.heard.until_heard("elected")
            renewals = polls = 0
            enough = asyncio.Event()
            loop = asyncio.get_running_loop()

            def call(kind: str, key: str) -> None:
                nonlocal renewals, polls
                renewals += kind == "put" and key == node.record.key
                polls += kind == "list"
                if renewals == 10:
                    loop.call_soon_threadsafe(enough.set)

            steps.update(renewal=0, candidate=0)
            node.before = call
            await asyncio.wait_for(enough.wait(), 20)
            assert steps["renewal"] <= 3 * renewals, "one with the request, one that waits"
            assert steps["candidate"] <= 6 * polls + 3 * renewals, "it polls, and renews the leader's record"

    run(test())


def test_what_is_published_is_written_at_once() -> None:
    async def test() -> None:
        async with nodes("n1", times=RARELY) as [node]:
            await node.start()
            await node.heard.until_heard("nodes_changed")
            for number in range(5):
                servers = tuple(f"n1-s1.{number}" for number in range(number))
                began_ms = boot_ms()
                node.coordination.publish(replace(node.record, servers=servers))
                await node.heard.until(lambda wanted=servers: node.heard.nodes[node.record.key].servers == wanted)
                assert boot_ms() - began_ms < RARELY.renew_ms
            events = len(node.heard.events)
            node.server.raise_synced(1, 77)
            node.server.raise_clock(5)
            node.coordination.publish(replace(node.record, servers=servers))
            while not node.coordination.synced_lengths("n1-s1.1"):  # noqa: ASYNC110 - no event is due
                await asyncio.sleep(0.005)
            assert len(node.heard.events) == events
            record = node.coordination.nodes[node.record.key]
            assert (record.logs, record.clock_ms) == ({"n1-s1.1": (("00000001", 77),)}, 5)
            assert abs(record.system_ms - system_ms()) < 10_000
            node.server.forget_segments([1])
            node.coordination.publish(replace(node.record, servers=("n1-s1.1",)))
            while node.coordination.synced_lengths("n1-s1.1"):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.005)

    run(test())


def test_a_node_that_never_leads_follows() -> None:
    async def test() -> None:
        async with nodes("n1", "n2") as [one, other]:
            await other.start(may_lead=False)
            await other.heard.until_heard("nodes_changed")
            await one.start()
            await other.heard.until(lambda: other.heard.leader is not None)
            assert other.heard.leader is not None
            assert other.heard.leader.node == "n1"
            await one.coordination.withdraw()
            await other.heard.until(lambda: other.heard.leader is None)
            assert "elected" not in other.heard.names()

    run(test())


def test_a_service_that_fails_interrupts_and_takes_nothing() -> None:
    async def test() -> None:
        async with nodes("n1", "n2") as both:
            one, other = both
            for node in both:
                await node.start()
            await one.heard.until(lambda: len(one.heard.nodes) == 2)
            is_away = threading.Event()
            is_away.set()

            def fails(_call: str, _key: str) -> None:
                if is_away.is_set():
                    raise CasUnavailable("a test")

            one.before = other.before = fails
            for node in both:
                await node.heard.until_heard("service_silent")
            while one.page.is_valid() or other.page.is_valid():  # noqa: ASYNC110 - they end by the clock
                await asyncio.sleep(0.01)
            assert not one.coordination.leads()
            is_away.clear()
            for node in both:
                await node.heard.until_heard("service_answers")
                assert node.page.is_valid()
            assert sum(node.heard.names().count("elected") for node in both) == 1, "the same one leads"
            assert not any(name in node.heard.names() for node in both for name in ("node_ended", "lease_lost"))

    run(test())


def test_a_service_that_refuses_writes_and_answers_reads_takes_nothing() -> None:
    """As an etcd without room: who renews first, when there is room again, must not fence the others."""

    async def test() -> None:
        async with nodes("n1", "n2", "n3") as all_nodes:
            for node in all_nodes:
                await node.start()
            await all_nodes[0].heard.until(lambda: len(all_nodes[0].heard.nodes) == 3)
            full_until = {name: threading.Event() for name in ("n1", "n2", "n3")}

            def refuse(node: Node) -> Callable[[str, str], None]:
                def before(call: str, _key: str) -> None:
                    if call in ("put", "create") and not full_until[node.record.node].is_set():
                        raise CasRefused("it is full")

                return before

            for node in all_nodes:
                node.before = refuse(node)
            await asyncio.sleep(2 * TIMES.fence_ms / 1_000)  # time is what is tried
            assert not any(node.page.is_valid() for node in all_nodes)
            for node in all_nodes:  # one after the other has room, the leader too
                full_until[node.record.node].set()
                await asyncio.sleep(TIMES.fence_ms / 1_000 / 4)
            for node in all_nodes:
                await node.heard.until(lambda one=node: one.page.is_valid())  # type: ignore[misc]
            assert not any(name in node.heard.names() for node in all_nodes for name in ("node_ended", "lease_lost"))

    run(test())


@pytest.mark.parametrize("error", [CasRefused("a test"), ValueError("a test")], ids=["refused", "unexpected"])
def test_a_thread_survives_what_the_client_raises(
    error: Exception, caplog: pytest.LogCaptureFixture, expected_faults: Callable[[], dict[str, int]]
) -> None:
    async def test() -> None:
        async with nodes("n1") as [node]:
            await node.start()
            await node.heard.until_heard("elected")
            left = 8

            def fails(_call: str, _key: str) -> None:
                nonlocal left
                if left > 0:
                    left -= 1
                    raise error

            node.before = fails
            node.coordination.publish(replace(node.record, servers=("n1-s1.2",)))
            await node.heard.until(lambda: node.heard.nodes[node.record.key].servers == ("n1-s1.2",))
            assert left == 0
            assert "lease_lost" not in node.heard.names()

    run(test())
    assert "a test" in caplog.text
    assert bool(expected_faults()) is isinstance(error, ValueError)


def test_a_node_whose_loop_hangs_is_fenced_and_another_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_thread, "LOOP_HANG_MS", 200)
    heard: list[tuple[object, ...]] = []

    async def hang(node: Node, began: threading.Event, goes_on: threading.Event) -> None:
        await node.start()
        await node.heard.until_heard("elected")
        began.set()
        goes_on.wait()  # the loop does not turn
        await node.heard.until_heard("lease_lost")
        assert not node.coordination.leads()
        await node.coordination.withdraw()

    async def watch(store: CasMemory, hung: Node) -> None:
        began, goes_on = threading.Event(), threading.Event()
        thread = threading.Thread(target=lambda: asyncio.run(hang(hung, began, goes_on)))
        thread.start()
        await asyncio.to_thread(began.wait)
        other = Node(store, "n2")
        await other.start()
        await other.heard.until_heard("node_ended")
        heard.extend(other.heard.events)
        goes_on.set()
        await asyncio.to_thread(thread.join)
        await other.coordination.withdraw()
        other.page.close()

    store = CasMemory()
    hung = Node(store, "n1")
    asyncio.run(watch(store, hung))
    hung.page.close()
    assert ("node_ended", hung.record.key, True) in heard


def test_a_start_without_a_service_says_so_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_coordination, "START_S", 0.3)
    monkeypatch.setattr(start_calls, "START_S", 0.3)

    def away(_call: str, _key: str) -> None:
        raise CasUnavailable("connection refused")

    def refused(_call: str, _key: str) -> None:
        raise CasRefused("wrong password")

    async def test() -> None:
        for before, expected in ((away, "memory://test: .*connection refused"), (refused, "memory://test: .*password")):
            async with nodes("n1") as [node]:
                node.before = before
                began = time.monotonic()
                with pytest.raises((CasUnavailable, CasRefused), match=expected):
                    await node.start()
                assert time.monotonic() - began < 2.0
                with pytest.raises((CasUnavailable, CasRefused), match=expected):
                    await asyncio.to_thread(node.coordination.next_number)

    run(test())


def test_a_record_that_exists_already_is_not_joined() -> None:
    async def test() -> None:
        async with nodes("n1") as [node]:
            node.store.create_key(node.record.key, b"{}")
            with pytest.raises(HostError, match=r"nodes/n1\.1 exists already"):
                await node.start()

    run(test())


def test_a_number_is_given_once() -> None:
    store = CasMemory()
    lost = iter(["put", "", "create", "put"] * 10)

    def loses_answers(call: str, key: str) -> None:
        if call == next(lost, ""):
            raise CasOutcomeUnknown(key, "a test")

    given: list[int] = []

    def draw(node: Node) -> None:
        given.extend(node.coordination.next_number() for _ in range(25))

    drawers = [Node(store, f"n{number}") for number in range(4)]
    drawers[0].after = loses_answers
    threads = [threading.Thread(target=draw, args=(node,)) for node in drawers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(given) == len(set(given)) == 100
    assert drawers[1].coordination.next_number(floor=5_000) == 5_001
    assert drawers[2].coordination.next_number(floor=1) == 5_002
    assert store.read_key(NUMBER) is not None
    for node in drawers:
        node.page.close()


def test_a_second_node_of_a_name_that_lives_is_refused() -> None:
    async def test() -> None:
        async with nodes("n1", "n1", "n2") as (first, second, other):
            await first.start()
            with pytest.raises(HostError, match="a node named n1 runs already; choose another name with --name"):
                await second.start()
            await other.start()
            assert (second.stored(), second.heard.events) == (None, [])
            assert first.stored() is not None

    run(test())


@pytest.mark.parametrize("withdraws", [False, True])
def test_a_node_that_died_or_withdrew_may_come_back_under_its_name(withdraws: bool) -> None:
    """Its record may stand for a while, and its last renewal may arrive after its death."""

    async def test() -> None:
        async with nodes("n1", "n1") as (first, second):
            await first.start()
            record = first.stored()
            assert record is not None
            if withdraws:
                await first.coordination.withdraw()
            else:
                first.die()
            await second.start()
            assert second.stored() is not None

    run(test())


def test_of_two_nodes_of_a_name_that_start_at_the_same_moment_one_lives_at_most() -> None:
    """Neither has a record when the other looks for one; the look after the lease finds it."""

    async def test() -> None:
        async with nodes("n1", "n1") as (first, second):
            both_looked = threading.Barrier(2)

            def meets_the_other(call: str, key: str) -> None:
                if call == "create" and key.startswith("nodes/"):
                    both_looked.wait()

            first.before = second.before = meets_the_other
            ended = await asyncio.gather(first.start(), second.start(), return_exceptions=True)
            refused = [one for one in ended if one is not None]
            assert refused
            assert all(isinstance(one, HostError) and "started at the same moment" in one.text for one in refused)
            for node, one in zip((first, second), ended, strict=True):
                assert (node.stored() is None) == (one is not None), "who is refused leaves no record"
                assert node.page.is_valid() == (one is None)


# --- leases of other lengths -------------------------------------------------------------------------


@pytest.mark.parametrize("times", [LeaseTimes.of_lease(TIMES.lease_ms * 3), LeaseTimes.of_lease(TIMES.lease_ms // 2)])
def test_a_node_with_another_lease_than_a_living_one_does_not_start(times: LeaseTimes) -> None:
    async def test() -> None:
        async with nodes("n1") as [one]:
            await one.start()
            other = Node(one.store, "n2", times)
            try:
                with pytest.raises(HostError, match=r"node n1 has a lease of .* start all nodes with the same --lease"):
                    await other.start()
                assert other.stored() is None
            finally:
                other.page.close()

    run(test())


def test_of_two_nodes_with_different_leases_that_start_at_the_same_moment_one_lives_at_most() -> None:
    async def test() -> None:
        async with nodes("n1") as [first]:
            second = Node(first.store, "n2", LeaseTimes.of_lease(TIMES.lease_ms * 2))
            both_looked = threading.Barrier(2)

            def meets_the_other(call: str, key: str) -> None:
                if call == "create" and key.startswith("nodes/"):
                    both_looked.wait()

            first.before = second.before = meets_the_other
            try:
                ended = await asyncio.gather(first.start(), second.start(), return_exceptions=True)
                refused = [one for one in ended if one is not None]
                assert refused
                assert all(isinstance(one, HostError) and "same --lease" in one.text for one in refused)
            finally:
                await second.coordination.withdraw()
                second.page.close()

    run(test())


def test_a_dead_nodes_longer_lease_is_waited_for() -> None:
    async def test() -> None:
        async with nodes("n1") as [node]:
            longer_ms = TIMES.lease_ms * 4
            dead = NodeRecord("ff" * 16, "n2", 90, "", lease_ms=longer_ms)
            node.store.create_key(dead.key, encode_record(dead))
            began_ms = boot_ms()
            await node.start()
            assert boot_ms() - began_ms >= longer_ms * 11 // 10
            await node.heard.until(lambda: dead.key in node.heard.ended, "its end")

    run(test())


# --- clocks --------------------------------------------------------------------------------------------


def write_clock(store: CasMemory, record: NodeRecord, system: int) -> None:
    found = store.read_key(record.key)
    value = encode_record(replace(record, system_ms=system))
    if found is None:
        store.create_key(record.key, value)
    else:
        store.put_key(record.key, value, found.version)


@pytest.mark.parametrize(("ahead_ms", "how"), [(31_500, "behind"), (-31_500, "ahead of"), (28_000, ""), (-28_000, "")])
def test_a_node_whose_clock_is_wrong_does_not_start(ahead_ms: int, how: str) -> None:
    async def test() -> None:
        async with nodes("n1") as [node]:
            record, slower = (NodeRecord("", name, 90, "") for name in ("n2", "n3"))

            def renew(_call: str, key: str) -> None:
                if key == "nodes":
                    write_clock(node.store, record, system_ms() + ahead_ms)
                    write_clock(node.store, slower, system_ms() + ahead_ms - 9_000)

            node.before = renew
            if not how:
                await node.start()
                return
            with pytest.raises(HostError, match=f"31 s {how} that of node n2.*chrony"):
                await node.start()

    run(test())


def test_service_and_folder_name_each_other() -> None:
    store = CasMemory()
    node = Node(store, "n1")
    try:
        service_id = node.coordination.start_calls.claim_folder("folder", "")
        assert node.coordination.start_calls.claim_folder("folder", "") == service_id
        assert node.coordination.start_calls.claim_folder("folder", service_id) == service_id
        with pytest.raises(HostError, match="is not the service that guards this data folder"):
            node.coordination.start_calls.claim_folder("folder", "another")
        with pytest.raises(HostError, match="has the records of the cluster folder, and this data folder is copy"):
            node.coordination.start_calls.claim_folder("copy", "")
    finally:
        node.page.close()
    fresh = Node(CasMemory(), "n1")
    try:
        with pytest.raises(HostError, match=r"knows nothing of this data folder.* remove the file CLUSTER"):
            fresh.coordination.start_calls.claim_folder("folder", service_id)
        assert fresh.coordination.start_calls.claim_folder("folder", "") != service_id
    finally:
        fresh.page.close()


def test_of_nodes_that_claim_a_service_at_the_same_moment_all_get_one_identity() -> None:
    store = CasMemory()
    lost = iter(["create"] * 3)

    def loses_answers(call: str, key: str) -> None:
        if call == next(lost, ""):
            raise CasOutcomeUnknown(key, "a test")

    found: list[str] = []
    claimers = [Node(store, f"n{number}") for number in range(6)]
    claimers[0].after = loses_answers
    threads = [
        threading.Thread(target=lambda node=one: found.append(node.coordination.start_calls.claim_folder("folder", "")))
        for one in claimers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert len(set(found)) == 1
    for node in claimers:
        node.page.close()


def test_the_clock_of_a_dead_node_refuses_nobody() -> None:
    async def test() -> None:
        async with nodes("n1") as [node]:
            for name, system in (("dead", system_ms() + 3_600_000), ("older", 0)):
                write_clock(node.store, NodeRecord("", name, 90, ""), system)
            await node.start()

    run(test())


def test_the_time_of_the_cluster_goes_on_if_a_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    shift = {"ms": 0}
    for module in (candidate_thread, renewal_thread):
        monkeypatch.setattr(module, "system_ms", lambda: system_ms() + shift["ms"])

    async def test() -> None:
        async with nodes("n1") as [node]:
            await node.start()
            for shift["ms"], ahead_ms in (
                (0, 0), (-20_000, 0), (-10_000, 0), (5_000, 5_000), (-5_000, 5_000), (-29_000, -29_000)
            ):  # fmt: skip
                await cluster_time(node, ahead_ms)
            record = node.coordination.nodes[node.record.key]
            assert record.cluster_ms >= record.system_ms

    run(test())


async def cluster_time(node: Node, ahead_ms: int) -> None:
    """Wait until the cluster's time is so far ahead of the true time, and stays so for some renewals and polls."""
    matches = 0
    async with asyncio.timeout(40):
        while matches < 5:
            await asyncio.sleep(0.1)
            is_so = abs(node.page.read_cluster_ms() - system_ms() - ahead_ms) < 1_000
            matches = matches + 1 if is_so else 0


def test_a_node_runs_ahead_as_the_fastest_node_does() -> None:
    async def test() -> None:
        async with nodes("n1") as [node]:
            await node.start(may_lead=False)  # or it would fence the other one
            fast = NodeRecord("", "n2", 90, "")
            for ahead_ms, least_ms in ((7_000, 7_000), (3_000, 7_000), (9_000, 9_000), (31_000, 9_000)):
                fast = replace(fast, cluster_ms=system_ms() + ahead_ms)
                write_clock(node.store, fast, system_ms())
                await cluster_time(node, least_ms)

    run(test())
