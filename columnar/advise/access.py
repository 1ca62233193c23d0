"""How the rows of one table of a query are found (pure): rules R6 and R8 of the thesis's section 7.

    R6  each other access path: an index table kept by a trigger
    R8  order: a scan (reversed for descending), or "sort in the program"

Rows are in the order of their keys' bytes.  So a number that a query asks for by range or order stands in a key as
``ordered(n)``, text whose bytes sort as the numbers do; ``functions`` prints that function.

Invariant A3: a path says which conditions it serves (``used``); all others are for a filter, and an answer names them.

Knows nothing of joins, of totals and of the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from columnar.advise.relations import Reference, bare
from columnar.advise.rules import Design, Placement, link_family, short_name
from columnar.advise.schema import ColumnOf, Query, Shape, Total

Served = Literal["yes", "program", "no", "nothing"]

ROW, CELL, PREFIX, INDEX, ORDERED, ALL = range(6)  # ranks of paths, the best first
_MANY: Final = "rows, one get for all keys"
NUMERIC: Final = ("integer", "number", "float")


@dataclass(frozen=True, slots=True)
class IndexTable:
    """Rows of ``name``: values of ``equal`` (and ``order``) to the keys of ``sql``'s rows."""

    name: str
    sql: str
    equal: tuple[str, ...]
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ViewOf:
    """A view over the rows of ``sql``: groups by columns, with totals.

    ``source``, if it is not empty, is a view whose groups this one orders, by ``order``; ``keys`` are parts of the
    source's key that make the group.
    """

    name: str
    sql: str
    by: tuple[str, ...]
    sums: tuple[str, ...] = ()
    averages: tuple[str, ...] = ()
    counted: str = ""  # the column whose values it counts, if it does not count rows
    filled: tuple[str, ...] = ()  # columns that a row must have to be in a group
    absent: tuple[str, ...] = ()  # columns that it must not have
    ends: str = ""  # the column whose lowest and highest value each group has
    source: str = ""
    keys: tuple[int, ...] = ()
    order: str = ""

    def gives(self, total: Total, *, is_always_filled: bool) -> bool:
        """Whether the groups have this total."""
        column = total.column[1]
        if total.kind == "count":
            is_row = column == "*" or is_always_filled
            return column == self.counted if self.counted else is_row and not self.ends
        if total.kind in ("min", "max"):
            return bool(column) and column == self.ends
        if total.kind == "distinct":
            return column in self.by
        return column in {"sum": self.sums, "avg": self.averages}.get(total.kind, ())


@dataclass(frozen=True, slots=True)
class Path:
    """How the rows of one table of a query are found."""

    rank: int
    sql: str
    call: str
    rules: tuple[str, ...]
    index: IndexTable | None = None
    is_sorted: bool = False
    used: tuple[str, ...] = ()  # columns of conditions that the call serves
    key: str = ""  # of the row, if the path is a get
    is_many: bool = False  # the get is of several rows
    is_carried: bool = False  # the store has no such id: the program carries the row's key in its place
    end: str = ""  # the column whose lowest or highest value the first row has


@dataclass(frozen=True, slots=True)
class Answer:
    shape: Shape
    served: Served
    call: str
    rules: tuple[str, ...] = ()
    indexes: tuple[IndexTable, ...] = ()
    views: tuple[ViewOf, ...] = ()
    question: str = ""
    paths: tuple[Path, ...] = ()


# --- keys ----------------------------------------------------------------------------------------


def is_ordered(design: Design, table: str, column: str) -> bool:
    """Whether a number is in keys as ``ordered(n)``: a query asks for a range of it, or for its order."""
    if design.sql(table).kind_of(column) not in NUMERIC:
        return False
    shapes = [part for one in design.workload.of_table(table) for part in (one.query, *one.query.parts)]
    return not design.workload.is_given or any(
        (table, column) in query.order
        or any(one.column == (table, column) and one.test == "range" for one in query.tested)
        or any(one.column == (table, column) and one.kind in ("min", "max") for one in query.totals)
        for query in shapes
    )


