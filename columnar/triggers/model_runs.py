"""(pure) A function run over a history: the source, the changes that it is called for, and the resulting tables.

    Run(registration, function, lookup_tables).play(history)    plays it, then delivers the remaining changes
    Run(...).table_contents()                                   the tables that the function has written
    Run(...).recomputed()                                       the tables that the source's rows imply: each row is
                                                                delivered once, into empty tables

A step is an effect or a call through the client.  A run that dies has done the steps before its death; its later steps
are kept as a ghost.  The effects of every run that ended are kept as a ghost, too, because the store may write an
effect again.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from columnar.errors import printable
from columnar.flows.effect_contributions import ChangeContributions, Giver
from columnar.flows.effects import writes_of
from columnar.model.effect import BARRIER, CHECKPOINT, CONTRIBUTE, DELETE, PUT, SEND, TALLY, Effect
from columnar.model.flow_graph import check_seen
from columnar.model.key_parts import joined
from columnar.model.mutation import Contribute
from columnar.model.trigger_registration import Registration
from columnar.triggers.api import NO_BEFORE, NO_ROW, Change, ChangedCell, Later
from columnar.triggers.contribution_buffer import BUFFERED, buffer_contribution_pairs, buffer_contributions
from columnar.triggers.effect_places import families_beside, place_of
from columnar.triggers.forked import ending_copies
from columnar.triggers.lookup_client import Looked
from columnar.triggers.model_history import Event
from columnar.triggers.model_tables import ModelClient, ModelTables, Row, TableContents, Write
from columnar.triggers.slices import Function, check_put_off, effects_of, pairs_of

START_MS = 1_800_000_000_000
_ATTEMPTS = 20  # of one change; each may die
_PUT_OFFS = 100  # of one change, in a row


class PutOffForEver(Exception):
    """The function raises ``Later`` for a change whenever it runs."""

    def __init__(self, row: bytes) -> None:
        super().__init__(f"it put row {printable(row)} off {_PUT_OFFS} times in a row")


class Died(BaseException):
    """The worker died in the middle of a call."""


@dataclass(slots=True)
class _Pending:
    change: Change
    progress: bytes = b""
    part: int = 0  # the first part of the change's contributions in the next run
    attempt: int = 1
    put_offs: int = 0  # in a row

    def was_put_off(self, by: BaseException) -> None:
        """Count a run that ``by`` ended.  Raises PutOffForEver after _PUT_OFFS in a row that raised ``Later``."""
        self.put_offs = self.put_offs + 1 if isinstance(by, Later) else 0
        if self.put_offs >= _PUT_OFFS:
            raise PutOffForEver(self.change.row) from by


class Run:
    def __init__(
        self, registration: Registration, function: Function, lookup_tables: Mapping[bytes, Mapping[bytes, Row]]
    ) -> None:
        """``lookup_tables`` are the tables that the function looks up, as rows by their keys; they never change."""
        self.registration = registration
        self.scope = registration.scope()
        self.unstamped = ""  # a write through the client that bears no timestamp
        self.tallies = False  # the function yields tallies: the source's changes make the totals, not its rows
        self._function = function
        self._now_ms = START_MS
        self.source = ModelTables(lambda: self._now_ms, leaves_markers=False)
        self.derived = ModelTables(lambda: self._now_ms)
        self._lookup_tables = lookup_tables
        for table, rows in lookup_tables.items():
            for row, cells in rows.items():
                self.derived.apply(Write(table, row, 0, cells=cells))
        self._stamps: dict[bytes, int] = {}
        self._count = 0
        self._pending: dict[bytes, deque[_Pending]] = defaultdict(deque)
        self._ghosts: list[list[Write]] = []
        self._begun = True

    # --- histories -----------------------------------------------------------------------------------

    def play(self, history: tuple[Event, ...], *, is_kind: bool = False) -> Run:
        """Play the history, then deliver the remaining changes; with ``is_kind`` no run dies and no write is late."""
        self._begun = not any(event.kind == "begin" for event in history)
        for event in history:
            self._now_ms += 10
            if event.kind in ("put", "delete"):
                self._write(event)
            elif event.kind == "begin":
                self._begin()
            elif event.kind == "deliver":
                self._deliver(event.row, None if is_kind else event.cut)
            elif self._ghosts and not is_kind:
                for write in self._ghosts[event.which % len(self._ghosts)]:
                    self.derived.apply(write)
        return self._drained()

    def _drained(self) -> Run:
        for row in sorted(self._pending):
            while self._pending[row]:
                self._now_ms += 10
                self._deliver(row, None)
        return self

    def recomputed(self) -> TableContents:
        """Derive the tables from the source as it is now."""
        fresh = Run(self.registration, self._function, self._lookup_tables)
        fresh.source = self.source
        for row in self.source.rows(self._table):
            if fresh._image(row):
                fresh._pend(row, (), {}, is_backfill=True)
        return fresh._drained().table_contents()

    def table_contents(self) -> TableContents:
        return {
            table: rows for table, rows in self.derived.table_contents().items() if table not in self._lookup_tables
        }

    # --- the source ----------------------------------------------------------------------------------

    @property
    def _table(self) -> bytes:
        return self.registration.table.encode()

    def _image(self, row: bytes) -> Row:
        cells = self.source.row(self._table, row)
        return {column: value for column, value in cells.items() if self.scope.has_image_of(column)}

    def _write(self, event: Event) -> None:
        row = event.row
        at = self._now_ms + (event.shift_ms or 0)
        before = self._image(row)
        if event.kind == "put":
            self.source.apply(Write(self._table, row, at, cells=dict(event.cells)))
            steps = tuple(ChangedCell("put", column, at, value) for column, value in event.cells)
        else:
            families = sorted(family.encode("latin-1") for family in self.registration.families)
            named = event.columns or tuple(families)
            self.source.apply(Write(self._table, row, at, columns=event.columns or None))
            steps = tuple(ChangedCell("delete" if b":" in one else "delete family", one, at) for one in named)
        counted = tuple(step for step in steps if self.scope.touches(*_touched(step)))
        if self._begun and counted and self.scope.matches_row(self._image(row)):
            self._pend(row, counted, before, is_backfill=False)

    def _begin(self) -> None:
        self._begun = True
        for row in self.source.rows(self._table):
            self._pend(row, (), {}, is_backfill=True)

    def _pend(self, row: bytes, steps: tuple[ChangedCell, ...], before: Row, *, is_backfill: bool) -> None:
        self._count += 1
        stamp = self._stamps[row] = max(self._now_ms, self._stamps.get(row, 0) + 1)
        change = Change(
            self._table, row, stamp, f"1-1-{self._count}", steps, NO_ROW, before, is_backfill=is_backfill,
            client_timestamp=max((step.timestamp for step in steps), default=stamp), after=self._image(row),
        )  # fmt: skip
        self._pending[row].append(_Pending(change))

    # --- calls ---------------------------------------------------------------------------------------

    def _deliver_batch(self, row: bytes, cut: int | None) -> None:
        """Deliver waiting changes of all rows as a batch, beginning with ``row``; changes of a row keep their order."""
        rows = [row, *(other for other in sorted(self._pending) if other != row)]
        taken: list[_Pending] = []
        for one in rows:
            taken += list(self._pending[one])[: self.registration.batch - len(taken)]
        changes = []
        for pending in taken:
            change = self._as_delivered(pending)
            if not change.is_backfill or self.scope.matches_row(change.after):
                changes.append(change)
            pending.attempt += 1
        if changes:
            attempts = max(pending.attempt for pending in taken)
            call = BatchCall(self, tuple(changes), cut if attempts <= _ATTEMPTS else None)
            try:
                call.run(self._function.call, wants_client=self._function.wants_client)
            except (Died, Later) as ended:
                taken[0].was_put_off(ended)
                self._ghosts.append(call.lost)
                return
            self._ghosts.append(call.stamped)
        for pending in taken:
            self._pending[pending.change.row].remove(pending)

    def _deliver(self, row: bytes, cut: int | None) -> None:
        if not self._pending[row]:
            return
        if self.registration.batch:
            self._deliver_batch(row, cut)
            return
        pending = self._pending[row][0]
        change = self._as_delivered(pending)
        if change.is_backfill and not self.scope.matches_row(change.after):
            self._pending[row].popleft()
            return
        call = Call(self, change, cut if pending.attempt < _ATTEMPTS else None, pending.part)
        pending.attempt += 1
        try:
            call.run(self._function.call, wants_client=self._function.wants_client)
        except (Died, Later) as ended:
            pending.was_put_off(ended)
            pending.progress, pending.part = call.progress, call.part
            self._ghosts.append(call.lost)
            return
        self._ghosts.append(call.stamped)
        self._pending[row].popleft()

    def _as_delivered(self, pending: _Pending) -> Change:
        change = pending.change
        if change.is_backfill:
            change = replace(change, after=self._image(change.row))
        lookups = {}
        for lookup in self.scope.lookups:
            key = lookup.row(change.row, change.after)
            lookups[lookup.name] = Looked(lookup.table, key, self._lookup_tables.get(lookup.table, {}).get(key, {}))
        return replace(
            change,
            attempt=pending.attempt,
            progress=pending.progress,
            before=change.before if self.registration.before else NO_BEFORE,
            now=self.source.row(self._table, change.row) if self.registration.row else NO_ROW,
            looked=lookups,
        )


class Call:
    """A run of the function, which dies after ``cut`` steps (None: it does not die)."""

    def __init__(self, run: Run, change: Change, cut: int | None, part: int) -> None:
        self._run, self._change, self._left = run, change, cut
        self.progress, self.part = change.progress, part
        self._giver = Giver(run.registration.name)
        self.stamped: list[Write] = []  # by effects, which the store may write again
        self.lost: list[Write] = []  # the writes after the death

    def run(self, function: Callable[..., Any], *, wants_client: bool) -> None:
        """Run the function.  Raises Died after ``cut`` steps, and whatever the function raises, such as Later."""
        client = ModelClient(self._run.derived, self._write_by_client, self._read)
        try:
            with ending_copies():
                found = function(self._change, client) if wants_client else function(self._change)
                for effect in buffer_contributions(
                    yielded(found, self._change, self._run.registration, is_batch=False), self.part
                ):
                    if effect is not BUFFERED:
                        self._take(effect)
        except Later as later:
            check_put_off(later)
            self.lost += self.stamped
            raise
        if self._left is not None and self._left < 0:
            raise Died

    def _take(self, effect: Effect) -> None:
        self._take_of(effect, self._change)

    def _take_of(self, effect: Effect, change: Change) -> None:
        if effect[0] == CHECKPOINT:
            if self._left is None or self._left >= 0:
                _, self.progress, self.part = effect
            return
        if effect[0] == SEND:  # a queue takes a message once: it is no part of the tables
            return
        if effect[0] in (CONTRIBUTE, TALLY):
            self._run.tallies |= effect[0] == TALLY
            ChangeContributions(self._giver, change.row, _sequence_of(change)).add_contribution(list(effect), [])
        for write in _writes_of(effect, change, self._run.registration.name):
            self.stamped.append(write)
            self._write(write)

    def _write_by_client(self, write: Write) -> None:
        if write.at is None and write.amounts is None:
            what = "deletes" if write.cells is None else "puts"
            self._run.unstamped = f"{what} in row {printable(write.row)} of {printable(write.table)}"
        self._write(write)

    def _write(self, write: Write) -> None:
        if self._step():
            self._run.derived.apply(write)
        else:
            self.lost.append(write)

    def _read(self) -> None:
        self._step()

    def _step(self) -> bool:
        """Count a step; return whether the worker still lives.  The writes of a dead worker are kept as a ghost."""
        if self._left is None:
            return True
        self._left -= 1
        return self._left >= 0


class BatchCall(Call):
    """A run with several changes: each effect bears the stamp of the change that it is yielded with."""

    def __init__(self, run: Run, changes: tuple[Change, ...], cut: int | None) -> None:
        super().__init__(run, changes[0], cut, 0)
        self._changes = changes

    def run(self, function: Callable[..., Any], *, wants_client: bool) -> None:
        client = ModelClient(self._run.derived, self._write_by_client, self._read)
        try:
            with ending_copies():
                found = function(self._changes, client) if wants_client else function(self._changes)
                for pair in buffer_contribution_pairs(pairs_of(found, self._changes), self._changes):
                    if pair is not BUFFERED and type(pair) is tuple:
                        _check_written(pair[1], pair[0], self._run.registration)
                        self._take_of(pair[1], pair[0])
        except Later as later:
            check_put_off(later)
            self.lost += self.stamped
            raise
        if self._left is not None and self._left < 0:
            raise Died


def yielded(found: Any, change: Change, registration: Registration | None, *, is_batch: bool) -> Iterator[Effect]:
    """Yield the effects that a function returned for the change; ``registration`` is None if it has no ``on``.

    Raises TypeError, ValueError, IllegalArgument, RequestTooBig or TriggerError for an effect that a worker does not
    take, or a store does not write.
    """
    for effect in effects_of(found, (change,) if is_batch else None):
        _check_written(effect, change, registration)
        yield effect


def _check_written(effect: Effect, change: Change, registration: Registration | None) -> None:
    """Check one effect; raises the errors of ``yielded``."""
    if effect[0] in (CHECKPOINT, BARRIER):
        return
    writes = writes_of(
        [list(effect)], 0, make_contributions=lambda: ChangeContributions(Giver("t"), change.row, (1, 1, 1))
    )
    if registration is None:
        return
    for table, mutation in writes:
        for operation in mutation.operations:
            beside = families_beside(operation) if isinstance(operation, Contribute) else ()
            for family in (operation.family, *beside):
                check_seen(registration, place_of((table, family)), ())


def _writes_of(effect: Effect, change: Change, name: str) -> Iterator[Write]:
    if effect[0] == PUT:
        yield Write(effect[1], effect[2], change.stamp, cells=effect[3])
    elif effect[0] == DELETE:
        yield Write(effect[1], effect[2], change.stamp, columns=effect[3])
    elif effect[0] in (CONTRIBUTE, TALLY):
        _, table, row, amounts, members, source, *_, part = effect
        source = joined((name.encode(), change.row)) if source is None else source
        sequence = (*_sequence_of(change), part)
        yield Write(
            table, row, None, amounts=amounts, source=joined((members, source)), sequence=sequence,
            relative=effect[0] == TALLY,
        )  # fmt: skip
    elif effect[0] != BARRIER:
        raise TypeError(f"a trigger yields effects, as Put and Tally, not {effect!r}"[:200])


def _sequence_of(change: Change) -> tuple[int, int, int]:
    origin, epoch, n = map(int, change.sequence.split("-"))
    return origin, epoch, n


def _touched(step: ChangedCell) -> tuple[bytes, bytes | None]:
    family, colon, qualifier = step.column.partition(b":")
    return family, qualifier if colon else None
