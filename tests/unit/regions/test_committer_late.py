"""The fsync is over and the loop too busy to hear of it: what it does meanwhile begins the next one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from columnar.errors import OutcomeUnknown
from columnar.runtime.immediate_future import ImmediateFuture
from columnar.storage import commit, shared_rounds
from columnar.storage.api import Store, StoreBusy
from columnar.storage.commit import Committer
from columnar.storage.memory import MemoryEngine
from tests.support.held_engine import Gate, HeldEngine


class Late:
    """A store whose first fsync is over, with a writer that waits for the next; the loop has not been told."""

    def __init__(self, committer: Committer, store: Store, gate: Gate) -> None:
        self.committer = committer
        self.store = store
        self.gate = gate
        self.over = threading.Event()  # a thread has told the loop of the end of a sync
        self.broken: list[str] = []
        committer.on_broken = lambda _store, failure: self.broken.append(failure.text)

    def again(self) -> ImmediateFuture:
        """A write in the turn that goes on."""
        return self.committer.durable(self.store)


class AskedLog:
    """A server's log, as far as the question whether it is used."""

    is_ready = True
    era = b"era"
    asked = 0

    def has_room(self) -> bool:
        self.asked += 1
        return True

    def stamp(self) -> int:
        return 1


@asynccontextmanager
async def late(
    monkeypatch: pytest.MonkeyPatch, end: Callable[[Gate], None] = Gate.release, log: Any = None
) -> AsyncIterator[Any]:
    loop = asyncio.get_running_loop()
    tell = loop.call_soon_threadsafe
    engine = HeldEngine(MemoryEngine())
    committer = Committer(loop, log=log)
    house = Late(committer, engine.open_store("s", frozenset({"a"})), engine.gate)

    def told(*arguments: Any, **named: Any) -> Any:
        try:
            return tell(*arguments, **named)
        finally:
            house.over.set()

    engine.gate.hold()
    first = committer.durable(house.store)
    await asyncio.to_thread(engine.gate.entered.wait, 10)
    second = committer.durable(house.store)
    monkeypatch.setattr(loop, "call_soon_threadsafe", told)
    engine.gate.entered.clear()
    house.over.clear()
    end(engine.gate)
    assert house.over.wait(10)  # this thread is the loop's: it hears nothing
    yield house, first, second
    committer.close()


def run(monkeypatch: pytest.MonkeyPatch, check: Callable[..., Any], busy_s: float = -1.0, **how: Any) -> None:
    monkeypatch.setattr(shared_rounds, "BUSY_S", busy_s)

    async def main() -> None:
        async with late(monkeypatch, **how) as (house, first, second):
            await check(house, first, second)

    asyncio.run(main())


def test_a_write_in_a_long_turn_begins_the_next_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(house: Late, first: ImmediateFuture, second: ImmediateFuture) -> None:
        ended: list[str] = []
        first.add_callback(lambda _: ended.append("first"))
        second.add_callback(lambda _: ended.append("second"))
        house.gate.hold()
        assert house.again() is second, "it was gathered before that fsync began"
        assert house.gate.entered.wait(10)
        assert house.gate.syncs == 2
        assert not first.done()
        third = house.again()
        assert third is not second, "that fsync began before this write"
        third.add_callback(lambda _: ended.append("third"))
        await first
        assert ended == ["first"]
        assert not house.committer.is_idle(house.store)
        house.gate.release()
        await third
        assert ended == ["first", "second", "third"]
        assert house.committer.syncs == house.gate.syncs == 3
        assert house.committer.is_idle(house.store)

    run(monkeypatch, check)


def test_several_fsyncs_may_end_before_the_loop_hears_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(house: Late, first: ImmediateFuture, second: ImmediateFuture) -> None:
        ended: list[int] = []

        def note(number: int, _: object) -> None:
            ended.append(number)

        asked = [first, second]
        for _ in range(5):
            house.over.clear()
            house.again()
            assert house.over.wait(10)
            asked.append(house.again())
        for number, future in enumerate(asked):
            future.add_callback(partial(note, number))
        await asked[-1]
        assert ended == list(range(len(asked))), "in the order in which they were asked for"
        assert house.committer.is_idle(house.store)
        once = house.again()
        await once
        assert house.committer.is_idle(house.store)

    run(monkeypatch, check)


def test_stores_that_are_synced_count_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    log = AskedLog()

    async def check(house: Late, _first: ImmediateFuture, second: ImmediateFuture) -> None:
        for _ in range(5):
            house.over.clear()
            house.again()
            assert house.over.wait(10)
            second = house.again()
        await second
        await house.again()
        assert log.asked == 0, "one store alone does not share an fsync"

    run(monkeypatch, check, log=log)


