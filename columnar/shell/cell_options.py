"""The options by which ``get`` and ``scan`` show cells: versions, times, and the form of values.

Thrift 1 reads versions that are older than a time, the newest first.  That is enough for an exact time range: of the
newest N versions before the range's end, those not older than its beginning are the newest N of the range.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from columnar.shell.connecting import Misused
from columnar.shell.shell_output import Cell
from columnar.shell.text import moment_of
from columnar.shell.values import FORMS, Form


@dataclass(frozen=True, slots=True)
class CellOptions:
    versions: int
    since_ms: int  # inclusive
    before_ms: int | None  # exclusive; None: up to the newest
    timestamps: bool
    full: bool
    form: Form | None  # None: as text; a counter is pointed out at a terminal

    def cells(self, table: Any, row: bytes, found: Mapping[bytes, tuple[bytes, int]]) -> Iterable[Cell]:
        """Yield the cells to show; ``found`` has each column's newest version, and older ones cost a call a column."""
        for column in sorted(found):
            versions = [found[column]]
            if self.versions > 1:
                versions = table.cells(row, column, self.versions, self.before_ms, include_timestamp=True)
            yield from (Cell(column, value, stamp) for value, stamp in versions if stamp >= self.since_ms)


def add_cell_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which gets them as ``look``."""

    @click.option("--versions", default=1, type=click.IntRange(1), metavar="N", help="Up to N versions of each cell.")
    @click.option("--at", metavar="TIME", help="As it was then: the newest that is not younger.")
    @click.option("--since", metavar="TIME", help="Only what was written at TIME or later.")
    @click.option("--until", metavar="TIME", help="Only what was written before TIME.")
    @click.option("--ts", "timestamps", is_flag=True, help="Show the cells' timestamps.")
    @click.option("--full", is_flag=True, help="At a terminal: do not cut long values.")
    @click.option("--as", "form", type=click.Choice(FORMS), help="counter: values of 8 bytes as numbers; hex: as hex.")
    @functools.wraps(command)
    def with_cell_options(
        *args: Any,
        versions: int,
        at: str | None,
        since: str | None,
        until: str | None,
        timestamps: bool,
        full: bool,
        form: Form | None,
        **arguments: Any,
    ) -> Any:
        if at is not None and (since is not None or until is not None):
            raise Misused("--at is one moment, --since and --until are a range: say one of them")
        now_ms = time.time_ns() // 1_000_000
        before = moment_of(at, now_ms) + 1 if at is not None else None
        if until is not None:
            before = moment_of(until, now_ms)
        first = moment_of(since, now_ms) if since is not None else 0
        if before is not None and first >= before:
            raise Misused("this range of time is empty: --since must lie before --until")
        return command(*args, look=CellOptions(versions, first, before, timestamps, full, form), **arguments)

    return with_cell_options
