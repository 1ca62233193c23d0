"""The calls that serve a query that writes, and what may be seen half done (pure): rule R7 of the thesis's section 7.

    R7  changes of several rows in one transaction: the store writes one row, or one group of rows, as a step; all
        other changes may be seen half done

``answers`` is the adviser's whole answer to a log.

Invariant A1: ``answers`` has one answer for each shape of the log, in their order; none is left out.

Knows nothing of text beyond one line for each answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from columnar.advise.access import NUMERIC, ROW, Answer, Path, end_key, member_tail, path_to, row_key
from columnar.advise.reads import answer_of_read
from columnar.advise.rules import Design, Placement, link_family, short_name
from columnar.advise.schema import Query, Shape

_NO_DATA = "no data of the schema: nothing to serve"
_HARD_TO_WRITE = {
    "INSERT of what a query finds": "the program reads what the query finds and puts it",
    "UPDATE over several tables": "the program writes the rows of each table",
    "a query within the query": "the inner query first, then the writes of the rows that it names",
}


@dataclass(frozen=True, slots=True)
class Step:
    """A transaction of the log: the rows that it writes, and what the design makes of it."""

    shapes: tuple[str, ...]
    count: int
    is_one_row: bool
    text: str


def answers(design: Design) -> tuple[Answer, ...]:
    """Return one answer for each shape, in their order.  Invariant A1 holds."""
    return tuple(_answer(design, shape) for shape in design.workload.shapes)


def _answer(design: Design, shape: Shape) -> Answer:
    query = shape.query
    if query.verb == "unread":
        return Answer(shape, "no", f"not read: {query.why}")
    if query.verb == "session":
        return Answer(shape, "nothing", _NO_DATA)
    if query.verb == "schema":
        return Answer(shape, "nothing", "changes the schema: columns need no statement, families `columnar alter`")
    named = [*(one.column for one in query.tested), *query.groups, *(one.column for one in query.totals)]
    named += [one.column for part in query.parts for one in part.tested]
    unknown = [column for table, column in named if not table and column not in ("*", "")]
    unread = [one.why for one in query.parts if one.verb == "unread"]
    if unread:
        return Answer(shape, "no", f"not read: {unread[0]}")
    if unknown:
        return Answer(shape, "no", f"no table of the query has a column {unknown[0]}")
    if query.verb == "select":
        return answer_of_read(design, shape)
    if not query.tables:
        return Answer(shape, "no", "it writes to no table of the schema")
    made = _write(design, shape, design.placement(query.tables[0]))
    hard = [one for one in query.obstacles if one != "OR"]  # its sides have a path each
    steps = [_HARD_TO_WRITE.get(one, f"{one}: the program decides, row by row") for one in hard]
    if steps:
        return replace(made, served="program", call="; ".join([*steps, made.call]))
    return made


def _write(design: Design, shape: Shape, placement: Placement) -> Answer:
    verb = shape.query.verb
    if verb == "insert":
        return _insert(design, shape, placement)
    if placement.form == "versions" and verb == "update" and set(shape.query.writes) == {placement.flag}:
        return Answer(
            shape, "nothing", f"not needed: a put overwrites the columns `latest`, {placement.flag} is gone", ("R1",)
        )
    if shape.query.sides:
        return _write_sides(design, shape, placement)
    path = path_to(design, shape.query, placement.sql)
    if verb == "delete":
        return _delete(design, shape, placement, path)
    return _update(design, shape, placement, path)


def _write_sides(design: Design, shape: Shape, placement: Placement) -> Answer:
    """Return the changes of the rows that each side of OR names."""
    query = replace(shape.query, sides=(), obstacles=tuple(one for one in shape.query.obstacles if one != "OR"))
    sides = [replace(query, conditions=(*query.conditions, *side)) for side in shape.query.sides]
    found = [_write(design, replace(shape, query=one), placement) for one in sides]
    calls = ", and ".join(dict.fromkeys(one.call for one in found))
    rules = tuple(dict.fromkeys(rule for one in found for rule in one.rules))
    indexes = tuple(dict.fromkeys(index for one in found for index in one.indexes))
    question = next((one.question for one in found if one.question), "")
    return Answer(shape, "program", f"for each side of OR: {calls}", rules, indexes, question=question)


def _insert(design: Design, shape: Shape, placement: Placement) -> Answer:
    query = shape.query
    key = end_key(design, placement.ends[0]) if placement.form == "link" else row_key(design, placement)
    if placement.form == "versions":
        parts = ", ".join(dict.fromkeys(cell for _, cell in placement.cells if cell.endswith(":latest")))
        call = f"{placement.table}: mutate {key}, one step if meta:versioncount is as read: {parts}, the same under <n>"
        return Answer(shape, "yes", call, ("R1",))
    if placement.form == "link":
        end, other = placement.ends
        family = link_family(design.sql(placement.sql), other, placement.family)
        back = link_family(design.sql(placement.sql), end, placement.family)
        target = short_name(design.schema, other.target)
        call = f"{placement.table}: put {key}, {family}:<key of {target}>; a trigger keeps {target} {back}"
        return Answer(shape, "yes", call, ("R5",))
    if placement.form == "columns":
        return Answer(shape, "yes", f"{placement.table}: put {key}, {placement.cells_pattern}", (placement.rule,))
    if placement.form == "family":
        return Answer(shape, "yes", f"{placement.table}: put {key}, family {placement.family}", (placement.rule,))
    counted = f"; increment {', '.join(_cells(placement, query.counters))}" if query.counters else ""
    sql = design.sql(placement.sql)
    is_unique = sql.automatic not in (*placement.key, *placement.member) and any(
        set(one) <= {*placement.key, *placement.member} for one in sql.unique_keys
    )
    put = "check_and_mutate, if the row is absent: put" if query.is_refused and is_unique else "put"
    call = f"{placement.table}: {put} {key}{member_tail(design, placement)}{counted}"
    return Answer(shape, "yes", call, (placement.rule,))


def _update(design: Design, shape: Shape, placement: Placement, path: Path) -> Answer:
    query = shape.query
    cells = _cells(placement, query.writes)
    if set(query.writes) & {*placement.key, *placement.member}:
        moved = "the row's key changes: put a new row, if there is none, and delete the old one: two steps"
        made = _at_rows(design, shape, placement, path, moved)
        return replace(made, served="program", rules=tuple(dict.fromkeys((*made.rules, "R7"))))
    shown = ", ".join(cells)
    verb = "increment" if query.counters and set(query.counters) == set(query.writes) else "put"
    return _at_rows(design, shape, placement, path, f"{verb} {shown}")


def _delete(design: Design, shape: Shape, placement: Placement, path: Path) -> Answer:
    query = shape.query
    ranged = query.columns_with(placement.sql, frozenset({"range"}))
    is_old = ranged and placement.has_own_rows and design.sql(placement.sql).kind_of(ranged[0]) in ("time", "integer")
    if is_old and not query.equal_columns(placement.sql):
        call = (
            f"{placement.table}: no call; ttl= of its families, if {ranged[0]} is the age of a row; else an index by it"
        )
        question = (
            f"Do rows of {placement.table} end at a fixed age of {ranged[0]}? Then ttl= on their families deletes them."
        )
        return Answer(shape, "program", call, ("R6",), question=question)
    what = (
        "the row" if placement.has_own_rows and placement.form != "link" else f"family {placement.family}, or its cell"
    )
    if placement.form == "link":
        what = "the cells of the links; a trigger removes their other ends"
    return _at_rows(design, shape, placement, path, f"delete {what}")


def _at_rows(design: Design, shape: Shape, placement: Placement, path: Path, change: str) -> Answer:
    """Return the answer for a change of the rows that a path finds."""
    check = _check(design, shape.query, placement, path)
    if path.rank != ROW:
        checked = f"{check}: {change}" if check else change
        rules = (*path.rules, "R7")
        return Answer(shape, "program", f"{path.call}; for each: {checked}", rules, (path.index,) if path.index else ())
    rules = tuple(dict.fromkeys((*path.rules, placement.rule)))
    keys = f"each of {path.key}" if path.is_many else path.key
    carried = f"; the program carries it in place of {path.used[0]}" if path.is_carried else ""
    call = f"{placement.table}: {keys}: {f'{check}: ' if check else ''}{change}{carried}"
    return Answer(shape, "program" if path.is_carried else "yes", call, rules)


def _check(design: Design, query: Query, placement: Placement, path: Path) -> str:
    """Return the condition that a row is changed by, if the statement has one beside the row's name (R7)."""
    # an index follows its table some milliseconds later: what was found by it is compared again
    used = (*placement.key, *placement.member) if path.index else path.used
    left = [
        one
        for one in query.conditions
        if one.column[0] == placement.sql and one.column[1] not in (*used, placement.flag)
    ]
    if not left:
        return ""
    names = ", ".join(dict.fromkeys(placement.cell_of(one.column[1]) or one.column[1] for one in left))
    sql = design.sql(placement.sql)
    is_compared = all(  # as bytes, so that no number is less than another
        one.test in ("=", "null", "filled") or (one.test == "range" and sql.kind_of(one.column[1]) not in NUMERIC)
        for one in left
    )
    if is_compared and all(placement.cell_of(one.column[1]) for one in left):
        return f"check_and_mutate, if {names} is as the statement says"
    return f"read {names} and decide, then check_and_mutate, if it is as it was read"


