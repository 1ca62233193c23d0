"""The cost of a change until a view has it, by parts, in microseconds of the loop's thread, without network.

    python -m tests.measure.view_costs [--changes 8192] [--ahead 2048] [--groups 1000] [--rounds 3] [--folder DIR]

A store of RocksDB in this process, with four regions of the source.  The view counts and sums by group; each change
moves a row to another group.  AHEAD changes are written at a time while the view is idle, and then applied to it.

    put        a change in a table without followers
    images     the additional cost of a followed table: reads of the previous row, the record and its images
    fold       records to shares, in batches (``contributions.difference``, ``share_writes``)
    apply      those batches through an applier into a table of their own
    kept       all work of the view: fold, apply, and the rest of its follower

Times are the thread's own: the median of all steps of AHEAD changes, and the least, which other work on the machine has
disturbed least.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from itertools import count
from pathlib import Path
from statistics import median
from typing import Final

from columnar.clock import StoreClock, system_ms
from columnar.model import region_messages as messages
from columnar.model.mutation import Put, RowMutation, RowWrite
from columnar.model.schema import Family
from columnar.model.view_definition import MEMBERS, TOTALS, Source, View
from columnar.regions.log.change_record import ChangeRecord, Sequence
from columnar.regions.region import Region
from columnar.regions.write.images import images_of, union
from columnar.runtime import compiled
from columnar.runtime.process_tuning import calm_collector
from columnar.storage.rocks import RocksEngine
from columnar.views.contributions import Rules, difference, rules_of
from columnar.views.share_writes import ShareBatch
from gauge.machine import machine, now
from tests.support.changing_house import CatalogueRows
from tests.support.view_house import ViewHouse

FOLLOWED: Final = "rows"
ALONE: Final = "alone"
APART: Final = "apart"  # the table into which the batches of ``apply`` go
VIEW: Final = View("groups", Source(FOLLOWED, key=("f:group",), sums={"size": "f:size"}))
ROWS: Final = 20_000
BATCH: Final = 250  # puts of one call in one region
PARTS: Final = ("put", "images", "fold", "apply", "kept")

Records = list[tuple[Sequence, ChangeRecord]]


def row_of(number: int) -> bytes:
    return b"row%08d" % number


class Costs:
    """The seconds of the loop's thread in each step, by part."""

    def __init__(self, house: ViewHouse, groups: int) -> None:
        self._house = house
        self._groups = groups
        self._rng = random.Random(1)
        self._serial = count()
        self._rules = rules_of(VIEW)

    def _changes(self, number: int) -> list[RowMutation]:
        rng, found = self._rng, list[RowMutation]()
        for _ in range(number):
            cells = (
                Put(b"f", b"group", b"group%06d" % rng.randrange(self._groups)),
                Put(b"f", b"size", b"%d" % rng.randrange(10_000)),
            )
            found.append(RowMutation(row_of(next(self._serial) * 7919 % ROWS), cells))
        return found

    async def _write(self, table: str, changes: list[RowMutation]) -> float:
        """Write the changes; return the seconds when all are on disk."""
        served = self._house.served(table)
        by_region: dict[int, tuple[Region, list[RowWrite]]] = {}
        for one in changes:
            region = await self._house.server.opened(served, served.holding(one.row))
            by_region.setdefault(region.info.region_id, (region, []))[1].append(one)
        waits, begun = [], time.thread_time()
        for region, rows in by_region.values():
            for first in range(0, len(rows), BATCH):
                waits.append(region.apply_many(rows[first : first + BATCH]).durable)
        took = time.thread_time() - begun
        for durable in waits:
            if durable is not None:
                await asyncio.shield(durable)
        return took

    async def load(self) -> None:
        for table in (FOLLOWED, ALONE):
            for first in range(0, ROWS, 2_000):
                await self._write(table, self._changes(2_000)[: ROWS - first])

    async def step(self, ahead: int) -> dict[str, float]:
        """Run ``ahead`` changes through all parts; return microseconds a change."""
        house, changes = self._house, self._changes(ahead)
        served = house.served(FOLLOWED)
        regions = [await house.server.opened(served, info) for info in served.regions]
        before = [region.log.written_to for region in regions]
        await house.owner.request_peer(messages.PauseDeliveries())
        put_s = await self._write(ALONE, changes)
        logged_s = await self._write(FOLLOWED, changes)
        logs = [list(region.log.read_records(at)) for region, at in zip(regions, before, strict=True)]
        assert sum(map(len, logs)) == ahead, "each change is logged"
        begun = time.thread_time()
        batches = [batch for records in logs for batch in _folded(self._rules, records)]
        fold_s = time.thread_time() - begun
        begun = time.thread_time()
        await self._apply(batches)
        apply_s = time.thread_time() - begun
        begun = time.thread_time()
        await house.owner.request_peer(messages.ReleaseDeliveries())
        await house.settled(VIEW.name)
        kept_s = time.thread_time() - begun
        seconds = zip(PARTS, (put_s, logged_s - put_s, fold_s, apply_s, kept_s), strict=True)
        return {part: 1e6 * took / ahead for part, took in seconds}

    def _apply(self, batches: list[ShareBatch]) -> asyncio.Future[None]:
        """Apply the batches through the house's applier; the future is done when all are on disk."""
        over, left = asyncio.get_running_loop().create_future(), len(batches)

        def tell(error: Exception | None) -> None:
            nonlocal left
            assert error is None, error
            left -= 1
            if not left:
                over.set_result(None)

        for batch in batches:
            self._house.keeper.applier.apply(batch.writes(), batch.size_bytes, tell, "measured")
        return over


