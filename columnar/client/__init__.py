"""happybase's API, with what Columnar adds to it.

``Connection`` is a ``happybase.Connection``: every program written for happybase runs with it
unchanged.  What is new: ``Table.check_and_mutate``, ``Connection.create_table`` with attributes and
split points, ``Connection.triggers``, ``Connection.snapshots``,
``Connection.status``, and ``Connection.is_columnar``, which
says whether the other side is more than a plain HBase.
"""

from columnar.client.connection import Connection, ConnectionPool
from columnar.client.snapshots import Snapshot, Snapshots
from columnar.client.table import Append, CheckResult, Delete, Expect, Increment, Put, Table
from columnar.client.triggers import DeadLetter, Triggers, TriggerStatus

__all__ = [
    "Append",
    "CheckResult",
    "Connection",
    "ConnectionPool",
    "DeadLetter",
    "Delete",
    "Expect",
    "Increment",
    "Put",
    "Snapshot",
    "Snapshots",
    "Table",
    "TriggerStatus",
    "Triggers",
]
