"""The prompt of ``columnar shell``: prompt_toolkit around ``Commands``.  No other module uses prompt_toolkit's prompt.

As in ``columnar completion`` the commands' parameters define the completion, so a new command completes without a line
here.

The history is a bounded file that only the user can read:

    file   := entry*
    entry  := "\\n" "# " time "\\n" ("+" line "\\n")+        prompt_toolkit's form (``FileHistory``)

Entries that begin with a blank or repeat the previous entry are not kept.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from typing import Final

import click
from click.shell_completion import CompletionItem, ShellComplete
from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output

from columnar.errors import IllegalArgument
from columnar.limits import SHELL_HISTORY_BYTES
from columnar.settings.user_folders import user_folder
from columnar.shell.completion import completing
from columnar.shell.hbase_words import VERBS
from columnar.shell.lines import Statement, Unfinished, before_cursor, quoted, statements_of
from columnar.shell.running import NAME, OWN_WORDS, Commands, Failed, Interrupted, Outcome
from columnar.shell.session import Session

PROMPT = "columnar> "
CONTINUATION_PROMPT = "     ...> "
assert len(PROMPT) == len(CONTINUATION_PROMPT)


def converse(
    commands: Commands, session: Session, root: click.Group, *, input: Input | None = None, output: Output | None = None
) -> None:
    """Run the prompt until the person leaves it; ``input`` and ``output`` are the terminal by default."""
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
    """Return the key bindings: Enter runs whole statements, or begins a new line while a quote or a bracket is open."""
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
    """Run the statements up to the first that fails; return whether the shell continues."""
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
    folder = user_folder("user_state_dir", "columnar")
    if folder is None:
        click.echo("this session's history is not kept: this user has no home folder", err=True)
        return InMemoryHistory()
    try:
        return opened(folder)
    except OSError as error:
        click.echo(f"this session's history is not kept: {error.strerror}: {error.filename}", err=True)
        return InMemoryHistory()


_MOST_HELP = 60  # characters beside a completion
_MORE_FOLLOWS = ("(", ":", "/")  # a filter's arguments, a qualifier, a path


class CommandCompleter(Completer):
    """A completer that runs in a thread of its own; the names of the store come from ``Session.names``."""

    def __init__(self, root: click.Group, session: Session) -> None:
        self._root = root
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        try:
            typed = before_cursor(document.text_before_cursor)
        except IllegalArgument:  # longer than a statement may be
            return
        words = list(typed.words)
        if words and words[0] == NAME:
            del words[0]
        last, begin = typed.last, typed.begin
        if last.startswith("--") and "=" in last and not typed.quote:
            begin += last.index("=") + 1  # the option stays, its value is completed
        offset = begin - len(document.text_before_cursor)
        for item in self._items(words, last):
            if item.type in ("file", "dir"):
                yield from _paths(item, last, complete_event)
            else:
                yield Completion(_as_typed(item.value, typed), offset, item.value, display_meta=_help_of(item))

    def _items(self, words: list[str], last: str) -> list[CompletionItem]:
        found = ShellComplete(self._root, {"obj": self._session}, NAME, "")
        if not words:
            items = [item for item in found.get_completions([], last) if item.value != "shell"]
            own = [CompletionItem(name, help=text) for name, text in OWN_WORDS.items()]
            hbase = [CompletionItem(name, help=f"HBase: {verb.form}") for name, verb in VERBS.items() if last]
            ours = {item.value for item in items}
            return items + [item for item in own + hbase if item.value.startswith(last) and item.value not in ours]
        with self._root.make_context(NAME, [], resilient_parsing=True, obj=self._session) as ctx:
            known = self._root.list_commands(ctx)
            if words[0] == "help" and len(words) == 1:
                return [CompletionItem(name) for name in [*known, "hbase"] if name.startswith(last)]
            if words[0] not in known:
                is_table = words[0] in VERBS and len(words) == 1
                return completing("table")(ctx, _ANY, last) if is_table else []
        return found.get_completions(words, last)


_ANY = click.Argument(["any"])


def _as_typed(value: str, typed: Unfinished) -> str:
    """Return ``value`` in the open quotes, or quoted if necessary; the quote stays open if more must follow."""
    more = value.endswith(_MORE_FOLLOWS)
    if typed.quote == '"':
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + ("" if more else '"')
    if typed.quote:
        return f"'{value}" + ("" if more else "'")
    shown = quoted(value)
    return shown[:-1] if more and shown != value else shown


def _help_of(item: CompletionItem) -> str:
    text = " ".join((item.help or "").split())
    return text if len(text) <= _MOST_HELP else text[: _MOST_HELP - 3] + "..."


def _paths(item: CompletionItem, last: str, event: CompleteEvent) -> Iterator[Completion]:
    completer = PathCompleter(only_directories=item.type == "dir", expanduser=False)
    yield from completer.get_completions(Document(last), event)


_PRIVATE: Final = 0o600


class PrivateHistory(FileHistory):
    """A history, opened by ``opened``; when its file can no longer be written, it keeps no new entries, silently."""

    def append_string(self, string: str) -> None:
        if string.strip() and not string[0].isspace() and self.get_strings()[-1:] != [string]:
            super().append_string(string)

    def store_string(self, string: str) -> None:
        try:
            super().store_string(string)
        except OSError:  # a full disk is no reason to end a session; the session's own history continues
            return


def opened(folder: str) -> PrivateHistory:
    """Open the history in ``folder``.  Raises OSError if the folder cannot be made or the file cannot be written."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, "shell_history")
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, _PRIVATE), "r+b") as file:
        os.chmod(path, _PRIVATE)  # it may contain values, and may have been made readable for other users
        size = file.seek(0, os.SEEK_END)
        if size > SHELL_HISTORY_BYTES:
            file.seek(size - SHELL_HISTORY_BYTES // 2)
            kept = file.read()
            file.seek(0)
            file.write(kept[kept.find(b"\n\n# ") + 1 :])  # from the first whole entry on
            file.truncate()
    return PrivateHistory(path)
