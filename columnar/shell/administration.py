"""``columnar describe | alter | truncate | delete-rows | regions | flush | compact``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

import click

from columnar.client import ClusterAdmin, RegionStatus
from columnar.client.cluster import RegionLocation
from columnar.errors import IllegalArgument
from columnar.model.key_parts import after_prefix
from columnar.shell.cluster import region_json
from columnar.shell.completion import complete_column, completing, table_argument
from columnar.shell.connecting import Misused, Server, require_confirmation, with_server
from columnar.shell.private_connection import with_cluster
from columnar.shell.text import attribute_of, bytes_text, family_of, readable, typed

LONG_ANSWER_S: Final = 3_600.0  # of one region's compaction
_TABLE_ATTRIBUTES: Final = "DELETE_MARKERS, CHANGE_LOG, CHANGE_LOG_BYTES, DURABILITY, READONLY, MAX_FILESIZE, THROTTLE"


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
            {
                "name": readable(found.name),
                "enabled": found.enabled,
                "regions": found.regions,
                "attributes": found.attributes,
                "families": families,
                "triggers": list(found.triggers),
            }
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

    Compression, block size and bloom filter hold for files written from then on; 'columnar compact --major'
    writes the others anew. A family that a trigger is for is not dropped.

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
    """Put families to those that are added or changed, as the table has them or not."""
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

    Refused where somebody must hear of each row: a trigger, CHANGE_LOG, DELETE_MARKERS. There
    'columnar delete-rows TABLE --all' deletes row after row, and triggers see it.

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

    Where changes are logged (a trigger, CHANGE_LOG) or deletes leave markers, row after row is deleted, as
    a client would, and counted; elsewhere the range goes at once. When it was interrupted, repeat it.

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
@table_argument
@with_cluster
def regions(server: Server, table: str) -> None:
    """Show a table's regions: which rows, which server, how big, how much was read and written since it was opened.

    With --data only what the supervisor knows of them.

    \b
      columnar regions pages
      columnar regions pages --json
    """
    if server.unix_socket:
        _show_located(server, ClusterAdmin(server.connection).locations(typed(table)))
        return
    found = server.connection.admin.regions(typed(table))
    places = {one.encoded_name: one for one in ClusterAdmin(server.connection).locations(typed(table))}
    has_servers = any(one.epoch for one in places.values())
    if server.output.as_json:
        server.output.json([{**_as_json(one), **_place_json(places.get(one.encoded_name))} for one in found])
        return
    rows = [
        (
            one.encoded_name,
            readable(one.start_key),
            readable(one.end_key),
            _state(one, places.get(one.encoded_name)),
            bytes_text(one.size_bytes) if server.output.is_terminal else one.size_bytes,
            one.reads,
            one.writes,
            one.log_records,
            *_place(places.get(one.encoded_name), has_servers),
        )
        for one in found
    ]
    headings = ("Region", "From", "To", "State", "Size", "Reads", "Writes", "Logged")
    server.output.table((*headings, "Server", "Epoch") if has_servers else headings, rows, numbers=(4, 5, 6, 7, 9))


def _show_located(server: Server, located: list[RegionLocation]) -> None:
    if server.output.as_json:
        server.output.json([region_json(one) for one in located])
        return
    rows = [
        (
            one.encoded_name,
            readable(one.start_key),
            readable(one.end_key),
            one.state,
            bytes_text(one.size_bytes) if server.output.is_terminal else one.size_bytes,
            one.server or "-",
            one.epoch,
        )
        for one in located
    ]
    server.output.table(("Region", "From", "To", "State", "Size", "Server", "Epoch"), rows, numbers=(4, 6))


def _place(place: RegionLocation | None, has_servers: bool) -> tuple[object, ...]:
    """Return the columns that only a store of several servers has."""
    if not has_servers:
        return ()
    return (place.server or "-", place.epoch) if place is not None else ("-", "-")


def _state(one: RegionStatus, place: RegionLocation | None) -> str:
    """In a cluster in HBase's words; of one process whether its store is open."""
    if place is not None and place.epoch:
        return place.state
    return "open" if one.open else "closed"


def _place_json(place: RegionLocation | None) -> dict[str, object]:
    if place is None:
        return {}  # it was split or merged between the two answers
    return {
        "state": place.state,
        "server": place.server,
        "epoch": place.epoch,
        "home": place.home,
        "why": place.why,
        "load": place.load,
    }


def _as_json(one: RegionStatus) -> dict[str, object]:
    return {
        "name": readable(one.name),
        "encoded_name": one.encoded_name,
        "start": readable(one.start_key),
        "end": readable(one.end_key),
        "region_id": one.region_id,
        "open": one.open,
        "bytes": one.size_bytes,
        "reads": one.reads,
        "writes": one.writes,
        "log_records": one.log_records,
        "log_bytes": one.log_bytes,
    }


@click.command()
@click.argument("name", metavar="TABLE|REGION", shell_complete=completing("table", "region"))
@with_server
def flush(server: Server, name: str) -> None:
    """Write what a table or a region holds in memory to files. Nothing needs it: the log is on disk.

    \b
      columnar flush pages
    """
    _for_each_region(server, name, lambda admin, region: admin.flush(region))
    server.output.done(f"{name} is flushed", {"flushed": name})


@click.command()
@click.argument("name", metavar="TABLE|REGION", shell_complete=completing("table", "region"))
@click.option("--major", is_flag=True, help="Remove what no reader sees any more, and write every file anew.")
@with_server
def compact(server: Server, name: str, major: bool) -> None:
    """Merge the files of a table or a region, one region after the other; it serves meanwhile.

    The engine does so by itself; --major also takes surplus versions, expired cells and old markers away, and
    brings a change of compression, block size or bloom filter to every file.

    \b
      columnar compact pages
      columnar compact pages --major
    """
    _for_each_region(
        server, name, lambda admin, region: admin.major_compact(region) if major else admin.compact(region)
    )
    server.output.done(f"{name} is compacted", {"compacted": name, "major": major})


def _for_each_region(server: Server, name: str, work: Callable[[Any, Any], None]) -> None:
    """Region by region, so that no single answer takes as long as all of them."""
    wanted = typed(name)
    with closing(server.patient(LONG_ANSWER_S)) as connection:
        admin = connection.admin
        if not admin.exists(wanted):
            work(admin, wanted)
            return
        for region in admin.regions(wanted):
            work(admin, region.name)
