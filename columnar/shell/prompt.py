"""The prompt of ``columnar shell``: prompt_toolkit around ``Commands``.  The one module that runs it."""

from __future__ import annotations

import traceback

import click
import platformdirs
from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.history import History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output

from columnar.errors import IllegalArgument
from columnar.shell.completing import CommandCompleter
from columnar.shell.lines import Statement, statements_of
from columnar.shell.running import Commands, Failed, Interrupted, Outcome
from columnar.shell.session import Session
from columnar.shell.shell_history import opened

PROMPT = "columnar> "
CONTINUATION_PROMPT = "     ...> "
assert len(PROMPT) == len(CONTINUATION_PROMPT)


def converse(
    commands: Commands, session: Session, root: click.Group, *, input: Input | None = None, output: Output | None = None
) -> None:
    """Returns when the person leaves.  ``input`` and ``output``: the terminal, where none is given."""
    prompt: PromptSession[str] = PromptSession(
        PROMPT,
        prompt_continuation=CONTINUATION_PROMPT,
        multiline=True,
        key_bindings=bindings(),
        history=_history(),
        auto_suggest=AutoSuggestFromHistory(),
        completer=CommandCompleter(root, session),
        complete_in_thread=True,  # names of the store may take a moment
        complete_while_typing=False,
        enable_suspend=True,
        input=input,
        output=output,
    )
    while True:
        try:
            text = prompt.prompt()
            if not carried_out(commands, text):
                return
            session.names.forget()  # the command may have changed them
        except KeyboardInterrupt:
            continue  # the line is given up; or it came a second time, while the first was handled
        except EOFError:
            return


def bindings() -> KeyBindings:
    """Enter runs whole statements, and begins a new line while a quote or a bracket is open."""
    keys = KeyBindings()

    @keys.add("enter", filter=has_focus(DEFAULT_BUFFER))
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        chosen = buffer.complete_state is not None and buffer.complete_state.current_completion is not None
        if chosen:
            buffer.complete_state = None  # the chosen word stays, and the line continues
        elif _is_incomplete(buffer.text):
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    return keys


def _is_incomplete(text: str) -> bool:
    try:
        return statements_of(text)[1].is_open
    except IllegalArgument:
        return False  # too long: running it says so


def carried_out(commands: Commands, text: str) -> bool:
    """Runs the statements up to the first that fails.  Whether the shell continues."""
    try:
        statements, _ = statements_of(text)
    except IllegalArgument as error:
        _say(error.text)
        return True
    for statement in statements:
        outcome = _run(commands, statement)
        if outcome == "leave":
            return False
        if isinstance(outcome, Failed):
            _say(outcome.text)
            break
    return True


def _run(commands: Commands, statement: Statement) -> Outcome:
    try:
        return commands.run(statement, teaches=True)
    except (Interrupted, KeyboardInterrupt):
        return Failed(Interrupted.text)
    except BrokenPipeError:  # a pager that was left
        return "done"
    except Exception:  # noqa: BLE001 - a fault of one command ends that command, as in a server's loop
        traceback.print_exc()
        return Failed("this is a fault in Columnar; the lines above say where")


def _say(text: str) -> None:
    if text:
        click.echo(click.style(text, fg="red"), err=True)


def _history() -> History:
    try:
        return opened(platformdirs.user_state_dir("columnar", appauthor=False))
    except OSError as error:
        click.echo(f"this session's history is not kept: {error.strerror}: {error.filename}", err=True)
        return InMemoryHistory()
