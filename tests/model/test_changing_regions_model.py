"""Random mutations with splits and merges in between, against a dictionary, and the deliveries to two triggers.

After every few steps everything is read in every way and compared.  At the end each trigger must have got each change
once, the changes of a row in their order.  COLUMNAR_MODEL_SEEDS says how many runs; each prints its seed.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from columnar.errors import CallerError, RetryLater
from columnar.master.replacements import hole_or_overlap
from columnar.model.mutation import Append, Delete, Increment, Operation, Put, RowMutation
from columnar.model.read import ReadSpec, ScanSpec, projection
from columnar.model.schema import Family
from columnar.operations.access import TableAccess
from columnar.operations.scanners import Scanner
from columnar.regions.read.region_reads import get_column
from columnar.storage.memory import MemoryEngine
from columnar.storage.rocks import RocksEngine
from tests.support.changing_house import CatalogueRows, ChangingHouse
from tests.support.deep import seeds
from tests.support.held_engine import FakeClock
from tests.support.openings import region_at_once
from tests.support.region_house import rows_of
from tests.support.row_model import RowModel

SEEDS = int(os.environ.get("COLUMNAR_MODEL_SEEDS") or seeds("seeds of changing regions", deep=6, short=3))
FIRST = int(os.environ.get("COLUMNAR_SEED", "20261121"))
STEPS = 60
ROWS = [bytes([97 + n // 3]) + (b"", b"\x00", b"\xff")[n % 3] for n in range(15)]
FAMILIES = [Family("a"), Family("b", max_versions=3)]
TRIGGERS = 2


class Run:
    def __init__(self, engine: Any, folder: str, seed: int) -> None:
        self.rng, self.clock = random.Random(seed), FakeClock(10_000)
        self.engine, self.folder, self.seed = engine, folder, seed
        self.rows = CatalogueRows()
        self.expected: dict[bytes, list[str]] = {}
        self.told: list[tuple[bytes, str]] = []
        self.changing: asyncio.Task[Any] | None = None
        self.done: Counter[str] = Counter()

    async def open(self) -> None:
        self.house = ChangingHouse(self.engine, self.folder, self.rows, self.clock, self.seed)
        await self.house.start()

    async def play(self) -> None:
        await self.open()
        await self.house.make(FAMILIES, TRIGGERS, [b"c"])
        self.model = RowModel(self.house.table.schema)
        for step in range(STEPS):
            kind = self.rng.random()
            if kind < 0.6:
                await self.mutate()
            elif kind < 0.85:
                await self.change()
            elif kind < 0.9:
                self.clock.now_ms += self.rng.choice((1, 1, 20))
            elif kind < 0.93:
                await self.restart()
            if step % 4 == 0:
                await self.check()
        await self.settle()
        await self.check()
        await self.house.drain()
        self.told += self.house.told
        await self.house.close()
        self.check_told()

    async def mutate(self) -> None:
        some = [self.operation() for _ in range(self.rng.randint(1, 3))]
        mutation = RowMutation(self.rng.choice(ROWS), tuple(some), ())
        try:
            applied = await self.house.apply(mutation)
        except CallerError:  # an increment of what is no counter
            return
        self.model.apply(mutation, applied.timestamp, logged=True)
        self.expected.setdefault(mutation.row, []).append(applied.sequence.token)

    def operation(self) -> Operation:
        rng = self.rng
        kind, qualifier = rng.random(), rng.choice((b"", b"q", b"\x00"))
        if kind < 0.5:
            timestamp = rng.choice((None, None, None, self.clock.now_ms - rng.randrange(5)))
            return Put(rng.choice((b"a", b"b")), qualifier, b"%d" % rng.randrange(100), timestamp, None)
        if kind < 0.7:
            return Delete(rng.choice((b"a", b"b")), rng.choice((None, qualifier)), None)
        if kind < 0.9:
            return Increment(b"a", b"n", rng.randrange(9))
        return Append(b"b", b"log", b"+")

    async def change(self) -> None:
        """Begin a split or a merge, which goes on beside the next steps."""
        await self.settle()
        rng, infos = self.rng, self.house.infos
        if len(infos) < 3 or rng.random() < 0.5:
            row = rng.choice([*ROWS, None, None])
            parent = self.house.table.holding(row) if row is not None else rng.choice(infos)
            work: Any = self.house.regions.split(parent, row)
        else:
            at = rng.randrange(len(infos) - 1)
            pair = [infos[at], infos[at + 1]]
            rng.shuffle(pair)
            work = self.house.regions.merge(*pair)
        self.changing = asyncio.ensure_future(work)
        for _ in range(rng.randrange(4)):
            await asyncio.sleep(0)

    async def settle(self) -> None:
        if self.changing is not None:
            try:
                await self.changing
                self.done["done"] += 1
            except (CallerError, RetryLater) as refused:
                self.done[str(refused)[:20]] += 1
            self.changing = None

    async def restart(self) -> None:
        await self.settle()
        await self.house.drain()
        self.told += self.house.told
        await self.house.close()
        await self.open()

    # --- looking -----------------------------------------------------------------------------------

    async def check(self) -> None:
        house, now = self.house, self.clock.now_ms
        assert hole_or_overlap(house.infos) is None
        everything = ReadSpec(projection(house.table.schema, []))
        expected = [(row, cells) for row in self.model.rows() if (cells := self.model.row(row, now))]
        for reverse in (False, True):
            scanner = Scanner(TableAccess(house.server), b"t", ScanSpec(b"", b"", everything, reversed=reverse), None)
            found = []
            while True:
                rows = await rows_of(scanner, 2)
                if not rows:
                    break
                found += rows
                await asyncio.sleep(0)  # what is changing goes on
            assert found == (expected[::-1] if reverse else expected)
        if self.changing is not None and not self.changing.done():
            return
        spec = ReadSpec(projection(house.table.schema, [b"b:q"]), max_versions=5)
        for row in ROWS:
            versions = get_column(region_at_once(house.server, house.table, row), row, b"b", b"q", spec)
            assert versions == [(value, at) for at, value in self.model.versions(row, b"b", b"q", now)]

    def check_told(self) -> None:
        found: dict[bytes, list[str]] = {}
        for row, token in self.told:
            found.setdefault(row, []).append(token)
        for row, tokens in self.expected.items():
            assert Counter(found.get(row, [])) == Counter(dict.fromkeys(tokens, TRIGGERS)), row
            for n in range(TRIGGERS):
                first = [tokens.index(token) for token in dict.fromkeys(found[row][n:])]
                assert first == sorted(first), f"{row!r} was told out of order"


def run(engine: Any, folder: str, seed: int) -> None:
    print(f"COLUMNAR_SEED={seed}")

    async def main() -> None:
        async with asyncio.timeout(60):
            playing = Run(engine, folder, seed)
            await playing.play()
            assert playing.done["done"] > 2, "it shows little"

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_changing_regions_in_memory(seed: int) -> None:
    run(MemoryEngine(), "regions", seed)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(1, SEEDS // 3)))
def test_changing_regions_on_rocksdb(tmp_path: Path, seed: int) -> None:
    run(RocksEngine(), str(tmp_path), seed)
