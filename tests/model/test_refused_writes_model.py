"""A region whose store refuses writes at random, beside a plain model: batches are drafted again, given up, or raise.

After each step the rows are those of the model, and the region's state in memory agrees with the store: the highest
timestamp ahead of the clock, the ends of removals of hot cells, the tail and the counts of the change log.  A refused
batch changes none of this state.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from columnar.errors import NotALong
from columnar.model.mutation import Delete, Durability, Increment, Put, RowMutation, RowPuts, RowWrite
from columnar.model.read import ReadSpec, projection
from columnar.model.schema import Family, Table, make_table
from columnar.regions.hooks import LogPolicy
from columnar.regions.log.change_record import unpack, unpack_key
from columnar.regions.log.log_retention import LOG_SPACE, META_SPACE
from columnar.regions.log.log_tail import LogTails
from columnar.regions.read.region_reads import get_column, get_row
from columnar.regions.region import Region
from columnar.regions.write import column_draft
from columnar.regions.write.applied import Applied
from columnar.regions.write.column_draft import VERSIONS_SPACE
from columnar.regions.write.drafting import FUTURE
from columnar.storage import rocks_store
from columnar.storage.api import StoreBusy
from columnar.storage.layout import MARKER, timestamp_of, version_end
from columnar.storage.memory import MemoryEngine
from columnar.storage.rocks import RocksEngine
from tests.support.deep import seeds
from tests.support.region_house import House
from tests.support.row_model import Refused, RowModel
from tests.support.seeds import seed

PLAIN = make_table("t", [Family("a"), Family("b", max_versions=3)])
MARKED = make_table("t", [Family("a"), Family("b")], {"DELETE_MARKERS": "100000"})
FAMILIES = frozenset({b"a", b"b"})
ROWS = [b"r%d" % n for n in range(4)]
START_MS = 10_000
STEPS = 150


class Faults:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.odds = 0.0
        self.refused = 0

    def meet(self) -> None:
        if self.rng.random() < self.odds:
            self.refused += 1
            raise StoreBusy("behind with flushing")


class RefusingStore:
    def __init__(self, store: Any, faults: Faults) -> None:
        self._store = store
        self._faults = faults
        if hasattr(store, "_write_raw"):  # of RocksDB: what was gathered may be refused later, too
            take = store._write_raw
            store._write_raw = lambda raw: (faults.meet(), take(raw))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write_batch(self, batch: Any) -> None:
        self._faults.meet()
        self._store.write_batch(batch)

    def gather(self, batch: Any) -> None:
        self._faults.meet()
        self._store.gather(batch)


class RefusingEngine:
    def __init__(self, engine: Any, faults: Faults) -> None:
        self._engine = engine
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def open_store(self, *asked: Any) -> RefusingStore:
        return RefusingStore(self._engine.open_store(*asked), self._faults)


class Run:
    """A region and its model, made inside a running loop."""

    def __init__(self, rng: random.Random, table: Table, engine: Any, folder: str) -> None:
        self.rng = rng
        self.faults = Faults(rng)
        self.house = House(table, engine=RefusingEngine(engine, self.faults), folder=folder)
        self.house.clock.now_ms = START_MS
        self.model = RowModel(table)
        self.tails = LogTails()
        self.is_logged = False
        self.given: dict[bytes, int] = {}  # the time that the region gave to a row of the last try
        self.waiting: list[asyncio.Future[None]] = []
        self.begun()

    @property
    def now_ms(self) -> int:
        return self.house.clock.now_ms

    def begun(self) -> None:
        """Begin with a newly opened region."""
        self.region: Region = self.house.region()
        self.follow()
        stamps = self.region.logging.stamps
        give = stamps.give

        def noted(batch: Any, row: bytes, now_ms: int) -> int:
            self.given[row] = give(batch, row, now_ms)
            return self.given[row]

        stamps.give = noted  # type: ignore[method-assign]

    def follow(self) -> None:
        self.house.server.set_policy("t", LogPolicy(FAMILIES, FAMILIES) if self.is_logged else None)
        if self.is_logged:
            self.region.log.begin_tail(self.tails)
        else:
            self.region.log.end_tail()

    # --- steps -------------------------------------------------------------------------------------

    async def step(self) -> None:
        kind = self.rng.random()
        if kind < 0.75:
            await self.write()
        elif kind < 0.87:
            self.house.clock.now_ms += self.rng.choice([1, 5, 30])
        elif kind < 0.91:
            self.is_logged = not self.is_logged
            self.follow()
        elif kind < 0.95:
            await self.delete_all()
        else:
            await self.reopen()

    def operation(self) -> Any:
        family, qualifier = self.rng.choice([b"a", b"b"]), self.rng.choice([b"p", b"q"])
        at = self.rng.choice([None, None, self.now_ms + self.rng.choice([-6, -1, 3, 25])])
        kind = self.rng.random()
        if kind < 0.7:
            return Put(family, qualifier, b"%d" % self.rng.randrange(1_000), at)
        if kind < 0.9:
            return Delete(family, self.rng.choice([None, qualifier]), at)
        return Increment(family, self.rng.choice([b"n", b"n", qualifier]), 1)

    def mutation(self, row: bytes) -> RowMutation:
        durability = Durability.ASYNC if self.rng.random() < 0.1 else Durability.SYNC
        return RowMutation(row, tuple(self.operation() for _ in range(self.rng.randrange(1, 4))), (), durability)

    def drawn(self) -> list[RowWrite]:
        rows = self.rng.sample(ROWS, self.rng.choice([1, 1, 2, 4]))
        if self.rng.random() < 0.3:
            columns = ((b"a", b"p"), (self.rng.choice([b"a", b"b"]), b"q"))
            return [RowPuts(row, columns, [b"x", b"y"]) for row in rows]
        return [self.mutation(row) for row in rows]

    def apply(self, writes: list[RowWrite]) -> Applied:
        self.given.clear()
        (first, *others) = writes
        if isinstance(first, RowMutation) and not others:
            return self.region.apply(first)
        return self.region.apply_many(writes)

    async def write(self) -> None:
        """Write as the service does: retry while the store lags, until the write is taken or the client disconnects."""
        writes, rng = self.drawn(), self.rng
        while True:
            before, self.faults.odds = self.remembered(), rng.choice([0.0, 0.6])
            try:
                applied = self.apply(writes)
            except StoreBusy:
                assert self.remembered() == before
                if rng.random() < 0.2:
                    return
                self.house.clock.now_ms += rng.choice([0, 5, 30])
                continue
            except NotALong:
                assert self.remembered() == before
                with pytest.raises(Refused):
                    self.expect(writes)
                return
            finally:
                self.faults.odds = 0.0
            break
        self.expect(writes)
        if applied.durable is not None:
            self.waiting.append(applied.durable)
        if rng.random() < 0.5:
            await self.settle()

    def expect(self, writes: list[RowWrite]) -> None:
        """Expect the writes in the model; a refused batch changes nothing."""
        fresh = self.model.clone()
        for write in writes:
            mutation = write if isinstance(write, RowMutation) else write.spelled_out()
            fresh.apply(mutation, self.given.get(write.row, self.now_ms), logged=self.is_logged)
        self.model = fresh

    async def delete_all(self) -> None:
        """Delete all rows as a whole range, if the region allows it."""
        if not self.region.can_delete_at_once(self.now_ms):
            return
        stamps = [at for held in self.model.cells.values() for at in held]
        assert max(stamps, default=0) <= self.now_ms, "a delete spares what lies ahead of the clock"
        self.waiting.append(self.region.delete_at_once(b"", b""))
        self.model.cells.clear()

    async def settle(self) -> None:
        self.region.syncs.sync_async_writes()
        await self.house.server.hosting.quiesce(self.region)
        for durable in self.waiting:
            await durable
        self.waiting.clear()

    async def reopen(self) -> None:
        await self.settle()
        self.region.log.end_tail()
        self.house.server.eviction.evict(self.region)
        self.begun()

    # --- looks -------------------------------------------------------------------------------------

    def remembered(self) -> tuple[Any, ...]:
        """Return the region's state in memory, without the numbers and stamps that it has given."""
        region, log = self.region, self.region.log
        drafting, tail = region.drafting, log._tail
        return (
            drafting.future_ms,
            list(drafting._hot._counted.items()),
            region._clock_mark.bound_ms,
            (region.writes, region.syncs._has_unsynced, len(region.syncs._groups)),
            (log.counts.records, log.counts.size_bytes, log.last_logged),
            {name: len(held) for name, held in vars(log).items() if isinstance(held, list)},
            list(tail._sequences) if tail is not None else None,
        )

    def check(self) -> None:
        self.check_rows()
        self.check_future()
        self.check_hot_cells()
        self.check_log()

    def check_rows(self) -> None:
        everything = projection(self.house.served.schema, [])
        for row in ROWS:
            assert get_row(self.region, row, ReadSpec(everything)) == self.model.row(row, self.now_ms)
            spec = ReadSpec(projection(self.house.served.schema, [b"b:q"]), max_versions=5)
            versions = [(value, at) for at, value in self.model.versions(row, b"b", b"q", self.now_ms)]
            assert get_column(self.region, row, b"b", b"q", spec) == versions

    def check_future(self) -> None:
        store = self.region.store
        mark = int.from_bytes(store.get(META_SPACE, FUTURE) or b"", "big")
        assert self.region.drafting.future_ms == mark
        cells = [raw for space in ("f:a", "f:b") for _, raw in store.scan(space, b"", None) if raw[0] != MARKER]
        assert max(map(timestamp_of, cells), default=0) <= max(mark, self.now_ms), "I1 of drafting"

    def check_hot_cells(self) -> None:
        for name, (_, stop) in self.region.drafting._hot._counted.items():
            assert stop is None or not list(self.region.store.scan(VERSIONS_SPACE, stop, version_end(name)))

    def check_log(self) -> None:
        log, stamps = self.region.log, dict[bytes, int]()
        stored = [(unpack_key(key), unpack(data)) for key, data in self.region.store.scan(LOG_SPACE, b"", None)]
        assert [record.row for _, record in stored] == self.model.log
        for _, record in stored:
            assert record.stamp > stamps.get(record.row, -1)
            stamps[record.row] = record.stamp
        while log.counts.count_step(1_000):
            pass
        assert log.counts.records == len(stored)
        if log._tail is not None:
            log._tail.check_invariants()
            durable = [(at, record) for at, record in stored if at <= log.durable]
            assert list(log.read_records(log._tail.after)) == [one for one in durable if one[0] > log._tail.after]

    async def close(self) -> None:
        await self.settle()
        await self.house.close()


async def played(run: Run) -> int:
    for _ in range(STEPS):
        await run.step()
        run.check()
    await run.reopen()
    run.check()
    await run.close()
    return run.faults.refused


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_draft, "TRIM_AFTER", 2)
    monkeypatch.setattr(rocks_store, "GATHERED_BYTES", 300)


@pytest.mark.parametrize("table", [PLAIN, MARKED], ids=["plain", "marked"])
@pytest.mark.parametrize("number", range(seeds("seeds of refused writes", deep=12, short=4)))
def test_in_memory(number: int, table: Table) -> None:
    async def main() -> None:
        assert await played(Run(random.Random(seed(7_100 + number)), table, MemoryEngine(), "regions"))

    asyncio.run(main())


@pytest.mark.parametrize("number", range(seeds("seeds of refused writes on RocksDB", deep=4, short=2)))
def test_on_rocksdb(number: int, tmp_path: Path) -> None:
    async def main() -> None:
        run = Run(random.Random(seed(7_200 + number)), PLAIN, RocksEngine(), str(tmp_path / "regions"))
        assert await played(run)

    asyncio.run(main())
