"""Triggers and commands of a design, as text to run (pure).

A function for each index table and for the second direction of each link, in the form of ``columnar.triggers.api``;
one ``columnar create`` for each table, one ``columnar view add`` for each view.  An index whose values are no cells of
the row gets a function with a line to fill in, marked ``TODO``.

Knows nothing of the page around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from columnar.advise.access import IndexTable, ViewOf
from columnar.advise.relations import bare
from columnar.advise.rules import META, Design, Placement, link_family, short_name

MARKERS_MS = 3_600_000  # of tables that triggers write into: a late retry brings nothing back
KEYS = "k"  # the family of an index table
IMPORTS = "from columnar.triggers.api import Change, Delete, Put, on"


@dataclass(frozen=True, slots=True)
class StoreTable:
    name: str
    families: tuple[str, ...]
    is_derived: bool  # a trigger writes into it
    placements: tuple[Placement, ...]  # of the schema's tables that are in its rows


def store_tables(design: Design) -> tuple[StoreTable, ...]:
    """Return the tables of the store that the schema's tables become, in the order of the schema."""
    found: dict[str, list[Placement]] = {}
    families: dict[str, dict[str, None]] = {}
    derived = set()
    for one in design.placements:
        if one.form == "unused":
            continue
        found.setdefault(one.table, []).append(one)
        own = families.setdefault(one.table, {})
        if one.form == "link":
            for at, end in enumerate(one.ends):
                name = short_name(design.schema, end.target)
                family = link_family(design.sql(one.sql), one.ends[1 - at], one.family)
                families.setdefault(name, {})[family] = None
                derived |= {name} if at else set()
            continue
        own.update(dict.fromkeys(one.families or ((one.family,) if one.family else (META,))))
        if one.form == "versions":
            own.setdefault(META)
    return tuple(
        StoreTable(name, tuple(sorted(families[name], key=lambda f: (f != META, list(families[name]).index(f)))),
                   name in derived, tuple(placed))
        for name, placed in found.items()
    )  # fmt: skip


def commands(design: Design, indexes: Sequence[IndexTable], views: Sequence[ViewOf]) -> list[str]:
    """Return the commands that make the tables, the index tables and the views."""
    marked = f" --attribute DELETE_MARKERS={MARKERS_MS}"
    found = [
        f"columnar create {one.name} {' '.join(one.families)}{marked if one.is_derived else ''}"
        for one in store_tables(design)
    ]
    found += [f"columnar create {one.name} {KEYS}{marked}" for one in indexes]
    return found + [_view_command(design, one) for one in views]


def _view_command(design: Design, view: ViewOf) -> str:
    placement = design.placement(view.sql)
    keys = [_view_key(placement, column) for column in view.by] or ["'all'"]
    by = " ".join(f'--by "{key}"' for key in keys)
    sums = "".join(f" --sum {column}={placement.cell_of(column)}" for column in view.sums if placement.cell_of(column))
    families = "" if view.by or view.sums else f" --families {placement.families[0] if placement.families else META}"
    return f"columnar view add {view.name} --from {placement.table} {by}{sums}{families}"


def _view_key(placement: Placement, column: str) -> str:
    cell = placement.cell_of(column)
    if cell:
        return cell
    return (
        "row" if len(placement.key) + len(placement.member) == 1 else f"row.split('/', {placement.key.index(column)})"
    )


# --- triggers ------------------------------------------------------------------------------------


def functions(design: Design, indexes: Iterable[IndexTable]) -> list[str]:
    """Return the functions that keep the second directions of links and the index tables."""
    found = [_link_function(design, one) for one in design.placements if one.form == "link"]
    return [*found, *(_index_function(design, one) for one in indexes)]


def _link_function(design: Design, placement: Placement) -> str:
    one, other = placement.ends
    source, target = short_name(design.schema, one.target), short_name(design.schema, other.target)
    forth = link_family(design.sql(placement.sql), other, placement.family)
    back = link_family(design.sql(placement.sql), one, placement.family)
    return f'''\
@on("{source}", columns=["{forth}"], before=True, writes=["{target}/{back}"])
def {target}_{back}(change: Change):
    for key in change.gone(b"{forth}:"):
        yield Delete("{target}", key, [b"{back}:" + change.row])
    for key in change.came(b"{forth}:"):
        yield Put("{target}", key, {{b"{back}:" + change.row: b"1"}})'''


