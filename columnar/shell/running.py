"""Running statements: each runs a command of the command line in this process, with the state that a session shares.

The commands are those of the group ``columnar`` itself, so a command that is added there is also a command here, with
its help and its completion.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Final, Literal

import click

from columnar.shell.hbase_words import VERBS, Answer, Ours, in_our_words
from columnar.shell.lines import Statement, quoted
from columnar.shell.meaning import command_meant
from columnar.shell.session import Session

NAME: Final = "columnar"
OWN_WORDS: Final = {
    "help": "Show the commands, one command's help, or with 'help hbase' HBase's words in ours.",
    "exit": "Leave; so does Ctrl-D.",
    "quit": "Leave.",
}
OWN_PROCESS: Final = frozenset({"standalone", "node"})  # they take the place of their process: here one of their own


@dataclass(frozen=True, slots=True)
class Failed:
    """The command failed; the text is one line with the next step, or empty if the command has printed everything."""

    text: str


Outcome = Failed | Literal["done", "leave"]


class Interrupted(Exception):
    """Ctrl-C has ended the command, but not the session."""

    text = "stopped; what the store has taken in by now stays"


class Commands:
    def __init__(self, root: click.Group, session: Session) -> None:
        self._root = root
        self._session = session

    @property
    def names(self) -> list[str]:
        with self._root.make_context(NAME, [], resilient_parsing=True) as ctx:
            return self._root.list_commands(ctx)

    def run(self, statement: Statement, *, teaches: bool = False) -> Outcome:
        """Run a statement.  Raises Interrupted if the person ended it.

        With ``teaches`` a statement in HBase's words is first shown in Columnar's words.
        """
        known = self.names
        found = in_our_words(statement, known)
        if isinstance(found, Answer):
            return Failed(found.text)
        if isinstance(found, Ours):
            if teaches:
                click.echo(click.style(f"in Columnar: {found.text}", dim=True), err=True)
            return self._carried_out(found.words)
        words = statement.words
        if words[0] == NAME and len(words) > 1:  # as it stands on a page
            words = words[1:]
        if words[0] in ("exit", "quit"):
            return "leave"
        if words[0] == "help":
            return self._help(words[1:])
        if words[0] not in known and not words[0].startswith("-"):
            meant = command_meant(list(words), [*known, *OWN_WORDS])
            hint = f"did you mean '{meant}'?" if meant else "'help' lists the commands"
            return Failed(f"there is no command {quoted(words[0])}; {hint}")
        if words[0] == "shell":
            return Failed("this is the shell; 'help' lists the commands")
        return self._carried_out(words)

    def _help(self, words: tuple[str, ...]) -> Outcome:
        if words == ("hbase",):
            width = max(map(len, VERBS))
            for verb, ours in VERBS.items():
                click.echo(f"  {verb.ljust(width)}  {ours.form}")
            return "done"
        if words and words[0] in OWN_WORDS:
            click.echo(f"{words[0]}: {OWN_WORDS[words[0]]}")
            return "done"
        if words:
            return self._carried_out((*words, "--help"))
        with self._root.make_context(NAME, [], resilient_parsing=True) as ctx:
            formatter = ctx.make_formatter()
            self._root.format_commands(ctx, formatter)
            with formatter.section("Of the shell"):
                formatter.write_dl(list(OWN_WORDS.items()))
            click.echo(formatter.getvalue().rstrip("\n"))
        click.echo("\nCOMMAND --help shows examples. Quotes, \\ and # are as in the system's shell; ; separates.")
        return "done"

    def _carried_out(self, words: tuple[str, ...]) -> Outcome:
        if words[0] in OWN_PROCESS and not {"--help", "-h"} & set(words):
            return self._in_own_process(words)
        try:
            with self._root.make_context(NAME, list(words), obj=self._session) as ctx:
                self._root.invoke(ctx)
        except click.exceptions.Exit as end:
            return _ended(words, end.exit_code)
        except SystemExit as end:
            return _ended(words, end.code)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            return Failed(f"'{_path(error.ctx)}' goes with a command of its own")
        except click.UsageError as error:
            path = _path(error.ctx)
            step = f"'{path} --help' shows how" if path else "'help' lists the commands"
            return Failed(f"{as_typed_in_shell(error.format_message()).removesuffix('.')}; {step}")
        except click.ClickException as error:
            return Failed(as_typed_in_shell(error.format_message()))
        except click.Abort:  # the answer to a question was no
            return Failed("not done")
        except (KeyboardInterrupt, EOFError):
            raise Interrupted from None
        return "done"

    def _in_own_process(self, words: tuple[str, ...]) -> Outcome:
        in_this_folder = sys.path[:1] == [os.getcwd()]  # as for python -m: then modules of this folder count there too
        command = [sys.executable, *([] if in_this_folder else ["-P"]), "-m", NAME, *words]
        with subprocess.Popen(command) as process:
            while True:
                try:
                    return _ended(words, process.wait())
                except KeyboardInterrupt:
                    continue  # it got the signal too, and stops in order


def _ended(words: tuple[str, ...], status: object) -> Outcome:
    return Failed(f"{quoted(words[0])} ended with status {status}") if status else "done"


def _path(ctx: click.Context | None) -> str:
    return ctx.command_path.removeprefix(NAME).strip() if ctx is not None else ""


def as_typed_in_shell(message: str) -> str:
    """Return a hint with commands as they are typed in the shell; a store is started in a different terminal."""
    return message.replace(f"'{NAME} ", "'").replace("'standalone'", f"'{NAME} standalone' in another terminal")
