"""``columnar config``: show the settings of the store's commands, check them, and write a file of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import click

from columnar.client.store_options import CLIENT, client
from columnar.config import LIVE, StandaloneConfig
from columnar.errors import HostError
from columnar.memory_plan import ALONE
from columnar.roles.store_commands import NODE, STANDALONE, node, standalone
from columnar.settings.commands import PASSES_ON, Described, config_group
from columnar.settings.configured import FILE, TAKES
from columnar.settings.settings_file import COLUMNAR, BadSettings

TABLES = {
    "standalone": Described(STANDALONE, lambda: standalone, "The store, 'columnar standalone'."),
    "node": Described(NODE, lambda: node, "A node of a cluster on many machines, 'columnar node'."),
    "client": Described(CLIENT, lambda: client, "All commands that talk to a store, as 'columnar get'."),
}
_OF_PROCESS = {"source", "node", "log", "health_port"}
_STORES = {"standalone": standalone, "node": node}

config = config_group(COLUMNAR, TABLES, LIVE)


@config.command(context_settings=PASSES_ON)
@click.argument("name", metavar="standalone|node", type=click.Choice(list(_STORES)))
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
@click.option("--json", "as_json", is_flag=True, help="Print the settings in JSON.")
@click.pass_context
def check(ctx: click.Context, name: str, options: tuple[str, ...], as_json: bool) -> None:
    """Say whether a store would start with the settings that it would have now.

    OPTIONS are those of the command. The file, the variables and the certificate are read, and the memory is planned;
    nothing is started and no folder opened. Exit status: 0 they are good, 2 they are not.

    \b
      columnar config check standalone
      columnar config check standalone --config ./columnar.toml --port 9190
    """
    settings: dict[str, Any] = {}
    ctx.meta[TAKES] = settings.update
    with suppress(click.exceptions.Exit), _STORES[name].make_context(name, list(options), parent=ctx) as inner:
        inner.command.invoke(inner)
    if not settings:
        return  # its help was printed
    _check_start(settings)
    if as_json:
        click.echo(json.dumps(settings))
    else:
        click.echo(f"columnar {name} can start with these settings; file: {ctx.meta.get(FILE) or 'none'}")


def _check_start(settings: Mapping[str, Any]) -> None:
    """Raise BadSettings if the certificate cannot be used, or the memory is too little."""
    from columnar.roles.ports import read_peer_tls, read_tls  # the parts of a server

    config = StandaloneConfig.of_settings({key: settings[key] for key in settings.keys() - _OF_PROCESS})
    try:
        node = settings.get("node")
        config.memory_plan(max(1, node["servers"]) if node else ALONE)
        read_tls(config)
        if "coordination" in (settings.get("node") or {}):  # its links to other machines show the certificate too
            read_peer_tls(config)
    except HostError as error:
        raise BadSettings(COLUMNAR.name, error.text) from error