def _folded(rules: tuple[Rules, ...], records: Records) -> list[ShareBatch]:
    """Return the share batches of the records, as the view's follower makes them."""
    wanted = union(one.images for one in rules)
    batch = ShareBatch(APART.encode())
    found = [batch]
    for sequence, record in records:
        images = images_of(record, wanted)
        assert images is not None, "the view follows"
        batch.count += 1
        for one in rules:
            for share in difference(one, record.row, images.before, images.after).shares:
                batch.add_share(one, share, sequence)
        if batch.is_full:
            batch = ShareBatch(APART.encode())
            found.append(batch)
    return [one for one in found if one.count]


async def measured(folder: Path, changes: int, ahead: int, groups: int) -> list[dict[str, float]]:
    """Return microseconds a change by part, for each step."""
    house = ViewHouse(RocksEngine(), str(folder / "regions"), CatalogueRows(), StoreClock(system_ms))
    (folder / "regions").mkdir()
    await house.start()
    try:
        splits = [row_of(ROWS * n // 4) for n in (1, 2, 3)]
        for table in (FOLLOWED, ALONE):
            await house.changes.create(table.encode(), [Family("f")], splits=splits)
        await house.changes.create(APART.encode(), [Family(one.decode()) for one in (TOTALS, MEMBERS)])
        costs = Costs(house, groups)
        await costs.load()
        await house.add(VIEW)
        await house.settled(VIEW.name)
        await costs.step(ahead)  # warms up
        return [await costs.step(ahead) for _ in range(changes // ahead)]
    finally:
        await house.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=8_192, help="of a round")
    parser.add_argument("--ahead", type=int, default=2_048, help="changes that are written before the view goes on")
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    print(f"{now()}, {machine()}, {compiled.state}, {given.groups:,} groups", flush=True)
    calm_collector()  # as a store has it
    steps = []
    for _ in range(given.rounds):
        with tempfile.TemporaryDirectory(prefix="columnar-view-costs-", dir=given.folder) as folder:
            steps += asyncio.run(measured(Path(folder), given.changes, given.ahead, given.groups))
    for part in PARTS:
        took = [one[part] for one in steps]
        print(f"{part:8} {median(took):6.1f} us a change, at least {min(took):6.1f}")


if __name__ == "__main__":
    main()
