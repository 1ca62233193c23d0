"""The option ``--config``: it has click take a command's settings from tables of a file.

The option is eager, so click calls it before it looks for the values of the others; it reads the file into
``default_map``, which click asks after flags and variables.  So flags, variables, file and defaults are resolved by
click alone, and ``ctx.get_parameter_source`` knows where each value comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import click

from columnar.settings.option_kinds import key_of, settings_among, variable_of
from columnar.settings.settings_file import BadSettings, Program, SettingsFile, Table

F = TypeVar("F", bound=Callable[..., Any] | click.Command)
ARGUMENTS: Final = "columnar.settings.arguments"  # keys of ``ctx.meta``
FILE: Final = "columnar.settings.file"
NAMED: Final = "columnar.settings.named"  # what --config or its variable says; None: nothing
TAKES: Final = "columnar.settings.takes"  # a function that takes the settings of a store's command; nothing starts


class ConfiguredCommand(click.Command):
    """A command that keeps its words, so that a serving process can resolve its settings again."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[ARGUMENTS] = tuple(args)
        return super().parse_args(ctx, args)


def config_option(program: Program, *tables: Table, is_client: bool = False) -> Callable[[F], F]:
    """Return a decorator that adds ``--config``: the command takes its settings from these tables.

    ``is_client``: the command needs no file of the machine that this user may not read.
    """

    def read(ctx: click.Context, option: click.Parameter, given: str | None) -> None:
        if given == "":
            raise BadSettings(program.name, "--config names no file")
        ctx.meta[NAMED] = given
        file = SettingsFile.found(program, given, is_client=is_client)
        ctx.meta[FILE] = None if file is None else file.path
        if file is not None:
            ctx.default_map = default_map(file, tables, ctx)

    return click.option(
        "--config",
        metavar="FILE",
        envvar=program.variable,
        is_eager=True,
        expose_value=False,
        callback=read,
        help=f"Settings; flags and variables have precedence.  [default: {program.file_name} in the user's folder "
        f"of settings, or in /etc/{program.name}]",
    )


def default_map(file: SettingsFile, tables: Sequence[Table], ctx: click.Context) -> dict[str, Any]:
    """Return the file's values for the command of ``ctx``, by click's names.  Raises BadSettings."""
    found: dict[str, Any] = {}
    for table in tables:
        values = file.values(table)
        for option in table.options():
            if (key := key_of(option)) in values:
                file.convert(table.name, option, values[key], ctx)
                found[_name_of(option)] = values[key]
    return found


def _name_of(option: click.Option) -> str:
    assert option.name is not None, "click has named it"
    return option.name


def own_table(name: str, command: Callable[[], click.Command], without: Table | None = None) -> Table:
    """Return the table of all options of a command, except those of ``without``."""

    def options() -> list[click.Option]:
        apart = set() if without is None else {key_of(option) for option in without.options()}
        return [option for option in settings_among(command().params) if key_of(option) not in apart]

    return Table(name, options)


def resolved(ctx: click.Context) -> dict[str, Any]:
    """Return the settings of the command that runs, by key."""
    return {key_of(option): ctx.params.get(_name_of(option)) for option in settings_among(ctx.command.params)}


def source_of(program: Program, ctx: click.Context, option: click.Option) -> str:
    """Return where the value comes from: ``flag``, a variable's name, a file's path, or ``default``."""
    source = ctx.get_parameter_source(_name_of(option))
    if source is click.core.ParameterSource.ENVIRONMENT:
        return variable_of(program.name, option)
    if source is click.core.ParameterSource.DEFAULT_MAP:
        return str(ctx.meta[FILE])
    return "flag" if source is click.core.ParameterSource.COMMANDLINE else "default"
