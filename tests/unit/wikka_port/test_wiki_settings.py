"""The wiki's settings: which tables a command has, what ``wikka config`` writes, and what its children read."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from columnar.settings import settings_file
from columnar.settings.settings_file import SettingsFile
from wikka_port.cli import main
from wikka_port.commands.config import TABLES
from wikka_port.commands.run import _start
from wikka_port.commands.settings import WIKKA
from wikka_port.config import WikiConfig
from wikka_port.serve import Shared, _Parent
from wikka_port.served_settings import Reading, ServedSettings, UnusableSettings


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variables of the programs, and no file at the usual places."""
    for name in os.environ:
        if name.startswith(("COLUMNAR_", "WIKKA_")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(settings_file, "places", lambda _program: [])


def shown(*words: str) -> dict[str, dict[str, dict[str, object]]]:
    done = CliRunner().invoke(main, ["config", "show", "--json", *words])
    assert done.exit_code == 0, done.output
    found: dict[str, dict[str, dict[str, object]]] = json.loads(done.stdout)
    return found


def test_a_written_file_is_good_with_every_line_uncommented(tmp_path: Path) -> None:
    file = tmp_path / "wikka.toml"
    assert CliRunner().invoke(main, ["config", "init", "--output", str(file)]).exit_code == 0
    assert shown("--config", str(file)) == shown()
    lines = file.read_text().splitlines()
    file.write_text("\n".join(line[1:] if line[:1] == "#" and line[1:2].isalpha() else line for line in lines))
    read = SettingsFile.found(WIKKA, str(file))
    assert read is not None
    for name, described in TABLES.items():
        assert read.values(described.table).keys() == shown()[name].keys()


def test_the_tables_share_no_setting_and_have_all() -> None:
    tables = shown()
    ports = {name: set(table) & {"port", "store-port", "store", "site-name"} for name, table in tables.items()}
    assert ports == {"wiki": {"port", "site-name"}, "run": {"store-port"}, "client": {"store"}}


def test_serve_has_the_settings_of_clients_and_of_the_wiki(tmp_path: Path) -> None:
    file = tmp_path / "wikka.toml"
    file.write_text('[wiki]\nport = 7\n[client]\nstore = "of.file:1"\n[run]\ndata = "d"\n')
    for command, expected in (("serve", ("of.file:1", 7)), ("run", (None, 7))):
        found = main.get_command(None, command)  # type: ignore[attr-defined]
        params = found.make_context(command, ["--config", str(file)]).params
        assert (params.get("store"), params["port"]) == expected
        assert params.get("data") == (str(tmp_path / "d") if command == "run" else None)


@pytest.mark.parametrize(
    ("command", "text", "said"),
    [
        ("serve", "[wiki]\nsite_name = 'x'\n", ":2: [wiki] site_name: there is no such setting; write site-name"),
        ("run", "[wiki]\nlanguages = 'none'\n", ":2: [wiki] languages: "),
        ("run", "[run]\nstore-port = 0\n", ":2: [run] store-port: 0 is not in the range 1<=x<=65535"),
        ("check", "[client]\nindexes = 'x'\n", ":2: [client] indexes: "),
        ("user list", "[client]\nport = 1\n", ":2: [client] port: there is no such setting; "),
        ("prepare", "[serve]\n", ":1: serve: there is no such table; "),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line_and_status_2(
    command: str, text: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "wikka.toml"
    file.write_text(text)
    done = CliRunner().invoke(main, [*command.split(), "--config", str(file)])
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"wikka: {file}{said}")


def test_the_children_of_run_read_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNAR_CONFIG", "/etc/columnar/columnar.toml")
    code = "import os; print(os.environ['COLUMNAR_CONFIG'], os.environ['WIKKA_CONFIG'])"
    child = _start([sys.executable, "-c", code])
    output, _ = child.communicate(timeout=60)
    assert output.split() == [os.devnull.encode()] * 2


# --- SIGHUP ------------------------------------------------------------------------------------------------


def reading(name: str, secret: bytes = b"", **values: object) -> Reading:
    config = WikiConfig(site_name=name, secret=secret, port=7)
    return Reading(config, "WARNING", {"site-name": name, "port": 7, **values})


def test_what_workers_need_is_kept_from_what_their_parent_has() -> None:
    found = [reading("Second", port=8), reading("Second", port=7)]
    served = ServedSettings("/file", reading("First"), lambda: found.pop(0))
    in_force = WikiConfig(site_name="First", secret=b"made at the start", host="::1", port=41_000, workers=9)
    changed = served.read_again(in_force)
    assert changed == replace(in_force, site_name="Second"), "the port that was found free, and the secret, stay"
    assert served.read_again(in_force) is None, "nothing has changed since"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (UnusableSettings("/file:3: [wiki] x: there is no such setting"), ": /file:3: [wiki] x"),
        (PermissionError(13, "Permission denied", "/file"), "Permission denied: '/file'"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), "UnicodeDecodeError: 'utf-8' codec"),
        (click.Abort(), "Abort: "),
    ],
)
def test_a_file_that_cannot_be_read_changes_nothing(
    error: Exception, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    def read() -> Reading:
        raise error

    assert ServedSettings("/file", reading("First"), read).read_again(WikiConfig()) is None
    (record,) = caplog.records
    assert (record.levelname, said in record.getMessage()) == ("ERROR", True)


def test_a_password_that_is_no_text_is_named_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_bytes(b"\xff\xfe")
    words = ["--smtp", "h:25", "--mail-from", "a@b", "--public-url", "https://w", "--smtp-password-file"]
    done = CliRunner().invoke(main, ["serve", *words, str(tmp_path / "password")])
    assert (done.exit_code, f"--smtp-password-file {tmp_path / 'password'} is no text" in done.stderr) == (2, True)


def no_process() -> int:
    raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


def test_a_machine_without_a_free_process_keeps_the_wiki_and_its_settings(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    served = ServedSettings("/file", reading("First"), lambda: reading("Second"))
    first = WikiConfig(site_name="First")
    parent = _Parent(first, [], lambda _address: None, Shared.opened(WikiConfig()), served)
    parent._workers = {5_000_001: 0}
    pipes: list[int] = []
    monkeypatch.setattr(os, "pipe", lambda made=os.pipe: pipes.extend(made()) or tuple(pipes))
    monkeypatch.setattr(os, "fork", no_process)
    parent._change_settings()
    assert (parent._config, parent._workers, parent._leaving) == (first, {5_000_001: 0}, set())
    (said,) = [one.getMessage() for one in caplog.records if one.levelname == "ERROR"]
    assert "Resource temporarily unavailable" in said
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ()) & {signal.SIGTERM, signal.SIGINT}, "it still hears them"
    for end in pipes:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(end)


def test_a_start_without_a_free_process_ends_with_a_status(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    parent = _Parent(WikiConfig(), [], lambda _address: None, Shared.opened(WikiConfig()))
    stopped: list[int] = []
    monkeypatch.setattr(os, "fork", no_process)
    monkeypatch.setattr(_Parent, "_stop", lambda _parent, how: stopped.append(how))
    parent._start_or_stop(0)
    assert (parent._status, stopped) == (1, [signal.SIGTERM])
    assert "no process for worker 0: " in caplog.text


@pytest.mark.parametrize("failing", [0, 1])
def test_settings_with_which_a_worker_cannot_start_change_none_and_are_tried_again(
    failing: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    served = ServedSettings("/file", reading("First"), lambda: reading("Second"))
    first = WikiConfig(site_name="First")
    parent = _Parent(first, [], lambda _address: None, Shared.opened(WikiConfig()), served)
    earlier = {5_000_001: 0, 5_000_002: 1}  # above the highest number of a process
    parent._workers = dict(earlier)
    tried: list[str] = []
    told: list[tuple[int, int]] = []

    def start(self: _Parent, place: int) -> bool:
        tried.append(self._config.site_name)
        assert not told, "all workers serve until each has a successor"
        self._workers[6_000_000 + len(tried)] = place
        return place != failing

    monkeypatch.setattr(_Parent, "_start", start)
    monkeypatch.setattr(os, "kill", lambda process, number: told.append((process, number)))
    parent._change_settings()
    new = {6_000_001, 6_000_002} if failing else {6_000_001}
    assert (parent._config, parent._leaving) == (first, new), "the workers keep the earlier settings"
    assert set(told) == {(process, signal.SIGTERM) for process in new}
    assert "in force" not in caplog.text
    parent._workers, parent._leaving = dict(earlier), set()
    told.clear()
    tried.clear()
    failing = -1
    parent._change_settings()
    assert (tried, parent._config.site_name) == (["Second"] * 2, "Second")
    assert parent._leaving == earlier.keys() == {process for process, _ in told}
    assert "in force: site-name" in caplog.text


def test_a_stop_while_workers_are_replaced_ends_the_new_ones_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    served = ServedSettings("/file", reading("First"), lambda: reading("Second"))
    parent = _Parent(WikiConfig(), [], lambda _address: None, Shared.opened(WikiConfig()), served)
    parent._workers = {5_000_001: 0, 5_000_002: 1}
    told: list[int] = []

    def start(self: _Parent, place: int) -> bool:
        self._stops = 1  # the signal came before the new process was known
        self._workers[6_000_001] = place
        return True

    monkeypatch.setattr(_Parent, "_start", start)
    monkeypatch.setattr(os, "kill", lambda process, _number: told.append(process))
    parent._change_settings()
    assert told == [6_000_001]
    assert not [one for one in caplog.records if "in force" in one.getMessage() or one.levelname == "ERROR"]
