"""Group commit: many writers, few fsyncs, none acknowledged by an fsync that began before its write."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

import pytest

from columnar.errors import OutcomeUnknown
from columnar.runtime.immediate_future import ImmediateFuture
from columnar.storage import commit, shared_rounds
from columnar.storage.commit import FEW, Committer
from columnar.storage.memory import MemoryEngine
from tests.support.held_engine import HeldEngine


@pytest.fixture(autouse=True)
def a_loop_that_hears_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy this machine is: what a late loop does differently is test_committer_late's."""
    monkeypatch.setattr(shared_rounds, "BUSY_S", math.inf)


def test_writers_of_one_turn_share_one_fsync() -> None:
    async def main() -> None:
        engine = HeldEngine(MemoryEngine())
        committer = Committer(asyncio.get_running_loop())
        store = engine.open_store("s", frozenset({"a"}))
        futures = [committer.durable(store) for _ in range(100)]
        assert len(set(map(id, futures))) == 1
        await futures[0]
        assert committer.syncs == 1
        assert committer.is_idle(store)
        committer.close()

    asyncio.run(main())


def test_writers_that_come_during_an_fsync_share_the_next_and_order_is_kept() -> None:
    async def main() -> None:
        engine = HeldEngine(MemoryEngine())
        committer = Committer(asyncio.get_running_loop())
        store = engine.open_store("s", frozenset({"a"}))
        ended: list[str] = []
        engine.gate.hold()
        first = committer.durable(store)
        first.add_done_callback(lambda _: ended.append("first"))
        await asyncio.to_thread(engine.gate.entered.wait, 10)
        later = {committer.durable(store) for _ in range(50)}
        (second,) = later
        second.add_done_callback(lambda _: ended.append("second"))
        assert not committer.is_idle(store)
        engine.gate.release()
        await second
        assert ended == ["first", "second"]
        assert engine.gate.syncs == 2
        committer.close()

    asyncio.run(main())


