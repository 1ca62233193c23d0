"""The catalogue's region when its disk fails: nothing follows an unknown outcome, and it stops in every state."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from columnar.errors import HostError, OutcomeUnknown, RetryLater
from columnar.master.catalogue import META_REGION_ID, META_SCHEMA, Catalogue
from columnar.model.region_info import RegionInfo
from columnar.regions.life.opening import opened
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.roles import meta_region
from columnar.roles.meta_region import CatalogueTerms, MetaRegion
from columnar.storage.commit import Committer
from columnar.storage.memory import MemoryEngine
from tests.support.held_engine import FakeClock, HeldEngine

PATH = "regions/meta"


class Changed:
    """A store, but for some methods."""

    def __init__(self, store: Any, **methods: Callable[..., None]) -> None:
        self._store = store
        self.__dict__.update(methods)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Kept:
    """A catalogue in memory; ``opens`` says whether its store can be opened."""

    def __init__(self, memory: MemoryEngine) -> None:
        self.memory, self.opens, self.tries = memory, True, 0
        self.engine = HeldEngine(memory)
        self.gate = self.engine.gate
        self.committer = Committer(asyncio.get_running_loop(), threads=2)
        self.clock = FakeClock()
        self.server = RegionServer(self.engine, "regions", self.committer, self.clock)
        self.meta = MetaRegion(self._opened)
        self.meta.open_meta()
        self.catalogue = Catalogue(self.meta.read_all(), self.meta.write_rows)
        self.meta.repairs_wanted = self.catalogue.repairs
        self.told: list[bool] = []  # whether it could be written when it was told to be mended
        self.meta.on_repaired = [self.mended]
        self.heard: list[str] = []
        self.meta.on_unsound, self.meta.on_sound = self.heard.append, lambda: self.heard.append("")

    async def mended(self) -> None:
        self.told.append(self.is_sound)

    def _opened(self) -> Region:
        self.tries += 1
        if not self.opens:
            raise HostError("the disk is gone")
        info = RegionInfo(META_SCHEMA.name, META_REGION_ID)
        return opened(self.engine, PATH, info, META_SCHEMA, self.committer, self.clock)

    @property
    def is_sound(self) -> bool:
        try:
            return self.meta.region.is_open
        except HostError:
            return False

    async def break_it(self) -> None:
        self.gate.fail()
        with pytest.raises(OutcomeUnknown):
            await self.catalogue.namespaces.create_namespace("lost")
        assert not self.is_sound

    async def tried(self, more: int) -> None:
        wanted = self.tries + more
        while self.tries < wanted:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.001)

    async def until_mended(self) -> None:
        while not self.told:  # noqa: ASYNC110 - tells it
            await asyncio.sleep(0.001)

    async def close(self) -> None:
        self.gate.release()
        await self.server.close()
        await self.meta.close(self.server.hosting.quiesce)
        self.committer.close()


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Kept], Awaitable[None]]], list[str]]:
    """Runs the test, closes the catalogue; what namespaces another start finds."""
    monkeypatch.setattr(meta_region, "RETRY_S", 0.005)

    def run(test: Callable[[Kept], Awaitable[None]]) -> list[str]:
        async def main() -> list[str]:
            memory = MemoryEngine()
            kept, loop = Kept(memory), asyncio.get_running_loop()
            unhandled: list[object] = []
            loop.set_exception_handler(lambda _, context: unhandled.append(context))
            async with asyncio.timeout(20):
                await kept.catalogue.namespaces.create_namespace("held")
                await test(kept)
                await kept.close()
                tries = kept.tries
                await asyncio.sleep(0.02)
            assert kept.tries == tries, "once it is closed nobody opens it any more"
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert unhandled == []
            again = Kept(memory)
            found = sorted(again.catalogue.namespaces.names - {"default", "columnar"})
            await again.close()
            return found

        return asyncio.run(main())

    return run


Run = Callable[[Callable[[Kept], Awaitable[None]]], list[str]]


def test_it_is_mended_when_the_disk_takes_writes_again(kept: Run) -> None:
    async def test(kept: Kept) -> None:
        await kept.break_it()
        await kept.tried(2)
        with pytest.raises(HostError, match="until the disk takes writes of the catalogue"):
            await kept.catalogue.namespaces.create_namespace("refused")
        assert kept.told == []
        kept.gate.release()
        await kept.until_mended()
        assert kept.told == [True], "whoever is told may write"
        await kept.catalogue.namespaces.create_namespace("later")
        assert kept.told == [True]

    assert kept(test) == ["held", "later"]


def test_it_breaks_and_is_mended_again_and_again(kept: Run) -> None:
    async def test(kept: Kept) -> None:
        for n in range(3):
            await kept.break_it()
            kept.gate.release()
            await kept.until_mended()
            kept.told.clear()
            await kept.catalogue.namespaces.create_namespace(f"n{n}")

        said = "the disk refused to sync: the disk is gone"
        assert kept.heard == [said, "", said, "", said, ""]

    assert kept(test) == ["held", "n0", "n1", "n2"]


def test_changes_that_fail_together_are_one_failure(kept: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def test(kept: Kept) -> None:
        kept.gate.fail()
        failed = await asyncio.gather(
            *(kept.catalogue.namespaces.create_namespace(f"lost{n}") for n in range(3)), return_exceptions=True
        )
        assert [type(one) for one in failed] == [OutcomeUnknown] * 3
        kept.gate.release()
        await kept.until_mended()
        await asyncio.sleep(0.02)
        assert kept.told == [True]
        assert len(kept.heard) == 2, "and one that is over"
        assert kept.tries == 2, "it was opened once, and once anew"

    assert kept(test) == ["held"]
    assert [record.levelname for record in caplog.records] == ["CRITICAL", "WARNING"]


def test_an_engine_that_refuses_the_write_is_opened_anew(kept: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(kept: Kept) -> None:
        def refuse(_batch: object) -> None:
            raise HostError("the engine is broken")

        monkeypatch.setattr(kept.meta.region, "store", Changed(kept.meta.region.store, gather=refuse))
        with pytest.raises(HostError, match="the engine is broken"):
            await kept.catalogue.namespaces.create_namespace("lost")
        assert not kept.is_sound
        await kept.until_mended()
        await kept.catalogue.namespaces.create_namespace("later")

    assert kept(test) == ["held", "later"]


def test_the_highest_timestamp_that_was_read_is_known(kept: Run) -> None:
    """Later changes must lie above it, or they would hide behind what they replace."""

    async def test(kept: Kept) -> None:
        for kept.clock.now_ms in (5_000, 9_000, 7_000):
            await kept.catalogue.namespaces.create_namespace(f"n{kept.clock.now_ms}")
        list(kept.meta.read_all())
        assert kept.meta.newest_ms == 9_000

    assert kept(test) == ["held", "n5000", "n7000", "n9000"]


def test_it_is_closed_between_two_tries(kept: Run) -> None:
    """Of its unknown change nobody knows: the next start finds it done or not."""

    async def test(kept: Kept) -> None:
        await kept.break_it()
        kept.opens = False
        await kept.tried(2)

    assert kept(test) in (["held"], ["held", "lost"])


@pytest.mark.parametrize("fails", [False, True])
def test_it_is_closed_while_it_is_mended(kept: Run, fails: bool) -> None:
    """Its fsync is waited for: nobody closes a store under it."""

    async def test(kept: Kept) -> None:
        await kept.break_it()
        kept.gate.hold()
        await asyncio.to_thread(kept.gate.entered.wait, 10)
        with pytest.raises(HostError, match="until the disk takes writes of the catalogue"):
            await kept.catalogue.namespaces.create_namespace("refused")
        closing = asyncio.ensure_future(kept.meta.close(kept.server.hosting.quiesce))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not closing.done()
        assert kept.engine.exists(PATH)
        kept.gate.fail() if fails else kept.gate.release()
        await closing

    assert kept(test) in (["held"], ["held", "lost"])


def test_it_is_closed_as_soon_as_it_failed(kept: Run) -> None:
    async def test(kept: Kept) -> None:
        await kept.break_it()

    assert kept(test) in (["held"], ["held", "lost"])


def test_it_is_closed_when_the_store_that_failed_is(kept: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens the folder next would find it open."""

    async def test(kept: Kept) -> None:
        store, may_close = kept.meta.region.store, threading.Event()

        def close() -> None:
            assert may_close.wait(10)
            store.close()

        monkeypatch.setattr(kept.meta.region, "store", Changed(store, close=close))
        await kept.break_it()
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(kept.meta.close(kept.server.hosting.quiesce))
        await asyncio.sleep(0.01)
        assert not closing.done()
        may_close.set()
        await closing

    assert kept(test) in (["held"], ["held", "lost"])


