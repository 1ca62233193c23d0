"""``columnar tables | create | drop | enable | disable | status``."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import click

from columnar.client.errors import NotColumnar
from columnar.errors import IllegalArgument
from columnar.model.attributes import with_attributes
from columnar.model.presplit import MOST_RANGES, hex_splits, uniform_splits
from columnar.model.schema import Family
from columnar.shell.completion import table_argument
from columnar.shell.connecting import Misused, Refused, Server, require_confirmation, with_server
from columnar.shell.shell_output import remark_on_silent
from columnar.shell.text import attribute_of, bytes_text, family_of, readable, typed


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
    """Return bytes by table; none from a plain HBase, which does not say."""
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
@click.argument("families", metavar="FAMILY[:KEY=VALUE,...]...", nargs=-1, required=True)
@click.option("--attribute", "--set", "attributes", multiple=True, metavar="K=V", help="Of the table; may be repeated.")
@click.option("--split", "splits", multiple=True, metavar="ROW", help="A region begins here; may be repeated.")
@click.option(
    "--splits-file", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Such rows, one a line."
)
@click.option(
    "--splits-hex", type=click.IntRange(1), metavar="N", help="N regions for keys that begin with hex digits."
)
@click.option(
    "--splits-uniform", type=click.IntRange(1), metavar="N", help="N regions for keys of evenly spread bytes."
)
@with_server
def create(
    server: Server,
    table: str,
    families: tuple[str, ...],
    attributes: tuple[str, ...],
    splits: tuple[str, ...],
    splits_file: str | None,
    splits_hex: int | None,
    splits_uniform: int | None,
) -> None:
    """Make a table with its column families; one version for ever where nothing else is said.

    A family takes versions, min_versions, ttl, compression (none, snappy, lz4, gz, zstd), bloomfilter, in_memory,
    blockcache, blocksize and durability; a table DELETE_MARKERS, CHANGE_LOG, CHANGE_LOG_BYTES, DURABILITY, READONLY,
    MAX_FILESIZE and THROTTLE.

    \b
      columnar create pages text meta:versions=3
      columnar create sessions data:ttl=7d,compression=zstd
      columnar create backlinks link --attribute DELETE_MARKERS=3600000
      columnar create guests g --attribute THROTTLE=1000req/s,write:1MB/s
      columnar create events e --split 2025 --split 2026
      columnar create by_md5 f --splits-hex 16
      columnar create by_name f --splits-file names.txt
    """
    described = dict(family_of(family) for family in families)
    if len(described) < len(families):
        raise IllegalArgument("a family is named twice")
    given = dict(attribute_of(attribute) for attribute in attributes)
    keys = _split_points(splits, splits_file, splits_hex, splits_uniform)
    if server.connection.is_columnar:
        server.connection.admin.create_table(
            typed(table), {typed(name): options for name, options in described.items()}, given, splits=keys
        )
    elif given or keys:
        raise Refused(f"{server.address} is a plain HBase gateway: it takes neither attributes nor split points")
    else:
        happybase_options = {typed(name): _for_happybase(name, options) for name, options in described.items()}
        server.connection.create_table(typed(table), happybase_options)
    server.output.done(f"table {table} made", {"created": table})


def _split_points(
    splits: tuple[str, ...], file: str | None, hexadecimal: int | None, uniform: int | None
) -> list[bytes]:
    options = [option for option in (splits, file, hexadecimal, uniform) if option]
    if len(options) > 1:
        raise Misused("say how to split once: --split, --splits-file, --splits-hex or --splits-uniform")
    if file is not None:
        return _rows_of_file(file)
    if hexadecimal is not None:
        return hex_splits(hexadecimal)
    return uniform_splits(uniform) if uniform is not None else [typed(split) for split in splits]


def _rows_of_file(path: str) -> list[bytes]:
    """Read one row a line, in which \\xNN is a byte.  Misused: it has more than a table can begin with."""
    with Path(path).open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        rows = [typed(line.rstrip("\r\n")) for line in islice(file, MOST_RANGES)]
    if len(rows) == MOST_RANGES:
        raise Misused(f"{path} has {MOST_RANGES} lines or more; a table begins with {MOST_RANGES} regions at most")
    return rows


def _for_happybase(name: str, attributes: dict[str, str]) -> dict[str, Any]:
    """Return the attributes that a plain HBase takes."""
    family = with_attributes(Family(name), attributes)
    unknown = sorted(attributes.keys() & {"MIN_VERSIONS", "BLOCKSIZE", "DURABILITY"})
    if unknown:
        raise Misused(f"a plain HBase gateway takes no {unknown[0]} of a family")
    options: dict[str, Any] = {
        "max_versions": family.max_versions,
        "compression": family.compression,
        "in_memory": family.in_memory,
        "bloom_filter_type": family.bloom_filter,
        "block_cache_enabled": family.block_cache,
    }
    return options if family.ttl_s is None else {**options, "time_to_live": family.ttl_s}


@click.command()
@table_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_server
def drop(server: Server, table: str, yes: bool) -> None:
    """Remove a table and all its rows, for good.

    \b
      columnar drop pages
      columnar drop pages --yes
    """
    name = typed(table)
    server.connection.is_table_enabled(name)  # refuses where there is no such table
    require_confirmation(f"Remove {table} and all its rows for good?", yes)
    server.connection.delete_table(name, disable=True)
    server.output.done(f"table {table} is gone", {"dropped": table})


@click.command()
@table_argument
@with_server
def enable(server: Server, table: str) -> None:
    """Open a disabled table again.

    \b
      columnar enable pages
    """
    server.connection.enable_table(typed(table))
    server.output.done(f"table {table} is enabled", {"enabled": table})


@click.command()
@table_argument
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
    silent = [_text(name) for name in report.silentServers or ()]
    remarks = [_text(remark) for remark in report.remarks or ()]
    if server.output.as_json:
        server.output.facts({**facts, "requests": requests, "silent_servers": silent, "remarks": remarks})
    else:
        server.output.facts({**facts, "requests": sum(requests.values())})
        remark_on_silent(silent)
        for remark in remarks:
            click.echo(remark, err=True)


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
