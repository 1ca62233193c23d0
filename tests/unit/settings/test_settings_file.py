"""The file: where it is looked for, what is no file of settings, and the commands that show and write one."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import click
import pytest
from click.testing import CliRunner

from columnar.cli import main
from columnar.limits import SETTINGS_FILE_BYTES
from columnar.roles.config_commands import TABLES
from columnar.settings import settings_file
from columnar.settings.commands import HIDDEN, list_settings
from columnar.settings.configured import config_option, own_table
from columnar.settings.option_kinds import key_of
from columnar.settings.settings_file import COLUMNAR, BadSettings, SettingsFile, line_of, places
from columnar.settings.template import written
from tests.support.certificates import Authority
from wikka_port.cli import main as wikka


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variables of the program, and no file at the usual places."""
    for name in os.environ:
        if name.startswith("COLUMNAR_"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(settings_file, "places", lambda _program: [])


def shown(*words: str) -> dict[str, dict[str, dict[str, object]]]:
    """What ``config show --json`` prints."""
    done = CliRunner().invoke(main, ["config", "show", "--json", *words])
    assert done.exit_code == 0, done.output
    found: dict[str, dict[str, dict[str, object]]] = json.loads(done.stdout)
    return found


def refused(*words: str) -> str:
    """The only line of a command that ends with status 2."""
    done = CliRunner().invoke(main, list(words))
    assert done.exit_code == 2, done.output
    (line,) = done.stderr.splitlines()
    return line


# --- where the file is -------------------------------------------------------------------------------------


def test_the_places_are_the_users_folder_and_then_the_systems(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert places(COLUMNAR) == [str(tmp_path / "columnar/columnar.toml"), "/etc/columnar/columnar.toml"]


def test_a_user_without_a_home_has_no_place_in_the_current_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_config_dir", lambda *_, **__: "~/.config/columnar")
    assert places(COLUMNAR) == ["/etc/columnar/columnar.toml"]


def test_the_first_file_that_exists_is_read_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "system.toml").write_text("[standalone]\nport = 1\nslow-ms = 2\n")
    paths = [str(tmp_path / "own.toml"), str(tmp_path / "system.toml/below/a/file"), str(tmp_path / "system.toml")]
    monkeypatch.setattr(settings_file, "places", lambda _program: paths)
    assert shown("standalone")["standalone"]["port"] == {"value": 1, "source": paths[2]}
    (tmp_path / "own.toml").write_text("[standalone]\nport = 3\n")
    found = shown("standalone")["standalone"]
    assert found["port"] == {"value": 3, "source": paths[0]}
    assert found["slow-ms"] == {"value": 1000, "source": "default"}


def test_a_file_of_the_current_folder_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "columnar.toml").write_text("[standalone]\nport = 1\n")
    monkeypatch.chdir(tmp_path)
    assert shown("standalone")["standalone"]["port"]["source"] == "default"


