"""``columnar shell`` with a store: one connection for many commands, scripts as processes run them, a terminal."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from columnar.cli import main
from columnar.client import Connection
from columnar.client.errors import IOError
from columnar.shell.connecting import connect
from columnar.shell.lines import statements_of
from columnar.shell.running import Commands, Failed, Interrupted, Outcome
from columnar.shell.session import KeptConnection, Session, exported
from columnar.shell.store_names import KINDS, StoreNames
from tests.support.ports import free_port
from tests.support.pty_program import PtyProgram
from tests.support.serving import Serving
from tests.support.shell import Shell, store_at

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with store_at(tmp_path_factory.mktemp("shell") / "data") as found:
        Shell(found).out("create", "pages", "text", "meta:versions=3")
        Shell(found).out("put", "pages", "HomePage", "text:body=Hello")
        yield found


class Kept:
    """A session whose connections are counted."""

    def __init__(self, store: str) -> None:
        self.opened: list[Connection] = []
        self._kept = KeptConnection(self._connect)
        assert isinstance(main, click.Group)
        self._commands = Commands(main, Session(self._kept, StoreNames(time.monotonic), pages=False))
        self._store = store

    def _connect(self, store: str, tls: Any, user: Any) -> Any:
        opened = connect(store, tls, user)
        self.opened.append(opened[0])
        return opened

    def run(self, text: str) -> Outcome:
        (statement,), _ = statements_of(text)
        with exported(self._store, None):
            return self._commands.run(statement)

    def close(self) -> None:
        self._kept.close()
        assert not any(one.transport.is_open() for one in self.opened), "none is left open"


@pytest.fixture
def kept(address: str) -> Iterator[Kept]:
    session = Kept(address)
    yield session
    session.close()


def test_commands_share_a_connection_also_after_errors(kept: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    assert kept.run("get pages HomePage") == "done"
    assert kept.run("get nopages HomePage") == Failed("TableNotFoundException: nopages; did you mean 'pages'?")
    assert isinstance(kept.run("get pages Nobody"), Failed)
    assert isinstance(kept.run("get pages HomePage nofamily"), Failed)
    assert isinstance(kept.run("get pages HomePage --versions x"), Failed)
    assert kept.run("scan pages --limit 1") == "done"
    assert kept.run("count pages") == "done"
    assert kept.run("get pages HomePage text:body") == "done"
    assert capsys.readouterr().out.splitlines()[-1] == "HomePage\ttext:body\tHello"
    assert len(kept.opened) == 1


def test_an_interrupted_command_leaves_no_connection_behind(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its answer may be under way, and the next command would read it as its own."""

    def interrupted(self: Any, sequence: Any) -> None:
        raise KeyboardInterrupt

    assert kept.run("get pages HomePage") == "done"
    with monkeypatch.context() as patched:
        patched.setattr("thriftpy2.thrift.TClient._recv", interrupted)
        with pytest.raises(Interrupted):
            kept.run("count pages")
    capsys.readouterr()
    assert kept.run("get pages HomePage") == "done"
    assert capsys.readouterr().out == "HomePage\ttext:body\tHello\n"
    assert len(kept.opened) == 2


def test_another_store_gets_another_connection(kept: Kept, address: str, tmp_path: Path) -> None:
    with store_at(tmp_path / "other") as other:
        assert kept.run("get pages HomePage") == "done"
        assert isinstance(kept.run(f"get pages HomePage --store {other}"), Failed)
        assert kept.run("get pages HomePage") == "done"
    assert len(kept.opened) == 3


def test_a_store_that_was_started_anew_is_found_again(tmp_path: Path) -> None:
    port = free_port()
    serving = Serving(tmp_path / "data", port=port).start()
    session = Kept(f"127.0.0.1:{port}")
    try:
        assert session.run("create pages text") == "done"
        serving.stop()
        gone = session.run("tables")
        assert isinstance(gone, Failed)
        assert "start one with 'columnar standalone' in another terminal, or say where with --store" in gone.text
        serving = Serving(tmp_path / "data", port=port).start()
        assert session.run("put pages r text:a=1") == "done"
        serving.stop()
        serving = Serving(tmp_path / "data", port=port).start()  # unnoticed: nothing was asked meanwhile
        assert session.run("incr pages r text:n") == "done"
        assert len(session.opened) == 3
    finally:
        session.close()
        serving.stop()


