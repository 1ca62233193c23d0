"""The adviser on schemas and logs: the three of ``tests/data/advise``, and small ones as text."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from columnar.advise.reading import count_statements, read_schema, read_workload, workload_of
from columnar.advise.rules import Design, design_of
from columnar.advise.schema import Schema, Workload
from columnar.advise.shapes import ShapeCounts

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
