"""The settings of the wiki's commands: the tables of ``wikka.toml``, and the variables of the environment.

[wiki]     of ``wikka serve`` and ``wikka run``: how the wiki looks and who may do what
[run]      of ``wikka run`` alone: the store that it starts
[client]   of all commands that talk to a store that runs already: which one
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Final

import click

from columnar.settings.configured import own_table
from columnar.settings.option_kinds import Setting
from columnar.settings.settings_file import Program, Table

WIKKA: Final = Program("wikka", ("wiki", "run", "client"))


class WikiSetting(Setting):
    """An option of the wiki, with its variable: WIKKA_PORT for --port."""

    program = "wikka"


setting: Final = partial(click.option, cls=WikiSetting)


def command_of(module: str, name: str) -> click.Command:
    """Return a command; its module is imported when a file is read."""
    found: click.Command = getattr(import_module(f"wikka_port.commands.{module}"), name)
    return found


# Settings of 'wikka serve' that stay until a restart, as they are those of its sockets.  New workers have all others.
RESTART: Final = frozenset({"host", "port", "workers", "metrics-host", "metrics-port"})
CLIENT: Final[Table] = own_table("client", partial(command_of, "store_options", "client"))
WIKI: Final[Table] = own_table("wiki", partial(command_of, "serve", "serve"), without=CLIENT)
RUN: Final[Table] = own_table("run", partial(command_of, "run", "run"), without=WIKI)
