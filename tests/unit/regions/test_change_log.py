"""What a change log says of itself, against a list: how much is there, how much of it somebody needs."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from columnar.regions.log import change_log, log_counts
from columnar.regions.log.change_log import ChangeLog, begin_log
from columnar.regions.log.change_record import ChangeRecord, Sequence, pack_key
from columnar.regions.log.log_retention import LOG_SPACE
from columnar.storage.memory import MemoryEngine

MARK = b"stamp"


class Run:
    """A log with what an earlier opening and another region left in it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.store = MemoryEngine().open_store("r", frozenset({"meta", LOG_SPACE}))
        self.there: dict[Sequence, int] = {}  # sizes
        self.needed_from = Sequence(0, 0, 0)
        self.epoch(3)
        self.epoch(7)
        self.log = begin_log(self.store, 7)

    def epoch(self, origin: int) -> None:
        log = begin_log(self.store, origin)
        for _ in range(self.rng.randrange(30)):
            self.append(log)

    def append(self, log: ChangeLog) -> None:
        batch, sequence = self.store.batch(), log.next()
        row = b"r" * self.rng.randrange(1, 50)
        appended = log.append(batch, sequence, ChangeRecord(row, 5, (), (), None, 6))
        self.store.write_batch(batch)
        log.written([appended])
        self.there[sequence] = appended[2]

    def step(self) -> None:
        rng, log = self.rng, self.log
        kind = rng.random()
        if kind < 0.5:
            self.append(log)
        elif kind < 0.7:
            self.needed_from = max(self.needed_from, rng.choice([*self.there, log.written_to]))
            while log.keep(self.needed_from):
                pass
        elif kind < 0.75:
            self.needed_from = Sequence(7, log.epoch, log.last_n + 1)
            log.keep_all()
        elif kind < 0.85:
            log.counts.count_step(rng.randrange(1, 20))
        else:
            self.trim()

    def trim(self) -> None:
        old = self.rng.choice([None, *self.there])
        most = self.rng.randrange(1_000)
        while self.log.trim_kept(self.log.written_to, old, most, MARK, 9):
            pass
        held = {key for key, _ in self.store.scan(LOG_SPACE, b"", None)}
        gone = {one for one in self.there if pack_key(one) not in held}
        for one in gone:
            del self.there[one]
        assert all(one < self.needed_from for one in gone), "what is needed stays"
        if old is not None:
            assert not any(one < min(old, self.needed_from) for one in self.there), "what is old goes"

    def check_counts(self) -> None:
        there = sorted(self.there)
        places = [None, Sequence(7, self.log.epoch, 0), self.log.written_to]
        for after in [*places, *self.rng.sample(there, min(len(there), 6))]:
            count = sum(1 for one in there if after is None or one > after)
            for limit in (1, 5, 1_000):
                assert self.log.count_after(after, limit) == min(count, limit)

    def check(self) -> None:
        while self.log.counts.count_step(1_000):
            pass
        needed = [size for one, size in self.there.items() if one >= self.needed_from]
        assert (self.log.counts.records, self.log.counts.size_bytes) == (len(self.there), sum(self.there.values()))
        assert self.log.counts.needed == (len(needed), sum(needed))


@pytest.mark.parametrize("step_records", [3, 10_000])
def test_what_is_there_and_what_is_needed(monkeypatch: pytest.MonkeyPatch, step_records: int) -> None:
    monkeypatch.setattr(change_log, "TRIM_RECORDS", step_records)
    monkeypatch.setattr(log_counts, "EVERY", 3)
    monkeypatch.setattr(log_counts, "_SLACK", 2)
    for seed in range(150):
        run = Run(seed)
        for _ in range(60):
            run.step()
            run.check_counts()
        run.check()
        run.check_counts()
        run.trim()
        run.check()


def test_the_size_ends_a_log_at_its_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(1)
    run.check()
    run.needed_from = Sequence(7, run.log.epoch, run.log.last_n + 1)
    run.log.keep_all()
    newest = list(run.there)[-4:]
    most = sum(run.there[one] for one in newest)
    monkeypatch.setattr(run, "rng", random.Random(0))
    while run.log.trim_kept(run.log.written_to, None, most, MARK, 9):
        pass
    assert [key for key, _ in run.store.scan(LOG_SPACE, b"", None)] == [pack_key(one) for one in newest]
    assert run.store.get("meta", MARK) == (9).to_bytes(8, "big"), "stamps of what is gone stay known"


def test_a_lag_costs_the_same_however_far_behind_somebody_is(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryEngine().open_store("r", frozenset({"meta", LOG_SPACE}))
    for _ in range(2):
        log = begin_log(store, 7)
        for _ in range(2_000):
            batch = store.batch()
            appended = log.append(batch, log.next(), ChangeRecord(b"r", 5, ()))
            store.write_batch(batch)
            log.written([appended])
    while log.counts.count_step(1_000):
        pass
    looked: list[bytes] = []
    scan = store.scan

    def counted(space: str, start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        for found in scan(space, start, stop):
            looked.append(found[0])
            yield found

    monkeypatch.setattr(store, "scan", counted)
    for after, behind in (
        (None, 4_000),
        (Sequence(7, 1, 700), 3_300),
        (Sequence(7, 2, 0), 2_000),
        (Sequence(7, 2, 5), 1_995),
    ):
        looked.clear()
        assert log.count_after(after, 10_000) == behind
        assert len(looked) <= 2 * log_counts.EVERY
