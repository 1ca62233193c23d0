"""The form of answers: for a person if stdout is a terminal, tab-separated lines elsewhere and in scripts, or JSON.

``Pages`` shows answers longer than a screen, through the system's pager (``PAGER``, else ``less``).
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from types import TracebackType
from typing import Any, Final, TextIO, TypeVar

import click

from columnar.model.flow_status import silent_remark
from columnar.shell.session import in_script
from columnar.shell.text import is_text, readable
from columnar.shell.values import Form, number_of


class Pages:
    """A context that buffers text until it fills the screen, then sends it and all further text to the pager.

    A person who leaves the pager ends the ``with`` block, without an error.
    """

    def __init__(self, lines: int, columns: int) -> None:
        self._lines_left = lines - 1  # the prompt takes one
        self._columns = max(1, columns)
        self._buffered: list[str] = []
        self._pager: TextIO | None = None
        self._stack = ExitStack()

    @classmethod
    def of_terminal(cls) -> Pages:
        size = shutil.get_terminal_size()
        return cls(size.lines, size.columns)

    def write(self, text: str) -> None:
        if self._pager is not None:
            self._pager.write(text)
            return
        self._buffered.append(text)
        self._lines_left -= sum(self._height(line) for line in text.splitlines())
        if self._lines_left < 0:
            self._pager = self._stack.enter_context(click.get_pager_file())
            self._pager.write(self._taken())

    def _height(self, line: str) -> int:
        """Return the number of screen lines that ``line`` takes."""
        return 1 + max(0, len(click.unstyle(line)) - 1) // self._columns

    def _taken(self) -> str:
        text, self._buffered = "".join(self._buffered), []
        return text

    def __enter__(self) -> Pages:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._buffered:  # a short answer, or the text before an error
            click.echo(self._taken(), nl=False)
        # click's pager takes the BrokenPipeError of a pager that was left
        return bool(self._stack.__exit__(kind, error, trace))


T = TypeVar("T")
MAX_PRINTED_VALUE_BYTES: Final = 200  # of one value, at a terminal


@dataclass(frozen=True, slots=True)
class Cell:
    column: bytes
    value: bytes
    timestamp_ms: int


def _write(text: str) -> None:
    click.echo(text, nl=False)


@dataclass(frozen=True, slots=True)
class Output:
    as_json: bool
    is_terminal: bool = field(default_factory=lambda: sys.stdout.isatty() and not in_script())
    pages: bool = False  # at a terminal: through a pager from a screen on
    write: Callable[[str], None] = _write

    @contextmanager
    def paged(self) -> Iterator[Output]:
        """Yield the output with a pager, for an answer of unknown length; ends quietly when the pager is left."""
        if not (self.pages and self.is_terminal):
            yield self
            return
        with Pages.of_terminal() as pages:
            yield replace(self, write=pages.write, pages=False)

    def line(self, text: str) -> None:
        self.write(f"{text}\n")

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Iterable[int] = ()) -> None:
        """Show a table; ``numbers`` are the columns to align right."""
        if self.is_terminal:
            with self.paged() as output:
                output.write(self._rich_table(headings, rows, set(numbers)))
            return
        for row in rows:
            self.line("\t".join(str(value) for value in row))

    def records(
        self,
        found: Sequence[T],
        as_json: Callable[[T], object],
        headings: Sequence[str],
        line: Callable[[T], Sequence[object]],
        *,
        numbers: Iterable[int] = (),
        nothing: str = "",
    ) -> None:
        """Show a list of records, as JSON or as lines of a table.

        ``nothing`` is the text for a person if the list is empty.
        """
        if self.as_json:
            self.json([as_json(one) for one in found])
        elif nothing and not found and self.is_terminal:
            self.line(nothing)
        else:
            self.table(headings, map(line, found), numbers=numbers)

    def for_people(self, form: Callable[[Any], str], value: object) -> object:
        """Return the value in a person's form at a terminal, and as it is elsewhere."""
        return form(value) if self.is_terminal else value

    def _rich_table(self, headings: Sequence[str], rows: Iterable[Sequence[object]], numbers: set[int]) -> str:
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for place, heading in enumerate(headings):
            table.add_column(heading, justify="right" if place in numbers else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text(str(value)) for value in row))  # Text: a name is no markup
        console = Console()
        with console.capture() as captured:
            console.print(table)
        return captured.get()

    def json(self, value: object) -> None:
        """Print the value as one line of JSON."""
        self.line(json.dumps(value, ensure_ascii=False))

    def facts(self, facts: Mapping[str, object]) -> None:
        """Print names and values, one pair a line."""
        if self.as_json:
            self.json(facts)
            return
        width = max(map(len, facts)) + 2 if self.is_terminal else 0
        for name, value in facts.items():
            self.line(f"{name:<{width}}{value}" if self.is_terminal else f"{name}\t{value}")

    def row(
        self, row: bytes, cells: Sequence[Cell], *, timestamps: bool, full: bool = False, form: Form | None = None
    ) -> None:
        """Print a row as an object, one line for each cell, or a paragraph."""
        if self.as_json:
            self.json({"row": readable(row), "cells": [_as_json(cell, form) for cell in cells]})
        elif self.is_terminal:
            self.line(click.style(readable(row), bold=True))
            width = max((len(readable(cell.column)) for cell in cells), default=0)
            for cell in cells:
                stamp = click.style(f"{time_text(cell.timestamp_ms)}  ", dim=True) if timestamps else ""
                value = _format_value(cell.value, form, None if full else MAX_PRINTED_VALUE_BYTES) + _pointed_out(
                    cell.value, form
                )
                self.line(f"  {click.style(readable(cell.column).ljust(width), fg='cyan')}  {stamp}{value}")
        else:
            for cell in cells:
                stamps = [str(cell.timestamp_ms)] if timestamps else []
                self.line("\t".join([readable(row), readable(cell.column), *stamps, _format_value(cell.value, form)]))

    def done(self, text: str, value: Mapping[str, Any] | None = None) -> None:
        """Say that something was done: a line for a person, and nothing for a script unless it wants JSON."""
        if self.as_json:
            self.json(value or {"done": True})
        elif self.is_terminal:
            self.line(text)


