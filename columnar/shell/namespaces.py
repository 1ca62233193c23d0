"""``columnar namespace create | drop | list``."""

from __future__ import annotations

import click

from columnar.shell.completion import completing
from columnar.shell.connecting import Server, with_server
from columnar.shell.text import readable, typed


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def namespace() -> None:
    """Make, drop and list namespaces.

    \b
    A table's name may begin with a namespace and a colon; without one it is in "default":
      columnar namespace create team
      columnar create team:pages text
      columnar namespace list team
      columnar namespace drop team
    """


@namespace.command()
@click.argument("name")
@with_server
def create(server: Server, name: str) -> None:
    """Make a namespace: letters, digits and '_'."""
    server.connection.admin.create_namespace(typed(name))
    server.output.done(f"namespace {name} made", {"created": name})


@namespace.command()
@click.argument("name", shell_complete=completing("namespace"))
@with_server
def drop(server: Server, name: str) -> None:
    """Remove an empty namespace; "default" and the system's own stay."""
    server.connection.admin.drop_namespace(typed(name))
    server.output.done(f"namespace {name} is gone", {"dropped": name})


@namespace.command("list")
@click.argument("name", default="", shell_complete=completing("namespace"))
@with_server
def list_namespaces(server: Server, name: str) -> None:
    """List the namespaces, or the tables of one."""
    admin = server.connection.admin
    found = [readable(one) for one in (admin.namespace_tables(typed(name)) if name else admin.namespaces())]
    if server.output.as_json:
        server.output.json(found)
        return
    for one in found:
        click.echo(one)
