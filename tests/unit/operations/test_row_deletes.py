"""Rows of a range are deleted whole or one by one, over regions, and a read waits for the fsync of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from columnar.cluster.peer_requests import DeleteRows
from columnar.errors import RegionTooBusy
from columnar.model.mutation import Put
from columnar.model.schema import Family, make_table
from columnar.operations import row_deletes
from columnar.operations.access import TableAccess
from columnar.operations.operation_peer_handlers import OperationPeerHandlers
from columnar.operations.row_deletes import Deleted, delete_rows
from columnar.regions.hooks import LogPolicy
from columnar.regions.life.region_state import Event
from columnar.regions.life.retry import STALL_POLL_S
from columnar.storage.api import StoreBusy
from columnar.storage.rocks import RocksEngine
from tests.support.memory_house import House as ChangedHouse
from tests.support.memory_house import housed
from tests.support.region_house import House, names_of

TABLE = make_table("t", [Family("a"), Family("b", max_versions=3)])
NAMES = [b"a", b"a\x00", b"b", b"c", b"m", b"m\x00", b"x\xff", b"\xff\xff"]


async def filled(house: House) -> None:
    for row in NAMES:
        for n in range(2):
            house.clock.now_ms += 1
            await house.put(row, Put(b"a", b"q", b"%d" % n), Put(b"b", b"", b"%d" % n))


def entries(house: House) -> int:
    return sum(
        len(list(r.store.scan(s, b"", None))) for r in house.server.all_open() for s in ("f:a", "f:b", "versions")
    )


@pytest.mark.parametrize("logged", [False, True])
@pytest.mark.parametrize(("start", "stop"), [(b"", b""), (b"a\x00", b"m"), (b"m", b""), (b"", b"m\x00"), (b"c", b"d")])
def test_just_the_range_goes(start: bytes, stop: bytes, logged: bool) -> None:
    async def main() -> None:
        house = House(TABLE, (b"b\x00", b"m"))
        house.clock.now_ms += 1
        if logged:
            house.server.set_policy("t", LogPolicy(frozenset({b"a", b"b"}), frozenset()))
        await filled(house)
        house.clock.now_ms += 1
        doomed = [row for row in NAMES if start <= row and (not stop or row < stop)]
        deleted = await delete_rows(house.operations.access, b"t", start, stop)
        assert deleted == Deleted(len(doomed) if logged else None, None)
        left = [row for row in NAMES if row not in doomed]
        assert await names_of(house.scanner()) == left
        assert entries(house) == 3 * len(left)
        await house.put_value(b"c", b"again")
        assert b"c" in await names_of(house.scanner())
        await house.close()

    asyncio.run(main())


def test_every_deleted_row_is_in_the_log() -> None:
    async def main() -> None:
        house = House(TABLE)
        house.server.set_policy("t", LogPolicy(frozenset({b"a"}), frozenset()))
        await filled(house)
        house.clock.now_ms += 1
        await delete_rows(house.operations.access, b"t", b"b", b"n")
        records = [record for _, record in house.region().log.read_records(None)][2 * len(NAMES) :]
        assert [record.row for record in records] == [b"b", b"c", b"m", b"m\x00"]
        assert await delete_rows(house.operations.access, b"t", b"b", b"n") == Deleted(0, None), (
            "repeating it finds nothing"
        )
        await house.close()

    asyncio.run(main())


def test_a_long_range_is_deleted_call_by_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_deletes, "ROWS_PER_STEP", 3)
    monkeypatch.setattr(row_deletes, "ROWS_PER_CALL", 5)

    async def main() -> None:
        house = House(make_table("t", [Family("a"), Family("b")], {"DELETE_MARKERS": "100000"}), (b"m",))
        await filled(house)
        house.clock.now_ms += 1
        first = await delete_rows(house.operations.access, b"t", b"", b"")
        assert first.next_row is not None
        second = await delete_rows(house.operations.access, b"t", first.next_row, b"")
        assert (first.rows, second) == (7, Deleted(1, None))
        assert await names_of(house.scanner()) == []
        assert await delete_rows(house.operations.access, b"t", b"", b"") == Deleted(0, None), "markers are no rows"
        await house.close()

    asyncio.run(main())


def test_a_read_waits_for_the_fsync_of_a_range_that_went() -> None:
    async def main() -> None:
        house = House(TABLE)
        await filled(house)
        house.clock.now_ms += 1
        house.gate.hold()
        deleting = asyncio.ensure_future(delete_rows(house.operations.access, b"t", b"b", b"d"))
        await asyncio.sleep(0)
        assert house.row(b"c") == []
        barrier = house.region().syncs.barrier(b"c")
        assert barrier is not None
        assert not barrier.done()
        house.gate.release()
        await deleting
        await house.close()

    asyncio.run(main())


def test_cells_of_the_future_are_spared_as_by_every_delete() -> None:
    async def main() -> None:
        house = House(TABLE)
        await filled(house)
        house.clock.now_ms += 1
        await house.put(b"c", Put(b"a", b"q", b"later", house.clock.now_ms + 5_000))
        assert (await delete_rows(house.operations.access, b"t", b"", b"")).rows == len(NAMES)
        assert await names_of(house.scanner()) == [b"c"]
        await house.close()

    asyncio.run(main())


def test_rocksdb_forgets_a_range(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(str(tmp_path))

    async def main() -> None:
        house = House(TABLE, (b"b\x00", b"m"), engine=RocksEngine())
        await filled(house)
        house.clock.now_ms += 1
        await delete_rows(house.operations.access, b"t", b"a\x00", b"")
        assert await names_of(house.scanner()) == [b"a"]
        assert entries(house) == 3
        await house.close()

    asyncio.run(main())


def test_a_log_that_stays_full_ends_a_call_as_it_refuses_a_put(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_deletes, "STALL_TIMEOUT_S", 0.0)

    async def main() -> None:
        house = House(TABLE)
        house.server.set_policy("t", LogPolicy(frozenset({b"a"}), frozenset()))
        await filled(house)
        house.clock.now_ms += 1
        region = house.region()
        region.refuses_writes, region.log_obstacle = True, "trigger t is paused"
        access, asked = house.operations.access, OperationPeerHandlers(house.server)
        for call in (delete_rows(access, b"t", b"", b""), asked.answers[DeleteRows](DeleteRows("t", b"", b""))):
            with pytest.raises(RegionTooBusy, match="is full: trigger t is paused"):
                await asyncio.wait_for(call, 5)
        assert await names_of(house.scanner()) == NAMES
        region.refuses_writes = False
        assert await delete_rows(access, b"t", b"", b"") == Deleted(len(NAMES), None)
        await house.close()

    asyncio.run(main())


def test_a_log_that_has_room_again_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_deletes, "FULL_LOG_PAUSE_S", 0.0)

    async def main() -> None:
        house = House(TABLE)
        house.server.set_policy("t", LogPolicy(frozenset({b"a"}), frozenset()))
        await filled(house)
        house.clock.now_ms += 1
        region = house.region()
        region.refuses_writes = True
        deleting = asyncio.ensure_future(delete_rows(house.operations.access, b"t", b"", b""))
        for _ in range(9):
            await asyncio.sleep(0)
        assert region.writes == 2 * len(NAMES), "nothing is deleted meanwhile"
        region.refuses_writes = False
        assert await asyncio.wait_for(deleting, 5) == Deleted(len(NAMES), None)
        await house.close()

    asyncio.run(main())


def busy_once(house: House, method: str) -> asyncio.Event:
    """The region's engine is behind when ``method`` is called first; set by that."""
    region, was_called = house.region(), asyncio.Event()
    whole = getattr(region, method)

    def refuses(*given: Any) -> Any:
        if was_called.is_set():
            return whole(*given)
        was_called.set()
        raise StoreBusy("it is behind")

    setattr(region, method, refuses)
    return was_called


