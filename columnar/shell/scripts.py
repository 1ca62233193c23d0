"""Statements from a file, a pipe or ``-c``, one after the other: for scripts, without a prompt.

A failed command is a line on stderr that begins with the script's name and the statement's line.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

import click

from columnar.errors import IllegalArgument
from columnar.limits import SHELL_STATEMENT_CHARACTERS
from columnar.shell.lines import Statement, Statements
from columnar.shell.running import Commands, Failed, Interrupted

FAILED: Final = 1
INTERRUPTED: Final = 130  # as the system's shells say it


class _Taken(io.TextIOBase):
    """Standard input while a script is read from it: a command that reads a value there would read the script."""

    @property
    def buffer(self) -> _Taken:
        return self

    def read(self, size: int | None = -1, /) -> str:
        raise IllegalArgument("standard input is the script; a value is read from a file: COLUMN=@FILE")

    def isatty(self) -> bool:
        return False


class Script:
    def __init__(self, name: str, commands: Commands, *, keep_going: bool) -> None:
        self._name = name
        self._commands = commands
        self._keeps_going = keep_going
        self._status = 0

    def run(self, source: TextIO) -> int:
        """Return the exit status."""
        reader = Statements()
        try:
            for line in _lines(source):
                for statement in reader.feed(line):
                    if not self._run(statement, source):
                        return self._status
        except KeyboardInterrupt:  # between two statements
            return INTERRUPTED
        except IllegalArgument as error:  # a statement without an end: what follows is part of it
            self._say(reader.line, error.text)
            return FAILED
        if reader.is_open:
            self._say(reader.line, reader.lacking)
            return FAILED
        return self._status

    def _run(self, statement: Statement, source: TextIO) -> bool:
        """Whether the script continues."""
        try:
            with _taken_from_commands(source):
                outcome = self._commands.run(statement)
        except Interrupted as error:
            self._status = INTERRUPTED
            self._say(statement.line, error.text)
            return False
        if isinstance(outcome, Failed):
            self._say(statement.line, outcome.text)
            self._status = FAILED
            return self._keeps_going
        return outcome == "done"

    def _say(self, line: int, text: str) -> None:
        sys.stdout.flush()  # in the order in which it happened, where both are one file
        click.echo(f"{self._name}:{line}: {text}", err=True)


def _lines(source: TextIO) -> Iterator[str]:
    while line := source.readline(SHELL_STATEMENT_CHARACTERS + 1):
        if len(line) > SHELL_STATEMENT_CHARACTERS:
            raise IllegalArgument(f"the line has more than {SHELL_STATEMENT_CHARACTERS} characters")
        yield line.rstrip("\r\n")


@contextmanager
def _taken_from_commands(source: TextIO) -> Iterator[None]:
    if source is not sys.stdin:
        yield
        return
    sys.stdin = _Taken()
    try:
        yield
    finally:
        sys.stdin = source
