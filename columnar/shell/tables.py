"""``columnar tables | create | drop | enable | disable | describe | alter | truncate | delete-rows | status``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from columnar.client.errors import IOError, NotColumnar, hbase_class
from columnar.errors import IllegalArgument
from columnar.model.attributes import with_attributes
from columnar.model.key_parts import after_prefix
from columnar.model.region_info import MOST_RANGES, hex_splits, uniform_splits
from columnar.model.schema import Family
from columnar.shell.completion import complete_column, completing, table_argument
from columnar.shell.connecting import Misused, Refused, Server, require_confirmation, with_server
from columnar.shell.shell_output import plain_fields, remark_on_silent
from columnar.shell.text import attribute_of, bytes_text, family_of, readable, typed
from columnar.version import UNKNOWN

LONG_ANSWER_S: Final = 3_600.0  # of deletes of a large range
_TABLE_ATTRIBUTES: Final = (
    "DELETE_MARKERS, CHANGE_LOG, CHANGE_LOG_BYTES, CHANGE_LOG_IMAGES, DURABILITY, READONLY, MAX_FILESIZE, THROTTLE, "
    "ROW_GROUP"
)


@click.command()
@click.option("--all", "everything", is_flag=True, help="The system's own tables too.")
@with_server
def tables(server: Server, everything: bool) -> None:
    """List the tables that you may see: families, state, regions, size.

    \b
      columnar tables
      columnar tables --store hbase.example:9090 --json
    """
    connection = server.connection
    sizes = _sizes(server)
    names = sorted(sizes) if everything and sizes else sorted(connection.tables())
    listed = [_described(connection, name, sizes.get(name)) for name in names]
    server.output.records(
        listed,
        lambda one: one,
        ("Table", "Families", "State", "Regions", "Size"),
        lambda one: (
            one["name"],
            "-" if one["families"] is None else ",".join(one["families"]),
            "enabled" if one["enabled"] else "DISABLED",
            one["regions"],
            "-" if one["bytes"] is None else server.output.for_people(bytes_text, one["bytes"]),
        ),
        numbers=(3, 4),
        nothing="There are none yet. Make one: columnar create TABLE FAMILY",
    )


def _sizes(server: Server) -> dict[bytes, int]:
    """Return sizes in bytes by table; an empty dict from a plain HBase, or if the user may not see the status."""
    try:
        report = _if_permitted(server.connection.status)
    except NotColumnar:
        return {}
    return {} if report is None else {table.name: table.sizeBytes for table in report.tables}


def _if_permitted(call: Callable[[], Any]) -> Any:
    """Return the answer, or None if the user lacks a right for it."""
    try:
        return call()
    except IOError as error:
        if hbase_class(error) != "AccessDeniedException":
            raise
        return None


def _described(connection: Any, name: bytes, size: int | None) -> dict[str, Any]:
    table = connection.table(name)
    families = _if_permitted(table.families)
    return {
        "name": readable(name),
        "families": families and [readable(family.removesuffix(b":")) for family in sorted(families)],
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
    blockcache, blocksize and durability; a table DELETE_MARKERS, CHANGE_LOG, CHANGE_LOG_BYTES,
    CHANGE_LOG_IMAGES, DURABILITY, READONLY, MAX_FILESIZE, THROTTLE and ROW_GROUP (until:/ or length:8).

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
    """Read one row a line, in which \\xNN is a byte.

    Raises Misused if there are more rows than a table may begin with.
    """
    with Path(path).open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        rows = [typed(line.rstrip("\r\n")) for line in islice(file, MOST_RANGES)]
    if len(rows) == MOST_RANGES:
        raise Misused(f"{path} has {MOST_RANGES} lines or more; a table begins with {MOST_RANGES} regions at most")
    return rows


def _for_happybase(name: str, attributes: dict[str, str]) -> dict[str, Any]:
    """Return the attributes that a plain HBase accepts."""
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
    server.connection.is_table_enabled(name)  # raises an error if the table is missing
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
@table_argument
@with_server
def describe(server: Server, table: str) -> None:
    """Show how a table is made: families with every attribute as it acts, attributes of the table, triggers.

    \b
      columnar describe pages
      columnar describe pages --json
    """
    found = server.connection.admin.describe(typed(table))
    families = {readable(family.name): family.attributes for family in found.families}
    if server.output.as_json:
        server.output.json(
            plain_fields(found, "name", "enabled", "regions", "attributes")
            | {"families": families, "triggers": list(found.triggers)}
        )
        return
    if server.output.is_terminal:
        state = "enabled" if found.enabled else "DISABLED"
        click.echo(f"{readable(found.name)}: {state}, {found.regions} regions")
        for name, text in found.attributes.items():
            click.echo(f"  {name}={text}")
        for trigger in found.triggers:
            click.echo(f"  trigger {trigger}")
    names = sorted({name for attributes in families.values() for name in attributes})
    rows = [(name, *(attributes.get(one, "-") for one in names)) for name, attributes in families.items()]
    server.output.table(("Family", *names), rows)


@click.command()
@table_argument
@click.option("--add", multiple=True, metavar="FAMILY[:KEY=VALUE,...]", help="A new family; may be repeated.")
@click.option(
    "--change",
    multiple=True,
    metavar="FAMILY:KEY=VALUE,...",
    help="Only these attributes; KEY= is the default.",
    shell_complete=complete_column,
)
@click.option(
    "--family",
    "meant",
    multiple=True,
    metavar="FAMILY[:KEY=VALUE,...]",
    help="Changed where it is there, else added: HBase's alter.",
    shell_complete=complete_column,
)
@click.option(
    "--drop",
    "gone",
    multiple=True,
    metavar="FAMILY",
    help="The family and all its cells, for good.",
    shell_complete=completing("family"),
)
@click.option(
    "--set", "attributes", multiple=True, metavar="K=V", help=f"Of the table: {_TABLE_ATTRIBUTES}; K= unsets."
)
@click.option("--yes", is_flag=True, help="Do not ask before a family is dropped.")
@with_server
def alter(
    server: Server,
    table: str,
    add: tuple[str, ...],
    change: tuple[str, ...],
    meant: tuple[str, ...],
    gone: tuple[str, ...],
    attributes: tuple[str, ...],
    yes: bool,
) -> None:
    """Change a table while it serves: all of what is asked, or nothing.

    Compression, block size and bloom filter apply to files written from then on; 'columnar compact --major' rewrites
    the other files. A family that a trigger follows is not dropped.

    \b
      columnar alter pages --add links:versions=1,compression=zstd
      columnar alter pages --change text:versions=10 --change meta:ttl=30d,in_memory=true
      columnar alter pages --drop scratch --yes
      columnar alter pages --set READONLY=true
      columnar alter pages --set MAX_FILESIZE=2g --set CHANGE_LOG=
      columnar alter pages --set THROTTLE=1000req/s,10MB/s,read:500req/s
    """
    if not (add or change or meant or gone or attributes):
        raise Misused("say what to change: --add, --change, --drop or --set; 'columnar alter --help' shows how")
    families = {kind: _families(texts) for kind, texts in (("add", add), ("change", change))}
    either = _families(meant)
    if any(not given for given in families["change"].values()):
        raise Misused("--change takes FAMILY:KEY=VALUE, for example --change text:versions=3")
    if gone:
        require_confirmation(f"Remove {', '.join(gone)} of {table} and all cells in it for good?", yes)
    if either:
        there = {name.removesuffix(b":") for name in server.connection.table(typed(table)).families()}
        _sort_in(families, either, there)
    server.connection.admin.alter_table(
        typed(table),
        add=families["add"],
        change=families["change"],
        drop=[typed(name) for name in gone],
        attributes=dict(attribute_of(text) for text in attributes),
    )
    server.output.done(f"table {table} altered", {"altered": table})


def _sort_in(
    families: dict[str, dict[bytes, dict[str, str]]], either: dict[bytes, dict[str, str]], there: set[bytes]
) -> None:
    """Add each family to the added or the changed ones, depending on whether the table has it."""
    for name, attributes in either.items():
        if name in families["add"] or name in families["change"]:
            raise IllegalArgument("a family is named twice")
        if name not in there:
            families["add"][name] = attributes
        elif attributes:
            families["change"][name] = attributes


def _families(texts: tuple[str, ...]) -> dict[bytes, dict[str, str]]:
    found = {typed(name): attributes for name, attributes in map(family_of, texts)}
    if len(found) < len(texts):
        raise IllegalArgument("a family is named twice")
    return found


@click.command()
@table_argument
@click.option("--preserve-splits", is_flag=True, help="Keep the regions' borders; else there is one region.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_server
def truncate(server: Server, table: str, preserve_splits: bool, yes: bool) -> None:
    """Remove all rows of a table at once; its families and attributes stay, and a disabled table is enabled.

    Refused if each removed row must be logged or delivered (a trigger, CHANGE_LOG, DELETE_MARKERS). Then 'columnar
    delete-rows TABLE --all' deletes row after row, and triggers see each delete.

    \b
      columnar truncate events --preserve-splits
      columnar truncate events --yes
    """
    require_confirmation(f"Remove all rows of {table} for good?", yes)
    server.connection.admin.truncate(typed(table), preserve_splits=preserve_splits, enable=True)
    server.output.done(f"table {table} is empty", {"truncated": table})


@click.command("delete-rows")
@table_argument
@click.option("--start", default="", metavar="ROW", help="First row that goes.")
@click.option("--stop", default="", metavar="ROW", help="First row that stays.")
@click.option("--prefix", default="", help="Rows that begin so.")
@click.option("--all", "everything", is_flag=True, help="Every row.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_server
def delete_rows(server: Server, table: str, start: str, stop: str, prefix: str, everything: bool, yes: bool) -> None:
    """Remove the rows of a range.

    If changes are logged (a trigger, CHANGE_LOG) or deletes leave markers, the rows are deleted one by one, as by a
    client, and counted; otherwise the range is removed at once. After an interruption repeat the command.

    \b
      columnar delete-rows events --stop 2025
      columnar delete-rows pages --prefix draft/ --yes
      columnar delete-rows pages --all
    """
    ranges = [bool(start or stop), bool(prefix), everything]
    if sum(ranges) != 1:
        raise Misused("say which rows: --start and --stop, --prefix, or --all")
    first, last = typed(start or prefix), typed(stop)
    if prefix:
        last = after_prefix(first) or b""
    what = "all rows" if everything else f"the rows of this range of {table}"
    require_confirmation(f"Remove {what} of {table} for good?" if everything else f"Remove {what} for good?", yes)
    with closing(server.patient(LONG_ANSWER_S)) as connection:
        count = connection.admin.delete_rows(typed(table), first, last)
    said = "the range is empty" if count is None else f"{count} rows are gone"
    server.output.done(said, {"table": table, "rows": count})


@click.command()
@with_server
def status(server: Server) -> None:
    """Say how the server is: version and build, folder, what is open, how many requests.

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
        "build": _text(report.build or UNKNOWN),  # an older store does not say it
        "python": _text(report.python or UNKNOWN),
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
    parts = [(_text(one.name), one.usedBytes, one.limitBytes) for one in report.memory or ()]
    if server.output.as_json:
        memory = {name: {"used_bytes": used, "limit_bytes": limit} for name, used, limit in parts}
        shown = {**facts, "memory": memory, "requests": requests}
        server.output.facts({**shown, "silent_servers": silent, "remarks": remarks})
    else:
        uses = {f"memory_{name}": _use(used, limit) for name, used, limit in parts}
        server.output.facts({**facts, **uses, "requests": sum(requests.values())})
        remark_on_silent(silent)
        for remark in remarks:
            click.echo(remark, err=True)


def _use(used_bytes: int, limit_bytes: int) -> str:
    return f"{bytes_text(used_bytes)} of {bytes_text(limit_bytes)}"


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
