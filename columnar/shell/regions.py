"""``columnar regions | flush | compact | split | merge``: the regions of a table, and which region holds which rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

import click

from columnar.client import ClusterAdmin, RegionStatus
from columnar.client.admin import RegionAdmin
from columnar.client.cluster import RegionLocation
from columnar.shell.cluster import region_json
from columnar.shell.completion import completing, table_argument
from columnar.shell.connecting import Server, with_server
from columnar.shell.private_connection import with_cluster
from columnar.shell.shell_output import plain_fields
from columnar.shell.text import bytes_text, readable, typed

LONG_ANSWER_S: Final = 3_600.0  # of one region's compaction
LONGEST_S: Final = 600.0  # a merge copies the smaller region


@click.command()
@table_argument
@with_cluster
def regions(server: Server, table: str) -> None:
    """Show a table's regions: which rows, which server, how big, how much was read and written since it was opened.

    With --data it shows only the facts that the supervisor has.

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
    headings = ("Region", "From", "To", "State", "Size", "Reads", "Writes", "Logged")
    server.output.records(
        found,
        lambda one: {**_as_json(one), **_place_json(places.get(one.encoded_name))},
        (*headings, "Server", "Epoch") if has_servers else headings,
        lambda one: (
            one.encoded_name,
            readable(one.start_key),
            readable(one.end_key),
            _state(one, places.get(one.encoded_name)),
            server.output.for_people(bytes_text, one.size_bytes),
            one.reads,
            one.writes,
            one.log_records,
            *_place(places.get(one.encoded_name), has_servers),
        ),
        numbers=(4, 5, 6, 7, 9),
    )


def _show_located(server: Server, located: list[RegionLocation]) -> None:
    server.output.records(
        located,
        region_json,
        ("Region", "From", "To", "State", "Size", "Server", "Epoch"),
        lambda one: (
            one.encoded_name,
            readable(one.start_key),
            readable(one.end_key),
            one.state,
            server.output.for_people(bytes_text, one.size_bytes),
            one.server or "-",
            one.epoch,
        ),
        numbers=(4, 6),
    )


def _place(place: RegionLocation | None, has_servers: bool) -> tuple[object, ...]:
    """Return the columns that only a store of several servers has."""
    if not has_servers:
        return ()
    return (place.server or "-", place.epoch) if place is not None else ("-", "-")


def _state(one: RegionStatus, place: RegionLocation | None) -> str:
    """Return the state in HBase's words for a cluster; for one process whether the region's store is open."""
    if place is not None and place.epoch:
        return place.state
    return "open" if one.open else "closed"


def _place_json(place: RegionLocation | None) -> dict[str, object]:
    """Return the place for JSON; an empty dict for a region that was split or merged between the two answers."""
    return {} if place is None else plain_fields(place, "state", "server", "epoch", "home", "why", "load")


def _as_json(one: RegionStatus) -> dict[str, object]:
    return plain_fields(
        one, "name", "encoded_name", "start_key", "end_key", "region_id", "open", "size_bytes", "reads", "writes",
        "log_records", "log_bytes",
    )  # fmt: skip


@click.command()
@click.argument("name", metavar="TABLE|REGION", shell_complete=completing("table", "region"))
@with_server
def flush(server: Server, name: str) -> None:
    """Write the memtables of a table or a region to files. This is never necessary, as the log is on disk.

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
    """Work on the regions one by one, so that no single answer takes as long as all of them."""
    wanted = typed(name)
    with closing(server.patient(LONG_ANSWER_S)) as connection:
        admin = connection.admin
        if not admin.exists(wanted):
            work(admin, wanted)
            return
        for region in admin.regions(wanted):
            work(admin, region.name)


@click.command()
@click.argument("what", metavar="TABLE|REGION", shell_complete=completing("table", "region"))
@click.argument("row", default="")
@with_server
def split(server: Server, what: str, row: str) -> None:
    """Split a region in two.

    ROW becomes the first row of the second half; without ROW the region is split in the middle of its bytes. In a TABLE
    the region with ROW is split, or the largest region. Requests for the region wait for some hundredths of a second.
    Regions split by themselves when they grow large, so this command is for spreading load ahead of time.

    \b
      columnar split pages Main
      columnar split pages
      columnar split 8f14e45fceea167a5a36dedd4bea2543
    """
    with closing(server.patient(LONGEST_S)) as connection:
        names = RegionAdmin(connection).split(typed(what), typed(row))
    shown = [readable(name) for name in names]
    server.output.done(f"now two regions: {' and '.join(shown)}", {"regions": shown})


@click.command()
@click.argument("region", shell_complete=completing("region"))
@click.argument("other", shell_complete=completing("region"))
@with_server
def merge(server: Server, region: str, other: str) -> None:
    """Merge two neighbouring regions.

    By their names or encoded names, in any order; one ends where the other begins. The smaller one is
    copied first, while both serve; then requests for the two wait for some hundredths of a second. A region that is
    written to faster than it can be copied, or whose triggers are far behind, is left as it is, and
    the command says so.

    \b
      columnar merge 8f14e45fceea167a5a36dedd4bea2543 c9f0f895fb98ab9159f51fd0297e236d
    """
    with closing(server.patient(LONGEST_S)) as connection:
        name = readable(RegionAdmin(connection).merge(typed(region), typed(other)))
    server.output.done(f"now one region: {name}", {"region": name})
