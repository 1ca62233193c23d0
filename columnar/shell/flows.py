"""``columnar flows``: which table feeds which trigger and view, where they write, how fast and how far behind."""

from __future__ import annotations

import json

import click

from columnar.model import flow_status
from columnar.shell.connecting import Server, with_server
from columnar.shell.shell_output import remark_on_silent


@click.command()
@with_server
def flows(server: Server) -> None:
    """Show the flows of data.

    \b
    Each table, the triggers and views that follow it, and where they write:
      pages/text
      -> trigger links   12.0/s  lag 0
         backlinks/link
    Beside each: deliveries a second over the last minute, changes not yet delivered, rows that are tried again, and
    dead letters. A place that was written and that nobody declared is marked.
    """
    text = server.connection.flows()
    if server.output.as_json:
        server.output.json(json.loads(text))
        return
    flows, silent = flow_status.from_json(text)
    click.echo(flow_status.drawing_of(flows), nl=False)
    remark_on_silent(silent)
