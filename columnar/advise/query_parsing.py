"""Queries of SQL to values: ``sqlglot`` reads a shape, and a ``Query`` says what of it an answer must serve.

``read_query`` never raises for what a statement says: a statement that cannot be read comes back with the reason.  A
part of a statement that ``Query`` has no field for is an obstacle, never left out: an answer that serves the rest would
be false.

Knows nothing of files, of logs and of designs.  Needs the extra ``advise``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Final

from sqlglot import exp

from columnar.advise.parsing import tree_of
from columnar.advise.schema import ColumnOf, Condition, Query, Schema, Sorting, Test, Total, Verb
from columnar.advise.shapes import CUT

SIDES: Final = 20  # of one OR, each with its own path
_SESSION: Final = re.compile(
    r"(?:SET|SHOW|USE|BEGIN|START TRANSACTION|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|DESC|DESCRIBE|EXPLAIN|LOCK TABLES?"
    r"|UNLOCK TABLES|PREPARE|EXECUTE|DEALLOCATE|KILL|FLUSH|ANALYZE|CHECK|OPTIMIZE|REPAIR|PRAGMA|CALL|DO|HELP|XA"
    r"|SELECT (?:@@|FOUND_ROWS|LAST_INSERT_ID|DATABASE|VERSION|CONNECTION_ID|GET_LOCK|RELEASE_LOCK)\S*.*)\b",
    re.I,
)
_SCHEMA: Final = re.compile(r"(?:CREATE|ALTER|DROP|TRUNCATE|RENAME|GRANT|REVOKE|COMMENT)\b", re.I)


def read_query(shape: str, schema: Schema, dialect: str) -> Query:
    """Return the query of a shape; its verb is ``unread`` if it cannot be read, and ``why`` says why."""
    if _SESSION.match(shape):
        return Query("session")
    if _SCHEMA.match(shape):
        return Query("schema")
    if shape.endswith(CUT):
        return Query("unread", why="the statement is longer than the adviser reads")
    text = re.sub(r"^REPLACE(?: LOW_PRIORITY| DELAYED)?(?: INTO)?", "INSERT INTO", shape, flags=re.I)
    tree = tree_of(text, dialect)
    if isinstance(tree, str):
        return Query("unread", why=tree)
    try:
        query = _QueryReader(schema, tree).query()
        return replace(query, is_refused=False) if text != shape else query
    except RecursionError:
        return Query("unread", why="nested too deeply")


class _QueryReader:
    """Reads one tree.  A column without a table's name belongs to the first table of the query that has it."""

    def __init__(self, schema: Schema, tree: exp.Expression) -> None:
        self._schema, self._tree = schema, tree
        self._aliases: dict[str, str] = {}  # alias or name, lower case -> table as the schema spells it
        self._tables: list[str] = []
        self._unknown: list[str] = []
        self._conditions: list[Condition] = []
        self._joins: list[tuple[ColumnOf, ColumnOf]] = []
        self._obstacles: list[str] = []
        self._sides: list[tuple[Condition, ...]] = []
        self._selected: dict[str, exp.Expr] = {}  # names that SELECT gives, lower case

    def query(self) -> Query:
        tree = self._tree
        named = [id(one) for one in tree.args.get("tables") or []]  # DELETE a, b FROM ...: aliases
        for node in tree.find_all(exp.Table):
            if id(node) not in named:
                self._add_table(node)
        if self._unknown:
            return Query("unread", why=f"{', '.join(dict.fromkeys(self._unknown))} is not in the schema")
        if isinstance(tree, exp.Insert):
            return self._insert(tree)
        if isinstance(tree, exp.Update):
            return self._update(tree)
        if isinstance(tree, exp.Delete):
            self._read_where(tree)
            return self._with("delete")
        if isinstance(tree, exp.Select):
            return self._select(tree) if self._tables else Query("session")
        if isinstance(tree, exp.SetOperation):
            self._obstacles.append("UNION")
            parts = [_QueryReader(self._schema, one).query() for one in _parts(tree)]
            return replace(self._with("select", order=tree.args.get("order")), parts=tuple(parts))
        return Query("unread", why=f"{tree.key.upper()} is no query that the adviser knows")

    def _add_table(self, node: exp.Table) -> None:
        table = self._schema.table(node.name)
        if table is None:
            self._unknown.append(node.name)
            return
        if node.alias_or_name.lower() in self._aliases:
            self._obstacles.append("a table twice under one name")
        elif table.name in self._tables:
            self._obstacles.append("a join of a table with itself")
        self._aliases[node.alias_or_name.lower()] = table.name
        if table.name not in self._tables:
            self._tables.append(table.name)

    def _column(self, node: exp.Column) -> ColumnOf:
        named = self._aliases.get(node.table.lower()) if node.table else None
        for name in [named] if named else self._tables:
            table = self._schema.table(name)
            column = table.column(node.name) if table is not None else None
            if table is not None and column is not None:
                return (table.name, column.name)
        return ("", node.name)

    def _select(self, tree: exp.Select) -> Query:
        self._selected = {one.alias.lower(): one.this for one in tree.expressions if isinstance(one, exp.Alias)}
        for join in tree.args.get("joins") or []:
            self._read_join(join)
        self._read_where(tree)
        if tree.find(exp.Window):
            self._obstacles.append("a window over rows")
        if tree.args.get("having"):
            self._obstacles.append("HAVING")
        if any(select is not tree for select in tree.find_all(exp.Select)):
            self._obstacles.append("a query within the query")
        if tree.args.get("distinct"):
            self._obstacles.append("DISTINCT")
        group = tree.args.get("group")
        named = [self._named(one) for one in group.expressions] if group else []
        grouped = [(one, one.find(exp.Column)) for one in named]
        groups = [self._column(column) for _, column in grouped if column is not None]
        if any(one is not column or column is None for one, column in grouped):
            self._obstacles.append("a group by what a function makes")
        if tree.args.get("offset") is not None:
            self._obstacles.append("OFFSET")
        order = tree.args.get("order")
        nodes = [*tree.expressions, *(one for one in (tree.args.get("having"), order) if one is not None)]
        return self._with(
            "select",
            order=order,
            limit=tree.args.get("limit"),
            reads=tuple(dict.fromkeys(self._reads(tree))),
            totals=tuple(dict.fromkeys(total for one in nodes for total in self._totals(one))),
            groups=tuple(dict.fromkeys(groups)),
        )

    def _named(self, node: exp.Expr) -> exp.Expr:
        """Return what SELECT gives this name, if a column of the schema does not have it."""
        if isinstance(node, exp.Column) and not node.table and not self._column(node)[0]:
            return self._selected.get(node.name.lower(), node)
        return node

    def _reads(self, tree: exp.Select) -> Iterator[ColumnOf]:
        for one in tree.expressions:
            if isinstance(one, exp.Star):
                yield from ((table, "*") for table in self._tables)
            for column in one.find_all(exp.Column):
                if column.find_ancestor(exp.AggFunc):
                    continue
                if isinstance(column.this, exp.Star):
                    yield (self._aliases.get(column.table.lower(), ""), "*")
                else:
                    yield self._column(column)

    def _totals(self, node: exp.Expr) -> Iterator[Total]:
        for total in node.find_all(exp.AggFunc):
            inner, kind = total.this, total.key
            if isinstance(inner, exp.Distinct):
                kind = "distinct" if kind == "count" else f"{kind} of distinct values"
                inner = inner.expressions[0] if len(inner.expressions) == 1 else None
            if isinstance(inner, exp.Column):
                yield Total(kind, self._column(inner))
            elif kind == "count" and inner is not None and inner.find(exp.Column) is None:
                yield Total(kind, ("", "*"))
            else:
                yield Total(kind, ("", ""))

    def _read_join(self, join: exp.Join) -> None:
        using = join.args.get("using") or []
        for one in using:
            having = [
                (name, table.column(one.name))
                for name in self._tables
                if (table := self._schema.table(name)) is not None and table.column(one.name)
            ]
            columns = [(name, column.name) for name, column in having if column is not None]
            self._joins += list(pairwise(columns))
        if join.args.get("on") is not None:
            self._read_condition(join.args["on"])

    def _read_where(self, tree: exp.Expression) -> None:
        where = tree.args.get("where")
        if where is not None:
            self._read_condition(where.this)

    def _read_condition(self, node: exp.Expr) -> None:
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.And):
            for part in node.flatten():
                self._read_condition(part)
        elif isinstance(node, exp.Or):
            self._read_alternatives(node)
        elif isinstance(node, exp.EQ) and isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Column):
            one, other = self._column(node.this), self._column(node.expression)
            if one[0] != other[0]:
                self._joins.append((one, other))
            else:
                self._obstacles.append("a comparison of two columns of a row")
        else:
            self._read_test(node)

    def _read_alternatives(self, node: exp.Or) -> None:
        parts = [part.unnest() for part in node.flatten()]
        sides = [self._columns_of_equals(part) for part in parts]
        if sides[0] and all(side == sides[0] for side in sides):
            self._conditions += [Condition(column, "in") for column in sides[0]]
            return
        if self._sides or len(parts) > SIDES or node.find(exp.Select):
            self._obstacles.append("a query within the query" if node.find(exp.Select) else "OR within a query of OR")
            self._conditions += [Condition(self._column(one), "other") for one in node.find_all(exp.Column)]
            return
        self._obstacles.append("OR")
        common, joins = self._conditions, len(self._joins)
        read: list[tuple[Condition, ...]] = []
        for part in parts:
            self._conditions = []
            self._read_condition(part)
            read.append(tuple(self._conditions))
        self._conditions, self._sides = common, read
        if len(self._joins) > joins:
            self._obstacles.append("a join on one side of OR")

    def _columns_of_equals(self, node: exp.Expr) -> tuple[ColumnOf, ...]:
        """The columns that one side of OR compares, if it does nothing but compare columns with values."""
        tests = [part.unnest() for part in node.flatten()] if isinstance(node, exp.And) else [node]
        if not all(isinstance(one, exp.EQ | exp.In) and isinstance(one.this, exp.Column) for one in tests):
            return ()
        if any(one.find(exp.Select) or isinstance(one.args.get("expression"), exp.Column) for one in tests):
            return ()
        return tuple(sorted({self._column(one.this) for one in tests if isinstance(one.this, exp.Column)}))

    def _read_test(self, node: exp.Expr) -> None:
        column = node.this if isinstance(node.this, exp.Column) else None
        flipped = node.args.get("expression")
        if column is None and isinstance(node, exp.Binary) and isinstance(flipped, exp.Column):
            column = flipped
        if isinstance(node, exp.MatchAgainst):
            self._obstacles.append("full text")
            return
        if isinstance(node, exp.Exists) or node.find(exp.Select):
            self._obstacles.append("a query within the query")
            self._conditions += [Condition(self._column(column), "in")] if column is not None else []
            return
        if isinstance(node, exp.Not) and isinstance(node.this, exp.Is) and isinstance(node.this.this, exp.Column):
            self._conditions.append(Condition(self._column(node.this.this), "filled"))
            return
        if column is None or any(one is not column for one in node.find_all(exp.Column)):
            columns = [self._column(one) for one in node.find_all(exp.Column)]
            if columns:
                self._obstacles.append("a condition on what a function makes of a column")
                self._conditions += [Condition(one, "other") for one in columns]
            return
        self._conditions.append(Condition(self._column(column), _test_of(node)))

    def _insert(self, tree: exp.Insert) -> Query:
        source = tree.args.get("expression")
        if isinstance(source, exp.Select | exp.SetOperation):
            self._obstacles.append("INSERT of what a query finds")
        named = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
        table = self._schema.table(self._tables[0]) if self._tables else None
        writes = [one.name for one in named]
        if not writes and table is not None:
            writes = [one.name for one in table.columns]
        conflict = tree.args.get("conflict")
        changes = list(conflict.expressions) if isinstance(conflict, exp.OnConflict) else []
        made = self._with("insert", writes=self._spelled(writes), counters=self._counters(changes))
        return replace(made, is_refused=conflict is None)

    def _update(self, tree: exp.Update) -> Query:
        self._read_where(tree)
        for join in tree.this.args.get("joins") or []:
            self._read_join(join)
        if len(self._tables) > 1:
            self._obstacles.append("UPDATE over several tables")
        changed = [one.this.name for one in tree.expressions if isinstance(one, exp.EQ)]
        return self._with("update", writes=self._spelled(changed), counters=self._counters(tree.expressions))

    def _spelled(self, names: list[str]) -> tuple[str, ...]:
        table = self._schema.table(self._tables[0]) if self._tables else None
        found = [table.column(name) if table is not None else None for name in names]
        return tuple(dict.fromkeys(one.name for one in found if one is not None))

    def _counters(self, changes: list[exp.Expression]) -> tuple[str, ...]:
        adds = [one for one in changes if isinstance(one, exp.EQ) and isinstance(one.expression, exp.Add | exp.Sub)]
        own = [one.this.name for one in adds if one.this.name in {c.name for c in one.expression.find_all(exp.Column)}]
        return self._spelled(own)

    def _with(
        self,
        verb: Verb,
        *,
        order: exp.Expression | None = None,
        limit: exp.Expr | None = None,
        reads: tuple[ColumnOf, ...] = (),
        totals: tuple[Total, ...] = (),
        groups: tuple[ColumnOf, ...] = (),
        writes: tuple[str, ...] = (),
        counters: tuple[str, ...] = (),
    ) -> Query:
        ordered = order.expressions if order is not None else []
        named = [self._named(one.this) for one in ordered]
        columns = [self._column(one) for one in named if isinstance(one, exp.Column)]
        order_totals = [total for one in named if isinstance(one, exp.AggFunc) for total in self._totals(one)]
        if len(columns) + len(order_totals) < len(ordered):
            is_random = any(one.find(exp.Rand) for one in ordered)
            self._obstacles.append("a random order" if is_random else "an order by what is computed")
        is_limited = limit is not None
        is_one = isinstance(limit, exp.Limit) and isinstance(limit.expression, exp.Literal)  # shapes keep LIMIT 1
        falling = {bool(one.args.get("desc")) for one in ordered}
        return Query(
            verb,
            tuple(self._tables),
            tuple(dict.fromkeys(self._joins)),
            tuple(dict.fromkeys(self._conditions)),
            Sorting(tuple(columns), tuple(order_totals), True in falling, len(falling) > 1, is_limited, is_one),
            reads,
            totals,
            groups,
            writes,
            counters,
            tuple(dict.fromkeys(self._obstacles)),
            sides=tuple(self._sides),
        )


def _parts(node: exp.Expr) -> Iterator[exp.Select]:
    """The SELECTs of a UNION."""
    if isinstance(node, exp.Subquery):
        yield from _parts(node.this)
    elif isinstance(node, exp.SetOperation):
        yield from _parts(node.this)
        yield from _parts(node.expression)
    elif isinstance(node, exp.Select):
        yield node


_PATTERNS: Final[dict[str, Test]] = {"?%": "prefix", "?": "=", "": "pattern"}  # of LIKE


def _test_of(node: exp.Expr) -> Test:
    if isinstance(node, exp.EQ | exp.NullSafeEQ):
        return "="
    if isinstance(node, exp.In):
        return "in"
    if isinstance(node, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.Between):
        return "range"
    if isinstance(node, exp.Like | exp.ILike):
        pattern = node.expression
        text = pattern.name if isinstance(pattern, exp.Literal) else ""
        return _PATTERNS.get(text, "within")
    return "null" if isinstance(node, exp.Is) else "other"