def test_an_fsync_that_others_share_is_not_begun_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "SHARED_FROM", 0)

    async def check(house: Late, _first: ImmediateFuture, second: ImmediateFuture) -> None:
        assert house.again() is second
        assert house.committer.syncs == 1
        await second
        assert house.committer.syncs == 2

    run(monkeypatch, check, log=AskedLog())


def test_after_a_late_end_writers_of_one_turn_share_one_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(house: Late, _first: ImmediateFuture, second: ImmediateFuture) -> None:
        house.over.clear()
        assert house.again() is second
        assert house.over.wait(10)
        await second
        together = {house.again(), house.again()}
        assert house.committer.syncs == 2, "nothing runs that might be late"
        assert len(together) == 1
        await together.pop()
        assert house.committer.syncs == 3

    run(monkeypatch, check)


def test_a_loop_that_hears_of_it_soon_lets_others_join(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(house: Late, _first: ImmediateFuture, second: ImmediateFuture) -> None:
        assert house.again() is second
        assert house.committer.syncs == 1
        await second
        assert house.committer.syncs == 2

    run(monkeypatch, check, busy_s=60.0)


def test_what_the_loop_was_late_to_hear_waits_for_no_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(house: Late, first: ImmediateFuture, _second: ImmediateFuture) -> None:
        syncs: list[int] = []
        first.add_callback(lambda _: syncs.append(house.committer.syncs))
        await first
        assert syncs == [2]

    run(monkeypatch, check)


def test_an_engine_that_is_behind_is_asked_again_when_the_loop_hears(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(house: Late, _first: ImmediateFuture, second: ImmediateFuture) -> None:
        def busy() -> None:
            raise StoreBusy("behind")

        with monkeypatch.context() as behind:
            behind.setattr(house.store, "settle", busy, raising=False)
            assert house.again() is second
            assert house.committer.syncs == 1
        await second
        assert house.committer.syncs == house.gate.syncs == 2

    run(monkeypatch, check)


def test_one_that_begins_at_once_and_is_over_begins_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(house: Late, _first: ImmediateFuture, second: ImmediateFuture) -> None:
        await second
        submit = house.committer._threads.submit

        def submit_and_wait(*what: Any) -> Any:
            running = submit(*what)
            running.result(10)
            return running

        monkeypatch.setattr(house.committer._threads, "submit", submit_and_wait)
        third = house.again()  # alone: its fsync begins at once, and is over before this line is
        assert house.committer.syncs == 3
        await third
        assert house.committer.is_idle(house.store)

    run(monkeypatch, check)


def test_a_failed_fsync_begins_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(house: Late, first: ImmediateFuture, second: ImmediateFuture) -> None:
        assert house.again() is second
        for future in (first, second):
            with pytest.raises(OutcomeUnknown):
                await future
        assert house.gate.syncs == 1
        assert house.broken == ["the disk is gone"]

    run(monkeypatch, check, end=Gate.fail)


def test_one_that_fails_after_an_early_begin_breaks_the_store_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(house: Late, first: ImmediateFuture, second: ImmediateFuture) -> None:
        house.gate.hold()
        house.again()
        assert house.gate.entered.wait(10)
        third = house.again()
        house.gate.fail()
        await first
        for future in (second, third):
            with pytest.raises(OutcomeUnknown):
                await future
        assert house.broken == ["the disk is gone"]
        assert house.committer.is_idle(house.store)

    run(monkeypatch, check)


def test_an_end_whose_thread_is_interrupted_comes_before_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop sees that it is over, begins the next one, and is told of the end of that first."""
    monkeypatch.setattr(shared_rounds, "BUSY_S", -1.0)

    async def main() -> None:
        loop, engine, is_over = asyncio.get_running_loop(), HeldEngine(MemoryEngine()), threading.Event()
        tell, interrupted = loop.call_soon_threadsafe, list[tuple[Any, ...]]()

        def told(*arguments: Any) -> None:
            if interrupted:
                tell(*arguments)
                tell(*interrupted[0])
            else:
                interrupted.append(arguments)
                is_over.set()

        committer, ended = Committer(loop), list[str]()
        store = engine.open_store("s", frozenset({"a"}))
        engine.gate.hold()
        first = committer.durable(store)
        await asyncio.to_thread(engine.gate.entered.wait, 10)
        second = committer.durable(store)
        monkeypatch.setattr(loop, "call_soon_threadsafe", told)
        engine.gate.release()
        assert is_over.wait(10)
        assert committer.durable(store) is second, "it is begun now"
        first.add_callback(lambda _: ended.append("first"))
        second.add_callback(lambda _: ended.append("second"))
        await second
        await first
        assert ended == ["first", "second"]
        assert committer.is_idle(store)
        monkeypatch.undo()
        await committer.durable(store)
        committer.close()

    asyncio.run(main())
