"""Tables of SQL to values: ``sqlglot`` reads CREATE TABLE and CREATE INDEX.  ``query_parsing`` reads queries.

``read_tables`` never raises for what a statement says: a statement that cannot be read comes back with the reason, and
the adviser prints it.

Knows nothing of files, of logs and of designs.  Needs the extra ``advise``.
"""

from __future__ import annotations

import logging
import re
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from columnar.advise.query_log import split_statements
from columnar.advise.schema import Column, ForeignKey, Index, Kind, Schema, Table

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it says on stderr what we say in the text
DIALECTS: Final = ("mysql", "postgres", "sqlite", "tsql", "oracle")

_INTEGERS: Final = {"INT", "BIGINT", "SMALLINT", "MEDIUMINT", "TINYINT", "UINT", "UBIGINT", "USMALLINT", "UMEDIUMINT",
                    "UTINYINT", "SERIAL", "BIGSERIAL", "SMALLSERIAL", "YEAR"}  # fmt: skip
_NUMBERS: Final = {"DECIMAL", "UDECIMAL", "MONEY", "BIGDECIMAL"}
_FLOATS: Final = {"FLOAT", "DOUBLE", "UDOUBLE"}
_TIMES: Final = {"DATETIME", "TIMESTAMP", "TIMESTAMPTZ", "DATE", "TIME", "DATETIME2", "TIMESTAMPNTZ"}
_LARGE: Final = {"TEXT", "MEDIUMTEXT", "LONGTEXT", "BLOB", "MEDIUMBLOB", "LONGBLOB", "JSON", "JSONB", "XML"}
_BYTES: Final = {"BINARY", "VARBINARY", "TINYBLOB", "UUID"}
_FLAG_CHARS: Final = 1


def read_tables(text: str, dialect: str) -> Schema:
    """Return the tables of a file of CREATE TABLE statements."""
    tables: list[Table] = []
    unread: list[str] = []
    for statement in split_statements(text)[0]:
        tree = tree_of(statement, dialect)
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


def tree_of(statement: str, dialect: str) -> exp.Expression | str:
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
    return Column(part.name, _kind(kind), is_automatic, _places(kind))


def _places(kind: object) -> int:
    """The digits after the point, as of DECIMAL(10, 2)."""
    if not isinstance(kind, exp.DataType) or kind.this.name not in _NUMBERS:
        return 0
    if kind.this.name == "MONEY":
        return 4
    return int(kind.expressions[1].name) if len(kind.expressions) > 1 and kind.expressions[1].name.isdigit() else 0


def _kind(kind: object) -> Kind:
    if not isinstance(kind, exp.DataType):
        return "text"
    name = kind.this.name
    size = kind.expressions[0].name if kind.expressions else ""
    is_short = size == str(_FLAG_CHARS)
    if name in ("BOOLEAN", "ENUM", "BIT") or (is_short and name in ("TINYINT", "UTINYINT", "CHAR")):
        return "flag"
    for names, found in (
        (_INTEGERS, "integer"),
        (_NUMBERS, "number"),
        (_FLOATS, "float"),
        (_TIMES, "time"),
        (_LARGE, "large"),
    ):
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
