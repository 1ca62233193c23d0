"""The views that answer totals, groups and distinct values (pure): rule R6 of the thesis's section 7.

A view counts the rows of a group, and has the sums, averages, lowest and highest values that its declaration names; no
more (docs/views.md).  Its groups are read by their key, or scanned in the order of their keys.  So a total is answered
by a view that has it, a distinct value by the groups of a view, and what no view has is not served.

Knows nothing of joins, and of text beyond one line for each answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from columnar.advise.access import (
    NUMERIC,
    ORDERED,
    PREFIX,
    Answer,
    Path,
    Served,
    ViewOf,
    part,
    path_to,
    row_key,
)
from columnar.advise.relations import bare
from columnar.advise.rules import Design, Placement, short_name
from columnar.advise.schema import Query, Shape, Sorting, Table, Total, singular


@dataclass(frozen=True, slots=True)
class _Groups:
    """The columns that a query groups by, in the order of the parts of a view's key."""

    compared: tuple[str, ...]  # have a value
    groups: tuple[str, ...]
    added: tuple[str, ...]  # have a further condition: the program adds the groups for which it is true
    filled: tuple[str, ...]
    absent: tuple[str, ...]

    @property
    def by(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.compared, *self.groups, *self.added]))


def answer_by_view(design: Design, shape: Shape, query: Query, path: Path) -> Answer:
    """Return the answer for totals, groups or distinct values of more than one row."""
    placement, sql = design.placement(path.sql), design.sql(path.sql)
    why = _no_view(design, query, placement)
    if why:
        return Answer(shape, "no", why, ("R6", "R9"))
    end = _by_one_end(design, shape, query, placement)
    made = _groups(query, placement)
    if end is not None and (made.added or not end.indexes):
        return end
    distinct = tuple(dict.fromkeys(one.column[1] for one in query.totals if one.kind == "distinct"))
    why = _not_grouped(design, placement, made, distinct) or next(
        filter(None, (_no_total(placement, sql, one) for one in query.totals)), ""
    )
    if why:
        return end if end is not None else Answer(shape, "no", why, ("R6", "R9"))
    views = _views(design, query, placement, made)
    steps = _steps(design, query, placement, made, views, distinct)
    is_whole = len(query.tables) == 1 and not made.added and not distinct
    top = _top(views[0], query, made, is_whole=is_whole and not query.obstacles)
    if top is not None:
        group = "/".join(_group_part(design, placement, one) for one in made.compared) or "all"
        steps = [f"view {top.name}: the top of the group {group}, with a limit"]
        views = [*views, top]
    else:
        last, is_sorted = _order_of_groups(query, sql, made)
        steps += last
        is_whole = is_whole and (is_sorted or not query.is_limited)
    extra = [column for of, column in query.reads if of == path.sql and column not in made.by] if query.groups else []
    if extra:
        names = ", ".join("all columns" if one == "*" else one for one in extra)
        steps.append(f"for {names} the row of a member of the group")
    hard = [one for one in query.obstacles if one not in ("DISTINCT", "OFFSET")]
    served: Served = "yes" if is_whole and not hard and not extra else "program"
    return Answer(shape, served, "; ".join(dict.fromkeys(steps)), ("R6",), (), tuple(views))


# --- what no view answers ------------------------------------------------------------------------


