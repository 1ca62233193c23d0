"""The prompt: keys through prompt_toolkit's pipe, completion by the commands' own parameters, history, pages."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import History
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from columnar.cli import main
from columnar.limits import SHELL_HISTORY_BYTES
from columnar.shell import prompt as shell_history
from columnar.shell.prompt import CommandCompleter, carried_out, converse
from columnar.shell.running import Commands
from columnar.shell.session import KeptConnection, Session
from columnar.shell.shell_output import Output, Pages
from columnar.shell.store_names import KINDS, StoreNames

NAMES = {"table": ["pages", "parts", "with space"], "family": ["meta", "text"], "region": ["8f14e4"]}


class KnownNames(StoreNames):
    """A store's names without a store."""

    def __init__(self) -> None:
        super().__init__(lambda: 0.0)
        self.asked: list[tuple[str, str]] = []
        self.forgotten = 0

    def of(self, store: str, tls: Any, kind: str, of: str = "", *, user: Any = None) -> list[str]:
        self.asked.append((kind, of))
        return NAMES.get(kind, [])

    def forget(self) -> None:
        self.forgotten += 1


def no_store(*_: Any) -> Any:
    raise AssertionError("nothing here needs a store")


@pytest.fixture
def names() -> KnownNames:
    return KnownNames()


@pytest.fixture
def session(names: KnownNames) -> Session:
    return Session(KeptConnection(no_store), names, pages=False)


def completed(session: Session, text: str) -> list[str]:
    """The lines that Tab offers for the text in front of the cursor."""
    assert isinstance(main, click.Group)
    found = CommandCompleter(main, session).get_completions(Document(text), CompleteEvent(completion_requested=True))
    return [text[: len(text) + one.start_position] + one.text for one in found]


@pytest.mark.parametrize(
    ("typed", "lines"),
    [
        ("trun", ["truncate", "truncate_preserve"]),
        ("columnar truncat", ["columnar truncate", "columnar truncate_preserve"]),
        ("he", ["help"]),
        ("majo", ["major_compact"]),
        ("get pa", ["get pages", "get parts"]),
        ("count pages; get pag", ["count pages; get pages"]),
        ("get 'pag", ["get 'pages'"]),
        ('get "pag', ['get "pages"']),
        ("get w", ["get 'with space'"]),
        ("get pages Home te", ["get pages Home text:"]),
        ("put pages Home m", ["put pages Home meta:"]),
        ("scan pages --columns text,m", ["scan pages --columns text,meta:"]),
        ("scan pages --columns=te", ["scan pages --columns=text:"]),
        ("scan pages --rev", ["scan pages --reversed"]),
        ("scan pages --as ", ["scan pages --as text", "scan pages --as counter", "scan pages --as hex"]),
        ("scan pages --filter Pre", ["scan pages --filter 'PrefixFilter("]),
        (
            "scan pages --filter \"PrefixFilter('a') AND\n  KeyO",
            ["scan pages --filter \"PrefixFilter('a') AND\n  KeyOnlyFilter("],
        ),
        ("flush 8", ["flush 8f14e4"]),
        ("flush ", ["flush pages", "flush parts", "flush 'with space'", "flush 8f14e4"]),
        ("merge 8f14e4 8", ["merge 8f14e4 8f14e4"]),
        ("alter pages --drop m", ["alter pages --drop meta"]),
        ("snapshot ta", ["snapshot take"]),
        ("snapshot take s pa", ["snapshot take s pages", "snapshot take s parts"]),
        ("list_regions 'pag", ["list_regions 'pages'"]),
        ("help tru", ["help truncate"]),
        ("nonsense pa", []),
        ("get pages Home 'text:body", []),
    ],
)
def test_tab_completes(typed: str, lines: list[str], session: Session) -> None:
    assert completed(session, typed) == lines


def test_families_are_those_of_the_table_that_is_named(session: Session, names: KnownNames) -> None:
    completed(session, "delete pages Home m")
    assert names.asked == [("family", "pages")]


def test_every_command_completes_and_only_those_that_are_there(session: Session) -> None:
    assert isinstance(main, click.Group)
    listed = [name for name in main.list_commands(click.Context(main)) if name != "shell"]
    assert completed(session, "")[: len(listed)] == listed