def _as_json(cell: Cell, form: Form | None) -> dict[str, object]:
    number = number_of(cell.value) if form == "counter" else None
    value = number if number is not None else _format_value(cell.value, form)
    return {"column": readable(cell.column), "value": value, "timestamp": cell.timestamp_ms}


def _format_value(value: bytes, form: Form | None, most: int | None = None) -> str:
    if form == "hex":
        return value.hex()
    number = number_of(value) if form == "counter" else None
    return str(number) if number is not None else readable(value, most)


def _pointed_out(value: bytes, form: Form | None) -> str:
    """Return the number of eight non-text bytes, to show beside them if no form was named: they are mostly counters."""
    number = number_of(value) if form is None and not is_text(value) else None
    return click.style(f"  (as a counter: {number})", dim=True) if number is not None else ""


def time_text(timestamp_ms: int) -> str:
    """Return local time to the millisecond, or the bare number if it is outside the calendar's range."""
    from datetime import datetime

    try:
        return datetime.fromtimestamp(timestamp_ms / 1_000).astimezone().isoformat(" ", "milliseconds")
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)


def remark_on_silent(servers: Iterable[str]) -> None:
    """Name on stderr the servers whose figures are missing."""
    for server in servers:
        click.echo(silent_remark(server), err=True)


def as_plain(value: Any, leaving_out: Sequence[str] = ()) -> dict[str, object]:
    """Return the fields of a dataclass for JSON, with bytes as they are typed."""
    return {key: plain(one) for key, one in asdict(value).items() if key not in leaving_out}


_NAMES_IN_JSON: Final = {
    "start_key": "start",
    "end_key": "end",
    "size_bytes": "bytes",
    "from_server": "from",
    "to_server": "to",
}


def plain_fields(value: object, *names: str) -> dict[str, Any]:
    """Return these fields of a record for JSON, in this order."""
    return {_NAMES_IN_JSON.get(name, name): plain(getattr(value, name)) for name in names}


def plain(value: object) -> object:
    """Return the value of a field for JSON, with bytes as they are typed."""
    if isinstance(value, bytes):
        return readable(value)
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value


def last_line(text: str) -> str:
    """Return the last line of an error, which says what happened; the lines before it say where."""
    lines = text.strip().splitlines()
    return readable(lines[-1].encode()) if lines else ""
