"""Tables of an older wiki get the families that this one has beside theirs; what is in them stays as it is.

A Columnar adds them while the table serves.  Thrift has no call for that on a plain HBase: there its administrator has
to do it, and the message says how.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from columnar.client import Connection
from columnar.errors import CallerError
from wikka_port.schema import TableSpec


class FamiliesMissing(CallerError):
    """A plain HBase has a table of an older wiki."""

    def __init__(self, table: bytes, families: Sequence[str]) -> None:
        commands = "; ".join(f"alter '{table.decode()}', NAME => '{family}', VERSIONS => 1" for family in families)
        super().__init__(f"The table {table.decode()} is that of an older wiki. In hbase shell, enter: {commands}")


def add_missing_families(connection: Connection, tables: Iterable[TableSpec]) -> None:
    """Changes nothing if there is none missing.  Raises FamiliesMissing."""
    for table in tables:
        present = {name.rstrip(b":").decode() for name in connection.table(table.name).families()}
        missing = {name: given for name, given in table.families.items() if name not in present}
        if missing and not connection.is_columnar:
            raise FamiliesMissing(table.name, sorted(missing))
        if missing:
            connection.admin.alter_table(table.name, add=missing)
