"""Changes of tables and namespaces by the Thrift 2 service, over ``master.alterations``.

A descriptor says what a family, or a table, is to be as a whole: what it leaves out has the default.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection
from typing import TYPE_CHECKING, Any

from columnar.errors import InvalidFamilyOperation, abbreviate
from columnar.model.alteration import TableChange
from columnar.model.attributes import whole
from columnar.model.schema import Family, checked_family_name
from columnar.operations.descriptions import Descriptions
from columnar.thrift2 import schema
from columnar.thrift2.translate import given

if TYPE_CHECKING:  # a server of a cluster has no master within
    from columnar.master.alterations import Alterations


class AlterationMethods2:
    def __init__(self, descriptions: Descriptions, alterations: Alterations) -> None:
        self._descriptions = descriptions
        self._alterations = alterations

    def truncateTable(self, _ctx: Any, name: Any, preserve_splits: bool | None) -> Awaitable[None]:
        """Truncate the table.  HBase requires it to be disabled first; we do not.  It is enabled then, as in HBase."""
        return _void(self._alterations.truncate(schema.table_name(name), bool(preserve_splits), enable=True))

    def addColumnFamily(self, _ctx: Any, name: Any, family: Any) -> Awaitable[None]:
        wanted, table = schema.family_from_wire(given(family, "column family")), schema.table_name(name)
        held = self._families_of(table)
        if wanted.name in held:
            raise InvalidFamilyOperation(f"table {abbreviate(table)} has a column family {wanted.name} already")
        return self._alterations.alter(table, TableChange(add=(wanted,)))

    def deleteColumnFamily(self, _ctx: Any, name: Any, family: bytes | None) -> Awaitable[None]:
        wanted, table = checked_family_name(given(family, "column family")), schema.table_name(name)
        held = self._families_of(table)
        _check_family_exists(wanted, table, held)
        if len(held) == 1:
            raise InvalidFamilyOperation(
                f"{wanted} is the only column family of table {abbreviate(table)}; drop the table"
            )
        return self._alterations.alter(table, TableChange(drop=frozenset({wanted})))

    def modifyColumnFamily(self, _ctx: Any, name: Any, family: Any) -> Awaitable[None]:
        wanted, table = schema.family_from_wire(given(family, "column family")), schema.table_name(name)
        held = self._families_of(table)
        _check_family_exists(wanted.name, table, held)
        return self._alterations.alter(table, TableChange(change={wanted.name: whole(wanted, held[wanted.name])}))

    def _families_of(self, table: bytes) -> dict[str, Family]:
        """The families that the table has; TableNotFound."""
        return {family.name: family for family in self._descriptions.known(table).schema.families}

    def modifyTable(self, _ctx: Any, descriptor: Any) -> Awaitable[None]:
        """Families that the descriptor does not name go, with their cells."""
        name, families, attributes = schema.table_from_wire(descriptor)
        held, known = self._descriptions.known(name).schema, self._families_of(name)
        change = TableChange(
            add=tuple(family for family in families if family.name not in known),
            change={family.name: whole(family, known[family.name]) for family in families if family.name in known},
            drop=frozenset(known.keys() - {family.name for family in families}),
            attributes={**dict.fromkeys(held.attributes, ""), **attributes},
        )
        return self._alterations.alter(name, change)

    # --- namespaces --------------------------------------------------------------------------------

    def createNamespace(self, _ctx: Any, descriptor: Any) -> Awaitable[None]:
        return self._alterations.create_namespace(*schema.namespace_from_wire(descriptor))

    def modifyNamespace(self, _ctx: Any, descriptor: Any) -> Awaitable[None]:
        """The configuration is the descriptor's from then on, as a whole."""
        name, configuration = schema.namespace_from_wire(descriptor)
        return self._alterations.alter_namespace(name, configuration, replace=True)

    def deleteNamespace(self, _ctx: Any, name: str | None) -> Awaitable[None]:
        return self._alterations.drop_namespace(given(name, "namespace").encode())


def _check_family_exists(family: str, table: bytes, held: Collection[str]) -> None:
    if family not in held:
        raise InvalidFamilyOperation(f"Column family {family} does not exist in table {abbreviate(table)}")


async def _void(waiting: Awaitable[object]) -> None:
    await waiting
