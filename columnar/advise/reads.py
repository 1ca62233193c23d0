"""The calls that serve a query that reads (pure): rules R4, R8 and R9 of the thesis's section 7.

    R4  many to one: a get of the other row by its key, or a copy of what the query shows
    R8  order: a scan (reversed for descending), or "sort in the program"
    R9  full text, ``LIKE '%x'``, free joins: not served, and what to do instead

A query is driven by the table whose row is known, else by the table with the best path.  The others follow by joins.

Invariants:
    A0. Each query has one answer, and an answer says why.
    A4. An answer is "served" only if objects of the design answer the whole query: ``unmet`` compares what each path
        and each total needs with what the table, the index table and the view have.

Knows nothing of text beyond one line for each answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from columnar.advise.access import (
    ALL,
    CELL,
    INDEX,
    ORDERED,
    ROW,
    Answer,
    IndexTable,
    Path,
    Served,
    best_path,
    entry_part,
    filtered,
    index_of,
    member_tail,
    row_key,
)
from columnar.advise.relations import Reference
from columnar.advise.rules import Design, Placement, link_family
from columnar.advise.schema import ColumnOf, Query, Shape
from columnar.advise.totals import answer_by_view, is_named

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
    "a query within the query": "instead: two statements, the inner one first; put both into the log for their calls",
    "a window over rows": "instead: read the rows, and the program reckons",
    "a join on one side of OR": "instead: a statement for each side of OR",
}
# obstacles that the program takes on, with several calls
_BY_PROGRAM: Final = {
    "OR within a query of OR": "the program checks the other OR on the rows",
    "HAVING": "HAVING is checked by the program on the groups",
    "an order by what is computed": "the program sorts",
    "a condition on what a function makes of a column": "the program checks the function's condition on the rows",
    "a group by what a function makes": "the program makes the groups",
}


@dataclass(frozen=True, slots=True)
class _Step:
    """How the rows of a joined table follow from those that were read."""

    call: str
    rule: str
    index: IndexTable | None = None
    used: tuple[str, ...] = ()


def answer_of_read(design: Design, shape: Shape) -> Answer:
    """Return the answer for a SELECT that names tables of the schema.  Invariants A0 and A4 hold."""
    made = _answer(design, shape, shape.query)
    why = unmet(design, shape.query, made) if made.served == "yes" else ""
    return Answer(shape, "no", f"{why}; instead: an access path by hand", ("R9",)) if why else made


def _answer(design: Design, shape: Shape, query: Query) -> Answer:
    for obstacle in query.obstacles:
        if obstacle in _NOT_SERVED:
            return Answer(shape, "no", f"{obstacle}: {_NOT_SERVED[obstacle]}", ("R9",))
    within = [one.column[1] for one in query.tested if one.test == "within"]
    if within:
        return Answer(shape, "no", f"LIKE with % before the text, on {within[0]}: {WORDS_INSTEAD}", ("R9",))
    if query.parts:
        return _merged(shape, query, "UNION", [_answer(design, shape, one) for one in query.parts])
    if query.totals or query.groups or "DISTINCT" in query.obstacles:
        path = best_path(design, query)
        if path.rank > CELL and not _absent(query):
            made = answer_by_view(design, shape, query, path)
            if made.served != "no" or query.sides or path.rank == ALL or (path.rank == ORDERED and not path.used):
                return made
    if query.sides:
        return _by_sides(design, shape, query)
    return _with_joins(design, shape, query, best_path(design, query))


# --- OR and UNION --------------------------------------------------------------------------------


def _by_sides(design: Design, shape: Shape, query: Query) -> Answer:
    plain = replace(query, sides=(), obstacles=tuple(one for one in query.obstacles if one != "OR"))
    sides = [replace(plain, conditions=tuple(dict.fromkeys([*query.conditions, *side]))) for side in query.sides]
    if any(best_path(design, one).rank == ALL for one in sides):
        made = _with_joins(design, shape, plain, best_path(design, plain))
        return made if made.served == "no" else replace(
            made, served="program", call=f"{made.call}; the program checks OR on the rows"
        )  # fmt: skip
    return _merged(shape, query, "OR", [_answer(design, shape, one) for one in sides])


def _merged(shape: Shape, query: Query, word: str, found: Sequence[Answer]) -> Answer:
    """Return the answer of a query that is a read for each side of OR, or each part of UNION."""
    noun = "side" if word == "OR" else "part"
    for one in found:
        if one.served == "no":
            return Answer(shape, "no", f"a {noun} of {word}: {one.call}", one.rules, question=one.question)
    calls = list(dict.fromkeys(one.call for one in found))
    sort = f"; sort by {', '.join(column for _, column in query.order)} in the program" if query.order else ""
    return Answer(
        shape, "program", f"a read for each {noun} of {word}, merged by the program: {', and '.join(calls)}{sort}",
        tuple(sorted({rule for one in found for rule in one.rules} | {"R8"})),
        tuple(dict.fromkeys(index for one in found for index in one.indexes)),
        tuple(dict.fromkeys(view for one in found for view in one.views)),
        next((one.question for one in found if one.question), ""),
        tuple(path for one in found for path in one.paths),
    )  # fmt: skip


# --- rows, with those that are joined ------------------------------------------------------------


def _with_joins(design: Design, shape: Shape, query: Query, path: Path) -> Answer:
    steps, rules, indexes = [path.call], list(path.rules), [path.index] if path.index else []
    done, used = [path.sql], {(path.sql, column) for column in path.used}
    rest = [one for one in query.tables if one != path.sql]
    while rest:
        joined = next(((one, step) for one in rest if (step := _join_step(design, query, done, one))), None)
        if joined is None:
            instead = "instead: two reads, and the program joins; or a view with --join"
            return Answer(shape, "no", f"no key joins {rest[0]} with {', '.join(done)}; {instead}", ("R9",))
        table, step = joined
        steps.append(step.call)
        rules.append(step.rule)
        indexes += [step.index] if step.index else []
        used |= {(table, column) for column in step.used}
        done.append(table)
        rest.remove(table)
    absent, hard = _absent(query), [_BY_PROGRAM[one] for one in query.obstacles if one in _BY_PROGRAM]
    left = [] if absent else filtered(design, query, used, path)
    order = "" if not query.order or path.is_sorted else ", ".join(column for _, column in query.order)
    steps += [*left, *hard, *absent, *_last_steps(query)]
    is_cut = query.is_limited and bool(order) and path.rank != ROW
    if order:
        steps.append(
            f"sort by {order} in the program{', which reads all of them, whatever LIMIT says' if is_cut else ''}"
        )
        rules.append("R8")
    is_whole = path.rank != ALL and not path.is_carried and not hard and not absent and not is_cut
    is_whole = is_whole and not (query.totals and path.rank > CELL) and not query.sorting.totals
    served: Served = "yes" if is_whole else "program"
    patterns = [one.column[1] for one in query.conditions if one.test == "pattern"]
    question = ""
    if patterns:
        question = (
            f"Can the pattern on {patterns[0]} begin with %? As a beginning it is a scan; otherwise no call serves it."
        )
        rules.append("R9")
    call = "; ".join(dict.fromkeys(steps))
    return Answer(
        shape, served, call, tuple(sorted(set(rules))), tuple(dict.fromkeys(indexes)), (), question, (path,)
    )  # fmt: skip


def _last_steps(query: Query) -> list[str]:
    steps = []
    if query.groups:
        steps.append("the program makes the groups")
    if "DISTINCT" in query.obstacles:
        steps.append("the program drops what it has seen")
    if query.totals:
        is_count = {one.sql_text for one in query.totals} == {"count(*)"}
        steps.append("the program counts" if is_count else "the program reckons the totals")
    if "OFFSET" in query.obstacles:
        steps.append("no call skips rows: a further page begins behind the last key of the one before")
    return steps


def _absent(query: Query) -> list[str]:
    """The steps of a query for rows that lack a counterpart: LEFT JOIN with IS NULL."""
    if query.joins and any(one.test == "null" for one in query.conditions):
        return [
            "the program keeps the rows that lack, or have, the other; if it is asked often, a table kept by a trigger"
        ]
    return []


def _join_step(design: Design, query: Query, done: Sequence[str], table: str) -> _Step | None:
    """Return how the rows of ``table`` follow from those that were read; None if no key joins them."""
    placement = design.placement(table)
    found: list[tuple[bool, int, _Step]] = []
    pairs = [pair for one, other in query.joins for pair in ((one, other), (other, one))]
    pairs = [(mine, theirs) for mine, theirs in pairs if mine[0] == table and theirs[0] in done]
    known = {*query.equal_columns(table), *(mine[1] for mine, _ in pairs)}
    for mine, theirs in pairs:
        step = _step_between(design, query, placement, mine[1], theirs, known)
        if step is not None:
            found.append((" scan of " in step.call, len(found), step))
    return min(found, key=lambda one: one[:2])[2] if found else None


def _step_between(
    design: Design, query: Query, mine: Placement, column: str, their: ColumnOf, known: set[str]
) -> _Step | None:
    """Return how a row of ``mine`` follows from one of the table of ``their``, which was read."""
    theirs, their_column = design.placement(their[0]), their[1]
    if theirs.form == "link":
        read = _end_read(query, theirs)
        if read is not None and read.target == mine.sql and their_column in read.columns:
            return _Step(f"{mine.table}: the same row has it", mine.rule)
        copy = "or a copy of what is shown in the cells of the link"
        return _Step(f"{mine.table}: rows for the keys found, {copy}", "R4")
    if mine.form == "link":
        end = next((one for one in mine.ends if column in one.columns), mine.ends[0])
        other = next(one for one in mine.ends if one != end)
        family = link_family(design.sql(mine.sql), other, mine.family)
        return _Step(f"{theirs.table}: the same row has it, family {family}", "R5")
    family = f", family {mine.family}" if mine.family else ""
    if mine.table == theirs.table and column in mine.key and their_column in _key_columns(design, theirs):
        return _Step(f"{mine.table}: the same row has it{family}", mine.rule, None, mine.key)
    if mine.form in ("family", "columns") and mine.parent == theirs.sql and column in mine.key:
        return _Step(f"{theirs.table}: the same row has it{family}", mine.rule, None, mine.key)
    return _rows_of(design, mine, column, their, known)


def _rows_of(design: Design, mine: Placement, column: str, their: ColumnOf, known: set[str]) -> _Step | None:
    """Return the step to rows of ``mine`` by what cells of other rows have."""
    family = f", family {mine.family}" if mine.family else ""
    rows = f"{mine.table}: rows for the values of {their[1]}{family}, or a copy of what is shown"
    holds_key = any(one.target == mine.sql and their[1] in one.columns for one in design.references_of(their[0]))
    is_mine = any(column in one.columns for one in design.references_of(mine.sql))
    if column in mine.key and set(mine.key) <= known:
        if mine.has_own_rows and mine.member and not set(mine.member) <= known:
            begin = row_key(design, mine)
            return _Step(f"{mine.table}: for each, a scan of the keys that begin with {begin}/", "R3", None, mine.key)
        return _Step(rows, "R4", None, (*mine.key, *mine.member))
    if holds_key and (column == design.sql(mine.sql).automatic or column in mine.key):
        return _Step(rows.replace("the values of", "the keys in"), "R4")
    if not holds_key and not is_mine and column not in (*mine.key, design.sql(mine.sql).automatic):
        return None
    if column == design.sql(mine.sql).automatic and column not in (*mine.key, *mine.member):
        return None
    index = index_of(design, mine.sql, (column,), ())
    key = entry_part(design, mine, column)
    call = f"{index.name}: get {key} for each {their[1]}; {mine.table}: rows for the keys found{family}"
    return _Step(call, "R6", index, (column,))


def _end_read(query: Query, link: Placement) -> Reference | None:
    """The end of a link whose row the query names."""
    equal = set(query.equal_columns(link.sql))
    return next((one for one in link.ends if set(one.columns) <= equal), None)


def _key_columns(design: Design, placement: Placement) -> tuple[str, ...]:
    """The columns that name a placement's row: its key, and an id that stands for it."""
    automatic = design.sql(placement.sql).automatic if placement.has_own_rows else ""
    return (*placement.key, automatic) if automatic else placement.key


