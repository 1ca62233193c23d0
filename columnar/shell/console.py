"""``columnar shell``: every command at a prompt or in a script.

``Script`` runs statements from a file, a pipe or ``-c``, one after the other. For a failed command it prints a line on
stderr that begins with the script's name and the statement's line number.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

import click

from columnar.client import ClientTls
from columnar.client.store_options import client_settings, store_option
from columnar.client.tls_options import tls_options
from columnar.client.user_options import ClientUser, user_options
from columnar.errors import IllegalArgument
from columnar.limits import SHELL_STATEMENT_CHARACTERS
from columnar.settings.configured import FILE
from columnar.shell.connecting import Misused, Refused, connect, report_errors, secrets_of
from columnar.shell.lines import Statement, Statements
from columnar.shell.running import Commands, Failed, Interrupted, as_typed_in_shell
from columnar.shell.session import KeptConnection, Session, exported
from columnar.shell.store_names import StoreNames
from columnar.version import VERSION


@click.command()
@click.argument("file", required=False)
@click.option("-c", "text", metavar="STATEMENTS", help="Run these, separated by ; or line ends, and end.")
@click.option("--keep-going", is_flag=True, help="In a script: go on after a command that failed.")
@client_settings
@store_option
@tls_options
@user_options
@click.pass_context
def shell(
    ctx: click.Context,
    file: str | None,
    text: str | None,
    keep_going: bool,
    store: str,
    tls: ClientTls | None,
    user: ClientUser | None,
) -> None:
    """Type commands at a prompt, or run a script of them.

    All commands are there by the same words without 'columnar', over one connection. At the prompt Tab completes
    commands, options, tables, families and regions, an open quote goes on in the next line, long answers go through
    a pager, Ctrl-C ends a command and Ctrl-D the shell. The usual words of HBase's shell are understood, or
    answered with ours.

    A script comes from FILE, from -c or on standard input. # begins a comment. It ends at the first command that
    fails, which is told on stderr as FILE:LINE, with exit status 1; nobody is asked, so what asks wants --yes.

    \b
      columnar shell
      columnar shell --store 10.0.0.5:9090
      columnar shell -c 'tables; count pages'
      columnar shell nightly.columnar --keep-going
      columnar shell < setup.columnar
    """
    if file is not None and text is not None:
        raise Misused("a script comes from FILE or from -c: say one of them")
    is_prompt = file is None and text is None and sys.stdin.isatty() and sys.stdout.isatty()
    root = ctx.find_root().command
    assert isinstance(root, click.Group), "the command line is one"
    kept = KeptConnection(connect)
    session = Session(kept, StoreNames(time.monotonic), pages=is_prompt, is_script=not is_prompt)
    commands = Commands(root, session)
    try:
        with exported(store, tls, user, ctx.meta.get(FILE)):
            if is_prompt:
                from columnar.shell.prompt import converse  # the library for it is loaded by nothing else

                _greet(kept, store, tls, user)
                converse(commands, session, root)
                return
            if file is None and text is None:
                _tolerate(sys.stdin)
            with report_errors(store):
                secrets_of(user)  # before the script is read, which may be standard input too
            status = _run_script(file, text, commands, keep_going)
    finally:
        kept.close()
    ctx.exit(status)


def _greet(kept: KeptConnection, store: str, tls: ClientTls | None, user: ClientUser | None) -> None:
    click.echo(f"Columnar {VERSION} at {store}. 'help' lists the commands, Tab completes, Ctrl-D leaves.")
    try:
        with report_errors(store), kept.lent(store, tls, user):
            return
    except Refused as error:
        click.echo(click.style(as_typed_in_shell(error.message), fg="red"), err=True)


def _run_script(file: str | None, text: str | None, commands: Commands, keep_going: bool) -> int:
    if text is not None:
        return Script("-c", commands, keep_going=keep_going).run(io.StringIO(text))
    if file is None:
        return Script("<stdin>", commands, keep_going=keep_going).run(sys.stdin)
    try:
        source = open(file, encoding="utf-8", errors="surrogateescape")  # noqa: SIM115 - errors of its opening alone count
    except OSError as error:
        raise Misused(f"cannot read '{file}': {error.strerror}") from None
    with source:
        return Script(file, commands, keep_going=keep_going).run(source)


def _tolerate(source: TextIO) -> None:
    """Have the stream keep bytes that are not text as they are, as in arguments.  Call before the first read."""
    if isinstance(source, io.TextIOWrapper):
        source.reconfigure(errors="surrogateescape")


FAILED: Final = 1
INTERRUPTED: Final = 130  # as the system's shells say it


class _Taken(io.TextIOBase):
    """Standard input while a script is read from it; refuses reads, as a command would take the script for a value."""

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
        """Run the statements of ``source``; return the exit status."""
        reader = Statements()
        try:
            for line in _lines(source):
                for statement in reader.feed(line):
                    if not self._run(statement, source):
                        return self._status
        except KeyboardInterrupt:  # between two statements
            return INTERRUPTED
        except IllegalArgument as error:  # a statement without an end includes all later lines
            self._say(reader.line, error.text)
            return FAILED
        if reader.is_open:
            self._say(reader.line, reader.lacking)
            return FAILED
        return self._status

    def _run(self, statement: Statement, source: TextIO) -> bool:
        """Run a statement; return whether the script continues."""
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
        sys.stdout.flush()  # keeps the order of events if both are one file
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
