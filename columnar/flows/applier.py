"""The applier: writes effects of followers in batches for regions, in the governor's steps, after foreground requests.

    local      effects on open regions of this server: one batch per region and step, for all jobs together
    aside      a job for a region that is remote, unavailable, full or unreplayed continues as a task of its own, row
               by row; it restarts whenever its progress is unknown, because stamped effects may be written again.  So
               does a job that sends messages to queues, which may be pushed again because they have names
    notified   ``on_applied`` is called when all effects of the job are on disk, or with an error that only a change by
               the caller can cure

Invariants:
    I1. The effects of a job are applied in their order.  After an error some of them may be applied, otherwise all are.
    I2. ``on_applied`` is called once, or never if the job is given up: then its change is delivered again.  Only if
        ``on_applied`` raises is it called a second time, with that fault.
    I3. A follower may add jobs while those that it has hold fewer bytes than are left of WAITING_BYTES (``has_room``).
        So one follower alone takes half of WAITING_BYTES, two take a third each, and room is left for a further one
        (dynamic thresholds: Choudhury and Hahne 1998).  Effects of calls that run already may exceed the bound.
    I4. Followers take queue turns, by their shares: however much one follower has to write, the next one waits only for
        the first one's part of a step.  Operations count, not rows: a row may have sixty shares of a view.
    I5. After an unexpected exception one job ends and is notified of it (``ProgramFault``), or the jobs of the step are
        written again.  The queue continues.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from columnar.errors import CallerError, ColumnarError, ProgramFault
from columnar.flows.delivery_state import pause_s
from columnar.flows.effects import Write, for_table
from columnar.flows.governor import GovernedStep, Governor
from columnar.flows.scheduled_trigger import SHARE
from columnar.flows.write_line import WriteLine
from columnar.model.mutation import RowMutation
from columnar.model.send import Send
from columnar.operations.access import TableAccess
from columnar.regions.region import Region
from columnar.regions.tables import ServedTable
from columnar.runtime.background import Background
from columnar.runtime.faults import FAULTS, UNEXPECTED, surviving
from columnar.runtime.loop_budget import IsDisconnected
from columnar.wire.detect import Protocol
from columnar.wire.service import Later

if TYPE_CHECKING:
    from columnar.operations.writes import RowWrites

_log = logging.getLogger(__name__)

STEP_OPERATIONS: Final = 64  # some 0.5 ms; a mutation with more operations takes longer
STEP_BYTES: Final = 4 * 1024 * 1024  # of a batch unless one mutation is larger: large ones count as several operations
WAITING_BYTES: Final = 64 * 1024 * 1024
RETRY_TIMEOUT_S: Final = 60.0  # after this time aside, an error fails the change, which is retried in its queue turn
QUIET_TRIES: Final = 3  # as many fail, within a second, while a region opens

LOOP: Final = "the applier of effects"

PushSends = Callable[[bytes, list[Send]], Awaitable[None]]  # to a queue, by its target; returns when they are on disk
OnApplied = Callable[[ColumnarError | None], None]


class Job:
    """The effects of one slice of one call: queued, then perhaps aside, then over."""

    __slots__ = (
        "at",
        "extra",
        "is_aside",
        "is_over",
        "name",
        "obstacle",
        "on_applied",
        "on_trouble",
        "size_bytes",
        "waits",
        "writer_view",
        "writes",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        writes: list[Write],
        size_bytes: int,
        on_applied: OnApplied,
        writer_view: str = "",
        on_trouble: Callable[[], None] | None = None,
    ) -> None:
        """``writer_view`` is the view that writes its table; empty for a trigger, which may write no view's table."""
        self.name = name  # of the follower
        self.writer_view = writer_view
        self.writes = writes
        self.size_bytes = size_bytes
        self.on_applied = on_applied
        self.on_trouble = on_trouble
        self.at = 0  # number of writes that are in batches
        # operations that each write counts as in addition to its own, for its mean number of bytes
        self.extra = size_bytes * STEP_OPERATIONS // (STEP_BYTES * len(writes)) if writes else 0
        self.waits: list[asyncio.Future[None]] = []  # distinct fsyncs
        self.is_aside = False
        self.is_over = False  # ``on_applied`` was called, or the job was given up
        self.obstacle = ""  # why it has been aside for long

    def pass_write(self) -> None:
        """Note that the next write is in a batch."""
        self.at += 1

    def go_aside(self) -> None:
        self.is_aside = True

    def note_obstacle(self, why: str) -> None:
        self.obstacle = why

    def end(self) -> None:
        """End the job and forget its caller, who may hold the job: a cycle would keep the writes in memory."""
        self.is_over = True
        self.on_applied, self.on_trouble = _nothing, None

    def has_gone(self) -> bool:
        return self.is_over

    @property
    def is_queued(self) -> bool:
        return not self.is_aside and not self.is_over


