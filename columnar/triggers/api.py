"""The module that authors of triggers import.

A trigger is a function at the top level of a module that the operator allowed with ``--trigger-modules``.  It runs in
a worker process, at least once for each durable change of the families it is registered on.  The changes of a row are
delivered in order, changes of different rows in parallel.

    def spread(change: Change):                       yields what the store is to write
        yield Put("timeline", reader, {b"t:" + change.row: text})

    def notify(change: Change, client: Connection):   writes by itself, or reads first; it may yield, too

The store writes what a function yields in batches of its own, stamped with ``change.timestamp``; the change is done
when all of it is on disk.  That is some ten times cheaper than a write through ``client``.  A function that yields
much is cut into slices, between which others run; ``Checkpoint(state)`` lets it begin with ``change.progress`` after a
crash.  ``raise Later(seconds)`` puts the change off and counts no attempt.

To lead to the same tables however often and however late it runs, a trigger
    * writes only cells whose qualifier (or row) names their source,
    * stamps its puts and deletes with ``change.timestamp`` where it writes through ``client``,
    * writes into tables with the attribute DELETE_MARKERS, without which a Delete is refused.

The store gives ``change.timestamp``, which rises with each change of a row.  Timestamps that a client gave its cells
need not rise: each of ``change.changes`` has its own, and ``change.client_timestamp`` is the highest.  With timestamps
from clients a change may leave the row as it was (a put older than the present cell, a delete older than the present
cell), so such a trigger derives from ``change.now``, not from the steps.

A function that raises is run again after a pause.  After its last attempt the change is put into the table
``columnar:dead_letters``, together with the function's output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from columnar.client import Connection
from columnar.model.effect import Checkpoint, Delete, Effect, Put

__all__ = [
    "Change", "ChangedCell", "Checkpoint", "Connection", "Delete", "Effect", "Later", "Put", "TriggerFunction",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChangedCell:
    """A step of the mutation.  Increments and appends appear as puts of their results."""

    kind: Literal["put", "delete", "delete family", "delete version"]
    column: bytes  # ``family:qualifier``; the bare family for "delete family"
    timestamp: int  # milliseconds; deletes cover cells at or below it, "delete version" only the cell at it
    value: bytes = b""


@dataclass(frozen=True, slots=True)
class Change:
    table: bytes
    row: bytes
    timestamp: int  # milliseconds by the store; rises strictly with each change of a row: for all derived cells
    sequence: str  # opaque; names the change for ever
    changes: tuple[ChangedCell, ...]  # in their order; empty in a backfill or a retry of a dead letter
    now: Mapping[bytes, bytes]  # the row's cells in the trigger's families at the call: maybe newer than the change
    before: Mapping[bytes, bytes] = field(default_factory=dict)  # touched cells before the change, if asked for
    attempt: int = 1
    is_backfill: bool = False  # the row was there before the trigger, or is retried from the dead letters
    client_timestamp: int = 0  # the highest of the changed cells, in a backfill of the row's cells: maybe invented
    progress: bytes = b""  # of the last Checkpoint of an earlier run; empty: begin at the beginning
    hops: int = 0  # changes that led to this one through what functions yielded; 0: a client's


class Later(Exception):
    """Raised by a function: run it again after ``seconds``.  No attempt is counted; the row waits meanwhile."""

    def __init__(self, seconds: float) -> None:
        """ValueError: not between 0 and LONGEST_S."""
        if not 0 <= seconds <= self.LONGEST_S:
            raise ValueError(f"a change is put off by 0 to {self.LONGEST_S} s, not by {seconds}")
        super().__init__(seconds)
        self.seconds = float(seconds)

    LONGEST_S = 86_400


class RowNotAsked(Mapping[bytes, bytes]):
    """``Change.now`` of a trigger that is registered without the row; every look at it says so."""

    def _refuse(self) -> NoReturn:
        raise LookupError("change.now is not read for this trigger: register it with the row, or read it by a client")

    def __getitem__(self, _column: bytes) -> NoReturn:
        self._refuse()

    def __iter__(self) -> Iterator[bytes]:
        self._refuse()

    def __len__(self) -> int:
        self._refuse()


TriggerFunction = Callable[..., Any]  # (change) or (change, client); None, or an iterator of effects
