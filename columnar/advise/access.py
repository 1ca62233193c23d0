"""The calls that serve a query that reads (pure): rules R4, R6, R8 and R9 of the thesis's section 7.

    R4  many to one: a get of the other row by its key, or a copy of what the query shows
    R6  each other access path: an index table kept by a trigger; a count or sum is a view
    R8  order: a scan (reversed for descending), or "sort in the program"
    R9  full text, ``LIKE '%x'``, free joins: not served, and what to do instead

A query is driven by the table whose row is known, else by the table with the best path.  The
others follow by joins.

Invariant A0: each query has one answer, and an answer says why.

Knows nothing of text beyond one line for each answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from columnar.advise.relations import Reference, bare
from columnar.advise.rules import Design, Placement, link_family, short_name
from columnar.advise.schema import Query, Shape, singular

Served = Literal["yes", "program", "no", "nothing"]

_ROW, _CELL, _PREFIX, _INDEX, _ORDERED, _ALL = range(6)  # paths, the best first
WORDS_INSTEAD: Final = (
    "instead: a table of words kept by a trigger, or a search engine that follows the table's changes"
)
# obstacles for which no number of calls answers the query, and what to do instead
_NOT_SERVED: Final = {
    "full text": WORDS_INSTEAD,
    "a random order": "instead: a scan that begins at a random key",
    "a join of a table with itself": "instead: a read for each side, or a table of the pairs kept by a trigger",
    "a table twice under one name": "instead: write the query with one name for each table",
    "a comparison of two columns of a row": "instead: a cell with the result, written with the row",
}
# obstacles that the program takes on, with several calls
_BY_PROGRAM: Final = {
    "OR": "a read for each side of OR, merged by the program",
    "UNION": "a read for each part of UNION, merged by the program",
    "a query within the query": "the inner query first, then a get for each key that it finds",
    "HAVING": "HAVING is checked by the program on the groups",
    "an order by what is computed": "the program sorts",
    "a condition on what a function makes of a column": "the program checks the function's condition on the rows",
}


@dataclass(frozen=True, slots=True)
class IndexTable:
    """Rows of ``name``: values of ``equal`` (and ``order``) to the keys of ``sql``'s rows."""

    name: str
    sql: str
    equal: tuple[str, ...]
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ViewOf:
    """A view over the rows of ``sql``: groups by columns, with totals."""

    name: str
    sql: str
    by: tuple[str, ...]
    sums: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    shape: Shape
    served: Served
    call: str
    rules: tuple[str, ...] = ()
    index: IndexTable | None = None
    view: ViewOf | None = None
    question: str = ""


@dataclass(frozen=True, slots=True)
class Path:
    """How the rows of one table of a query are found."""

    rank: int
    sql: str
    call: str
    rules: tuple[str, ...]
    index: IndexTable | None = None
    is_sorted: bool = False


def answer_of_read(design: Design, shape: Shape) -> Answer:
    """Return the answer for a SELECT that names tables of the schema.  Invariant A0 holds."""
    query = shape.query
    for obstacle in query.obstacles:
        if obstacle in _NOT_SERVED:
            return Answer(shape, "no", f"{obstacle}: {_NOT_SERVED[obstacle]}", ("R9",))
    within = [one.column[1] for one in query.conditions if one.test == "within"]
    if within:
        return Answer(shape, "no", f"LIKE with % before the text, on {within[0]}: {WORDS_INSTEAD}", ("R9",))
    path = best_path(design, query)
    if _needs_view(design, query, path):
        return _by_view(design, shape, path)
    return _with_joins(design, shape, path)


