"""Writes of rows: into batches of one region each, batch after batch, in steps between which others are served.

    planned    the call's rows are checked and put into batches; nothing is written before all of them are
    written    batch after batch; one row's operations are one atomic step, and never cut
    answered   when every batch is durable

A small call does all of it at once; one that takes longer than a step goes on as a coroutine.

Invariants:
    I1. A row has at most ``limits.ROW_OPERATIONS`` operations a step; a row that one call names again and again gets
        several steps, in the order given.
    I2. Work is linear in what the call holds, however often it names a row.
    I3. No batch is begun once the call's connection has ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Final

from columnar.errors import RegionAway
from columnar.limits import BATCH_BYTES, ROW_OPERATIONS
from columnar.model.mutation import Durability, Operation, Put, RowMutation, RowPuts, RowWrite
from columnar.operations.access import Caller, TableAccess, after, joined
from columnar.regions.applied import Applied
from columnar.regions.patience import patiently
from columnar.regions.tables import ServedTable
from columnar.storage.api import StoreBusy
from columnar.turns import HasGone

Answer = Callable[[Applied | None], Any]  # what was applied last (None: nothing was asked for) to the reply
Work = list[tuple[ServedTable, list[RowWrite]]]  # batches, each of rows of one region
Make = Callable[[Any], RowWrite | None]  # what one element of a call asks of its row, checked

STEP_S: Final = 0.02  # of planning, and of writing what is planned
LOOKED_AT: Final = 16  # elements between two looks at the clock
OPERATION_BYTES: Final = 256  # what an operation counts beside its value: a batch holds at most 16,000 of them
PUT_BYTES: Final = 64  # ... in a row of a bulk load, which costs a third


class _Joined:
    """Several mutations of one row in one call: one step."""

    __slots__ = ("durability", "operations", "row")

    def __init__(self, first: RowMutation) -> None:
        self.row = first.row
        self.operations: list[Operation] = list(first.operations)
        self.durability = first.durability

    def add(self, other: RowMutation) -> None:
        self.operations += other.operations
        if other.durability is Durability.SYNC:
            self.durability = Durability.SYNC

    def mutation(self) -> RowMutation:
        return RowMutation(self.row, tuple(self.operations), (), self.durability)


def _spelled_out(write: RowWrite) -> RowMutation:
    return write.spelled_out() if isinstance(write, RowPuts) else write


class RowPlan:
    """The elements of one call on their way into batches."""

    def __init__(self, access: TableAccess, served: ServedTable, asked: Sequence[Any], make: Make) -> None:
        self.served = served
        self.work: Work = []
        self._access = access
        self._asked = asked
        self._make = make
        self._at = 0  # in ``asked``
        self._by_row: dict[bytes, RowWrite | _Joined] = {}
        self._parts: list[dict[bytes, RowWrite | _Joined]] = []  # a row is once in each (I1)
        self._left: list[RowWrite | _Joined] = []  # of the part that is put into batches, the next one last
        self._open: dict[int, tuple[list[RowWrite], int]] = {}  # by region: its last batch, and the bytes of it

    def step(self) -> bool:
        """Go on for STEP_S; True: all is planned.  CallerError, RegionTooBusy; RegionAway, and it can go on later."""
        ends = perf_counter() + STEP_S
        asked, at = self._asked, self._at
        while at < len(asked):
            write = self._make(asked[at])
            at = self._at = at + 1
            if write is not None:
                self._join(write)
            if not at % LOOKED_AT and perf_counter() >= ends:
                return False
        if self._by_row:
            self._parts.append(self._by_row)
            self._by_row = {}
            self._parts.reverse()
        return self._place(ends)

    def _join(self, write: RowWrite) -> None:
        held = self._by_row.get(write.row)
        if held is None:
            self._by_row[write.row] = write
            return
        if not isinstance(held, _Joined):
            held = self._by_row[write.row] = _Joined(_spelled_out(held))
        mutation = _spelled_out(write)
        if len(held.operations) + len(mutation.operations) > ROW_OPERATIONS:
            self._parts.append(self._by_row)
            self._by_row = {write.row: write}
        else:
            held.add(mutation)

    def _place(self, ends: float) -> bool:
        looked = 0
        while self._left or self._parts:
            if not self._left:
                self._left = list(self._parts.pop().values())
                self._left.reverse()
                self._open.clear()
            one = self._left[-1]
            region = self._access.writable(self.served, one.row)
            self._left.pop()
            self._put(region.info.region_id, one.mutation() if isinstance(one, _Joined) else one)
            looked += 1
            if not looked % LOOKED_AT and perf_counter() >= ends:
                return False
        return True

    def _put(self, region_id: int, write: RowWrite) -> None:
        """Batches are not over ``limits.BATCH_BYTES`` but for single rows."""
        size = _size(write)
        held = self._open.get(region_id)
        if held is None or held[1] + size > BATCH_BYTES:
            held = ([], 0)
            self.work.append((self.served, held[0]))
        held[0].append(write)
        self._open[region_id] = (held[0], held[1] + size)


class RowWrites:
    def __init__(self, access: TableAccess) -> None:
        self._access = access

    # --- what services call ------------------------------------------------------------------------

    def write(self, caller: Caller, served: ServedTable, mutation: RowMutation, answer: Answer) -> Any:
        """Write one row as one step; ``answer`` makes the reply from what was applied."""
        access = self._access
        if served.is_throttled:
            access.admit(served, writes=True)
        region = access.writable(served, mutation.row)
        try:
            applied = region.apply(mutation)
        except StoreBusy:
            return self._go_on(caller.has_gone, [(served, [mutation])], [], answer)
        if served.is_throttled:
            access.charge_writes(served, [mutation])
        return after(access.acknowledgement(region, applied), answer(applied))

    def write_alone(self, caller: Caller, served: ServedTable, row: RowWrite, answer: Answer) -> Any:
        """As ``write``, of a row that may be nothing but puts."""
        if served.is_throttled:
            self._access.admit(served, writes=True)
        self._access.writable(served, row.row)
        return self._write_work(caller, [(served, [row])], answer)

    def write_planned(
        self,
        caller: Caller,
        served: ServedTable,
        asked: Sequence[Any],
        make: Callable[[ServedTable], Make],
        answer: Answer,
    ) -> Any:
        """Every element of ``asked`` is checked before anything is written; the answer is made from the last row."""
        if served.is_throttled:
            self._access.admit(served, writes=True)
        plan = RowPlan(self._access, served, asked, make(served))
        try:
            if plan.step():
                return self._write_work(caller, plan.work, answer)
        except RegionAway:
            pass  # planning continues at the row whose region is away
        return self._plan_rest(caller.has_gone, plan, asked, make, answer)

    async def _plan_rest(
        self,
        has_gone: HasGone,
        plan: RowPlan,
        asked: Sequence[Any],
        make: Callable[[ServedTable], Make],
        answer: Answer,
    ) -> Any:
        turns, done = self._access.gathering.turns, False
        while not done:
            await turns.turn()
            done = await patiently(plan.step, has_gone)
            served = self._access.again(plan.served)
            if served.schema is not plan.served.schema:  # altered meanwhile: what was checked may not hold
                plan, done = RowPlan(self._access, served, asked, make(served)), False
        return await self._go_on(has_gone, plan.work, [], answer)

    def write_rows(self, caller: Caller, served: ServedTable, by_row: Mapping[bytes, RowWrite], answer: Answer) -> Any:
        """Each row a step of its own; they have all been checked."""
        return self.write_planned(caller, served, list(by_row.values()), _as_they_are, answer)

    def write_each(self, caller: Caller, asked: Sequence[tuple[ServedTable, RowMutation]], answer: Answer) -> Any:
        """Rows of several tables, each a step of its own, in order; they have all been checked."""
        work: Work = []
        for served, mutation in asked:
            if served.is_throttled:
                self._access.admit(served, writes=True)
            work.append((served, [mutation]))
        try:
            for served, mutation in asked:
                self._access.writable(served, mutation.row)
        except RegionAway:
            return self._write_when_open(caller.has_gone, asked, work, answer)
        return self._write_work(caller, work, answer)

    async def _write_when_open(
        self, has_gone: HasGone, asked: Sequence[tuple[ServedTable, RowMutation]], work: Work, answer: Answer
    ) -> Any:
        for served, mutation in asked:
            await patiently(partial(self._access.writable, served, mutation.row), has_gone)
        return await self._go_on(has_gone, work, [], answer)

    # --- batch by batch ----------------------------------------------------------------------------

    def _write_work(self, caller: Caller, work: Work, answer: Answer) -> Any:
        """Batch after batch; the rest waits where the engine falls behind."""
        waits: list[Any] = []
        applied: Applied | None = None
        ends = perf_counter() + STEP_S
        for number, step in enumerate(work):
            if number and perf_counter() >= ends:
                return self._go_on(caller.has_gone, work[number:], waits, answer)
            try:
                applied = self._apply(step, waits)
            except (StoreBusy, RegionAway):  # closed again meanwhile, for regions of later batches
                return self._go_on(caller.has_gone, work[number:], waits, answer)
        return after(joined(waits), answer(applied))

    async def _go_on(self, has_gone: HasGone, work: Work, waits: list[Any], answer: Answer) -> Any:
        applied: Applied | None = None
        left = deque(work)
        turns = self._access.gathering.turns
        while left:
            await turns.turn()
            applied = await patiently(partial(self._apply_next, left, waits), has_gone)
        for waiting in waits:
            if waiting is not None:
                await waiting
        return answer(applied)

    def _apply_next(self, left: deque[tuple[ServedTable, list[RowWrite]]], waits: list[Any]) -> Applied:
        """The first batch of ``left``, or as much of it as one region holds: it may have been split meanwhile."""
        served, mutations = left[0]
        info = served.holding(mutations[0].row)
        here = [mutation for mutation in mutations if info.holds(mutation.row)]
        applied = self._apply((served, here), waits)
        elsewhere = [mutation for mutation in mutations if not info.holds(mutation.row)]
        if elsewhere:
            left[0] = (served, elsewhere)
        else:
            left.popleft()
        return applied

    def _apply(self, step: tuple[ServedTable, list[RowWrite]], waits: list[Any]) -> Applied:
        served, mutations = step
        # Looked up anew: opening the others may have closed it (limits.OPEN_REGIONS), and the table may have changed.
        served = self._access.again(served)
        region = self._access.region_for(served, mutations[0].row)
        first = mutations[0]
        if len(mutations) == 1 and isinstance(first, RowMutation):
            applied = region.apply(first)
        else:
            applied = region.apply_many(mutations)
        if served.is_throttled:
            self._access.charge_writes(served, mutations)
        waits.append(self._access.acknowledgement(region, applied))
        return applied


def _as_they_are(_served: ServedTable) -> Make:
    return _as_it_is


def _as_it_is(write: Any) -> RowWrite:
    checked: RowWrite = write
    return checked


def _size(mutation: RowWrite) -> int:
    """Bytes that it takes, roughly."""
    if isinstance(mutation, RowPuts):
        size = PUT_BYTES * len(mutation.values)
        for value in mutation.values:
            size += len(value)
        return size
    size = OPERATION_BYTES * len(mutation.operations)
    for operation in mutation.operations:
        if isinstance(operation, Put):
            size += len(operation.value)
    return size
