"""SIGHUP: which changes are taken, which wait for a restart, and what a file that cannot be read changes."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from columnar.cli import main
from columnar.config import LIVE, NodeConfig, StandaloneConfig
from columnar.errors import HostError
from columnar.model.node_messages import LiveSettings
from columnar.roles import settings_reload, store_process
from columnar.roles.settings_reload import SettingsReload, SettingsSource, changes_between, reload_of
from columnar.runtime.log_settings import LogSettings
from columnar.settings.changes import Changes

VALUES = {"port": 9090, "log-level": "info", "slow-ms": 1000, "tls-cert": "", "tls-key": "", "allow-origin": []}


@pytest.fixture(autouse=True)
def root_level() -> Iterator[None]:
    """The level of the tests' own log stays."""
    before = logging.getLogger().level
    yield
    logging.getLogger().setLevel(before)


def settings_of(file: Path, *words: str) -> dict[str, Any]:
    """The settings of a store, as its start takes them."""
    done = CliRunner().invoke(main, ["config", "check", "--json", "standalone", "--", "--config", str(file), *words])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class Store:
    """A store whose settings are read again, without the store."""

    def __init__(self, file: Path, *words: str, begins: bool = True) -> None:
        settings = settings_of(file, *words)
        self.source = SettingsSource(**settings["source"])
        self.taken: list[LiveSettings] = []
        config = StandaloneConfig(
            "data",
            slow_request_ms=settings["slow_request_ms"],
            allow_origins=tuple(settings["allow_origins"]),
            tls_cert=settings["tls_cert"],
            tls_key=settings["tls_key"],
        )
        made = reload_of(self.source, config, LogSettings.of_settings(settings["log"]), None)
        assert made is not None
        self.reload: SettingsReload = made
        if begins:
            self.begin()

    def begin(self) -> None:
        self.reload.begin_reading([self.taken.append])

    def read(self, times: int = 1) -> None:
        async def run() -> None:
            for _ in range(times):
                self.reload.request()
            await self.reload._work.ended()

        asyncio.run(run())


# --- what changes ------------------------------------------------------------------------------------------


def test_what_can_change_at_once_is_taken_and_the_rest_is_named() -> None:
    after = {**VALUES, "port": 1, "log-level": "debug", "allow-origin": ["https://a.example"]}
    changes = changes_between(VALUES, after)
    assert changes == Changes(VALUES, {"log-level": "debug", "allow-origin": ["https://a.example"]}, ("port",))
    assert changes_between(VALUES, VALUES) == Changes(VALUES, {}, ())
    assert changes_between(VALUES, {**VALUES, "of-a-newer-program": 1}) == Changes(VALUES, {}, ())


def test_another_certificate_is_taken_but_tls_neither_begins_nor_ends() -> None:
    tls = {**VALUES, "tls-cert": "a.crt", "tls-key": "a.key"}
    assert changes_between(tls, {**tls, "tls-cert": "b.crt"}) == Changes(tls, {"tls-cert": "b.crt"}, ())
    assert changes_between(VALUES, tls) == Changes(VALUES, {}, ("tls-cert", "tls-key"))
    assert changes_between(tls, VALUES) == Changes(tls, {}, ("tls-cert", "tls-key"))


def test_each_live_setting_is_one_of_both_commands() -> None:
    from columnar.roles.store_commands import NODE, STANDALONE
    from columnar.settings.option_kinds import key_of

    for table in (STANDALONE, NODE):
        assert {key_of(option) for option in table.options()} >= LIVE


# --- reading -----------------------------------------------------------------------------------------------