def test_a_connection_comes_back_only_between_two_calls() -> None:
    class Fake:
        knows_several = False

        def __init__(self) -> None:
            self.closed = False
            self.here, self.there = socket.socketpair()
            self.transport = type("Transport", (), {"sock": self.here})()

        def close(self) -> None:
            self.closed = True

    made: list[Any] = []

    def opened(store: str, tls: Any, _user: Any) -> Any:
        made.append(Fake())
        return made[-1], None

    kept = KeptConnection(opened)

    def used(error: BaseException | None = None) -> Any:
        with suppress(BaseException), kept.lent("there", None) as (connection, _):
            if error is not None:
                raise error
        return connection

    first = used()
    assert used(IOError(b"no")) is first
    assert used(click.ClickException("no")) is first
    for error in (KeyboardInterrupt(), EOFError(), BrokenPipeError(), GeneratorExit()):
        assert used() is made[-1]
        broken = used(error)
        assert broken.closed
        assert used() is not broken
    with kept.lent("there", None) as (one, _), kept.lent("there", None) as (two, _):
        assert one is not two, "never lent twice"
    last = used()
    last.there.close()  # the other side ends it
    assert used() is not last
    assert last.closed
    kept.close()
    assert all(one.closed for one in made)
    for one in made:
        one.here.close()
        one.there.close()


# --- names ---------------------------------------------------------------------------------------


def test_names_of_every_kind(address: str, kept: Kept) -> None:
    for line in ("namespace create team", "snapshot take kept pages"):
        assert kept.run(line) == "done"
    names = StoreNames(time.monotonic)
    found = {kind: names.of(address, None, kind, "pages" if kind == "family" else "") for kind in KINDS}
    assert found["table"] == ["pages"]
    assert found["family"] == ["meta", "text"]
    assert [len(name) for name in found["region"]] == [32]
    assert found["snapshot"] == ["kept"]
    assert found["trigger"] == []
    assert "team" in found["namespace"]
    assert names.of(address, None, "region", "pages") == found["region"]
    assert names.of(address, None, "family", "nopages") == []


def test_names_of_a_silent_store_are_none_soon() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        assert StoreNames(time.monotonic).of(f"127.0.0.1:{silent.getsockname()[1]}", None, "table") == []
        assert time.monotonic() - began < 10, "a call waits half a second, and without a bound for ever"


# --- scripts -------------------------------------------------------------------------------------


def test_a_script_by_option_file_and_pipe(address: str, tmp_path: Path) -> None:
    script = "get pages HomePage text:body --json\ncount pages # all\nget pages Nobody; count pages\n"
    (tmp_path / "s.columnar").write_text(script)
    env = {"COLUMNAR_STORE": "127.0.0.1:1"}  # the option counts
    ways: list[tuple[str, list[str], str | None]] = [
        ("-c", ["-c", script], None),
        (str(tmp_path / "s.columnar"), [str(tmp_path / "s.columnar")], None),
        ("<stdin>", [], script),
    ]
    for name, words, typed in ways:
        done = CliRunner().invoke(main, ["shell", "--store", address, *words], env=env, input=typed)
        assert (done.exit_code, done.stderr) == (1, f"{name}:3: there is no such row in pages\n")
        assert [line[:18] for line in done.stdout.splitlines()] == ['{"row": "HomePage"', "1"]
        going = CliRunner().invoke(main, ["shell", "--store", address, "--keep-going", *words], env=env, input=typed)
        assert (going.exit_code, going.stdout.splitlines()[1:]) == (1, ["1", "1"])


def test_what_shell_refuses(shell_error: Any) -> None:
    assert shell_error("shell", "file", "-c", "tables", status=2).startswith("a script comes from FILE or from -c")
    assert "cannot read '/no/such/file': No such file" in shell_error("shell", "/no/such/file", status=2)


@pytest.fixture
def shell_error(address: str) -> Any:
    return Shell(address).error


