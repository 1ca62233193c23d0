"""The command ``columnar`` with its subcommands by name, each imported when it is called.

This module has a short help line for each subcommand, so that ``columnar --help`` and ``columnar standalone`` import no
other command (the imports of a client alone take 0.2 s).

The exit status is 0 if the command succeeded; 1 if the server refused, or ``trigger wait`` timed out; 2 if the usage
was wrong, or no server could be reached or started.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import click

from columnar.runtime.standard_streams import open_closed_streams
from columnar.shell.coordination_options import with_access
from columnar.shell.node_options import check_fence, check_memory, check_name, check_servers, check_zone
from columnar.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.shell_completion import CompletionItem

F = TypeVar("F")
_SUBCOMMANDS: Final[dict[str, tuple[str, str]]] = {  # name -> module:command, short help
    "standalone": ("columnar.cli:standalone", "Run the store: everything in one process."),
    "node": ("columnar.cli:node", "Run a node of a cluster on many machines."),
    "shell": ("columnar.shell.console:shell", "Type commands at a prompt, or run a script of them."),
    "get": ("columnar.shell.rows:get", "Show one row."),
    "put": ("columnar.shell.rows:put", "Write cells of one row."),
    "delete": ("columnar.shell.rows:delete", "Remove one row, or cells of it."),
    "incr": ("columnar.shell.rows:incr", "Add to a counter."),
    "append": ("columnar.shell.rows:append", "Append to cells of one row."),
    "check-and-put": ("columnar.shell.rows:check_and_put", "Write cells of one row if it is as expected."),
    "scan": ("columnar.shell.scans:scan", "Show many rows, in the order of their keys."),
    "count": ("columnar.shell.scans:count", "Count rows."),
    "tables": ("columnar.shell.tables:tables", "List the tables."),
    "create": ("columnar.shell.tables:create", "Make a table."),
    "describe": ("columnar.shell.tables:describe", "Show a table's families, attributes and triggers."),
    "alter": ("columnar.shell.tables:alter", "Change families and attributes while the table serves."),
    "truncate": ("columnar.shell.tables:truncate", "Remove all rows of a table at once."),
    "delete-rows": ("columnar.shell.tables:delete_rows", "Remove the rows of a range."),
    "drop": ("columnar.shell.tables:drop", "Remove a table and all its rows."),
    "enable": ("columnar.shell.tables:enable", "Open a disabled table again."),
    "disable": ("columnar.shell.tables:disable", "Turn requests for a table away; its rows stay."),
    "regions": ("columnar.shell.regions:regions", "Show a table's regions: rows, size, load."),
    "flush": ("columnar.shell.regions:flush", "Write what is in memory to files."),
    "compact": ("columnar.shell.regions:compact", "Merge files, or with --major write all of them anew."),
    "namespace": ("columnar.shell.namespaces:namespace", "Make, configure, drop and list namespaces."),
    "split": ("columnar.shell.regions:split", "Split a region in two."),
    "merge": ("columnar.shell.regions:merge", "Merge two neighbouring regions."),
    "status": ("columnar.shell.tables:status", "Say how the server is."),
    "version": ("columnar.shell.version:version", "Say which program this is: version, build, formats."),
    "servers": ("columnar.shell.servers:servers", "Show the servers: state, regions, load."),
    "nodes": ("columnar.shell.nodes:nodes", "Show the nodes of a cluster: who leads, servers, load."),
    "where": ("columnar.shell.cluster:where", "Say where a row is, why there, and what it may wait for."),
    "move": ("columnar.shell.cluster:move", "Move a region to another server."),
    "assign": ("columnar.shell.cluster:assign", "Open a region that was unassigned or could not be opened."),
    "unassign": ("columnar.shell.cluster:unassign", "Close a region until it is assigned."),
    "transitions": ("columnar.shell.cluster:transitions", "Show which regions are on their way."),
    "decisions": ("columnar.shell.cluster:decisions", "Show what the master decided, and why."),
    "balance": ("columnar.shell.servers:balance", "Balance the servers' load now."),
    "balancer": ("columnar.shell.servers:balancer", "Switch balancing on or off."),
    "auto-split": ("columnar.shell.servers:auto_split", "Switch splits of large and busy regions on or off."),
    "drain": ("columnar.shell.servers:drain", "Empty a server, and keep it empty."),
    "undrain": ("columnar.shell.servers:undrain", "Let a drained server have regions again."),
    "restart": ("columnar.shell.servers:restart", "Restart servers, while others serve their regions."),
    "stop": ("columnar.shell.servers:stop", "Empty a server and stop it."),
    "fence": ("columnar.shell.servers:fence", "End a server that hangs, at once."),
    "maintenance": ("columnar.shell.maintenance:maintenance", "Say who restarts or drains servers now."),
    "trigger": ("columnar.shell.triggers:trigger", "Look at triggers and change them."),
    "flows": ("columnar.shell.triggers:flows", "Show which tables feed which triggers, and how far behind."),
    "view": ("columnar.shell.views:view", "Declare views of tables and read them."),
    "snapshot": ("columnar.shell.snapshots:snapshot", "Keep a table as it is now, and bring it back."),
    "export": ("columnar.shell.transfer:export", "Write a table into a folder."),
    "import": ("columnar.shell.transfer:import_", "Make a table out of an exported folder."),
    "digest": ("columnar.shell.transfer:digest", "Count a table's cells and reckon their digest."),
    "bulk-load": ("columnar.shell.transfer:bulk_load", "Put many cells into a table, from files."),
    "backup": ("columnar.shell.backup:backup", "Save the whole store into a folder."),
    "restore-backup": ("columnar.shell.backup:restore_backup", "Make a data folder out of a backup."),
    "doctor": ("columnar.shell.doctor:doctor", "Say what is wrong with store and machine, and what to do."),
    "bundle": ("columnar.shell.bundle:bundle", "Make an archive for support, without data and secrets."),
    "check": ("columnar.shell.checking:check", "Read everything and say what is wrong."),
    "repair": ("columnar.shell.checking:repair_", "Mend what can be mended without guessing."),
    "probe-root": ("columnar.shell.probe_root:probe_root", "Try if a folder can hold a cluster's data."),
    "bench": ("columnar.bench.commands:bench", "Measure a store, or the machine alone."),
    "completion": ("columnar.shell.completion:completion", "Print the script that completes commands with Tab."),
}


class _Subcommands(click.Group):
    """The group of subcommands, named in ``_SUBCOMMANDS``; a command is imported at its first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _SUBCOMMANDS:
            return None
        module, _, attribute = _SUBCOMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _SUBCOMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            from columnar.shell.meaning import command_meant

            meant = command_meant(args, _SUBCOMMANDS)
            hint = f" Did you mean 'columnar {meant}'?" if meant else ""
            raise click.UsageError(f"No such command '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names from ``_SUBCOMMANDS``, because click would import every command for it."""
        from click.shell_completion import CompletionItem

        names = [name for name in _SUBCOMMANDS if name.startswith(incomplete)]
        items = [CompletionItem(name, help=_SUBCOMMANDS[name][1]) for name in names]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def main(self, *args: Any, **extra: Any) -> Any:
        open_closed_streams()
        try:
            return super().main(*args, **extra)
        except OSError as error:
            from columnar.runtime.file_errors import end_with_line  # with sockets and TLS, which --help does not need

            end_with_line("columnar", error)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, short) for name, (_, short) in _SUBCOMMANDS.items()])