@pytest.mark.parametrize("command", ["standalone", "node", "tables", "view list", "shell", "check", "doctor"])
def test_a_named_file_that_is_missing_ends_every_command(command: str, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.toml")
    line = refused(*command.split(), "--config", missing)
    assert line.startswith(f"columnar: {missing}: there is no such file")
    assert refused(*command.split(), "--config", "") == "columnar: --config names no file"


def test_the_variable_names_the_file_and_the_flag_comes_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, port in (("one", 1), ("two", 2)):
        (tmp_path / name).write_text(f"[standalone]\nport = {port}\n")
    monkeypatch.setenv("COLUMNAR_CONFIG", str(tmp_path / "one"))
    assert shown("standalone")["standalone"]["port"]["value"] == 1
    assert shown("standalone", "--config", str(tmp_path / "two"))["standalone"]["port"]["value"] == 2
    monkeypatch.setenv("COLUMNAR_CONFIG", str(tmp_path / "three"))
    assert "there is no such file" in refused("config", "show")


def test_help_of_a_command_needs_no_good_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("[")
    monkeypatch.setenv("COLUMNAR_CONFIG", str(tmp_path / "bad"))
    assert CliRunner().invoke(main, ["--help"]).exit_code == 0
    assert CliRunner().invoke(main, ["standalone", "--help"]).exit_code == 0


# --- what is in it -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[standalone\n", ": this is no TOML: "),
        ("[standalone]\nport = 1\nport = 2\n", ": this is no TOML: "),
        ("port = 9090\n", ": port: there is no such setting outside the tables; the tables are standalone"),
        ("[standalon]\n", ":1: standalon: there is no such table; did you mean standalone?"),
        ("\nstandalone = 7\n", ": standalone: write a table [standalone], with the settings below it"),
        ("[standalone]\n\nweb_port = 7\n", ":3: [standalone] web_port: there is no such setting; write web-port"),
        ("[standalone]\nconfig = 'x'\n", ":2: [standalone] config: there is no such setting; "),
        ("[standalone]\n'prot' = 7\n", ":2: [standalone] prot: there is no such setting; did you mean port?"),
        ("[standalone]\nxyzzy = 7\n", ":2: [standalone] xyzzy: there is no such setting; 'columnar config init'"),
        ("[standalone]\nport = 70000\n", ":2: [standalone] port: 70000 is not in the range 0<=x<=65535"),
        ("[node]\nlease = nan\n", ":2: [node] lease: nan is no number of seconds"),
        ("[standalone]\nport = '1'\n", ":2: [standalone] port: this must be an integer, and is a text"),
        ("[standalone.port]\nx = 1\n", ": [standalone] port: this must be an integer, and is something else"),
        ("[standalone]\nallow-origin = [1]\n", 'is a list: allow-origin = ["ORIGIN"]'),
        ("\xff", ": this is no TOML: "),
        ("#" * (SETTINGS_FILE_BYTES + 1), " bytes"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_one_line_and_status_2(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_bytes(text.encode("latin-1"))
    line = refused("node" if text.startswith("[node]") else "standalone", "--config", str(file))
    assert line.startswith(f"columnar: {file}")
    assert said in line


def test_a_file_that_cannot_be_read_is_no_missing_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_file, "places", lambda _program: [str(tmp_path)])
    assert refused("tables") == f"columnar: {tmp_path}: the settings cannot be read: Is a directory"


def not_permitted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *paths: str) -> None:
    """Have each of these places refuse this user, whoever runs the tests; another one has a file."""

    def opened(path: str, mode: str) -> IO[bytes]:
        if path in paths:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        if path == str(tmp_path / "own"):
            raise FileNotFoundError
        return open(path, "rb")

    settings_file._note_once.cache_clear()
    monkeypatch.setattr(settings_file, "open", opened, raising=False)
    monkeypatch.setattr(settings_file, "SYSTEM", str(tmp_path))
    monkeypatch.setattr(settings_file, "user_folder", lambda *_: str(tmp_path / "own"))
    monkeypatch.setattr(settings_file, "places", places)
    (tmp_path / "columnar").mkdir()
    (tmp_path / "columnar/columnar.toml").write_text("[standalone]\nport = 7\n[client]\nstore = 'h:7'\n")


def test_a_users_folder_that_this_user_may_not_read_has_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    not_permitted(monkeypatch, tmp_path, str(tmp_path / "own/columnar.toml"))
    assert shown("standalone")["standalone"]["port"]["value"] == 7, "the next place is read"
    done = CliRunner().invoke(main, ["config", "show", "client"])
    assert (done.exit_code, done.stderr) == (0, "")


def test_clients_go_on_without_a_file_of_the_machine_and_servers_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "columnar/columnar.toml")
    not_permitted(monkeypatch, tmp_path, place)
    said = f"columnar: {place}: the settings cannot be read: Permission denied"
    runner = CliRunner()
    done = runner.invoke(main, ["config", "show", "client"])
    assert (done.exit_code, done.stderr) == (0, f"{said}; its settings are left out\n")
    assert runner.invoke(main, ["config", "show", "client"]).stderr == "", "once in a process"
    for command in ("standalone", "node"):
        assert refused("config", "check", command) == said
        assert refused(command) == said
    assert refused("tables", "--config", place) == said, "a named one is never left out"
    monkeypatch.setenv("COLUMNAR_CONFIG", place)
    assert refused("tables") == said


def test_the_wikis_file_that_cannot_be_read_is_left_out_by_its_clients_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "wikka/wikka.toml")
    monkeypatch.delenv("WIKKA_CONFIG", raising=False)
    not_permitted(monkeypatch, tmp_path, place)
    said = f"wikka: {place}: the settings cannot be read: Permission denied"
    done = CliRunner().invoke(wikka, ["config", "show", "client"])
    assert (done.exit_code, done.stderr) == (0, f"{said}; its settings are left out\n")
    done = CliRunner().invoke(wikka, ["config", "show", "wiki"])
    assert (done.exit_code, done.stderr) == (2, f"{said}\n")