def part(design: Design, table: str, column: str) -> str:
    """Return a column as a part of a key."""
    return f"ordered({column})" if is_ordered(design, table, column) else column


def row_key(design: Design, placement: Placement) -> str:
    """Return the key of a row, as a program makes it: ``md5(tag)``; ``<key of page>`` if an id stood for that row."""
    if placement.parent and placement.form != "link":
        reference = next(one for one in design.references_of(placement.sql) if one.columns == placement.key)
        return end_key(design, reference)
    parts = placement.key if placement.is_hashed else [part(design, placement.sql, one) for one in placement.key]
    return _made_of(parts, is_hashed=placement.is_hashed)


def member_tail(design: Design, placement: Placement) -> str:
    """Return the end of the key of a row, behind its parent's key or behind what several rows share."""
    return "".join(f"/{part(design, placement.sql, one)}" for one in placement.member)


def end_key(design: Design, reference: Reference) -> str:
    """Return the key of the row that a reference names."""
    target = design.placement(reference.target)
    if target.key != reference.targets or target.member:
        return f"<key of {target.table}>"
    if target.is_hashed:
        return _made_of(reference.columns, is_hashed=True)
    pairs = zip(reference.columns, reference.targets, strict=True)
    return "/".join(f"ordered({one})" if is_ordered(design, target.sql, key) else one for one, key in pairs)


def _made_of(columns: Sequence[str], *, is_hashed: bool) -> str:
    return f"md5({', '.join(columns)})" if is_hashed else "/".join(columns)


# --- paths ---------------------------------------------------------------------------------------


def best_path(design: Design, query: Query) -> Path:
    """Return the path to the table that drives the query."""
    paths = [path_to(design, query, table) for table in query.tables]
    return min(enumerate(paths), key=lambda one: (one[1].rank, one[0]))[1]


def path_to(design: Design, query: Query, table: str) -> Path:
    """Return how the rows of one table of the query are found."""
    placement = design.placement(table)
    equal = set(query.equal_columns(table))
    if placement.form == "link":
        return _path_to_link(design, placement, query, equal)
    if placement.form in ("family", "columns"):
        return _path_to_cells(design, placement, query, equal)
    return _path_to_rows(design, placement, query, equal)


def _path_to_rows(design: Design, placement: Placement, query: Query, equal: set[str]) -> Path:
    table, name, sql = placement.sql, placement.table, design.sql(placement.sql)
    whole = (*placement.key, *placement.member)
    if placement.key and set(placement.key) <= equal:
        return _path_by_key(design, placement, query, equal)
    if sql.automatic and sql.automatic in equal and sql.automatic not in whole:
        number = " and the version's number" if placement.form == "versions" else ""
        key = row_key(design, placement) + member_tail(design, placement)
        call = f"{name}: no row has {sql.automatic}: the program carries {key}{number} in its place, then a get"
        return Path(ROW, table, call, ("R1",), used=(sql.automatic,), key=key, is_carried=True)
    ranged = _ranged(design, query, table)
    first = placement.key[0] if placement.key else ""
    flags = {one.name for one in sql.columns if one.kind == "flag"}
    if not placement.is_hashed and placement.form == "rows":
        if first in equal:
            return _by_prefix(design, placement, query, equal, "", placement.rule)
        is_in_order = order_of(query, table)[:1] == (first,) and is_in_key_order(query, table, whole)
        if (first in ranged or is_in_order) and equal <= flags:
            end = part(design, table, first)
            of = f"from and to a value of {end}" if first in ranged else f"in the order of {first}"
            is_sorted = not query.order or is_in_key_order(query, table, whole)
            call = f"{name}: {_scan_words(query, of, is_sorted=is_sorted)}"
            return Path(PREFIX, table, call, ("R8",), None, is_sorted, (first,) if first in ranged else ())
    values = _named_by(design, placement, query)
    order = order_of(query, table) if query.is_limited else ()
    order = order if all(sql.kind_of(one) != "large" for one in order) else ()
    kept = tuple(one for one in ranged if one != placement.flag)
    if values or (kept and kept[0] != first) or order:
        return by_index(design, placement, values, order or kept[:1], query)
    if query.is_limited and not (query.order or query.tested or query.sorting.totals or query.totals or query.joins):
        return Path(PREFIX, table, f"{name}: scan of all rows{_limit(query)}", ("R8",))
    columns = _columns_read(placement, query)
    return Path(ALL, table, f"{name}: scan of all rows{columns}", ("R8",))


