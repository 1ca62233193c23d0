"""(pure) The effect of a mutation: on one row of a batch (``Step``), and as its caller sees it (``Applied``).

Both are plain classes: they are never compared, and in compiled modules their attributes are fields.
"""

from __future__ import annotations

from typing import Any

from columnar.model.mutation import Contribute, Durability, RowPuts, RowWrite
from columnar.regions.log.change_record import Appended, Sequence

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

    __slots__ = ("durable", "failed_condition", "results", "sequence", "timestamp")

    def __init__(
        self,
        sequence: Sequence,
        timestamp: int,
        results: Results,
        failed_condition: int | None,
        durable: Any,
    ) -> None:
        self.sequence = sequence
        self.timestamp = timestamp
        self.results = results
        self.failed_condition = failed_condition
        self.durable = durable  # a shared future, never cancel it: the answer waits for it, if it is not None


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