def _no_view(design: Design, query: Query, placement: Placement) -> str:
    """Return why no view of the table answers, and what to do instead; empty if one may."""
    named = [*query.groups, *(one.column for one in query.tested), *(one.column for one in query.totals)]
    named += [] if query.totals or query.groups else query.reads
    foreign = [one for one in named if one[0] != placement.sql and one[1] not in ("*", "")]
    if foreign:
        return (
            f"totals over {', '.join(query.tables)} by columns of several tables; instead: copy {foreign[0][1]} into"
            f" the rows of {placement.table}, then a view; or a view with --join"
        )
    for table in query.tables:
        naming = {
            column for link in design.references_of(placement.sql) if link.target == table for column in link.columns
        }
        pairs = [pair for one, other in query.joins for pair in ((one, other), (other, one))]
        is_one = any(mine[0] == placement.sql and mine[1] in naming and theirs[0] == table for mine, theirs in pairs)
        if table != placement.sql and not is_one:
            which = f"{placement.sql} with {table}, which may have several rows for one"
            return f"totals over a join of {which}; instead: a view with --join"
    if placement.form in ("columns", "link"):
        return (
            "no view counts the cells of a family one by one; instead: a table of totals, kept by a trigger that yields"
            f" Contribute for each cell of {placement.family} (docs/contributions.md)"
        )
    if placement.form == "versions" and query.totals and placement.flag not in query.equal_columns(placement.sql):
        return (
            f"a view of {placement.table} sees the newest versions; instead: with --sum n=meta:versioncount it counts"
            " all, and other totals of all versions need a table of versions"
        )
    return ""


def _not_grouped(design: Design, placement: Placement, made: _Groups, distinct: Sequence[str]) -> str:
    """Return which column no view can group by, and what to do instead."""
    for column in (*made.by, *distinct):
        if placement.cell_of(column):
            if design.sql(placement.sql).kind_of(column) == "large":
                return f"no view groups by a text as large as {column}; instead: a cell with its beginning or its hash"
        else:
            is_shown = column not in made.compared or column in distinct
            if not is_in_key(design, placement, column, is_shown=is_shown):
                what = f"no cell of {placement.table} has {column}"
                return f"{what}; instead: put a cell with it, then a view by that cell"
    missing = [one for one in (*made.filled, *made.absent) if not placement.cell_of(one)]
    return f"no cell of {placement.table} has {missing[0]}; instead: put a cell with it" if missing else ""


def is_in_key(design: Design, placement: Placement, column: str, *, is_shown: bool = False) -> bool:
    """Whether a view can cut the column out of the row's key; if it is ``is_shown``, no hash will do."""
    if placement.form in ("under", "family"):
        key = row_key(design, placement)
        if key.startswith("<") or placement.form == "family":
            return placement.key == (column,) and not key.startswith("<") and not (is_shown and placement.is_hashed)
    if placement.form != "versions" and column in placement.member:
        return len(placement.key) == 1 or not placement.is_hashed
    return column in placement.key and (not placement.is_hashed or (placement.key == (column,) and not is_shown))


def _no_total(placement: Placement, sql: Table, total: Total) -> str:
    """Return why no view has a total, and what to do instead; empty if one has it."""
    column = total.column[1]
    if column == "*" or total.kind == "distinct":
        return "" if column else "no view counts what is computed; instead: a cell with it, written with the row"
    if not column or not total.column[0]:
        return f"no view has a total of what is computed ({total.kind}); instead: a cell with it, written with the row"
    kind = sql.kind_of(column)
    if total.kind == "count":
        is_there = placement.cell_of(column) or is_named(placement, column)
        return "" if is_there else f"no cell has {column}; instead: put a cell with it"
    if total.kind not in ("sum", "avg", "min", "max"):
        return f"no view has {total.kind} of {column}; instead: the program reads the rows and reckons"
    if not placement.cell_of(column):
        what = f"no cell of {placement.table} has {column}"
        return f"{what}; instead: put a cell with it, then a view with {total.sql_text}"
    if kind == "float" or (kind not in NUMERIC and total.kind in ("sum", "avg")):
        return (
            f"a view reckons with whole numbers and decimals of fixed places, and {column} has neither; instead: a cell"
            " with a decimal"
        )
    return (
        f"no view orders a text as large as {column}; instead: a cell with its beginning"
        if kind in ("large", "bytes")
        else ""
    )


def is_named(placement: Placement, column: str) -> bool:
    """Whether every row has the column: its key has it, or the row stands for it."""
    return column in (*placement.key, *placement.member, *(one for one, _ in placement.gone))


# --- what a view answers -------------------------------------------------------------------------