def _named_by(design: Design, placement: Placement, query: Query) -> tuple[str, ...]:
    """The columns of an index by equality: a unique key, if the query has one, else all that it compares."""
    values = tuple(one for one in query.equal_columns(placement.sql) if one != placement.flag)
    unique = [key for key in design.sql(placement.sql).unique_keys if set(key) <= set(values)]
    return min(unique, key=len) if unique else values


def _ranged(design: Design, query: Query, table: str) -> tuple[str, ...]:
    """The columns of which a query wants a range that is one of their keys, too."""
    sql = design.sql(table)
    begun = [one for one in query.columns_with(table, frozenset({"prefix"})) if sql.kind_of(one) not in NUMERIC]
    found = dict.fromkeys([*query.columns_with(table, frozenset({"range"})), *begun])
    return tuple(one for one in found if sql.kind_of(one) != "large")


def order_of(query: Query, table: str) -> tuple[str, ...]:
    """The order of a query, if it is of this table's columns and all rise or all fall, as rows in a scan do."""
    if query.sorting.is_mixed or query.sorting.totals or any(of != table for of, _ in query.order):
        return ()
    return tuple(column for _, column in query.order)


def is_in_key_order(query: Query, table: str, rest: Sequence[str]) -> bool:
    """Whether rows that are in the order of ``rest``, which tells them apart, are in the order of the query."""
    same = set(query.columns_with(table, frozenset({"="})))
    order = tuple(one for one in order_of(query, table) if one not in same)
    names = tuple(one for one in rest if one not in same)
    return bool(order) and (order == names[: len(order)] or order[: len(names)] == names)


def _is_many(query: Query, table: str, columns: Sequence[str]) -> bool:
    """Whether one of the columns has several values: IN."""
    return any(one.test == "in" and one.column[0] == table and one.column[1] in columns for one in query.conditions)


def _path_by_key(design: Design, placement: Placement, query: Query, equal: set[str]) -> Path:
    table, name, key = placement.sql, placement.table, row_key(design, placement)
    is_many = _is_many(query, table, (*placement.key, *placement.member))
    get = _MANY if is_many else "get"
    if placement.form == "versions":
        what = "the columns `latest`" if placement.flag in equal else "all versions"
        used = (*placement.key, placement.flag)
        return Path(ROW, table, f"{name}: {get} {key}, {what}", ("R1",), used=used, key=key, is_many=is_many)
    rule = "R3" if placement.form == "under" else "R1"
    if set(placement.member) <= equal:
        whole = key + member_tail(design, placement)
        used = (*placement.key, *placement.member)
        return Path(ROW, table, f"{name}: {get} {whole}", (rule,), used=used, key=whole, is_many=is_many)
    return _by_prefix(design, placement, query, equal, key, rule)


