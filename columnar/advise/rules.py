"""The place of each table of SQL (pure): rules R1 to R5 of the thesis's section 7.

    R1  a main table: its key is the column that equality asks for most; an automatic id is left out; keys that rise,
        and keys of large rows that are hardly read in order, are hashed
    R2  one to one: a family in the row
    R3  one to many: columns in the parent's row if few, else rows that begin with the parent's key
    R4  many to one: the other row's key, or a copy of what queries show
    R5  many to many: a family in both rows

Rules R6 to R9 are about queries: ``access``.

Invariant D1: each table of the schema has one placement, in the order of the schema.

Knows nothing of text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from columnar.advise.relations import Reference, bare, link_ends, names_of, references
from columnar.advise.schema import EQUAL, Query, Schema, Table, Workload, singular

Form = Literal["rows", "versions", "family", "columns", "under", "link", "unused"]

META: Final = "meta"
ORDERED_SHARE: Final = 0.1  # of a table's queries may read it in the order of its key, and its key is hashed still
_SECRET: Final = re.compile(r"pass(word|wd)?$|password|passwd")
_ACCOUNT: Final = re.compile(r"pass|e?mail|token|salt|activation|login|secret")


@dataclass(frozen=True, slots=True)
class Placement:
    """``table``, ``family`` and cells are of the store; all other names are of the schema."""

    sql: str
    form: Form
    table: str
    key: tuple[str, ...]  # makes the row's key, or names the parent's row
    rule: str
    why: str
    is_hashed: bool = False
    parent: str = ""
    family: str = ""
    member: tuple[str, ...] = ()  # columns that name the cell within the row, or end the row's key
    cells: tuple[tuple[str, str], ...] = ()  # column, "family:qualifier"
    gone: tuple[tuple[str, str], ...] = ()  # column, why the store has none of it
    ends: tuple[Reference, ...] = ()  # two, of a link
    time: str = ""  # the column that orders versions or members
    flag: str = ""  # the column that marks the current version

    @property
    def families(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cell.partition(":")[0] for _, cell in self.cells))

    def cell_of(self, column: str) -> str:
        return dict(self.cells).get(column, "")

    @property
    def cells_pattern(self) -> str:
        """The name of a member's cell."""
        return self.cells[0][1] if self.cells else f"{self.family}:*"

    @property
    def has_own_rows(self) -> bool:
        return self.form in ("rows", "versions", "under")


@dataclass(frozen=True, slots=True)
class Design:
    schema: Schema
    workload: Workload
    references: tuple[Reference, ...]
    placements: tuple[Placement, ...]

    def placement(self, table: str) -> Placement:
        return next(one for one in self.placements if one.sql == table)

    def sql(self, table: str) -> Table:
        found = self.schema.table(table)
        assert found is not None, table
        return found

    def references_of(self, table: str) -> Iterator[Reference]:
        return (one for one in self.references if one.table == table)


def design_of(schema: Schema, workload: Workload) -> Design:
    """Return where each table goes.  Invariant D1 holds."""
    found = references(schema, workload)
    keys = {table.name: _key_of(table, found, workload) for table in schema.tables}
    placer = _Placer(schema, workload, found, keys)
    return Design(schema, workload, found, tuple(placer.place(table) for table in schema.tables))


def short_name(schema: Schema, table: str) -> str:
    return schema.short(table).lower()


def statements_with(workload: Workload, table: Table, columns: tuple[str, ...]) -> int:
    """Return how many statements compare all of ``columns`` with values; by its indexes if there is no log."""
    wanted = set(columns)
    if not workload.is_given:
        return sum(
            3 if one.is_primary else 2 if one.is_unique else 1 for one in table.indexes if set(one.columns) >= wanted
        )
    return sum(one.count for one in workload.of_table(table.name) if wanted <= _compared(one.query, table.name))


def _compared(query: Query, table: str) -> set[str]:
    """The columns that have one value when the row is read: by a condition, or by a join from another table's row."""
    own = set(query.equal_columns(table))
    driven = {one.column[0] for one in query.conditions if one.test in EQUAL and one.column[0] != table}
    for pair in query.joins:
        for mine, theirs in (pair, pair[::-1]):
            if mine[0] == table and theirs[0] in driven:
                own.add(mine[1])
    return own