def _groups(query: Query, placement: Placement) -> _Groups:
    table = placement.sql
    groups = [column for of, column in query.groups if of == table]
    if not query.totals and not query.groups:
        groups += [column for of, column in query.reads if of == table and column != "*"]
    compared = tuple(one for one in query.columns_with(table, frozenset({"="})) if one != placement.flag)
    added = [
        one.column[1] for one in query.tested
        if one.column[0] == table and one.test not in ("=", "null", "filled") and one.column[1] != placement.flag
    ]  # fmt: skip
    added += [one.column[1] for side in query.sides for one in side]
    filled, absent = (query.columns_with(table, frozenset({test})) for test in ("filled", "null"))
    kept = tuple(one for one in filled if not is_named(placement, one))
    in_sides = {one.column[1] for side in query.sides for one in side}
    return _Groups(
        compared, tuple(dict.fromkeys(groups)), tuple(dict.fromkeys(added)),
        tuple(one for one in kept if one not in in_sides), absent,
    )  # fmt: skip


def _views(design: Design, query: Query, placement: Placement, made: _Groups) -> list[ViewOf]:
    """Return the views that have the totals: the first counts, sums and averages; others for each further column."""
    sql = design.sql(placement.sql)
    base = _view(design, placement, made.by, made, "")
    sums, averages = (
        tuple(dict.fromkeys(one.column[1] for one in query.totals if one.kind == kind)) for kind in ("sum", "avg")
    )
    found = [replace(base, sums=sums, averages=averages)]
    for total in query.totals:
        column = total.column[1]
        if total.kind == "count" and column != "*" and not is_named(placement, column):
            found.append(_view(design, placement, made.by, made, f"_with_{bare(sql, column)}", counted=column))
        elif total.kind in ("min", "max"):
            found.append(_view(design, placement, made.by, made, f"_of_{bare(sql, column)}", ends=column))
        elif total.kind == "distinct":
            found.append(_view(design, placement, tuple(dict.fromkeys([*made.by, column])), made, ""))
    kinds = {one.kind for one in query.totals}
    is_base_read = not query.totals or kinds & {"sum", "avg"} or any(
        one.kind == "count" and (one.column[1] == "*" or is_named(placement, one.column[1])) for one in query.totals
    )  # fmt: skip
    return list(dict.fromkeys(found if is_base_read else found[1:]))


def _view(
    design: Design, placement: Placement, by: tuple[str, ...], made: _Groups, suffix: str, *, counted: str = "",
    ends: str = "",
) -> ViewOf:  # fmt: skip
    sql = design.sql(placement.sql)
    name = short_name(design.schema, placement.sql)
    what = "_".join(bare(sql, one) for one in by)
    kind = "ends" if ends else "counts"
    head = f"{singular(name)}_{kind}_by_{what}" if by else f"{name}_{'ends' if ends else 'count'}"
    also = "".join(f"_with_{bare(sql, one)}" for one in made.filled) + "".join(
        f"_without_{bare(sql, one)}" for one in made.absent
    )
    return ViewOf(f"{head}{also}{suffix}", placement.sql, by, (), (), counted, made.filled, made.absent, ends)


def _steps(
    design: Design, query: Query, placement: Placement, made: _Groups, views: Sequence[ViewOf],
    distinct: Sequence[str],
) -> list[str]:  # fmt: skip
    steps = []
    for view in views:
        of = [one.sql_text for one in query.totals if one.kind != "count" and view.gives(one, is_always_filled=True)
              and (one.kind == "distinct") == (len(view.by) > len(made.by) or one.column[1] in made.by)]  # fmt: skip
        words = _group_words(design, placement, made, view)
        steps.append(f"view {view.name}: {words}{', for ' + ', '.join(of) if of else ''}")
    if distinct:
        steps.append(f"the program counts the groups for {' and '.join(f'count(distinct {one})' for one in distinct)}")
    if made.added:
        by_count = " (averages by their counts)" if any(one.kind == "avg" for one in query.totals) else ""
        where = f"for which the condition on {', '.join(made.added)} is true"
        steps.append(f"the program adds up the groups {where}{by_count}")
    if "a group by what a function makes" in query.obstacles:
        steps.append("the program adds up the groups (or day(CELL) in the view's key, if a cell has milliseconds)")
    if "HAVING" in query.obstacles:
        steps.append("HAVING is checked by the program on the groups")
    if "OFFSET" in query.obstacles:
        steps.append("no call skips groups: the program does")
    if len(query.tables) > 1:
        others = [one for one in query.tables if one != placement.sql]
        steps.append(f"the program reads {', '.join(others)} for each group")
    return steps


