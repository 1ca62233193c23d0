"""Drafting: decides the next state of a region's rows and adds it to batches.

A put reads the row only if its present cells matter (``_must_read``); otherwise it is written unread (``UnreadPuts``).
Puts of many rows read their present cells together (``read_present``; ``logged_puts`` if changes are logged), and so do
contributions (``contribution_rows``).

Invariant I1: no cell has a timestamp above both ``meta/future`` and the clock at its writing.  Once the clock has
passed that mark, a cell stamped by the clock is the newest of its column and needs no comparison.

Cost: a put of one cell reads one key at most; the cost does not depend on the number of rows or versions.

Knows nothing of fsyncs, acknowledgements and leases (``region``).
"""

from __future__ import annotations

from typing import Final

from columnar.model.mutation import Put, RowMutation, RowPuts, RowWrite
from columnar.model.schema import Table
from columnar.regions.hooks import LogPolicy
from columnar.regions.log.change_logging import ChangeLogging, check_lasting, read_images
from columnar.regions.log.change_record import Appended, Sequence
from columnar.regions.log.log_retention import META_SPACE
from columnar.regions.read.family_view import FamilyView, Views, visible_value
from columnar.regions.write import contribution_rows
from columnar.regions.write.applied import Counted, Step
from columnar.regions.write.column_draft import ColumnDraft, HotCells
from columnar.regions.write.contribution_rows import ContributedRow
from columnar.regions.write.guards import Guards
from columnar.regions.write.logged_puts import LoggedPuts
from columnar.regions.write.row_draft import RowDraft
from columnar.storage.api import Batch, Store
from columnar.storage.layout import MARKER, cell_head, escape, pack_cell, row_prefix, timestamp_of

FUTURE: Final = b"future"  # in ``meta``: the highest timestamp written ahead of the clock (I1)
SENDS_ALONE: Final = LogPolicy(frozenset(), frozenset(), sends=True)  # of a change with sends that nobody follows
_NO_FAMILIES: Final[frozenset[bytes]] = frozenset()


Places = list[tuple[str, bytes]]  # for each column of a row, in order: its space and the end of its key


PresentPlaces = list[
    tuple[FamilyView, bytes, int]
]  # of the cells of a row: family, key, place among the keys of its space


class Present:
    """The rows of one batch that ``put_present`` may put, and their present cells."""

    __slots__ = ("rows", "values")

    def __init__(self, rows: list[PresentPlaces | None], values: dict[str, list[bytes | None]]) -> None:
        self.rows = rows  # one for each mutation, in order; None if it is left to RowDraft
        self.values = values  # by space


def read_present(store: Store, views: Views, mutations: list[RowWrite]) -> Present:
    """Read the present cells of the columns that many rows put, with one call for each key space.

    This function is for puts that ``UnreadPuts`` does not take: they have timestamps of their own, their family keeps
    several versions, or their table keeps delete markers.  So the present cell decides what is written (``row_draft``
    I1 to I3).  The written bytes equal those of ``RowDraft`` for each row.  A row whose changes are logged, a single
    row, and any operation but a put are left to ``RowDraft``.

    Cost: a key and a comparison for each cell, and one call of the engine for each key space.

    ``mutations`` are of different rows.  Raises NoSuchColumnFamily and errors of the store.
    """
    keys: dict[str, list[bytes]] = {}
    rows = [_present_places(views, mutation, keys) for mutation in mutations]
    return Present(rows, {space: store.multi_get(space, named) for space, named in keys.items()})


def _present_places(views: Views, mutation: RowWrite, keys: dict[str, list[bytes]]) -> PresentPlaces | None:
    if not isinstance(mutation, RowMutation) or mutation.conditions or mutation.sends:
        return None
    prefix = row_prefix(mutation.row)
    found: list[tuple[FamilyView, bytes]] = []
    seen: set[tuple[bytes, bytes]] = set()
    for operation in mutation.operations:
        if type(operation) is not Put or operation.ttl_ms is not None:
            return None
        view = views[operation.family]
        found.append((view, prefix + escape(operation.qualifier)))
        seen.add((operation.family, operation.qualifier))
    if len(seen) < len(found):
        return None  # a later put of a column sees the put before it
    places: PresentPlaces = []
    for view, key in found:
        named = keys.get(view.space)
        if named is None:
            named = keys[view.space] = []
        places.append((view, key, len(named)))
        named.append(key)
    return places


