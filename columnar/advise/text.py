"""The adviser's page (pure): tables, triggers, commands, a line for every query, questions for a person.

Invariants:
    A1. Every shape of the log has a line, and the counts of the lines and of what was not read are the log's.
    A2. The same input gives the same text: nothing depends on the order of sets, on a clock or on a file's path.

The text says what was assumed and what a person must answer; it never says that a design is finished.

Knows nothing of SQL.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from columnar.advise.access import (
    Answer,
    IndexTable,
    ViewOf,
    entry_part,
    is_ordered,
    member_tail,
    part,
    row_key,
)
from columnar.advise.functions import StoreTable, commands, functions, imports, is_counter, merged_views, store_tables
from columnar.advise.relations import bare
from columnar.advise.rules import Design, Placement, link_family
from columnar.advise.schema import Index, singular
from columnar.advise.shapes import SHAPES
from columnar.advise.writes import answers, steps_of

_WORDS = {"yes": "served", "program": "by the program", "no": "NOT SERVED", "nothing": "nothing to serve"}
_RULES = (
    ("R1", "a main table: the key is the column that equality asks for most; an automatic id is left out"),
    ("R2", "one to one: a family in the row"),
    ("R3", "one to many: columns in the row if few, else rows with the parent's key first"),
    ("R4", "many to one: the other row's key, or a copy of what queries show"),
    ("R5", "many to many: a family in both rows"),
    ("R6", "another access path: an index table kept by a trigger; counts and sums: a view"),
    ("R7", "changes of several rows: what may be seen half done"),
    ("R8", "order: a scan, reversed for descending, or the program sorts"),
    ("R9", "full text, free joins, LIKE '%x': not served"),
)


def page(design: Design) -> str:
    """Return the page, in Markdown."""
    found = answers(design)
    indexes = tuple(dict.fromkeys(index for one in found for index in one.indexes))
    views = merged_views(view for one in found for view in one.views)
    parts = [
        *_head(design, found),
        *_tables(design, indexes),
        *_left_out(design),
        *_references(design),
        *_sql_indexes(design, found),
        *_code(design, indexes),
        *_commands(design, indexes, views),
        *_queries(design, found),
        *_transactions(design),
        *_assumed(design, found),
        *_questions(design, found),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _head(design: Design, found: Sequence[Answer]) -> Iterator[str]:
    workload = design.workload
    yield from ("# A first design, with its assumptions and questions", "")
    tables = f"{len(design.schema.tables)} tables of SQL"
    if workload.is_given:
        total = sum(one.shape.count for one in found) + workload.beyond
        yield f"Read: {tables}, {total} statements of {len(found)} shapes."
        counts = Counter[str]()
        shapes = Counter[str]()
        for one in found:
            counts[one.served] += one.shape.count
            shapes[one.served] += 1
        for served, words in _WORDS.items():
            yield f"* {words}: {_number(counts[served], 'statement')} of {_number(shapes[served], 'shape')}"
        if workload.beyond:
            yield f"* NOT READ: {workload.beyond} statements of further shapes, after the first {SHAPES}"
        if workload.other_lines:
            yield f"* {workload.other_lines} entries of the log are no statements (Connect, Quit and the like)"
    else:
        yield f"Read: {tables}, no log of queries. The keys are guessed from the indexes; a log (`--queries`) decides."
    if design.schema.unread:
        yield from ("", "Statements of the schema that were not read:", "")
        yield from (f"* `{one}`" for one in design.schema.unread)
    yield from (
        "",
        'A person must judge this page: "Assumed" and "Questions", at its end, say where. Its rules are those by which',
        "a wiki on MySQL was ported to HBase:",
        "",
    )
    yield from ("| rule | says |", "|---|---|")
    yield from (f"| {name} | {says} |" for name, says in _RULES)
    yield ""


# --- tables --------------------------------------------------------------------------------------


def _tables(design: Design, indexes: Sequence[IndexTable]) -> Iterator[str]:
    yield from ("## Tables", "")
    for table in store_tables(design):
        yield from _table(design, table)
    for index in indexes:
        placement = design.placement(index.sql)
        parts = [entry_part(design, placement, one) for one in index.equal]
        parts += [part(design, index.sql, one) for one in index.order]
        row = "/".join(parts) + (f"/<key of {placement.table}>" if index.order else "")
        cell = "k:key, the key" if index.order else f"k:<key of {placement.table}>, one for each row"
        yield from (f"### {index.name}", "", f"An index of `{index.sql}` (R6). Row: `{row}`. Cells: {cell}.", "")


def _table(design: Design, table: StoreTable) -> Iterator[str]:
    yield from (f"### {table.name}", "")
    main = next((one for one in table.placements if one.has_own_rows), None)
    if main is not None:
        yield f"Row: `{row_key(design, main)}{member_tail(design, main)}` ({main.rule}), {main.why}."
        yield ""
    yield from ("| cell | of SQL | rule |", "|---|---|---|")
    for placement in table.placements:
        yield from _cell_rows(design, placement)
    for other in design.placements:
        if other.form == "link":
            yield from _link_rows(design, table, other)
    yield ""
    if main is not None:
        yield from (f"Example row: {_example(design, main, table)}", "")
    for placement in table.placements:
        if placement is not main:
            yield f"`{placement.sql}` ({placement.rule}): {placement.why}."
        yield from (f"`{placement.sql}.{column}` is gone: {why}." for column, why in placement.gone)
    yield ""


def _cell_rows(design: Design, placement: Placement) -> Iterator[str]:
    if placement.form == "link":
        return
    merged: dict[str, list[str]] = {}
    for column, cell in placement.cells:
        merged.setdefault(cell, []).append(column)
    for cell, columns in merged.items():
        older = f", `{cell.partition(':')[0]}:<n>` for older versions" if is_version(placement, cell) else ""
        packed = " as JSON" if len(columns) > 1 else ""
        yield f"| `{cell}`{older} | {placement.sql}: {', '.join(columns)}{packed} | {placement.rule} |"
    if placement.form == "versions":
        yield f"| `meta:versioncount` | the number of versions of {placement.sql} | R1 |"
    if not placement.cells:
        family = placement.family or "meta"
        member = "-".join(f"<{bare(design.sql(placement.sql), one)}>" for one in placement.member) or "row"
        yield f"| `{family}:{member}` | {placement.sql}: that the row is there | {placement.rule} |"


def is_version(placement: Placement, cell: str) -> bool:
    return placement.form == "versions" and cell.endswith(":latest") and not cell.startswith("meta:")


def _link_rows(design: Design, table: StoreTable, placement: Placement) -> Iterator[str]:
    for at, end in enumerate(placement.ends):
        if design.placement(end.target).table != table.name:
            continue
        other = placement.ends[1 - at]
        family = link_family(design.sql(placement.sql), other, placement.family)
        value = ", ".join(column for column, _ in placement.cells) or "1"
        by = "the program writes it" if at == 0 else "a trigger keeps it"
        key = f"<key of {design.placement(other.target).table}>"
        yield f"| `{family}:{key}` | {placement.sql}: {', '.join(other.columns)} ({value}); {by} | {placement.rule} |"


def _example(design: Design, main: Placement, table: StoreTable) -> str:
    key = row_key(design, main) + "".join(f"/<{one}>" for one in main.member)
    cells = [cell for placement in table.placements for _, cell in placement.cells if placement.form != "link"]
    shown = list(dict.fromkeys(cells))[:4]
    values = ", ".join(f"`{cell}` = ..." for cell in shown) or "`meta:row` = 1"
    return f"`{key}`: {values}"


def _left_out(design: Design) -> Iterator[str]:
    unused = [one for one in design.placements if one.form == "unused"]
    if unused:
        yield from ("## Left out", "")
        yield from (f"* `{one.sql}`: {one.why}" for one in unused)
        yield ""


def _references(design: Design) -> Iterator[str]:
    if design.references:
        yield from ("## References", "", "| columns | name a row of | evidence |", "|---|---|---|")
        for one in design.references:
            yield f"| {one.table}: {', '.join(one.columns)} | {one.target}: {', '.join(one.targets)} | {one.evidence} |"
        yield ""


def _sql_indexes(design: Design, found: Sequence[Answer]) -> Iterator[str]:
    """Say what becomes of each index of SQL: an access path that the program may have come to need."""
    yield from ("## Indexes of SQL", "", "| index | becomes |", "|---|---|")
    made = {index for one in found for index in one.indexes}
    for placement in design.placements:
        for index in design.sql(placement.sql).indexes:
            name = f"{placement.sql}: {', '.join(index.columns)}{' (full text)' if index.is_full_text else ''}"
            yield f"| {name} | {_becomes(design, placement, index, made)} |"
    yield ""


def _becomes(design: Design, placement: Placement, index: Index, made: set[IndexTable]) -> str:
    columns = index.columns
    if placement.form == "unused":
        return "left out with its table"
    if index.is_full_text:
        return "nothing: no call searches texts (R9)"
    tables = [one.name for one in made if one.sql == placement.sql and columns[0] in (*one.equal, *one.order)]
    if design.sql(placement.sql).automatic in columns and len(columns) == 1 and columns != placement.key:
        if tables:
            return " and ".join(f"`{one}`" for one in sorted(tables))
        is_part = columns[0] in placement.member
        return "nothing: no query asks by it alone" if is_part else "nothing: the key takes the place of the id"
    if tables and columns[0] not in placement.key:
        return " and ".join(f"`{one}`" for one in sorted(tables))
    if set(columns) <= {*placement.key, *placement.member} or placement.form == "link":
        return f"the row of `{placement.table}`" if placement.has_own_rows else f"the cells of `{placement.table}`"
    if placement.flag in columns:
        return "the columns `latest`"
    return "nothing: no query needs it" if design.workload.is_given else "an index table, if a query asks by it (R6)"


# --- code ----------------------------------------------------------------------------------------


def _code(design: Design, indexes: Sequence[IndexTable]) -> Iterator[str]:
    found = functions(design, indexes)
    if not found:
        return
    yield from ("## Triggers", "", "To be read, completed where it says TODO, and tested (docs/triggers.md).", "")
    yield from ("```python", imports(found), "")
    for one in found:
        yield from ("", one, "")
    yield from ("```", "")


def _commands(design: Design, indexes: Sequence[IndexTable], views: Sequence[ViewOf]) -> Iterator[str]:
    yield from ("## Commands", "", "```")
    yield from commands(design, indexes, views)
    if functions(design, indexes):
        yield "columnar trigger sync my_triggers"
    yield from ("```", "")


# --- queries -------------------------------------------------------------------------------------


def _queries(design: Design, found: Sequence[Answer]) -> Iterator[str]:
    if not design.workload.is_given:
        return
    yield from ("## Queries", "", "| count | query | | how | rule |", "|---|---|---|---|---|")
    for one in found:
        how = f"{_WORDS[one.served]} | {_cell(one.call)} | {' '.join(one.rules)}"
        yield f"| {one.shape.count} | {_code_span(one.shape.text)} | {how} |"
    if design.workload.beyond:
        yield f"| {design.workload.beyond} | further shapes | NOT READ | split the log, or remove what is generated | |"
    yield ""


def _transactions(design: Design) -> Iterator[str]:
    steps = steps_of(design)
    if not design.workload.is_given:
        return
    yield from ("## Transactions", "")
    if not steps:
        yield from ("The log has no transaction that writes.", "")
        return
    yield from ("| count | statements | what the store makes of them (R7) |", "|---|---|---|")
    for one in steps:
        yield f"| {one.count} | {'; '.join(_code_span(text) for text in one.shapes)} | {one.text} |"
    yield ""


# --- what a person must know ---------------------------------------------------------------------


def _assumed_of_orders(design: Design, found: Sequence[Answer]) -> Iterator[str]:
    """Say in which order rows come, and which rows an index or a view leaves out."""
    yield "* Text is compared and sorted by its bytes: `B` before `a`, and `a` is not `A`, whatever SQL's collation."
    used = [one for one in design.placements if one.form != "unused"]
    columns = [(one, column) for one in used for column in design.sql(one.sql).columns]
    if any(column.kind == "time" for _, column in columns):
        yield (
            "* Dates and times are text whose bytes sort as they do: `2026-01-02 10:00:00`, all in one time zone and of"
            " one length; no time of day is below 0 or above 99:59:59."
        )
    numbers = [
        f"{one.sql}.{column.name}"
        for one, column in columns
        if is_ordered(design, one.sql, column.name) and _is_in_order(one, column.name, found)
    ]
    if numbers:
        yield (
            f"* Numbers in keys sort as numbers, also below 0: {', '.join(numbers)} as `ordered(n)`. For a whole number"
            " it is `%020d` of n + 2**63; for a decimal `%039d` of n without its point, plus 10**38; for a float"
            " its bits as 16 hex digits, the sign flipped. As plain text 10 would stand before 9. A program makes keys,"
            " and bounds of scans, the same way."
        )
    counters = [f"`{one.cell_of(column.name)}` of {one.table}" for one, column in columns
                if one.cell_of(column.name) and is_counter(design, one.sql, column.name)]  # fmt: skip
    if counters:
        yield f"* Statements add to {', '.join(counters)}: counters of 8 bytes, and a put writes them so, not as text."
    if any(one.indexes for one in found):
        yield "* A row that lacks a cell (NULL in SQL) is in no index table for it, and in no group of a view by it."
        yield "* Index tables and views follow some milliseconds later: a row found by an index may have changed since."


def _is_in_order(one: Placement, column: str, found: Sequence[Answer]) -> bool:
    """Whether a column is in the key of a row, or in the order of an index table."""
    is_part = one.has_own_rows and column in (*one.key, *one.member) and not (one.is_hashed and column in one.key)
    return is_part or any(index.sql == one.sql and column in index.order for a in found for index in a.indexes)


def _assumed(design: Design, found: Sequence[Answer]) -> Iterator[str]:
    yield from ("## Assumed", "")
    if design.workload.is_given:
        yield "* The log is a fair sample: a query that it lacks has no path here."
    yield "* Cells hold text; a key of several columns joins them with `/`, so no part but the last has a `/` in it."
    yield from _assumed_of_orders(design, found)
    for one in design.placements:
        if one.is_hashed and one.has_own_rows and one.form != "under":
            kinds = {design.sql(one.sql).kind_of(name) for name in one.key}
            why = "its values rise, and all new rows would be in one region" if kinds & {"integer", "time"} else (
                "rows are large, and hardly any query reads them in the order of the key"
            )  # fmt: skip
            yield f"* {one.table}: the key is hashed, because {why}."
        elif one.form == "rows" and re.search(r"time|date", one.key[0].lower()):
            yield f"* {one.table}: rows in the order of {one.key[0]}, so all new ones are in one region."
        if one.form == "columns":
            yield f"* {one.sql}: few for one {singular(design.placement(one.parent).table)}, some thousand at most."
        if one.form == "under":
            key = row_key(design, one) + member_tail(design, one)
            yield f"* {one.table}: `{key}` differs for any two rows; else a number or a token ends it."
        if one.form == "versions":
            yield f"* {one.sql}: some hundred versions of one {' '.join(one.key)} at most."
        if "-" in one.cells_pattern and one.form == "columns":
            yield f"* {one.sql}: `{one.cells_pattern}` differs for any two of them; {one.member[0]} has no `-`."
    for link in design.references:
        if link.evidence.startswith("its name"):
            yield f"* {link.table}.{', '.join(link.columns)} names a row of {link.target}, judged by {link.evidence}."
    yield ""


def _questions(design: Design, found: Sequence[Answer]) -> Iterator[str]:
    yield from ("## Questions", "", "Only a person can answer these; each may change the design.", "")
    number = 0
    for number, text in enumerate(dict.fromkeys([*_of_placements(design), *_of_answers(found)]), 1):
        yield f"{number}. {text}"
    if not number:
        yield "None that the adviser knows of. It knows the statements, not the program."


def _of_placements(design: Design) -> Iterator[str]:
    for one in design.placements:
        if one.form == "unused":
            yield f"Does the program need `{one.sql}`? No query of the log names it."
        elif one.form == "columns":
            parent = singular(design.placement(one.parent).table)
            yield (
                f"How many rows of `{one.sql}` can one {parent} have? If more than some thousand: a table of its"
                f" own, with rows `{row_key(design, one)}/{'/'.join(one.member) or '<n>'}`."
            )
        elif one.form == "under":
            parent = singular(design.placement(one.parent).table)
            few = f"a family in the rows of {design.placement(one.parent).table}"
            yield f"How many rows of `{one.sql}` can one {parent} have? If few: {few}."
        elif one.form == "versions":
            yield (
                f"How many versions can a row of {one.table} have, and how large are they? If many: a table of"
                f" versions, with rows `{row_key(design, one)}/<n>`."
            )
        if one.form in ("rows", "versions") and design.sql(one.sql).automatic not in one.key:
            yield from _of_key(design, one)
        elif one.form == "rows" and design.sql(one.sql).automatic:
            yield f"Where do new ids of {one.table} come from? The store counts none up: a random id, or a counter."
        if one.form == "link":
            yield f"May a row of `{one.sql}` name what is not there? Its family then makes a row without other cells."


def _of_key(design: Design, one: Placement) -> Iterator[str]:
    columns = " and ".join(one.key)
    changed = [
        shape for shape in design.workload.of_table(one.sql)
        if shape.query.verb == "update" and set(one.key) & set(shape.query.writes)
    ]  # fmt: skip
    if changed:
        yield (
            f"`{columns}` of {one.table} changes ({_number(changed[0].count, 'statement')}): the row moves to another"
            " key. Is that rare? Else keep an id as the key, and an index table by the name."
        )
    elif any(other.target == one.sql for other in design.references):
        yield f"Can `{columns}` of {one.table} change? Then the row, and what names it, moves to another key."


def _of_answers(found: Sequence[Answer]) -> Iterator[str]:
    yield from (one.question for one in found if one.question)
    for one in found:
        if one.served == "no" and one.shape.count:
            yield f"What shall the program do instead of {_code_span(one.shape.text)}?"
        elif "copy of what is shown" in one.call:
            shown = _code_span(one.shape.text)
            yield f"How often does what {shown} shows of another table change? If hardly ever: a copy."


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _code_span(text: str) -> str:
    """Text in backticks, on one line, without a bar that would end the cell of a table."""
    plain = " ".join(text.split()).replace("`", "").replace("|", "\\|")
    return f"`{plain}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
