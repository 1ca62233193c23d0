"""Where a region splits: the middle by bytes, on both engines, of small regions and of such as are not read."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from columnar.clock import StoreClock
from columnar.model.mutation import Put, RowMutation
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, make_table
from columnar.regions.life.opening import opened
from columnar.regions.region import Region
from columnar.regions.replace import region_changes as subject
from columnar.regions.replace.region_changes import Weight, middle_of, middle_row
from columnar.storage.commit import Committer
from columnar.storage.memory import MemoryEngine
from columnar.storage.rocks import RocksEngine

TABLE = make_table("t", [Family("a"), Family("b", max_versions=3)])


def test_the_middle_is_by_bytes_and_never_the_first() -> None:
    rows = [Weight(b"a", 10), Weight(b"b", 10), Weight(b"c", 10), Weight(b"d", 70)]
    assert middle_of(rows, RegionInfo("t", 1)) == b"d"
    assert middle_of([Weight(b"a", 90), Weight(b"b", 10)], RegionInfo("t", 1)) == b"b"


def test_fewer_than_two_rows_have_no_middle() -> None:
    assert middle_of([], RegionInfo("t", 1)) is None
    assert middle_of([Weight(b"a", 10), Weight(b"a", 20)], RegionInfo("t", 1)) is None


def test_rows_of_others_do_not_count() -> None:
    info = RegionInfo("t", 1, b"c", b"f")
    assert middle_of([Weight(b"a", 900), Weight(b"c", 1), Weight(b"d", 1), Weight(b"f", 900)], info) == b"d"


@pytest.fixture(params=["memory", "rocks"])
def engine(request: pytest.FixtureRequest) -> Any:
    return MemoryEngine() if request.param == "memory" else RocksEngine()


async def filled(engine: Any, folder: str, rows: dict[bytes, int]) -> Region:
    committer, clock = Committer(asyncio.get_running_loop()), StoreClock(lambda: 1_000)
    region = opened(engine, folder, RegionInfo("t", 1), TABLE, committer, clock)
    rng = random.Random(3)
    for row, size in rows.items():
        region.apply(RowMutation(row, (Put(b"a", b"q", rng.randbytes(size)), Put(b"b", b"q", b"x"))))
    waiting = region.syncs.barrier_any()
    if waiting is not None:
        await waiting
    region.store.files.flush()
    return region


def test_a_small_region_is_walked(engine: Any, tmp_path: Path) -> None:
    async def main() -> None:
        rows = {b"%03d" % n: 100 if n < 80 else 400 for n in range(100)}
        region = await filled(engine, str(tmp_path / "r"), rows)
        assert await middle_row(region) == b"070"  # 45 bytes of each row are keys and headers
        region.close()

    asyncio.run(main())


def test_one_row_has_none(engine: Any, tmp_path: Path) -> None:
    async def main() -> None:
        region = await filled(engine, str(tmp_path / "r"), {b"only": 10})
        assert await middle_row(region) is None
        region.close()

    asyncio.run(main())


def test_a_large_region_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files tell: keys are spread as numbers, among them keys of versions and of the log that are no rows."""

    async def main() -> None:
        rng = random.Random(4)
        rows = {b"%08x" % rng.randrange(1 << 32): 200 for _ in range(2_000)}
        region = await filled(RocksEngine(), str(tmp_path / "r"), rows)
        for row in list(rows)[:300]:
            region.apply(RowMutation(row, (Put(b"b", b"q", b"y"),)))  # older versions
        waiting = region.syncs.barrier_any()
        assert waiting is not None
        await waiting
        region.store.files.flush()
        monkeypatch.setattr(subject, "WALKED_BYTES", 0)
        monkeypatch.setattr(subject, "_walked", None)  # to call it would fail
        middle = await middle_row(region)
        assert middle is not None
        below = sum(1 for row in rows if row < middle)
        assert 0.4 < below / len(rows) < 0.6, middle
        region.close()

    asyncio.run(main())
