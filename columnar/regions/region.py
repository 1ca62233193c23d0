"""A region: the rows of one table from ``start`` to ``end``, in one store, owned by one loop.

Nothing else runs between reading and writing a row, so checks, increments and appends are atomic
by construction (design D2).  A mutation becomes one batch: cells and change-log record together.

Invariants:
    I1. Every batch leaves each row wholly before or wholly after its mutation (promise 2).
    I2. No timestamp that a clock gave to a row is above ``meta/reached``; none is below the mark that the region's
        opening found.
    I3. Memory changes only after the store has taken the batch: a refused batch, or a batch in which a later row
        raises, leaves only unused sequences and stamps.

``drafting`` decides the cells that a mutation writes, ``change_logging`` its records; ``sync_groups`` has the writes
that wait for an fsync; ``region_reads`` reads rows.

Cost: one batch for each mutation; no cost depends on the number of regions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from columnar.clock import Clock
from columnar.errors import ColumnarError, DamagedData, HostError, TableReadOnly
from columnar.model.mutation import Durability, RowMutation, RowWrite
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.hooks import LogPolicy
from columnar.regions.log.change_log import ChangeLog
from columnar.regions.log.change_logging import STAMP, ChangeLogging, RowStamps
from columnar.regions.log.change_record import ChangeRecord, Sequence
from columnar.regions.log.log_retention import LOG_SPACE, META_SPACE
from columnar.regions.read.family_view import Views, views_of
from columnar.regions.spaces import delete_spans, follow_spaces, row_spans
from columnar.regions.write.applied import Applied, GroupApplied, Step, touches_synced, wants_sync
from columnar.regions.write.column_draft import VERSIONS_SPACE
from columnar.regions.write.drafting import FUTURE, Drafting
from columnar.regions.write.group_writes import FailedCondition, draft_group
from columnar.regions.write.guards import Guards
from columnar.regions.write.ingestion import IngestionMark
from columnar.regions.write.sync_groups import LOOP, SyncGroups
from columnar.runtime.faults import FAULTS
from columnar.storage.api import Batch, Store, StoreClosed
from columnar.storage.commit import Committer

DROPPED_FAMILY: Final = "a family was dropped"  # in the place of a follower's name: no follower has one with spaces
FEED_AGAIN_S: Final = 0.1  # after an unexpected exception


CLOCK_MARK: Final = b"reached"
STEP_MS: Final = 250  # after a crash a clock may have to catch up by this much


class ClockHighWaterMark:
    """The clock's high-water mark at a region's last write: kept in the region's ``meta``, with its rows.

        reached -> u64        in the space ``meta``, big-endian: no timestamp that the clock gave to a row is above it

    The first write after each STEP_MS writes the mark, STEP_MS ahead, in its own batch, so that a power cut keeps both
    mark and rows or neither.  Closing the region lowers the mark to the time of the clock.  Opening the region lets the
    clock observe the mark, because a copied, restored or moved folder is opened with a different clock.  Timestamps
    from clients do not count.

    Owned by the loop's thread.
    """

    def __init__(self, store: Store, clock: Clock, bound_ms: int) -> None:
        """``bound_ms`` is the mark in the store, which the clock has observed."""
        self._store = store
        self._clock = clock
        self.bound_ms = bound_ms

    def covering(self, batch: Batch, now_ms: int) -> int:
        """Add the mark to a batch with rows of the time ``now_ms``, if these raise the mark.

        Returns ``bound_ms`` after the write.
        """
        if now_ms <= self.bound_ms:
            return self.bound_ms
        batch.put(META_SPACE, CLOCK_MARK, (now_ms + STEP_MS).to_bytes(8, "big"))
        return now_ms + STEP_MS

    def note_written(self, bound_ms: int) -> None:
        """Note that the batch of ``covering`` is in the store."""
        self.bound_ms = bound_ms

    @property
    def highest_ms(self) -> int:
        """An upper bound of the timestamps that the clock gave to rows."""
        return min(self.bound_ms, self._clock())

    def close(self) -> None:
        """Lower the mark before the store is closed; a failed store keeps the mark, which is still a bound."""
        highest_ms = self.highest_ms
        if highest_ms < self.bound_ms:
            batch = self._store.batch()
            batch.put(META_SPACE, CLOCK_MARK, highest_ms.to_bytes(8, "big"))
            with suppress(ColumnarError):
                self._store.write_batch(batch)


def spaces_of(table: Table) -> frozenset[str]:
    return frozenset({"default", META_SPACE, LOG_SPACE, VERSIONS_SPACE, *(f.space for f in table.families)})


class StoreWork:
    """Sweeps, flushes and compactions of a region's store: the store is neither closed nor replaced while they run."""

    def __init__(self) -> None:
        self.running = 0

    async def run_aside(self, work: Callable[[], None]) -> None:
        """Run a flush or a compaction of the store in a thread."""
        running = asyncio.get_running_loop().run_in_executor(None, work)
        self.running += 1
        running.add_done_callback(self._ended)
        await asyncio.shield(running)  # a caller that is cancelled does not end the thread

    def _ended(self, _: asyncio.Future[None]) -> None:
        self.running -= 1

    @contextmanager
    def kept_up(self) -> Iterator[None]:
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1


