"""Tables in memory that keep the promises of ``Asking``, and tables that break one of them on purpose.

They show that each proof finds the faults for which it exists.  ``MemoryTable`` is the honest table; each liar does one
thing wrong, at about every ``one_in``-th opportunity.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from typing import Any

from columnar.client import Increment, Put
from tests.proofs.asking import AnyCall, Cells, Lost
from tests.proofs.group_semantics import Census, GroupChange, Transfer, step
from tests.proofs.row_semantics import EMPTY, Change, Changed, Read


class MemoryTable:
    """An honest table in memory.  Any thread may call; each call is one step."""

    def __init__(self, seed: int = 0, one_in: int = 50) -> None:
        self._rng, self._one_in = random.Random(seed), one_in
        self._lock = threading.Lock()
        self.rows: dict[bytes, Any] = {}
        self.lies = 0

    def lies_now(self) -> bool:
        lies = self._rng.randrange(self._one_in) == 0
        self.lies += lies
        return lies

    def perform(self, row: bytes, call: AnyCall) -> Any:
        with self._lock:
            return self.step(row, call)

    def step(self, row: bytes, call: AnyCall) -> Any:
        answer, self.rows[row] = step(self.rows.get(row, EMPTY), call)
        return answer

    def put_rows(self, rows: Sequence[tuple[bytes, Cells]]) -> None:
        for row, cells in rows:
            self.perform(row, Change(tuple(Put(column, value) for column, value in cells.items())))

    def page(self, start: bytes, rows: int, batch: int, *, backwards: bool = False) -> list[tuple[bytes, Cells]]:
        with self._lock:
            names = sorted((row for row, cells in self.rows.items() if cells), reverse=backwards)
            after = [row for row in names if not start or (row <= start if backwards else row >= start)]
            return [(row, dict(self.rows[row])) for row in after[:rows]]

    def close(self) -> None:
        pass


class LosesWrites(MemoryTable):
    """A table that acknowledges a change without making it."""

    def step(self, row: bytes, call: AnyCall) -> Any:
        if call.changes and self.lies_now():
            return step(self.rows.get(row, EMPTY), call)[0]
        return super().step(row, call)


class ReadsThePast(MemoryTable):
    """A table that answers a read with the row as it was some changes ago."""

    def __init__(self, seed: int = 0, one_in: int = 50) -> None:
        super().__init__(seed, one_in)
        self._past: dict[bytes, list[Any]] = {}

    def step(self, row: bytes, call: AnyCall) -> Any:
        past = self._past.setdefault(row, [EMPTY])
        if isinstance(call, Read) and self.lies_now():
            return step(past[0], call)[0]
        answer = super().step(row, call)
        if past[-1] != self.rows[row]:
            self._past[row] = [*past[-5:], self.rows[row]]
        return answer


class LosesUpdates(MemoryTable):
    """A table that reads for an increment, lets others write, and then writes."""

    def perform(self, row: bytes, call: AnyCall) -> Any:
        if not (isinstance(call, Change) and isinstance(call.operations[0], Increment)):
            return super().perform(row, call)
        with self._lock:
            answer, after = step(self.rows.get(row, EMPTY), call)
        threading.Event().wait(0.001)
        with self._lock:
            self.lies += self.rows.get(row, EMPTY) != step(after, Read())[1]
            self.rows[row] = after
        return answer


class TearsRows(MemoryTable):
    """A table that writes the first half of a change's cells, and the second half a little later."""

    def perform(self, row: bytes, call: AnyCall) -> Any:
        if not isinstance(call, Change) or len(call.operations) < 2 or call.conditions:
            return super().perform(row, call)
        half = len(call.operations) // 2
        self.lies += 1
        for part in (call.operations[:half], call.operations[half:]):
            super().perform(row, Change(part))
            threading.Event().wait(0.001)
        return Changed(True)


class ForgetsHalfARow(MemoryTable):
    """A table that keeps only the first cell of a change with several cells."""

    def step(self, row: bytes, call: AnyCall) -> Any:
        if isinstance(call, Change) and len(call.operations) > 1 and self.lies_now():
            return super().step(row, Change(call.operations[:1]))
        return super().step(row, call)


class ScansTwice(MemoryTable):
    """A table that returns a row of a scan twice."""

    def page(self, start: bytes, rows: int, batch: int, *, backwards: bool = False) -> list[tuple[bytes, Cells]]:
        found = super().page(start, rows, batch, backwards=backwards)
        self.lies += bool(found)
        return found[:1] + found


class ComesBack(MemoryTable):
    """A table that loses the answer to a change, and makes that change too late, after a later change."""

    def __init__(self, seed: int = 0, one_in: int = 50) -> None:
        super().__init__(seed, one_in)
        self._late: list[tuple[bytes, AnyCall]] = []

    def step(self, row: bytes, call: AnyCall) -> Any:
        if not isinstance(call, Change):
            return super().step(row, call)
        if self.lies_now():
            self._late.append((row, call))
            raise Lost("as told")
        answer = super().step(row, call)
        late, self._late = self._late, []
        for one in late:
            super().step(*one)
        return answer


class LosesAnswers(MemoryTable):
    """An honest table that loses answers; half of these calls are made, half are not."""

    def step(self, row: bytes, call: AnyCall) -> Any:
        if self.lies_now():
            if self._rng.random() < 0.5:
                super().step(row, call)
            raise Lost("as told")
        return super().step(row, call)


class WritesHalfAGroup(MemoryTable):
    """A table that keeps only the first row of a change of several rows."""

    def step(self, row: bytes, call: AnyCall) -> Any:
        if isinstance(call, GroupChange) and len(call.rows) > 1 and self.lies_now():
            answer = step(self.rows.get(row, EMPTY), call)[0]
            super().step(row, GroupChange(call.rows[:1]))
            return answer
        return super().step(row, call)


class ComparesNothing(MemoryTable):
    """A table whose transactions read, let others write, and then write."""

    def perform(self, row: bytes, call: AnyCall) -> Any:
        if not isinstance(call, Transfer | Census):
            return super().perform(row, call)
        with self._lock:
            before = self.rows.get(row, EMPTY)
            answer, after = step(before, call)
        threading.Event().wait(0.001)
        with self._lock:
            self.lies += self.rows.get(row, EMPTY) != before
            self.rows[row] = after
        return answer
