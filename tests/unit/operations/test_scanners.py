"""Scanners: what a call gives, where it stops, who is served meanwhile, and how scanners end."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from columnar.errors import (
    IllegalArgument,
    NoSuchColumnFamily,
    OutcomeUnknown,
    ScannerNotFound,
    TableNotEnabled,
    TooManyScanners,
)
from columnar.limits import CONNECTION_SCANNERS, STEP_S
from columnar.model.filter_language import parse
from columnar.model.filters import Filter
from columnar.model.mutation import Delete, Put
from columnar.model.schema import Family, make_table
from columnar.operations import scanners
from columnar.operations.scanner_table import ScannerTable
from columnar.regions.read.found_rows import FoundRows
from columnar.regions.read.reply_memory import ReplyMemoryBudget
from columnar.regions.tables import ServedTable
from tests.support.region_house import House, counted_turns, names_of, rows_of

TABLE = make_table("t", [Family("a"), Family("b")])
ROWS = [b"a", b"a\x00", b"a\x00\x01", b"b", b"m", b"m\x00", b"z", b"\xff", b"\xff\xff"]


async def filled(rows: list[bytes], *, splits: tuple[bytes, ...] = (), columns: int = 1) -> House:
    house = House(TABLE, splits)
    for row in rows:
        house.apply(row, *(Put(b"a", b"%02d" % n, b"v" * 10) for n in range(columns)), Put(b"b", b"q", row))
    for region in house.server.all_open():
        await house.server.hosting.quiesce(region)
    return house


@pytest.mark.parametrize("splits", [(), (b"b",), (b"a\x00", b"m\x00", b"\xff\xff"), (b"a", b"b", b"c", b"y")])
def test_ranges_forward_and_back_over_regions(splits: tuple[bytes, ...]) -> None:
    async def main() -> None:
        house = await filled(ROWS, splits=splits)
        ordered = sorted(ROWS)
        bounds = [b"", b"a", b"a\x00", b"a\x00\x00", b"b", b"c", b"m", b"m\x01", b"\xff", b"\xff\xff\xff"]
        for start in bounds:
            for stop in bounds:
                same = start == stop != b""
                forward = [r for r in ordered if r >= start and (r == start if same else not stop or r < stop)]
                assert await names_of(house.scanner(start, stop)) == forward, (start, stop)
                back = [r for r in ordered[::-1] if (not start or r <= start) and (r == start if same else r > stop)]
                if not same and not stop:
                    back = [r for r in ordered[::-1] if not start or r <= start]
                assert await names_of(house.scanner(start, stop, reversed=True)) == back, (start, stop, "reversed")
        await house.close()

    asyncio.run(main())


@pytest.mark.parametrize("options", [{}, {"limit": 2}, {"reversed": True}])
def test_a_whole_family_is_scanned_by_the_same_rules(options: dict[str, Any]) -> None:
    """The short way (``plain_rows``) and the long one: a limit holds, and a family's time to live."""

    async def main() -> None:
        house = House(make_table("t", [Family("a", ttl_s=10)]))
        await house.put_value(b"r1")
        house.clock.now_ms += 11_000
        for row in (b"r2", b"r3", b"r4"):
            await house.put_value(row)
        rows = [b"r2", b"r3", b"r4"][:: -1 if "reversed" in options else 1]
        assert await names_of(house.scanner(**options)) == rows[: options.get("limit")]
        await house.close()
        plain = House(make_table("t", [Family("a")]), (b"r3",))
        for row in (b"r2", b"r3", b"r4"):
            await plain.put_value(row)
        assert await names_of(plain.scanner(**options)) == rows[: options.get("limit")]
        await plain.close()

    asyncio.run(main())


def test_one_row_at_a_time_gives_the_same_as_all_at_once() -> None:
    async def main() -> None:
        house = await filled(ROWS, splits=(b"b", b"m"))
        for options in ({}, {"reversed": True}):
            whole = await rows_of(house.scanner(**options))
            scanner = house.scanner(**options)
            piece: list[object] = []
            while rows := await rows_of(scanner, 1):
                assert len(rows) == 1
                piece += rows
            assert piece == whole
            assert await rows_of(scanner, 5) == [], "the end stays the end"
        await house.close()

    asyncio.run(main())


def test_batch_size_cuts_rows() -> None:
    async def main() -> None:
        house = await filled([b"r1", b"r2"], columns=4)
        found = await rows_of(house.scanner(batch=2))
        assert [(row, len(cells)) for row, cells in found] == [
            (row, cells) for row in (b"r1", b"r2") for cells in (2, 2, 1)
        ]
        scanner = house.scanner(batch=2)
        again = [await rows_of(scanner, 1) for _ in range(7)]
        assert [row for one in again for row in one] == found
        await house.close()

    asyncio.run(main())


def test_a_reply_is_cut_at_its_bytes_but_never_to_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanners, "REPLY_BYTES", 100)

    async def main() -> None:
        house = await filled([b"r%02d" % n for n in range(10)], columns=3)
        scanner = house.scanner()
        sizes = []
        while rows := await rows_of(scanner, 1_000):
            sizes.append(len(rows))
        assert sum(sizes) == 10
        assert set(sizes) == {1}
        await house.close()

    asyncio.run(main())


