"""The adviser on schemas and logs: the three of ``tests/data/advise``, and small ones as text."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from columnar.advise.functions import commands, merged_views
from columnar.advise.parsing import read_tables
from columnar.advise.reading import count_statements, read_schema, read_workload, workload_of
from columnar.advise.rules import Design, design_of
from columnar.advise.schema import Schema, Workload
from columnar.advise.shapes import ShapeCounts
from columnar.advise.writes import answers

DATA: Final = Path(__file__).parents[1] / "data" / "advise"
SYSTEMS: Final = ("wikka", "mediawiki", "wordpress")


def schema_of(system: str) -> Schema:
    return read_schema(DATA / f"{system}.sql", "mysql")


def design_for(system: str) -> Design:
    schema = schema_of(system)
    return design_of(schema, read_workload(DATA / f"{system}.log", schema, "mysql"))


def workload(statements: list[str], schema: Schema, **bounds: int) -> Workload:
    """The statements as a plain log, one a line."""
    counts = ShapeCounts(**bounds)
    other = count_statements(statements, counts)
    return workload_of(counts, other, schema, "mysql")


SMALL: Final = read_tables(
    """
CREATE TABLE users (name VARCHAR(40) PRIMARY KEY, city VARCHAR(40), email VARCHAR(80), age INT, rate DOUBLE);
CREATE TABLE messages (id INT AUTO_INCREMENT PRIMARY KEY, user_name VARCHAR(40), sent DATETIME, score INT,
  price DECIMAL(10, 2), state VARCHAR(9), text TEXT);
CREATE TABLE tags (message_id INT, tag VARCHAR(20), PRIMARY KEY (message_id, tag));
""",
    "mysql",
)
_USUAL: Final = ["SELECT * FROM messages WHERE user_name = 'ann' ORDER BY sent DESC LIMIT 20"] * 3 + [
    "SELECT tag FROM tags WHERE message_id = 1",
    "SELECT * FROM users WHERE name = 'bob'",
]


def small_design(*statements: str) -> Design:
    """Return the design of three small tables, for some usual queries and these."""
    return design_of(SMALL, workload([*_USUAL, *statements], SMALL))


def commands_of(design: Design) -> list[str]:
    """Return the commands that make all that the answers of a design need."""
    found = answers(design)
    indexes = tuple(dict.fromkeys(index for one in found for index in one.indexes))
    return commands(design, indexes, merged_views(view for one in found for view in one.views))
