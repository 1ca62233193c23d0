"""Writes of rows: one batch for a region after the other, in steps, between which other requests are served.

    plan       the call's rows are checked and put into batches; the first write comes after all rows are checked
    write      batch after batch is written; the operations of one row are one atomic step, which is never cut
    answer     when every batch is durable

A small call does all of this at once; a call that takes longer than a step continues as a coroutine.

Invariants (I1 and I2 are in ``operations.row_plan``):
    I3. No batch is begun once the call's connection has ended.
    I4. If a batch of the call was written before an error, the error's text says so.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, Final

from columnar.errors import ColumnarError, RegionNotLocal, RegionUnavailable
from columnar.model.mutation import Append, Contribute, Increment, RowMutation, RowWrite
from columnar.operations.access import Caller, TableAccess, after, joined
from columnar.operations.row_plan import STEP_S, Make, RowPlan, Work
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.tables import ServedTable
from columnar.regions.write.applied import Applied, last_applied
from columnar.regions.write.ingestion import IncomingRows, ingest
from columnar.runtime.loop_budget import IsDisconnected
from columnar.storage.api import StoreBusy

OTHERS_WRITTEN: Final = "; other rows of the call may have been written"

Answer = Callable[[Applied | None], Any]  # from what was applied last (None: the call was empty) to the reply


Written = list[tuple[Applied, Any]]  # of each batch that a call has written: its outcome, and the wait for its fsync
Outcomes = list[Applied | None]  # of rows under conditions, in order; None: the row was left without effect


class RowWrites:
    def __init__(self, access: TableAccess) -> None:
        self._access = access

    # --- what services call ------------------------------------------------------------------------

    def write_row(self, caller: Caller, served: ServedTable, row: RowWrite, answer: Answer) -> Any:
        """Write the row of a call for a single row, as one step; ``answer`` makes the reply from what was applied.

        Raises RegionNotLocal, perhaps after a wait for the engine, and then the call is forwarded as it came.
        """
        return self._write_row(caller, served, row, answer, True)

    def write_single(self, caller: Caller, served: ServedTable, row: RowWrite, answer: Answer) -> Any:
        """Write the only row of a call for many rows; if a different server owns it, only the row is sent there."""
        try:
            return self._write_row(caller, served, row, answer, False)
        except RegionNotLocal as error:
            return self._access.remote(error).writes(caller.has_gone, [(served, row)], answer)

    def _write_row(
        self, caller: Caller, served: ServedTable, row: RowWrite, answer: Answer, forwards_call: bool
    ) -> Any:  # fmt: skip
        access = self._access
        if served.schema.kept_by:
            served.schema.check_written_by()
        if served.is_throttled:
            access.admit(served, writes=True)
        region = access.writable(served, row.row)
        try:
            applied = region.apply(row) if isinstance(row, RowMutation) else region.apply_many([row])
        except StoreBusy:
            if forwards_call:
                return self._continue_writing(caller.has_gone, deque([(served, [row])]), [], answer)
            return self._continue_on_all_servers(caller.has_gone, [(served, [row])], [], answer)
        if served.is_throttled:
            access.charge_writes(served, [row])
        return after(access.acknowledgement(region, applied), answer(applied))

    def write_planned(
        self,
        caller: Caller,
        served: ServedTable,
        elements: Sequence[Any],
        make: Callable[[ServedTable], Make],
        answer: Answer,
    ) -> Any:
        """Check every element, then write all of them; the answer is made from the last row."""
        if served.schema.kept_by:
            served.schema.check_written_by()
        if served.is_throttled:
            self._access.admit(served, writes=True)
        plan = RowPlan(self._access, served, elements, make(served))
        try:
            if plan.step():
                return self._write_work(caller, plan.work, answer)
        except RegionUnavailable:
            pass  # planning continues at the row whose region is unavailable
        except RegionNotLocal as error:
            return self._access.remote(error).writes(caller.has_gone, plan.take_all_rows(), answer)
        return self._plan_rest(caller.has_gone, plan, elements, make, answer)

    async def _plan_rest(
        self,
        is_disconnected: IsDisconnected,
        plan: RowPlan,
        elements: Sequence[Any],
        make: Callable[[ServedTable], Make],
        answer: Answer,
    ) -> Any:
        loop_budget, done = self._access.reply_memory.loop_budget, False
        while not done:
            await loop_budget.wait_for_budget()
            try:
                done = await retry_until_ready(plan.step, is_disconnected)
            except RegionNotLocal as error:
                return await self._access.remote(error).writes(is_disconnected, plan.take_all_rows(), answer)
            served = self._access.again(plan.served)
            if served.schema is not plan.served.schema:  # the table was altered: the checks may be outdated
                plan, done = RowPlan(self._access, served, elements, make(served)), False
        return await self._continue_on_all_servers(is_disconnected, plan.work, [], answer)

    def write_rows(self, caller: Caller, served: ServedTable, by_row: Mapping[bytes, RowWrite], answer: Answer) -> Any:
        """Write rows that have all been checked, each as a step of its own."""
        return self.write_planned(caller, served, list(by_row.values()), _as_they_are, answer)

    def write_each(
        self, caller: Caller, writes: Sequence[tuple[ServedTable, RowMutation]], answer: Answer, keeper: str = ""
    ) -> Any:
        """Write rows of several tables, which have all been checked, each as a step of its own, in order.

        ``keeper`` is the view that writes its own table, or empty.
        """
        work: Work = []
        for served, mutation in writes:
            if served.schema.kept_by:
                served.schema.check_written_by(keeper)
            if served.is_throttled:
                self._access.admit(served, writes=True)
            work.append((served, [mutation]))
        try:
            for served, mutation in writes:
                self._access.writable(served, mutation.row)
        except RegionUnavailable:
            return self._write_when_open(caller.has_gone, writes, work, answer)
        except RegionNotLocal as error:
            return self._access.remote(error).writes(caller.has_gone, writes, answer)
        return self._write_work(caller, work, answer)

    async def _write_when_open(
        self,
        is_disconnected: IsDisconnected,
        writes: Sequence[tuple[ServedTable, RowMutation]],
        work: Work,
        answer: Answer,
    ) -> Any:
        try:
            for served, mutation in writes:
                await retry_until_ready(partial(self._writable_again, served, mutation.row), is_disconnected)
        except RegionNotLocal as error:
            return await self._access.remote(error).writes(is_disconnected, writes, answer)
        return await self._continue_on_all_servers(is_disconnected, work, [], answer)

    def _writable_again(self, served: ServedTable, row: bytes) -> None:
        self._access.writable(self._access.again(served), row)

    async def write_owned(self, served: ServedTable, rows: Sequence[RowWrite]) -> tuple[Applied | None, list[RowWrite]]:
        """Write those of ``rows`` that this server owns, each as a step; return the last change, and the other rows.

        The gateway has checked the rows, and names each once.  Returns when every row that was written is durable.
        """
        if served.is_throttled:
            self._access.admit(served, writes=True)
        not_local: list[RowWrite] = []
        plan, planned = RowPlan(self._access, served, rows, _as_it_is), False
        while not planned:
            try:
                planned = await retry_until_ready(plan.step)
            except RegionNotLocal:
                not_local.append(plan.pass_over())
        written: Written = []
        left = deque(_counters_alone(plan.work))
        loop_budget = self._access.reply_memory.loop_budget
        while left:
            await loop_budget.wait_for_budget()
            try:
                await retry_until_ready(partial(self._apply_next, left, written))
            except RegionNotLocal:
                not_local += left.popleft()[1]
            except ColumnarError as error:
                if not written:
                    raise
                raise partly(error) from error
        await _all_durable(written)
        return last_applied([applied for applied, _ in written]), not_local

    def write_checked(
        self, served: ServedTable, mutations: Sequence[RowMutation], answer: Callable[[Outcomes], Any]
    ) -> Any:  # fmt: skip
        """Write several rows under conditions, each row as a step of its own; each is named once, and was checked.

            written   or refused by a condition, as in a call for the row alone
            left      without effect, because a different server owns its region, the region is unavailable or busy, the
                      row met an error, or the call has worked for STEP_S.  The caller sends such a row in its own call

        So a call never waits for a region and sends nothing to other servers, and an error never hides the outcomes of
        earlier rows.  The answer waits until all that was written, or that a condition saw, is on disk.
        """
        access = self._access
        if served.schema.kept_by:
            served.schema.check_written_by()
        if served.is_throttled:
            access.admit(served, writes=True)
        outcomes: Outcomes = []
        waits: list[Any] = []
        ends_s = perf_counter() + STEP_S
        for mutation in mutations:
            if outcomes and perf_counter() >= ends_s:
                break
            try:
                region = access.writable(served, mutation.row)
                applied = region.apply(mutation)
            except ColumnarError:
                outcomes.append(None)
                continue
            if served.is_throttled:
                access.charge_writes(served, [mutation])
            waits.append(access.acknowledgement(region, applied))
            outcomes.append(applied)
        outcomes += [None] * (len(mutations) - len(outcomes))
        return after(joined(waits), answer(outcomes))

    async def ingest(self, served: ServedTable, incoming: IncomingRows) -> bool:
        """Ingest the rows at their owner (``regions.write.ingestion.ingest``).

        The paths of ``incoming`` are relative to the data folder.
        Raises OutcomeUnknown, after which the same load may be begun again.
        """
        access = self._access
        served.schema.check_written_by()
        try:
            region = await retry_until_ready(lambda: access.region_for(access.again(served), incoming.first))
        except RegionNotLocal as error:
            return await access.remote(error).ingest(served, incoming)
        return await ingest(region, replace(incoming, files=access.local_files(incoming.files)))

    # --- batch by batch ----------------------------------------------------------------------------

    def _write_work(self, caller: Caller, work: Work, answer: Answer) -> Any:
        """Write batch after batch; after STEP_S, or if a region cannot take its batch now, a coroutine continues."""
        written: Written = []
        ends = perf_counter() + STEP_S
        for number, step in enumerate(work):
            if number and perf_counter() >= ends:
                return self._continue_on_all_servers(caller.has_gone, work[number:], written, answer)
            try:
                self._apply(step, written)
            except (
                StoreBusy,
                RegionUnavailable,
                RegionNotLocal,
            ):  # the region may have been closed again, to open those of later batches
                return self._continue_on_all_servers(caller.has_gone, work[number:], written, answer)
            except ColumnarError as error:
                if not written:
                    raise
                raise partly(error) from error
        applied = last_applied([applied for applied, _ in written])
        return after(joined([wait for _, wait in written]), answer(applied))

    async def _continue_on_all_servers(
        self, is_disconnected: IsDisconnected, work: Work, written: Written, answer: Answer
    ) -> Any:
        """Do ``_continue_writing``; rows that other servers own by now are written there."""
        left = deque(work)
        try:
            return await self._continue_writing(is_disconnected, left, written, answer)
        except RegionNotLocal as error:
            remote = self._access.remote(error)
        await _all_durable(written)
        writes = [(served, write) for served, batch in left for write in batch]

        def answer_all(elsewhere: Applied | None) -> Any:
            local = [applied for applied, _ in written]
            return answer(last_applied(local if elsewhere is None else [*local, elsewhere]))

        try:
            return await remote.writes(is_disconnected, writes, answer_all)
        except ColumnarError as error:
            if not written:
                raise
            raise partly(error) from error

    async def _continue_writing(
        self,
        is_disconnected: IsDisconnected,
        left: deque[tuple[ServedTable, list[RowWrite]]],
        written: Written,
        answer: Answer,
    ) -> Any:
        loop_budget = self._access.reply_memory.loop_budget
        while left:
            await loop_budget.wait_for_budget()
            try:
                await retry_until_ready(partial(self._apply_next, left, written), is_disconnected)
            except RegionNotLocal:
                raise
            except ColumnarError as error:
                if not written:
                    raise
                raise partly(error) from error
        await _all_durable(written)
        return answer(last_applied([applied for applied, _ in written]))

    def _apply_next(self, left: deque[tuple[ServedTable, list[RowWrite]]], written: Written) -> None:
        """Apply the first batch of ``left``; if its region was split, only the rows that are with its first row."""
        served, mutations = left[0]
        served = self._access.again(served)  # only the newest ``ServedTable`` follows splits
        info = served.holding(mutations[0].row)
        local_rows = [mutation for mutation in mutations if info.contains_row(mutation.row)]
        self._apply((served, local_rows), written)
        not_local = [mutation for mutation in mutations if not info.contains_row(mutation.row)]
        if not_local:
            left[0] = (served, not_local)
        else:
            left.popleft()

    def _apply(self, step: tuple[ServedTable, list[RowWrite]], written: Written) -> None:
        served, mutations = step
        # The region is looked up again: opening others may have closed it (limits.OPEN_REGIONS), or the table changed.
        served = self._access.again(served)
        region = self._access.region_for(served, mutations[0].row)
        first = mutations[0]
        if len(mutations) == 1 and isinstance(first, RowMutation):
            applied = region.apply(first)
        else:
            applied = region.apply_many(mutations)
        if served.is_throttled:
            self._access.charge_writes(served, mutations)
        written.append((applied, self._access.acknowledgement(region, applied)))


async def _all_durable(written: Written) -> None:
    for _, waiting in written:
        if waiting is not None:
            await asyncio.shield(waiting)


def partly(error: ColumnarError) -> ColumnarError:
    """Return ``error`` with the note that other rows of the call may have been written, as HBase adds for a batch.

    Returns a copy, because a region that takes no writes raises the same error object for every call.
    """
    if error.text.endswith(OTHERS_WRITTEN):
        return error  # the owner of the rows has added the note
    said = type(error).__new__(type(error))
    said.__dict__.update(error.__dict__)
    ColumnarError.__init__(said, error.text + OTHERS_WRITTEN)  # the class's own constructor makes the text from fields
    return said


def _counters_alone(work: Work) -> Iterator[tuple[ServedTable, list[RowWrite]]]:
    """Yield the batches, row by row if a region may still refuse a row of the batch, so that only that row fails."""
    for served, batch in work:
        if any(isinstance(row, RowMutation) and _may_be_refused(row) for row in batch):
            for row in batch:
                yield served, [row]
        else:
            yield served, batch


def _may_be_refused(row: RowMutation) -> bool:
    return any(isinstance(operation, Increment | Append | Contribute) for operation in row.operations)


def _as_they_are(_served: ServedTable) -> Make:
    return _as_it_is


def _as_it_is(write: Any) -> RowWrite:
    checked: RowWrite = write
    return checked
