"""The options with which our commands sign in to a store with rights; all commands use the same names.

    --user NAME                      a person at a terminal types the password, once in a process
    --user NAME --password-file F    the file's only line; F may be -, for standard input
    --user NAME --token-file F       the same, a token
    --store unix:PATH --user NAME    needs no secret: the operating system's user is NAME, or is root and acts as NAME

A secret is never an argument, because every user of the machine can read the arguments of a process.  A file that
belongs to the user of the command and that others may read is refused, as ssh refuses such a key.  Files of other
owners (secrets that a system mounts) and pipes are read as they are.
"""

from __future__ import annotations

import functools
import getpass
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import click

from columnar.client.addresses import UNIX
from columnar.client.errors import WrongArgument
from columnar.errors import HostError
from columnar.limits import SECRET_FILE_BYTES
from columnar.settings.option_kinds import Setting

STDIN: Final = "-"
PASSWORD_FILE: Final = "--password-file"  # noqa: S105 - an option's name
TOKEN_FILE: Final = "--token-file"  # noqa: S105 - likewise
setting = functools.partial(click.option, cls=Setting)


@dataclass(frozen=True, slots=True)
class ClientUser:
    """The user's name, and the path of a file with the password or a token; without a file a person types.

    Over a Unix socket nobody types: the operating system vouches for the process.
    """

    name: str
    password_file: str = ""
    token_file: str = ""
    has_socket: bool = False

    def secrets(self) -> dict[str, str]:
        """Return the arguments of ``Connection`` that sign the user in.

        Raises WrongArgument if options do not fit each other or nobody can type the password, HostError if the file
        cannot be used.  Blocks while a person types.
        """
        if not self.name:
            raise WrongArgument(f"{PASSWORD_FILE} and {TOKEN_FILE} go with --user NAME")
        if self.password_file and self.token_file:
            raise WrongArgument(f"{PASSWORD_FILE} and {TOKEN_FILE} are two ways to sign in: give one of them")
        if self.has_socket and not self._path:
            return {"user": self.name}
        kind = "token" if self.token_file else "password"
        if not self._is_remembered:
            return {"user": self.name, kind: read_secret(self._path, self._option)}
        if self not in _remembered:
            _remembered[self] = read_secret(STDIN, self._option) if self._path else self._typed()
        return {"user": self.name, kind: _remembered[self]}

    @property
    def is_at_hand(self) -> bool:
        """Whether ``secrets`` returns without a person and without standard input."""
        return not self._is_remembered or self in _remembered

    def forget_typed(self) -> None:
        """Have the person type again, after the store has refused the password."""
        if not self._path:
            _remembered.pop(self, None)

    @property
    def _path(self) -> str:
        return self.token_file or self.password_file

    @property
    def _option(self) -> str:
        return TOKEN_FILE if self.token_file else PASSWORD_FILE

    @property
    def _is_remembered(self) -> bool:
        return self._path == STDIN or (not self._path and not self.has_socket)

    def _typed(self) -> str:
        if not sys.stdin.isatty():
            raise WrongArgument(
                f"nobody can type the password of {self.name} here: name a file with {PASSWORD_FILE} or {TOKEN_FILE}"
            )
        return getpass.getpass(f"Password of {self.name}: ", sys.stderr)


# Secrets that a person typed or standard input gave: a shell's commands, and a command's connections, ask once.
_remembered: Final[dict[ClientUser, str]] = {}


def read_secret(path: str, option: str) -> str:
    """Return the one line of a file, or of standard input for ``-``.  Raises HostError, which names ``option``."""
    if path == STDIN:
        line, place = sys.stdin.readline(SECRET_FILE_BYTES + 1), f"standard input ({option} -)"
    else:
        place = f"{path} ({option})"
        try:
            with open(path, "rb") as file:
                _check_private(file.fileno(), path, option)
                line = file.read(SECRET_FILE_BYTES + 1).decode()
        except OSError as error:
            raise HostError(f"cannot read {place}: {error.strerror}") from error
        except UnicodeDecodeError:
            raise HostError(f"{place} is no text in UTF-8") from None
    if len(line) > SECRET_FILE_BYTES:
        raise HostError(f"{place} has more than {SECRET_FILE_BYTES} bytes; it must have the secret alone")
    secret = line.removesuffix("\n").removesuffix("\r")
    if not secret:
        raise HostError(f"{place} is empty; it must have the secret as its only line")
    if "\n" in secret:
        raise HostError(f"{place} has several lines; it must have the secret as its only line")
    return secret


def _check_private(descriptor: int, path: str, option: str) -> None:
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise HostError(f"others may read or write {path} ({option}, mode {mode:04o}): chmod 600 {path}")


def user_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which receives ``user``: a ``ClientUser``, or None if none is given."""

    @setting(
        "--user",
        "user_name",
        metavar="NAME",
        default="",
        envvar="COLUMNAR_USER",
        help="Sign in as this user, where the store checks rights; the password is asked for. Over a Unix socket it is "
        "you, or you are root, and none is needed.",
    )
    @setting(
        PASSWORD_FILE,
        metavar="FILE",
        default="",
        envvar="COLUMNAR_PASSWORD_FILE",
        help="File with the user's password, which others may not read; - for standard input.",
    )
    @setting(
        TOKEN_FILE,
        metavar="FILE",
        default="",
        envvar="COLUMNAR_TOKEN_FILE",
        help="The same with a token ('columnar user token').",
    )
    @functools.wraps(command)
    def with_user(user_name: str, password_file: str, token_file: str, **arguments: Any) -> Any:
        if password_file and token_file:
            password_file, token_file = _nearer(password_file, token_file)
        is_given = user_name or password_file or token_file
        has_socket = str(arguments.get("store", "")).startswith(UNIX)
        user = ClientUser(user_name, password_file, token_file, has_socket) if is_given else None
        return command(user=user, **arguments)

    return with_user


def _nearer(password_file: str, token_file: str) -> tuple[str, str]:
    """Return the files without the one of the environment or of the settings, if the other one was typed."""
    ctx = click.get_current_context()
    typed = [
        ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        for name in ("password_file", "token_file")
    ]
    if typed == [True, False]:
        return password_file, ""
    return ("", token_file) if typed == [False, True] else (password_file, token_file)