def _cells(placement: Placement, columns: tuple[str, ...]) -> list[str]:
    return list(dict.fromkeys(cell for column in columns if (cell := placement.cell_of(column))))


# --- R7 ------------------------------------------------------------------------------------------


def steps_of(design: Design) -> tuple[Step, ...]:
    """Return the transactions of the log that write, with what may be seen half done."""
    by_text = {one.text: one.query for one in design.workload.shapes}
    return tuple(_step(design, texts, count, by_text) for texts, count in design.workload.transactions)


def _step(design: Design, texts: tuple[str, ...], count: int, by_text: dict[str, Query]) -> Step:
    queries = [by_text[text] for text in texts if text in by_text and by_text[text].tables]
    placements = {one.sql: one for one in (design.placement(query.tables[0]) for query in queries)}
    tables = list(dict.fromkeys(one.table for one in placements.values() if one.table))
    if len(tables) <= 1:
        is_same = len(placements) == 1 or all(
            not one.has_own_rows or one.form != "under" for one in placements.values()
        )
        table = tables[0] if tables else "none"
        if is_same and len(queries) <= 1:
            return Step(texts, count, True, f"one row of {table}: written as a step, if the statement names one row")
        return Step(
            texts, count, is_same,
            f"rows of {table}: one step if all statements name the same row (`mutate`); else a group of rows"
            f" (`ROW_GROUP`, docs/row-groups.md) whose keys begin alike",
        )  # fmt: skip
    read = {one: sum(s.count for s in design.workload.of_table(one) if s.query.verb == "select") for one in placements}
    last = placements[max(placements, key=lambda one: (placements[one].form in ("rows", "versions"), read[one]))].table
    others = ", ".join(one for one in tables if one != last)
    return Step(
        texts, count, False,
        f"rows of {', '.join(tables)}: a reader may see some of them written and others not. Write {others} first and"
        f" {last} last, so that nothing refers to what is missing; or write {last} alone, and let a trigger follow in"
        f" {others}; mark rows as inactive instead of deleting them",
    )  # fmt: skip
