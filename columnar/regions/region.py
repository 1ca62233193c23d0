"""One region: the rows of one table from ``start`` to ``end``, in one store, owned by one loop.

Nothing else runs between reading and writing a row, so checks, increments and appends are atomic
by construction (design D2).  A mutation becomes one batch: cells and change-log record together.

Invariants:
    I1. Every batch leaves each row wholly before or wholly after its mutation (promise 2).
    I2. ``barrier`` names the fsync that a reply must wait for: a read never returns what a crash
        can take back (promise 3).  Writes that asked for no fsync raise no barrier.
    I3. An acknowledgement is given only when the lease is still ours after the fsync (D10).
    I4. Timestamps that the region gives to the rows of a logged table rise strictly row by row,
        so that what triggers stamp with them cannot tie.
    I5. No cell has a timestamp above both ``meta/future`` and the clock at its writing: once the clock
        has passed that mark, what the clock stamps is the newest, and need not be compared.

Cost: a put of one cell reads one key and writes one batch; nothing depends on the number of rows,
versions or regions.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from columnar.errors import OutcomeUnknown
from columnar.model.mutation import Durability, Put, RowMutation
from columnar.model.read import ReadSpec
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.change_log import LOG_SPACE, ChangeLog
from columnar.regions.change_record import ChangeRecord, Sequence
from columnar.regions.family_view import is_alive, views_of
from columnar.regions.hooks import LogPolicy
from columnar.regions.log_retention import META_SPACE
from columnar.regions.row_draft import VERSIONS_SPACE, ColumnDraft, RowDraft
from columnar.regions.row_reader import RawRow, WireCell, column_versions, fetch_row, read_column, wire_cells
from columnar.storage.api import Batch, Engine, Store
from columnar.storage.commit import Committer
from columnar.storage.layout import (
    escape,
    pack_cell,
    row_prefix,
    split_version_key,
    unescape,
    unpack,
    version_end,
    version_from,
    version_prefix,
)

HOT_CELLS: Final = 4_096  # cells whose overwrites are counted
TRIM_AFTER: Final = 16  # overwrites of a counted cell between two removals of surplus versions
RECENT_ROWS: Final = 4_096
_EPOCH_SHIFT: Final = 40
_FUTURE: Final = b"future"  # in ``meta``: the highest timestamp written ahead of the clock (I5)
_STAMP: Final = b"stamp"  # in ``meta``: the highest timestamp given ahead of the clock


def spaces_of(table: Table) -> frozenset[str]:
    return frozenset({"default", META_SPACE, LOG_SPACE, VERSIONS_SPACE, *(f.space for f in table.families)})


@dataclass(slots=True)
class _Group:
    """The rows that one fsync will make durable."""

    synced: asyncio.Future[None]  # the committer's
    acknowledged: asyncio.Future[None]  # after the fsync and the look at the lease; shared: not to be cancelled
    rows: set[bytes]
    last_n: int


Results = tuple[tuple[bytes, bytes, int], ...]  # column, new value, timestamp of increments and appends


class _Step:
    """One row's part of a batch."""

    __slots__ = ("failed_condition", "logged_bytes", "results", "sequence", "timestamp")

    def __init__(
        self, sequence: Sequence, timestamp: int, results: Results, failed_condition: int | None, logged_bytes: int
    ) -> None:
        self.sequence = sequence
        self.timestamp = timestamp
        self.results = results
        self.failed_condition = failed_condition
        self.logged_bytes = logged_bytes  # 0: no change record


class Applied:
    """What a mutation did; constant."""

    __slots__ = ("durable", "failed_condition", "results", "sequence", "timestamp")

    def __init__(
        self,
        sequence: Sequence,
        timestamp: int,
        results: Results,
        failed_condition: int | None,
        durable: asyncio.Future[None] | None,
    ) -> None:
        self.sequence = sequence
        self.timestamp = timestamp
        self.results = results
        self.failed_condition = failed_condition
        self.durable = durable  # resolves when it may be answered (None: at once); shared, never cancel it


def _wants_sync(mutations: list[RowMutation]) -> bool:
    for mutation in mutations:  # no any() over a generator: it costs 0.7 us, and this is asked for every put
        if mutation.durability is Durability.SYNC:
            return True
    return False


