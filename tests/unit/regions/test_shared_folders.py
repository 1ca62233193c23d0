"""Folders on a shared file system are prepared in threads, before the engine opens them and in order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from columnar.errors import FolderTakenOver, HostError, NotServingRegion
from columnar.model.owner import Owner, OwnershipPeriod, first_owner
from columnar.regions.life import assigned_openings, shared_folders
from columnar.regions.life.region_state import State
from columnar.regions.life.shared_folders import SharedFolders
from columnar.storage.region_folders import RegionFolders
from columnar.storage.rocks import RocksEngine
from columnar.storage.warming import TABLE_END_BYTES, warm
from tests.support.owned_regions import DEAD, FIRST, HERE, LEADER, REGIONS, House

Step = tuple[str, str, int]


class SlowFolders(RegionFolders):
    """The takeovers of a file system that answers when a test lets it."""

    def __init__(self, house: House) -> None:
        super().__init__("regions", house.engine)
        self.use_generations(house.owning.generation_of)
        self.steps: list[Step] = []
        self.answers = threading.Semaphore(0)
        self.failure: Exception | None = None
        self.running = self.most = 0
        self._lock = threading.Lock()

    def take_over(self, encoded: str, generation: int, epoch: int) -> bool:
        with self._lock:
            self.steps.append((f"begins {epoch}", encoded, generation))
            self.running += 1
            self.most = max(self.most, self.running)
        assert self.answers.acquire(timeout=20)
        with self._lock:
            self.running -= 1
            self.steps.append((f"ends {epoch}", encoded, generation))
        if self.failure is not None:
            raise self.failure
        return True

    def remove_older(self, encoded: str, generation: int) -> None:
        self.steps.append(("removes", encoded, generation))


def run(check: Callable[[House, SlowFolders], Awaitable[None]]) -> None:
    async def main() -> None:
        house = House()
        folders = SlowFolders(house)
        house.server.folders.use_generations(house.owning.generation_of)
        queue = house.server.openings
        queue.shared_folders = SharedFolders(folders, house.owning.generation_of, house.owning.load_logs)
        async with asyncio.timeout(20):
            await check(house, folders)
            for _ in range(100):
                folders.answers.release()
            house.owning.check_invariants()
            await house.close()

    asyncio.run(main())


async def begun(folders: SlowFolders, count: int = 1) -> None:
    while sum(step.startswith("begins") for step, _, _ in folders.steps) < count:  # noqa: ASYNC110 - threads do it
        await asyncio.sleep(0.001)


def test_a_request_waits_until_the_folder_was_taken_over_and_the_loop_does_not() -> None:
    async def check(house: House, folders: SlowFolders) -> None:
        await house.open(Owner(HERE, 5, generation=2))  # nothing is unreplayed: it may serve
        put = asyncio.ensure_future(house.put())
        await begun(folders)
        assert not put.done()
        assert house.engine.claims == [], "the engine waits for the folder"
        await house.open(first_owner(HERE), REGIONS[1])  # of generation 0: another region is opened meanwhile
        await house.region(REGIONS[1])
        folders.answers.release()
        await put
        assert folders.steps[:2] == [("begins 5", FIRST.encoded, 2), ("ends 5", FIRST.encoded, 2)]
        await house.server.openings.shared_folders.close()  # type: ignore[union-attr]
        assert folders.steps[2:] == [("removes", FIRST.encoded, 2)]
        assert house.server.folder_of(FIRST).endswith(f"{FIRST.encoded}.2")

    run(check)


def test_a_preparation_is_noted_while_its_thread_works_well_or_not() -> None:
    """The files are read there for the first time, so a region that ends its server may do so there."""

    async def check(house: House, folders: SlowFolders) -> None:
        noted: list[int] = []
        shared = house.server.openings.shared_folders
        assert shared is not None
        shared.on_preparing, shared.on_ended = noted.append, noted.remove
        await house.open(Owner(HERE, 5, generation=2))
        for failure in (HostError("the disk is full"), None):
            folders.failure = failure
            put = asyncio.ensure_future(house.put())
            await begun(folders, 1 if failure else 2)
            assert noted == [FIRST.region_id]
            folders.answers.release()
            await asyncio.wait([put])
            assert noted == []

    run(check)


def test_a_region_that_lacks_logs_is_recovered_after_the_takeover() -> None:
    async def check(house: House, folders: SlowFolders) -> None:
        owner = Owner(HERE, 9, 1, unreplayed_logs=(OwnershipPeriod(DEAD, 7),))
        asked = asyncio.ensure_future(house.open(owner, FIRST, (DEAD, ())))
        await begun(folders)
        assert not asked.done()
        assert house.logs.dead_logs.of("s2.3") is not None
        folders.answers.release()
        await asked
        assert len(house.engine.claims) == 1

    run(check)


def test_a_failed_takeover_reaches_the_request_and_the_next_one_tries_again() -> None:
    async def check(house: House, folders: SlowFolders) -> None:
        await house.open(Owner(HERE, 5, generation=2))
        folders.failure = HostError("the disk is full")
        folders.answers.release()
        with pytest.raises(HostError, match="the disk is full"):
            await house.put()
        assert house.reports, "the master hears of it"
        folders.failure = FolderTakenOver(FIRST.encoded, 2, 3)
        folders.answers.release()
        with pytest.raises(NotServingRegion, match="another server owns the region"):
            await house.put()
        folders.failure = None
        folders.answers.release()
        await house.put()

    run(check)


@pytest.mark.parametrize("lacks", [True, False], ids=["with logs", "without logs"])
def test_a_region_is_closed_when_the_thread_of_its_called_off_opening_has_ended(lacks: bool) -> None:
    """The next owner may work on a folder of the same generation, and removes what this one was making."""

    async def check(house: House, folders: SlowFolders) -> None:
        unreplayed = (OwnershipPeriod(DEAD, 4),) if lacks else ()
        opening = asyncio.ensure_future(house.open(Owner(HERE, 5, 1, unreplayed_logs=unreplayed), FIRST, (DEAD, ())))
        put = asyncio.ensure_future(house.put()) if not lacks else opening
        await begun(folders)
        closing = asyncio.ensure_future(house.close_at(5))
        for _ in range(20):
            await asyncio.sleep(0)
        held = house.server.hosting.state.holdings(LEADER)
        assert held is not None
        assert (closing.done(), held.closed, held.leaving) == (False, (), ((FIRST.region_id, 5),))
        folders.answers.release()
        assert (await closing).epoch == 5
        assert folders.steps == [("begins 5", FIRST.encoded, 1), ("ends 5", FIRST.encoded, 1)]
        with pytest.raises(NotServingRegion):
            await put
        folders.answers.release()
        await house.open(Owner(HERE, 7, 2, unreplayed_logs=(OwnershipPeriod(DEAD, 4),)), FIRST)
        assert folders.steps[2:4] == [("begins 7", FIRST.encoded, 2), ("ends 7", FIRST.encoded, 2)]
        assert len(house.engine.claims) == 1, "at epoch 7 only"

    run(check)


def test_a_dropped_region_is_closed_when_the_thread_of_its_opening_has_ended() -> None:
    async def check(house: House, folders: SlowFolders) -> None:
        await house.open(Owner(HERE, 5, generation=1))
        put = asyncio.ensure_future(house.put())
        await begun(folders)
        put.cancel()  # no request reaches a table that is dropped
        closings = [
            asyncio.ensure_future(house.server.close_regions([FIRST])),
            asyncio.ensure_future(house.server.close_table(FIRST.table)),
        ]
        for _ in range(20):
            await asyncio.sleep(0)
        assert [closing.done() for closing in closings] == [False, False]
        folders.answers.release()
        await asyncio.gather(*closings)
        assert folders.steps == [("begins 5", FIRST.encoded, 1), ("ends 5", FIRST.encoded, 1)]

    run(check)


@pytest.mark.parametrize("openings", [2, 4])
def test_few_threads_wait_for_a_folder_that_stalls(monkeypatch: pytest.MonkeyPatch, openings: int) -> None:
    monkeypatch.setattr(shared_folders, "AT_ONCE", 2)
    monkeypatch.setattr(assigned_openings, "AT_ONCE", openings)

    async def check(house: House, folders: SlowFolders) -> None:
        for info in REGIONS:
            await house.open(Owner(HERE, 5, generation=1), info)
        await begun(folders, 2)
        for _ in REGIONS:
            folders.answers.release()
        for info in REGIONS:
            await house.region(info)
        assert folders.most == 2
        assert all(house.server.hosting.state.state(info.region_id) is State.OPEN for info in REGIONS)

    run(check)


def test_warming_reads_all_but_the_beginnings_of_large_tables(tmp_path: Path) -> None:
    (tmp_path / "CURRENT").write_bytes(b"x" * 10)
    (tmp_path / "000001.log").write_bytes(b"x" * (3 << 20))
    (tmp_path / "000002.sst").write_bytes(b"x" * (5 << 20))
    (tmp_path / "000003.sst").write_bytes(b"x" * 7)
    (tmp_path / "LOG").write_bytes(b"x" * 100)
    assert warm(str(tmp_path)) == 10 + (3 << 20) + TABLE_END_BYTES + 7
    assert warm(str(tmp_path / "none")) == 0


def test_a_server_opens_what_it_took_over(tmp_path: Path) -> None:
    """With the real engine: the older folder is gone when the region is open."""
    folders = RegionFolders(str(tmp_path / "regions"), RocksEngine(cache_bytes=1 << 20))
    generations = {FIRST.encoded: 0}
    folders.use_generations(generations.__getitem__)
    folders.make([FIRST.encoded])
    folders._engine.open_store(folders.path(FIRST.encoded), frozenset({"a"})).close()

    async def no_logs(_region_id: int) -> None:
        return

    async def main() -> None:
        shared = SharedFolders(folders, generations.__getitem__, no_logs)
        generations[FIRST.encoded] = 3
        prepared: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        shared.prepare_folder(FIRST, 8, lambda _info, failure: prepared.set_result(failure))
        assert await prepared is None
        folders._engine.open_store(folders.path(FIRST.encoded), frozenset({"a"})).close()
        shared.clean_up(FIRST)
        await shared.close()

    asyncio.run(main())
    assert [path.name for path in (tmp_path / "regions").iterdir()] == [f"{FIRST.encoded}.3"]