def test_nobody_is_asked_by_a_script_and_it_is_not_read_as_a_value(address: str) -> None:
    shell = Shell(address)
    done = shell("shell", typed="drop pages\n")
    assert (done.exit_code, done.stderr.count("say --yes")) == (1, 1)
    done = shell("shell", typed="put pages r text:body=-\ndrop pages --yes\n")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "<stdin>:1: standard input is the script" in done.stderr
    assert shell.out("count", "pages") == "1\n"


def test_a_script_asks_nobody_also_at_a_terminal(address: str) -> None:
    script = "create asked f; put asked r f:a=1; get asked r; drop asked"
    with PtyProgram("shell", "--store", address, "-c", script) as shell:
        assert shell.end() == 1
        said = "-c:1: Remove asked and all its rows for good? Nobody can be asked here: say --yes"
        assert " ".join(shell.screen.split("\n")).split() == ["r", "f:a", "1", *said.split()]


def test_a_script_whose_reader_leaves_ends_quietly(address: str, tmp_path: Path) -> None:
    """``columnar shell ... | head -1``."""
    script = tmp_path / "long.columnar"
    script.write_text("get pages HomePage\n" * 50_000)
    command = [sys.executable, "-m", "columnar", "shell", "--store", address, str(script)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"HomePage\ttext:body\tHello\n"
        process.stdout.close()
        assert (process.stderr.read(), process.wait(60)) == (b"", 1)


# --- a terminal ----------------------------------------------------------------------------------


def test_a_person_at_a_terminal(address: str, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\nwc -l | sed 's/^ */paged lines: /'\n")
    pager.chmod(0o755)
    env = {"PAGER": str(pager), "XDG_STATE_HOME": str(tmp_path), "COLUMNAR_STORE": address}
    with PtyProgram("shell", env=env) as shell:
        shell.wait_for(f"at {address}. 'help' lists the commands, Tab completes, Ctrl-D leaves.")
        shell.wait_for("columnar>")
        shell.type("put pages Ctrl text:body='two\r")
        shell.wait_for("...>")
        shell.type("lines'\r")
        shell.wait_for("1 cells of Ctrl written")
        shell.type("get 'pages', 'Ctrl'\r")
        shell.wait_for("in Columnar: get pages Ctrl")
        shell.wait_for("two\\x0Alines")
        shell.type("scan pages --as hex --limit 1; help hbase\r")
        shell.wait_for("snapshot delete NAME")
        shell.type("count pag\t")
        shell.wait_for("count pag")
        shell.wait_for("es")  # the rest of the name, by Tab
        shell.type("\r")
        shell.wait_for("2")
        with socket.create_server(("127.0.0.1", 0)) as silent:
            shell.type(f"tables --store 127.0.0.1:{silent.getsockname()[1]}\r")
            connection, _ = silent.accept()
            shell.type("\x03")
            shell.wait_for("stopped; what the store has taken in by now stays")
            connection.close()
        shell.type("drop pages\r")
        shell.wait_for("for good? [y/N]: ")
        shell.type("n\r")
        shell.wait_for("not done")
        Shell(address).out("shell", "-c", ";".join(f"put pages row-{number} text:body=1" for number in range(30)))
        shell.type("scan pages\r")
        shell.wait_for("paged lines: 64")
        shell.wait_for("columnar>")
        shell.type("\x04")
        assert shell.end() == 0
    assert "scan pages" in (tmp_path / "columnar" / "shell_history").read_text()


def test_a_store_of_the_shells_own(tmp_path: Path) -> None:
    """``standalone`` takes the place of its process, so the shell gives it one; Ctrl-C ends it alone."""
    port = free_port()
    env = {"XDG_STATE_HOME": str(tmp_path), "COLUMNAR_STORE": f"127.0.0.1:{port}"}
    with PtyProgram("shell", env=env) as shell:
        shell.wait_for("start one with 'columnar standalone' in another terminal")
        shell.wait_for("columnar>")
        shell.type(f"standalone --data {tmp_path}/data --port {port} --web-port -1 --log-level error\r")
        shell.wait_for("columnar ready")
        shell.type("\x03")
        shell.wait_for("columnar>")
        shell.type("help quit\r")
        shell.wait_for("quit: Leave.")
        shell.type("quit\r")
        assert shell.end() == 0
