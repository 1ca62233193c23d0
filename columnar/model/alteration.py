"""(pure) A change of a table's schema as one value, and the table after it.

Knows nothing of the checks of a change (``columnar.master.alterations``) and of its execution by
regions (``columnar.regions.region``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from columnar.errors import IllegalArgument, NoSuchColumnFamily
from columnar.model.attributes import merged_attributes, with_attributes
from columnar.model.schema import Family, Table, checked_family, checked_table


@dataclass(frozen=True, slots=True)
class TableChange:
    """An atomic change: families that are added, changed and dropped, and attributes of the table."""

    add: tuple[Family, ...] = ()
    change: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # family -> attribute -> text, "": default
    drop: frozenset[str] = frozenset()
    attributes: Mapping[str, str] = field(default_factory=dict)  # "": no longer set


def altered(table: Table, change: TableChange) -> Table:
    """The table after the change.  IllegalArgument, NoSuchColumnFamily: what cannot be."""
    held = {family.name: family for family in table.families}
    for name in (*change.drop, *change.change):
        if name not in held:
            raise NoSuchColumnFamily(name.encode("latin-1"), table.name)
    both = sorted(change.drop & change.change.keys())
    if both:
        raise IllegalArgument(f"family {both[0]} is to be changed and dropped at once")
    for name, given in change.change.items():
        held[name] = with_attributes(held[name], given)
    for name in change.drop:
        del held[name]
    number = table.number_to_give
    for family in change.add:
        if family.name in held:
            raise IllegalArgument(f"table {table.name} has a column family {family.name} already")
        held[family.name] = replace(checked_family(family), number=number, added=True)
        number += 1
    if not held:
        raise IllegalArgument(f"table {table.name} would be left without a column family; drop the table instead")
    families = tuple(sorted(held.values(), key=lambda family: family.bytes_name))
    next_number = number if change.drop or change.add else table.next_number
    return checked_table(
        replace(
            table,
            families=families,
            attributes=merged_attributes(table.attributes, change.attributes),
            next_number=next_number,
        )
    )


def expiry_changes(before: Table, after: Table) -> list[str]:
    """Return the families of both in which cells may expire or reappear by the change, without a trigger's notice."""
    held = {family.name: family for family in before.families}
    return [
        family.name
        for family in after.families
        if family.name in held
        and (family.ttl_s, family.min_versions) != (held[family.name].ttl_s, held[family.name].min_versions)
    ]