@click.group(cls=_Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="columnar")
def main() -> None:
    """A wide-column store that speaks HBase's Thrift API, with triggers.

    \b
    Start a store, make a table, write a row and read it:
      columnar standalone --data ./data &
      columnar create pages text meta:versions=3
      columnar put pages HomePage text:body='Hello' meta:author=me
      columnar get pages HomePage
      columnar scan pages --prefix Home
      columnar delete pages HomePage meta:author

    'columnar shell' has all commands at a prompt, and understands the usual words of HBase's shell.

    Commands that talk to a server take --store HOST:PORT, or the environment's COLUMNAR_STORE; where it speaks
    TLS, --tls-ca FILE too (COLUMNAR_TLS_CA).
    """


_PORT_OPTIONS: Final = (
    click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on, for all ports."),
    click.option(
        "--port", default=9090, show_default=True, type=click.IntRange(0, 65535), help="Thrift; 0: any free one."
    ),
    click.option(
        "--web-port",
        default=9095,
        show_default=True,
        type=click.IntRange(-1, 65535),
        help="Status page, /metrics, /health; 0: any free one, -1: none.",
    ),
    click.option(
        "--thrift2-port",
        default=-1,
        show_default=True,
        type=click.IntRange(-1, 65535),
        help="HBase's Thrift 2 service; 0: any free one, -1: not served.",
    ),
    click.option(
        "--tls-cert", default="", metavar="FILE", help="Certificate (PEM): all ports speak TLS, and only that."
    ),
    click.option("--tls-key", default="", metavar="FILE", help="Its key. SIGHUP has both read again."),
    click.option(
        "--tls-client-ca", default="", metavar="FILE", help="Clients must show a certificate signed by this one."
    ),
    click.option(
        "--allow-origin",
        "allow_origins",
        multiple=True,
        metavar="ORIGIN",
        help="Web pages from there (https://app.example) may use the ports by HTTP, for everything; may be repeated.",
    ),
)


