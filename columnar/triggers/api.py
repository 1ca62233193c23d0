"""What authors of triggers import.

A trigger is ``def f(change: Change, client: Connection) -> None``, at the top level of a module that
the operator allowed with ``--trigger-modules``.  It runs in a worker process, at least once for each
durable change of the families it is registered on; the changes of one row come in order, different
rows side by side.

To end in the same tables however often and however late it runs, a trigger
    * writes only cells whose qualifier (or row) names their source,
    * stamps all that it writes and deletes with ``change.timestamp``,
    * writes into tables with the attribute DELETE_MARKERS.
``change.timestamp`` is given by the store and rises with each change of a row.  The timestamps that a client
gave its cells do not: they stand at each of ``change.changes``, the highest in ``change.client_timestamp``.
Where clients give timestamps a change may leave the row as it was (a put that is older than what stands there,
a delete of what is newer), so such a trigger derives from ``change.now``, not from the steps.
A function that raises is run again after a pause, and after its last attempt the change is put into
the table ``columnar:dead_letters``.  What it prints is kept with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from columnar.client import Connection


@dataclass(frozen=True, slots=True)
class ChangedCell:
    """One step of the mutation.  Increments and appends show as the put they amounted to."""

    kind: Literal["put", "delete", "delete family", "delete version"]
    column: bytes  # ``family:qualifier``; the bare family for "delete family"
    timestamp: int  # milliseconds; deletes cover what stands at or below it, "delete version" exactly it
    value: bytes = b""


@dataclass(frozen=True, slots=True)
class Change:
    table: bytes
    row: bytes
    timestamp: int  # milliseconds by the store; rises strictly with each change of a row: for all that is derived
    sequence: str  # opaque; names the change for ever
    changes: tuple[ChangedCell, ...]  # in their order; empty in a backfill or a retry of a dead letter
    now: Mapping[bytes, bytes]  # the row's cells in the trigger's families as they are now: maybe newer
    before: Mapping[bytes, bytes] = field(default_factory=dict)  # touched cells as they were, where asked for
    attempt: int = 1
    is_backfill: bool = False  # the row was there before the trigger, or is retried from the dead letters
    client_timestamp: int = 0  # the highest of the changed cells, in a backfill of the row's: maybe invented


TriggerFunction = Callable[[Change, Connection], None]