def put_present(
    batch: Batch,
    mutation: RowMutation,
    places: PresentPlaces,
    values: dict[str, list[bytes | None]],
    now_ms: int,
    number: int,
    store: Store,
    older: list[ColumnDraft],
) -> int:
    """Add the row's cells to the batch, and return the highest of their timestamps.

    ``number`` is the sequence in the form that cells have.  ``older`` gets the columns that have more older versions
    than before.
    """
    highest = 0
    for operation, (view, key, at) in zip(mutation.operations, places, strict=True):
        assert isinstance(operation, Put), "looked at before"
        timestamp = now_ms if operation.timestamp is None else operation.timestamp
        if timestamp > highest:
            highest = timestamp
        present = values[view.space][at]
        if present is not None and view.max_versions > 1:
            column = ColumnDraft(view, key, present)
            column.put(timestamp, cell_head(timestamp, number) + operation.value, now_ms)
            column.emit(batch, store)
            if column.pushed:
                older.append(column)
        elif present is None or timestamp >= timestamp_of(present) or _has_expired(present, view, now_ms):
            batch.put(view.space, key, cell_head(timestamp, number) + operation.value)
    return highest


def _has_expired(present: bytes, view: FamilyView, now_ms: int) -> bool:
    """Tell whether no reader sees the cell that outranks the put, although it is no delete marker."""
    return present[0] != MARKER and visible_value(present, view, now_ms) is None


class UnreadPuts:
    """Puts whose rows need not be read: the clock gives their timestamps, and their families keep one version.

    Present cells of the row cannot matter: the put cells are the newest (invariant I1 of ``drafting``), no older
    version is kept, and no follower wants the change.  The written cells equal those of ``RowDraft``.

    Invariant: the remembered columns of the last rows belong to these views.  Cost: a key, a value and a call of the
    engine for each cell of a bulk load.
    """

    def __init__(self, views: Views) -> None:
        self._views = views
        self._columns: tuple[tuple[bytes, bytes], ...] | None = None
        self._places: Places | None = None

    def can_put(self, mutation: RowMutation) -> bool:
        views = self._views
        if mutation.sends:
            return False
        for operation in mutation.operations:  # no all() over a generator, as in ``wants_sync``
            if type(operation) is not Put or operation.timestamp is not None:
                return False
            if views[operation.family].max_versions != 1:
                return False
        return True

    def put_row(self, batch: Batch, mutation: RowMutation, now_ms: int, number: int) -> None:
        """Put a row for which ``can_put`` is true; ``number`` is the sequence in the form that cells have."""
        prefix, views = row_prefix(mutation.row), self._views
        head = cell_head(now_ms, number)
        for operation in mutation.operations:
            assert isinstance(operation, Put), "looked at before"
            if operation.ttl_ms is None:
                raw = head + operation.value
            else:
                raw = pack_cell(now_ms, number, operation.value, operation.ttl_ms)
            batch.put(views[operation.family].space, prefix + escape(operation.qualifier), raw)

    def places(self, columns: tuple[tuple[bytes, bytes], ...]) -> Places | None:
        """Return the places of these columns, or None if one of their families keeps more than one version."""
        if columns is not self._columns:
            self._columns, self._places = columns, self._found(columns)
        return self._places

    def _found(self, columns: tuple[tuple[bytes, bytes], ...]) -> Places | None:
        places: Places = []
        for family, qualifier in columns:
            view = self._views[family]
            if view.max_versions != 1:
                return None
            places.append((view.space, escape(qualifier)))
        return places


def put_row(batch: Batch, mutation: RowPuts, places: Places, now_ms: int, number: int) -> None:
    """Put all cells of a row of a bulk load."""
    prefix, head = row_prefix(mutation.row), cell_head(now_ms, number)
    assert len(places) == len(mutation.values), "a value for each column"
    for (space, end_of_key), value in zip(places, mutation.values):  # noqa: B905 - asserted; with strict it is a slow loop
        batch.put(space, prefix + end_of_key, head + value)


