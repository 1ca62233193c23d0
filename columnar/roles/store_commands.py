"""The commands ``columnar standalone`` and ``columnar node``: their options, and the process that they become.

A command reads its options (flags, variables, a file: ``columnar.settings``) into settings in JSON, and replaces itself
by ``columnar.roles.store_process``, whose docstring has the reasons.  ``columnar config check`` runs the same code up
to the settings and takes them from here, for a serving store that is asked to read its file again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NoReturn, TypeVar

import click

from columnar.settings.configured import (
    ARGUMENTS,
    FILE,
    TAKES,
    ConfiguredCommand,
    config_option,
    own_table,
    resolved,
)
from columnar.settings.option_kinds import CommaList
from columnar.settings.settings_file import COLUMNAR, Table
from columnar.settings.user_folders import default_data_folder
from columnar.shell.coordination_options import StoreSetting, with_access
from columnar.shell.log_options import with_log
from columnar.shell.node_options import (
    check_fence,
    check_memory,
    check_name,
    check_servers,
    check_zone,
)
from columnar.shell.numbers import Seconds
from columnar.shell.protocol_options import check_without_users, with_protocols
from columnar.shell.rights_options import with_rights

F = TypeVar("F")
option: Final = partial(click.option, cls=StoreSetting)
_PORT_OPTIONS: Final = (
    option("--host", default="127.0.0.1", show_default=True, help="Address to listen on, for all ports."),
    option(
        "--port",
        default=9090,
        show_default=True,
        type=click.IntRange(0, 65535),
        help="Thrift; 0: any free one.",
    ),
    option(
        "--web-port",
        default=9095,
        show_default=True,
        type=click.IntRange(-1, 65535),
        help="Status page, /metrics, /health; 0: any free one, -1: none.",
    ),
    option(
        "--health-port",
        default=-1,
        show_default=True,
        type=click.IntRange(-1, 65535),
        help="/livez and /readyz alone, without TLS, for probes; 0: any free one, -1: none.",
    ),
    option(
        "--thrift2-port",
        default=-1,
        show_default=True,
        type=click.IntRange(-1, 65535),
        help="HBase's Thrift 2 service; 0: any free one, -1: not served.",
    ),
    option("--tls-cert", default="", metavar="FILE", help="Certificate (PEM): all ports speak TLS, and only that."),
    option(
        "--tls-key",
        default="",
        metavar="FILE",
        help="Its key. SIGHUP has both read again, as it has the settings file.",
    ),
    option("--tls-client-ca", default="", metavar="FILE", help="Clients must show a certificate signed by this one."),
    option(
        "--allow-origin",
        "allow_origins",
        multiple=True,
        metavar="ORIGIN",
        help="Web pages from there (https://app.example) may use the ports by HTTP, for everything; may be repeated.",
    ),
)

_OTHER_OPTIONS: Final = (
    option(
        "--memory",
        "memory_bytes",
        default="",
        metavar="SIZE",
        callback=check_memory,
        help="Of all processes together, as 512MiB or 4GiB.  [default: caches of a quarter of the machine's]",
    ),
    option(
        "--trigger-modules", default="", type=CommaList(), metavar="M,M", help="Python modules that triggers may name."
    ),
    option(
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
        for added in reversed([one for group in groups for one in group]):
            command = added(command)
        return command

    return decorate


def _standalone() -> click.Command:
    return standalone


def _node() -> click.Command:
    return node


STANDALONE: Final[Table] = own_table("standalone", _standalone)
NODE: Final[Table] = own_table("node", _node)


@click.command(cls=ConfiguredCommand)
@config_option(COLUMNAR, STANDALONE)
@option("--data", metavar="DIR", help="Folder that holds everything; made when it is not there.")
@_with_options(_PORT_OPTIONS)
@option(
    "--servers",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    metavar="N",
    help="Region servers, each a process with its share of the regions; 1: everything in one process.",
)
@with_rights
@with_protocols
@_with_options(_OTHER_OPTIONS)
@with_log
def standalone(
    data: str | None,
    host: str,
    port: int,
    web_port: int,
    health_port: int,
    thrift2_port: int,
    tls_cert: str,
    tls_key: str,
    tls_client_ca: str,
    rights: dict[str, Any],
    protocols: dict[str, Any],
    allow_origins: tuple[str, ...],
    servers: int,
    memory_bytes: int,
    trigger_modules: tuple[str, ...],
    log: dict[str, Any],
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
        data=data if data is not None else default_data_folder(),
        host=host,
        port=port,
        web_port=web_port,
        health_port=health_port,
        thrift2_port=thrift2_port,
        protocols=protocols,
        tls=(tls_cert, tls_key, tls_client_ca),
        rights=rights,
        allow_origins=allow_origins,
        memory={"size_bytes": memory_bytes},
        trigger_modules=trigger_modules,
        slow_ms=slow_ms,
        log=log,
    )


@click.command(cls=ConfiguredCommand)
@config_option(COLUMNAR, NODE)
@option("--data", metavar="DIR", required=True, help="The folder that all nodes share; see probe-root.")
@option(
    "--coordination",
    metavar="URL",
    required=True,
    help="etcd://HOST:PORT,HOST:PORT/NAME or zookeeper://...: the service that knows which nodes live and who leads.",
)
@with_access
@option("--name", metavar="NODE", help="Name of this node, no other node's.  [default: the host's name]")
@option(
    "--servers",
    default=2,
    show_default=True,
    type=click.IntRange(0, 64),
    metavar="N",
    help="Region servers of this node, each a process; 0: none, and no port for clients, the node may only lead.",
)
@_with_options(_PORT_OPTIONS)
@option(
    "--peer-port",
    default=9096,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="For the servers and nodes of the cluster; 0: any free one.",
)
@option(
    "--lease",
    "lease_s",
    default=1.5,
    show_default=True,
    type=Seconds(60, least=0.5),
    metavar="SECONDS",
    help="A node that is cut off for so long stops answering, and others take its regions; the same on all nodes.",
)
@option("--never-leads", is_flag=True, help="This node only serves; another one must lead.")
@option(
    "--fence-command",
    metavar="CMD",
    default="",
    callback=check_fence,
    help="Run while this node leads, to shut a lost node out of the folder before others get its regions; 'cephfs' "
    "evicts it from CephFS, with options for the command ceph, as in 'cephfs --id fence'. docs/many-machines.md says "
    "what CMD gets.",
)
@option(
    "--zone",
    default="",
    metavar="ZONE",
    help="What may fail as a whole, as a rack or a room. Each zone gets its part of every table's regions.",
)
@option(
    "--folder-unprobed",
    is_flag=True,
    help="Start on a file system that probe-root refuses or has not passed: acknowledged writes may be lost.",
)
@with_rights
@with_protocols
@_with_options(_OTHER_OPTIONS)
@with_log
def node(
    data: str,
    coordination: str,
    access: dict[str, str],
    name: str | None,
    servers: int,
    thrift2_port: int,
    tls_cert: str,
    tls_key: str,
    tls_client_ca: str,
    peer_port: int,
    lease_s: float,
    never_leads: bool,
    fence_command: str,
    zone: str,
    folder_unprobed: bool,
    memory_bytes: int,
    **same: Any,
) -> None:
    """Run a node of a cluster on many machines: region servers, their ports, and a candidate for the cluster's leader.

    All nodes share one data folder that their machines mount (CephFS; 'columnar probe-root' tries another), and one
    etcd or ZooKeeper. Clients reach all regions through any node. A node that ends or is cut off loses its regions.

    \b
      columnar node --data /mnt/columnar --coordination etcd://10.0.0.1:2379,10.0.0.2:2379/columnar --host 10.0.0.1
    """
    _become_the_store(
        {
            "servers": check_servers(servers, never_leads, {"thrift2_port": thrift2_port, **same["protocols"]}),
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
        thrift2_port=thrift2_port,
        tls=(tls_cert, tls_key, tls_client_ca),
        memory={"size_bytes": memory_bytes},
        **same,
    )


def _checked_origins(origins: tuple[str, ...]) -> list[str]:
    from columnar.wire.browsers import checked_origin

    try:
        return [checked_origin(origin) for origin in origins]
    except ValueError as error:
        raise click.UsageError(f"--allow-origin: {error}") from error


def _absolute(path: str) -> str:
    return os.path.abspath(path) if path else ""


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
    trigger_modules: tuple[str, ...],
    slow_ms: int,
    log: dict[str, Any],
    **settings: Any,
) -> NoReturn:
    """Replace this process by ``columnar.roles.store_process``, whose docstring has the reasons.

    ``node``: fields of ``config.NodeConfig``; None for one process.  ``tls``: certificate, key, clients' authority.
    """
    certificate, key, authority = tls
    if bool(certificate) != bool(key) or (authority and not certificate):
        raise click.UsageError("TLS needs --tls-cert and --tls-key, both; --tls-client-ca may come with them")
    if settings["rights"]["is_on"]:
        check_without_users(settings["protocols"])
    settings["tls_cert"], settings["tls_key"], settings["tls_client_ca"] = map(_absolute, tls)
    settings["allow_origins"] = _checked_origins(allow_origins)
    settings["trigger_modules"] = trigger_modules
    settings["slow_request_ms"], settings["log"] = slow_ms, log
    if node is not None:
        if settings["rights"]["socket"] and not node["servers"]:
            raise click.UsageError("--socket is for clients, and a node without servers has none; leave it out")
        settings["node"] = node
    ctx = click.get_current_context()
    settings["source"] = _source_of(ctx)
    if TAKES in ctx.meta:
        ctx.meta[TAKES](settings)
        ctx.exit()
    _execute_store(json.dumps(settings))


def _source_of(ctx: click.Context) -> dict[str, Any]:
    """Return the fields of ``settings_reload.SettingsSource``."""
    return {
        "file": ctx.meta.get(FILE),
        "command": ctx.command.name,
        "arguments": ctx.meta[ARGUMENTS],
        "values": resolved(ctx),
    }


def _execute_store(settings: str) -> NoReturn:
    finds_modules_here = sys.path[:1] == [os.getcwd()]  # true under python -m, not in a script
    command = [sys.executable, *([] if finds_modules_here else ["-P"]), "-m", "columnar.roles.store_process"]
    command.append(settings)
    if os.name != "posix":  # elsewhere exec makes a new process, and a waiter for this one would see it end
        raise SystemExit(subprocess.call(command))
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, command, {**_ALLOCATOR, **os.environ})  # noqa: S606 - no shell is wanted
