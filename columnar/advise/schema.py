"""Tables and queries of SQL as values (pure): what the adviser knows of them.

A name of a table or column is spelled as the schema spells it.  A column of a query is a pair of table and column; the
table is empty if the schema has no such column in the tables that the query names.

Knows nothing of SQL's text, which ``parsing`` reads, nor of designs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["integer", "number", "float", "text", "large", "time", "flag", "bytes"]  # a number has fixed places
Test = Literal["=", "in", "range", "prefix", "within", "pattern", "null", "filled", "other"]
Verb = Literal["select", "insert", "update", "delete", "session", "schema", "unread"]
ColumnOf = tuple[str, str]  # table, column

EQUAL: Final = frozenset({"=", "in"})


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: Kind
    is_automatic: bool = False  # the database counts it up
    places: int = 0  # of a number, after the point


@dataclass(frozen=True, slots=True)
class Index:
    columns: tuple[str, ...]
    is_unique: bool = False
    is_primary: bool = False
    is_full_text: bool = False


@dataclass(frozen=True, slots=True)
class ForeignKey:
    columns: tuple[str, ...]
    table: str
    targets: tuple[str, ...]  # empty: the primary key of ``table``


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    indexes: tuple[Index, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()

    def column(self, name: str) -> Column | None:
        """Return the column of that name, in whatever case it is written."""
        return next((one for one in self.columns if one.name.lower() == name.lower()), None)

    def kind_of(self, name: str) -> Kind:
        column = self.column(name)
        assert column is not None, name
        return column.kind

    def places_of(self, name: str) -> int:
        column = self.column(name)
        assert column is not None, name
        return column.places

    @property
    def automatic(self) -> str:
        """The column that the database counts up, or an empty string."""
        return next((one.name for one in self.columns if one.is_automatic), "")

    @property
    def unique_keys(self) -> tuple[tuple[str, ...], ...]:
        """The primary key, then the other unique ones."""
        unique = [one for one in self.indexes if one.is_unique or one.is_primary]
        return tuple(one.columns for one in sorted(unique, key=lambda one: not one.is_primary))

    @property
    def natural_key(self) -> tuple[str, ...]:
        """The first unique key that the database does not count up, else the first index of one short text."""
        for columns in self.unique_keys:
            if self.automatic not in columns:
                return columns
        if self.unique_keys and not self.automatic:
            return self.unique_keys[0]
        indexed = (one.columns for one in self.indexes if not one.is_full_text and len(one.columns) == 1)
        return next((columns for columns in indexed if self.kind_of(columns[0]) == "text"), ())


@dataclass(frozen=True, slots=True)
class Schema:
    tables: tuple[Table, ...]
    unread: tuple[str, ...] = ()  # statements of the file that are no table, each as its first words

    def table(self, name: str) -> Table | None:
        return next((one for one in self.tables if one.name.lower() == name.lower()), None)

    def short(self, name: str) -> str:
        """Return a table's name without the prefix that all tables have."""
        return name[len(self.prefix) :]

    @property
    def prefix(self) -> str:
        """The beginning up to a ``_`` that all names have; empty for a single table."""
        names = [one.name for one in self.tables]
        head = names[0].partition("_")[0] + "_" if names and "_" in names[0] else ""
        return head if head and len(names) > 1 and all(one.startswith(head) and one != head for one in names) else ""


@dataclass(frozen=True, slots=True)
class Condition:
    column: ColumnOf
    test: Test


@dataclass(frozen=True, slots=True)
class Total:
    """A total of a column's values; column ``*`` stands for rows, an empty one for what is computed."""

    kind: str  # count, sum, avg, min, max, distinct, or another function of SQL
    column: ColumnOf

    @property
    def sql_text(self) -> str:
        name = self.column[1] or "what is computed"
        return f"count(distinct {name})" if self.kind == "distinct" else f"{self.kind}({name})"


@dataclass(frozen=True, slots=True)
class Sorting:
    """ORDER BY and LIMIT."""

    columns: tuple[ColumnOf, ...] = ()
    totals: tuple[Total, ...] = ()
    is_descending: bool = False
    is_mixed: bool = False  # one column falls, another rises
    is_limited: bool = False
    is_one: bool = False  # LIMIT 1: a row, not a page of rows


@dataclass(frozen=True, slots=True)
class Query:
    """A shape of statements.  ``obstacles`` are parts of it that a store of rows has no call for, in words."""

    verb: Verb
    tables: tuple[str, ...] = ()
    joins: tuple[tuple[ColumnOf, ColumnOf], ...] = ()
    conditions: tuple[Condition, ...] = ()  # all must be true
    sorting: Sorting = Sorting()
    reads: tuple[ColumnOf, ...] = ()  # columns of the answer; column "*" is all of a table
    totals: tuple[Total, ...] = ()  # also those of HAVING and of ORDER BY
    groups: tuple[ColumnOf, ...] = ()
    writes: tuple[str, ...] = ()  # columns that it sets
    counters: tuple[str, ...] = ()  # of them, those that it adds to
    obstacles: tuple[str, ...] = ()
    why: str = ""  # of verb "unread"
    is_refused: bool = False  # an INSERT that fails, or does nothing, if the row is there
    sides: tuple[tuple[Condition, ...], ...] = ()  # of OR: one of them must be true, too
    parts: tuple[Query, ...] = ()  # of UNION

    @property
    def order(self) -> tuple[ColumnOf, ...]:
        return self.sorting.columns

    @property
    def is_descending(self) -> bool:
        return self.sorting.is_descending

    @property
    def is_limited(self) -> bool:
        return self.sorting.is_limited

    @property
    def is_paged(self) -> bool:
        """Whether the query wants one page after the other: some rows in an order, not the first alone."""
        return bool(self.order) and self.is_limited and not self.sorting.is_one

    @property
    def tested(self) -> tuple[Condition, ...]:
        """All conditions, also those of the sides of OR."""
        return tuple(dict.fromkeys([*self.conditions, *(one for side in self.sides for one in side)]))

    def columns_with(self, table: str, tests: frozenset[str]) -> tuple[str, ...]:
        found = [one.column[1] for one in self.conditions if one.column[0] == table and one.test in tests]
        return tuple(dict.fromkeys(found))

    def equal_columns(self, table: str) -> tuple[str, ...]:
        """Return the columns of a table that the query compares with a value by ``=`` or ``IN``."""
        return self.columns_with(table, EQUAL)


@dataclass(frozen=True, slots=True)
class Shape:
    """A statement with ``?`` for each literal, and how many statements of the log have this form."""

    text: str
    count: int
    query: Query


@dataclass(frozen=True, slots=True)
class Workload:
    """All that a log has: every statement of it is of a shape, or counted in ``beyond``."""

    shapes: tuple[Shape, ...] = ()
    beyond: int = 0  # statements of further shapes, after the bound
    other_lines: int = 0  # entries that are no statements, such as Connect and Quit
    transactions: tuple[tuple[tuple[str, ...], int], ...] = ()  # texts of the shapes that one of them writes by, count
    is_given: bool = True  # there was a log

    def of_table(self, table: str) -> Iterator[Shape]:
        return (one for one in self.shapes if table in one.query.tables)


def singular(name: str) -> str:
    """Return an English plural's singular, as names of tables have it."""
    if name.endswith("ies") and len(name) > 4:
        return name[:-3] + "y"
    return name[:-1] if name.endswith("s") and not name.endswith("ss") and len(name) > 2 else name


def counted(counts: Mapping[str, int]) -> list[str]:
    """Return the names by falling count, then by name."""
    return sorted(counts, key=lambda name: (-counts[name], name))