def _group_words(design: Design, placement: Placement, made: _Groups, view: ViewOf) -> str:
    names = {one: _group_part(design, placement, one) for one in view.by}
    group = "/".join(names.values()) or "all"
    if set(view.by) == set(made.compared):
        return f"the group {group}"
    if made.compared:
        return f"its groups that begin with {'/'.join(names[one] for one in made.compared)}, by {group}"
    return f"its groups, by {group}"


def _group_part(design: Design, placement: Placement, column: str) -> str:
    """Return a column as the view's key has it: a cell as it is, a part of a row's key as it is there."""
    if placement.cell_of(column):
        return column
    is_hash = placement.is_hashed and column in placement.key
    return row_key(design, placement) if is_hash else part(design, placement.sql, column)


def _top(base: ViewOf, query: Query, made: _Groups, *, is_whole: bool) -> ViewOf | None:
    """Return a view that orders the groups of ``base`` by a count or sum, if the query wants the first of them."""
    if not (is_whole and query.is_limited and query.is_descending and len(query.sorting.totals) == 1):
        return None
    total = query.sorting.totals[0]
    others = [one for one in query.totals if not base.gives(one, is_always_filled=False)]
    if query.order or others or not made.groups or total.kind not in ("count", "sum") or base.ends:
        return None
    order = "count" if total.kind == "count" else total.column[1]
    keys = tuple(range(len(made.compared)))
    name = f"{base.name}_by_{order.lower()}"
    return ViewOf(name, base.sql, base.by, source=base.name, keys=keys, order=order)


def _order_of_groups(query: Query, sql: Table, made: _Groups) -> tuple[list[str], bool]:
    """Return the step that sorts groups, and whether they come in the order that is wanted."""
    names = [column for _, column in query.order] + [one.sql_text for one in query.sorting.totals]
    if not names and "an order by what is computed" in query.obstacles:
        names = ["what is computed"]
    if not names or set(made.by) == set(made.compared):
        return [], True
    rest = [one for one in made.by if one not in made.compared]
    is_sorted = names == rest[: len(names)] and not query.is_descending
    if is_sorted and all(sql.kind_of(one) not in NUMERIC for one in names):
        return [], True
    whole = ": it reads all of them, whatever LIMIT says" if query.is_limited else ""
    return [f"the program sorts the groups by {', '.join(names)}{whole}"], False


def _by_one_end(design: Design, shape: Shape, query: Query, placement: Placement) -> Answer | None:
    """Return the first row of a scan in the order of the column, for one lowest or highest value."""
    if len(query.totals) != 1 or query.groups or query.obstacles or len(query.tables) > 1:
        return None
    total = query.totals[0]
    if total.kind not in ("min", "max") or not total.column[1]:
        return None
    first = Sorting((total.column,), is_descending=total.kind == "max", is_limited=True, is_one=True)
    wanted = replace(query, totals=(), sorting=first)
    path = path_to(design, wanted, placement.sql)
    is_served = {one.column[1] for one in query.tested} <= {*path.used, placement.flag}
    if not path.is_sorted or path.rank not in (PREFIX, ORDERED) or not is_served:
        return None
    rules = tuple(sorted({"R6", *path.rules} if path.index else path.rules))
    indexes = (path.index,) if path.index else ()
    end = replace(path, end=total.column[1])
    return Answer(shape, "yes", path.call, rules, indexes, paths=(end,))