def _key_of(table: Table, found: tuple[Reference, ...], workload: Workload) -> tuple[str, ...]:
    """R1: of the keys and references of a table, the one that equality asks for most."""
    natural = [one for one in table.unique_keys if table.automatic not in one]
    if not natural and table.natural_key:
        natural = [table.natural_key]
    referring = [one.columns for one in found if one.table == table.name]
    automatic: list[tuple[str, ...]] = [(table.automatic,)] if table.automatic else []
    ranked: list[tuple[int, int, int, tuple[str, ...]]] = []
    groups: tuple[list[tuple[str, ...]], ...] = (referring, natural, automatic)
    for rank, group in enumerate(groups):
        for columns in group:
            asked = statements_with(workload, table, columns)
            if group is automatic and not workload.is_given and (natural or referring):
                asked = 0
            ranked.append((-asked, rank if asked else (1, 0, 2)[rank], len(ranked), columns))
    return min(ranked)[3] if ranked else ()


class _Placer:
    """Places one table after the other; all that it reads is constant."""

    def __init__(
        self, schema: Schema, workload: Workload, found: tuple[Reference, ...], keys: dict[str, tuple[str, ...]]
    ) -> None:
        self._schema, self._workload, self._references, self._keys = schema, workload, found, keys

    def place(self, table: Table) -> Placement:
        if self._workload.is_given and not any(self._workload.of_table(table.name)):
            return Placement(
                table.name, "unused", "", (), "", "no query of the log names it: it is left out until one does"
            )
        ends = link_ends(table, self._references)
        if ends is not None and all(self._is_main(one.target) for one in ends):
            return self._link(table, ends)
        parent = self._parent_of(table)
        if parent is not None:
            return self._child(table, parent)
        return self._main(table)

    def _parent_of(self, table: Table) -> Reference | None:
        """Return the reference that is the table's key, if it names a row of a main table."""
        key = self._keys[table.name]
        for one in self._references:
            if one.table == table.name and one.columns == key and self._is_main(one.target):
                return one
        return None

    def _is_main(self, name: str) -> bool:
        table = self._schema.table(name)
        if table is None or (self._workload.is_given and not any(self._workload.of_table(name))):
            return False
        key = self._keys[name]
        return not any(one.table == name and one.columns == key for one in self._references)

    # --- R2 and R3 ---

    def _child(self, table: Table, reference: Reference) -> Placement:
        if any(frozenset(one) == frozenset(reference.columns) for one in table.unique_keys):
            return self._family(table, reference)
        many = self._why_many(table, reference)
        time, member = self._member_of(table, reference)
        parent = short_name(self._schema, reference.target)
        name = short_name(self._schema, table.name)
        if many:
            cells = self._grouped(table, {*reference.columns, *member})
            return Placement(
                table.name, "under", name, reference.columns, "R3",
                f"one {singular(parent)} has many: {many}",
                self._is_hashed(self._sql(reference.target)), reference.target, "", member, cells,
                self._gone(table, member), (), time,
            )  # fmt: skip
        family = singular(name)
        rest = [c for c in names_of(table) if c not in (*reference.columns, *member, table.automatic)]
        cells = tuple((column, f"{family}:{_pattern(table, member)}") for column in rest)
        return Placement(
            table.name, "columns", parent, reference.columns, "R3",
            f"one {singular(parent)} has several, and no query pages through them: a column for each",
            self._is_hashed(self._sql(reference.target)), reference.target, family, member, cells,
            self._gone(table, member), (), time,
        )  # fmt: skip

    def _family(self, table: Table, reference: Reference) -> Placement:
        family = singular(short_name(self._schema, table.name))
        rest = [c for c in names_of(table) if c not in (*reference.columns, table.automatic)]
        cells = tuple((column, f"{family}:{_without(bare(table, column), family)}") for column in rest)
        parent = short_name(self._schema, reference.target)
        return Placement(
            table.name, "family", parent, reference.columns, "R2",
            f"one {singular(parent)} has one of it at most: {', '.join(reference.columns)} is unique and names the row",
            self._is_hashed(self._sql(reference.target)), reference.target, family, (), cells,
            self._gone(table, ()),
        )  # fmt: skip

    def _why_many(self, table: Table, reference: Reference) -> str:
        """Return why a row may have too many of them for columns, or an empty string."""
        inserted = read = 0
        for shape in self._workload.of_table(table.name):
            query = shape.query
            has_parent = set(reference.columns) <= set(query.equal_columns(table.name))
            if query.verb == "select" and has_parent and query.is_paged:
                return "a query pages through them (ORDER BY with LIMIT)"
            inserted += shape.count if query.verb == "insert" else 0
            read += shape.count if query.verb == "select" else 0
        referring = [one.table for one in self._references if one.target == table.name]
        if referring:
            return f"rows of {', '.join(dict.fromkeys(referring))} refer to them"
        return "they are written more often than read" if inserted > read else ""

    def _member_of(self, table: Table, reference: Reference) -> tuple[str, tuple[str, ...]]:
        """Return the column that orders members, and all that name one of them."""
        for key in table.unique_keys:
            rest = tuple(one for one in key if one not in reference.columns)
            if set(reference.columns) <= set(key) and table.automatic not in rest:
                return "", rest
        time = self._time_of(table)
        others = [one.columns for one in self._references if one.table == table.name and one != reference]
        is_named = any(one.target == table.name and table.automatic in one.targets for one in self._references)
        last = (table.automatic,) if table.automatic else ()
        named = tuple(
            column for columns in others for column in columns if not time or table.kind_of(column) != "integer"
        )
        if time:
            return time, (time, *(last if is_named else named))
        compared = [
            column
            for shape in self._workload.of_table(table.name)
            for column in shape.query.equal_columns(table.name)
            if column not in reference.columns and table.kind_of(column) in ("text", "bytes")
        ]
        return "", tuple(dict.fromkeys([*compared, *last])) or named

    def _time_of(self, table: Table) -> str:
        ordered = [c for s in self._workload.of_table(table.name) for t, c in s.query.order if t == table.name]
        times = [
            one.name for one in table.columns if one.kind == "time" or re.search(r"time(stamp)?$", one.name.lower())
        ]
        return next((one for one in ordered if one in times), times[0] if times else "")

    # --- R5 ---

    def _link(self, table: Table, ends: tuple[Reference, Reference]) -> Placement:
        one, other = ends
        name = singular(short_name(self._schema, table.name))
        both = {*one.columns, *other.columns}
        rest = [column for column in names_of(table) if column not in both]
        said = f"rows of {one.target} and {other.target}" if one.target != other.target else f"rows of {one.target}"
        cells = tuple((column, f"{self._link_family(table, other, name)}:*") for column in rest)
        return Placement(
            table.name, "link", short_name(self._schema, one.target), one.columns, "R5",
            f"it joins {said}, and either end may be asked for: a family in both rows",
            self._is_hashed(self._sql(one.target)), one.target, name, other.columns, cells, (), ends,
        )  # fmt: skip

    def _link_family(self, table: Table, end: Reference, name: str) -> str:
        return link_family(self._sql(table.name), end, name)

    # --- R1 ---

    def _main(self, table: Table) -> Placement:
        key = self._keys[table.name]
        name = short_name(self._schema, table.name)
        if not key:
            key = tuple(names_of(table))[:1]
        flag = self._flag_beside(table, key)
        is_unique = any(set(one) <= set(key) for one in table.unique_keys)
        asked = statements_with(self._workload, table, key)
        why = f"asked for by `=` in {asked} statements"
        if not self._workload.is_given:
            why = "guessed from the indexes"
        if not is_unique and flag:
            return self._versions(table, key, flag, why)
        member: tuple[str, ...] = ()
        if not is_unique:
            member = (table.automatic,) if table.automatic else tuple(names_of(table))[1:2]
            why += "; several rows may have the same, so a number follows"
        is_hashed = self._is_hashed(table)
        cells = (*self._key_cells(table, key, is_hashed), *self._grouped(table, {*key, *member}))
        if table.automatic in key:
            why += "; the id stays: nothing else names a row" + (" that is asked for as often" if asked else "")
        return Placement(
            table.name, "rows", name, key, "R1", why, is_hashed, "", "", member, cells,
            self._gone(table, (*key, *member)), (), self._time_of(table),
        )  # fmt: skip

    def _versions(self, table: Table, key: tuple[str, ...], flag: str, why: str) -> Placement:
        time = self._time_of(table)
        varying = self._varying(table, {*key, flag, time, table.automatic})
        cells = list(self._key_cells(table, key, self._is_hashed(table)))
        for column in names_of(table):
            if column in varying:
                cells.append((column, f"{bare(table, column)}:latest"))
            elif column not in (*key, flag, table.automatic):
                cells.append((column, f"{META}:{bare(table, column)}"))
        gone = (*self._gone(table, key), (flag, "the newest version is in the columns `latest`"))
        why += f"; rows with one {' and '.join(key)} are versions of it, and {flag} marks the newest"
        return Placement(
            table.name, "versions", short_name(self._schema, table.name), key, "R1", why, self._is_hashed(table),
            "", "", (), tuple(cells), gone, (), time, flag,
        )  # fmt: skip

    def _key_cells(self, table: Table, key: tuple[str, ...], is_hashed: bool) -> tuple[tuple[str, str], ...]:
        """The key's columns, if it is hashed and a query lists rows without naming them: a hash cannot be shown."""
        listed = [
            shape
            for shape in self._workload.of_table(table.name)
            if shape.query.verb == "select" and not set(key) <= set(shape.query.equal_columns(table.name))
        ]
        return tuple((name, f"{META}:{bare(table, name)}") for name in key) if is_hashed and listed else ()

    def _varying(self, table: Table, others: set[str]) -> set[str]:
        """The columns that each version has anew: inserted with it, and never set for the key alone."""
        inserted: set[str] = set()
        fixed: set[str] = set()
        for shape in self._workload.of_table(table.name):
            if shape.query.verb == "insert":
                inserted |= set(shape.query.writes)
            elif shape.query.verb == "update":
                fixed |= set(shape.query.writes)
        if not inserted:
            inserted = {one.name for one in table.columns if one.kind in ("large", "text")}
        return inserted - fixed - others

    def _flag_beside(self, table: Table, key: tuple[str, ...]) -> str:
        """The flag that queries compare beside the key; without a log one that is named after what is newest."""
        flags = [one.name for one in table.columns if one.kind == "flag"]
        for shape in self._workload.of_table(table.name):
            compared = set(shape.query.equal_columns(table.name))
            if set(key) <= compared:
                for flag in flags:
                    if flag in compared:
                        return flag
        newest = [one for one in flags if re.search(r"latest|newest|current|is_last", one.lower())]
        return newest[0] if newest and not self._workload.is_given else ""

    def _grouped(self, table: Table, named: set[str]) -> tuple[tuple[str, str], ...]:
        """R1: similar columns in one family: large texts, the account's secrets and address, all others."""
        rest = [one for one in table.columns if one.name not in named and one.name != table.automatic]
        is_account = any(_SECRET.search(one.name.lower()) for one in rest)
        cells = []
        for one in rest:
            name = bare(table, one.name)
            family = META
            if is_account:
                family = "account" if _ACCOUNT.search(name) else "settings"
            elif one.kind == "large":
                family = name
            cells.append((one.name, f"{family}:{'text' if family == name else name}"))
        return tuple(cells)

    def _gone(self, table: Table, kept: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        if not table.automatic or table.automatic in kept:
            return ()
        return ((table.automatic, "the store counts no ids up, and the key names the row"),)

    def _is_hashed(self, table: Table) -> bool:
        key = self._keys[table.name]
        kinds = {table.kind_of(name) for name in key}
        if len(key) == 1 and kinds & {"integer", "time"}:
            return True
        if not any(one.kind == "large" for one in table.columns):
            return False
        queries = [one for one in self._workload.of_table(table.name) if one.query.verb == "select"]
        ordered = sum(one.count for one in queries if is_in_key_order(one.query, table.name, key))
        return ordered <= ORDERED_SHARE * sum(one.count for one in queries)

    def _sql(self, name: str) -> Table:
        found = self._schema.table(name)
        assert found is not None, name
        return found


def is_in_key_order(query: Query, table: str, key: tuple[str, ...]) -> bool:
    """Whether a query reads a range of keys, their beginnings, or all in their order."""
    if set(key) <= set(query.equal_columns(table)):
        return False
    ranged = {one.column[1] for one in query.conditions if one.column[0] == table and one.test in ("range", "prefix")}
    ordered = {name for of, name in query.order if of == table}
    return bool((ranged | ordered) & set(key))


def link_family(table: Table, end: Reference, name: str) -> str:
    """Return the family, in the other end's row, of the keys of ``end``: ``link_to`` of ``to_tag``."""
    if len(end.columns) > 1:
        return f"{name}_to"
    column, key = bare(table, end.columns[0]), end.targets[0].lower()
    stem = re.sub(rf"_?({re.escape(key)}|id)$", "", column) or column
    return stem if len(stem) > 4 and stem not in ("source", "target") else f"{name}_{stem}"


def _without(name: str, family: str) -> str:
    stem = re.sub(rf"^{re.escape(family)}_|_{re.escape(family)}$", "", name)
    return stem or name


def _pattern(table: Table, member: tuple[str, ...]) -> str:
    return "-".join(f"<{bare(table, one)}>" for one in member) or "<n>"
