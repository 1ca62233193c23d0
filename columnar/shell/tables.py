"""``columnar tables | create | drop | enable | disable | status``."""

from __future__ import annotations

import sys
from typing import Any

import click

from columnar.client.errors import NotColumnar
from columnar.errors import IllegalArgument
from columnar.shell.connecting import Misused, Refused, Server, with_server
from columnar.shell.text import bytes_text, family_of, readable, typed


@click.command()
@click.option("--all", "everything", is_flag=True, help="The system's own tables too.")
@with_server
def tables(server: Server, everything: bool) -> None:
    """List the tables: families, state, regions, size.

    \b
      columnar tables
      columnar tables --store hbase.example:9090 --json
    """
    connection = server.connection
    sizes = _sizes(server)
    names = sorted(sizes) if everything and sizes else sorted(connection.tables())
    listed = [_described(connection, name, sizes.get(name)) for name in names]
    if server.output.as_json:
        server.output.json(listed)
        return
    rows = [
        (
            one["name"],
            ",".join(one["families"]),
            "enabled" if one["enabled"] else "DISABLED",
            one["regions"],
            "-" if one["bytes"] is None else bytes_text(one["bytes"]) if server.output.is_terminal else one["bytes"],
        )
        for one in listed
    ]
    if not rows and server.output.is_terminal:
        click.echo("There are none yet. Make one: columnar create TABLE FAMILY")
        return
    server.output.table(("Table", "Families", "State", "Regions", "Size"), rows, numbers=(3, 4))


def _sizes(server: Server) -> dict[bytes, int]:
    """Bytes by table; none from a plain HBase, which does not tell."""
    try:
        return {table.name: table.sizeBytes for table in server.connection.status().tables}
    except NotColumnar:
        return {}


def _described(connection: Any, name: bytes, size: int | None) -> dict[str, Any]:
    table = connection.table(name)
    return {
        "name": readable(name),
        "families": [readable(family.removesuffix(b":")) for family in sorted(table.families())],
        "enabled": connection.is_table_enabled(name),
        "regions": len(table.regions()),
        "bytes": size,
    }


@click.command()
@click.argument("table")
@click.argument("families", metavar="FAMILY[:versions=N,ttl=S,compression=C]...", nargs=-1, required=True)
@click.option("--attribute", "attributes", multiple=True, metavar="K=V", help="DELETE_MARKERS, CHANGE_LOG, DURABILITY.")
@click.option("--split", "splits", multiple=True, metavar="ROW", help="A region begins here; may be repeated.")
@with_server
def create(
    server: Server, table: str, families: tuple[str, ...], attributes: tuple[str, ...], splits: tuple[str, ...]
) -> None:
    """Make a table with its column families; one version for ever where nothing else is said.

    \b
      columnar create pages text meta:versions=3
      columnar create sessions data:ttl=7d,compression=ZSTD
      columnar create backlinks link --attribute DELETE_MARKERS=3600000
      columnar create events e --split 2025 --split 2026
    """
    described = dict(family_of(family) for family in families)
    if len(described) < len(families):
        raise IllegalArgument("a family is named twice")
    given = dict(_attribute(attribute) for attribute in attributes)
    keys = [typed(split) for split in splits]
    server.connection.create_table(typed(table), described, attributes=given, splits=keys)
    server.output.done(f"table {table} made", {"created": table})


def _attribute(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise IllegalArgument(f"'{text}' is no attribute: write KEY=VALUE, for example DELETE_MARKERS=3600000")
    return key, value


@click.command()
@click.argument("table")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_server
def drop(server: Server, table: str, yes: bool) -> None:
    """Remove a table and all its rows, for good.

    \b
      columnar drop pages
      columnar drop pages --yes
    """
    name = typed(table)
    enabled = server.connection.is_table_enabled(name)  # refuses where there is no such table
    if not yes:
        if not sys.stdin.isatty():
            raise Misused("nobody can be asked here: say --yes to drop the table and all its rows")
        click.confirm(f"Remove {table} and all its rows for good?", abort=True)
    server.connection.delete_table(name, disable=enabled)
    server.output.done(f"table {table} is gone", {"dropped": table})


@click.command()
@click.argument("table")
@with_server
def enable(server: Server, table: str) -> None:
    """Open a disabled table again.

    \b
      columnar enable pages
    """
    server.connection.enable_table(typed(table))
    server.output.done(f"table {table} is enabled", {"enabled": table})


@click.command()
@click.argument("table")
@with_server
def disable(server: Server, table: str) -> None:
    """Turn requests for a table away until it is enabled again; its rows stay.

    \b
      columnar disable pages
    """
    server.connection.disable_table(typed(table))
    server.output.done(f"table {table} is disabled", {"disabled": table})


@click.command()
@with_server
def status(server: Server) -> None:
    """Say how the server is: version, folder, what is open, how many requests.

    \b
      columnar status
      columnar status --json
    """
    try:
        report = server.connection.status()
    except NotColumnar:
        raise Refused(
            f"{server.address} is a plain HBase gateway: it answers, and tells no more; "
            "'columnar tables' lists its tables"
        ) from None
    requests = {_text(name): count for name, count in sorted(report.requests.items())}
    facts: dict[str, object] = {
        "version": _text(report.version),
        "data": _text(report.dataFolder),
        "uptime_seconds": round(report.uptimeSeconds, 1),
        "tables": len(report.tables),
        "bytes": sum(table.sizeBytes for table in report.tables),
        "open_regions": report.openRegions,
        "open_scanners": report.openScanners,
        "connections": report.connections,
    }
    server.output.facts(
        {**facts, "requests": requests if server.output.as_json else sum(requests.values())},
    )


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