class Drafting:
    """The drafting of one region; owned by the loop's thread."""

    def __init__(
        self, store: Store, logging: ChangeLogging, guards: Guards, future_ms: int, table: Table, views: Views
    ) -> None:
        """``future_ms`` is the value of ``meta/future``."""
        self._store = store
        self._logging = logging
        self._guards = guards
        self.future_ms = future_ms
        self._hot = HotCells(store)
        self.follow_schema(table, views)

    def follow_schema(self, table: Table, views: Views) -> None:
        """Draft by this schema from now on."""
        self._views = views
        self._markers = table.delete_markers_ms is not None
        self._unread = UnreadPuts(views)
        self._logged_puts: LoggedPuts | None = None  # of the policy of the last call
        self._hot.clear()

    def draft_row(self, batch: Batch, mutation: RowMutation, now_ms: int, policy: LogPolicy | None) -> Step:
        """Add one row's next state to ``batch``; adds no key if a condition fails.

        No other state changes before ``written``: the batch may be refused.
        """
        log = self._logging.log
        if not mutation.conditions and not self._must_read(now_ms, policy) and self._unread.can_put(mutation):
            sequence = log.next()
            self._unread.put_row(batch, mutation, now_ms, log.cell_epoch | sequence.n)
            return Step(sequence, now_ms, (), None)
        clock_ms = now_ms
        if policy is None and mutation.sends:
            policy = SENDS_ALONE
        elif policy is not None:
            now_ms = self._logging.stamps.give(batch, mutation.row, now_ms)
        sequence = log.next()
        draft = self.begin_draft(mutation.row, sequence, now_ms, clock_ms, policy)
        failed = draft.check(mutation.conditions)
        if failed is not None:
            return Step(sequence, now_ms, (), failed)
        self.apply_operations(batch, draft, mutation, policy)
        logged = None
        if policy is not None:
            logged = self._logging.record(batch, draft, sequence, now_ms, policy, mutation)
        return self.end_draft(batch, draft, sequence, now_ms, clock_ms, logged)

    def begin_draft(
        self, row: bytes, sequence: Sequence, now_ms: int, clock_ms: int, policy: LogPolicy | None
    ) -> RowDraft:
        """Return the draft of a row; ``now_ms`` is its stamp if its changes are logged."""
        return RowDraft(
            self._store,
            self._views,
            row,
            now_ms=now_ms,
            sequence=self._logging.log.cell_epoch | sequence.n,
            markers=self._markers,
            logged=policy is not None,
            all_older=clock_ms > self.future_ms and not self._markers,
            known=policy.before if policy is not None else _NO_FAMILIES,
        )

    def apply_operations(self, batch: Batch, draft: RowDraft, mutation: RowMutation, policy: LogPolicy | None) -> None:
        """Apply the operations to the draft, and add the row's next state to ``batch``."""
        if policy is not None and policy.lasting:
            check_lasting(draft, mutation, policy)
        if policy is not None and policy.images:
            read_images(draft, mutation, policy)
        elif len(mutation.operations) > 1:
            draft.columns.prefetch(mutation.operations)
        for operation in mutation.operations:
            draft.apply(operation)
        draft.emit(batch)

    def end_draft(
        self, batch: Batch, draft: RowDraft, sequence: Sequence, now_ms: int, clock_ms: int, logged: Appended | None
    ) -> Step:
        """Return the step of a draft whose cells and record are in ``batch``."""
        counted: list[Counted] | None = None
        for column in draft.columns.by_name.values():
            if column.pushed:
                if counted is None:
                    counted = []
                counted.append(self._hot.trim(batch, column, clock_ms))  # stamps run ahead of what readers see
        guarded = self._guards.cover(batch, draft.guarded, now_ms) if draft.guarded else None
        return Step(sequence, draft.timestamp, draft.results, None, logged, draft.highest, counted, guarded)

    @property
    def logging(self) -> ChangeLogging:
        return self._logging

    def draft_rows(self, batch: Batch, mutations: list[RowWrite], now_ms: int, policy: LogPolicy | None) -> list[Step]:
        """Add the next states of different rows, without conditions, with the same outcome as ``draft_row``."""
        if policy is None and contribution_rows.begins(mutations) and not self._must_read(now_ms, None):
            return self._contributed(batch, mutations, now_ms)
        if policy is not None:
            return self._logged(batch, mutations, now_ms, policy)
        if len(mutations) == 1 or not self._read_together(mutations, now_ms):
            return [self._one(batch, mutation, now_ms, policy) for mutation in mutations]
        present = read_present(self._store, self._views, mutations)
        steps: list[Step] = []
        for mutation, places in zip(mutations, present.rows, strict=True):
            if places is None or not isinstance(mutation, RowMutation):
                steps.append(self._one(batch, mutation, now_ms, policy))
                continue
            sequence = self._logging.log.next()
            number = self._logging.log.cell_epoch | sequence.n
            older: list[ColumnDraft] = []
            highest = put_present(batch, mutation, places, present.values, now_ms, number, self._store, older)
            counted = [self._hot.trim(batch, column, now_ms) for column in older] if older else None
            steps.append(Step(sequence, now_ms, (), None, None, highest, counted))
        return steps

    def _logged(self, batch: Batch, mutations: list[RowWrite], now_ms: int, policy: LogPolicy) -> list[Step]:
        puts = self._logged_puts
        if puts is None or puts.policy is not policy:
            puts = self._logged_puts = LoggedPuts(self._views, policy, self._markers)
        mine = puts.plain_puts(mutations)
        values = puts.read_images(self._store, mine)
        steps: list[Step] = []
        for mutation, known in zip(mutations, mine, strict=True):
            if known is None or not puts.is_newest(known, values, now_ms):
                steps.append(self._one(batch, mutation, now_ms, policy))
                continue
            stamp = self._logging.stamps.give(batch, mutation.row, now_ms)
            sequence = self._logging.log.next()
            record = puts.put_row(batch, known, values, stamp, self._logging.log.cell_epoch | sequence.n)
            logged = self._logging.log.append(batch, sequence, record)
            steps.append(Step(sequence, stamp, (), None, logged, stamp))
        return steps

    def _contributed(self, batch: Batch, mutations: list[RowWrite], now_ms: int) -> list[Step]:
        views, store, choice = self._views, self._store, contribution_rows.Choice(self._views)
        mine = [one if choice.takes(one) else None for one in mutations]
        stored = contribution_rows.read(store, views, [one for one in mine if isinstance(one, RowMutation)])
        steps: list[Step] = []
        for mutation, contributed in zip(mutations, mine, strict=True):
            row = ContributedRow(store, views, stored, mutation.row, now_ms)
            if not isinstance(contributed, RowMutation) or not row.apply(contributed):
                steps.append(self._one(batch, mutation, now_ms, None))
                continue
            sequence = self._logging.log.next()
            row.emit(batch, self._logging.log.cell_epoch | sequence.n)
            guarded = self._guards.cover(batch, row.guarded, now_ms) if row.guarded else None
            steps.append(Step(sequence, now_ms, (), None, None, now_ms, None, guarded))
        return steps

    def _read_together(self, mutations: list[RowWrite], now_ms: int) -> bool:
        """Tell by the first row whether all rows are puts that must read: the rows of a call are of one kind."""
        first = mutations[0]
        if not isinstance(first, RowMutation):
            return False
        return self._must_read(now_ms, None) or not self._unread.can_put(first)

    def _one(self, batch: Batch, mutation: RowWrite, now_ms: int, policy: LogPolicy | None) -> Step:
        if isinstance(mutation, RowMutation):
            return self.draft_row(batch, mutation, now_ms, policy)
        return self.puts(batch, mutation, now_ms, policy)

    def puts(self, batch: Batch, mutation: RowPuts, now_ms: int, policy: LogPolicy | None) -> Step:
        """Add a row of a bulk load to ``batch``, with the same outcome as ``draft_row``."""
        places = None if self._must_read(now_ms, policy) else self._unread.places(mutation.columns)
        if places is None:
            return self.draft_row(batch, mutation.spelled_out(), now_ms, policy)
        sequence = self._logging.log.next()
        put_row(batch, mutation, places, now_ms, self._logging.log.cell_epoch | sequence.n)
        return Step(sequence, now_ms, (), None)

    def _must_read(self, now_ms: int, policy: LogPolicy | None) -> bool:
        """Tell whether every put has to read the present cells of its row."""
        return policy is not None or self._markers or now_ms <= self.future_ms

    def covering(self, batch: Batch, steps: list[Step], clock_ms: int) -> int:
        """Add the mark ``meta/future`` to the batch of these steps, if they raise it.

        Returns ``future_ms`` after the write (I1).
        """
        highest_ms = 0
        for step in steps:
            if step.highest_ms > highest_ms:
                highest_ms = step.highest_ms
        return self.covering_ms(batch, highest_ms, clock_ms)

    def covering_ms(self, batch: Batch, highest_ms: int, clock_ms: int) -> int:
        """Add the mark as ``covering`` does, for timestamps up to ``highest_ms``."""
        if highest_ms <= clock_ms or highest_ms <= self.future_ms:
            return self.future_ms
        batch.put(META_SPACE, FUTURE, highest_ms.to_bytes(8, "big"))
        return highest_ms

    def written(self, steps: list[Step], future_ms: int) -> None:
        """Note that the batch of these steps is in the store.  ``future_ms`` is the result of ``covering``."""
        self.future_ms = future_ms
        for step in steps:
            if step.counted is not None:
                self._hot.written(step.counted)
            if step.guarded is not None:
                self._guards.written(step.guarded)

    def can_delete_unread(self, now_ms: int) -> bool:
        """Tell whether deletes need no reading: no delete marker is kept, and no cell in the future must be spared."""
        return not self._markers and now_ms > self.future_ms

    def rows_deleted(self) -> None:
        """Note that rows were deleted without a draft."""
        self._hot.clear()
