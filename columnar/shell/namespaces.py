"""``columnar namespace create | alter | describe | drop | list``."""

from __future__ import annotations

import click

from columnar.errors import IllegalArgument
from columnar.shell.completion import completing
from columnar.shell.connecting import Server, with_server
from columnar.shell.text import readable, typed


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def namespace() -> None:
    """Make, configure, drop and list namespaces.

    \b
    A table's name may begin with a namespace and a colon; without one it is in "default":
      columnar namespace create team
      columnar create team:pages text
      columnar namespace list team
      columnar namespace alter team owner=anna hbase.namespace.quota.maxtables=20
      columnar namespace describe team
      columnar namespace drop team
    """


@namespace.command()
@click.argument("name")
@click.argument("configuration", metavar="[KEY=VALUE]...", nargs=-1)
@with_server
def create(server: Server, name: str, configuration: tuple[str, ...]) -> None:
    """Make a namespace: letters, digits and '_'.

    Its configuration is kept; hbase.namespace.quota.maxtables and .maxregions bound its tables and regions.
    """
    server.connection.admin.create_namespace(typed(name), _configuration(configuration))
    server.output.done(f"namespace {name} made", {"created": name})


@namespace.command()
@click.argument("name", shell_complete=completing("namespace"))
@click.argument("configuration", metavar="KEY=VALUE...", nargs=-1, required=True)
@with_server
def alter(server: Server, name: str, configuration: tuple[str, ...]) -> None:
    """Change the configuration: only the keys that are named; KEY= takes one away."""
    server.connection.admin.alter_namespace(typed(name), _configuration(configuration))
    server.output.done(f"namespace {name} altered", {"altered": name})


@namespace.command()
@click.argument("name", shell_complete=completing("namespace"))
@with_server
def describe(server: Server, name: str) -> None:
    """Show the configuration of a namespace."""
    found = server.connection.admin.namespace_configuration(typed(name))
    if server.output.as_json:
        server.output.json({"name": name, "configuration": found})
        return
    server.output.table(("Key", "Value"), list(found.items()))


def _configuration(texts: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise IllegalArgument(f"'{text}' is no configuration: write KEY=VALUE")
        found[key] = value
    return found


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