def _with_joins(design: Design, shape: Shape, path: Path) -> Answer:
    query = shape.query
    steps, rules = [path.call], list(path.rules)
    if path.rank == _ALL and "OR" in query.obstacles:
        steps.clear()
    is_whole = path.rank != _ALL
    done = [path.sql]
    rest = [one for one in query.tables if one != path.sql]
    while rest:
        joined = next(((one, step) for one in rest if (step := _join_step(design, query, done, one))), None)
        if joined is None:
            instead = "instead: two reads, and the program joins; or a view with --join"
            return Answer(shape, "no", f"no key joins {rest[0]} with {', '.join(done)}; {instead}", ("R9",))
        table, (text, rule) = joined
        steps.append(text)
        rules.append(rule)
        done.append(table)
        rest.remove(table)
    steps += [_BY_PROGRAM[one] for one in query.obstacles if one in _BY_PROGRAM]
    steps += _absent(query)
    if "DISTINCT" in query.obstacles:
        steps.append("the program drops what it has seen")
    if query.totals:
        steps.append("the program counts" if query.totals == ("count(*)",) else "the program reckons the totals")
    order = _order_step(query, path)
    if order:
        steps.append(order)
        rules.append("R8")
    hard = [one for one in query.obstacles if one in _BY_PROGRAM]
    served: Served = "yes" if is_whole and not hard and not _absent(query) else "program"
    patterns = [one.column[1] for one in query.conditions if one.test == "pattern"]
    question = ""
    if patterns:
        question = (
            f"Can the pattern on {patterns[0]} begin with %? As a beginning it is a scan; otherwise no call serves it."
        )
        rules.append("R9")
    return Answer(shape, served, "; ".join(dict.fromkeys(steps)), tuple(sorted(set(rules))), path.index, None, question)


def _absent(query: Query) -> list[str]:
    """The steps of a query for rows that lack a counterpart: LEFT JOIN with IS NULL."""
    if query.joins and any(one.test == "null" for one in query.conditions):
        return [
            "the program keeps the rows that lack, or have, the other; if it is asked often, a table kept by a trigger"
        ]
    return []


def _order_step(query: Query, path: Path) -> str:
    if not query.order or path.is_sorted:
        return ""
    return f"sort by {', '.join(column for _, column in query.order)} in the program"


# --- paths ---------------------------------------------------------------------------------------


def best_path(design: Design, query: Query) -> Path:
    """Return the path to the table that drives the query."""
    paths = [path_to(design, query, table) for table in query.tables]
    return min(enumerate(paths), key=lambda one: (one[1].rank, one[0]))[1]


def row_key(design: Design, placement: Placement) -> str:
    """Return the key of a row, as a program makes it: ``md5(tag)``; ``<key of page>`` if an id stood for that row."""
    if placement.parent and placement.form != "link":
        reference = next(one for one in design.references_of(placement.sql) if one.columns == placement.key)
        return end_key(design, reference)
    return _made_of(placement.key, is_hashed=placement.is_hashed)


def end_key(design: Design, reference: Reference) -> str:
    """Return the key of the row that a reference names."""
    target = design.placement(reference.target)
    if target.key != reference.targets or target.member:
        return f"<key of {target.table}>"
    return _made_of(reference.columns, is_hashed=target.is_hashed)


def _made_of(columns: Sequence[str], *, is_hashed: bool) -> str:
    return f"md5({', '.join(columns)})" if is_hashed else "/".join(columns)


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
    key = row_key(design, placement)
    if sql.automatic and sql.automatic in equal and sql.automatic not in placement.key:
        number = " and the version's number" if placement.form == "versions" else ""
        return Path(
            _ROW, table, f"{name}: get; {key}{number} take the place of {sql.automatic} in the program", ("R1",)
        )
    if set(placement.key) <= equal:
        return _path_by_key(placement, query, equal, key)
    order = tuple(column for of, column in query.order if of == table)
    ranged = query.columns_with(table, frozenset({"range", "prefix"}))
    first = placement.key[0] if placement.key else ""
    is_open = not placement.is_hashed and placement.form == "rows"
    flags = {one.name for one in sql.columns if one.kind == "flag"}
    if is_open and first in equal:
        rest = tuple(one for one in placement.key if one not in equal)
        text = _scan_words(query, f"of the keys that begin with {first}/", is_sorted=order[:1] == rest[:1])
        if rest and rest[0] in ranged:
            text += f", from and to a value of {rest[0]}"
        return Path(_PREFIX, table, f"{name}: {text}", ("R8",), None, order == rest[: len(order)])
    if is_open and (first in ranged or order[:1] == (first,)) and equal <= flags:
        text = _scan_words(query, f"from and to a value of {first}" if first in ranged else f"in the order of {first}")
        kept = f", with a filter on {', '.join(sorted(equal))}" if equal else ""
        return Path(_PREFIX, table, f"{name}: {text}{kept}", ("R8",), None, not order or order[0] == first)
    others = tuple(
        one for one in (*query.equal_columns(table), *_without_flag(placement, ranged)) if one != placement.flag
    )
    values = tuple(one for one in others if one in query.equal_columns(table))
    if values:
        paged = order if query.is_limited else ()
        return _by_index(design, placement, values, paged, query)
    if ranged and ranged[0] != first:
        return _by_index(design, placement, (), ranged[:1], query)
    if order and query.is_limited:
        return _by_index(design, placement, (), order, query)
    columns = _columns_read(design, placement, query)
    return Path(_ALL, table, f"{name}: scan of all rows{columns}", ("R8",))


