"""``columnar servers | drain | undrain | balance | balancer | auto-split | restart | stop | fence``."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any, Final

import click

from columnar.client import ClusterAdmin
from columnar.client.cluster import ClusterChange, ServerStatus
from columnar.shell.completion import completing
from columnar.shell.connecting import Misused, Refused, Server, somebody_answers
from columnar.shell.maintenance import maintenance_lock, maintenance_wait_option
from columnar.shell.node_drains import drain_node
from columnar.shell.numbers import Seconds
from columnar.shell.private_connection import with_cluster, with_supervisor
from columnar.shell.server_changes import ServerChanges, order_servers
from columnar.shell.session import session_of
from columnar.shell.shell_output import plain_fields
from columnar.shell.text import age_text

WAIT_S: Final = 600.0  # of ``drain --wait`` without a time
_STEP_S: Final = 5.0  # of one answer, so that a person sees what is left

server_argument = click.argument("name", metavar="SERVER", shell_complete=completing("server"))
dry_run_option = click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")


def show_change(server: Server, change: ClusterChange) -> None:
    """Show a change: always a sentence for a person, and the whole change for a script that asked for JSON."""
    output = server.output
    if output.as_json:
        output.json(_change_json(change))
        return
    if output.is_terminal or not change.done:
        output.line(change.text)
    rows = [
        (move.encoded_name, move.table.decode(), move.from_server, move.to_server, move.why) for move in change.moves
    ]
    if len(rows) > 1 or (rows and not change.done):
        output.table(("Region", "Table", "From", "To", "Why"), rows)
    for remark in change.remarks:
        click.echo(remark, err=True)


def _change_json(change: ClusterChange) -> dict[str, Any]:
    moves = [
        {"region": move.encoded_name, **plain_fields(move, "table", "from_server", "to_server", "why")}
        for move in change.moves
    ]
    return plain_fields(change, "text", "done") | {"moves": moves} | plain_fields(change, "remarks", "regions_left")


@click.command()
@with_cluster
def servers(server: Server) -> None:
    """Show the servers of a cluster: state, regions, load, requests a second.

    A load counts 1 for each region, 1 for each read and 2 for each write or delivery a second, and 1 for each 100 MiB.

    \b
      columnar servers
      columnar servers --json
    """
    found = ClusterAdmin(server.connection).servers()
    output = server.output
    if output.as_json:
        output.json(
            {
                "servers": [server_json(one) for one in found.servers],
                **plain_fields(found, "regions", "unassigned", "transitions", "balancer", "auto_split", "remarks"),
                **({"zones": dict(found.zones)} if found.zones else {}),
            }
        )
        return
    for_people = output.is_terminal
    rows = [
        (
            _full_name(one),
            one.state,
            age_text(one.state_ms) if for_people else one.state_ms,
            one.regions,
            f"{one.load:.1f}",
            f"{one.requests_per_s:.1f}",
            one.connections,
            one.address or "-",
            one.pid or "-",
            one.version or "-",
            *([found.zones.get(one.name, "-")] if found.zones else []),
            "; ".join(one.notes) or "-",
        )
        for one in found.servers
    ]
    headings = (
        "Server", "State", "For", "Regions", "Load", "Requests/s", "Clients", "Address", "Process", "Version",
        *(["Zone"] if found.zones else []), "Notes",
    )  # fmt: skip
    output.table(headings, rows, numbers=(3, 4, 5, 6, 8))
    if for_people:
        output.line(
            f"{found.regions} regions, {found.unassigned} without an owner, {found.transitions} on their way; "
            f"balancer {_on(found.balancer)}, auto-split {_on(found.auto_split)}"
        )
    for remark in found.remarks:
        click.echo(remark, err=True)


def server_json(one: ServerStatus) -> dict[str, Any]:
    return plain_fields(
        one, "name", "state", "incarnation", "drained", "state_ms", "regions", "load", "requests_per_s", "moves",
        "version", "address", "pid", "connections", "notes", "last_lines",
    )  # fmt: skip


def _full_name(one: ServerStatus) -> str:
    return f"{one.name}.{one.incarnation}" if one.incarnation else one.name


def _on(on: bool) -> str:
    return "on" if on else "off"


# --- operator settings --------------------------------------------------------------------------------


_server_or_none = click.argument("name", metavar="[SERVER]", required=False, shell_complete=completing("server"))
_node_option = click.option("--node", metavar="NODE", default="", help="All servers of this node, of many machines.")


def _check_one(command: str, name: str | None, node: str) -> None:
    if bool(name) == bool(node):
        raise Misused(
            f"say which: 'columnar {command} SERVER', or 'columnar {command} --node NODE' for all of its servers"
        )


@click.command()
@_server_or_none
@_node_option
@click.option("--until-restart", is_flag=True, help="With --node: the drain of each server ends with its next start.")
@click.option("--wait", is_flag=True, help="Return when no region is left on it.")
@click.option(
    "--timeout",
    default=WAIT_S,
    show_default=True,
    type=Seconds(),
    help="Seconds for --wait, and for other maintenance.",
)
@dry_run_option
@with_cluster
def drain(
    server: Server, name: str | None, node: str, until_restart: bool, wait: bool, timeout: float, dry_run: bool
) -> None:
    """Move all regions away from a server, and keep it empty until 'columnar undrain'.

    Four regions move at a time, each with a pause of some hundredths of a second. The drain outlives restarts. While
    another command restarts, stops or drains servers, this one waits ('columnar maintenance').

    With --node all servers of a node are emptied, before its machine is stopped. A node that leads lets another node
    lead, and --wait returns when that one does. With --until-restart the node needs no 'undrain' after its next start.

    \b
      columnar drain s2 --dry-run
      columnar drain s2 --wait
      columnar drain --node n1 --until-restart --wait
    """
    _check_one("drain", name, node)
    if until_restart and not node:
        raise Misused("--until-restart is for --node NODE; 'columnar restart SERVER' needs no drain")
    admin = ClusterAdmin(server.connection)
    if node:
        if dry_run:
            change = admin.drain_node(node, until_restart=until_restart, dry_run=True)
        else:
            change = drain_node(server, node, until_restart=until_restart, wait=wait, timeout_s=timeout)
        show_change(server, change)
        return
    assert name is not None, "looked at"
    if dry_run:
        show_change(server, admin.drain(name, dry_run=True))
    else:
        _drain_server(server, name, wait=wait, timeout_s=timeout)


def _drain_server(server: Server, name: str, *, wait: bool, timeout_s: float) -> None:
    """Drain a server under the maintenance lock; with ``wait`` return when it is empty."""
    admin, until_s = ClusterAdmin(server.connection), time.monotonic() + timeout_s
    with maintenance_lock(server, f"drain {name}", timeout_s=timeout_s):
        change = admin.drain(name)
        while wait and change.done and change.regions_left and time.monotonic() < until_s:
            if server.output.is_terminal:
                click.echo(change.text, err=True)
            change = admin.drain(name, wait_s=min(_STEP_S, max(0.0, until_s - time.monotonic())))
    if wait and change.done and change.regions_left:
        raise Refused(
            f"{change.text} after {timeout_s:g} s; 'columnar transitions' shows what they wait for, and the drain goes "
            "on"
        )
    show_change(server, change)


@click.command()
@_server_or_none
@_node_option
@dry_run_option
@with_cluster
def undrain(server: Server, name: str | None, node: str, dry_run: bool) -> None:
    """Let a drained server, or all servers of a node, have regions again.

    The regions that left it within ten minutes come back.

    \b
      columnar undrain s2
      columnar undrain --node n1
    """
    _check_one("undrain", name, node)
    admin = ClusterAdmin(server.connection)
    if name is not None:
        show_change(server, admin.undrain(name, dry_run=dry_run))
    else:
        show_change(server, admin.undrain_node(node, dry_run=dry_run))


@click.command()
@dry_run_option
@with_cluster
def balance(server: Server, dry_run: bool) -> None:
    """Balance the load of the servers now; by itself the master does so every 10 seconds.

    A server gives regions away when it has over 1.2 times the mean load. The regions move after the command has
    returned; 'columnar transitions' shows them.

    \b
      columnar balance --dry-run
      columnar balance
    """
    show_change(server, ClusterAdmin(server.connection).balance(dry_run=dry_run))


_on_or_off = click.argument("switch", metavar="[on|off]", required=False, type=click.Choice(["on", "off"]))


@click.command()
@_on_or_off
@dry_run_option
@with_cluster
def balancer(server: Server, switch: str | None, dry_run: bool) -> None:
    """Switch balancing by load on or off; without a word, say how it is.

    While it is off, regions still move when a server dies, comes back or is drained. The setting outlives restarts.

    \b
      columnar balancer
      columnar balancer off
    """
    _switch(server, "balancer", switch, dry_run)


@click.command("auto-split")
@_on_or_off
@dry_run_option
@with_cluster
def auto_split(server: Server, switch: str | None, dry_run: bool) -> None:
    """Switch splits of large or busy regions on or off; without a word, say how it is.

    While it is off, 'columnar split' still works. The setting outlives restarts.

    \b
      columnar auto-split
      columnar auto-split off
    """
    _switch(server, "auto-split", switch, dry_run)


def _switch(server: Server, what: str, wanted: str | None, dry_run: bool) -> None:
    admin = ClusterAdmin(server.connection)
    if wanted is not None:
        show_change(server, admin.switch(what, wanted == "on", dry_run=dry_run))
        return
    found = admin.servers()
    is_on = found.balancer if what == "balancer" else found.auto_split
    if server.output.as_json:
        server.output.json({what.replace("-", "_"): is_on})
    elif what == "balancer" and session_of(click.get_current_context()) is not None:
        # In HBase's shell the bare word balances: its users must not take the answer "on" for that.
        server.output.line(f"this is the balancer's switch, and it is {_on(is_on)}; 'balance' balances now")
    else:
        server.output.line(_on(is_on))


# --- processes ---------------------------------------------------------------------------------------


@click.command()
@click.argument("name", metavar="[SERVER]", required=False, shell_complete=completing("server"))
@click.option("--rolling", is_flag=True, help="Every server that is up, one behind the other.")
@click.option("--node", metavar="NODE", default="", help="Every server of this node that is up, one behind the other.")
@maintenance_wait_option
@dry_run_option
@with_supervisor
def restart(server: Server, name: str | None, rolling: bool, node: str, timeout: float, dry_run: bool) -> None:
    """Restart a server: its regions leave it, it stops, starts, and they come back.

    Meanwhile other servers serve its regions, and take over its connections, which clients do not notice. A connection
    that speaks TLS cannot be taken over: it is closed between two requests. The server waits for open scanners, up to
    60 s. With --rolling every server is restarted in turn, node by node, those of the leader last; the nodes' own
    processes go on. A stopped server is started. The command needs the private socket of the store, which the store's
    own user reaches on its machine, or a port that asks for client certificates. If the server that answers there is
    the one to restart, or another node leads meanwhile, the command polls over new connections until the server is up
    again. While another command restarts, stops or drains servers, this one waits ('columnar maintenance').

    \b
      columnar restart s2
      columnar restart --rolling
      columnar restart --rolling --data /srv/columnar
      columnar restart --node n1 --data /srv/columnar
    """
    if [bool(name), rolling, bool(node)].count(True) != 1:
        raise Misused(
            "say which: 'columnar restart SERVER', 'columnar restart --rolling' for all of them in turn, or 'columnar "
            "restart --node NODE' for those of one node"
        )
    what = name or (f"--node {node}" if node else "--rolling")
    with closing(ServerChanges(server)) as changes:
        names = [name] if name else order_servers(changes.admin.servers(), node)
        if dry_run:
            for one in names:
                show_change(server, changes.admin.restart(one, dry_run=True))
            return
        with maintenance_lock(server, f"restart {what}", node, timeout_s=timeout) as lock:
            for one in names:
                lock.check_lock()
                show_change(server, changes.restart(one))


@click.command()
@server_argument
@maintenance_wait_option
@dry_run_option
@with_supervisor
def stop(server: Server, name: str, timeout: float, dry_run: bool) -> None:
    """Empty a server and stop its process, until 'columnar restart SERVER' or the next start of the store.

    Other servers answer for its regions, and its clients go on at them, as at a restart. The last server that may
    have regions is not stopped: SIGTERM to the store stops all of it. While another command restarts, stops or drains
    servers, this one waits ('columnar maintenance').

    \b
      columnar stop s2
      columnar stop s2 --dry-run
    """
    with closing(ServerChanges(server)) as changes:
        if dry_run:
            show_change(server, changes.admin.stop(name, dry_run=True))
            return
        with maintenance_lock(server, f"stop {name}", timeout_s=timeout):
            show_change(server, changes.stop(name))


@click.command()
@click.argument("name", metavar="SERVER|NODE", shell_complete=completing("server"))
@click.option("--confirm", metavar="NAME", default="", help="The name once more, where nobody can be asked.")
@dry_run_option
@with_supervisor
def fence(server: Server, name: str, confirm: str, dry_run: bool) -> None:
    """End a server at once, as if it had died: its requests under way fail, others take its regions.

    Use it for a server that hangs; 'columnar restart' is the gentle way. Asks for the name once more.

    With the name of a node you say that its machine is off, or cut from the data folder. Use it if the regions of a
    node that ended wait for its fence at the file system, because the fence command fails: other servers then take them
    at once. The lease of a node that still renews it is ended first, and its processes end when they notice.

    \b
      columnar fence s2
      columnar fence s2 --confirm s2
      columnar fence n2 --confirm n2
    """
    admin = ClusterAdmin(server.connection)
    if not dry_run:
        _confirm_by_name(name, confirm, admin.fence(name, dry_run=True).text)
    show_change(server, admin.fence(name, dry_run=dry_run))


def _confirm_by_name(name: str, confirm: str, what: str) -> None:
    if not confirm:
        if not somebody_answers():
            raise Misused(f"{what}. Nobody can be asked here: say --confirm {name}")
        confirm = click.prompt(f"{what}. Type its name again to go on", err=True)
    if confirm != name:
        raise Misused(f"'{confirm}' is not '{name}': nothing was done")
