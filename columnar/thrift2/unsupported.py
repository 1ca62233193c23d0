"""What the Thrift 2 service has and the store behind it has not yet: one declared error each, nothing changed.

A method moves from here to ``tables`` once there is an operation for it.
"""

from __future__ import annotations

from typing import Any, NoReturn

from columnar.errors import CallerError


class Unsupported(CallerError):
    hbase_class = "UnsupportedOperationException"


def _not_here(what: str, instead: str) -> NoReturn:
    raise Unsupported(f"this store cannot {what}; {instead}")


class UnsupportedMethods:
    def truncateTable(self, _ctx: Any, _name: Any, _preserve_splits: bool) -> None:
        _not_here("truncate a table", "drop it and create it anew")

    def addColumnFamily(self, _ctx: Any, _name: Any, _family: Any) -> None:
        _not_here("change a table's families", "create another table and copy the rows")

    def deleteColumnFamily(self, _ctx: Any, _name: Any, _family: Any) -> None:
        _not_here("change a table's families", "delete the family's cells")

    def modifyColumnFamily(self, _ctx: Any, _name: Any, _family: Any) -> None:
        _not_here("change a table's families", "create another table and copy the rows")

    def modifyTable(self, _ctx: Any, _descriptor: Any) -> None:
        _not_here("change a table's attributes", "create another table and copy the rows")

    def createNamespace(self, _ctx: Any, _descriptor: Any) -> None:
        _not_here("make namespaces", "use names with a prefix")

    def modifyNamespace(self, _ctx: Any, _descriptor: Any) -> None:
        _not_here("change namespaces", "use names with a prefix")

    def deleteNamespace(self, _ctx: Any, _name: str) -> None:
        _not_here("remove namespaces", "there are only its own")