# --- A4 ------------------------------------------------------------------------------------------


def unmet(design: Design, query: Query, answer: Answer) -> str:
    """Return what an answer that is called served lacks, or an empty string (A4)."""
    for path in answer.paths:
        why = _unmet_by_path(design, query, path, answer.indexes)
        if why:
            return why
    if answer.views:
        placement = design.placement(answer.views[0].sql)
        for total in query.totals:
            is_filled = is_named(placement, total.column[1])
            if not any(one.gives(total, is_always_filled=is_filled) for one in answer.views):
                return f"no view has {total.sql_text}"
    elif query.totals and any(path.rank > CELL for path in answer.paths):
        ends = {path.end for path in answer.paths if path.is_sorted}
        wanted = {one.column[1] if one.kind in ("min", "max") else one.sql_text for one in query.totals}
        if wanted != ends or len(query.totals) > 1:
            return "rows alone have no totals"
    return ""


def _unmet_by_path(design: Design, query: Query, path: Path, indexes: Sequence[IndexTable]) -> str:
    placement = design.placement(path.sql)
    known = set(query.equal_columns(path.sql))
    if path.rank == ROW:
        keys = [one.columns for one in placement.ends] if placement.form == "link" else [placement.key]
        if not any(set(key) <= known for key in keys):
            return f"{' and '.join(keys[0])}, the key of {placement.table}, is not known"
        if path.key.endswith(member_tail(design, placement) or "\0") and placement.has_own_rows:
            return "" if set(placement.member) <= known else f"the end of the key of {placement.table} is not known"
    if path.rank in (INDEX, ORDERED):
        if path.index not in indexes or path.index is None:
            return f"no index table of {path.sql} is made"
        if not set(path.index.equal) <= known:
            return f"{path.index.name} needs {', '.join(path.index.equal)}"
    return "scan of all rows" if path.rank == ALL else ""
