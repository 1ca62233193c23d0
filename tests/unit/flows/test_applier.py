"""Effects that become batches: in order, told when they are on disk, and never stuck behind one that cannot be."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from columnar.errors import ColumnarError, IllegalArgument, RegionTooBusy
from columnar.flows import applier as module
from columnar.flows.applier import STEP_BYTES, STEP_OPERATIONS, Applier, Job
from columnar.flows.effects import size_of, writes_of
from columnar.flows.governor import Governor
from columnar.model.effect import Send
from columnar.model.mutation import Put, RowMutation
from columnar.model.schema import Family, make_table
from columnar.regions.region import Region
from columnar.runtime.background import Background
from columnar.storage.api import StoreBusy
from tests.support.region_house import House

T = make_table("t", [Family("f")], {"DELETE_MARKERS": "1000"})


class Bench(House):
    def __init__(self) -> None:
        super().__init__(T, (b"m",))
        self.background = Background("background work of followers")
        self.applier = Applier(self.operations.access, self.operations.writes, Governor(), self.background)
        self.told: list[tuple[str, ColumnarError | None]] = []

    def apply(self, name: str, *effects: Any, stamp: int = 5_000) -> Job:  # type: ignore[override]
        writes = writes_of(list(effects), stamp)
        return self.applier.apply(writes, size_of(writes), lambda error: self.told.append((name, error)), name)

    async def until_told(self, count: int) -> None:
        while len(self.told) < count:  # noqa: ASYNC110 - as fsyncs end
            await asyncio.sleep(0.001)

    def values(self, row: bytes) -> list[bytes]:
        return [value for _, value, _ in self.row(row)]


def on_bench(test: Callable[[Bench], Awaitable[None]]) -> Callable[[], None]:
    async def run() -> None:
        bench = Bench()
        try:
            async with asyncio.timeout(20):
                await test(bench)
        finally:
            bench.background.close()
            await bench.close()

    def wrapped() -> None:
        asyncio.run(run())

    wrapped.__name__ = test.__name__
    return wrapped


def put(row: bytes, value: bytes = b"1", table: bytes = b"t", column: bytes = b"f:a") -> list[Any]:
    return [1, table, row, {column: value}]


@contextmanager
def batches_by(size_of_batch: Callable[[list[RowMutation]], int]) -> Iterator[list[int]]:
    """The sizes of all batches that come to a region meanwhile."""
    sizes: list[int] = []
    apply_many = Region.apply_many

    def noted(region: Region, mutations: Any) -> Any:
        listed = list(mutations)
        sizes.append(size_of_batch(listed))
        return apply_many(region, listed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Region, "apply_many", noted)
        yield sizes


@on_bench
async def test_a_job_is_told_when_it_is_on_disk(bench: Bench) -> None:
    bench.gate.hold()
    bench.apply("one", put(b"a"), put(b"z"))
    while not bench.gate.entered.is_set():  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)
    assert bench.told == []
    bench.gate.release()
    await bench.until_told(1)
    assert bench.told == [("one", None)]
    assert [bench.row(b"a"), bench.row(b"z")] == [[(b"f:a", b"1", 5_000)]] * 2
    assert bench.applier._pending_bytes == 0


class _Caller:
    """Has its job, which knows whom to notify: a cycle, until the job is over."""

    def __init__(self, bench: Bench, effect: list[Any]) -> None:
        self._bench = bench
        writes = writes_of([effect], 5_000)
        self.job = bench.applier.apply(writes, size_of(writes), self._applied, on_trouble=self._trouble)

    def _applied(self, error: ColumnarError | None) -> None:
        self._bench.told.append(("caller", error))

    def _trouble(self) -> None:
        self._bench.told.append(("trouble", None))


@pytest.mark.parametrize("effect", [put(b"a"), put(b"a", table=b"none")], ids=["written", "in trouble"])
def test_the_writes_of_a_job_that_is_over_need_no_collector(effect: list[Any]) -> None:
    @on_bench
    async def run(bench: Bench) -> None:
        caller = weakref.ref(_Caller(bench, effect))
        await bench.until_told(1)
        await asyncio.sleep(0)
        assert caller() is None

    gc.disable()
    try:
        run()
    finally:
        gc.enable()


@on_bench
async def test_many_jobs_share_batches_and_fsyncs(bench: Bench) -> None:
    bench.region(b"a")
    with batches_by(lambda listed: len(listed)) as batches:
        for number in range(3 * STEP_OPERATIONS):
            bench.apply(str(number), put(b"%03d" % number))
        await bench.until_told(3 * STEP_OPERATIONS)
    assert batches == [STEP_OPERATIONS] * 3
    assert [error for _, error in bench.told] == [None] * 3 * STEP_OPERATIONS


@on_bench
async def test_a_step_has_so_many_bytes_however_few_operations_they_are_of(bench: Bench) -> None:
    bench.region(b"a")
    large = b"v" * (STEP_BYTES // 8)
    with batches_by(
        lambda listed: sum(len(put.value) for one in listed for put in one.operations if isinstance(put, Put))
    ) as batches:
        for number in range(3):
            bench.apply("large", put(b"a%d" % number, large))
        bench.apply("many", *(put(b"b%d" % number, large) for number in range(24)))
        await bench.until_told(4)
    assert sum(batches) == 27 * len(large)
    assert max(batches) <= STEP_BYTES
    assert len(batches) < 27


@on_bench
async def test_a_step_has_so_many_operations_however_few_rows_they_are_of(bench: Bench) -> None:
    bench.region(b"a")
    wide = {b"f:%02d" % number: b"1" for number in range(STEP_OPERATIONS // 4)}
    with batches_by(lambda listed: sum(len(one.operations) for one in listed)) as batches:
        bench.apply("wide", *([1, b"t", b"a%d" % number, wide] for number in range(8)))
        await bench.until_told(1)
    assert batches == [STEP_OPERATIONS] * 2


@on_bench
async def test_effects_on_one_row_keep_their_order(bench: Bench) -> None:
    bench.region(b"a")  # open: else two jobs go aside side by side
    bench.apply("one", put(b"a", b"1"), put(b"a", b"2"), [2, b"t", b"b", None], put(b"a", b"3"))
    bench.apply("two", put(b"a", b"4"))
    await bench.until_told(2)
    assert bench.values(b"a") == [b"4"]


@on_bench
async def test_an_error_is_its_own_jobs_alone(bench: Bench) -> None:
    bench.apply("good", put(b"a"))
    bench.apply("no table", put(b"b"), put(b"b", table=b"nowhere"))
    bench.apply("no family", put(b"c", column=b"none:q"))
    bench.apply("good too", put(b"d"))
    await bench.until_told(4)
    told = {name: None if error is None else type(error).__name__ for name, error in bench.told}
    assert told == {"good": None, "no table": "TableNotFound", "no family": "NoSuchColumnFamily", "good too": None}
    assert bench.values(b"d") == [b"1"]
    assert bench.applier._pending_bytes == 0


@on_bench
async def test_behind_a_write_that_is_refused_nothing_of_its_row_is_written(bench: Bench) -> None:
    """A later gift to the row would have the earlier one taken for late when the change comes again."""
    bench.region(b"a")  # open: else all of it goes aside
    bench.apply("refused", put(b"a", column=b"none:q"), put(b"a"), put(b"a", b"2"))
    bench.apply("good", put(b"b"))
    await bench.until_told(2)
    assert {name for name, error in bench.told if error is not None} == {"refused"}
    assert bench.values(b"a") == []


@on_bench
async def test_a_region_that_is_behind_or_full_holds_up_nobody_else(bench: Bench) -> None:
    region = bench.region(b"a")
    region.refuses_writes = True
    bench.apply("full", put(b"a"))
    bench.apply("free", put(b"z"))
    await bench.until_told(1)
    assert bench.told == [("free", None)]
    region.refuses_writes = False
    await bench.until_told(2)
    assert bench.told[1] == ("full", None)
    busy = [StoreBusy("behind")] * 2
    apply_many, apply = Region.apply_many, Region.apply

    def falls_behind(held: Region, *given: Any) -> Any:
        if held is region and busy:
            raise busy.pop()
        return (apply_many if isinstance(given[0], list) else apply)(held, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Region, "apply_many", falls_behind)
        patch.setattr(Region, "apply", falls_behind)
        bench.apply("behind", put(b"b"))
        await bench.until_told(3)
    assert not busy
    assert bench.values(b"b") == [b"1"]


@on_bench
async def test_what_a_failed_fsync_leaves_open_is_written_again(bench: Bench) -> None:
    bench.gate.fail()
    bench.apply("one", put(b"a"))
    while bench.gate.syncs == 0:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)
    assert bench.told == []
    bench.gate.release()
    await bench.until_told(1)
    assert bench.told == [("one", None)]
    assert bench.values(b"a") == [b"1"]


@on_bench
async def test_an_error_that_stays_is_told_in_the_end(bench: Bench) -> None:
    bench.region(b"a").refuses_writes = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "RETRY_TIMEOUT_S", 0.05)
        bench.apply("full", put(b"a"))
        await bench.until_told(1)
    ((name, error),) = bench.told
    assert name == "full"
    assert isinstance(error, RegionTooBusy)


@on_bench
async def test_a_follower_whose_effects_cannot_be_written_leaves_room_to_others(bench: Bench) -> None:
    """I3: each takes as much as it can, and there is always something left for the next one that comes."""
    bench.region(b"a").refuses_writes = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WAITING_BYTES", 100_000)
        jobs, held = [], []
        for name in ("one", "two", "three", "four"):
            assert bench.applier.has_room(name), "nobody has taken all of it"
            while bench.applier.has_room(name):
                jobs.append(bench.apply(name, put(b"a", bytes(100))))
            held.append(bench.applier._pending_by_follower[name])
        assert 50_000 <= held[0] < 51_000, "alone it has half"
        assert held == sorted(held, reverse=True)
        assert bench.applier._pending_bytes < 100_000
        freed: list[bool] = []
        bench.applier.notify_room(lambda: freed.append(bench.applier.has_room("one")))
        for job in jobs:
            bench.applier.give_up(job)
        assert freed[-1]
        assert not bench.applier._pending_by_follower


@on_bench
async def test_a_job_that_is_given_up_is_not_told_and_frees_its_room(bench: Bench) -> None:
    bench.region(b"a").refuses_writes = True
    aside = bench.apply("aside", put(b"a"))
    while not aside.is_aside:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0)
    large = [put(b"b", bytes(module.WAITING_BYTES // 8), column=b"f:%d" % number) for number in range(8)]
    queued = bench.apply("queued", *large)
    assert not bench.applier.has_room("queued")
    bench.applier.give_up(queued)
    bench.applier.give_up(aside)
    bench.applier.give_up(aside)
    assert bench.applier.has_room("queued")
    assert bench.applier._pending_bytes == 0
    bench.region(b"a").refuses_writes = False
    bench.apply("last", put(b"c"))
    await bench.until_told(1)
    while bench.background._tasks:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)
    assert bench.told == [("last", None)]
    assert bench.values(b"b") == []


@on_bench
async def test_messages_go_to_their_queues_in_the_order_of_the_effects_and_again_after_an_error(bench: Bench) -> None:
    pushed: list[tuple[bytes, list[bytes]]] = []
    failures: list[ColumnarError] = [RegionTooBusy("later")]

    async def push(target: bytes, sends: list[Any]) -> None:
        pushed.append((target, [one.body for one in sends]))
        if bench.row(b"a"):
            pushed.append((b"row", []))
        if failures:
            raise failures.pop()

    bench.applier.connect_queues(push)
    sends = [list(Send(f"queue:{queue}", body)) for queue, body in (("q", b"1"), ("q", b"2"), ("r", b"3"))]
    bench.apply("one", *sends, put(b"a"), list(Send("queue:q", b"4")))
    await bench.until_told(1)
    assert bench.told == [("one", None)]
    once = [(b"queue:q", [b"1", b"2"]), (b"queue:r", [b"3"]), (b"queue:q", [b"4"]), (b"row", [])]
    assert pushed == [once[0], *once], "again from the first one on, after the error"
    assert bench.applier._pending_bytes == 0


@on_bench
async def test_a_message_that_its_queue_refuses_fails_its_change_and_what_comes_after_it(bench: Bench) -> None:
    async def push(_target: bytes, _sends: list[Any]) -> None:
        raise IllegalArgument("no such name")

    bench.applier.connect_queues(push)
    bench.apply("one", list(Send("queue:a b", b"")), put(b"a"))
    bench.apply("other", put(b"b"))
    await bench.until_told(2)
    assert dict(bench.told)["other"] is None
    assert isinstance(dict(bench.told)["one"], IllegalArgument)
    assert (bench.row(b"a"), len(bench.row(b"b"))) == ([], 1)
