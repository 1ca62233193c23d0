"""The log's tail says what the log says, whatever is written, called off, trimmed and kept; and it stays small."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from columnar.regions.log import log_counts, log_tail
from columnar.regions.log.change_log import begin_log
from columnar.regions.log.change_record import ChangeRecord, Entry, Kind, Sequence, pack_key, unpack, unpack_key
from columnar.regions.log.log_retention import LOG_SPACE
from columnar.regions.log.log_tail import RECORD_BYTES, LogTail, LogTails
from columnar.storage.memory import MemoryEngine
from tests.support.deep import seeds
from tests.unit.triggers.test_dispatcher import Bench, on_bench

MARK = b"stamp"


class Run:
    def __init__(self, seed: int, tails: LogTails) -> None:
        self.rng = random.Random(seed)
        self.store = MemoryEngine().open_store("r", frozenset({"meta", LOG_SPACE}))
        older = begin_log(self.store, 3)
        self.ever: set[Sequence] = set()
        self.log = older
        self.write(5)
        self.log = begin_log(self.store, 7)
        self.write(self.rng.randrange(5))
        self.log.begin_tail(tails)

    def record(self) -> ChangeRecord:
        row, value = b"%03d" % self.rng.randrange(1_000), b"v" * self.rng.randrange(200)
        entry = Entry(Kind.PUT, b"f", b"q", 5, value)
        return ChangeRecord(row, 5, (entry,), (), None, self.rng.randrange(1_000))

    def write(self, count: int, *, called_off: int = 0) -> None:
        lost = self.store.batch()
        for _ in range(called_off):
            self.log.append(lost, self.log.next(), self.record())
        if count == 0:
            return
        batch = self.store.batch()
        appended = [self.log.append(batch, self.log.next(), self.record()) for _ in range(count)]
        self.ever.update(sequence for sequence, _, _ in appended)
        self.store.write_batch(batch)
        self.log.written(appended)

    def step(self) -> None:
        rng, log = self.rng, self.log
        kind = rng.random()
        if kind < 0.6:
            self.write(rng.randrange(1, 5), called_off=rng.choice([0, 0, 0, 2]))
        elif kind < 0.8:
            log.durable_n = rng.randrange(log.durable_n, log.last_n + 1)
        elif kind < 0.9:
            log.trim(Sequence(7, log.epoch, rng.randrange(log.durable_n + 1)), MARK, 9)
        else:
            log.keep(Sequence(7, log.epoch, rng.randrange(log.durable_n + 1)))

    def check(self) -> None:
        there = {unpack_key(key): unpack(data) for key, data in self.store.scan(LOG_SPACE, b"", None)}
        durable = {one: record for one, record in there.items() if one.origin != 7 or one <= self.log.durable}
        for after in (None, *there, self.log.written_to, self.log.durable, Sequence(7, 0, 0)):
            wanted = [(one, record) for one, record in durable.items() if after is None or one > after]
            assert list(self.log.read_records(after)) == wanted
            assert list(islice(self.log.read_records(after), 2)) == wanted[:2]
            count = sum(1 for one in there if after is None or one > after)
            assert self.log.count_after(after, 1_000) == count
            assert self.log.count_after(after, 1) == min(count, 1)
        for one in (*self.ever, Sequence(7, self.log.epoch, self.log.last_n + 1), Sequence(2, 1, 1)):
            assert self.log.record_at(one) == there.get(one)
        assert self.log._tail is not None
        self.log._tail.check_invariants()


@pytest.mark.parametrize("seed", range(seeds("seeds of a log's tail", deep=40, short=10)))
def test_it_says_what_the_log_says(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_counts, "EVERY", 4)
    monkeypatch.setattr(log_counts, "_SLACK", 2)
    monkeypatch.setattr(log_tail, "_COMPACT", 5)
    monkeypatch.setattr(log_tail, "LOG_TAIL_BYTES", 20 * RECORD_BYTES)
    tails = LogTails(30 * RECORD_BYTES)
    runs = [Run(seed * 10 + n, tails) for n in range(3)]
    for _ in range(100):
        run = runs[0].rng.choice(runs)
        run.step()
        run.check()
        sizes = [one.log._tail.size_bytes for one in runs if one.log._tail is not None]
        assert tails.size_bytes == sum(sizes) <= 30 * RECORD_BYTES
    for run in runs:
        run.log.end_tail()
    assert tails.size_bytes == 0
    assert not tails._tails


def test_the_tail_that_was_written_to_longest_ago_goes_first() -> None:
    tails = LogTails(4 * (RECORD_BYTES + 100))
    made = [LogTail(tails, Sequence(n, 1, 0)) for n in (1, 2)]
    for origin, n in ((1, 1), (1, 2), (2, 1), (1, 3), (1, 4), (2, 2)):
        made[origin - 1].append(Sequence(origin, 1, n), ChangeRecord(b"r", 1, ()), 100)
    assert [tail.count_after(tail.after) for tail in made] == [3, 1]


def test_what_went_is_held_by_nobody() -> None:
    tail = LogTail(LogTails(), Sequence(1, 1, 0))
    for n in range(1, 11):
        tail.append(Sequence(1, 1, n), ChangeRecord(b"%d" % n, 1, ()), 10)
    tail.trim(Sequence(1, 1, 4))
    tail.drop_oldest()
    tail.check_invariants()
    assert [record.row for _, record in tail.read_records(Sequence(1, 1, 5), Sequence(1, 1, 99))] == [
        b"6",
        b"7",
        b"8",
        b"9",
        b"10",
    ]


@on_bench()
async def test_a_follower_that_keeps_up_reads_no_log(bench: Bench) -> None:
    await bench.add("t")
    region, looked = bench.region(b"a"), []
    scan, get = region.store.scan, region.store.get

    def spying_scan(space: str, *rest: object) -> object:
        looked.append(space)
        return scan(space, *rest)  # type: ignore[arg-type]

    def spying_get(space: str, key: bytes) -> object:
        looked.append(space)
        return get(space, key)

    region.store.scan, region.store.get = spying_scan, spying_get  # type: ignore[method-assign,assignment]
    await bench.put(b"a", b"b", b"c")
    for call_id, _, _ in bench.main.take():
        bench.main.answer(call_id)
    assert await bench.keeper.wait_delivered("t", "", 1.0)
    assert LOG_SPACE not in looked
    await bench.triggers.remove("t")
    assert region.log._tail is None


def test_keys_and_sequences_have_one_order() -> None:
    """What the tail compares as tuples the store compares as bytes."""
    rng = random.Random(1)
    some = [Sequence(rng.randrange(1 << 40), rng.randrange(1 << 20), rng.randrange(1 << 40)) for _ in range(200)]
    assert sorted(some) == [unpack_key(key) for key in sorted(map(pack_key, some))]
