"""Completion at the shell's prompt: by the commands themselves, as ``columnar completion`` has it.

Commands, options, names in the store: all of it is said by the commands' own parameters (``completion.completing``),
so a new command completes without a line here.
"""

from __future__ import annotations

from collections.abc import Iterator

import click
from click.shell_completion import CompletionItem, ShellComplete
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from columnar.errors import IllegalArgument
from columnar.shell.completion import completing
from columnar.shell.hbase_words import VERBS
from columnar.shell.lines import Unfinished, before_cursor, quoted
from columnar.shell.running import NAME, OWN_WORDS
from columnar.shell.session import Session

_MOST_HELP = 60  # characters beside a completion
_MORE_FOLLOWS = ("(", ":", "/")  # a filter's arguments, a qualifier, a path


class CommandCompleter(Completer):
    """Runs in a thread of its own; the names of the store come from ``Session.names``."""

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
    """In the quotes that are open, else quoted where it must be; open at the end where more is to follow."""
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
