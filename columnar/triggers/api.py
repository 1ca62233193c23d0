"""The module that authors of triggers import.

A trigger is ``def f(change: Change, client: Connection) -> None``, at the top level of a module that
the operator allowed with ``--trigger-modules``.  It runs in a worker process, at least once for each
durable change of the families it is registered on.  The changes of a row are delivered in order, changes of different
rows in parallel.

To lead to the same tables however often and however late it runs, a trigger
    * writes only cells whose qualifier (or row) names their source,
    * stamps all its puts and deletes with ``change.timestamp``,
    * writes into tables with the attribute DELETE_MARKERS.

The store gives ``change.timestamp``, which rises with each change of a row.  Timestamps that a client gave its cells
need not rise: each of ``change.changes`` has its own, and ``change.client_timestamp`` is the highest.  With timestamps
from clients a change may leave the row as it was (a put older than the present cell, a delete older than the present
cell), so such a trigger derives from ``change.now``, not from the steps.

A function that raises is run again after a pause.  After its last attempt the change is put into the table
``columnar:dead_letters``, together with the function's output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from columnar.client import Connection


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


TriggerFunction = Callable[[Change, Connection], None]
