"""Columns that name a row of another table (pure).

Three kinds of evidence, the strongest first:
    foreign key   the schema declares it
    join          queries compare a column with a key of another table
    name          ``page_tag`` names ``tag`` of ``pages``, ``rev_page`` and ``userid`` a row of ``page`` and ``users``

Most schemas of the LAMP age declare nothing, so the last two find most of the references.

Knows nothing of designs: ``rules`` decides what a reference becomes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from columnar.advise.schema import ColumnOf, Schema, Table, Workload, singular

# names that say nothing of their table
_GENERIC: Final = frozenset("id name key title type value time date status text user".split())  # noqa: SIM905
_ID: Final = "id"


@dataclass(frozen=True, slots=True)
class Reference:
    """``columns`` of ``table`` hold ``targets`` of a row of ``target``."""

    table: str
    columns: tuple[str, ...]
    target: str
    targets: tuple[str, ...]
    evidence: str


def column_prefix(table: Table) -> str:
    """Return the beginning up to a ``_`` that all columns have, as ``rev_``; empty if they have none."""
    names = [one.name.lower() for one in table.columns]
    head = names[0].partition("_")[0] + "_" if names else ""
    return head if len(names) > 1 and all(name.startswith(head) and name != head for name in names) else ""


def bare(table: Table, column: str) -> str:
    """Return a column's name without the prefix of its table's columns, in lower case."""
    return column.lower()[len(column_prefix(table)) :]


def references(schema: Schema, workload: Workload) -> tuple[Reference, ...]:
    """Return every reference, with its strongest evidence, in the order of the schema."""
    found: dict[tuple[str, tuple[str, ...]], Reference] = {}
    order = [table.name for table in schema.tables]
    named = sorted(_named(schema), key=lambda one: (order.index(one.table), order.index(one.target)))
    for one in (*_declared(schema), *_joined(schema, workload), *named):
        columns = set(one.columns)
        clash = [key for key in found if key[0] == one.table and columns & set(key[1])]
        if not clash:
            found[one.table, one.columns] = one
    return tuple(sorted(found.values(), key=lambda one: (order.index(one.table), one.columns)))


def _declared(schema: Schema) -> Iterator[Reference]:
    for table in schema.tables:
        for key in table.foreign_keys:
            target = schema.table(key.table)
            if target is None:
                continue
            targets = key.targets or next(iter(target.unique_keys), ())
            columns = [table.column(name) for name in key.columns]
            if len(targets) == len(columns) and all(columns):
                names = tuple(one.name for one in columns if one is not None)
                yield Reference(table.name, names, target.name, targets, "a foreign key")


def _is_key(table: Table, columns: frozenset[str]) -> bool:
    keys = [*table.unique_keys, table.natural_key]
    return any(frozenset(one) == columns for one in keys if one)


def _joined(schema: Schema, workload: Workload) -> Iterator[Reference]:
    counts: Counter[tuple[tuple[ColumnOf, ColumnOf], ...]] = Counter()
    for shape in workload.shapes:
        between: dict[frozenset[str], list[tuple[ColumnOf, ColumnOf]]] = {}
        for one, other in shape.query.joins:
            if one[0] and other[0]:
                between.setdefault(frozenset((one[0], other[0])), []).append(tuple(sorted((one, other))))  # type: ignore[arg-type]
        for found in between.values():
            counts[tuple(sorted(found))] += shape.count
    for pairs, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        directed = _direction(schema, pairs)
        if directed is not None:
            table, columns, target, targets = directed
            yield Reference(
                table, columns, target, targets, f"{count} {'query joins' if count == 1 else 'queries join'} them"
            )


def _direction(
    schema: Schema, pairs: tuple[tuple[ColumnOf, ColumnOf], ...]
) -> tuple[str, tuple[str, ...], str, tuple[str, ...]] | None:
    """Return the side that refers and the side that is a key; the longer name refers if both are keys."""
    sides = []
    for at in (0, 1):
        target = schema.table(pairs[0][at][0])
        targets = tuple(pair[at][1] for pair in pairs)
        columns = tuple(pair[1 - at][1] for pair in pairs)
        if target is not None and _is_key(target, frozenset(targets)):
            is_named_after = columns[0].lower().endswith(bare(target, targets[0]))
            is_automatic = target.automatic in targets
            sides.append(
                (
                    not is_automatic,
                    not is_named_after,
                    len(targets[0]),
                    pairs[0][1 - at][0],
                    columns,
                    target.name,
                    targets,
                )
            )
    if not sides:
        return None
    _, _, _, table, columns, target_name, targets = min(sides)
    return table, columns, target_name, targets


def _named(schema: Schema) -> Iterator[Reference]:
    columns = {table.name: [(bare(table, one.name), one.name) for one in table.columns] for table in schema.tables}
    for target in schema.tables:
        row = singular(schema.short(target.name)).lower()
        keys = [one[0] for one in (target.natural_key, (target.automatic,)) if len(one) == 1 and one[0]]
        for table in schema.tables:
            if target.name == table.name:
                continue
            yield from _named_together(table, target)
            for name, column in columns[table.name]:
                for key in keys:
                    if _is_named_after(name, row, bare(target, key)) and _is_alike(table, column, target, key):
                        yield Reference(table.name, (column,), target.name, (key,), "its name")
                        break


def _named_together(table: Table, target: Table) -> Iterator[Reference]:
    """A key of several columns, all of which the table has under the same bare names."""
    key = target.natural_key
    if len(key) < 2 or len(column_prefix(table)) == 0:
        return
    by_bare = {bare(table, one.name): one.name for one in table.columns}
    wanted = [bare(target, name) for name in key]
    if all(name in by_bare for name in wanted):
        yield Reference(table.name, tuple(by_bare[name] for name in wanted), target.name, key, "its names")


def _is_named_after(name: str, row: str, key: str) -> bool:
    """Whether a column of that name holds the key of a row of that name: ``page_tag`` of ``page`` and ``tag``."""
    if name in (row, f"{row}_{key}", f"{row}{key}", f"{row}_{_ID}", f"{row}{_ID}") or name.endswith(f"_{row}_{key}"):
        return True
    return key not in _GENERIC and name.endswith(f"_{key}")


def _is_alike(table: Table, column: str, target: Table, key: str) -> bool:
    return (table.kind_of(column) == "integer") == (target.kind_of(key) == "integer")


def link_ends(table: Table, found: tuple[Reference, ...]) -> tuple[Reference, Reference] | None:
    """Return the two references of a table that does little but join rows; None if it is no such table.

    Its unique key, or all its columns if it has none, are the two references; at most two further columns.
    """
    own = [one for one in found if one.table == table.name]
    names = {one.name for one in table.columns}
    keys = [frozenset(one) for one in table.unique_keys] or [frozenset(names)]
    for one, other in permutations(own, 2):
        both = frozenset(one.columns) | frozenset(other.columns)
        is_ordered = names_of(table).index(one.columns[0]) < names_of(table).index(other.columns[0])
        if is_ordered and both in keys and len(names - both) <= 2:
            return one, other
    return None


def names_of(table: Table) -> list[str]:
    return [one.name for one in table.columns]