def test_a_user_without_a_home_has_the_machines_file_and_must_name_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home(*_: object, **__: object) -> str:
        raise RuntimeError("could not determine the home directory")

    for name in ("user_config_dir", "user_data_dir"):
        monkeypatch.setattr(f"platformdirs.{name}", no_home)
    monkeypatch.setattr(settings_file, "places", places)
    assert places(COLUMNAR) == ["/etc/columnar/columnar.toml"]
    monkeypatch.setenv("COLUMNAR_CONFIG", os.devnull)
    for words in (["config", "check", "standalone"], ["doctor", "--before-start"]):
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 2
        assert "Error: this user has no home folder for the data; name a folder with --data" in done.stderr
    assert CliRunner().invoke(main, ["config", "check", "standalone", "--", "--data", str(tmp_path)]).exit_code == 0


def test_lines_of_settings_are_found_by_their_table() -> None:
    text = "[a]\nx = 1\n[ b ] # x = 2\n# x = 3\n'x' = 4\n[c]\n\"x\"=5\n"
    assert [line_of(text, table, "x") for table in ("a", "b", "c", "d")] == [2, 5, 7, 0]
    assert line_of(text, "", "c") == 6


def test_paths_of_a_file_begin_at_its_folder_and_those_of_a_flag_here(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_text('[standalone]\ndata = "store"\ntls-cert = "/etc/store.crt"\ntls-key = "~/store.key"\n')
    found = shown("standalone", "--config", str(file))["standalone"]
    assert found["data"]["value"] == str(tmp_path / "store")
    assert found["tls-cert"]["value"] == "/etc/store.crt"
    assert found["tls-key"]["value"] == os.path.expanduser("~/store.key")
    assert found["tls-client-ca"]["value"] == ""
    assert shown("standalone", "--config", str(file), "--data", "d")["standalone"]["data"]["value"] == "d"


def test_a_link_of_kubernetes_is_no_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNAR_PORT", "tcp://10.0.0.1:9090")
    assert shown("standalone")["standalone"]["port"] == {"value": 9090, "source": "default"}
    monkeypatch.setenv("COLUMNAR_WEB_PORT", "web")
    done = CliRunner().invoke(main, ["config", "show", "standalone"])
    assert done.exit_code == 2
    assert "COLUMNAR_WEB_PORT" in done.output


def test_settings_of_clients_reach_nested_commands_and_not_a_bench(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_text('[client]\nstore = "127.0.0.1:1"\n')
    for command in (["tables"], ["view", "list"], ["trigger", "list"]):
        assert "127.0.0.1:1" in refused(*command, "--config", str(file))
    assert "no such option" in CliRunner().invoke(main, ["bench", "run", "x:1", "--config", str(file)]).output.lower()


# --- secrets -----------------------------------------------------------------------------------------------


@click.command()
@click.option("--token", hide_input=True)
def guarded(token: str | None) -> None:
    """A command with a secret."""


def test_a_secret_is_never_shown_and_its_file_must_be_private(tmp_path: Path) -> None:
    table = own_table("client", lambda: guarded)
    command = config_option(COLUMNAR, table)(click.Command("guarded", params=list(guarded.params)))
    file = tmp_path / "settings"
    file.write_text('[client]\ntoken = "hunter2"\n')
    file.chmod(0o640)
    with click.Context(command), pytest.raises(BadSettings, match="other users can reach this secret; run 'chmod 600"):
        list_settings(COLUMNAR, table, command, ["--config", str(file)])
    file.chmod(0o600)
    with click.Context(command):
        (found,) = list_settings(COLUMNAR, table, command, ["--config", str(file)])
    assert (found.value, found.text, found.source) == (HIDDEN, "(hidden)", str(file))


# --- show, init, check -------------------------------------------------------------------------------------


def test_show_names_each_source_and_says_what_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings"
    file.write_text('[node]\nzone = "rack-1"\nlease = 2\n')
    monkeypatch.setenv("COLUMNAR_PEER_PORT", "7")
    done = CliRunner().invoke(main, ["config", "show", "node", "--config", str(file), "--never-leads"])
    lines = {line.split()[0]: line for line in done.output.splitlines()[3:]}
    assert done.output.startswith(f"file: {file}\n\n[node]\n")
    assert lines["zone"].split()[1:] == ['"rack-1"', str(file)]
    assert lines["lease"].split()[1:] == ["2.0", str(file)]
    assert lines["peer-port"].split()[1:] == ["7", "COLUMNAR_PEER_PORT"]
    assert lines["never-leads"].split()[1:] == ["true", "flag"]
    assert "needed, and not set" in lines["coordination"]
    assert list(lines) == [key_of(option) for option in TABLES["node"].table.options()]
    assert "file: none" in CliRunner().invoke(main, ["config", "show"]).output


def test_show_leaves_the_password_of_an_address_out(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_text('[node]\ncoordination = "etcd://me:hunter2@10.0.0.1:2379,10.0.0.2:2379/c"\n')
    for words in ((), ("--json",)):
        done = CliRunner().invoke(main, ["config", "show", "node", "--config", str(file), *words])
        assert done.exit_code == 0
        assert "hunter2" not in done.output
        assert "etcd://10.0.0.1:2379,10.0.0.2:2379/c" in done.output


@pytest.mark.parametrize("table", COLUMNAR.tables)
def test_a_written_file_is_good_with_every_line_uncommented(table: str, tmp_path: Path) -> None:
    file = tmp_path / "columnar.toml"
    done = CliRunner().invoke(main, ["config", "init", "--output", str(file)])
    assert (done.exit_code, done.output) == (0, f"wrote {file}; all settings in it are comments\n")
    before = file.read_text()
    assert shown(table, "--config", str(file)) == shown(table), "comments alone change nothing"
    file.write_text("".join(line[1:] if line.startswith("#") and line[1:2] not in " \n" else line
                            for line in before.splitlines(keepends=True)))  # fmt: skip
    read = SettingsFile.found(COLUMNAR, str(file))
    assert read is not None
    values = read.values(TABLES[table].table)
    assert values.keys() == shown(table)[table].keys(), "each setting, once"
    for key, found in shown(table)[table].items():
        if found["value"] not in (None, ""):
            assert values[key] == found["value"], "the defaults"
    assert refused("config", "init", "--output", str(file)).startswith(f"columnar: {file} is there already")
    assert CliRunner().invoke(main, ["config", "init"]).output == before


def test_a_written_file_says_what_a_serving_store_takes() -> None:
    option = click.Option(["--slow-ms"], type=click.IntRange(1, 9), default=3, help="How slow.", metavar="N")
    text = written(COLUMNAR, [("node", "About.", [option])], frozenset({"slow-ms"}))
    expected = (
        "[node]\n# About.\n\n# How slow.\n# --slow-ms N; COLUMNAR_SLOW_MS; from 1 to 9; taken at SIGHUP\n#slow-ms = 3\n"
    )
    assert text.endswith(expected)


def test_check_says_whether_a_store_would_start(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_text('[standalone]\ntls-cert = "a.crt"\n')
    good = CliRunner().invoke(main, ["config", "check", "standalone", "--servers", "3"])
    assert (good.exit_code, good.output) == (0, "columnar standalone can start with these settings; file: none\n")
    half = CliRunner().invoke(main, ["config", "check", "standalone", "--config", str(file)])
    assert half.exit_code == 2
    assert "TLS needs --tls-cert and --tls-key" in half.output
    file.write_text('[standalone]\ntls-cert = "a.crt"\ntls-key = "a.key"\n')
    assert "--tls-cert must name a PEM file" in refused("config", "check", "standalone", "--config", str(file))
    done = CliRunner().invoke(
        main, ["config", "check", "node", "--json", "--", "--data", "d", "--coordination", "etcd://h/c"]
    )
    assert json.loads(done.output)["node"]["coordination"] == "etcd://h/c"


def test_check_of_a_node_tries_its_links_too(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    words = ["--data", "d", "--tls-client-ca", authority.ca, "--tls-cert"]
    of_node = ["--coordination", "etcd://h/c"]
    for usage, may_link in (("", True), ("serverAuth", False)):
        pair = authority.sign("node", usage=usage)
        given = [*words, pair.cert, "--tls-key", pair.key]
        done = CliRunner().invoke(main, ["config", "check", "node", "--", *given, *of_node])
        assert (done.exit_code == 0) == may_link, done.output
        assert may_link or done.stderr.startswith("columnar: "), done.stderr
        alone = CliRunner().invoke(main, ["config", "check", "standalone", "--", *given])
        assert alone.exit_code == 0, "a store of one machine has no such links"


def test_help_and_a_command_without_a_file_import_no_reader_of_files() -> None:
    code = "import sys; from columnar.cli import main\nmain(['--help'], standalone_mode=False)\n"
    code += "from columnar.roles import store_commands\nprint(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = set(done.stdout.splitlines()[-1].split())
    assert not {"tomllib", "platformdirs", "columnar.settings.commands", "columnar.client", "difflib"} & found