class Region:
    """Owned by the loop's thread."""

    def __init__(
        self, engine: Engine, path: str, info: RegionInfo, table: Table, committer: Committer, clock: Callable[[], int]
    ) -> None:
        self.info = info
        self.table = table
        self.views = views_of(table)
        self.store: Store = engine.open(path, spaces_of(table))
        self.log = ChangeLog(self.store, info.region_id)
        self.log_policy: LogPolicy | None = None
        self.is_open = True
        self.is_ours: Callable[[], bool] = lambda: True  # the lease; a cluster puts its own here (D10)
        self.on_durable: Callable[[Region], None] | None = None
        self.refuses_writes = False  # the change log has reached its bound
        self.log_alarmed = False  # somebody was told that it comes near
        self.write_delay_s = 0.0  # the change log comes near its bound: acknowledgements are held back
        self.reads = self.writes = 0
        self._committer = committer
        self._clock = clock
        self._groups: deque[_Group] = deque()
        self._hot: OrderedDict[bytes, tuple[int, bytes | None]] = OrderedDict()
        self._recent: dict[bytes, int] = {}
        self._stamp_floor = int.from_bytes(self.store.get(META_SPACE, _STAMP) or b"", "big")  # of earlier openings
        self._stamp_ahead = self._stamp_floor  # the highest of this one
        self._future = int.from_bytes(self.store.get(META_SPACE, _FUTURE) or b"", "big")
        self._async_dirty = False
        self._markers = table.delete_markers_ms is not None
        self._sync_by_default = table.durability not in ("SKIP_WAL", "ASYNC_WAL")

    # --- writing -----------------------------------------------------------------------------------

    def apply(self, mutation: RowMutation) -> Applied:
        """One row, one atomic step; returns before the fsync.  CallerError: nothing was changed."""
        batch = self.store.batch()
        step = self._draft_into(batch, mutation, self._clock())
        synced = self._sync_by_default and mutation.durability is Durability.SYNC
        if step.failed_condition is None:
            self._write(batch, [step], synced)
        return self._applied(step, [mutation], synced)

    def apply_many(self, mutations: Iterable[RowMutation]) -> Applied:
        """Several different rows in one atomic batch (design D12).  Rows may not repeat; no conditions."""
        batch = self.store.batch()
        now_ms = self._clock()
        listed = list(mutations)
        assert len({m.row for m in listed}) == len(listed), "a row's mutations go into one RowMutation"
        assert listed, "at least one row"
        assert not any(m.conditions for m in listed), "conditions are for single rows"
        steps = [self._draft_into(batch, mutation, now_ms) for mutation in listed]
        synced = self._sync_by_default and _wants_sync(listed)
        self._write(batch, steps, synced)
        return self._applied(steps[-1], listed, synced)

    def _write(self, batch: Batch, steps: list[_Step], synced: bool) -> None:
        if synced:
            self.store.gather(batch)  # the committer settles it with the others that share the fsync
        else:
            self.store.write(batch)
        self.writes += len(steps)
        logged = [step for step in steps if step.logged_bytes]
        if logged:
            self.log.written(logged[-1].sequence, len(logged), sum(step.logged_bytes for step in logged))

    def _draft_into(self, batch: Batch, mutation: RowMutation, now_ms: int) -> _Step:
        """Decide one row's next state into ``batch``; nothing where a condition fails."""
        if self._may_put_unread(mutation, now_ms):
            return self._put_unread(batch, mutation, now_ms)
        clock_ms = now_ms
        if self.log_policy is not None:
            now_ms = self._rising(batch, mutation.row, now_ms)
        sequence = self.log.next()
        draft = RowDraft(
            self.store,
            self.views,
            mutation.row,
            now_ms=now_ms,
            sequence=(sequence.epoch << _EPOCH_SHIFT) | sequence.n,
            markers=self._markers,
            logged=self.log_policy is not None,
        )
        failed = draft.check(mutation.conditions)
        if failed is not None:
            return _Step(sequence, now_ms, (), failed, 0)
        if len(mutation.operations) > 1:
            draft.prefetch(mutation.operations)
        for operation in mutation.operations:
            draft.apply(operation)
        draft.emit(batch)
        for column in draft.columns.values():
            if column.pushed:
                self._trim_hot(batch, column, now_ms)
        if draft.highest > max(clock_ms, self._future):
            self._future = draft.highest
            batch.put(META_SPACE, _FUTURE, draft.highest.to_bytes(8, "big"))
        logged = self._log(batch, draft, sequence)
        return _Step(sequence, draft.timestamp, tuple(draft.results), None, logged)

    def _may_put_unread(self, mutation: RowMutation, now_ms: int) -> bool:
        """Whether nothing that stands in the row can matter: puts by the clock, of families that keep one version."""
        if self.log_policy is not None or self._markers or mutation.conditions or now_ms <= self._future:
            return False
        views = self.views
        for operation in mutation.operations:  # no all() over a generator, as in _wants_sync
            if type(operation) is not Put or operation.timestamp is not None:
                return False
            if views[operation.family].max_versions != 1:
                return False
        return True

    def _put_unread(self, batch: Batch, mutation: RowMutation, now_ms: int) -> _Step:
        """What ``RowDraft`` would come to, without reading the row."""
        sequence = self.log.next()
        number, prefix, views = (sequence.epoch << _EPOCH_SHIFT) | sequence.n, row_prefix(mutation.row), self.views
        for operation in mutation.operations:
            assert isinstance(operation, Put), "looked at before"
            raw = pack_cell(now_ms, number, operation.value, operation.ttl_ms)
            batch.put(views[operation.family].space, prefix + escape(operation.qualifier), raw)
        return _Step(sequence, now_ms, (), None, 0)

    def _log(self, batch: Batch, draft: RowDraft, sequence: Sequence) -> int:
        """Add the change record; the bytes it has, 0 where nobody wants one."""
        policy = self.log_policy
        if policy is None:
            return 0
        entries = tuple(entry for entry in draft.entries if entry.family in policy.families)
        if not entries:
            return 0
        stamp = max(draft.least_stamp, max(entry.timestamp for entry in entries))
        return self.log.append(batch, sequence, ChangeRecord(draft.row, stamp, entries, draft.before(policy.before)))

    def log_records(self, records: Iterable[ChangeRecord], marks: Mapping[bytes, bytes]) -> asyncio.Future[None]:
        """Append records that stand for no mutation (a backfill), with ``marks`` in ``meta``, as one batch.

        The future resolves after their fsync.
        """
        batch = self.store.batch()
        steps = []
        for record in records:
            sequence = self.log.next()
            steps.append(_Step(sequence, record.timestamp, (), None, self.log.append(batch, sequence, record)))
        for key, value in marks.items():
            batch.put(META_SPACE, key, value)
        self._write(batch, steps, True)
        return self._gather().acknowledged

    def mark(self, key: bytes) -> bytes | None:
        """What ``log_records`` left under ``key``."""
        return self.store.get(META_SPACE, key)

    def _rising(self, batch: Batch, row: bytes, now_ms: int) -> int:
        """I4.  Only rows written in this very millisecond, or while the clock stood still, are remembered.

        How far they ran ahead of the clock is kept in the store: after an opening, which has
        forgotten the rows, a put stamped by the clock would lose against what it should replace.
        """
        last = self._recent.get(row, self._stamp_floor)
        if last >= now_ms:
            now_ms = last + 1
            self._stamp_ahead = max(self._stamp_ahead, now_ms)
            batch.put(META_SPACE, _STAMP, self._stamp_ahead.to_bytes(8, "big"))
        if len(self._recent) >= RECENT_ROWS:
            clock = self._clock()
            self._recent = {r: at for r, at in self._recent.items() if at >= clock}
        self._recent[row] = now_ms
        return now_ms

    def _trim_hot(self, batch: Batch, column: ColumnDraft, now_ms: int) -> None:
        """Remove surplus versions of a cell that is overwritten again and again, every so often.

        The end of the last removal is remembered, so that its tombstones are not walked again.
        """
        name = version_prefix(column.view.number, column.key)
        count, stop = self._hot.pop(name, (0, None))
        count += len(column.pushed)
        if stop is not None:
            # A put into the past may stand behind what was removed before.
            stop = max(stop, *(version_from(name, at) + b"\x00" for at in column.pushed))
        if count >= TRIM_AFTER:
            surplus, last_kept = self._surplus(column, name, stop or version_end(name), now_ms)
            for key in surplus:
                batch.delete(VERSIONS_SPACE, key)
            count, stop = 0, last_kept + b"\x00"
        self._hot[name] = (count, stop)
        if len(self._hot) > HOT_CELLS:
            self._hot.popitem(last=False)

    def _surplus(self, column: ColumnDraft, name: bytes, stop: bytes, now_ms: int) -> tuple[list[bytes], bytes]:
        """Keys of older versions that no reader sees once the draft is written, and the last one that stays."""
        cut = -1 if column.cut_at is None else column.cut_at
        held = {
            key: raw
            for key, raw in self.store.scan(VERSIONS_SPACE, name, stop)
            if (at := split_version_key(key)[1]) > cut and at not in column.removed
        }
        held |= {version_from(name, at): raw for at, raw in column.pushed.items()}
        view, surplus, last_kept = column.view, [], name
        newest = column.newest
        room = view.max_versions - (newest is not None and is_alive(unpack(newest), view, now_ms))
        for key, raw in sorted(held.items()):
            if room > 0 and is_alive(unpack(raw), view, now_ms):
                room, last_kept = room - 1, key
            else:
                surplus.append(key)
        return surplus, last_kept

    def _applied(self, step: _Step, mutations: list[RowMutation], synced: bool) -> Applied:
        """Join the fsync that will make the rows durable."""
        durable = None
        if step.failed_condition is not None:
            # Nothing was written, but the answer waits until what it saw is on disk.
            durable = self.barrier(mutations[0].row)
        elif synced:
            group = self._gather()
            for mutation in mutations:
                group.rows.add(mutation.row)
            durable = group.acknowledged
        else:
            self._async_dirty = True
        return Applied(step.sequence, step.timestamp, step.results, step.failed_condition, durable)

    def _gather(self) -> _Group:
        synced = self._committer.durable(self.store)
        groups = self._groups
        if not groups or groups[-1].synced is not synced:
            groups.append(_Group(synced, synced.get_loop().create_future(), set(), self.log.last_n))
            synced.add_done_callback(self._group_ended)
        groups[-1].last_n = self.log.last_n
        self._async_dirty = False
        return groups[-1]

    def _group_ended(self, synced: asyncio.Future[None]) -> None:
        """The fsync has ended: acknowledge, if it went well and the lease is still ours (I3)."""
        group = self._groups.popleft()
        assert group.synced is synced, "fsyncs of one store end in order"
        failure = synced.exception()
        if failure is None and not self.is_ours():
            failure = OutcomeUnknown(f"the lease of region {self.info.encoded} was lost; read before you repeat")
        if failure is not None:
            group.acknowledged.set_exception(failure)
            group.acknowledged.exception()  # seen: a group that nobody waits for must not warn
            return
        self.log.durable_n = group.last_n
        group.acknowledged.set_result(None)
        if self.log_policy is not None and self.on_durable is not None:
            self.on_durable(self)

    def sync_async_writes(self) -> asyncio.Future[None] | None:
        """Begin an fsync if unsynced writes wait for one: their changes are fed to consumers after it."""
        return self._gather().acknowledged if self._async_dirty else None

    # --- reading -----------------------------------------------------------------------------------

    def barrier(self, row: bytes) -> asyncio.Future[None] | None:
        """The fsync that a reply about ``row`` must wait for, or None (I2)."""
        for group in reversed(self._groups):
            if row in group.rows:
                return group.acknowledged
        return None

    def barrier_any(self) -> asyncio.Future[None] | None:
        """The fsync that a reply about a range of rows must wait for."""
        return self._groups[-1].acknowledged if self._groups else None

    def fetch(self, row: bytes, spec: ReadSpec) -> RawRow:
        self.reads += 1
        return fetch_row(self.store, self.views, row, spec.projection)

    def get_row(self, row: bytes, spec: ReadSpec) -> list[WireCell]:
        """The visible cells of one row, column ascending; empty where there are none."""
        return wire_cells(self.store, row, self.fetch(row, spec), spec, self._clock())

    def get_column(self, row: bytes, family: bytes, qualifier: bytes, spec: ReadSpec) -> list[tuple[bytes, int]]:
        """(value, timestamp) of one column, newest first."""
        self.reads += 1
        return read_column(self.store, self.views[family], row, qualifier, spec, self._clock())

    def get_family(self, row: bytes, family: bytes, spec: ReadSpec) -> list[tuple[bytes, int]]:
        """(value, timestamp) of every version of every column of a family, column ascending, newest first."""
        view, now_ms, found = self.views[family], self._clock(), []
        for _, group in self.fetch(row, spec):
            for qualifier, raw in group:
                versions = column_versions(self.store, view, row, unescape(qualifier), raw, spec, now_ms)
                found += [(cell.value, cell.timestamp) for cell in islice(versions, spec.max_versions)]
        return found

    @property
    def now_ms(self) -> int:
        return self._clock()

    # --- life --------------------------------------------------------------------------------------

    @property
    def is_quiet(self) -> bool:
        """No write waits for its fsync: the region may be closed."""
        return not self._groups and not self._async_dirty and self._committer.is_idle(self.store)

    def close(self) -> None:
        """Only when quiet, or when the store is broken: what was acknowledged is on disk either way."""
        self.is_open = False
        self._committer.forget(self.store)
        self.store.close()
