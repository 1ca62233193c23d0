"""Starts of nodes beside others: names, numbers, leases of other lengths, wrong clocks, the identity of the service."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace

import pytest

from columnar.clock import system_ms
from columnar.coordination import candidate_thread, clock_check, node_coordination, renewal_thread, start_calls
from columnar.coordination.cas import CasOutcomeUnknown, CasRefused, CasUnavailable
from columnar.coordination.cas_memory import CasMemory
from columnar.coordination.lease import LeaseTimes
from columnar.coordination.lease_page import boot_ms
from columnar.coordination.node_record import (
    NUMBER,
    NodeRecord,
    encode_record,
)
from columnar.errors import HostError
from tests.support.coordinated_nodes import TIMES, Node, nodes, run


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
                assert time.monotonic() - began < 4.5, "a start waits 5 s where nothing bounds it"
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
        service_id = node.coordination.start_calls.claim_folder("folder", "", "/mnt")
        assert node.coordination.start_calls.claim_folder("folder", "", "/mnt") == service_id
        assert node.coordination.start_calls.claim_folder("folder", service_id, "/mnt") == service_id
        with pytest.raises(HostError, match="is not the service that guards this data folder"):
            node.coordination.start_calls.claim_folder("folder", "another", "/mnt")
        foreign = (
            "has the records of the cluster folder, and the data folder /mnt is copy: is the shared folder mounted"
        )
        with pytest.raises(HostError, match=foreign):
            node.coordination.start_calls.claim_folder("copy", "", "/mnt")
    finally:
        node.page.close()
    fresh = Node(CasMemory(), "n1")
    try:
        with pytest.raises(HostError, match=r"knows nothing of this data folder.* remove the file CLUSTER"):
            fresh.coordination.start_calls.claim_folder("folder", service_id, "/mnt")
        assert fresh.coordination.start_calls.claim_folder("folder", "", "/mnt") != service_id
    finally:
        fresh.page.close()


def test_an_empty_folder_of_a_guarded_cluster_is_taken_for_a_missing_mount() -> None:
    node = Node(CasMemory(), "n1")
    calls = node.coordination.start_calls
    try:
        calls.check_mounted("/mnt", lambda: True)  # the first node of a cluster
        calls.claim_folder("folder", "", "/mnt")
        missing = "has the records of the cluster folder, and /mnt has no store: is the shared folder mounted there"
        with pytest.raises(HostError, match=missing):
            calls.check_mounted("/mnt", lambda: True)
        made_meanwhile = iter([True, False])
        calls.check_mounted("/mnt", lambda: next(made_meanwhile))
        node.before = lambda _call, _key: pytest.fail("the folder has a store: the claim asks the service")
        calls.check_mounted("/mnt", lambda: False)
    finally:
        node.page.close()


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
        threading.Thread(
            target=lambda node=one: found.append(node.coordination.start_calls.claim_folder("folder", "", "/mnt"))
        )
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


def test_a_node_knows_how_far_its_clock_is_behind_the_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_check, "WINDOW_MS", 300)

    async def test() -> None:
        async with nodes("n1") as [node]:
            assert node.coordination.clock.offset_ms() == 0
            await node.start(may_lead=False)  # or it would fence the other ones
            fast, slow = NodeRecord("", "n2", 90, ""), NodeRecord("", "n3", 91, "")
            for ahead_ms in (-5_000, 7_000, 90_000, -40_000, 2_000):  # also a clock that is not followed
                write_clock(node.store, slow, system_ms() - 60_000)
                write_clock(node.store, fast, system_ms() + ahead_ms)
                await clock_offset(node, max(0, ahead_ms))

    run(test())


async def clock_offset(node: Node, offset_ms: int) -> None:
    """Wait until the node says that the fastest clock is so far ahead."""
    async with asyncio.timeout(40):
        while not -1_000 < node.coordination.clock.offset_ms() - offset_ms <= 1:  # noqa: ASYNC110 - of a thread
            await asyncio.sleep(0.02)


def test_the_offset_of_a_clock_is_the_highest_reading_of_a_while() -> None:
    window_ms, record = clock_check.WINDOW_MS, NodeRecord("", "n2", 90, "")
    clock = clock_check.ClusterClock()
    readings = []
    for at, offset_ms in ((0.1, -40), (0.2, 30), (0.3, 12), (1.1, 10), (1.2, 11), (2.2, 5), (3.3, -3), (4.4, -3)):
        clock.note([replace(record, system_ms=10**12 + offset_ms)], 10**12, round(at * window_ms))
        readings.append(clock.offset_ms())
    assert readings == [0, 30, 30, 30, 30, 11, 5, 0]
