"""A region server on an engine of the test's choice; the test controls clock and fsyncs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from columnar.model.mutation import Durability, Operation, Put, RowMutation
from columnar.model.read import ReadSpec, ScanSpec, projection
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.operations.scanner_table import ScannerTable
from columnar.operations.scanners import Scanner
from columnar.operations.table_operations import TableOperations
from columnar.regions.read.found_rows import FoundRows, ScanRow
from columnar.regions.read.region_reads import get_whole_row
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.regions.write.applied import Applied
from columnar.storage.commit import Committer
from columnar.storage.memory import MemoryEngine
from tests.support.held_engine import FakeClock, HeldEngine
from tests.support.openings import region_at_once


class House:
    """The server, made inside a running loop."""

    def __init__(
        self,
        table: Table,
        splits: tuple[bytes, ...] = (),
        *,
        engine: Any = None,
        folder: str = "regions",
        open_regions: int = 9,
        now_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.memory = MemoryEngine()
        self.engine = HeldEngine(engine or self.memory)
        self.gate = self.engine.gate
        self.clock = FakeClock()
        self.committer = Committer(asyncio.get_running_loop())
        self.server = RegionServer(self.engine, folder, self.committer, self.clock, open_regions=open_regions)
        self.operations = TableOperations(self.server, ScannerTable(lambda: 0.0), now_s)
        edges = (b"", *splits, b"")
        infos = [RegionInfo(table.name, 10 + n, a, b) for n, (a, b) in enumerate(pairwise(edges))]
        self.served = ServedTable(table, True, infos)
        self.server.folders.make([info.encoded for info in infos])
        self.server.tables.install(self.served)

    def region(self, row: bytes = b"r") -> Region:
        return region_at_once(self.server, self.served, row)

    def apply(self, row: bytes, *operations: Operation, durability: Durability = Durability.SYNC) -> Applied:
        return self.region(row).apply(RowMutation(row, operations, (), durability))

    async def put(self, row: bytes, *operations: Operation) -> None:
        applied = self.apply(row, *operations)
        assert applied.durable is not None
        await applied.durable

    async def put_value(self, row: bytes, value: bytes = b"v", column: bytes = b"a:q") -> None:
        family, _, qualifier = column.partition(b":")
        await self.put(row, Put(family, qualifier, value))

    def row(self, row: bytes, *columns: bytes) -> list[tuple[bytes, bytes, int]]:
        return list(get_whole_row(self.region(row), row, self.read(*columns)))

    def read(self, *columns: bytes) -> ReadSpec:
        return ReadSpec(projection(self.served.schema, columns))

    def scanner(self, start: bytes = b"", stop: bytes = b"", *columns: bytes, **options: Any) -> Scanner:
        row_filter = options.pop("row_filter", None)
        spec = ScanSpec(start, stop, self.read(*columns), **options)
        return Scanner(self.operations.access, self.served.schema.name.encode(), spec, row_filter)

    async def close(self) -> None:
        self.gate.release()
        self.server.openings.check_invariants()
        await self.server.close()
        self.server.openings.check_invariants()
        self.committer.close()


async def rows_of(scanner: Scanner, count: int = 1_000) -> list[ScanRow]:
    found = scanner.next_rows(count)
    return list(found if isinstance(found, FoundRows) else await found)


async def names_of(scanner: Scanner, count: int = 1_000) -> list[bytes]:
    return [row for row, _ in await rows_of(scanner, count)]


@contextmanager
def counted_turns() -> Iterator[list[int]]:
    """Count the loop iterations that other tasks get meanwhile."""
    turns = [0]
    loop = asyncio.get_running_loop()
    going = True

    def turn() -> None:
        turns[0] += 1
        if going:
            loop.call_soon(turn)

    loop.call_soon(turn)
    try:
        yield turns
    finally:
        going = False