_OTHER_OPTIONS: Final = (
    click.option(
        "--memory",
        "memory_bytes",
        default="",
        metavar="SIZE",
        callback=check_memory,
        help="Of all processes together, as 512MiB or 4GiB.  [default: caches of a quarter of the machine's]",
    ),
    click.option("--trigger-modules", default="", metavar="M,M", help="Python modules that triggers may name."),
    click.option(
        "--log-level",
        default="info",
        show_default=True,
        type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
        help="What is worth a line on stderr.",
    ),
    click.option(
        "--slow-ms",
        default=1_000,
        show_default=True,
        type=click.IntRange(1),
        help="Requests that take longer are logged.",
    ),
)


def _with_options(*groups: tuple[Any, ...]) -> Callable[[F], F]:
    """Return a decorator that gives a command these groups of options, in their order."""

    def decorate(command: F) -> F:
        for option in reversed([one for group in groups for one in group]):
            command = option(command)
        return command

    return decorate


@click.command()
@click.option("--data", metavar="DIR", help="Folder that holds everything; made when it is not there.")
@_with_options(_PORT_OPTIONS)
@click.option(
    "--servers",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    metavar="N",
    help="Region servers, each a process with its share of the regions; 1: everything in one process.",
)
@_with_options(_OTHER_OPTIONS)
def standalone(
    data: str | None,
    host: str,
    port: int,
    web_port: int,
    thrift2_port: int,
    tls_cert: str,
    tls_key: str,
    tls_client_ca: str,
    allow_origins: tuple[str, ...],
    servers: int,
    memory_bytes: int,
    trigger_modules: str,
    log_level: str,
    slow_ms: int,
) -> None:
    """Run the store: master, catalogue and region server in one process, or a master with N region servers.

    Prints one line when it is ready. SIGTERM or Ctrl-C stops it in order, a second one at once.
    Without --data the data is kept in your own data directory.

    With --servers N clients reach all regions by the same port, whichever server they are connected to; a server that
    dies is replaced, and its regions are served by the others meanwhile. Use it for more than one core of requests; one
    process costs the least for each. The same folder may be served with any number from one start to the next, but
    not by older versions once it was served with more than one.

    \b
      columnar standalone
      columnar standalone --data ./data --port 9091 --web-port -1
      columnar standalone --data ./data --trigger-modules my_triggers,other.triggers
      columnar standalone --data ./data --servers 3
      columnar standalone --data ./data --memory 2GiB
      columnar standalone --host 0.0.0.0 --tls-cert store.crt --tls-key store.key
    """
    if servers > 1 and os.name != "posix":
        raise click.UsageError("--servers needs a system with fork and Unix sockets; leave it out")
    _become_the_store(
        {"servers": servers} if servers > 1 else None,
        data=data if data is not None else _default_data_folder(),
        host=host,
        port=port,
        web_port=web_port,
        thrift2_port=thrift2_port,
        tls=(tls_cert, tls_key, tls_client_ca),
        allow_origins=allow_origins,
        memory={"size_bytes": memory_bytes},
        trigger_modules=trigger_modules,
        slow_ms=slow_ms,
        log_level=log_level,
    )


