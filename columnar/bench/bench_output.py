"""The output of the commands of ``columnar bench``: progress, tables, JSON, errors."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from columnar.bench.address import EndpointFailed

CANNOT_MEASURE: Final = 1  # exit status
_WIDTH: Final = 160  # of tables, where no terminal says it


@contextmanager
def progress_bar() -> Iterator[Progress]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield progress


class Bar:
    """A bar that begins anew for each thing that is done."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def began(self, what: str, total: int) -> None:
        self._progress.reset(self._task, total=total or None, description=what)

    def advance(self, count: int) -> None:
        self._progress.advance(self._task, count)


def console_of_output() -> Console:
    return Console(width=None if sys.stdout.isatty() else _WIDTH)


def write_json(path: str | None, figures: dict[str, Any]) -> None:
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)


def give_up(failure: EndpointFailed) -> NoReturn:
    click.echo(f"columnar bench: {failure}", err=True)
    raise SystemExit(CANNOT_MEASURE)


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def machine() -> str:
    """Cores, processor and Python, for the head of a table."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            model = next((line.partition(":")[2].strip() for line in info if line.startswith("model name")), model)
    except OSError:
        pass  # not Linux: the bare name has to do
    return f"{os.cpu_count()} cores, {model}, Python {platform.python_version()}"
