"""A command's user: where the secret comes from, which files are refused, and which option has precedence."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from columnar.client import user_options as module
from columnar.client.errors import WrongArgument
from columnar.client.user_options import ClientUser, read_secret, user_options
from columnar.diagnosis.store_answers import _authorization
from columnar.errors import HostError
from columnar.limits import SECRET_FILE_BYTES


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    module._remembered.clear()
    yield
    module._remembered.clear()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def private(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    path.chmod(0o600)
    return str(path)


@pytest.mark.parametrize("data", [b"pa ss", b"pa ss\n", b"pa ss\r\n"])
def test_the_line_of_a_file_is_the_secret(tmp_path: Path, data: bytes) -> None:
    file = private(tmp_path / "p", data)
    assert ClientUser("ann", password_file=file).secrets() == {"user": "ann", "password": "pa ss"}
    assert ClientUser("ann", token_file=file).secrets() == {"user": "ann", "token": "pa ss"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"one\ntwo\n", "several lines"),
        (b"\xff\xfe", "no text in UTF-8"),
        (b"x" * (SECRET_FILE_BYTES + 1), "more than"),
    ],
)
def test_other_files_are_refused_without_their_content(tmp_path: Path, data: bytes, said: str) -> None:
    file = private(tmp_path / "p", data)
    with pytest.raises(HostError, match=said) as refused:
        read_secret(file, "--token-file")
    assert file in refused.value.text
    assert "--token-file" in refused.value.text
    assert "two" not in refused.value.text


def test_a_file_that_others_may_read_is_refused_and_a_pipe_is_not(tmp_path: Path) -> None:
    file = private(tmp_path / "p", b"secret")
    os.chmod(file, 0o640)
    with pytest.raises(HostError, match=r"mode 0640\): chmod 600"):
        ClientUser("ann", file).secrets()
    with pytest.raises(HostError, match="No such file"):
        ClientUser("ann", str(tmp_path / "none")).secrets()
    reader, writer = os.pipe()
    os.fchmod(reader, 0o666)
    os.write(writer, b"secret\n")
    os.close(writer)
    assert read_secret(f"/dev/fd/{reader}", "--password-file") == "secret"
    os.close(reader)


def test_a_person_types_once_and_again_after_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = iter(("first", "second"))
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("getpass.getpass", lambda _prompt, _stream: next(typed))
    user = ClientUser("ann")
    assert not user.is_at_hand
    assert [user.secrets()["password"], ClientUser("ann").secrets()["password"]] == ["first", "first"]
    assert user.is_at_hand
    user.forget_typed()
    assert user.secrets()["password"] == "second"


def test_standard_input_gives_one_line_once_and_nobody_types_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\nscript\n"))
    user = ClientUser("ann", "-")
    assert [user.secrets()["password"], user.secrets()["password"]] == ["secret", "secret"]
    user.forget_typed()
    assert user.secrets()["password"] == "secret", "the rest of standard input is no password"
    with pytest.raises(WrongArgument, match="nobody can type the password of ann here"):
        ClientUser("ann").secrets()


def test_options_that_do_not_fit_are_refused() -> None:
    with pytest.raises(WrongArgument, match="go with --user"):
        ClientUser("", "p").secrets()
    with pytest.raises(WrongArgument, match="two ways"):
        ClientUser("ann", "p", "t").secrets()


@pytest.mark.parametrize(
    ("words", "variables", "found"),
    [
        ((), {}, None),
        (("--user", "ann"), {}, ClientUser("ann")),
        ((), {"USER": "ann", "TOKEN_FILE": "t"}, ClientUser("ann", "", "t")),
        (("--password-file", "p"), {"USER": "ann", "TOKEN_FILE": "t"}, ClientUser("ann", "p", "")),
        (("--token-file", "t"), {"USER": "ann", "PASSWORD_FILE": "p"}, ClientUser("ann", "", "t")),
        (("--user", "bob"), {"USER": "ann", "PASSWORD_FILE": "p"}, ClientUser("bob", "p", "")),
    ],
)
def test_what_is_typed_goes_before_the_environment(
    words: tuple[str, ...], variables: dict[str, str], found: ClientUser | None
) -> None:
    seen: list[Any] = []

    @click.command()
    @user_options
    def command(user: ClientUser | None) -> None:
        seen.append(user)

    env = {f"COLUMNAR_{name}": value for name, value in variables.items()}
    CliRunner().invoke(command, list(words), env=env, catch_exceptions=False)
    assert seen == [found]


def test_a_secret_is_sent_to_pages_only_where_the_network_cannot_read_it(tmp_path: Path) -> None:
    user = ClientUser("ann", private(tmp_path / "p", b"pa:ss"))
    for url in ("http://127.0.0.1:9095/", "http://[::1]:9095/", "https://store.example:9095/"):
        assert _authorization(url, user) == {"Authorization": "Basic YW5uOnBhOnNz"}
    assert _authorization("http://store.example:9095/", user) == {}
    assert _authorization("https://store.example:9095/", None) == {}