def test_a_caller_that_goes_takes_nothing_from_the_others(kept: Run) -> None:
    async def test(kept: Kept) -> None:
        await kept.catalogue.namespaces.create_namespace("first")
        kept.gate.hold()
        gone, stays = (
            asyncio.ensure_future(kept.catalogue.namespaces.create_namespace(name)) for name in ("gone", "stays")
        )
        await asyncio.to_thread(kept.gate.entered.wait, 10)
        gone.cancel()
        await asyncio.wait([gone])
        kept.gate.release()
        await stays

    assert kept(test) == ["first", "gone", "held", "stays"]


def test_it_is_closed_with_a_change_under_way(kept: Run) -> None:
    async def test(kept: Kept) -> None:
        kept.gate.hold()
        change = asyncio.ensure_future(kept.catalogue.namespaces.create_namespace("last"))
        await asyncio.to_thread(kept.gate.entered.wait, 10)
        closing = asyncio.ensure_future(kept.meta.close(kept.server.hosting.quiesce))
        await asyncio.sleep(0)
        assert not closing.done()
        kept.gate.release()
        await closing
        await change

    assert kept(test) == ["held", "last"]


def test_who_cannot_be_told_of_a_repair_keeps_no_other_from_it(kept: Run) -> None:
    """Tables out of service, shut regions and half made triggers wait for it."""

    async def test(house: Kept) -> None:
        async def refuses() -> None:
            raise RetryLater("a server is stopping")

        house.meta.on_repaired.insert(0, refuses)
        await house.break_it()
        house.gate.release()
        await house.until_mended()
        assert house.told == [True]

    assert kept(test) == ["held"]


def test_a_write_waits_until_it_would_not_stall_the_loop() -> None:
    """As while the data folder does not answer: the engine would hold the loop for as long."""

    async def scenario() -> None:
        kept = Kept(MemoryEngine())
        answers = asyncio.Event()

        async def until_writable() -> None:
            await answers.wait()

        kept.meta._terms = CatalogueTerms(until_writable)
        raised = asyncio.ensure_future(kept.catalogue.ownership.raise_epoch())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not raised.done()
        assert list(kept.meta.read_all()) == []
        answers.set()
        assert await raised == kept.catalogue.ownership.epoch
        assert [row for row, _ in kept.meta.read_all()] == [b"e"]

    asyncio.run(scenario())