def test_a_file_is_read_again_and_flags_and_variables_keep_their_precedence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("COLUMNAR_ALLOW_ORIGIN", "https://of.variable")
    file = tmp_path / "settings"
    file.write_text("[standalone]\nport = 1\n")
    store = Store(file, "--log-level", "warning")
    file.write_text('[standalone]\nport = 2\nslow-ms = 5\nlog-level = "debug"\nallow-origin = ["https://of.file"]\n')
    store.read()
    assert store.taken == [LiveSettings("WARNING", 5, ("https://of.variable",), "", "")]
    assert [record.getMessage() for record in caplog.records] == [
        f"the settings in {file} were read again, and are in force: slow-ms 5 (before: 1000)",
        f"changed in {file}, needs a restart: port",
    ]
    caplog.clear()
    file.write_text("[standalone]\nport = 1\nslow-ms = 5\n")
    store.read()
    (record,) = caplog.records
    assert record.getMessage() == f"the settings in {file} were read again; nothing has changed"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[standalone]\nslow-ms = 5\nprot = 1\n", "prot: there is no such setting; did you mean port?"),
        ("[standalone]\nslow-ms = 5\nport = 70000\n", "port: 70000 is not in the range"),
        ("[standalone]\nslow-ms = 5\ntls-cert = 'x'\n", "TLS needs --tls-cert and --tls-key"),
        ("[standalone]\nslow-ms = 5\nallow-origin = ['x']\n", "'x' is no origin"),
        ("[standalone]\nslow-ms = 5\nlog-levels = ['columnar.wire']\n", "'columnar.wire' is no level of a logger"),
        ("[standalone]\nslow-ms = 5\nlog-levels = ['a=loud']\n", "write for example columnar.wire=debug"),
        ("[standalone]\nslow-ms = 5\nlog-levels = ['a=info', 'a=debug']\n", "a has two levels"),
        ("[standalone]\nslow-ms = 5\ntls-cert = '/x'\ntls-key = '/y'\n", "--tls-cert must name a PEM file"),
        (None, "there is no such file"),
    ],
)
def test_a_broken_file_changes_nothing_and_is_one_line(
    text: str | None, said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "settings"
    file.write_text("[standalone]\nslow-ms = 7\n")
    store = Store(file)
    if text is None:
        file.unlink()
    else:
        file.write_text(text)
    store.read()
    assert store.taken == [LiveSettings("INFO", 7, (), "", "")], "as before: the certificate alone is read again"
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage().startswith("no setting is changed, for the settings cannot be read: ")
    assert said in record.getMessage()
    file.write_text("[standalone]\nslow-ms = 8\n")
    store.read()
    assert store.taken[-1].slow_request_ms == 8


def test_a_signal_while_the_file_is_read_is_followed_by_one_more_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings"
    file.write_text("[standalone]\nslow-ms = 7\n")
    store = Store(file)
    begun = []

    async def resolve(reload: SettingsReload) -> dict[str, Any]:
        begun.append(reload)
        if len(begun) == 1:
            for _ in range(3):
                reload.request()
        return {**settings_of(file), "slow_request_ms": len(begun)}

    monkeypatch.setattr(SettingsReload, "_resolve", resolve)
    store.read()
    assert len(begun) == 2
    assert [live.slow_request_ms for live in store.taken] == [1, 2]


def test_a_child_that_hangs_is_ended_and_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "settings"
    file.write_text("[standalone]\nslow-ms = 7\n")
    store = Store(file)
    os.unlink(file)
    os.mkfifo(file)  # nobody writes
    monkeypatch.setattr(settings_reload, "READ_S", 0.2)
    store.read()
    assert store.taken == [LiveSettings("INFO", 7, (), "", "")]
    assert f"{file} was not read within 0.2 s" in caplog.text


def test_the_password_of_the_coordination_service_reaches_the_child_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, str]] = []

    async def run(_words: object, environment: dict[str, str], *_: object) -> object:
        seen.append(environment)
        raise OSError("no process is started here")

    monkeypatch.setattr(settings_reload, "run_to_end", run)
    reload = SettingsReload(
        SettingsSource("/settings", "node", (), VALUES), LiveSettings("INFO", 1, (), "", ""), "hunter2"
    )
    reload.begin_reading([])

    async def read() -> None:
        reload.request()
        await reload._work.ended()

    asyncio.run(read())
    assert seen[0]["COLUMNAR_COORDINATION_PASSWORD"] == "hunter2"
    assert seen[0]["COLUMNAR_CONFIG"] == "/settings"
    assert "COLUMNAR_COORDINATION_PASSWORD" not in os.environ


def test_levels_of_loggers_are_taken_and_given_back(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_text("[standalone]\n")
    store = Store(file)
    wire, audit = logging.getLogger("columnar.wire"), logging.getLogger("columnar.settings")
    before = wire.level, audit.level
    file.write_text('[standalone]\nlog-levels = ["columnar.wire=debug", "columnar.settings=error"]\n')
    store.read()
    assert store.taken[-1].log_levels == ("columnar.wire=debug", "columnar.settings=error")
    assert (wire.level, audit.level) == (logging.DEBUG, logging.ERROR)
    assert logging.getLogger("columnar.wire.server").isEnabledFor(logging.DEBUG), "and those below it"
    file.write_text('[standalone]\nlog-levels = ["columnar.wire=warning"]\n')
    store.read()
    assert (wire.level, audit.level) == (logging.WARNING, before[1])
    file.write_text("[standalone]\n")
    store.read()
    assert (wire.level, audit.level) == before


def test_without_files_and_tls_there_is_nothing_to_read() -> None:
    source = SettingsSource(None, "standalone", (), VALUES)
    log = LogSettings()
    assert reload_of(source, StandaloneConfig("data"), log, None) is None
    assert reload_of(None, StandaloneConfig("data", tls_cert="a"), log, None) is None
    assert reload_of(source, StandaloneConfig("data", tls_cert="a"), log, NodeConfig(2)) is not None
    assert reload_of(source, StandaloneConfig("data"), LogSettings(file="/log"), None) is not None, "it is opened again"


@pytest.mark.skipif(os.name != "posix", reason="SIGHUP")
def test_a_signal_during_the_start_ends_nothing_and_is_followed_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings"
    file.write_text("[standalone]\nslow-ms = 7\n")
    store = Store(file, begins=False)
    config = StandaloneConfig(str(tmp_path), web_port=-1)

    class Starting:
        async def start(self) -> None:
            loop = asyncio.get_running_loop()
            assert signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL, "the signal would end the process"
            os.kill(os.getpid(), signal.SIGHUP)
            arrived = asyncio.Event()
            loop.add_signal_handler(signal.SIGUSR1, arrived.set)
            os.kill(os.getpid(), signal.SIGUSR1)
            await arrived.wait()
            raise OSError("the start ends here")

    monkeypatch.setattr(store_process, "_locked", lambda *_: Starting())

    async def run() -> None:
        with pytest.raises(HostError, match="the start ends here"):
            await store_process._serve(config, None, store.reload, -1)
        assert store.taken == [], "nobody can take settings yet"
        file.write_text("[standalone]\nslow-ms = 8\n")
        store.begin()
        await store.reload._work.ended()

    asyncio.run(run())
    assert [live.slow_request_ms for live in store.taken] == [8]
