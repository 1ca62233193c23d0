"""happybase's API with Columnar's additions.

``Connection`` is a ``happybase.Connection``, so every program written for happybase runs with it unchanged.  The
additions are ``Table.check_and_mutate``, ``Table.transact`` (rows of a group as one step), ``Table.slice`` (a part of a
wide row), ``Connection.admin`` (``Admin``: create with attributes and split points, alter, truncate, regions,
namespaces), ``Connection.triggers``, ``Connection.views``, ``Connection.view`` (reads of a view),
``Connection.snapshots``, ``Connection.status``, and ``Connection.is_columnar``, which tells Columnar from a plain
HBase.
"""

from columnar.client.admin import (
    Admin,
    FamilyDescription,
    RegionAdmin,
    RegionStatus,
    TableDescription,
    hex_splits,
    uniform_splits,
)
from columnar.client.cluster import ClusterAdmin
from columnar.client.connection import Connection, ConnectionPool
from columnar.client.errors import (
    AlreadyExists,
    GroupConflict,
    IllegalArgument,
    IOError,
    LeaseLost,
    LeaseNotFree,
    NotColumnar,
    NotYet,
)
from columnar.client.row_operations import (
    Append,
    CheckResult,
    Contribute,
    Delete,
    Expect,
    Increment,
    Put,
    Send,
    puts,
)
from columnar.client.snapshots import Snapshot, Snapshots
from columnar.client.table import MemberCell, Table
from columnar.client.tls import ClientTls
from columnar.client.triggers import Triggers
from columnar.client.view_cells import Group, Member
from columnar.client.view_reader import ViewReader
from columnar.client.views import Views
from columnar.model.flow_status import ListedTrigger as TriggerStatus
from columnar.model.flow_status import ViewStatus
from columnar.model.trigger_registration import Registration
from columnar.model.view_definition import Source, View
from columnar.wire.dead_letter import DeadLetter

__all__ = [
    "Admin",
    "AlreadyExists",
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
    "Group",
    "GroupConflict",
    "IOError",
    "IllegalArgument",
    "Increment",
    "LeaseLost",
    "LeaseNotFree",
    "Member",
    "MemberCell",
    "NotColumnar",
    "NotYet",
    "Put",
    "RegionAdmin",
    "RegionStatus",
    "Registration",
    "Send",
    "Snapshot",
    "Snapshots",
    "Source",
    "Table",
    "TableDescription",
    "TriggerStatus",
    "Triggers",
    "View",
    "ViewReader",
    "ViewStatus",
    "Views",
    "hex_splits",
    "puts",
    "uniform_splits",
]
