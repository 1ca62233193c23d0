"""Commands sign in with --user: with a password, a token, what a person types; a refusal says what to do."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from columnar.cli import main
from columnar.client import Connection, user_options
from columnar.client.errors import WrongArgument
from columnar.client.store_socket import NotSignedIn
from tests.support.rights_store import PASSWORD, TOKEN, RightsStore
from tests.support.serving import Serving


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RightsStore]:
    with RightsStore(tmp_path_factory.mktemp("rights")) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    user_options._remembered.clear()
    yield
    user_options._remembered.clear()


def secret_file(folder: Path, secret: str) -> str:
    path = folder / "secret"
    path.write_text(secret + "\n")
    path.chmod(0o600)
    return str(path)


def run(store: RightsStore, *words: str, input: str | None = None, **variables: str) -> Result:
    env = {"COLUMNAR_STORE": store.address, "COLUMNAR_CONFIG": os.devnull} | variables
    return CliRunner().invoke(main, list(words), input=input, env=env)


@pytest.mark.parametrize(("option", "secret"), [("--password-file", PASSWORD), ("--token-file", TOKEN)])
def test_a_command_signs_in_by_a_file(store: RightsStore, tmp_path: Path, option: str, secret: str) -> None:
    file = secret_file(tmp_path, secret)
    done = run(store, "whoami", "--json", "--user", "ann", option, file)
    assert json.loads(done.stdout)["user"] == "ann"
    variable = "COLUMNAR_" + option.removeprefix("--").replace("-", "_").upper()
    assert "hello" in run(store, "get", "pages", "home", COLUMNAR_USER="ann", **{variable: file}).stdout


def test_every_command_that_takes_a_store_takes_a_user(store: RightsStore) -> None:
    without: list[str] = []

    def look(command: click.Command, path: str) -> None:
        options = {name for one in command.params for name in one.opts}
        if "--store" in options and not {"--user", "--password-file", "--token-file"} <= options:
            without.append(path)
        if isinstance(command, click.Group):
            with click.Context(command) as ctx:
                for name in command.list_commands(ctx):
                    found = command.get_command(ctx, name)
                    assert found is not None
                    look(found, f"{path} {name}")

    look(main, "columnar")
    assert without == []


def test_refusals_say_what_to_do(store: RightsStore, tmp_path: Path) -> None:
    wrong = secret_file(tmp_path, "wrong")
    done = run(store, "tables", "--user", "ann", "--password-file", wrong)
    assert done.exit_code == 1
    assert "not signed in as ann: the user or the password is not right; look at --user" in done.stderr
    assert "columnar user password NAME" in done.stderr
    assert "wrong" not in done.stderr
    os.chmod(wrong, 0o644)
    done = run(store, "tables", "--user", "ann", "--password-file", wrong)
    assert done.exit_code == 2
    assert f"chmod 600 {wrong}" in done.stderr
    done = run(
        store, "tables", "--user", "ann", "--store", "10.255.255.1:9090", "--token-file", secret_file(tmp_path, TOKEN)
    )
    assert done.exit_code == 2
    assert "the network could read the token: connect with TLS, or sign in with a password" in done.stderr
    done = run(store, "get", "pages", "home")
    assert done.exit_code == 1
    assert "'columnar whoami' says as whom the store knows you; --user NAME signs in as another user" in done.stderr


def test_the_check_of_the_port_is_no_refusal(
    store: RightsStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = secret_file(tmp_path, PASSWORD)
    assert run(store, "get", "pages", "home", "--user", "ann", "--password-file", file).exit_code == 0
    assert [line for line in caplog.messages if line.startswith("refused")] == []


def test_a_shell_signs_in_once_and_all_its_commands_are_the_user(store: RightsStore, tmp_path: Path) -> None:
    words = ["shell", "--user", "ann", "--password-file", "-"]
    done = run(store, *words, input=f"{PASSWORD}\nget pages home\nwhoami --json\ntables\nget pages home text\n")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count("hello") == 2
    assert '"user": "ann"' in done.stdout
    done = run(store, "shell", "-c", "whoami --json", "--user", "ann")
    assert "nobody can type the password of ann here" in done.stderr


def test_a_person_types_the_password_at_a_terminal(store: RightsStore) -> None:
    command = [sys.executable, "-m", "columnar", "whoami", "--json", "--user", "ann", "--store", store.address]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, start_new_session=True, text=True,
        env=os.environ | {"COLUMNAR_CONFIG": os.devnull},
    )  # fmt: skip
    os.close(theirs)
    with process:
        said = b""
        while b"Password of ann: " not in said:
            said += os.read(ours, 1_024)
        os.write(ours, PASSWORD.encode() + b"\n")
        answer, _ = process.communicate(timeout=60)
    os.close(ours)
    assert json.loads(answer)["user"] == "ann"
    assert PASSWORD.encode() not in said


def test_a_user_signs_in_at_the_first_of_several_servers_that_answers(store: RightsStore) -> None:
    addresses = ["127.0.0.1:1", store.address]
    for more in ({"password": PASSWORD}, {"token": TOKEN}, {"password": PASSWORD, "routing": True}):
        with Connection(addresses, timeout=20_000, user="ann", **more) as connection:
            assert connection.call("columnarWhoAmI").user == b"ann"
            assert connection.table("pages").row(b"home") == {b"text:body": b"hello"}
    with pytest.raises(NotSignedIn, match="not right"):
        Connection([store.address, "127.0.0.1:1"], timeout=20_000, user="ann", password="wrong")
    with pytest.raises(WrongArgument, match="the network could read the token"):
        Connection([store.address, "10.255.255.1:9090"], autoconnect=False, user="ann", token=TOKEN)


def test_a_store_without_users_says_so(tmp_path: Path) -> None:
    serving = Serving(tmp_path / "data").start()
    file = secret_file(tmp_path, PASSWORD)
    address = f"127.0.0.1:{serving.store.port}"
    done = CliRunner().invoke(
        main, ["tables", "--user", "ann", "--password-file", file], env={"COLUMNAR_STORE": address}
    )
    serving.stop()
    assert done.exit_code == 1
    assert "this store has no users, its rights are off; connect without SASL" in done.stderr


def as_root(store: RightsStore, *words: str, input: str | None = None) -> Result:
    return run(store, *words, "--store", f"unix:{store.socket}", input=input)


def test_an_account_is_made_by_a_password_and_its_user_changes_it(
    store: RightsStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    file = secret_file(tmp_path, "first pass")
    assert as_root(store, "user", "password", "bob", "--new-password-file", file).exit_code == 0
    signed_in = ("--user", "bob", "--password-file", file)
    monkeypatch.setattr("columnar.shell.rights.somebody_answers", lambda: True)
    done = run(store, "user", "password", "bob", *signed_in, input="second pass\nslip\nsecond pass\nsecond pass\n")
    assert done.exit_code == 0, done.output
    assert run(store, "whoami", *signed_in).exit_code == 1, "the first password has ended"
    (tmp_path / "secret").write_text("second pass\n")
    assert json.loads(run(store, "whoami", "--json", *signed_in).stdout)["user"] == "bob"
    with Connection("127.0.0.1", store.port, timeout=20_000, user="bob", password="second pass") as connection:
        assert connection.call("columnarWhoAmI").user == b"bob"
    refused = run(store, "user", "password", "ann", *signed_in, input="stolen\nstolen\n")
    assert (refused.exit_code, "action=ADMIN" in refused.stderr) == (1, True)
    assert "pass" not in done.stdout
    for secret in ("first pass", "second pass", "stolen"):
        assert secret not in caplog.text


@pytest.mark.parametrize(
    ("text", "said"), [("\n", "is empty"), ("a\tb\n", "control character"), ("x" * 1_100, "at most")]
)
def test_texts_that_can_be_no_password_are_refused(store: RightsStore, text: str, said: str) -> None:
    done = as_root(store, "user", "password", "eve", "--new-password-file", "-", input=text)
    assert (done.exit_code, said in done.stderr) == (2, True)
    assert '"eve"' not in as_root(store, "user", "list", "--json").stdout


def test_a_token_is_shown_once_signs_in_and_is_taken_back(store: RightsStore, tmp_path: Path) -> None:
    file = tmp_path / "backup.token"
    words = ("user", "token", "backup", "--label", "nightly", "--output", str(file))
    assert as_root(store, *words).exit_code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    again = as_root(store, *words)
    assert (again.exit_code, "exists" in again.stderr) == (2, True)
    signed_in = ("--user", "backup", "--token-file", str(file))
    assert json.loads(run(store, "whoami", "--json", *signed_in).stdout)["user"] == "backup", "it was not replaced"
    shown = run(store, "user", "token", "backup", "--label", "other", *signed_in)
    assert shown.stderr == "token other of backup; it is not shown again\n"
    listed = json.loads(as_root(store, "user", "list", "--json").stdout)
    assert [one["tokens"] for one in listed if one["name"] == "backup"] == [["nightly", "other"]]
    assert shown.stdout.strip() not in str(listed)
    assert as_root(store, "user", "remove-token", "backup", "nightly").exit_code == 0
    assert run(store, "whoami", *signed_in).exit_code == 1
    file.write_text(shown.stdout)
    assert run(store, "whoami", *signed_in).exit_code == 0


def test_a_token_that_was_not_made_leaves_no_file(store: RightsStore, tmp_path: Path) -> None:
    mine = ("--user", "ann", "--password-file", secret_file(tmp_path, PASSWORD))
    done = run(store, "user", "token", "root2", "--output", str(tmp_path / "t"), *mine)
    assert (done.exit_code, "action=ADMIN" in done.stderr) == (1, True)
    assert not (tmp_path / "t").exists()