async def syncs_when_writers_return(turns: int, writers: int) -> int:
    """One half of the writers is answered while the other waits, and asks again some turns of the loop later."""
    engine = HeldEngine(MemoryEngine())
    committer = Committer(asyncio.get_running_loop())
    store = engine.open_store("s", frozenset({"a"}))
    engine.gate.hold()
    first = [committer.durable(store) for _ in range(writers // 2)]
    await asyncio.to_thread(engine.gate.entered.wait, 10)
    second = [committer.durable(store) for _ in range(writers - writers // 2)]
    engine.gate.release()
    await first[0]
    for _ in range(turns):
        await asyncio.sleep(0)
    again = [committer.durable(store) for _ in first]
    await second[0]
    await again[0]
    committer.close()
    return committer.syncs


def test_a_few_writers_are_waited_for_until_they_are_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "WAIT_S", 10.0)
    monkeypatch.setattr(commit, "WAIT_SHARE", 1e9)
    assert asyncio.run(syncs_when_writers_return(50, 8)) == 2
    assert asyncio.run(syncs_when_writers_return(50, 2 * FEW)) == 3, "many keep the loop busy: nobody is waited for"


def test_those_who_shared_one_fsync_share_the_next_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "WAIT_S", 10.0)
    monkeypatch.setattr(commit, "WAIT_SHARE", 1e9)

    async def main() -> None:
        store = MemoryEngine().open_store("s", frozenset({"a"}))
        committer = Committer(asyncio.get_running_loop())
        once, _, _, _ = (committer.durable(store) for _ in range(4))
        await once
        back = []
        for _ in range(4):
            back.append(committer.durable(store))
            for _ in range(20):
                await asyncio.sleep(0)
        await asyncio.wait(back)
        assert committer.syncs == 2
        committer.close()

    asyncio.run(main())


def test_writers_that_do_not_return_are_not_waited_for_long() -> None:
    async def main() -> None:
        store = MemoryEngine().open_store("s", frozenset({"a"}))
        committer = Committer(asyncio.get_running_loop())
        once, _, _, _ = (committer.durable(store) for _ in range(4))
        await once
        await asyncio.wait_for(committer.durable(store), 10)
        assert committer.syncs == 2
        committer.close()

    asyncio.run(main())


def test_stores_do_not_wait_for_each_other() -> None:
    async def main() -> None:
        slow, quick = HeldEngine(MemoryEngine()), HeldEngine(MemoryEngine())
        committer = Committer(asyncio.get_running_loop())
        slow.gate.hold()
        waiting = committer.durable(slow.open_store("s", frozenset({"a"})))
        await committer.durable(quick.open_store("q", frozenset({"a"})))
        assert not waiting.done()
        slow.gate.release()
        await waiting
        committer.close()

    asyncio.run(main())


def test_a_failed_fsync_is_not_repeated_and_the_store_counts_as_idle() -> None:
    async def main() -> None:
        engine = HeldEngine(MemoryEngine())
        committer = Committer(asyncio.get_running_loop())
        told: list[str] = []
        committer.on_broken = lambda _store, failure: told.append(failure.text)
        store = engine.open_store("s", frozenset({"a"}))
        engine.gate.hold()
        first = committer.durable(store)
        await asyncio.to_thread(engine.gate.entered.wait, 10)
        gathered = committer.durable(store)
        engine.gate.fail()
        for future in (first, gathered):
            with pytest.raises(OutcomeUnknown):
                await future
        engine.gate.release()
        with pytest.raises(OutcomeUnknown):
            await committer.durable(store)
        assert engine.gate.syncs == 1
        assert told == ["the disk is gone"]
        assert committer.is_idle(store), "else whoever closes it in order waits for ever"
        committer.forget_store(store)
        await committer.durable(store)
        committer.close()

    asyncio.run(main())


def test_a_closed_store_fails_its_writers() -> None:
    async def main() -> None:
        store = MemoryEngine().open_store("s", frozenset({"a"}))
        committer = Committer(asyncio.get_running_loop())
        store.close()
        with pytest.raises(OutcomeUnknown):
            await committer.durable(store)
        committer.close()

    asyncio.run(main())


def test_a_writer_that_was_alone_does_not_wait_for_the_end_of_the_turn() -> None:
    async def main() -> None:
        store = MemoryEngine().open_store("s", frozenset({"a"}))
        committer = Committer(asyncio.get_running_loop())
        first = committer.durable(store)
        assert committer.syncs == 0, "nobody knows yet whether others write in this turn"
        await first
        second = committer.durable(store)
        assert committer.syncs == 2
        shared = {committer.durable(store) for _ in range(2)}
        assert second not in shared, "that fsync began before they wrote"
        await asyncio.wait({second, *shared})
        assert committer.syncs == 3
        together = {committer.durable(store) for _ in range(2)}
        assert committer.syncs == 3, "they were two: the other may still write in this turn"
        await asyncio.wait(together)
        committer.close()

    asyncio.run(main())


@pytest.mark.parametrize("writers", [1, 2])
def test_who_hears_of_an_fsync_and_writes_at_once_waits_for_the_next(writers: int) -> None:
    async def main() -> None:
        store = MemoryEngine().open_store("s", frozenset({"a"}))
        committer = Committer(asyncio.get_running_loop())
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))
        first, *_ = (committer.durable(store) for _ in range(writers))
        again: list[ImmediateFuture] = []
        for _ in range(writers):
            first.add_callback(lambda _: again.append(committer.durable(store)))
        await first
        second = again[0]
        assert not second.done()
        await asyncio.wait_for(asyncio.gather(*map(asyncio.shield, again)), 10)
        await asyncio.wait_for(committer.durable(store), 10)
        assert committer.syncs == 2 + len(set(map(id, again)))
        assert reported == []
        committer.close()

    asyncio.run(main())


def test_the_store_counts_as_broken_before_its_writers_hear_of_it(
    expected_faults: Callable[[], dict[str, int]],
) -> None:
    async def main() -> None:
        engine = HeldEngine(MemoryEngine())
        committer = Committer(asyncio.get_running_loop())
        heard: list[str] = []

        def broken(_store: object, _failure: object) -> None:
            heard.append("broken")
            raise KeyError("whoever hears of it fails himself")

        committer.on_broken = broken
        store = engine.open_store("s", frozenset({"a"}))
        engine.gate.hold()
        first = committer.durable(store)
        first.add_callback(lambda _: heard.append("writer"))
        await asyncio.to_thread(engine.gate.entered.wait, 10)
        committer.durable(store).add_callback(lambda _: heard.append("gathered"))
        engine.gate.fail()
        with pytest.raises(OutcomeUnknown):
            await first
        assert heard == ["broken", "writer", "gathered"]
        assert expected_faults() == {"the committer": 1}
        committer.close()

    asyncio.run(main())
