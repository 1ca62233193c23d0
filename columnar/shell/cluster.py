"""``columnar where | move | assign | unassign | transitions | decisions``: single regions of a cluster."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any, Final

import click

from columnar.client import ClusterAdmin
from columnar.client.cluster import Decision, RegionLocation, RowLocation
from columnar.client.errors import IOError
from columnar.shell.completion import completing, table_argument
from columnar.shell.connecting import Misused, Server
from columnar.shell.private_connection import with_cluster
from columnar.shell.servers import dry_run_option, server_json, show_change
from columnar.shell.shell_output import plain_fields
from columnar.shell.text import age_text, bytes_text, readable, typed

LONGEST_S: Final = 600.0  # for a region with a long log or a busy trigger
MAX_LISTED_DECISIONS: Final = 5  # of a row's region

_region_argument = click.argument("region", shell_complete=completing("region"))


@click.command()
@table_argument
@click.argument("row")
@with_cluster
def where(server: Server, table: str, row: str) -> None:
    """Say where a row is, why there, how busy it is, and what its requests may wait for.

    \b
      columnar where pages HomePage
      columnar where pages HomePage --json
    """
    found = ClusterAdmin(server.connection).locate(typed(table), typed(row))
    lags = _lags(server, table)
    if server.output.as_json:
        server.output.json({**_row_json(found), "triggers": lags})
        return
    server.output.facts(_row_facts(found, server.output.is_terminal))
    for remark in (*found.remarks, *(lags or ())):
        server.output.line(f"waits: {remark}" if server.output.is_terminal else f"remark\t{remark}")
    if server.output.is_terminal:
        if lags is None:
            server.output.line("triggers that are behind are known to the servers alone: ask without --data")
        elif not found.remarks and not lags:
            server.output.line("nothing keeps its requests waiting")
        for one in found.decisions[:MAX_LISTED_DECISIONS]:
            server.output.line(f"{age_text(one.ago_ms)} ago: {one.text}")


def _lags(server: Server, table: str) -> list[str] | None:
    """Return triggers whose lag on the table may slow its writers; None from the supervisor, which knows no lags."""
    if server.unix_socket:
        return None
    lagging = []
    for one in server.connection.triggers.list():
        if readable(one.table) != table or not (one.lag_changes or one.state != "running"):
            continue
        lagging.append(f"trigger {one.name} is {one.state}, {one.lag_changes} changes behind ({one.lag_seconds:.1f} s)")
    return lagging


def _row_facts(found: RowLocation, for_people: bool) -> dict[str, object]:
    region, server = found.region, found.server
    age = age_text(region.state_ms) if for_people else str(region.state_ms)
    facts: dict[str, object] = {
        "region": region.encoded_name,
        "rows": f"{readable(region.start_key) or 'first'} to {readable(region.end_key) or 'last'}",
        "server": f"{region.server}.{region.incarnation}" if region.incarnation else region.server or "-",
        "address": f"{region.host}:{region.port}" if region.port else "-",
        "state": f"{region.state} for {age}",
        "epoch": region.epoch,
        "why there": region.why,
        "load": f"{region.load:.1f}",
        "requests": f"{region.reads_per_s:.1f} reads/s, {region.writes_per_s:.1f} writes/s, "
        f"{region.deliveries_per_s:.1f} deliveries/s",
        "size": bytes_text(region.size_bytes) if for_people else region.size_bytes,
    }
    if region.coming_from:
        facts["coming from"] = region.coming_from
    if region.home not in ("", region.server):
        facts["belongs on"] = region.home
    if server is not None:
        facts["its server"] = f"{server.state}, load {server.load:.1f} of {server.regions} regions"
    return facts


def _row_json(found: RowLocation) -> dict[str, Any]:
    return {
        "region": region_json(found.region),
        "server": server_json(found.server) if found.server is not None else None,
        "remarks": list(found.remarks),
        "decisions": [_decision_json(one) for one in found.decisions],
    }


def region_json(region: RegionLocation) -> dict[str, Any]:
    return plain_fields(
        region, "name", "encoded_name", "table", "start_key", "end_key", "server", "incarnation", "host", "port",
        "state", "state_ms", "epoch", "coming_from", "home", "why", "load", "reads_per_s", "writes_per_s",
        "deliveries_per_s", "size_bytes",
    )  # fmt: skip


# --- changes -----------------------------------------------------------------------------------------


@click.command()
@_region_argument
@click.argument("to", metavar="[SERVER]", default="", shell_complete=completing("server"))
@dry_run_option
@with_cluster
def move(server: Server, region: str, to: str, dry_run: bool) -> None:
    """Move a region to another server; without one the master chooses. Returns when the region serves there.

    A region is named by its full or encoded name ('columnar regions TABLE' shows them). Requests for it wait for
    some hundredths of a second. The balancer does not move a region for an hour after it was moved by hand.

    \b
      columnar move 8f14e45fceea167a5a36dedd4bea2543 s2
      columnar move 8f14e45fceea167a5a36dedd4bea2543 --dry-run
    """
    with closing(server.patient(LONGEST_S)) as connection:
        show_change(server, ClusterAdmin(connection).move(typed(region), to, dry_run=dry_run))


@click.command()
@click.argument("region", metavar="[REGION]", required=False, shell_complete=completing("region"))
@click.option("--all", "everything", is_flag=True, help="Every region that could not be opened.")
@click.option(
    "--table", metavar="TABLE", shell_complete=completing("table"), help="Those of a table that could not be opened."
)
@dry_run_option
@with_cluster
def assign(server: Server, region: str | None, everything: bool, table: str | None, dry_run: bool) -> None:
    """Open a region that was unassigned, or that could not be opened. Returns when it serves.

    With --all, or --table, every region that could not be opened, one after the other; those that a person unassigned
    stay closed. Exit status 1: one could still not be opened.

    \b
      columnar assign 8f14e45fceea167a5a36dedd4bea2543
      columnar assign --all
      columnar assign --table pages
    """
    if (region is not None) + everything + (table is not None) != 1:
        raise Misused("say which: 'columnar assign REGION', 'columnar assign --table TABLE' or 'columnar assign --all'")
    with closing(server.patient(LONGEST_S)) as connection:
        admin = ClusterAdmin(connection)
        if region is not None:
            show_change(server, admin.assign(typed(region), dry_run=dry_run))
        else:
            _assign_failed(server, admin, None if table is None else typed(table), dry_run)


def _assign_failed(server: Server, admin: ClusterAdmin, table: bytes | None, dry_run: bool) -> None:
    """Assign the regions one by one; each answer comes when the region serves, or could not be opened again."""
    if table is not None:
        admin.locations(table)  # an error names a table that is not there
    failed = [one for one in admin.transitions() if one.kind == "failed" and table in (None, one.table)]
    said, refused = [], []
    for one in failed:
        try:
            said.append(admin.assign(one.name, dry_run=dry_run).text)
        except IOError as error:
            refused.append(readable(error.message))
    if server.output.as_json:
        server.output.json({"done": said, "refused": refused})
    else:
        for line in said or ([] if refused else ["no region is closed that could not be opened"]):
            server.output.line(line)
        for line in refused:
            click.echo(line, err=True)
    if refused:
        raise SystemExit(1)


@click.command()
@_region_argument
@dry_run_option
@with_cluster
def unassign(server: Server, region: str, dry_run: bool) -> None:
    """Close a region until 'columnar assign': its rows do not answer meanwhile, also not after a restart.

    \b
      columnar unassign 8f14e45fceea167a5a36dedd4bea2543
    """
    with closing(server.patient(LONGEST_S)) as connection:
        show_change(server, ClusterAdmin(connection).unassign(typed(region), dry_run=dry_run))


# --- transitions -------------------------------------------------------------------------------------


@click.command()
@with_cluster
def transitions(server: Server) -> None:
    """Show openings, moves, closings, splits and merges under way, the longest first.

    Regions that wait for a server, or could not be opened, are listed too.

    \b
      columnar transitions
      columnar transitions --json
    """
    admin = ClusterAdmin(server.connection)
    found = admin.transitions()
    if not server.output.as_json:
        for remark in admin.servers().remarks:
            click.echo(remark, err=True)
    server.output.records(
        found,
        lambda one: {
            "kind": one.kind,
            "region": one.encoded_name,
            **plain_fields(one, "table", "state", "from_server", "to_server", "state_ms", "why"),
        },
        ("What", "Region", "Table", "State", "For", "From", "To", "Why"),
        lambda one: (
            one.kind,
            one.encoded_name,
            readable(one.table),
            one.state,
            server.output.for_people(age_text, one.state_ms),
            one.from_server or "-",
            one.to_server or "-",
            one.why or "-",
        ),
        nothing="nothing is under way",
    )


@click.command()
@with_cluster
def decisions(server: Server) -> None:
    """Show the last 200 decisions of the master with their reasons, the newest first, also from before a restart.

    \b
      columnar decisions
      columnar decisions --json
    """
    found = ClusterAdmin(server.connection).decisions()
    has_times = any(one.at_ms for one in found)
    server.output.records(
        found,
        _decision_json,
        ("Ago", "At", "What", "Decision") if has_times else ("Ago", "What", "Decision"),
        lambda one: (
            server.output.for_people(age_text, one.ago_ms),
            *([clock_text(one.at_ms)] if has_times else []),
            one.kind,
            one.text,
        ),
        numbers=(0,),
        nothing="nothing was decided since the start",
    )


def clock_text(at_ms: int) -> str:
    """Return the local date and time of day."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ms / 1_000)) if at_ms else "-"


def _decision_json(one: Decision) -> dict[str, Any]:
    return plain_fields(one, "ago_ms", "at_ms", "kind", "regions", "server", "why", "text")
