"""The settings file of a program: where it is, and its tables as values of click's options.

    --config FILE, or the variable PROGRAM_CONFIG     must exist
    else the user's folder of settings, then /etc     the first file that exists

A program reads one file, never a second one, and none of the current directory, which may be somebody else's.  A
place that this user may not look into has no file for this user; if it is the machine's, a client says so on stderr,
and a server does not start, as it would serve with other settings than those that were written for it.

A table has the settings of a command.  An unknown key, a wrong type or a value out of range is an error, so that no
line of the file is without effect: one line with file, line, table, key, what was expected and the nearest name.

``/dev/null`` names no file, so that nothing is read.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import click

from columnar.limits import SETTINGS_FILE_BYTES
from columnar.settings.option_kinds import Kind, is_of_kind, is_path, is_secret, key_of, kind_of
from columnar.settings.user_folders import user_folder

SYSTEM: Final = "/etc"
_FOUND: Final = {bool: "true or false", int: "an integer", float: "a number", str: "a text", list: "a list"}


@dataclass(frozen=True, slots=True)
class Program:
    """A program with a settings file: ``columnar`` has ``columnar.toml``."""

    name: str
    tables: tuple[str, ...]  # of its file, in their order there

    @property
    def file_name(self) -> str:
        return f"{self.name}.toml"

    @property
    def variable(self) -> str:
        """Return the variable that names the file."""
        return f"{self.name.upper()}_CONFIG"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a file: the settings of a command, or those that several commands have."""

    name: str
    options: Callable[[], Sequence[click.Option]]  # called when a file is read


COLUMNAR: Final = Program("columnar", ("standalone", "node", "client"))


class BadSettings(click.ClickException):
    """The file cannot be used: one line on stderr, and status 2."""

    exit_code = 2

    def __init__(self, program: str, message: str) -> None:
        super().__init__(message)
        self._program = program

    def show(self, file: Any = None) -> None:
        click.echo(f"{self._program}: {self.message}", err=True)


class NotPermitted(BadSettings):
    """This user may not read the file, or look for it."""


@cache
def _note_once(line: str) -> None:
    """Write the line to stderr, once in this process: a shell reads the settings for each of its commands."""
    click.echo(line, err=True)


def places(program: Program) -> list[str]:
    """Return the paths at which a file is looked for if none is named."""
    own = os.path.join(user_folder("user_config_dir", program.name) or "", program.file_name)
    found = [own, place_of_machine(program)]
    return [path for path in found if os.path.isabs(path)]  # a user without a home would have a relative one


def place_of_machine(program: Program) -> str:
    """Return the path of the file that all users of the machine share."""
    return os.path.join(SYSTEM, program.name, program.file_name)


