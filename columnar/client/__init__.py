"""happybase's API, with what Columnar adds to it.

``Connection`` is a ``happybase.Connection``: every program written for happybase runs with it
unchanged.  What is new: ``Table.check_and_mutate``, ``Connection.admin`` (``Admin``: create with
attributes and split points, alter, truncate, regions, namespaces), ``Connection.triggers``, ``Connection.snapshots``,
``Connection.status``, and ``Connection.is_columnar``, which says whether the other side is more than
a plain HBase.
"""

from columnar.client.admin import Admin, FamilyDescription, RegionStatus, TableDescription
from columnar.client.cluster import ClusterAdmin
from columnar.client.connection import Connection, ConnectionPool
from columnar.client.regions import RegionAdmin
from columnar.client.snapshots import Snapshot, Snapshots
from columnar.client.table import (
    Append,
    CheckResult,
    Contribute,
    Delete,
    Expect,
    Increment,
    MemberCell,
    Put,
    Table,
)
from columnar.client.tls import ClientTls
from columnar.client.triggers import DeadLetter, Triggers, TriggerStatus
from columnar.model.presplit import hex_splits, uniform_splits

__all__ = [
    "Admin",
    "Append",
    "CheckResult",
    "ClientTls",
    "ClusterAdmin",
    "Connection",
    "ConnectionPool",
    "Contribute",
    "DeadLetter",
    "Delete",
    "Expect",
    "FamilyDescription",
    "Increment",
    "MemberCell",
    "Put",
    "RegionAdmin",
    "RegionStatus",
    "Snapshot",
    "Snapshots",
    "Table",
    "TableDescription",
    "TriggerStatus",
    "Triggers",
    "hex_splits",
    "uniform_splits",
]
