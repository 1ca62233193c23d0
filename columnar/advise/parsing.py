"""SQL to values: ``sqlglot`` reads tables and queries, and this module alone knows its trees.

``read_tables`` and ``read_query`` never raise for what a statement says: a statement that cannot be read comes back
with the reason, and the adviser prints it.

Knows nothing of files, of logs and of designs.  Needs the extra ``advise``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from columnar.advise.query_log import split_statements
from columnar.advise.schema import (
    Column,
    ColumnOf,
    Condition,
    ForeignKey,
    Index,
    Kind,
    Query,
    Schema,
    Table,
    Test,
)
from columnar.advise.shapes import CUT

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it says on stderr what we say in the text
DIALECTS: Final = ("mysql", "postgres", "sqlite", "tsql", "oracle")

_SESSION: Final = re.compile(
    r"(?:SET|SHOW|USE|BEGIN|START TRANSACTION|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|DESC|DESCRIBE|EXPLAIN|LOCK TABLES?"
    r"|UNLOCK TABLES|PREPARE|EXECUTE|DEALLOCATE|KILL|FLUSH|ANALYZE|CHECK|OPTIMIZE|REPAIR|PRAGMA|CALL|DO|HELP|XA"
    r"|SELECT (?:@@|FOUND_ROWS|LAST_INSERT_ID|DATABASE|VERSION|CONNECTION_ID|GET_LOCK|RELEASE_LOCK)\S*.*)\b",
    re.I,
)
_SCHEMA: Final = re.compile(r"(?:CREATE|ALTER|DROP|TRUNCATE|RENAME|GRANT|REVOKE|COMMENT)\b", re.I)
_INTEGERS: Final = {"INT", "BIGINT", "SMALLINT", "MEDIUMINT", "TINYINT", "UINT", "UBIGINT", "USMALLINT", "UMEDIUMINT",
                    "UTINYINT", "SERIAL", "BIGSERIAL", "SMALLSERIAL", "YEAR"}  # fmt: skip
_NUMBERS: Final = {"DECIMAL", "UDECIMAL", "FLOAT", "DOUBLE", "UDOUBLE", "MONEY", "BIGDECIMAL"}
_TIMES: Final = {"DATETIME", "TIMESTAMP", "TIMESTAMPTZ", "DATE", "TIME", "DATETIME2", "TIMESTAMPNTZ"}
_LARGE: Final = {"TEXT", "MEDIUMTEXT", "LONGTEXT", "BLOB", "MEDIUMBLOB", "LONGBLOB", "JSON", "JSONB", "XML"}
_BYTES: Final = {"BINARY", "VARBINARY", "TINYBLOB", "UUID"}
_FLAG_CHARS: Final = 1


def read_tables(text: str, dialect: str) -> Schema:
    """Return the tables of a file of CREATE TABLE statements."""
    tables: list[Table] = []
    unread: list[str] = []
    for statement in split_statements(text)[0]:
        tree = _tree(statement, dialect)
        if isinstance(tree, exp.Create) and tree.kind == "TABLE" and isinstance(tree.this, exp.Schema):
            tables.append(_table(tree))
        elif isinstance(tree, exp.Create) and tree.kind == "INDEX" and isinstance(tree.this, exp.Index):
            _add_index(tables, tree)
        elif isinstance(tree, str) and re.match(r"\s*CREATE\s+(?:TEMPORARY\s+)?TABLE\b", statement, re.I):
            unread.append(f"{_first_words(statement)}: {tree}")
        elif not re.match(r"(?:/\*!|SET|USE|DROP|LOCK|UNLOCK|INSERT|DELIMITER|START|COMMIT|BEGIN)", statement, re.I):
            unread.append(_first_words(statement))
    return Schema(tuple({one.name: one for one in tables}.values()), tuple(unread))


def _first_words(statement: str) -> str:
    lines = [line for line in statement.splitlines() if not line.startswith(("--", "#"))]
    return " ".join(" ".join(lines).split()[:5])


def _tree(statement: str, dialect: str) -> exp.Expression | str:
    """Return the tree, or why there is none."""
    try:
        found = [one for one in sqlglot.parse(statement, dialect=dialect) if one is not None]
    except SqlglotError as error:
        return " ".join(re.sub(r"\x1b\[\d*m", "", str(error)).split("\n")[0].split())[:120]
    except RecursionError:
        return "nested too deeply"
    if not found:
        return "no statement"
    tree = found[0]
    if len(found) > 1 or not isinstance(tree, exp.Expression):
        return "several statements in one"
    return "unknown syntax" if isinstance(tree, exp.Command) else tree


def _table(tree: exp.Create) -> Table:
    columns: list[Column] = []
    indexes: list[Index] = []
    keys: list[ForeignKey] = []
    for part in tree.this.expressions:
        if isinstance(part, exp.ColumnDef):
            columns.append(_column(part))
            kinds = [one.kind for one in part.args.get("constraints") or [] if isinstance(one, exp.ColumnConstraint)]
            is_primary = any(isinstance(kind, exp.PrimaryKeyColumnConstraint) for kind in kinds)
            if is_primary or any(isinstance(kind, exp.UniqueColumnConstraint) for kind in kinds):
                indexes.append(Index((part.name,), True, is_primary))
            keys += [_foreign_key((part.name,), one) for one in kinds if isinstance(one, exp.Reference)]
        else:
            _add_constraint(part, indexes, keys)
    return Table(tree.this.this.name, tuple(columns), tuple(indexes), tuple(keys))


def _add_constraint(part: exp.Expression, indexes: list[Index], keys: list[ForeignKey]) -> None:
    if isinstance(part, exp.Constraint):
        for one in part.expressions:
            _add_constraint(one, indexes, keys)
    elif isinstance(part, exp.PrimaryKey):
        indexes.append(Index(_names(part), True, True))
    elif isinstance(part, exp.UniqueColumnConstraint):
        indexes.append(Index(_names(part.this), True))
    elif isinstance(part, exp.IndexColumnConstraint):
        kind = str(part.args.get("kind") or "").upper()
        indexes.append(Index(_names(part), is_full_text=kind == "FULLTEXT"))
    elif isinstance(part, exp.ForeignKey) and isinstance(part.args.get("reference"), exp.Reference):
        keys.append(_foreign_key(_names(part), part.args["reference"]))


def _names(node: exp.Expression) -> tuple[str, ...]:
    return tuple(
        one.this.name if isinstance(one, exp.ColumnPrefix | exp.Ordered) else one.name for one in node.expressions
    )


def _foreign_key(columns: tuple[str, ...], reference: exp.Reference) -> ForeignKey:
    target = reference.this
    if isinstance(target, exp.Schema):
        return ForeignKey(columns, target.this.name, _names(target))
    return ForeignKey(columns, target.name, ())


def _column(part: exp.ColumnDef) -> Column:
    constraints = [one.kind for one in part.args.get("constraints") or [] if isinstance(one, exp.ColumnConstraint)]
    automatic = (exp.AutoIncrementColumnConstraint, exp.GeneratedAsIdentityColumnConstraint)
    kind = part.args.get("kind")
    name = kind.this.name if isinstance(kind, exp.DataType) else "TEXT"
    is_automatic = any(isinstance(one, automatic) for one in constraints) or name.endswith("SERIAL")
    return Column(part.name, _kind(kind), is_automatic)


def _kind(kind: object) -> Kind:
    if not isinstance(kind, exp.DataType):
        return "text"
    name = kind.this.name
    size = kind.expressions[0].name if kind.expressions else ""
    is_short = size == str(_FLAG_CHARS)
    if name in ("BOOLEAN", "ENUM", "BIT") or (is_short and name in ("TINYINT", "UTINYINT", "CHAR")):
        return "flag"
    for names, found in ((_INTEGERS, "integer"), (_NUMBERS, "number"), (_TIMES, "time"), (_LARGE, "large")):
        if name in names:
            return found  # type: ignore[return-value]
    return "bytes" if name in _BYTES and not size else "text"


def _add_index(tables: list[Table], tree: exp.Create) -> None:
    index = tree.this
    table = index.args.get("table")
    parameters = index.args.get("params")
    columns = parameters.args.get("columns") or [] if parameters is not None else []
    names = tuple(one.this.name if isinstance(one, exp.Ordered) else one.name for one in columns)
    for at, one in enumerate(tables):
        if table is not None and one.name.lower() == table.name.lower():
            made = Index(names, bool(tree.args.get("unique")))
            tables[at] = Table(one.name, one.columns, (*one.indexes, made), one.foreign_keys)


# --- queries -------------------------------------------------------------------------------------


def read_query(shape: str, schema: Schema, dialect: str) -> Query:
    """Return the query of a shape; its verb is ``unread`` if it cannot be read, and ``why`` says why."""
    if _SESSION.match(shape):
        return Query("session")
    if _SCHEMA.match(shape):
        return Query("schema")
    if shape.endswith(CUT):
        return Query("unread", why="the statement is longer than the adviser reads")
    text = re.sub(r"^REPLACE(?: LOW_PRIORITY| DELAYED)?(?: INTO)?", "INSERT INTO", shape, flags=re.I)
    tree = _tree(text, dialect)
    if isinstance(tree, str):
        return Query("unread", why=tree)
    try:
        return _QueryReader(schema, tree).query()
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
            return self._with("select")
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
        for join in tree.args.get("joins") or []:
            self._read_join(join)
        self._read_where(tree)
        if tree.args.get("having"):
            self._obstacles.append("HAVING")
        if any(select is not tree for select in tree.find_all(exp.Select)):
            self._obstacles.append("a query within the query")
        if tree.args.get("distinct"):
            self._obstacles.append("DISTINCT")
        group = tree.args.get("group")
        grouped = [(one, one.find(exp.Column)) for one in group.expressions] if group else []
        groups = [self._column(column) for _, column in grouped if column is not None]
        if any(one is not column for one, column in grouped):
            self._obstacles.append("a group by what a function makes")
        return self._with(
            "select",
            order=tree.args.get("order"),
            is_limited=tree.args.get("limit") is not None,
            reads=tuple(dict.fromkeys(self._reads(tree))),
            totals=tuple(dict.fromkeys(self._totals(tree))),
            groups=tuple(dict.fromkeys(groups)),
        )

    def _reads(self, tree: exp.Select) -> Iterator[ColumnOf]:
        for one in tree.expressions:
            if isinstance(one, exp.Star):
                yield from ((table, "*") for table in self._tables)
            for column in one.find_all(exp.Column):
                if isinstance(column.this, exp.Star):
                    yield (self._aliases.get(column.table.lower(), ""), "*")
                else:
                    yield self._column(column)

    def _totals(self, tree: exp.Select) -> Iterator[str]:
        for one in tree.expressions:
            for total in one.find_all(exp.AggFunc):
                column = total.find(exp.Column)
                inner = self._column(column)[1] if column is not None else "*"
                yield f"{total.key}({inner})"

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
        for test in node.find_all(exp.Like, exp.MatchAgainst):
            if isinstance(test, exp.MatchAgainst) or _test_of(test) == "within":
                self._read_test(test)
        self._obstacles.append("OR")

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
            return
        if column is None:
            inner = node.find(exp.Column)
            if inner is not None:
                self._obstacles.append("a condition on what a function makes of a column")
                self._conditions.append(Condition(self._column(inner), "other"))
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
        return self._with("insert", writes=self._spelled(writes), counters=self._counters(changes))

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
        verb: str,
        *,
        order: exp.Expression | None = None,
        is_limited: bool = False,
        reads: tuple[ColumnOf, ...] = (),
        totals: tuple[str, ...] = (),
        groups: tuple[ColumnOf, ...] = (),
        writes: tuple[str, ...] = (),
        counters: tuple[str, ...] = (),
    ) -> Query:
        ordered = order.expressions if order is not None else []
        columns = [self._column(one.this) for one in ordered if isinstance(one.this, exp.Column)]
        if len(columns) < len(ordered) and not totals:
            is_random = any(one.find(exp.Rand) for one in ordered)
            self._obstacles.append("a random order" if is_random else "an order by what is computed")
        return Query(
            verb,  # type: ignore[arg-type]
            tuple(self._tables),
            tuple(dict.fromkeys(self._joins)),
            tuple(dict.fromkeys(self._conditions)),
            tuple(columns),
            any(one.args.get("desc") for one in ordered),
            is_limited,
            reads,
            totals,
            groups,
            writes,
            counters,
            tuple(dict.fromkeys(self._obstacles)),
        )


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
        return {"?%": "prefix", "?": "=", "": "pattern"}.get(text, "within")  # type: ignore[return-value]
    return "null" if isinstance(node, exp.Is) else "other"
