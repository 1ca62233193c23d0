"""Scripts of the shell: order, line numbers, exit status; commands of a small command line, without a store."""

from __future__ import annotations

import io
import sys
from typing import Any

import click
import pytest

from columnar.cli import _SUBCOMMANDS
from columnar.client import ClientTls
from columnar.errors import IllegalArgument
from columnar.limits import SHELL_STATEMENT_CHARACTERS
from columnar.shell.connecting import Refused, require_confirmation
from columnar.shell.console import INTERRUPTED, Script
from columnar.shell.lines import statements_of
from columnar.shell.running import OWN_PROCESS, Commands, Failed, Interrupted
from columnar.shell.servers import _confirm_by_name
from columnar.shell.session import KeptConnection, Session, exported, session_of
from columnar.shell.shell_output import Output
from columnar.shell.store_names import StoreNames


def no_store(*_: Any) -> Any:
    raise AssertionError("nothing here needs a store")


class Terminal(io.StringIO):
    """A person who has typed all of it."""

    def isatty(self) -> bool:
        return True


SESSION = Session(KeptConnection(no_store), StoreNames(lambda: 0.0), pages=False)


@click.group()
def root() -> None:
    """A command line."""


@root.command()
@click.argument("words", nargs=-1)
@click.option("--json", is_flag=True)
def say(words: tuple[str, ...], json: bool) -> None:
    click.echo("|".join(words))


@root.command()
@click.argument("how")
def fail(how: str) -> None:
    """Fail."""
    if how == "refused":
        raise Refused("no; try 'columnar say' or 'columnar standalone'")
    if how == "misused":
        raise click.UsageError("not so.", click.get_current_context())
    if how == "status":
        raise SystemExit(3)
    if how == "exit":
        click.get_current_context().exit(4)
    if how == "declined":
        raise click.Abort
    raise KeyboardInterrupt


@root.command()
def read() -> None:
    """Read standard input."""
    try:
        click.echo(sys.stdin.buffer.read(10))
    except IllegalArgument as error:
        raise Refused(error.text) from None
    finally:
        click.echo(f"a terminal: {sys.stdin.isatty()}")


@root.command()
@click.pass_context
def where(ctx: click.Context) -> None:
    click.echo(session_of(ctx) is SESSION)


@root.command()
@click.option("--yes", is_flag=True)
def clear(yes: bool) -> None:
    require_confirmation("Remove all rows?", yes)
    output = Output(as_json=False)
    output.table(("Row", "Size"), [("a", 1)])
    output.done("all rows are gone")


@root.group()
def group() -> None:
    """Go with a command."""


COMMANDS = Commands(root, SESSION)


def played(text: str, capsys: pytest.CaptureFixture[str], *, keep_going: bool = False) -> tuple[int, str, str]:
    status = Script("s", COMMANDS, keep_going=keep_going).run(io.StringIO(text))
    said = capsys.readouterr()
    return status, said.out, said.err


def test_statements_run_in_order_and_words_are_as_typed(capsys: pytest.CaptureFixture[str]) -> None:
    text = "# first\nsay a 'b c'; say \"d;\"\n\nsay 'e\nf' --json # no\ncolumnar say g\n"
    assert played(text, capsys) == (0, "a|b c\nd;\ne\nf\ng\n", "")