def _path_by_key(placement: Placement, query: Query, equal: set[str], key: str) -> Path:
    table, name = placement.sql, placement.table
    many = any(
        one.test == "in" and one.column[0] == table and one.column[1] in placement.key for one in query.conditions
    )
    get = "rows, one get for all keys" if many else "get"
    order = tuple(column for of, column in query.order if of == table)
    if placement.form == "versions":
        if placement.flag in equal:
            return Path(_ROW, table, f"{name}: {get} {key}, the columns `latest`", ("R1",))
        return Path(_ROW, table, f"{name}: {get} {key}, all versions", ("R1",))
    if placement.form == "under":
        if set(placement.member) & equal:
            return Path(_ROW, table, f"{name}: get {key}/{'/'.join(placement.member)}", ("R3",))
        is_sorted = bool(order) and order[0] == placement.time
        text = _scan_words(query, f"of the keys that begin with {key}/", is_sorted=is_sorted)
        return Path(_PREFIX, table, f"{name}: {text}", ("R3", "R8") if is_sorted else ("R3",), None, is_sorted)
    if placement.member:
        return Path(_PREFIX, table, f"{name}: scan of the keys that begin with {key}/", ("R1",))
    return Path(_ROW, table, f"{name}: {get} {key}", ("R1",))


def _path_to_cells(design: Design, placement: Placement, query: Query, equal: set[str]) -> Path:
    table, name = placement.sql, placement.table
    key = row_key(design, placement)
    rule = placement.rule
    sql = design.sql(table)
    if set(placement.key) <= equal:
        many = any(one.test == "in" and one.column == (table, placement.key[0]) for one in query.conditions)
        get = "rows, one get for all keys" if many else "get"
        if placement.form == "columns" and set(placement.member) & equal:
            return Path(_ROW, table, f"{name}: {get} {key}, the cells {placement.cells_pattern}", (rule,))
        order = tuple(column for of, column in query.order if of == table)
        is_sorted = bool(order) and order[0] == placement.time and not query.is_descending
        return Path(_ROW, table, f"{name}: {get} {key}, family {placement.family}", (rule,), None, is_sorted)
    if sql.automatic and sql.automatic in equal:
        text = f"{name}: get {key}; row and cell name take the place of {sql.automatic} in the program"
        return Path(_ROW, table, text, (rule,))
    values = query.equal_columns(table)
    order = tuple(column for of, column in query.order if of == table)
    ranged = query.columns_with(table, frozenset({"range", "prefix"}))
    if values or ranged or (order and query.is_limited):
        return _by_index(design, placement, values, order if query.is_limited else () if values else ranged[:1], query)
    return Path(_ALL, table, f"{name}: scan of all rows, family {placement.family}", ("R8",))


def _path_to_link(design: Design, placement: Placement, query: Query, equal: set[str]) -> Path:
    table = placement.sql
    for at, end in enumerate(placement.ends):
        if set(end.columns) <= equal:
            family = link_family(design.sql(table), placement.ends[1 - at], placement.family)
            name = short_name(design.schema, end.target)
            shown = end_key(design, end)
            order = tuple(column for of, column in query.order if of == table)
            is_sorted = bool(order) and order[0] in placement.ends[1 - at].columns and not design.placement(
                placement.ends[1 - at].target
            ).is_hashed  # fmt: skip
            return Path(_ROW, table, f"{name}: get {shown}, family {family}", ("R5",), None, is_sorted)
    values = query.equal_columns(table)
    if values:
        return _by_index(design, placement, values, (), query)
    family = link_family(design.sql(table), placement.ends[1], placement.family)
    return Path(_ALL, table, f"{placement.table}: scan of all rows, family {family}", ("R8",))