def _index_function(design: Design, index: IndexTable) -> str:
    placement = design.placement(index.sql)
    columns = (*index.equal, *index.order)
    if placement.form == "columns":
        return _members_function(design, index, placement, columns)
    if placement.form == "link":
        return _to_fill_in(index, placement)
    cells = [placement.cell_of(column) for column in columns]
    if len(columns) == 1 and cells[0] and index.equal:
        return _simple_function(index, placement.table, cells[0])
    parts = [_value_of(placement, column) for column in columns]
    if "" in parts:
        return _to_fill_in(index, placement)
    begin, cell, value = 'b"/".join([*values, row])', f'b"{KEYS}:key"', "change.row"
    if not index.order:
        begin, cell, value = 'b"/".join(values)', f'b"{KEYS}:" + change.row', 'b""'
    watched = list(dict.fromkeys(cell for cell in cells if cell)) or list(placement.families[:1])
    return f'''\
def _{index.name}(row: bytes, cells):
    values = [{", ".join(parts)}]
    return None if not cells or None in values else {begin}


@on("{placement.table}", columns={_listed(watched)}, before=True, writes=["{index.name}"])
def {index.name}(change: Change):
    old, new = (_{index.name}(change.row, cells) for cells in (change.before, change.after))
    if old is not None and old != new:
        yield Delete("{index.name}", old, [{cell}])
    if new is not None:
        yield Put("{index.name}", new, {{{cell}: {value}}})'''


def _value_of(placement: Placement, column: str) -> str:
    """The expression of a column's value in a function that has ``row`` and ``cells``."""
    cell = placement.cell_of(column)
    if cell:
        return f'cells.get(b"{cell}")'
    if column in placement.member:
        return f'row.rsplit(b"/", {len(placement.member)})[{placement.member.index(column) + 1}]'
    if column not in placement.key or placement.is_hashed or placement.form == "under":
        return ""
    if placement.member:
        return f'row.rsplit(b"/", {len(placement.member)})[0]' if len(placement.key) == 1 else ""
    last = len(placement.key) - 1
    return f'row.split(b"/", {last})[{placement.key.index(column)}]' if last else "row"


def _simple_function(index: IndexTable, table: str, cell: str) -> str:
    return f'''\
@on("{table}", columns=["{cell}"], before=True, writes=["{index.name}"])
def {index.name}(change: Change):
    for value in change.gone("{cell}"):
        yield Delete("{index.name}", value, [b"{KEYS}:" + change.row])
    for value in change.came("{cell}"):
        yield Put("{index.name}", value, {{b"{KEYS}:" + change.row: b""}})'''


def _members_function(design: Design, index: IndexTable, placement: Placement, columns: tuple[str, ...]) -> str:
    """Return a function that makes an entry of each cell ``comment:<time>-<user>``, by what is asked for."""
    family, names = placement.family, placement.member
    if not set(columns) <= set(names):
        return _to_fill_in(index, placement)
    sql = design.sql(index.sql)
    pattern = "-".join(f"<{bare(sql, one)}>" for one in names)
    chosen = ", ".join(f"parts[{names.index(one)}]" for one in columns)
    return f'''\
def _{index.name}(name: bytes, row: bytes) -> bytes:
    parts = name.split(b"-", {len(names) - 1})  # {pattern}: only the last part may have a "-"
    return b"/".join([{chosen}, row, name]) if len(parts) == {len(names)} else b""


@on("{placement.table}", columns=["{family}"], before=True, writes=["{index.name}"])
def {index.name}(change: Change):
    for name in change.gone(b"{family}:"):
        if row := _{index.name}(name, change.row):
            yield Delete("{index.name}", row, [b"{KEYS}:key"])
    for name in change.came(b"{family}:"):
        if row := _{index.name}(name, change.row):
            yield Put("{index.name}", row, {{b"{KEYS}:key": change.row}})'''


def _to_fill_in(index: IndexTable, placement: Placement) -> str:
    columns = ", ".join((*index.equal, *index.order))
    family = placement.family or (placement.families[0] if placement.families else META)
    return f'''\
def _{index.name}(row: bytes, cells):
    return []  # TODO: a bytes value for each {columns} in `cells`, which have the columns of {family}


@on("{placement.table}", columns=["{family}"], before=True, writes=["{index.name}"])
def {index.name}(change: Change):
    old, new = (set(_{index.name}(change.row, cells)) for cells in (change.before, change.after))
    for value in sorted(old - new):
        yield Delete("{index.name}", value, [b"{KEYS}:" + change.row])
    for value in sorted(new):
        yield Put("{index.name}", value, {{b"{KEYS}:" + change.row: b""}})'''


def _listed(names: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{one}"' for one in names) + "]"