def test_a_script_ends_at_the_first_error(capsys: pytest.CaptureFixture[str]) -> None:
    text = "say a\n\nfail refused; say b\nsay c"
    said = "s:3: no; try 'say' or 'columnar standalone' in another terminal\n"
    assert played(text, capsys) == (1, "a\n", said)
    assert played(text, capsys, keep_going=True) == (1, "a\nb\nc\n", said)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("fail misused", "not so; 'fail --help' shows how"),
        ("fail", "Missing argument 'HOW'; 'fail --help' shows how"),
        ("say --nope", "No such option '--nope'; 'say --help' shows how"),
        ("fail status", "fail ended with status 3"),
        ("fail exit", "fail ended with status 4"),
        ("fail declined", "not done"),
        ("sya x", "there is no command sya; did you mean 'say'?"),
        ("helpp", "there is no command helpp; did you mean 'help'?"),
        ("xyzzy", "there is no command xyzzy; 'help' lists the commands"),
        ("scan 't', {LIMIT => 5}", "in Columnar: there is no 'scan' here; help lists what is"),
        (
            "list_security_capabilities",
            "in Columnar: whoami says whether the store checks rights; docs/security.md has the rest",
        ),
    ],
)
def test_an_error_is_one_line_with_the_next_step(typed: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert played(f"\n{typed}", capsys) == (1, "", f"s:2: {said}\n")


def test_help_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("help", "help fail", "fail --help", "say -- --help", "help hbase"):
        status, out, err = played(text, capsys)
        assert (status, err) == (0, "")
        assert out
    assert "  fail" in played("help", capsys)[1]
    assert "merge REGION OTHER" in played("help hbase", capsys)[1]
    status, out, err = played("group", capsys)
    assert (status, out, err.splitlines()[-1]) == (1, "", "s:1: 'group' goes with a command of its own")


def test_exit_ends_a_script_with_the_status_so_far(capsys: pytest.CaptureFixture[str]) -> None:
    assert played("say a; exit; say b", capsys) == (0, "a\n", "")
    assert played("fail status\nquit\nsay b", capsys, keep_going=True)[:2] == (1, "")


def test_ctrl_c_ends_a_script_whatever_was_asked(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = played("say a; fail interrupted; say b", capsys, keep_going=True)
    assert (status, out, err) == (INTERRUPTED, "a\n", f"s:1: {Interrupted.text}\n")


def test_a_script_that_ends_too_soon_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert played("say a\nsay 'b\nc", capsys) == (1, "a\n", "s:4: the ' of line 2 is not closed\n")
    status, out, err = played("say a\nsay '" + "b\n" * SHELL_STATEMENT_CHARACTERS, capsys)
    assert (status, out) == (1, "a\n")
    assert "more than 1048576 characters: the ' of line 2 is not closed? A long value is read from a file" in err
    assert "the line has more than" in played("say " + "b" * SHELL_STATEMENT_CHARACTERS, capsys)[2]


def test_a_command_does_not_read_the_script(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = io.TextIOWrapper(io.BytesIO(b"read\nsay never"))
    monkeypatch.setattr(sys, "stdin", source)
    assert Script("<stdin>", COMMANDS, keep_going=False).run(source) == 1
    said = capsys.readouterr()
    assert said.out == "a terminal: False\n"
    assert said.err.startswith("<stdin>:1: standard input is the script")
    assert sys.stdin is source


def at_a_terminal(is_script: bool, typed: str, text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, str, str]:
    """The outcome of a statement, and what is said on stdout and stderr."""
    session = Session(KeptConnection(no_store), StoreNames(lambda: 0.0), pages=False, is_script=is_script)
    out, err = Terminal(), Terminal()
    with monkeypatch.context() as patched:
        for name, stream in (("stdin", Terminal(typed)), ("stdout", out), ("stderr", err)):
            patched.setattr(sys, name, stream)
        (statement,), _ = statements_of(text)
        outcome = Commands(root, session).run(statement)
    return outcome, click.unstyle(out.getvalue()), err.getvalue()


def test_a_script_answers_as_in_a_pipe_and_asks_nobody_also_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Failed("Remove all rows? Nobody can be asked here: say --yes")
    assert at_a_terminal(True, "y\n", "clear", monkeypatch) == (refused, "", "")
    assert at_a_terminal(True, "", "clear --yes", monkeypatch) == ("done", "a\t1\n", "")


def test_a_question_is_no_part_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = "Remove all rows? [y/N]: "
    assert at_a_terminal(False, "n\n", "clear", monkeypatch) == (Failed("not done"), "", asked)
    outcome, out, err = at_a_terminal(False, "y\n", "clear", monkeypatch)
    assert (outcome, err) == ("done", asked)
    assert out.endswith("all rows are gone\n")


def test_the_name_that_is_asked_for_again_is_no_part_of_the_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("s2\n"))
    _confirm_by_name("s2", "", "s2 would be ended at once")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "s2 would be ended at once. Type its name again to go on: ")


def test_commands_find_the_session(capsys: pytest.CaptureFixture[str]) -> None:
    assert played("where", capsys)[1] == "True\n"


def test_words_that_are_hbases_are_shown_in_ours_at_a_prompt(capsys: pytest.CaptureFixture[str]) -> None:
    @click.group()
    def other() -> None:
        """Commands."""

    @other.command()
    @click.argument("region")
    @click.argument("server", default="")
    def move(region: str, server: str) -> None:
        click.echo(f"{region} to {server}")

    (statement,), _ = statements_of("move 'abc', 'one'")
    assert Commands(other, SESSION).run(statement, teaches=True) == "done"
    said = capsys.readouterr()
    assert (said.out, said.err) == ("abc to one\n", "in Columnar: move abc one\n")
    assert isinstance(COMMANDS.run(statement), Failed)


def test_options_of_the_connection_are_handed_on_and_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setenv("COLUMNAR_STORE", "before:1")
    monkeypatch.setenv("COLUMNAR_TLS_CA", "before.crt")
    names = ("COLUMNAR_STORE", "COLUMNAR_TLS", "COLUMNAR_TLS_CA", "COLUMNAR_TLS_CLIENT_CERT")

    def seen() -> list[str | None]:
        return [os.environ.get(name) for name in names]

    with exported("there:2", None):
        assert seen() == ["there:2", None, None, None]
        with exported("inner:3", ClientTls("a.crt", "b.crt", "b.key")):
            assert seen() == ["inner:3", "1", "a.crt", "b.crt"]
    assert seen() == ["before:1", None, "before.crt", None]


def test_commands_that_become_a_store_run_in_a_process_of_their_own() -> None:
    becoming = {name for name, (place, _) in _SUBCOMMANDS.items() if place.startswith("columnar.roles.store_commands:")}
    assert becoming == OWN_PROCESS, "in the shell's own process they would end the shell"
