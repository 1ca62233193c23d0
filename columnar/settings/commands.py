"""The commands ``config show`` and ``config init`` of a program."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from columnar.settings.configured import FILE, resolved, source_of
from columnar.settings.option_kinds import Setting, is_secret, is_url, key_of, settings_among, toml_text, without_user
from columnar.settings.settings_file import BadSettings, Program, Table
from columnar.settings.template import written

_MODE: Final = 0o644  # no setting is a secret unless its own folder is private
HIDDEN: Final = "(hidden)"  # in the place of a secret
_UNSET: Final = "-"
PASSES_ON: Final = {"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]}


@dataclass(frozen=True, slots=True)
class Described:
    """A table, the command whose flags and variables it has, and a sentence on it."""

    table: Table
    command: Callable[[], click.Command]
    about: str


@dataclass(frozen=True, slots=True)
class ListedSetting:
    """A setting as a person sees it."""

    key: str
    value: Any  # None: not set; HIDDEN for a secret
    source: str
    is_lacking: bool = False  # the command does not start without it

    @property
    def text(self) -> str:
        if self.value is None:
            return "needed, and not set" if self.is_lacking else _UNSET
        return HIDDEN if self.value is HIDDEN else toml_text(self.value)


def list_settings(program: Program, table: Table, command: click.Command, words: Sequence[str]) -> list[ListedSetting]:
    """Return the settings of a table, as the command would have them if it were called with ``words``.

    Raises click's errors for values that it would refuse.  Settings that are needed and missing are no error.
    """
    params = [one.without_demands() if isinstance(one, Setting) else one for one in command.params]
    lenient = click.Command(command.name, params=params)
    ctx = lenient.make_context(command.name, list(words), parent=click.get_current_context())
    values = resolved(ctx)
    needed = {key_of(one) for one in settings_among(command.params) if one.required}
    listed = []
    for option in table.options():
        key = key_of(option)
        value = values[key]
        value = HIDDEN if is_secret(option) and value else value if value is None else _plain(value)
        if is_url(option) and isinstance(value, str):
            value = without_user(value)
        listed.append(ListedSetting(key, value, source_of(program, ctx, option), key in needed))
    return listed


def _plain(value: Any) -> Any:
    """Return the value as JSON and TOML have it."""
    if isinstance(value, tuple | list):
        return [str(one) for one in value]
    return value if isinstance(value, bool | int | float) else str(value)


def config_group(program: Program, tables: Mapping[str, Described], live: frozenset[str]) -> click.Group:
    """Return the group ``config`` of a program with these tables.

    ``live``: keys of settings that a serving process takes at SIGHUP.
    """
    group = click.Group("config", help=f"Show the settings and where they come from, or write a {program.file_name}.")
    group.add_command(_show(program, tables))
    group.add_command(_init(program, tables, live))
    return group


def _show(program: Program, tables: Mapping[str, Described]) -> click.Command:
    about = (
        f"Print each setting with its value and where that comes from: a flag, a variable of the environment, the "
        f"file, or the default.\n\nThe values are those that a command would have if it were called now, with these "
        f"OPTIONS.\n\n\b\n  {program.name} config show\n"
        f"  {program.name} config show {next(iter(tables))} --config ./{program.file_name} --json"
    )

    @click.command("show", help=about, context_settings=PASSES_ON)
    @click.argument("table", required=False, type=click.Choice(list(tables)))
    @click.argument("options", nargs=-1, type=click.UNPROCESSED)
    @click.option("--config", metavar="FILE", envvar=program.variable, help="The file to read.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    def show(table: str | None, options: tuple[str, ...], config: str | None, as_json: bool) -> None:
        words = [*options, *([] if config is None else ["--config", config])]
        found: dict[str, list[ListedSetting]] = {}
        for name in [table] if table is not None else list(tables):
            one = tables[name]
            found[name] = list_settings(program, one.table, one.command(), words)
        if as_json:
            click.echo(json.dumps({name: _as_json(shown) for name, shown in found.items()}))
            return
        click.echo(_read_file(program))
        for name, shown in found.items():
            click.echo(f"\n[{name}]")
            _print(shown)

    return show


def _read_file(program: Program) -> str:
    path = click.get_current_context().meta.get(FILE)
    return f"file: {path}" if path else f"file: none; '{program.name} config init' writes one"


def _print(shown: list[ListedSetting]) -> None:
    key_width = max(len(one.key) for one in shown)
    value_width = max(len(one.text) for one in shown)
    for one in shown:
        click.echo(f"{one.key:{key_width}}  {one.text:{value_width}}  {one.source}")


def _as_json(shown: list[ListedSetting]) -> dict[str, dict[str, object]]:
    return {one.key: {"value": one.value, "source": one.source} for one in shown}


def _init(program: Program, tables: Mapping[str, Described], live: frozenset[str]) -> click.Command:
    about = (
        f"Write a {program.file_name} that has every setting as a comment, with its help and its default.\n\n\b\n"
        f"  {program.name} config init --output ./{program.file_name}"
    )

    @click.command("init", help=about)
    @click.option("--output", metavar="FILE", help="Write there, where no file is yet, instead of to standard output.")
    def init(output: str | None) -> None:
        text = written(program, [(name, one.about, one.table.options()) for name, one in tables.items()], live)
        if output is None:
            click.echo(text, nl=False)
            return
        try:
            descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
        except FileExistsError:
            raise BadSettings(program.name, f"{output} is there already; remove it, or name another --output") from None
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        click.echo(f"wrote {output}; all settings in it are comments")

    return init
