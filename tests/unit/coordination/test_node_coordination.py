"""Nodes over one compare-and-set store in memory: leases, elections, ends, fences, withdrawals, a service that fails.

The threads are real, and so is time: leases are short.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from columnar.clock import system_ms
from columnar.coordination import candidate_thread, renewal_thread, service_thread
from columnar.coordination.api import NotLeading
from columnar.coordination.cas import CasOutcomeUnknown, CasRefused, CasUnavailable
from columnar.coordination.cas_memory import CasMemory
from columnar.coordination.election import LEADER
from columnar.coordination.lease_page import boot_ms
from columnar.coordination.node_record import (
    decode_leader_record,
)
from tests.support.coordinated_nodes import LONG, RARELY, TIMES, Node, nodes, run


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