def _by_index(design: Design, placement: Placement, equal: Sequence[str], order: Sequence[str], query: Query) -> Path:
    sql = design.sql(placement.sql)
    order = tuple(one for one in dict.fromkeys(order) if one not in equal)
    names = "_".join(bare(sql, one) for one in (*equal, *order))
    index = IndexTable(
        f"{short_name(design.schema, placement.sql)}_by_{names}", placement.sql, tuple(equal), tuple(order)
    )
    if order:
        begins = f"of the keys that begin with {'/'.join(equal)}/" if equal else f"in the order of {'/'.join(order)}"
        call = f"{index.name}: {_scan_words(query, begins)}"
    else:
        call = f"{index.name}: get {'/'.join(equal)}"
    if placement.form == "versions" or placement.has_own_rows:
        call += f"; {placement.table}: rows for the keys found"
    else:
        call += f"; {placement.table}: rows for the keys found, family {placement.family}"
    rules = ("R6", "R8") if order else ("R6",)
    return Path(_ORDERED if not equal else _INDEX, placement.sql, call, rules, index, bool(order))


def _scan_words(query: Query, what: str, *, is_sorted: bool = True) -> str:
    direction = "reversed scan" if query.is_descending and is_sorted else "scan"
    return f"{direction} {what}{', with a limit' if query.is_limited else ''}"


