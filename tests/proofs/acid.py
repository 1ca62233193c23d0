"""HBase's TestAcidGuarantees: no reader ever sees a row with values of two writers, or with a part of its columns.

Writers put one value into every column of a row, over three families, or delete the whole row, by each method that
writes a row.  Getters and scanners read the rows meanwhile.  The rows are few, so that many clients meet in one row.
Flushes, compactions, splits, merges and kills go on; a kill may lose an unanswered write, but only as a whole.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from columnar.client import Delete, Put
from tests.proofs.asking import Asking, Cells, Lost, Refused, until_answered
from tests.proofs.crew import work_together
from tests.proofs.row_semantics import Change, Read
from tests.proofs.verdict import Plan, Tell, Verdict

TABLE: Final = b"acid"
FAMILIES: Final = {"a": {"max_versions": 1}, "b": {"max_versions": 3}, "c": {"max_versions": 1}}
COLUMNS: Final = tuple(b"%s:%d" % (family, n) for family in (b"a", b"b", b"c") for n in range(5))
ROWS: Final = tuple(b"r%02d" % n for n in range(12))
SIZES: Final = (10, 10, 10, 300, 4_000)  # bytes of a value


def split_row(rng: random.Random) -> bytes:
    return rng.choice(ROWS)


def wrong_with(cells: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the fault of a row that a reader saw, or an empty text."""
    seen = dict(cells)
    if not seen:
        return ""
    missing = [column for column in COLUMNS if column not in seen]
    if missing:
        return f"has no {missing}"
    if len(set(seen.values())) > 1:
        groups: dict[bytes, list[bytes]] = {}
        for column, value in seen.items():
            groups.setdefault(value[:24].rstrip(b"."), []).append(column)
        return f"mixes {groups}"
    return ""


class AcidWriter:
    def __init__(self, client: Asking, number: int, seed: int) -> None:
        self._client, self._number = client, number
        self._rng = random.Random(f"acid writer {seed} {number}")
        self._written = 0
        self.counts: Counter[str] = Counter()

    def run(self, stop: threading.Event) -> None:
        try:
            while not stop.is_set():
                self._one()
        finally:
            self._client.close()

    def _value(self) -> bytes:
        self._written += 1
        return (b"%d-%d" % (self._number, self._written)).ljust(self._rng.choice(SIZES), b".")

    def _one(self) -> None:
        row, chance, value = self._rng.choice(ROWS), self._rng.random(), self._value()
        puts = tuple(Put(column, value) for column in COLUMNS)
        try:
            if chance < 0.5:
                self._client.perform(row, Change(puts))
            elif chance < 0.7:
                rows = self._rng.sample(ROWS, 3)
                self._client.put_rows([(row, dict.fromkeys(COLUMNS, self._value())) for row in rows])
            elif chance < 0.9:
                deletes = tuple(Delete(family) for family in (b"a", b"b", b"c"))
                self._client.perform(row, Change(deletes + puts, way="checkAndMutate"))
            else:
                self._client.perform(row, Change(tuple(Delete(f) for f in (b"a", b"b", b"c")), way="deleteAllRow"))
            self.counts["writes"] += 1
        except Lost:
            self.counts["writes lost"] += 1
        except Refused:
            self.counts["writes refused"] += 1


class AcidReader:
    """A reader of one row at a time, or of all rows."""

    def __init__(self, client: Asking, scans: bool, number: int, seed: int, verdict: Verdict) -> None:
        self._client, self._scans, self._verdict = client, scans, verdict
        self._rng = random.Random(f"acid reader {seed} {number}")
        self.counts: Counter[str] = Counter()

    def run(self, stop: threading.Event) -> None:
        try:
            while not stop.is_set():
                try:
                    self.scan() if self._scans else self._get()
                except Lost:
                    self.counts["reads lost"] += 1
                except Refused:
                    self.counts["reads refused"] += 1
        finally:
            self._client.close()

    def _get(self) -> None:
        row, way = self._rng.choice(ROWS), self._rng.choice(("row", "rows"))
        self._judge(row, dict(self._client.perform(row, Read(way=way))), f"a get ({way})")
        self.counts["rows by get"] += 1

    def scan(self) -> None:
        backwards = self._rng.random() < 0.3
        rows = self._client.page(b"", len(ROWS) + 1, self._rng.choice((1, 3, 100)), backwards=backwards)
        names = [row for row, _ in rows]
        if names != sorted(set(names), reverse=backwards):
            self._verdict.add(f"a scan gives {names}")
        for row, cells in rows:
            self._judge(row, cells, "a scan")
        self.counts["rows by scan"] += len(rows)

    def _judge(self, row: bytes, cells: Cells, how: str) -> None:
        wrong = wrong_with(cells.items())
        if wrong:
            self._verdict.add(f"row {row.decode()}, seen by {how}, {wrong}")
        if not cells:
            self.counts["empty rows"] += 1


def prove(connect: Callable[[], Asking], plan: Plan, tell: Tell) -> Verdict:
    verdict = Verdict("ACID", needed=("writes", "rows by get", "rows by scan"))
    writers = [AcidWriter(connect(), n, plan.seed) for n in range(plan.writers)]
    readers = [AcidReader(connect(), n % 2 == 1, n, plan.seed, verdict) for n in range(max(2, plan.writers))]

    def counts() -> Counter[str]:
        return sum((one.counts for one in (*writers, *readers)), Counter[str]())

    def say() -> None:
        now = counts()
        tell(f"{now['writes']:,} writes, {now['rows by get'] + now['rows by scan']:,} rows seen")

    begun = time.monotonic()
    work_together([one.run for one in (*writers, *readers)], plan.seconds, say)
    took_s = time.monotonic() - begun
    last = AcidReader(connect(), True, 99, plan.seed, verdict)
    until_answered(last.scan)
    found = counts() + last.counts
    verdict.done, verdict.seconds = found["writes"], took_s
    verdict.counts = dict(sorted(found.items()))
    verdict.counts["mixed or partial rows"] = sum(" seen by " in p for p in verdict.problems) + verdict.more_problems
    return verdict