@click.command()
@click.option("--data", metavar="DIR", required=True, help="The folder that all nodes share; see probe-root.")
@click.option(
    "--coordination",
    metavar="URL",
    envvar="COLUMNAR_COORDINATION",
    required=True,
    help="etcd://HOST:PORT,HOST:PORT/NAME or zookeeper://...: the service that knows which nodes live and who leads.",
)
@with_access
@click.option("--name", metavar="NODE", help="Name of this node, no other node's.  [default: the host's name]")
@click.option(
    "--servers",
    default=2,
    show_default=True,
    type=click.IntRange(0, 64),
    metavar="N",
    help="Region servers of this node, each a process; 0: none, and no port for clients, the node may only lead.",
)
@_with_options(_PORT_OPTIONS)
@click.option(
    "--peer-port",
    default=9096,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="For the servers and nodes of the cluster; 0: any free one.",
)
@click.option(
    "--lease",
    "lease_s",
    default=1.5,
    show_default=True,
    type=click.FloatRange(0.5, 60),
    metavar="SECONDS",
    help="A node that is cut off for so long stops answering, and others take its regions; the same on all nodes.",
)
@click.option("--never-leads", is_flag=True, help="This node only serves; another one must lead.")
@click.option(
    "--fence-command",
    metavar="CMD",
    default="",
    callback=check_fence,
    help="Run while this node leads, to shut a lost node out of the folder before others get its regions; 'cephfs' "
    "evicts it from CephFS, with options for the command ceph, as in 'cephfs --id fence'. docs/many-machines.md says "
    "what CMD gets.",
)
@click.option(
    "--zone",
    default="",
    envvar="COLUMNAR_ZONE",
    metavar="ZONE",
    help="What may fail as a whole, as a rack or a room. Each zone gets its part of every table's regions.",
)
@click.option(
    "--folder-unprobed",
    is_flag=True,
    help="Start on a file system that probe-root refuses or has not passed: acknowledged writes may be lost.",
)
@_with_options(_OTHER_OPTIONS)
def node(
    data: str,
    coordination: str,
    access: dict[str, str],
    name: str | None,
    servers: int,
    host: str,
    port: int,
    web_port: int,
    thrift2_port: int,
    tls_cert: str,
    tls_key: str,
    tls_client_ca: str,
    allow_origins: tuple[str, ...],
    peer_port: int,
    lease_s: float,
    never_leads: bool,
    fence_command: str,
    zone: str,
    folder_unprobed: bool,
    memory_bytes: int,
    trigger_modules: str,
    log_level: str,
    slow_ms: int,
) -> None:
    """Run a node of a cluster on many machines: region servers, their ports, and a candidate for the cluster's leader.

    All nodes share one data folder on a file system that all their machines mount (CephFS; 'columnar probe-root' tries
    another), and one etcd or ZooKeeper. Clients reach all regions through any node. A node that ends or is cut off
    loses its regions to the others within seconds.

    \b
      columnar node --data /mnt/columnar --coordination etcd://10.0.0.1:2379,10.0.0.2:2379/columnar --host 10.0.0.1
      columnar node --data /mnt/columnar --coordination zookeeper://zk1:2181,zk2:2181/columnar --host 10.0.0.2
    """
    _become_the_store(
        {
            "servers": check_servers(servers, never_leads, thrift2_port),
            "name": check_name(name),
            "coordination": coordination,
            "access": access,
            "peer_port": peer_port,
            "lease_s": lease_s,
            "may_lead": not never_leads,
            "fence_command": fence_command,
            "zone": check_zone(zone),
            "probes_folder": not folder_unprobed,
        },
        data=os.path.abspath(data),
        host=host,
        port=port,
        web_port=web_port,
        thrift2_port=thrift2_port,
        tls=(tls_cert, tls_key, tls_client_ca),
        allow_origins=allow_origins,
        memory={"size_bytes": memory_bytes},
        trigger_modules=trigger_modules,
        slow_ms=slow_ms,
        log_level=log_level,
    )


