"""Triggers and commands of a design, as text to run (pure).

A function for each index table and for the second direction of each link, in the form of ``columnar.triggers.api``;
one ``columnar create`` for each table, one ``columnar view add`` for each view.  An index whose values are no cells of
the row gets a function with a line to fill in, marked ``TODO``.

Knows nothing of the page around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from columnar.advise.access import NUMERIC, IndexTable, ViewOf
from columnar.advise.relations import bare
from columnar.advise.rules import META, Design, Placement, link_family, short_name

MARKERS_MS = 3_600_000  # of tables that triggers write into: a late retry brings nothing back
KEYS = "k"  # the family of an index table
# what a key has of a number that is asked for by range or order: bytes that sort as the numbers do
_ORDERED = {
    "integer": '''\
def ordered(value: bytes | None) -> bytes | None:
    """Return a whole number as 20 digits that sort as numbers do, also below 0: the number plus 2**63."""
    try:
        return None if value is None else b"%020d" % (int(value) + 2**63)
    except ValueError:
        return None  # no number: in no index''',
    "number": '''\
def ordered_decimal(value: bytes | None, places: int) -> bytes | None:
    """Return a decimal as 39 digits that sort as numbers do, also below 0: without its point, plus 10**38."""
    try:
        return None if value is None else b"%039d" % (int(Decimal(value.decode()).scaleb(places)) + 10**38)
    except (ArithmeticError, ValueError):
        return None  # no number: in no index''',
    "float": '''\
def ordered_float(value: bytes | None) -> bytes | None:
    """Return a float as 16 digits of base 16 that sort as numbers do: its bits, the sign flipped, all if below 0."""
    try:
        bits = int.from_bytes(struct.pack(">d", float(value or b"nan") + 0.0), "big")
    except ValueError:
        return None  # no number: in no index
    return None if not value else b"%016x" % (bits ^ (2**64 - 1 if bits >> 63 else 2**63))''',
    "counter": '''\
def ordered_counter(value: bytes | None) -> bytes | None:
    """Return a counter of 8 bytes as ``ordered`` does a number in text."""
    return None if value is None else b"%020d" % (int.from_bytes(value, "big", signed=True) + 2**63)''',
}
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


def merged_views(views: Iterable[ViewOf]) -> tuple[ViewOf, ...]:
    """Return each view once, with the sums and averages of all that have its name; a view comes after its source."""
    found: dict[str, ViewOf] = {}
    for one in views:
        other = found.get(one.name, one)
        found[one.name] = replace(
            one, sums=tuple(sorted({*one.sums, *other.sums})), averages=tuple(sorted({*one.averages, *other.averages}))
        )
    return tuple(sorted(found.values(), key=lambda one: bool(one.source)))


def _view_command(design: Design, view: ViewOf) -> str:
    if view.source:
        keys = [f"key[{at}]" for at in view.keys] or ["'all'"]
        by = " ".join(f'--by "{key}"' for key in keys)
        return f"columnar view add {view.name} --from {view.source} {by} --order v:{view.order}:desc"
    placement = design.placement(view.sql)
    keys = [_view_key(placement, column) for column in view.by] or ["'all'"]
    options = [f'--by "{key}"' for key in keys]
    cells = {one: placement.cell_of(one) for one in (*view.filled, view.counted, view.ends) if one}
    options += [f"--where '{cell} exists'" for cell in dict.fromkeys(cells.values())]
    options += [f"--where '{placement.cell_of(one)} absent'" for one in view.absent]
    options += [f'--sum "{one}={_number_of(design, view.sql, one)}"' for one in view.sums]
    options += [f'--avg "{one}={_number_of(design, view.sql, one)}"' for one in view.averages]
    if view.ends:
        is_number = design.sql(view.sql).kind_of(view.ends) in NUMERIC
        cell = _number_of(design, view.sql, view.ends) if is_number else f"text({cells[view.ends]})"
        options.append(f'--order "{cell}"')
    if not cells and not any(placement.cell_of(one) for one in view.by):  # else rows without a named cell do not count
        options += [f"--families {one}" for one in _families_of_rows(placement)]
    return f"columnar view add {view.name} --from {placement.table} {' '.join(options)}"


def _families_of_rows(placement: Placement) -> list[str]:
    """Return the families of which every row has a cell in one at least."""
    if placement.form == "versions":
        return [META]  # meta:versioncount
    return list(placement.families) or [placement.family or META]


def _number_of(design: Design, table: str, column: str) -> str:
    """Return the name of a cell with a number, as views read it: a counter, or text with so many places."""
    cell, places = design.placement(table).cell_of(column), design.sql(table).places_of(column)
    if is_counter(design, table, column):
        return f"counter({cell})"
    return f"decimal({cell}, {places})" if places else cell


def is_counter(design: Design, table: str, column: str) -> bool:
    """Whether statements add to a column, so that its cells are counters of 8 bytes."""
    return any(column in one.query.counters and one.query.tables[:1] == (table,) for one in design.workload.shapes)


def _view_key(placement: Placement, column: str) -> str:
    cell = placement.cell_of(column)
    if cell:
        return cell
    if placement.form == "family" or (placement.is_hashed and not placement.member):
        return "row"
    if len(placement.key) + len(placement.member) == 1:
        return "row"
    return f"row.split('/', {(*placement.key, *placement.member).index(column)})"


# --- triggers ------------------------------------------------------------------------------------


def functions(design: Design, indexes: Iterable[IndexTable]) -> list[str]:
    """Return the functions that keep the second directions of links and the index tables, after those they call."""
    found = [_link_function(design, one) for one in design.placements if one.form == "link"]
    found += [_index_function(design, one) for one in indexes]
    text = "\n".join(found)
    called = [code for code in _ORDERED.values() if f"{code[4 : code.index('(')]}(" in text]
    return [*called, *found]


def imports(code: Iterable[str]) -> str:
    """Return the imports of the functions."""
    text = "\n".join(code)
    needed = [
        line
        for word, line in (("struct.", "import struct"), ("Decimal(", "from decimal import Decimal"))
        if word in text
    ]
    return "\n".join([*needed, ""] if needed else []) + ("\n" if needed else "") + IMPORTS


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
    parts = [_value_of(placement, column) for column in index.equal]
    parts += [_ordered_value_of(design, placement, column) for column in index.order]
    if "" in parts:
        return _to_fill_in(index, placement)
    begin, cell, value = 'b"/".join([*values, row])', f'b"{KEYS}:key"', "change.row"
    if not index.order:
        begin, cell, value = 'b"/".join(values)', f'b"{KEYS}:" + change.row', 'b""'
    watched = list(dict.fromkeys(cell for cell in cells if cell)) or _families_of_rows(placement)
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


def _ordered_value_of(design: Design, placement: Placement, column: str) -> str:
    """The same of a value whose bytes sort as the values do."""
    value, kind = _value_of(placement, column), design.sql(placement.sql).kind_of(column)
    if not value or kind not in NUMERIC or not placement.cell_of(column):
        return value  # a part of a key is in this form already
    if is_counter(design, placement.sql, column):
        return f"ordered_counter({value})"
    if kind == "number":
        return f"ordered_decimal({value}, {design.sql(placement.sql).places_of(column)})"
    return f"{'ordered_float' if kind == 'float' else 'ordered'}({value})"


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
    sql = design.sql(index.sql)
    if not set(columns) <= set(names) or any(sql.kind_of(one) in ("number", "float") for one in index.order):
        return _to_fill_in(index, placement)
    pattern = "-".join(f"<{bare(sql, one)}>" for one in names)
    values = {one: f"parts[{names.index(one)}]" for one in columns}
    values |= {one: f'ordered({values[one]}) or b""' for one in index.order if sql.kind_of(one) in NUMERIC}
    chosen = ", ".join(values.values())
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
    form = f" ({', '.join(index.order)}: bytes that sort as the values do, then / and the row)" if index.order else ""
    return f'''\
def _{index.name}(row: bytes, cells):
    # TODO: a bytes value for each {columns}{form}
    return []  # of `cells`, which have the columns of {family}


@on("{placement.table}", columns=["{family}"], before=True, writes=["{index.name}"])
def {index.name}(change: Change):
    old, new = (set(_{index.name}(change.row, cells)) for cells in (change.before, change.after))
    for value in sorted(old - new):
        yield Delete("{index.name}", value, [b"{KEYS}:" + change.row])
    for value in sorted(new):
        yield Put("{index.name}", value, {{b"{KEYS}:" + change.row: b""}})'''


def _listed(names: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{one}"' for one in names) + "]"
