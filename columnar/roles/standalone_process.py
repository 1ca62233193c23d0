"""The process around ``Standalone``: log lines, the ready line, signals, the exit status.

    starting --ready line--> serving --SIGTERM, SIGINT--> stopping --> exit 0
    a second signal while stopping: exit at once, 128 + its number (what was acknowledged is on disk)
    SIGHUP, if the ports speak TLS: the certificate is read again
    cannot start: one line on stderr, exit 2

``columnar standalone`` reads its options and then becomes this module, with the settings as one argument
(``python -m columnar.roles.standalone_process '{"data": ...}'``): the same process, without what only a command
line needs, 3 MB.  It costs a second start of the interpreter, 0.05 s.

The ready line, alone on stdout, for scripts that wait for it (``data`` comes last: it may contain blanks;
``thrift2=127.0.0.1:9091`` follows ``web`` if that service is served):
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
from typing import Final

from columnar.config import StandaloneConfig
from columnar.errors import ColumnarError, HostError
from columnar.roles.standalone import Standalone
from columnar.runtime.background_compiling import BackgroundCompiling
from columnar.runtime.child_processes import stops_once
from columnar.runtime.faults import met_by_the_loop
from columnar.runtime.log_lines import complain, log_to_stderr, say
from columnar.runtime.process_tuning import calm_collector, loop_factory, switch_quickly, trim_memory_periodically
from columnar.storage.descriptors import raise_limit
from columnar.webui.server import WebServer, bind, served_at
from columnar.wire.browsers import is_loopback

_log = logging.getLogger("columnar")

CANNOT_START: Final = 2


def run(config: StandaloneConfig, log_level: str) -> int:
    """Serve until a signal says stop; the exit status."""
    log_to_stderr(log_level)
    raise_limit()
    switch_quickly()
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(_serve(config))
    except ColumnarError as error:
        complain(f"columnar: {error.text}")
        return CANNOT_START


async def _serve(config: StandaloneConfig) -> int:
    asyncio.get_running_loop().set_exception_handler(met_by_the_loop)
    stopping = stop_on_signals()
    warn_of_the_open(config)
    store = Standalone.locked(config)
    compiling = BackgroundCompiling()
    bound = bind(config.host, config.web_port) if config.web_port >= 0 else None
    try:
        await store.start()
    except OSError as error:
        raise HostError(f"cannot open {config.data}: {error}; mend it or choose another --data") from error
    sources = replace(store.sources(), hot_modules=compiling.state)
    web = served_at(bound, sources, store.ports.tls, store.ports.visitors) if bound is not None else None
    if store.ports.tls is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, store.ports.tls.certificate.renew)
    _log.info("hot modules: %s", compiling.state())
    say(_ready_line(config, store, web))
    if web is not None:
        await web.start()
    compiling.start()
    calm_collector()
    trimming = asyncio.create_task(trim_memory_periodically())
    await stopping.wait()
    _log.info("stopping; a second signal stops at once")
    trimming.cancel()
    await compiling.stop()
    if web is not None:
        await web.stop()
    await store.stop()
    _log.info("stopped")
    return 0


def warn_of_the_open(config: StandaloneConfig) -> None:
    """Loudly, where more than this machine can reach the ports and not everything guards them."""
    if is_loopback(config.host) or config.tls_client_ca:
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
    """Set by the first SIGTERM or SIGINT; the second one ends the process, unless its parent does so (STOP_ONCE)."""
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()

    def request_stop(number: int) -> None:
        if stopping.is_set() and not stops_once():
            os._exit(128 + number)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, request_stop, number)
    return stopping


def _ready_line(config: StandaloneConfig, store: Standalone, web: WebServer | None) -> str:
    host = f"[{config.host}]" if ":" in config.host else config.host
    page = f"http{'s' if store.ports.tls is not None else ''}://{host}:{web.port}/" if web is not None else "-"
    data = os.path.abspath(config.data)
    thrift2 = f" thrift2={host}:{store.ports.thrift2_port}" if store.ports.thrift2_port is not None else ""
    return f"columnar ready store={host}:{store.port} web={page}{thrift2} pid={os.getpid()} data={data}"


if __name__ == "__main__":
    _settings = json.loads(sys.argv[1])
    _level, _modules = _settings.pop("log_level"), tuple(_settings.pop("trigger_modules"))
    _origins = tuple(_settings.pop("allow_origins"))
    sys.exit(run(StandaloneConfig(trigger_modules=_modules, allow_origins=_origins, **_settings), _level))
