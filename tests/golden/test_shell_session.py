"""A session of ``columnar shell`` as text: every command, replayed against a store of its own, its whole answer.

A statement stands at the margin, the indented lines under it are the answer as a terminal of 100 columns shows it
("! ": on stderr).  Names and figures that differ from run to run are masked; a masked region keeps its number.
``pytest tests/golden/test_shell_session.py --rewrite`` records the answers anew.
"""

from __future__ import annotations

import io
import re
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import click
import pytest

from columnar.cli import main
from columnar.shell.connecting import connect
from columnar.shell.lines import Statement, Statements, before_cursor
from columnar.shell.running import Commands, Failed
from columnar.shell.session import KeptConnection, Session, exported
from columnar.shell.store_names import StoreNames
from tests.support.shell import store_at

FILE = Path(__file__).with_name("shell_session.txt")
_REGION = re.compile(r"\b[0-9a-f]{32}\b")
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_MASKS = [  # of every answer
    (r",\d+\.\{R", ",{ID}.{R"),
    (r"(seconds|uptime_seconds)( +)[\d.]+", r"\1\2{S}"),
    (r"(rate_per_s)( +)[\d.]+", r"\1\2{RATE}"),
    (r"^(    )?(build|python)( +)\S+$", r"\1\2\3{IT}"),
    (r"\b\d+(\.\d)? (B|KB|MB|GB)\b", "{SIZE}"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", "{TIME}"),
    (r"\b[12]\d{15}\b", "{MESSAGE}"),
    (r"_ms\": [12]\d{12}\b", '_ms": {MS}'),
    (r"clmn_[\w-]{43}", "{TOKEN}"),
    (r"\d{8}-\d{6}(-\d+)?|\d{8}T\d{6}\S*", "{NAME}"),
]
_FIGURES = re.compile(  # of things that the system has too, or that depend on when files are written
    r"((?:\w+_)?bytes|(?:copied_)?files|requests|connections|(?:open_)?regions|tables|cells)(  +)\d+$"
)
# Tested elsewhere: here only that they answer.
_LONG = (
    "advise",
    "completion",
    "bench",
    "config",
    "doctor",
    "standalone",
    "node",
    "probe-root",
    "servers",
    "version",
    "where",
)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Player:
    long = _LONG

    def __init__(self, commands: Commands, folder: Path) -> None:
        self._commands = commands
        self._folder = str(folder)
        self._regions: list[str] = []
        self._digests: list[str] = []
        self.ran: set[str] = set()

    def play(self, statement: Statement) -> list[str]:
        text = statement.text.replace("{DIR}", self._folder)
        for number, region in enumerate(self._regions, 1):
            text = text.replace(f"{{R{number}}}", region)
        words = before_cursor(text + " ").words
        self.ran |= {words[0], " ".join(words[:2])}
        out, err = _Terminal(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            outcome = self._commands.run(Statement(text, statement.line, statement.is_hbase), teaches=True)
        said = [f"! {line}" for line in err.getvalue().splitlines()]
        said += click.unstyle(out.getvalue()).splitlines()
        if isinstance(outcome, Failed):
            said.append(f"! {outcome.text}")
        elif outcome == "leave":
            said.append("(left)")
        if words[0] in self.long:
            return [f"({'some' if len(said) > 1 else 'no'} lines)"]
        shown = [self._masked(line) for line in said if line.strip()]
        if any("───" in line for line in shown):  # a table: its columns are as wide as what was masked
            shown = [re.sub("─+", "───", re.sub("  +", "  ", line)) for line in shown]
        return shown

    def _masked(self, line: str) -> str:
        line = line.replace(self._folder, "{DIR}")
        line = _REGION.sub(lambda found: _numbered(found[0], "R", self._regions), line)
        line = _DIGEST.sub(lambda found: _numbered(found[0], "DIGEST", self._digests), line)
        for pattern, mask in _MASKS:
            line = re.sub(pattern, mask, line)
        return _FIGURES.sub(r"\1\2{N}", line).rstrip()


def _numbered(name: str, kind: str, known: list[str]) -> str:
    if name not in known:
        known.append(name)
    return f"{{{kind}{known.index(name) + 1}}}"


def played(text: str, player: Player) -> str:
    reader, lines = Statements(), []
    for line in text.splitlines():
        if line.startswith("    ") and not reader.is_open:
            continue
        lines.append(line)
        for statement in reader.feed(line):
            lines += [f"    {answer}".rstrip() for answer in player.play(statement)]
    assert not reader.is_open
    return "\n".join(lines) + "\n"


def every_command() -> Iterator[str]:
    assert isinstance(main, click.Group)
    ctx = click.Context(main)
    for name in main.list_commands(ctx):
        command = main.get_command(ctx, name)
        if isinstance(command, click.Group) and name != "bench":
            yield from (f"{name} {one}" for one in command.list_commands(ctx))
        else:
            yield name


def test_the_recorded_session(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"COLUMNS": "100", "LINES": "40", "TERM": "xterm", "TZ": "UTC", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    text = FILE.read_text()
    kept = KeptConnection(connect)
    assert isinstance(main, click.Group)
    with store_at(tmp_path / "store") as address, exported(address, None):
        player = Player(Commands(main, Session(kept, StoreNames(time.monotonic), pages=False)), tmp_path)
        try:
            found = played(text, player)
        finally:
            kept.close()
    assert set(every_command()) <= player.ran, "each command has its place in the session"
    if request.config.getoption("--rewrite"):
        FILE.write_text(found)
        text = found
    assert found == text