class SettingsFile:
    """A file that was read: its text, and its tables as TOML has them."""

    def __init__(self, program: Program, path: str, text: str, tables: Mapping[str, Any], mode: int) -> None:
        self.path = path
        self._program = program
        self._text = text
        self._tables = tables
        self._mode = mode

    @classmethod
    def found(cls, program: Program, named: str | None, *, is_client: bool = False) -> SettingsFile | None:
        """Read the file that ``named`` or its place names; None if there is none.  Raises BadSettings.  Blocks.

        ``is_client``: a file of the machine that this user may not read is a line on stderr, and no error.
        """
        if named == os.devnull:
            return None
        if named is not None:
            file = cls._read(program, os.path.abspath(named))
            if file is None:
                raise BadSettings(program.name, f"{named}: there is no such file ({CONFIG_SAYS % program.variable})")
            return file
        for path in places(program):
            try:
                file = cls._read(program, path)
            except NotPermitted as error:
                if path == place_of_machine(program):
                    if not is_client:
                        raise
                    _note_once(f"{program.name}: {error.message}; its settings are left out")
                continue
            if file is not None:
                return file
        return None

    @classmethod
    def _read(cls, program: Program, path: str) -> SettingsFile | None:
        import tomllib  # only for a program that has a file

        try:
            with open(path, "rb") as opened:
                mode = os.fstat(opened.fileno()).st_mode
                data = opened.read(SETTINGS_FILE_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            refusal = NotPermitted if isinstance(error, PermissionError) else BadSettings
            raise refusal(program.name, f"{path}: the settings cannot be read: {error.strerror}") from error
        if len(data) > SETTINGS_FILE_BYTES:
            raise BadSettings(program.name, f"{path} has more than {SETTINGS_FILE_BYTES} bytes")
        try:
            text = data.decode()
            tables = tomllib.loads(text)
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise BadSettings(program.name, f"{path}: this is no TOML: {error}") from error
        file = cls(program, path, text, tables, mode)
        file._check_names()
        return file

    def _check_names(self) -> None:
        """Raise BadSettings for what stands outside the program's tables."""
        known = self._program.tables
        for name, content in self._tables.items():
            if name not in known:
                what = "table" if isinstance(content, dict) else "setting outside the tables"
                step = nearest(name, known) or f"the tables are {', '.join(known)}"
                raise self._error("", name, f"there is no such {what}; {step}")
            if not isinstance(content, dict):
                raise self._error("", name, f"write a table [{name}], with the settings below it")

    def values(self, table: Table) -> dict[str, Any]:
        """Return the values of the table by key, checked by type, with paths made absolute.  Raises BadSettings.

        The values are within their ranges only after ``convert``.
        """
        content = self._tables.get(table.name, {})
        options = {key_of(option): option for option in table.options()}
        found = {}
        for key, value in content.items():
            option = options.get(key)
            if option is None:
                step = nearest(key, options) or f"'{self._program.name} config init' writes all there are"
                raise self._error(table.name, key, f"there is no such setting; {step}")
            kind = kind_of(option)
            if not is_of_kind(value, kind):
                got = _FOUND.get(type(value), "something else")
                raise self._error(table.name, key, f"this must be {kind.value}, and is {got}{_example(option, kind)}")
            if is_secret(option):
                self._check_private(table.name, key)
            found[key] = self._absolute(value) if is_path(option) and value else value
        return found

    def convert(self, table: str, option: click.Option, value: Any, ctx: click.Context) -> None:
        """Check the value as click would one of a flag.  Raises BadSettings."""
        try:
            option.process_value(ctx, value)
        except click.ClickException as error:
            raise self._error(table, key_of(option), error.message.rstrip(".")) from error

    def _absolute(self, path: str) -> str:
        """Return the path from this file's folder, as the current directory of a service is none of its own."""
        return os.path.join(os.path.dirname(self.path), os.path.expanduser(path))

    def _check_private(self, table: str, key: str) -> None:
        if os.name == "posix" and self._mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise self._error(table, key, f"other users can reach this secret; run 'chmod 600 {self.path}'")

    def _error(self, table: str, key: str, what: str) -> BadSettings:
        line = line_of(self._text, table, key)
        place = f"{self.path}:{line}" if line else self.path
        name = f"[{table}] {key}" if table else key
        return BadSettings(self._program.name, f"{place}: {name}: {what}")


CONFIG_SAYS: Final = "--config or %s names it"


def nearest(name: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    """(pure) Return words that name the nearest known name; empty if none is near."""
    from difflib import get_close_matches

    if (dashed := name.replace("_", "-").lower()) in known:
        return f"write {dashed}"
    close = get_close_matches(dashed, list(known), n=1)
    return f"did you mean {close[0]}?" if close else ""


def line_of(text: str, table: str, key: str) -> int:
    """(pure) Return the line on which the key is set, from 1; 0 if unknown, as tomllib does not say it."""
    within = ""
    quoted = rf"(?:{re.escape(key)}|\"{re.escape(key)}\"|'{re.escape(key)}')"
    header = re.compile(r"\s*\[+\s*([^\]\s]+)\s*\]+")
    setting = re.compile(rf"\s*{quoted}\s*=")
    for number, line in enumerate(text.splitlines(), 1):
        if found := header.match(line):
            within = found[1].strip("\"'")
            if not table and within == key:
                return number
        elif within == table and setting.match(line):
            return number
    return 0


def _example(option: click.Option, kind: Kind) -> str:
    if kind is Kind.LIST:
        return f': {key_of(option)} = ["{option.metavar or "..."}"]'
    return ""