def _by_prefix(design: Design, placement: Placement, query: Query, equal: set[str], key: str, rule: str) -> Path:
    """Return a scan of the rows that begin with what the query names; ``key`` is its first part if that is one."""
    table, whole = placement.sql, (*placement.key, *placement.member)
    known: list[str] = list(placement.key) if key else []
    for one in whole[len(known) :]:
        if one not in equal:
            break
        known.append(one)
    rest = whole[len(known) :]
    begin = [key, *known[len(placement.key) :]] if key else known
    text = "/".join(one if one == key else part(design, table, one) for one in begin)
    is_many = _is_many(query, table, known)
    is_sorted = not is_many and is_in_key_order(query, table, rest)
    call = _scan_words(query, f"of the keys that begin with {text}/", is_sorted=is_sorted or not query.order)
    used = tuple(known)
    if rest and rest[0] in _ranged(design, query, table):
        call += f", from and to a value of {part(design, table, rest[0])}"
        used = (*used, rest[0])
    each = "for each, a " if is_many else ""
    rules = ("R8",) if placement.form == "rows" and not key else (rule, "R8") if is_sorted else (rule,)
    return Path(PREFIX, table, f"{placement.table}: {each}{call}", rules, None, is_sorted, used)


def _path_to_cells(design: Design, placement: Placement, query: Query, equal: set[str]) -> Path:
    table, name = placement.sql, placement.table
    key, rule, sql = row_key(design, placement), placement.rule, design.sql(placement.sql)
    order = order_of(query, table)
    if set(placement.key) <= equal:
        is_many = _is_many(query, table, placement.key)
        get = _MANY if is_many else "get"
        if placement.form == "columns" and set(placement.member) & equal:
            used = (*placement.key, *(one for one in placement.member if one in equal))
            call = f"{name}: {get} {key}, the cells {placement.cells_pattern}"
            return Path(ROW, table, call, (rule,), used=used, key=key, is_many=is_many)
        is_sorted = not is_many and not query.is_descending and is_in_key_order(query, table, placement.member)
        is_sorted = is_sorted and all(sql.kind_of(one) not in NUMERIC for one in order)
        call = f"{name}: {get} {key}, family {placement.family}"
        return Path(ROW, table, call, (rule,), None, is_sorted, placement.key, key, is_many)
    if sql.automatic and sql.automatic in equal and sql.automatic not in placement.member:
        carried = f"the program carries row and cell name in its place, then a get {key}"
        call = f"{name}: no cell has {sql.automatic}: {carried}"
        return Path(ROW, table, call, (rule,), used=(sql.automatic,), key=key, is_carried=True)
    values, ranged = _named_by(design, placement, query), _ranged(design, query, table)
    if values or ranged or (order and query.is_limited):
        return by_index(design, placement, values, (order if query.is_limited else ()) or ranged[:1], query)
    return Path(ALL, table, f"{name}: scan of all rows, family {placement.family}", ("R8",))


def _path_to_link(design: Design, placement: Placement, query: Query, equal: set[str]) -> Path:
    table = placement.sql
    for at, end in enumerate(placement.ends):
        if set(end.columns) <= equal:
            other = placement.ends[1 - at]
            family = link_family(design.sql(table), other, placement.family)
            name, key = short_name(design.schema, end.target), end_key(design, end)
            many = _is_many(query, table, end.columns)
            is_plain = not design.placement(other.target).is_hashed and not any(
                design.sql(table).kind_of(one) in NUMERIC for one in other.columns
            )
            is_sorted = is_plain and not many and not query.is_descending
            is_sorted = is_sorted and is_in_key_order(query, table, other.columns)
            used = (*end.columns, *(one for one in other.columns if set(other.columns) <= equal))
            get = _MANY if many else "get"
            return Path(ROW, table, f"{name}: {get} {key}, family {family}", ("R5",), None, is_sorted, used, key, many)
    values = query.equal_columns(table)
    if values:
        return by_index(design, placement, values, (), query)
    family = link_family(design.sql(table), placement.ends[1], placement.family)
    return Path(ALL, table, f"{placement.table}: scan of all rows, family {family}", ("R8",))


