"""Views of random definitions over random histories, kept by real regions in memory, against recomputation.

Rows are put and deleted at timestamps of the clients' own while a view is built; regions split and merge; the server is
closed and opened again, sometimes with cursors that were saved before the last changes, as after a kill.  At the end
the view's table must have the members, totals and order that ``tests.support.recompute`` makes of the sources' rows,
and the number of unreadable rows must agree.

``python -m tests.model.test_view_store_model --seeds 100000 --jobs 2`` runs more of them, and makes the history of a
seed that fails shorter.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter

from columnar.errors import ColumnarError
from columnar.model.mutation import Delete, Operation, Put
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family
from columnar.model.view_definition import MEMBERS, ORDERED, TOTALS, View, checked
from columnar.storage.memory import MemoryEngine
from columnar.views import backfill
from columnar.views.contributions import rules_of
from columnar.views.progress import Pass
from columnar.views.view_manager import follower_name
from tests.model.test_views_model import ROWS, VALUES, Side
from tests.support.changing_house import CatalogueRows
from tests.support.deep import seeds
from tests.support.held_engine import FakeClock
from tests.support.many_seeds import Left, Tell, main, runs, step_seed, untold
from tests.support.recompute import recomputed
from tests.support.seeds import seed
from tests.support.view_contents import differences
from tests.support.view_house import ViewHouse

SEED = seed(20261125)
SEEDS = seeds("seeds of views in a store", deep=120, short=40)
STEPS = 30
FAMILIES = [Family("f"), Family("g", max_versions=3), Family("h")]


class Run:
    def __init__(self, number: int, left_out: Left, tell: Tell) -> None:
        rng = self.rng = random.Random(number)
        self.number = number
        self._left_out = left_out
        self._tell = tell
        parts = rng.choice((1, 1, 2))
        is_join = rng.random() < 0.3
        spread = 4 if not is_join and rng.random() < 0.2 else 1
        self.tables = ["t0", rng.choice(("t0", "t1"))] if is_join else ["t0"]
        letters = (b"l", b"r") if is_join else (b"",)
        sides = [Side(rng, table, letter, parts, spread) for table, letter in zip(self.tables, letters, strict=True)]
        sources = [side.source for side in sides]
        self.view = checked(View("v", sources[0], sources[1] if is_join else None, spread))
        self.rules = rules_of(self.view)
        self.saved: dict[int, bytes] = {}  # cursors by region, of some time ago
        self.seen: Counter[str] = Counter()
        backfill.STEP_ROWS, backfill.PIECE_ROWS = rng.choice(((1, 1), (1, 2), (2, 3), (16, 512)))  # type: ignore[misc]

    async def play(self) -> None:
        self.house = ViewHouse(MemoryEngine(), "regions", CatalogueRows(), FakeClock(), self.number)
        await self.house.start()
        for table in dict.fromkeys(self.tables):
            await self.house.changes.create(table.encode(), FAMILIES)
        self._tell(f"view {self.view}")
        for step in range(STEPS):
            if step == STEPS // 3:
                await self.house.add(self.view)
            if step not in self._left_out:
                self.rng.seed(step_seed(self.number, step))
                await self.step(step > STEPS // 3)
        await self.check()
        await self.house.close()

    async def step(self, is_kept: bool) -> None:
        kind = self.rng.random()
        if kind < 0.75:
            await self.change()
        elif kind < 0.85:
            await self.change_regions()
        elif kind < 0.9 and is_kept:
            self.note_cursors()
        elif kind < 0.94 and is_kept:
            await self.reopen()
        elif is_kept:
            for _ in range(self.rng.randrange(8)):
                await asyncio.sleep(0)

    # --- the history -------------------------------------------------------------------------------

    async def change(self) -> None:
        rng = self.rng
        row, operations = rng.choice(ROWS), list[Operation]()
        for _ in range(rng.choice((1, 1, 2, 4))):
            column = rng.choice(tuple(VALUES))
            family, qualifier = column[:1], column[2:]
            at = None if rng.random() < 0.3 else rng.randrange(20)
            named = rng.random()
            if named < 0.7:
                operations.append(Put(family, qualifier, rng.choice(VALUES[column]), at))
            else:
                operations.append(Delete(family, qualifier if named < 0.9 else None, at))
        table = rng.choice(self.tables)
        self._tell(f"{table} {row!r}: {', '.join(map(str, operations))}")
        await self.house.write(table, row, *operations)
        self.seen["changes"] += 1

    async def change_regions(self) -> None:
        table = self.rng.choice([*self.tables, "v"] if "v" in self.house.catalogue.tables else self.tables)
        regions = self.house.catalogue.tables[table].regions
        try:
            if len(regions) < 3 and self.rng.random() < 0.6:
                await self.split(table, self.rng.choice(regions))
            elif len(regions) > 1:
                at = self.rng.randrange(len(regions) - 1)
                self._tell(f"merge of regions {at} and {at + 1} of {table}")
                await self.house.regions.merge(regions[at], regions[at + 1])
                self.seen["merges"] += 1
        except ColumnarError:
            self.seen["refused"] += 1

    async def split(self, table: str, info: RegionInfo) -> None:
        row = self.rng.choice((b"a/2", b"b", b"c", b"x", b"y"))
        if info.contains_row(row) and row != info.start:
            self._tell(f"split of {table} at {row!r}")
            await self.house.regions.split(info, row)
            self.seen["splits"] += 1

    def note_cursors(self) -> None:
        self._tell("cursors are noted")
        for region in self.house.server.all_open():
            held = region.log.cursors.cursor("view:v")
            if held is not None:
                self.saved[region.info.region_id] = held

    async def reopen(self) -> None:
        """Close and reopen the server, with old cursors if some were saved, so that changes are repeated."""
        self.seen["openings"] += 1
        self._tell("closed and opened again")
        upkeep = self.house.keeper.hub.upkeep
        if self.rng.random() < 0.5:
            for region in self.house.server.all_open():
                held = self.saved.get(region.info.region_id)
                still = held is not None and self._is_logged(region, held)
                if held is not None and still:
                    for follower in list(self.house.keeper.hub.followers.in_region(region)):
                        self.house.keeper.hub.listener.drop(follower)
                    upkeep.forget_region(region)
                    region.log.cursors.save_cursor("view:v", held)
                    self._tell(f"region {region.info.start!r} begins at a cursor of before")
                    self.seen["repeats"] += 1
        self.house = await self.house.restarted()
        self.saved.clear()  # of what was trimmed in an earlier life nobody knows

    @staticmethod
    def _is_logged(region, held: bytes) -> bool:  # type: ignore[no-untyped-def]
        """Return whether the log still has every record that this cursor needs."""
        return region.log._trimmed_to == b""

    # --- what must come of it ----------------------------------------------------------------------

    async def check(self) -> None:
        await self.house.settled("v")
        await self.house.views.check_view_builds()
        assert self.house.state("v") == "live"
        sides = []
        for rules in self.rules:
            rows = await self.house.rows_of(rules.table)
            sides.append((rules, list(rows.items())))
        expected = recomputed(sides)
        assert differences(self.rules, expected, await self.house.rows_of("v", MEMBERS, ORDERED, TOTALS)) == []
        followers = self.house.keeper.hub.followers.of(follower_name("v"))
        async with asyncio.timeout(20):
            while any(one.progress.walk is not Pass.OVER for one in followers):  # type: ignore[attr-defined]  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.001)
        rejected = self.house.owner.views.view_statuses()[0].rejected_rows
        assert rejected == len(expected.rejected)
        self.seen["groups"] += len(expected.groups)
        self.seen["rejected"] += len(expected.rejected)


def play(number: int, left_out: Left = frozenset(), tell: Tell = untold) -> Counter[str]:
    held = backfill.STEP_ROWS, backfill.PIECE_ROWS
    try:
        run = Run(number, left_out, tell)
        asyncio.run(run.play())
        return run.seen
    finally:
        backfill.STEP_ROWS, backfill.PIECE_ROWS = held  # type: ignore[misc]


def test_random_views_in_a_store() -> None:
    print(f"seeds from {SEED} on")
    seen = runs(play, SEED, SEEDS)
    print(dict(seen))
    for what in ("changes", "splits", "merges", "openings", "repeats", "groups", "rejected"):
        assert seen[what], what


if __name__ == "__main__":
    main("tests.model.test_view_store_model", play, STEPS, SEED)
