"""Records of the mounts of nodes: written before a node leads, kept after its death, gone after a withdrawal."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from columnar.coordination import node_coordination
from columnar.coordination.cas import CasOutcomeUnknown
from tests.support.coordinated_nodes import nodes, run


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
