"""``columnar log-level``: the levels of a running store's log, in all its processes."""

from __future__ import annotations

import click

from columnar.client import ClusterAdmin
from columnar.shell.connecting import Server
from columnar.shell.private_connection import with_cluster


@click.command("log-level")
@click.argument("changes", nargs=-1, metavar="[LOGGER=LEVEL]...")
@with_cluster
def log_level(server: Server, changes: tuple[str, ...]) -> None:
    """Show the levels of the store's log, or change them until a restart or SIGHUP.

    A logger is named as the lines of the log name it, and has those below it; root is all of them. LEVEL is debug,
    info, warning or error; default takes a logger's own level away. Servers and trigger workers take the same levels;
    one that starts later has those of its settings.

    \b
      columnar log-level
      columnar log-level columnar.wire=debug columnar.flows=warning
      columnar log-level columnar.wire=default
    """
    found = ClusterAdmin(server.connection).log_levels(*changes)
    if server.output.as_json:
        server.output.json({process: levels.split(" ") for process, levels in found.items()})
        return
    server.output.table(("process", "levels"), [(process, found[process]) for process in sorted(found)])
