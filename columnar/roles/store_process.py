"""The process around ``Standalone`` or ``Node``: log lines, the ready line, signals, the exit status.

    starting --ready line--> serving --SIGTERM, SIGINT--> stopping --> exit 0
    a second signal while stopping: exit immediately with 128 + its number (acknowledged writes are on disk)
    SIGHUP, if there is a settings file or a log file, or the ports speak TLS: the files are read or opened again
        (``settings_reload``), also by the servers of a node, and after the start if it arrives before; else it ends
        the process, as a terminal that closes ends its other programs
    the store cannot start: one line on stderr, exit 2
    the service manager gets a notice of each of these (``service_notify``), if one has started the process

``columnar standalone`` reads its options, and then replaces itself, in the same process, by this module with the
settings as one argument (``python -m columnar.roles.store_process '{"data": ...}'``).  The replacement saves 3 MB that
only a command line needs, and costs a second start of the interpreter, 0.05 s.  With a setting ``node``, which has the
fields of ``config.NodeConfig``, the process is a node.

The ready line is the only line on stdout, for scripts that wait for it.  ``data`` is last, because it may contain
blanks.  ``thrift2=127.0.0.1:9091``, ``sqs=127.0.0.1:9324`` and ``kafka=127.0.0.1:9092`` follow ``web`` if they are
served, and ``servers=3`` follows ``pid`` if there are servers.  A node without servers, or a store without pages, has
``-`` in the place of the address:
    columnar ready store=127.0.0.1:9090 web=http://127.0.0.1:9095/ pid=4711 data=/var/lib/columnar
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from columnar import version
from columnar.config import NodeConfig, StandaloneConfig
from columnar.coordination.service_access import PASSWORD, ServiceAccess
from columnar.errors import ColumnarError, HostError
from columnar.memory_plan import ALONE, readable_bytes
from columnar.roles.settings_reload import SERVES, SettingsReload, SettingsSource, reload_of
from columnar.runtime.background_compiling import BackgroundCompiling
from columnar.runtime.child_processes import stops_once
from columnar.runtime.faults import met_by_the_loop
from columnar.runtime.log_format import Speaker
from columnar.runtime.log_lines import begin_log, complain, flush, place_of, say
from columnar.runtime.log_settings import LogSettings
from columnar.runtime.memory_limit import memory_limit
from columnar.runtime.process_tuning import calm_collector, loop_factory, switch_quickly, trim_memory_periodically
from columnar.runtime.service_notify import UNMANAGED, ServiceNotifier
from columnar.storage.descriptors import raise_limit
from columnar.webui.server import HEALTH, bind, served_at
from columnar.wire.browsers import Visitors, is_loopback

if TYPE_CHECKING:
    import socket

    from columnar.roles.node import Node
    from columnar.roles.standalone import Standalone
    from columnar.webui.health_port import HealthPort
    from columnar.webui.server import Site, WebServer
    from columnar.webui.status import Sources

_log = logging.getLogger("columnar")

CANNOT_START: Final = 2
SECOND_SIGNAL_S: Final = 0.05  # for the last log lines of a process that must end at once


def run(
    config: StandaloneConfig,
    log: LogSettings,
    node: NodeConfig | None = None,
    source: SettingsSource | None = None,
    health_port: int = -1,
    service: ServiceNotifier = UNMANAGED,
) -> int:
    """Serve until a signal requests the stop.  Returns the exit status.

    ``node`` has the settings of a node, or is None if this process itself serves.  ``source`` says where the settings
    come from; None: there is nothing to read again.  ``health_port``: -1 for none.
    """
    try:
        _begin_log(log, node)
        raise_limit()
        switch_quickly()
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(_serve(config, node, reload_of(source, config, log, node, service), health_port, service))
    except ColumnarError as error:
        complain(f"columnar: {error.text}")
        return CANNOT_START


def _begin_log(log: LogSettings, node: NodeConfig | None) -> None:
    """Begin the log.  Raises HostError."""
    role = "standalone" if node is None else "node"
    try:
        begin_log(log, Speaker(role, node.name if node is not None else "", version.full(version.at_start())))
    except OSError as error:
        raise HostError(
            f"cannot open the log file {log.file}: {error.strerror}; make its folder one in which this user may write, "
            "or choose another --log-file"
        ) from error


def _locked(config: StandaloneConfig, settings: NodeConfig | None) -> Standalone | Node:
    if settings is not None:
        from columnar.roles.node import Node  # each branch imports only its own role

        return Node.locked(config, settings)
    from columnar.roles.standalone import Standalone

    return Standalone.locked(config)


async def _serve(
    config: StandaloneConfig,
    node: NodeConfig | None,
    reload: SettingsReload | None,
    health_port: int,
    service: ServiceNotifier = UNMANAGED,
) -> int:
    asyncio.get_running_loop().set_exception_handler(met_by_the_loop)
    stopping = stop_on_signals()
    if reload is not None:  # before a start that may take minutes: by default the signal ends the process
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload.request)
    memory = memory_line(config, max(1, node.servers) if node is not None else ALONE)
    store = _locked(config, node)
    build = version.at_start().text  # logged only now: a start that is refused has one line
    _log.info("version %s, build %s, Python %s, process %d", version.VERSION, build, version.PYTHON, os.getpid())
    _log.info("%s", memory)
    warn_of_the_open(config)
    compiling = BackgroundCompiling()
    bound = bind(config.host, config.web_port) if config.web_port >= 0 else None
    probed = bind(config.host, health_port, HEALTH) if health_port >= 0 else None
    try:
        await store.start()
    except OSError as error:
        raise HostError(f"cannot open {config.data}: {error}; mend it or choose another --data") from error
    visitors = _visitors_of(config, store)
    pages = store.pages(compiling.state)
    web = served_at(bound, pages, store.tls, visitors) if bound is not None else None
    health = _health_port(probed, pages) if probed is not None else None
    if reload is not None:
        reload.begin_reading((store.take_settings, lambda live: visitors.take_origins(live.allow_origins)))
    _log.info("hot modules: %s", compiling.state())
    say(_ready_line(config, store, web, node))
    service.report_ready(SERVES)
    service.begin_watchdog()
    if web is not None:
        await web.start()
    if health is not None:
        await health.start()
    compiling.start()  # once, for this process and its servers
    calm_collector()
    trimming = asyncio.create_task(trim_memory_periodically())
    await stopping.wait()
    service.report_stopping()
    if health is not None:
        health.begin_stop()
    store.begin_stop()
    _log.info("stopping; a second signal stops at once")
    trimming.cancel()
    if reload is not None:
        reload.close()
    await compiling.stop()
    if web is not None:
        await web.stop()
    await store.stop()
    if health is not None:
        await health.close()
    service.end_watchdog()
    _log.info("stopped")
    return 0


def _visitors_of(config: StandaloneConfig, store: Standalone | Node) -> Visitors:
    """Return whose requests for pages are answered; with rights they need a user."""
    visitors = Visitors.of(config.host, config.allow_origins)
    if config.rights.is_on:
        from columnar.rights.page_guard import PageGuard  # most stores have no users

        visitors.guard_pages(PageGuard(store.judge_visitor, asyncio.get_running_loop()).refusal)
    return visitors


def _health_port(bound: socket.socket, pages: Sources | Site) -> HealthPort:
    from columnar.webui.health_port import HealthPort  # most stores have none

    return HealthPort(bound, pages.obstacles)


def memory_line(config: StandaloneConfig, servers: int) -> str:
    """Return the line of the log that says how much memory the store plans with.

    Raises HostError if it is too little.
    """
    plan, limit = config.memory_plan(servers), memory_limit()
    of = f"of {limit.source}'s {readable_bytes(limit.size_bytes)}" if limit.size_bytes else "of an unknown amount"
    if config.memory.size_bytes > limit.size_bytes > 0:
        of += ", WHICH IS LESS: the system may end the store"
    said = f"--memory {readable_bytes(config.memory.size_bytes)}" if config.memory.size_bytes else "no --memory"
    each = "" if servers <= 1 else f" for each of {servers} servers"
    caches, buffers = readable_bytes(plan.block_cache), readable_bytes(plan.write_buffers)
    return (
        f"memory: {said}, {of}; block cache {caches}, write buffers {buffers}, {plan.open_regions} open regions{each}"
    )


def warn_of_the_open(config: StandaloneConfig) -> None:
    """Log a loud warning if other machines reach the ports, and neither certificates nor rights protect the data."""
    if is_loopback(config.host) or config.tls_client_ca or (config.rights.is_on and config.tls_cert):
        return
    if config.rights.is_on:
        _log.warning(
            "LISTENING ON %s, NOT ON LOOPBACK ALONE, WITHOUT TLS: users must sign in, but whoever is on the way reads "
            "what they say, and may take over their connections. Use --tls-cert and --tls-key, or a private network",
            config.host,
        )
        return
    what = "whoever reaches these ports can read, change and drop every table; there is no password"
    if config.tls_cert:
        _log.warning(
            "LISTENING ON %s, NOT ON LOOPBACK ALONE, TO EVERYBODY: TLS hides what is said, but %s. "
            "Ask clients for certificates with --tls-client-ca, or let a firewall guard the ports",
            config.host,
            what,
        )
    else:
        _log.warning(
            "LISTENING ON %s, NOT ON LOOPBACK ALONE, WITHOUT TLS: %s, and read what others say. Use --tls-cert, "
            "--tls-key and --tls-client-ca, or let a firewall or a private network guard the ports",
            config.host,
            what,
        )


def stop_on_signals() -> asyncio.Event:
    """Return an event that the first SIGTERM or SIGINT sets.

    The second signal ends the process, unless its parent does so (STOP_ONCE).
    """
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()

    def request_stop(number: int) -> None:
        if stopping.is_set() and not stops_once():
            flush(SECOND_SIGNAL_S)
            os._exit(128 + number)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, request_stop, number)
    return stopping


def _ready_line(
    config: StandaloneConfig, store: Standalone | Node, web: WebServer | None, node: NodeConfig | None
) -> str:
    host = f"[{config.host}]" if ":" in config.host else config.host
    page = f"http{'s' if store.tls is not None else ''}://{host}:{web.port}/" if web is not None else "-"
    ports = store.ports
    thrift2 = f" thrift2={host}:{ports.thrift2_port}" if ports.thrift2_port is not None else ""
    others = {"sqs": store.sqs_port, "kafka": store.kafka_port}
    more = "".join(f" {name}={host}:{port}" for name, port in others.items() if port is not None)
    count = f" servers={node.servers}" if node is not None else ""
    data = os.path.abspath(config.data)
    place = f"{host}:{ports.port}" if ports.port is not None else "-"
    return f"columnar ready store={place} web={page}{thrift2}{more} pid={os.getpid()}{count} data={data}"


def main(text: str) -> int:
    """Run with the settings in JSON."""
    settings = json.loads(text)
    log, node = LogSettings.of_settings(settings.pop("log")), settings.pop("node", None)
    log = replace(log, place=place_of(log))  # of this process, for its servers, too
    password = os.environ.pop(PASSWORD, "")  # child processes run the code of triggers, and do not get it
    if node is not None:
        node["access"] = ServiceAccess(password=password, **node.get("access", {}))
    source, health_port = SettingsSource(**settings.pop("source")), settings.pop("health_port")
    config = StandaloneConfig.of_settings(settings)
    service = ServiceNotifier.taken_from(os.environ, os.getpid())  # child processes do not get its variables
    return run(config, log, NodeConfig(log=log, **node) if node is not None else None, source, health_port, service)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
