"""(pure) An option of click as a setting: its key in a file, its variable of the environment, its type in TOML.

    flag --web-port      key web-port      variable COLUMNAR_WEB_PORT      TOML integer

A key is the long flag without its dashes.  The variable is made of the program's name and the key, unless the option
names its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from enum import Enum
from typing import Any, Final, Self

import click

PATHS: Final = ("FILE", "DIR")  # metavars of options whose value is a path
CONFIG: Final = "--config"
_LINKS: Final = ("tcp://", "udp://", "sctp://")


class Kind(Enum):
    """The type of a setting in TOML; the value is its name in messages."""

    FLAG = "true or false"
    INTEGER = "an integer"
    NUMBER = "a number"
    TEXT = "a text in quotes"
    LIST = "a list of texts"


class CommaList(click.ParamType[tuple[str, ...]]):
    """Texts: with commas between them in a flag and a variable, a list in a file."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        parts = value.split(",") if isinstance(value, str) else value
        return tuple(part.strip() for part in parts if part.strip())


class Setting(click.Option):
    """An option that a file and a variable may give too.

    Kubernetes gives each pod the addresses of the Services of its namespace: for a Service ``columnar`` the variable
    ``COLUMNAR_PORT=tcp://10.0.0.1:9090``.  Such a value is ignored.
    """

    program = ""  # for the variable's name; empty: the option names its variable itself

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        if self.envvar is None and self.program:
            self.envvar = variable_of(self.program, self)
        self.show_envvar = True  # in the help, and in messages on a wrong value

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        found = super().resolve_envvar_value(ctx)
        is_link = found is not None and kind_of(self) is Kind.INTEGER and found.startswith(_LINKS)
        return None if is_link else found

    def without_demands(self) -> Self:
        """Return a copy that may be missing, and whose value stays as it was written."""
        made = copy(self)
        made._drop_demands()
        return made

    def _drop_demands(self) -> None:
        self.required = False
        self.callback = None


def settings_among(params: Iterable[click.Parameter]) -> list[click.Option]:
    """Return the options that a file may set: all but ``--config``."""
    return [one for one in params if isinstance(one, click.Option) and CONFIG not in one.opts]


def key_of(option: click.Option) -> str:
    return max(option.opts, key=len).lstrip("-")


def variable_of(program: str, option: click.Option) -> str:
    """Return the environment variable of the option."""
    if isinstance(option.envvar, str):
        return option.envvar
    return f"{program}_{key_of(option)}".upper().replace("-", "_")


def kind_of(option: click.Option) -> Kind:
    if option.is_flag:
        return Kind.FLAG
    if option.multiple or isinstance(option.type, CommaList):
        return Kind.LIST
    if isinstance(option.type, click.types.IntParamType):
        return Kind.INTEGER
    if isinstance(option.type, click.types.FloatParamType):
        return Kind.NUMBER
    return Kind.TEXT


def is_of_kind(value: Any, kind: Kind) -> bool:
    """Return whether a value of a TOML file has the type.  True and false are no numbers."""
    if kind is Kind.FLAG:
        return isinstance(value, bool)
    if kind is Kind.LIST:
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if kind is Kind.TEXT:
        return isinstance(value, str)
    numbers = int if kind is Kind.INTEGER else int | float
    return isinstance(value, numbers) and not isinstance(value, bool)


def is_path(option: click.Option) -> bool:
    return option.metavar in PATHS or isinstance(option.type, click.Path)


def is_url(option: click.Option) -> bool:
    """Return whether the value is an address, which may have a user with a password in it."""
    return option.metavar == "URL"


def is_secret(option: click.Option) -> bool:
    """Return whether the value is a password: it is not shown, and its file must be private."""
    return option.hide_input


def without_user(text: str) -> str:
    """Return an address without the user and password in it."""
    scheme, is_url, rest = text.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if is_url else text


def toml_text(value: Any) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_text, value))}]"
    escaped = "".join(_escaped(character) for character in str(value))
    return f'"{escaped}"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return f"\\u{ord(character):04x}" if character < " " or character == "\x7f" else character
