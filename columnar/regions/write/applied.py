"""(pure) The effect of a mutation: on one row of a batch (``Step``), and as its caller sees it (``Applied``).

Both are plain classes: they are never compared, and in compiled modules their attributes are fields.
"""

from __future__ import annotations

from typing import Any

from columnar.model.mutation import Contribute, Durability, RowPuts, RowWrite
from columnar.regions.log.change_record import Appended, Sequence, up_to

Results = tuple[tuple[bytes, bytes, int], ...]  # column, new value, timestamp of increments and appends
Counted = tuple[bytes, int, bytes | None]  # a hot cell, its overwrites since the last removal, the removal's end


class Step:
    """The part of one row in a batch, and the changes in memory that follow once the store has taken the batch.

    A refused batch is drafted again or given up; its steps are dropped, so the batch changes nothing in memory.
    """

    __slots__ = ("counted", "failed_condition", "guarded", "highest_ms", "logged", "results", "sequence", "timestamp")

    def __init__(
        self,
        sequence: Sequence,
        timestamp: int,
        results: Results,
        failed_condition: int | None,
        logged: Appended | None = None,
        highest_ms: int = 0,
        counted: list[Counted] | None = None,
        guarded: dict[int, int] | None = None,
    ) -> None:
        self.sequence = sequence
        self.timestamp = timestamp
        self.results = results
        self.failed_condition = failed_condition
        self.logged = logged
        self.highest_ms = highest_ms  # the highest timestamp put, if any may lie ahead of the clock
        self.counted = counted
        self.guarded = guarded  # marks of families that got a guard (``guards``)


class Applied:
    """The outcome of a mutation; constant."""

    __slots__ = ("durable", "earlier", "failed_condition", "results", "sequence", "timestamp")

    def __init__(
        self,
        sequence: Sequence,
        timestamp: int,
        results: Results,
        failed_condition: int | None,
        durable: Any,
        earlier: tuple[Sequence, ...] = (),
    ) -> None:
        self.sequence = sequence
        self.timestamp = timestamp
        self.results = results
        self.failed_condition = failed_condition
        self.durable = durable  # a shared future, never cancel it: the answer waits for it, if it is not None
        self.earlier = earlier  # of a call that wrote into several regions: the last change of each other one

    def token(self, *, is_one_row: bool) -> str:
        """Return the call's token: its only change, or in each region that it wrote into all changes up to its last.

        The last change of a region would not do for several rows: followers may have it before earlier ones.
        """
        if is_one_row:
            return self.sequence.token
        return ",".join([up_to(sequence).token for sequence in (*self.earlier, self.sequence)])


def last_applied(applied: list[Applied]) -> Applied | None:
    """Return the outcome of a call that wrote batch after batch: the last one, with the last change of each region."""
    if len(applied) < 2:
        return applied[0] if applied else None
    last = applied[-1]
    changes = {change.origin: change for one in applied for change in (*one.earlier, one.sequence)}
    earlier = tuple([change for origin, change in changes.items() if origin != last.sequence.origin])
    return Applied(last.sequence, last.timestamp, last.results, last.failed_condition, last.durable, earlier)


class GroupApplied:
    """The outcome of a mutation of several rows; constant."""

    __slots__ = ("applied", "failed_row", "steps")

    def __init__(self, applied: Applied, steps: list[Step | None], failed_row: int | None) -> None:
        self.applied = applied  # of the last change
        self.steps = steps  # of each row, in order; None for a row without operations; empty if a condition failed
        self.failed_row = failed_row  # number of the row whose condition ``applied.failed_condition`` failed


def touches_synced(mutation: RowWrite, unsynced: frozenset[bytes]) -> bool:
    """Tell whether the mutation and one of its families want the fsync: then the complete row waits for it."""
    if isinstance(mutation, RowPuts):
        return any(family not in unsynced for family, _ in mutation.columns)
    return mutation.durability is Durability.SYNC and any(
        operation.family not in unsynced or isinstance(operation, Contribute) for operation in mutation.operations
    )


def wants_sync(mutations: list[RowWrite]) -> bool:
    for mutation in mutations:  # no any() over a generator: it costs 0.7 us, for every put
        if isinstance(mutation, RowPuts) or mutation.durability is Durability.SYNC:
            return True
    return False