def _checked_origins(origins: tuple[str, ...]) -> list[str]:
    from columnar.wire.browsers import checked_origin

    try:
        return [checked_origin(origin) for origin in origins]
    except ValueError as error:
        raise click.UsageError(f"--allow-origin: {error}") from error


def _absolute(path: str) -> str:
    return os.path.abspath(path) if path else ""


def _default_data_folder() -> str:
    """Return the folder of a user's data on this system."""
    import platformdirs

    return platformdirs.user_data_dir("columnar", appauthor=False)


# Settings of glibc's allocator.  Replies of scans have megabytes; by default the pages of each are returned to the
# system and taken again, a third of the cost of a scan of 8 KB rows.  An operator's setting takes precedence.
_KEPT_BYTES: Final = str(64 * 1024 * 1024)  # free memory that stays with the process
_TAKEN_BYTES: Final = str(16 * 1024 * 1024)  # address space that is taken at a time; pages follow with their use
_ALLOCATOR: Final = {
    "MALLOC_TRIM_THRESHOLD_": _KEPT_BYTES,
    "MALLOC_MMAP_THRESHOLD_": _KEPT_BYTES,
    "MALLOC_TOP_PAD_": _TAKEN_BYTES,
}


def _become_the_store(
    node: dict[str, Any] | None,
    *,
    tls: tuple[str, str, str],
    allow_origins: tuple[str, ...],
    trigger_modules: str,
    slow_ms: int,
    log_level: str,
    **settings: Any,
) -> NoReturn:
    """Replace this process by ``columnar.roles.store_process``, whose docstring has the reasons.

    ``node``: fields of ``config.NodeConfig``; None for one process.  ``tls``: certificate, key, clients' authority.
    """
    certificate, key, authority = tls
    if bool(certificate) != bool(key) or (authority and not certificate):
        raise click.UsageError("TLS needs --tls-cert and --tls-key, both; --tls-client-ca may come with them")
    settings["tls_cert"], settings["tls_key"], settings["tls_client_ca"] = map(_absolute, tls)
    settings["allow_origins"] = _checked_origins(allow_origins)
    settings["trigger_modules"] = [name.strip() for name in trigger_modules.split(",") if name.strip()]
    settings["slow_request_ms"], settings["log_level"] = slow_ms, log_level.upper()
    if node is not None:
        settings["node"] = node
    _execute_store(json.dumps(settings))


def _execute_store(settings: str) -> NoReturn:
    finds_modules_here = sys.path[:1] == [os.getcwd()]  # true under python -m, not in a script
    command = [sys.executable, *([] if finds_modules_here else ["-P"]), "-m", "columnar.roles.store_process"]
    command.append(settings)
    if os.name != "posix":  # elsewhere exec makes a new process, and a waiter for this one would see it end
        raise SystemExit(subprocess.call(command))
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, command, {**_ALLOCATOR, **os.environ})  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