def index_of(design: Design, sql: str, equal: Sequence[str], order: Sequence[str]) -> IndexTable:
    """Return the index table; its name tells an index by equality from one that is read in order."""
    table = design.sql(sql)
    by = "_by_" + "_".join(bare(table, one) for one in equal) if equal else ""
    then = "_in_order_of_" + "_".join(bare(table, one) for one in order) if order else ""
    return IndexTable(f"{short_name(design.schema, sql)}{by}{then}", sql, tuple(equal), tuple(order))


def by_index(design: Design, placement: Placement, equal: Sequence[str], order: Sequence[str], query: Query) -> Path:
    """Return the path by an index table, which the design then has."""
    table = placement.sql
    order = tuple(one for one in dict.fromkeys(order) if one not in equal)
    index = index_of(design, table, equal, order)
    is_many = _is_many(query, table, equal)
    is_sorted = bool(order) and not is_many and is_in_key_order(query, table, (*equal, *order))
    used = tuple(equal)
    key = "/".join(entry_part(design, placement, one) for one in equal)
    if order:
        each = "for each, a " if is_many else ""
        in_order = f"in the order of {'/'.join(order)}"
        begins = f"of the keys that begin with {key}/, {in_order}" if equal else in_order
        call = f"{index.name}: {each}{_scan_words(query, begins, is_sorted=is_sorted or not query.order)}"
        if order[0] in _ranged(design, query, table):
            used = (*used, order[0])
            call += f", from and to a value of {part(design, table, order[0])}"
    else:
        call = f"{index.name}: {_MANY if is_many else 'get'} {key}"
    family = "" if placement.has_own_rows else f", family {placement.family}"
    call += f"; {placement.table}: rows for the keys found{family}"
    rules = ("R6", "R8") if order else ("R6",)
    return Path(INDEX if equal else ORDERED, table, call, rules, index, is_sorted, used)


def entry_part(design: Design, placement: Placement, column: str) -> str:
    """Return a compared column as the index has it: a part of a row's key as it is there, a cell as it is."""
    is_part = placement.has_own_rows and column in (*placement.key, *placement.member)
    return part(design, placement.sql, column) if is_part else column


def _scan_words(query: Query, what: str, *, is_sorted: bool = True) -> str:
    """A limit ends the scan only if rows come in the order that is wanted, or in any."""
    direction = "reversed scan" if query.is_descending and is_sorted and query.order else "scan"
    return f"{direction} {what}{_limit(query) if is_sorted else ''}"


def _limit(query: Query) -> str:
    if not query.is_limited:
        return ""
    return ", the first row" if query.sorting.is_one else ", with a limit"


def _columns_read(placement: Placement, query: Query) -> str:
    names = [column for of, column in query.reads if of == placement.sql and column != "*"]
    if not names or len(names) < sum(of == placement.sql for of, _ in query.reads):
        return ""
    cells = [placement.cell_of(one) for one in names if placement.cell_of(one)]
    return f", columns {', '.join(dict.fromkeys(cells))}" if cells else ""


def filtered(design: Design, query: Query, used: set[ColumnOf], path: Path) -> list[str]:
    """Return the steps for the conditions that no call serves (A3).  A filter compares bytes, so no numbers."""
    names: dict[bool, dict[str, None]] = {False: {}, True: {}}
    is_limit_before = False  # a limit would count rows that the program then drops
    for one in query.conditions:
        table, column = one.column
        if one.column in used or column == design.placement(table).flag:
            continue
        is_number = one.test == "range" and design.sql(table).kind_of(column) in NUMERIC
        is_limit_before = is_limit_before or is_number or table != path.sql
        names[is_number][column if len(query.tables) == 1 else f"{table}.{column}"] = None
    words = {False: "a filter on", True: "as a filter compares bytes, the program checks"}
    steps = [f"{words[at]} {', '.join(found)}" for at, found in names.items() if found]
    if is_limit_before and query.is_limited and path.rank != ROW and (path.is_sorted or not query.order):
        steps.append("the program reads on until it has as many rows as LIMIT says")
    return steps
