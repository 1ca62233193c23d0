"""The catalogue's region when its disk fails: nothing follows an unknown outcome, and it stops in every state."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from columnar import standalone_catalogue
from columnar.errors import HostError, OutcomeUnknown
from columnar.master.catalogue import META_REGION_ID, META_SCHEMA, Catalogue
from columnar.model.region_info import RegionInfo
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.standalone_catalogue import MetaRegion
from columnar.storage.commit import Committer
from columnar.storage.memory import MemoryEngine
from tests.support.held_engine import FakeClock, HeldEngine

PATH = "regions/meta"


class Kept:
    """A catalogue in memory; ``opens`` says whether its store can be opened."""

    def __init__(self, memory: MemoryEngine) -> None:
        self.memory, self.opens, self.tries = memory, True, 0
        self.engine = HeldEngine(memory)
        self.gate = self.engine.gate
        self.committer = Committer(asyncio.get_running_loop(), threads=2)
        self.server = RegionServer(self.engine, "regions", self.committer, FakeClock())
        self.meta = MetaRegion(self._opened)
        self.catalogue = Catalogue(self.meta.read_all, self.meta.write)
        self.meta.changes_wanted = self.catalogue.mending
        self.told: list[bool] = []  # whether it could be written when it was told to be mended
        self.meta.on_mended = [lambda: self.told.append(self.is_sound)]

    def _opened(self) -> Region:
        self.tries += 1
        if not self.opens:
            raise HostError("the disk is gone")
        info = RegionInfo(META_SCHEMA.name, META_REGION_ID)
        return Region(self.engine, PATH, info, META_SCHEMA, self.committer, FakeClock())

    @property
    def is_sound(self) -> bool:
        try:
            return self.meta.region.is_open
        except HostError:
            return False

    async def break_it(self) -> None:
        self.gate.fail()
        with pytest.raises(OutcomeUnknown):
            await self.catalogue.create_namespace("lost")
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
        await self.meta.close(self.server.quiesce)
        self.committer.close()


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Kept], Awaitable[None]]], list[str]]:
    """Runs the test, closes the catalogue; what namespaces another start finds."""
    monkeypatch.setattr(standalone_catalogue, "RETRY_S", 0.005)

    def run(test: Callable[[Kept], Awaitable[None]]) -> list[str]:
        async def main() -> list[str]:
            memory = MemoryEngine()
            kept, loop = Kept(memory), asyncio.get_running_loop()
            unhandled: list[object] = []
            loop.set_exception_handler(lambda _, context: unhandled.append(context))
            async with asyncio.timeout(20):
                await kept.catalogue.create_namespace("held")
                await test(kept)
                await kept.close()
                tries = kept.tries
                await asyncio.sleep(0.02)
            assert kept.tries == tries, "once it is closed nobody opens it any more"
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert unhandled == []
            again = Kept(memory)
            found = sorted(again.catalogue.namespaces - {"default", "columnar"})
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
            await kept.catalogue.create_namespace("refused")
        assert kept.told == []
        kept.gate.release()
        await kept.until_mended()
        assert kept.told == [True], "whoever is told may write"
        await kept.catalogue.create_namespace("later")
        assert kept.told == [True]

    assert kept(test) == ["held", "later"]


def test_it_breaks_and_is_mended_again_and_again(kept: Run) -> None:
    async def test(kept: Kept) -> None:
        for n in range(3):
            await kept.break_it()
            kept.gate.release()
            await kept.until_mended()
            kept.told.clear()
            await kept.catalogue.create_namespace(f"n{n}")

    assert kept(test) == ["held", "n0", "n1", "n2"]


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
            await kept.catalogue.create_namespace("refused")
        closing = asyncio.ensure_future(kept.meta.close(kept.server.quiesce))
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


def test_it_is_closed_with_a_change_under_way(kept: Run) -> None:
    async def test(kept: Kept) -> None:
        kept.gate.hold()
        change = asyncio.ensure_future(kept.catalogue.create_namespace("last"))
        await asyncio.to_thread(kept.gate.entered.wait, 10)
        closing = asyncio.ensure_future(kept.meta.close(kept.server.quiesce))
        await asyncio.sleep(0)
        assert not closing.done()
        kept.gate.release()
        await closing
        await change

    assert kept(test) == ["held", "last"]