class _Batch:
    """The writes of a step into one region."""

    __slots__ = ("jobs", "mutations", "region", "rows", "served")

    def __init__(self, region: Region, served: ServedTable) -> None:
        self.region = region
        self.served = served
        self.mutations: list[RowMutation] = []
        self.rows: set[bytes] = set()
        self.jobs: list[Job] = []  # one for each mutation

    def add_write(self, job: Job, mutation: RowMutation) -> None:
        self.mutations.append(mutation)
        self.rows.add(mutation.row)
        self.jobs.append(job)

    def part_of(self, job: Job) -> _Batch:
        """Return a batch of the job's writes alone."""
        part = _Batch(self.region, self.served)
        for mutation, whose in zip(self.mutations, self.jobs, strict=True):
            if whose is job:
                part.add_write(job, mutation)
        return part


@dataclass(frozen=True, slots=True)
class _Caller:
    """The caller of writes that no connection requested."""

    has_gone: IsDisconnected
    connection_id: int = 0
    protocol: Protocol = Protocol.BINARY
    user: str = ""


class Applier:
    def __init__(self, access: TableAccess, writes: RowWrites, governor: Governor, background: Background) -> None:
        self._access = access
        self._writes = writes
        self._background = background
        self._line: WriteLine[Job] = WriteLine()
        self._steps = GovernedStep(governor, LOOP, self._step)
        self._pending_bytes = 0
        self._pending_by_follower: dict[str, int] = {}  # bytes of each follower that has any
        self._on_room: Callable[[], None] = lambda: None  # called when there is more room than before
        self._push_sends: PushSends | None = None  # None: no queues here

    def connect_queues(self, push_sends: PushSends) -> None:
        """Push the messages of effects by ``push_sends`` from now on."""
        self._push_sends = push_sends

    def notify_room(self, on_room: Callable[[], None]) -> None:
        """Call ``on_room`` from now on whenever there is more room than before."""
        self._on_room = on_room

    def has_room(self, name: str) -> bool:
        """Return whether there is room for more effects of this follower (I3)."""
        return self._pending_by_follower.get(name, 0) < WAITING_BYTES - self._pending_bytes

    def apply(
        self,
        writes: list[Write],
        size_bytes: int,
        on_applied: OnApplied,
        name: str = "",
        share: int = SHARE,
        writer_view: str = "",
        on_trouble: Callable[[], None] | None = None,
    ) -> Job:
        """Queue ``writes`` as a job and return the job.

        ``name`` and ``share`` are those of the follower whose effects these are (I4); ``writer_view`` is as in ``Job``.
        If not all writes can be written at once, ``on_trouble`` is called soon instead of ``on_applied``: the job is
        given up then, and the caller must write its effects again, of which some may be written already.
        """
        job = Job(name, writes, size_bytes, on_applied, writer_view, on_trouble)
        self._line.push(name, share, job)
        self._pending_bytes += size_bytes
        self._pending_by_follower[name] = self._pending_by_follower.get(name, 0) + size_bytes
        self._steps.soon()
        return job

    def give_up(self, job: Job) -> None:
        """Write no more of the job; ``on_applied`` is not called."""
        if not job.is_over:
            job.end()
            self._pending_bytes -= job.size_bytes
            left = self._pending_by_follower[job.name] - job.size_bytes
            if left:
                self._pending_by_follower[job.name] = left
            else:
                del self._pending_by_follower[job.name]
            with surviving(LOOP):
                self._on_room()

    # --- local ---------------------------------------------------------------------------------------

    def _step(self) -> bool:
        batches: dict[int, _Batch] = {}
        complete: list[Job] = []
        left = STEP_OPERATIONS
        try:
            while self._line and left > 0:
                job = self._line.first()
                count = self._gather(job, left, batches)
                left -= count
                is_over = not job.is_queued or job.at >= len(job.writes)
                if is_over:
                    complete.append(job)
                self._line.wrote(count, is_over=is_over)
            for batch in batches.values():
                self._write(batch)
        except UNEXPECTED:  # the progress of the step's jobs is unknown: they are written again (I5)
            for job in dict.fromkeys([*complete, *[one for batch in batches.values() for one in batch.jobs]]):
                self._go_aside(job)
            raise
        for job in complete:
            try:
                self._complete(job)
            except UNEXPECTED as fault:
                self._fault(job, fault)
        return bool(self._line)

    def _fault(self, job: Job, fault: BaseException) -> None:
        FAULTS.met(LOOP, fault)
        if not self._is_callers(job):
            self._finish_job(job, ProgramFault(fault))

    def _gather(self, job: Job, most: int, batches: dict[int, _Batch]) -> int:
        """Put the next writes of the job into batches; return the number of operations that these count as."""
        taken = 0
        while taken < most and job.at < len(job.writes) and job.is_queued:
            table, mutation = job.writes[job.at]
            try:
                if mutation.sends:
                    self._go_aside(job)
                else:
                    self._put(job, table, mutation, batches)
            except ColumnarError as error:
                self._failed(job, error)
            except UNEXPECTED as fault:
                self._fault(job, fault)
            job.pass_write()
            taken += len(mutation.operations) + job.extra
        return max(taken, 1)

    def _put(self, job: Job, table: bytes, mutation: RowMutation, batches: dict[int, _Batch]) -> None:
        served = self._access.table(table)
        served.schema.check_written_by(job.writer_view)
        if not job.writer_view:  # the shares of a view fit its table already
            mutation = for_table(mutation, served.schema)
        if served.is_throttled:
            self._access.admit(served, writes=True)
        region = self._access.writable(served, mutation.row)
        batch = batches.get(id(region))
        if batch is None:
            batch = batches[id(region)] = _Batch(region, served)
        elif mutation.row in batch.rows:  # a batch names a row once (I1)
            self._write(batch)
            del batches[id(region)]
            if not job.is_queued:  # an earlier write of the job was refused: a later one of the row must not hide that
                return
            batch = batches[id(region)] = _Batch(region, served)
        batch.add_write(job, mutation)

    def _write(self, batch: _Batch) -> None:
        jobs = list(dict.fromkeys(batch.jobs))
        try:
            self._apply(batch.region, batch.served, batch.mutations, jobs)
        except ColumnarError as error:
            if len(jobs) == 1 or not isinstance(error, CallerError):
                for job in jobs:
                    try:
                        self._failed(job, error)
                    except UNEXPECTED as fault:
                        self._fault(job, fault)
            else:
                self._write_alone(batch, jobs)
        except UNEXPECTED as fault:
            if len(jobs) == 1:
                self._fault(jobs[0], fault)
            else:
                FAULTS.met(LOOP, fault)
                self._write_alone(batch, jobs)

    def _write_alone(self, batch: _Batch, jobs: list[Job]) -> None:
        """Write each job in a batch of its own, so that an error ends only the job that caused it."""
        for job in jobs:
            self._write(batch.part_of(job))

    def _apply(self, region: Region, served: ServedTable, mutations: list[RowMutation], jobs: list[Job]) -> None:
        applied = region.apply_many(mutations)
        if served.is_throttled:
            self._access.charge_writes(served, mutations)
        durable = self._access.acknowledgement(region, applied)
        if durable is not None:
            for job in jobs:
                if not job.waits or job.waits[-1] is not durable:
                    job.waits.append(durable)

    # --- its end -------------------------------------------------------------------------------------

    def _complete(self, job: Job) -> None:
        """Finish the job after its fsyncs: all of its writes are in batches that were applied."""
        if not job.is_queued:
            return
        waits = [one for one in job.waits if not one.done()]
        if not waits:
            self._settled(job)
        elif len(waits) == 1:
            waits[0].add_done_callback(partial(self._synced, job))
        else:
            gathered = asyncio.gather(*map(asyncio.shield, waits), return_exceptions=True)
            gathered.add_done_callback(partial(self._synced, job))

    def _synced(self, job: Job, _done: object) -> None:
        try:
            self._settled(job)
        except UNEXPECTED as fault:
            self._fault(job, fault)

    def _settled(self, job: Job) -> None:
        """Finish a job whose fsyncs have all ended."""
        failures = [failure for one in job.waits if (failure := one.exception()) is not None]
        if not job.is_queued:
            return
        if failures:
            _log.info("effects are written again: %s", failures[0])
            self._go_aside(job)
        else:
            self._finish_job(job, None)

    def _is_callers(self, job: Job) -> bool:
        """If the job has ``on_trouble``, give the job up and call that function soon; return whether it has."""
        on_trouble = job.on_trouble
        if on_trouble is None or not job.is_queued:
            return False
        self.give_up(job)
        asyncio.get_running_loop().call_soon(on_trouble)
        return True

    def _failed(self, job: Job, error: ColumnarError) -> None:
        if self._is_callers(job):
            return
        if isinstance(error, CallerError):
            self._finish_job(job, error)
        else:
            self._go_aside(job)

    def _finish_job(self, job: Job, error: ColumnarError | None) -> None:
        if job.is_over:
            return
        on_applied = job.on_applied
        self.give_up(job)
        try:
            on_applied(error)
        except UNEXPECTED as fault:  # ``on_applied`` failed before it settled the job
            FAULTS.met(LOOP, fault)
            with surviving(LOOP):
                on_applied(ProgramFault(fault))

    # --- aside ---------------------------------------------------------------------------------------

    def _go_aside(self, job: Job) -> None:
        if job.is_queued and not self._is_callers(job):
            self._background.spawn(self._aside(job))
            job.go_aside()

    async def _aside(self, job: Job) -> None:
        try:
            await self._write_aside(job)
        except Exception as fault:  # noqa: BLE001 - of one job (I5)
            self._fault(job, fault)

    async def _write_aside(self, job: Job) -> None:
        """Write all of the job again, row after row, on whichever servers its regions are."""
        loop = asyncio.get_running_loop()
        ends_s, tries = loop.time() + RETRY_TIMEOUT_S, 0
        while not job.is_over:
            try:
                await self._write_anywhere(job)
            except ColumnarError as error:
                tries += 1
                if isinstance(error, CallerError) or loop.time() >= ends_s:
                    self._finish_job(job, error)
                    return
                job.note_obstacle(error.wire_message if tries > QUIET_TRIES else "")
                _log.info("effects are written again in %.1f s: %s", pause_s(tries), error.text)
                await asyncio.sleep(pause_s(tries))
            else:
                self._finish_job(job, None)

    async def _write_anywhere(self, job: Job) -> None:
        """Write rows and push messages, in order; messages that follow each other go to their queue together (I1)."""
        for target, group in groupby(job.writes, key=_target):
            if target:
                assert self._push_sends is not None, "a store has queues"
                await self._push_sends(target, [send for _, mutation in group for send in mutation.sends])
            else:
                await self._write_rows(job, group)

    async def _write_rows(self, job: Job, group: Iterable[Write]) -> None:
        writes: list[tuple[ServedTable, RowMutation]] = []
        for table, mutation in group:
            served = self._access.table(table)
            writes.append((served, for_table(mutation, served.schema)))
        outcome = self._writes.write_each(_Caller(job.has_gone), writes, _nothing, job.writer_view)
        if type(outcome) is Later:
            await asyncio.shield(outcome.future)  # other jobs wait for this future, too
        elif outcome is not None:
            await outcome


def _target(write: Write) -> bytes:
    """Return the queue of a write that sends a message; empty for a write of a row."""
    return write[0] if write[1].sends else b""


def _nothing(_applied: Any) -> None:
    return None