def test_a_full_reply_where_rows_are_many_steps_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanners, "STEP_CELLS", 7)

    async def main() -> None:
        house = await filled([b"%03d" % n for n in range(100)], splits=(b"033", b"066"))
        with counted_turns() as turns:
            assert len(await names_of(house.scanner(), 90)) == 90
        assert turns[0] >= 90 * 2 // 7 - 2
        chosen = house.scanner(row_filter=parse(b"RowFilter(=, 'regexstring:9$')"))
        assert await names_of(chosen) == [b"%02d9" % n for n in range(10)]
        await house.close()

    asyncio.run(main())


def test_a_scan_for_a_rare_column_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in which nothing is wanted cost as much as others: a step must end among them."""
    monkeypatch.setattr(scanners, "STEP_CELLS", 10)

    async def main() -> None:
        house = await filled([b"%03d" % n for n in range(200)])
        await house.put_value(b"150", column=b"a:rare")
        for options in ({}, {"reversed": True}):
            with counted_turns() as turns:
                assert await names_of(house.scanner(b"", b"", b"a:rare", **options)) == [b"150"]
            assert turns[0] >= 15
        await house.close()

    asyncio.run(main())


def test_filtered_bytes_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanners, "STEP_BYTES", 1_000)

    async def main() -> None:
        house = await filled([])
        for n in range(50):
            await house.put_value(b"%02d" % n, b"x" * 500)
        with counted_turns() as turns:
            assert await rows_of(house.scanner(row_filter=parse(b"ValueFilter(=, 'binary:none')"))) == []
        assert turns[0] >= 15
        await house.close()

    asyncio.run(main())


def test_a_dear_filter_gives_way_by_the_clock() -> None:
    """Nobody knows beforehand what a filter costs: its step ends when the time is over, wherever it is."""

    class Dear(Filter):
        def filter_row_key(self, row: bytes) -> bool:
            ends = time.perf_counter() + STEP_S
            while time.perf_counter() < ends:
                pass
            return False

    async def main() -> None:
        rows = [b"%02d" % n for n in range(12)]
        house = await filled(rows)
        with counted_turns() as turns:
            assert await names_of(house.scanner(row_filter=Dear())) == rows
        assert turns[0] >= len(rows) // 2
        await house.close()

    asyncio.run(main())


def test_rows_that_come_and_go_between_calls() -> None:
    async def main() -> None:
        house = await filled([b"r%d" % n for n in range(6)])
        scanner = house.scanner()
        assert await names_of(scanner, 2) == [b"r0", b"r1"]
        await house.put(b"r2", Delete(b"a", None), Delete(b"b", None))
        await house.put_value(b"r0x")
        await house.put_value(b"r3x")
        await house.put_value(b"r1", b"changed")
        assert await names_of(scanner) == [b"r3", b"r3x", b"r4", b"r5"]
        await house.close()

    asyncio.run(main())


def test_a_failed_call_leaves_no_hole() -> None:
    """Its rows were passed over: going on behind them would look like a whole scan."""

    async def main() -> None:
        house = await filled([b"a", b"b"])
        scanner = house.scanner()
        house.gate.hold()
        house.apply(b"b", Put(b"a", b"q", b"lost"))
        asking = asyncio.ensure_future(rows_of(scanner, 1))
        await asyncio.to_thread(house.gate.entered.wait, 10)
        house.gate.fail()
        with pytest.raises(OutcomeUnknown):
            await asking
        house.gate.release()
        with pytest.raises(IllegalArgument, match="open a new one"):
            scanner.next_rows(1)
        await house.close()

    asyncio.run(main())


def test_a_table_disabled_or_made_anew_under_a_scanner() -> None:
    async def main() -> None:
        house = await filled([b"a", b"b"])
        first, second = house.scanner(), house.scanner()
        house.server.tables.install(ServedTable(TABLE, False, house.served.regions))
        with pytest.raises(TableNotEnabled):
            first.next_rows(1)
        house.server.tables.install(ServedTable(make_table("t", [Family("a")]), True, house.served.regions))
        with pytest.raises(NoSuchColumnFamily):
            second.next_rows(1)
        await house.close()

    asyncio.run(main())


def test_one_call_at_a_time() -> None:
    async def main() -> None:
        house = await filled([b"a"])
        house.gate.hold()
        house.apply(b"a", Put(b"a", b"q", b"v"))
        scanner = house.scanner()
        asking = asyncio.ensure_future(rows_of(scanner, 1))
        await asyncio.sleep(0)
        with pytest.raises(IllegalArgument, match="in use"):
            scanner.next_rows(1)
        house.gate.release()
        assert len(await asking) == 1
        await house.close()

    asyncio.run(main())


# --- leases ----------------------------------------------------------------------------------------


class Seconds:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_leases_end_by_idling_and_use_renews_them() -> None:
    async def main() -> None:
        house, clock = House(TABLE), Seconds()
        table = ScannerTable(clock, lease_s=10)
        first, second = table.open_scanner(house.scanner(), 1), table.open_scanner(house.scanner(), 1)
        clock.now = 9
        table.get(first)
        clock.now = 15
        assert table.expire() == 1
        table.get(first)
        with pytest.raises(ScannerNotFound, match="scanner ID is invalid"):
            table.get(second)
        clock.now = 26
        with pytest.raises(ScannerNotFound):
            table.get(first)
        assert len(table) == 0
        await house.close()

    asyncio.run(main())


def test_a_lease_counts_from_the_end_of_a_call() -> None:
    """A call through a filter that lets little through may take longer than the lease."""

    async def main() -> None:
        house, clock = House(TABLE), Seconds()
        table = ScannerTable(clock, lease_s=10)
        applied = house.apply(b"r", Put(b"a", b"q", b"v"))
        scanner = house.scanner()
        opened = table.open_scanner(scanner, 1)
        house.gate.hold()
        call = table.get(opened).next_rows(9)  # which waits for the fsync of the row
        assert not isinstance(call, FoundRows)
        waiting = asyncio.ensure_future(call)
        await asyncio.sleep(0)
        clock.now = 11
        assert table.expire() == 0
        house.gate.release()
        assert (await waiting).count == 1
        assert table.expire() == 0
        assert table.get(opened) is scanner
        clock.now = 22
        assert table.expire() == 1
        assert applied.durable is not None
        await house.close()

    asyncio.run(main())


def test_an_orphan_lives_on_for_a_shorter_while() -> None:
    async def main() -> None:
        house, clock = House(TABLE), Seconds()
        table = ScannerTable(clock, lease_s=600)
        orphan, other = table.open_scanner(house.scanner(), 1), table.open_scanner(house.scanner(), 2)
        table.connection_closed(1)
        table.connection_closed(99)
        clock.now = 59
        table.get(orphan)
        clock.now = 118
        table.get(orphan)
        clock.now = 179
        with pytest.raises(ScannerNotFound):
            table.get(orphan)
        table.get(other)
        table.close(other)
        with pytest.raises(ScannerNotFound):
            table.close(other)
        await house.close()

    asyncio.run(main())


def test_open_scanners_have_a_bound() -> None:
    async def main() -> None:
        house, clock = House(TABLE), Seconds()
        table = ScannerTable(clock, bound=2, lease_s=10)
        first = table.open_scanner(house.scanner(), 1)
        table.open_scanner(house.scanner(), 1)
        with pytest.raises(TooManyScanners):
            table.open_scanner(house.scanner(), 2)
        table.close(first)
        table.open_scanner(house.scanner(), 2)
        clock.now = 11
        table.open_scanner(house.scanner(), 2)
        assert len(table) == 1
        await house.close()

    asyncio.run(main())


def test_what_open_scanners_remember_has_a_bound() -> None:
    async def main() -> None:
        house = House(TABLE)
        table = ScannerTable(Seconds(), lease_s=10, bound_bytes=1_000)
        wide = (b"", b"", b"a:" + b"q" * 600)
        first = table.open_scanner(house.scanner(*wide), 1)
        with pytest.raises(TooManyScanners, match="over 1000 bytes"):
            table.open_scanner(house.scanner(*wide), 1)
        table.open_scanner(house.scanner(), 1)
        table.close(first)
        table.open_scanner(house.scanner(*wide), 1)
        await house.close()

    asyncio.run(main())


def test_many_scans_at_once_hold_together_no_more_than_their_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanners, "STEP_BYTES", 1_000)

    async def main() -> int:
        house = await filled([])
        for n in range(40):
            await house.put_value(b"%02d" % n, b"x" * 400)
        house.operations.access.reply_memory = gathering = ReplyMemoryBudget(20_000, 1_000)
        peak, end = [0], gathering.end

        def noted(ticket: int) -> None:
            peak[0] = max(peak[0], gathering.total_bytes)
            end(ticket)

        monkeypatch.setattr(gathering, "end", noted)
        async with asyncio.timeout(30):
            found = await asyncio.gather(*(names_of(house.scanner()) for _ in range(30)))
        assert found == [[b"%02d" % n for n in range(40)]] * 30
        assert (gathering.total_bytes, gathering.waiting) == (0, 0)
        await house.close()
        return peak[0]

    peak = asyncio.run(main())
    assert 17_000 < peak <= 20_000 + 20_000, "30 scans of 17 kB: one whole reply, and what the bound lets others hold"


def test_no_connection_takes_all_scanners() -> None:
    async def main() -> None:
        house = await filled([b"a"])
        table = ScannerTable(lambda: 0.0)
        opened = [table.open_scanner(house.scanner(), 1) for _ in range(CONNECTION_SCANNERS)]
        with pytest.raises(TooManyScanners, match="this connection"):
            table.open_scanner(house.scanner(), 1)
        table.open_scanner(house.scanner(), 2)
        table.close(opened[0])
        table.open_scanner(house.scanner(), 1)
        await house.close()

    asyncio.run(main())
