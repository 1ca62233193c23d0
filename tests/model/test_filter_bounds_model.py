"""A scan that reads only the rows and values that its filter needs, against one that reads all: the same answers.

The model draws filters of every kind (also filters that count, end a scan or hide values), rows, regions, bounds and
directions, in one process and at each of three servers that own the regions.  ``COLUMNAR_SEED=new`` draws a new seed.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from columnar.model.filter_language import parse
from columnar.model.filters import Filter
from columnar.model.mutation import Put
from columnar.model.read import ReadSpec, ScanSpec, projection
from columnar.model.schema import Family, make_table
from columnar.operations import scanners
from columnar.operations.access import TableAccess
from columnar.operations.scanners import Scanner
from columnar.regions.read.found_rows import FoundRows
from tests.differential.random_filters import FilterWords, random_filter
from tests.support.calls_apart import TABLE as TABLE_APART
from tests.support.calls_apart import in_cluster, put
from tests.support.owned_servers import OwnedServers
from tests.support.region_house import House
from tests.support.seeds import seed

TABLE: Final = make_table("t", [Family("a", max_versions=3), Family("b")])
ROWS: Final = [
    b"a", b"a\x00", b"ab", b"ab1", b"ab\xff", b"ac", b"b", b"ba", b"h", b"h\xff\xff", b"m1", b"m2", b"z", b"\xff\xff",
]  # fmt: skip
WORDS: Final = FilterWords(ROWS, [b"a", b"b"], [b"p", b"q", b"s"], [b"", b"1", b"22", b"old"])
COUNTING: Final = (
    b"PageFilter(%d)", b"ColumnCountGetFilter(%d)", b"ColumnPaginationFilter(%d, 1)", b"WHILE PageFilter(%d)",
)  # fmt: skip
PROJECTIONS: Final = [[], [], [b"a"], [b"a:q", b"b"]]
BY_ROW: Final = (
    b"PrefixFilter('a')", b"PrefixFilter('ab')", b"PrefixFilter('h\xff')", b"PrefixFilter('x')",
    b"RowFilter(=, 'binary:m1')", b"RowFilter(>, 'binary:ab')", b"RowFilter(<=, 'binaryprefix:ab')",
    b"RowFilter(!=, 'binary:h')", b"InclusiveStopFilter('b')", b"(PrefixFilter('ab') OR PrefixFilter('m'))",
    b"(RowFilter(=, 'binary:a') OR RowFilter(=, 'binary:z') OR RowFilter(=, 'binary:nowhere'))",
)  # fmt: skip


def drawn_filter(rng: random.Random) -> bytes:
    """Return a random filter, mostly with a part that bounds the rows, often with a part that has memory."""
    text = b"MultipleColumnPrefixFilter"
    while b"MultipleColumnPrefixFilter" in text:  # whose prefixes must differ
        text = random_filter(rng, WORDS, backwards=False, hints=True, counts=True).text
    parts = [b"(" + text + b")"] if rng.random() < 0.5 else []
    if rng.random() < 0.7 or not parts:
        parts.append(rng.choice(BY_ROW))
    if rng.random() < 0.4:
        parts.append(rng.choice(COUNTING) % rng.randint(1, 4))
    if rng.random() < 0.2:
        parts.append(b"WHILE (" + rng.choice(BY_ROW) + b")")
    if rng.random() < 0.2:
        parts.append(b"KeyOnlyFilter()")
    rng.shuffle(parts)
    return rng.choice((b" AND ", b" AND ", b" AND ", b" OR ")).join(parts)


def drawn_put(rng: random.Random) -> Put:
    return Put(rng.choice(WORDS.families), rng.choice((b"p", b"q", b"s", b"sa")), rng.choice(WORDS.values))


def drawn_spec(rng: random.Random, read: ReadSpec, text: bytes) -> ScanSpec:
    bounds = (b"", b"", b"a", b"ab", b"ab0", b"b", b"h\x00", b"m1", b"zz")
    start, stop = rng.choice(bounds), rng.choice(bounds)
    is_whole = parse(text).has_filter_row
    return ScanSpec(
        start,
        stop,
        read,
        reversed=rng.random() < 0.5,
        batch=0 if is_whole else rng.choice((0, 0, 1, 2)),
        filter_string=text,
        limit=rng.choice((0, 0, 0, 1, 3)),
    )


async def answer(access: TableAccess, spec: ScanSpec, count: int) -> tuple[list[Any], int]:
    """Return (rows, number of cells that were read)."""
    assert spec.filter_string is not None
    row_filter = parse(spec.filter_string)
    row_filter.set_reversed(spec.reversed)
    scanner, rows = Scanner(access, b"t", spec, row_filter), []
    while True:
        found = scanner.next_rows(count)
        some = [(row, list(cells)) for row, cells in (found if isinstance(found, FoundRows) else await found)]
        rows += some
        if not some:
            return rows, scanner.cells_read


@contextmanager
def reading_everything() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanners, "_ranges_of", lambda _filter: None)
        patch.setattr(Filter, "needs_values", True)
        yield


async def compared(rng: random.Random, access: TableAccess, read: ReadSpec, seen: Counter[str]) -> None:
    text = drawn_filter(rng)
    spec, count = drawn_spec(rng, read, text), rng.choice((1, 2, 5, 1_000))
    bounded, cells = await answer(access, spec, count)
    with reading_everything():
        expected, all_cells = await answer(access, spec, count)
    assert bounded == expected, spec
    seen["scans"] += 1
    seen["rows"] += len(bounded)
    seen["with rows, fewer cells read"] += cells < all_cells and bool(bounded)


async def in_one_process(number: int) -> Counter[str]:
    rng, seen = random.Random(number), Counter[str]()
    for _ in range(8):
        house = House(TABLE, tuple(sorted(rng.sample([b"ab", b"ab1", b"b", b"h\xff", b"m", b"y"], rng.randint(0, 4)))))
        for row in rng.sample(ROWS, rng.randint(3, len(ROWS))):
            for _ in range(rng.randint(1, 2)):
                house.apply(row, *(drawn_put(rng) for _ in range(rng.randint(1, 4))))
                house.clock.now_ms += 1
        for _ in range(75):
            read = ReadSpec(projection(TABLE, rng.choice(PROJECTIONS)), max_versions=rng.choice((1, 1, 2)))
            await compared(rng, house.operations.access, read, seen)
        await house.close()
    return seen


def test_in_one_process() -> None:
    number = seed(33)
    print(f"seed {number}")
    seen = asyncio.run(in_one_process(number))
    assert seen["rows"] > seen["scans"] / 3, seen
    assert seen["with rows, fewer cells read"] > seen["scans"] / 25, seen


def test_at_three_servers() -> None:
    number = seed(34)
    print(f"seed {number}")
    rng, seen = random.Random(number), Counter[str]()

    async def play(cluster: OwnedServers) -> None:
        await put(cluster, *ROWS, value=b"old")
        cluster.clock.observe(2_000)
        await put(cluster, *ROWS[::2], value=b"22")
        read = ReadSpec(projection(TABLE_APART, []))
        for turn in range(300):
            await compared(rng, cluster.servers[turn % 3].operations.access, read, seen)

    in_cluster(play)
    assert seen["rows"] > seen["scans"] / 3, seen
    assert seen["with rows, fewer cells read"] > seen["scans"] / 25, seen


@pytest.mark.parametrize("rows_of_filter", [257, 1_400])
def test_a_filter_that_names_many_rows_reads_no_others_and_gives_way(rows_of_filter: int) -> None:
    """Every second named row is in the table, between rows that the filter does not name."""

    async def play() -> None:
        house = House(TABLE, (b"r0500",))
        for n in range(0, 2_000, 2):
            house.apply(b"r%04d" % n, Put(b"b", b"q", b"1"))
            house.apply(b"r%04d0" % n, Put(b"b", b"q", b"1"))
        names = [b"r%04d" % n for n in range(rows_of_filter)]
        text = b" OR ".join(b"RowFilter(=,'binary:%b')" % name for name in names)
        for more in (b"", b" AND ValueFilter(=,'binary:1')"):
            read = ReadSpec(projection(TABLE, []))
            spec = ScanSpec(b"", b"", read, filter_string=b"(" + text + b")" + more if more else text)
            rows, cells = await answer(house.operations.access, spec, 10_000)
            assert [row for row, _ in rows] == names[::2]
            assert cells <= 2 * len(rows)
        steps = Scanner(house.operations.access, b"t", spec, parse(text)).next_rows(10_000)
        assert not isinstance(steps, FoundRows), "more than one step"
        await steps
        await house.close()

    asyncio.run(play())