def test_a_command_that_is_added_is_there_by_itself(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    from columnar.shell.completion import completing

    @click.group()
    def root() -> None:
        """Commands."""

    @root.command()
    @click.argument("region", shell_complete=completing("region"))
    @click.option("--dry-run", is_flag=True)
    def assign(region: str, dry_run: bool) -> None:
        """Open a region."""

    completer = CommandCompleter(root, session)

    def lines(text: str) -> list[str]:
        return [one.text for one in completer.get_completions(Document(text), CompleteEvent())]

    assert lines("as") == ["assign"]
    assert lines("assign 8") == ["8f14e4"]
    assert lines("assign 8f14e4 --d") == ["--dry-run"]
    assert carried_out(Commands(root, session), "help")
    assert "assign  Open a region." in capsys.readouterr().out


def test_paths_complete(session: Session, tmp_path: Path) -> None:
    (tmp_path / "dump.tsv").touch()
    (tmp_path / "dumps").mkdir()
    assert completed(session, f"bulk-load pages {tmp_path}/du") == [
        f"bulk-load pages {tmp_path}/dump.tsv",
        f"bulk-load pages {tmp_path}/dumps",
    ]
    assert completed(session, f"export pages {tmp_path}/du") == [f"export pages {tmp_path}/dumps"]


# --- keys --------------------------------------------------------------------------------------------


class Typed:
    """Commands that note what they are asked to run."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def run(self, statement: Any, *, teaches: bool = False) -> Any:
        self.ran.append(statement.text)
        if statement.text == "interrupted":
            raise KeyboardInterrupt
        if statement.text == "broken":
            raise ZeroDivisionError
        return "leave" if statement.text == "exit" else "done"


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as pipe:
        yield pipe


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "columnar"


def conversed(keys: PipeInput, session: Session) -> list[str]:
    commands: Any = Typed()
    assert isinstance(main, click.Group)
    converse(commands, session, main, input=keys, output=DummyOutput())
    return list(commands.ran)


@pytest.mark.parametrize(
    ("typed", "ran"),
    [
        ("tables\rcount pages\r\x04", ["tables", "count pages"]),
        ("tables; exit\rnever\r", ["tables", "exit"]),
        ("put t r f:q='two\rlines'\r\x04", ["put t r f:q='two\nlines'"]),
        ("scan 't',\r {LIMIT =>\r5}\r\x04", ["scan 't',\n {LIMIT =>\n5}"]),
        ("get a\\\r b\r\x04", ["get a b"]),
        ("not 'this\x03tables\r\x04", ["tables"]),
        ("\r\r# nothing\r\x04", []),
        ("interrupted; never\rtables\r\x04", ["interrupted", "tables"]),
        ("broken; never\rtables\r\x04", ["broken", "tables"]),
    ],
)
def test_keys(typed: str, ran: list[str], keys: PipeInput, session: Session) -> None:
    keys.send_text(typed)
    assert conversed(keys, session) == ran


def test_names_are_asked_anew_after_a_command(keys: PipeInput, session: Session, names: KnownNames) -> None:
    keys.send_text("create t f\rtables\r\x04")
    conversed(keys, session)
    assert names.forgotten == 2


def type_prompt_by_prompt(keys: PipeInput, typed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each prompt gets the next of ``typed`` once its history is there, which prompt_toolkit loads beside the keys."""
    real, left = History.load, iter(typed)

    async def load(self: History) -> Any:
        async for line in real(self):
            yield line
        keys.send_text(next(left, ""))

    monkeypatch.setattr(History, "load", load)


@pytest.mark.parametrize(
    ("typed", "ran"),
    [
        (["tables\r", "\x1b[A\r", "\x04"], ["tables", "tables"]),
        (["one\r", "two\r", "\x1b[A\x1b[A\r", "\x04"], ["one", "two", "one"]),
        (["one\r", "two\r", "\x12on\r\r", "\x04"], ["one", "two", "one"]),  # Ctrl-R searches
        (["put 'a\rb'\r", "\x1b[A\r", "\x04"], ["put 'a\nb'", "put 'a\nb'"]),
    ],
)
def test_lines_come_back_from_history(
    typed: list[str], ran: list[str], keys: PipeInput, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_prompt_by_prompt(keys, typed, monkeypatch)
    assert conversed(keys, session) == ran


def test_tab_takes_the_one_that_is_left_and_enter_runs_it(
    keys: PipeInput, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Buffer.insert_text

    def insert(self: Buffer, data: str, *args: Any, **options: Any) -> None:
        real(self, data, *args, **options)
        if self.text == "count pages":  # the completion is there: its thread is over
            keys.send_text("\r\x04")

    monkeypatch.setattr(Buffer, "insert_text", insert)
    keys.send_text("count pag\t")
    assert conversed(keys, session) == ["count pages"]


# --- history and pages -------------------------------------------------------------------------------


def test_history_is_kept_for_the_user_alone(keys: PipeInput, session: Session, state: Path) -> None:
    keys.send_text("tables\rtables\r secret\rget 'a\rb'\r\x04")
    conversed(keys, session)
    path = state / "shell_history"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert list(shell_history.opened(str(state)).load_history_strings()) == ["get 'a\nb'", "tables"]
    os.chmod(path, 0o644)
    shell_history.opened(str(state))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_history_has_a_bound(state: Path) -> None:
    history = shell_history.opened(str(state))
    for number in range(SHELL_HISTORY_BYTES // 1_000):
        history.append_string(f"put t r f:q={number:0980}")
    size = (state / "shell_history").stat().st_size
    assert size > SHELL_HISTORY_BYTES
    kept = list(shell_history.opened(str(state)).load_history_strings())
    assert SHELL_HISTORY_BYTES // 4 < (state / "shell_history").stat().st_size <= SHELL_HISTORY_BYTES // 2
    assert kept == list(history.get_strings())[-len(kept) :][::-1]


def test_without_a_place_for_it_history_lasts_as_long_as_the_session(
    keys: PipeInput, session: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    type_prompt_by_prompt(keys, ["one\r", "\x1b[A\r", "\x04"], monkeypatch)
    assert conversed(keys, session) == ["one", "one"]
    assert "history is not kept: Not a directory" in capsys.readouterr().err


@pytest.fixture
def pager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Takes the place of less; the text that it got."""
    got = tmp_path / "paged"
    script = tmp_path / "pager"
    script.write_text(f'#!/bin/sh\nhead -c "${{TAKES:-1000000}}" > {got}\n')
    script.chmod(0o755)
    monkeypatch.setenv("PAGER", str(script))
    monkeypatch.setattr("click._termui_impl.isatty", lambda _stream: True)
    return got


def test_pages_begin_where_the_screen_is_full(pager: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Pages(lines=4, columns=10) as pages:
        for line in ("a\n", "b\n", "c\n"):
            pages.write(line)
    assert (capsys.readouterr().out, pager.exists()) == ("a\nb\nc\n", False)
    with Pages(lines=4, columns=10) as pages:
        pages.write("a\n")
        pages.write("\x1b[1m" + "x" * 11 + "\x1b[0m\n")  # two lines of this screen
        pages.write("c\n")  # the fourth: the prompt would push the first off the screen
    assert capsys.readouterr().out == ""
    assert click.unstyle(pager.read_text()) == "a\nxxxxxxxxxxx\nc\n"


def test_a_pager_that_is_left_ends_the_answer(pager: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAKES", "10")
    rows = 0
    with Pages(lines=4, columns=80) as pages:
        for rows in range(1_000_000):
            pages.write(f"row {rows}\n")
    assert 4 <= rows < 999_999
    assert len(pager.read_text()) == 10


def test_an_error_amid_an_answer_is_an_error(pager: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        with Pages(lines=4, columns=80) as pages:
            pages.write("a\n")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert capsys.readouterr().out == "a\n"


@pytest.mark.parametrize(("is_terminal", "pages"), [(False, True), (True, False)])
def test_no_pages_without_a_terminal_or_a_prompt(is_terminal: bool, pages: bool, pager: Path, capsys: Any) -> None:
    output = Output(False, is_terminal=is_terminal, pages=pages)
    output.table(("N",), [(number,) for number in range(200)])
    assert "199" in capsys.readouterr().out
    assert not pager.exists()
    if is_terminal:
        Output(False, is_terminal=True, pages=True).table(("N",), [(number,) for number in range(200)])
        assert "199" in pager.read_text()


# --- names -------------------------------------------------------------------------------------------


def test_names_are_remembered_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now, asked = [0.0], []
    names = StoreNames(lambda: now[0])
    monkeypatch.setattr(names, "_request_names", lambda *what: asked.append(what[2:4]) or ["pages"])
    for _ in range(3):
        assert names.of("here:1", None, "table") == ["pages"]
    names.of("here:1", None, "family", "pages")
    assert asked == [("table", ""), ("family", "pages")]
    now[0] = 6.0
    names.of("here:1", None, "table")
    names.forget()
    names.of("here:1", None, "table")
    assert asked[2:] == [("table", ""), ("table", "")]


def test_every_kind_that_a_command_names_is_there() -> None:
    import re

    folder = Path(str(__import__("columnar.shell").shell.__path__[0]))
    named = {kind for path in folder.glob("*.py") for kind in re.findall(r"completing\(([^)]*)\)", path.read_text())}
    kinds = {word for text in named for word in re.findall(r'(?<!=)"(\w+)"', text)}
    assert {"table", "family", "region"} <= kinds <= set(KINDS)