def _without_flag(placement: Placement, columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(one for one in columns if one != placement.flag)


def _columns_read(design: Design, placement: Placement, query: Query) -> str:
    names = [column for of, column in query.reads if of == placement.sql and column != "*"]
    if not names or len(names) < sum(of == placement.sql for of, _ in query.reads):
        return ""
    cells = [placement.cell_of(one) for one in names if placement.cell_of(one)]
    return f", columns {', '.join(dict.fromkeys(cells))}" if cells else ""


# --- joins ---------------------------------------------------------------------------------------


def _join_step(design: Design, query: Query, done: Sequence[str], table: str) -> tuple[str, str] | None:
    """Return how the rows of ``table`` follow from those that were read, and the rule; None if no key joins them."""
    placement = design.placement(table)
    found: list[tuple[bool, int, tuple[str, str]]] = []
    for one, other in query.joins:
        for mine, theirs in ((one, other), (other, one)):
            if mine[0] == table and theirs[0] in done:
                step = _step_between(design, query, placement, mine[1], design.placement(theirs[0]), theirs[1])
                if step is not None:
                    found.append((" scan of " in step[0], len(found), step))
    return min(found)[2] if found else None


def _step_between(
    design: Design, query: Query, mine: Placement, column: str, theirs: Placement, their_column: str
) -> tuple[str, str] | None:
    """Return how a row of ``mine`` follows from one of ``theirs``, which was read, and the rule."""
    if theirs.form == "link":
        read = _end_read(query, theirs)
        if read is not None and read.target == mine.sql and their_column in read.columns:
            return f"{mine.table}: the same row has it", mine.rule
        return f"{mine.table}: rows for the keys found, or a copy of what is shown in the cells of the link", "R4"
    if mine.form == "link":
        end = next((one for one in mine.ends if column in one.columns), mine.ends[0])
        other = next(one for one in mine.ends if one != end)
        return (
            f"{theirs.table}: the same row has it, family {link_family(design.sql(mine.sql), other, mine.family)}",
            "R5",
        )
    family = f", family {mine.family}" if mine.family else ""
    if mine.table == theirs.table and column in mine.key and their_column in _key_columns(design, theirs):
        return f"{mine.table}: the same row has it{family}", mine.rule
    if mine.form in ("family", "columns") and mine.parent == theirs.sql and column in mine.key:
        return f"{theirs.table}: the same row has it{family}", mine.rule
    if column in mine.key or column == design.sql(mine.sql).automatic:
        if mine.form == "under" and column in mine.key:
            return f"{mine.table}: for each, a scan of the keys that begin with {row_key(design, mine)}/", "R3"
        return f"{mine.table}: rows for the values of {their_column}{family}, or a copy of what is shown", "R4"
    if any(column in one.columns for one in design.references_of(mine.sql)):
        return f"{mine.table}_by_{bare(design.sql(mine.sql), column)}: get for each {their_column}", "R6"
    return None


def _end_read(query: Query, link: Placement) -> Reference | None:
    """The end of a link whose row the query names."""
    equal = set(query.equal_columns(link.sql))
    return next((one for one in link.ends if set(one.columns) <= equal), None)


def _key_columns(design: Design, placement: Placement) -> tuple[str, ...]:
    """The columns that name a placement's row: its key, and an id that stands for it."""
    automatic = design.sql(placement.sql).automatic if placement.has_own_rows else ""
    return (*placement.key, automatic) if automatic else placement.key


# --- views ---------------------------------------------------------------------------------------


def _needs_view(design: Design, query: Query, path: Path) -> bool:
    if not query.totals and not (query.groups or "DISTINCT" in query.obstacles):
        return False
    is_one_row = path.rank <= _CELL
    return not is_one_row and not _absent(query)


def _by_view(design: Design, shape: Shape, path: Path) -> Answer:
    query = shape.query
    placement = design.placement(path.sql)
    groups = [column for of, column in query.groups if of == path.sql]
    if not query.totals:
        groups += [column for of, column in query.reads if of == path.sql and column != "*"]
    compared = [one for one in query.equal_columns(path.sql) if one != placement.flag]
    ranged = query.columns_with(path.sql, frozenset({"range"}))
    by = tuple(dict.fromkeys([*compared, *groups, *ranged]))
    sums = tuple(one[4:-1] for one in query.totals if one.startswith(("sum(", "avg(")))
    sql = design.sql(path.sql)
    what = "_".join(bare(sql, one) for one in by) or "all"
    name = (
        f"{singular(short_name(design.schema, path.sql))}_counts_by_{what}"
        if by
        else f"{short_name(design.schema, path.sql)}_count"
    )
    foreign = [one for one in (*query.groups, *(c.column for c in query.conditions)) if one[0] != path.sql]
    if foreign:
        return Answer(
            shape, "no",
            f"totals over {', '.join(query.tables)} by columns of several tables; instead: copy {foreign[0][1]} into"
            f" the rows of {placement.table}, then a view; or a view with --join", ("R6", "R9"),
        )  # fmt: skip
    if not placement.has_own_rows:
        return Answer(
            shape, "yes", f"{name}: a table of totals, kept by a trigger that yields Contribute for each cell of"
            f" {placement.family or placement.table}", ("R6",),
        )  # fmt: skip
    missing = [one for one in by if not placement.cell_of(one) and not _is_in_key(design, placement, one)]
    group = "/".join(by) if by else "all"
    call = (
        f"view {name}: the group {group}"
        if not by or set(by) == set(compared)
        else f"view {name}: its groups, by {group}"
    )
    if compared and set(by) != set(compared):
        call = f"view {name}: its groups that begin with {'/'.join(compared)}, by {group}"
    if ranged:
        call += f"; the program adds the groups from and to a value of {ranged[0]} (or of its days: day(COLUMN))"
    if missing:
        call += f"; the rows need a cell with {', '.join(missing)} for it"
    if "a group by what a function makes" in query.obstacles:
        call += "; the program adds up the groups (day(COLUMN) in the view's key, if days are enough)"
    if "HAVING" in query.obstacles:
        call += "; " + _BY_PROGRAM["HAVING"]
    view = ViewOf(name, path.sql, by, sums) if not missing else None
    answer = Answer(shape, "yes", call, ("R6",), None, view)
    if len(query.tables) > 1:
        return replace(
            answer, served="program", call=f"{call}; the program reads {', '.join(query.tables[1:])} for each group"
        )
    return answer


def _is_in_key(design: Design, placement: Placement, column: str) -> bool:
    """Whether a view can cut the column out of the row's key."""
    if placement.form == "under":
        return placement.key == (column,) and not row_key(design, placement).startswith("<")
    return column in placement.key and not placement.is_hashed