def test_a_range_that_waited_for_the_engine_goes_row_by_row_where_its_changes_are_logged_by_then() -> None:
    async def main() -> None:
        house = House(TABLE)
        await filled(house)
        house.clock.now_ms += 1
        was_called = busy_once(house, "delete_at_once")
        deleting = asyncio.ensure_future(delete_rows(house.operations.access, b"t", b"b", b"n"))
        await was_called.wait()
        house.server.set_policy("t", LogPolicy(frozenset({b"a"}), frozenset()))
        assert await deleting == Deleted(4, None)
        assert [record.row for _, record in house.region().log.read_records(None)] == [b"b", b"c", b"m", b"m\x00"]
        await house.close()

    asyncio.run(main())


def test_a_step_that_waited_for_the_engine_deletes_nothing_in_a_region_that_is_held() -> None:
    """What takes its place would not hear of that: the rows would be there again."""

    async def main() -> None:
        house = House(TABLE)
        house.server.set_policy("t", LogPolicy(frozenset({b"a"}), frozenset()))
        await filled(house)
        house.clock.now_ms += 1
        region, hosting = house.region(), house.server.hosting
        was_called = busy_once(house, "apply_many")
        deleting = asyncio.ensure_future(delete_rows(house.operations.access, b"t", b"", b""))
        await was_called.wait()
        for event in (Event.REPLACEMENT_BEGINS, Event.PAUSE_BEGINS):
            hosting.report_event(region, event)
        done, _ = await asyncio.wait([deleting], timeout=10 * STALL_POLL_S)
        assert not done
        assert region.writes == 2 * len(NAMES), "nothing is deleted meanwhile"
        for event in (Event.LET_IN, Event.CALLED_OFF):
            hosting.report_event(region, event)
        assert await deleting == Deleted(len(NAMES), None)
        await house.close()

    asyncio.run(main())


def test_a_step_that_waited_for_the_engine_goes_on_in_the_halves_of_a_split() -> None:
    @housed()
    async def run(house: ChangedHouse) -> None:
        await house.put(b"10", b"60", b"90")
        region = house.server.all_open()[0]
        whole, was_called = region.delete_at_once, asyncio.Event()

        def refuses(start: bytes, stop: bytes) -> asyncio.Future[None]:
            if was_called.is_set():
                return whole(start, stop)
            was_called.set()
            raise StoreBusy("it is behind")

        region.delete_at_once = refuses  # type: ignore[method-assign]
        access = TableAccess(house.server)
        deleting = asyncio.ensure_future(delete_rows(access, b"t", b"", b""))
        await was_called.wait()
        await house.regions.split(house.infos[0], b"50")
        assert (await deleting).next_row is None
        assert house.rows_held() == []

    run()