class Region:
    """An open region.  Owned by the loop's thread."""

    def __init__(
        self,
        info: RegionInfo,
        table: Table,
        store: Store,
        log: ChangeLog,
        clock_mark: ClockHighWaterMark,
        guards: Guards,
        future_ms: int,
        committer: Committer,
        clock: Clock,
    ) -> None:
        """Called by ``opening``, with the marks that it found in the store."""
        self.info = info
        self.table = table
        self.views: Views = views_of(table)
        self.store = store
        self.log = log
        self.log_policy: LogPolicy | None = None
        self.is_open = True  # False for ever once its server has released it (``region_state``)
        self.on_durable: Callable[[Region], None] | None = None
        self.refuses_writes = False  # a trigger still needs as much of the change log as its bound allows
        self.log_obstacle = ""  # which trigger, and why, if the log is near its bound
        self.write_delay_s = 0.0  # the change log comes near its bound: acknowledgements are delayed
        self.ingestion = IngestionMark()
        self.work = StoreWork()
        self.reads = self.writes = self.deliveries = 0
        self.on_leave: set[Callable[[], object]] = set()  # called once, as the last before the store is closed
        self._committer = committer
        self._clock = clock
        self.syncs = SyncGroups(info, store, log, committer, self._feed)
        self._clock_mark = clock_mark
        self.logging = ChangeLogging(self.log, RowStamps(self.store, self.log, future_ms))
        self.guards = guards
        self.drafting = Drafting(self.store, self.logging, guards, future_ms, table, self.views)
        self._refusing: ColumnarError | None = None  # why no writes are taken now, whatever the schema says
        self._obey(table)

    # --- its schema --------------------------------------------------------------------------------

    def _obey(self, table: Table) -> None:
        self._unsynced = table.unsynced_families
        self._sync_by_default = len(self._unsynced) < len(table.families)
        self._refuses = table.is_read_only or self._refusing is not None

    def follow_schema(self, table: Table) -> None:
        """Serve by this schema from now on.  Costs some 3 ms for each added or removed family."""
        gone = {one.space for one in self.table.families} - {one.space for one in table.families}
        if gone and self.log.coverage.segments():
            # The cells go without a record of each, so readers of the log begin again.  A record that is for no
            # follower takes a sequence: no position is behind it yet.
            self.log_records([ChangeRecord(self.info.start, 0, (), (), DROPPED_FAMILY)], {})
            self.log.end_replays(self.log.written_to)
        follow_spaces(self.store, self.table, table)
        self.table = table
        self.views = views_of(table)
        self.drafting.follow_schema(table, self.views)
        self._obey(table)

    def refuse_writes(self, why: ColumnarError | None) -> None:
        """Refuse writes with the error ``why``; None ends that.  Writers that get StoreBusy wait and retry."""
        self._refusing = why
        self._obey(self.table)

    def check_disk(self) -> None:
        """Raise the error that refuses writes now, if any, whatever the table's schema says."""
        if self._refusing is not None:
            raise self._refusing

    def check_writable(self) -> None:
        """Raise if writes are refused: TableReadOnly, or StoreBusy while the region is about to be reopened."""
        if self._refuses:
            raise self._refusing or TableReadOnly(self.table.name)

    # --- writing -----------------------------------------------------------------------------------

    def apply(self, mutation: RowMutation) -> Applied:
        """Mutate one row in one atomic step; returns before the fsync.  After a CallerError nothing was changed."""
        batch = self.store.batch()
        now_ms = self._clock()
        if self._refuses:
            self.check_writable()
        step = self.drafting.draft_row(batch, mutation, now_ms, self.logging.row_policy)
        synced = self._sync_by_default and mutation.durability is Durability.SYNC
        if synced and self._unsynced:
            synced = touches_synced(mutation, self._unsynced)
        if step.failed_condition is None:
            if self.ingestion.coming is not None:
                self.ingestion.call_off(batch, [mutation.row])
            self._write(batch, [step], synced, now_ms)
        return self._applied(step, [mutation.row], synced)

    def apply_many(self, mutations: Iterable[RowWrite]) -> Applied:
        """Mutate several different rows in one atomic batch (design D12).  No row may repeat or have conditions."""
        now_ms = self._clock()
        listed = list(mutations)
        batch = self.store.batch(len(listed))
        rows = [mutation.row for mutation in listed]
        assert len(set(rows)) == len(rows), "a row's mutations go into one RowMutation"
        assert listed, "at least one row"
        assert not any(isinstance(m, RowMutation) and m.conditions for m in listed), "conditions are for single rows"
        if self._refuses:
            self.check_writable()
        steps = self.drafting.draft_rows(batch, listed, now_ms, self.logging.row_policy)
        synced = self._sync_by_default and wants_sync(listed)
        if synced and self._unsynced:
            synced = any(touches_synced(mutation, self._unsynced) for mutation in listed)
        if self.ingestion.coming is not None:
            self.ingestion.call_off(batch, rows)
        self._write(batch, steps, synced, now_ms)
        return self._applied(steps[-1], rows, synced)

    def apply_group(self, mutations: list[RowMutation]) -> GroupApplied:
        """Mutate different rows under conditions in one atomic step: all of them, or none; returns before the fsync."""
        batch = self.store.batch(len(mutations))
        now_ms = self._clock()
        if self._refuses:
            self.check_writable()
        found = draft_group(self.drafting, batch, mutations, now_ms, self.logging.row_policy)
        if isinstance(found, FailedCondition):
            failed = Applied(Sequence(0, 0, 0), now_ms, (), found.condition, self.syncs.barrier_any())
            return GroupApplied(failed, [], found.row)
        steps = [step for step in found if step is not None]
        changing = [mutation for mutation in mutations if mutation.operations]
        if not steps:  # the conditions hold: the answer waits until what they read is on disk
            return GroupApplied(Applied(Sequence(0, 0, 0), now_ms, (), None, self.syncs.barrier_any()), found, None)
        synced = self._sync_by_default and any(touches_synced(mutation, self._unsynced) for mutation in changing)
        rows = [mutation.row for mutation in changing]
        if self.ingestion.coming is not None:
            self.ingestion.call_off(batch, rows)
        self._write(batch, steps, synced, now_ms)
        return GroupApplied(self._applied(steps[-1], rows, synced), found, None)

    def _write(self, batch: Batch, steps: list[Step], synced: bool, now_ms: int) -> None:
        bound_ms = self._clock_mark.covering(batch, now_ms)
        future_ms = self.drafting.covering(batch, steps, now_ms)
        try:
            if synced:
                self.store.gather(batch)  # the committer writes it with the batches that share the fsync
            else:
                self.store.write_batch(batch)
        except StoreClosed:
            raise
        except (HostError, DamagedData):
            self._committer.durable(self.store)  # finds the store broken and has the region reopened
            raise
        if bound_ms != self._clock_mark.bound_ms:
            self._clock_mark.note_written(bound_ms)
        self.drafting.written(steps, future_ms)
        self.writes += len(steps)
        self.logging.written(steps)

    def log_records(self, records: Iterable[ChangeRecord], marks: Mapping[bytes, bytes]) -> asyncio.Future[None]:
        """Append records that stand for no mutation (a backfill), with ``marks`` in ``meta``, as one batch.

        A record without a stamp gets the stamp of a change made now.  The future resolves after the records' fsync.
        """
        if self._refusing is not None:
            raise self._refusing
        batch, now_ms = self.store.batch(), self._clock()
        steps = self.logging.add_records(batch, records, now_ms)
        for key, value in marks.items():
            batch.put(META_SPACE, key, value)
        self._write(batch, steps, True, 0)
        return self.syncs.join()

    def can_delete_at_once(self, now_ms: int) -> bool:
        """Tell whether ``delete_at_once`` is allowed.

        ``delete_at_once`` is not allowed if a follower reads the changes, if delete markers must stay, or if a cell
        lies in the future (deletes spare such a cell).  Nor is it allowed during a split or merge, as the copier is
        notified of rows, not of ranges.
        """
        quiet = self.logging.row_policy is None and self.syncs.touched is None
        return quiet and self.drafting.can_delete_unread(now_ms)

    def delete_at_once(self, start: bytes, stop: bytes) -> asyncio.Future[None]:
        """Remove the rows ``start <= row < stop`` (empty ``stop``: to the last row) by one range delete in each space.

        This is one atomic step, allowed only if ``can_delete_at_once``.  The future resolves after the fsync of the
        deletes.
        """
        if self._refuses:
            self.check_writable()
        batch = self.store.batch()
        delete_spans(self.store, batch, row_spans(self.views, start, stop))
        self.store.write_batch(batch)
        self.writes += 1
        self.drafting.rows_deleted()
        return self.syncs.join(whole=True)

    def highest_marks(self) -> dict[bytes, int]:
        """Return the marks in ``meta`` that successors of this region begin with; a merge takes the higher of two."""
        stamp = self.logging.stamps.mark(self._clock())
        return {
            FUTURE: self.drafting.future_ms, STAMP: stamp,
            CLOCK_MARK: self._clock_mark.highest_ms, **self.guards.marks(),
        }  # fmt: skip

    async def note(self, key: bytes, value: bytes | None, highest: int, ingested_rows: int = 0) -> None:
        """Write ``value`` under ``key`` in ``meta``, announce timestamps up to ``highest``, and wait for the fsync.

        Deletes the key if ``value`` is None.  ``ingested_rows`` count as writes.
        """
        self.writes += ingested_rows
        batch = self.store.batch()
        if value is None:
            batch.delete(META_SPACE, key)
        else:
            batch.put(META_SPACE, key, value)
        future_ms = self.drafting.covering_ms(batch, highest, self._clock())
        self.store.gather(batch)
        self.drafting.written([], future_ms)
        await asyncio.shield(self.syncs.join())

    def mark(self, key: bytes) -> bytes | None:
        """Return the value that ``log_records`` wrote under ``key``."""
        return self.store.get(META_SPACE, key)

    def _applied(self, step: Step, rows: list[bytes], synced: bool) -> Applied:
        """Return the outcome of a step, with the fsync that will make its rows durable."""
        durable = None
        if step.failed_condition is not None:
            # No cell was written, but the answer waits until the cells that the condition read are on disk.
            durable = self.syncs.barrier(rows[0])
        elif synced:
            durable = self.syncs.join(rows)
        else:
            self.syncs.note_unsynced(rows)
        return Applied(step.sequence, step.timestamp, step.results, step.failed_condition, durable)

    def _feed(self) -> None:
        """Notify followers of durable changes.

        Retries after an exception, else the last change would stay undelivered.
        """
        if self.log_policy is None or self.on_durable is None or not self.is_open:
            return
        if not self.logging.has_news():
            return
        durable_n = self.log.durable_n
        try:
            self.on_durable(self)
            self.logging.note_reported(durable_n)
        except Exception as fault:  # noqa: BLE001 - whatever it is, the next try may succeed
            FAULTS.met(LOOP, fault)
            asyncio.get_running_loop().call_later(FEED_AGAIN_S, self._feed)

    # --- what others count and set -------------------------------------------------------------------

    def begin_serving(self, policy: LogPolicy | None, on_durable: Callable[[Region], None]) -> None:
        """Log changes by ``policy``.  ``on_durable`` is called when logged changes are durable."""
        self.on_durable = on_durable
        self.log_changes(policy)

    def log_changes(self, policy: LogPolicy | None) -> None:
        """Log changes by ``policy`` from now on; log none if ``policy`` is None."""
        self.log_policy = policy
        self.logging.follow_policy(policy)
        is_whole = policy is not None and policy.is_whole
        keep_s = self.table.change_log_s or 1  # the region may not have the schema yet that began to keep changes
        self.logging.note_coverage(self.info.start, self.now_ms, keep_s if is_whole else None)

    def count_read(self) -> None:
        self.reads += 1

    @property
    def now_ms(self) -> int:
        return self._clock()

    # --- life --------------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Write the memtable to files in a thread; requests are served meanwhile."""
        self.store.settle()
        await self.work.run_aside(self.store.files.flush)

    def close(self) -> None:
        """Close a region that is quiet or whose store is broken: acknowledged writes are on disk either way."""
        self.leave()
        self._clock_mark.close()
        self.store.close()

    def leave(self) -> None:
        """End the use of the region.  The caller has still to close the store, in any thread."""
        self.is_open = False
        for ended in list(self.on_leave):
            ended()
        self.on_leave.clear()
        self._committer.forget_store(self.store)
