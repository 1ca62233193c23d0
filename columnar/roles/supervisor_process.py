"""The process around ``Supervisor``: log lines, the ready line, signals, the exit status, as of ``standalone_process``.

    starting --ready line--> serving --SIGTERM, SIGINT--> stopping --> exit 0
    a second signal while stopping: exit at once, 128 + its number; the servers end with this process
    SIGHUP, if the ports speak TLS: the pages and the servers read the certificate again

``columnar standalone --servers N`` becomes ``python -m columnar.roles.supervisor_process '{"data": ...}'``.

The ready line, alone on stdout, is that of a standalone, with the number of servers before ``data``:
    columnar ready store=127.0.0.1:9090 web=http://127.0.0.1:9095/ pid=4711 servers=3 data=/var/lib/columnar
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys

from columnar.config import StandaloneConfig
from columnar.errors import ColumnarError, HostError
from columnar.roles.standalone_process import CANNOT_START, stop_on_signals, warn_of_the_open
from columnar.roles.supervisor import Supervisor
from columnar.runtime.background_compiling import BackgroundCompiling
from columnar.runtime.faults import met_by_the_loop
from columnar.runtime.log_lines import complain, log_to_stderr, say
from columnar.runtime.process_tuning import calm_collector, loop_factory, switch_quickly, trim_memory_periodically
from columnar.storage.descriptors import raise_limit

_log = logging.getLogger("columnar")


def run(config: StandaloneConfig, count: int, log_level: str) -> int:
    """Serve until a signal says stop; the exit status."""
    log_to_stderr(log_level)
    raise_limit()
    switch_quickly()
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(_serve(config, count, log_level))
    except ColumnarError as error:
        complain(f"columnar: {error.text}")
        return CANNOT_START


async def _serve(config: StandaloneConfig, count: int, log_level: str) -> int:
    asyncio.get_running_loop().set_exception_handler(met_by_the_loop)
    stopping = stop_on_signals()
    warn_of_the_open(config)
    store = Supervisor.locked(config, count, log_level)
    compiling = BackgroundCompiling()
    store.hot_modules = compiling.state
    try:
        await store.start()
    except OSError as error:
        raise HostError(f"cannot open {config.data}: {error}; mend it or choose another --data") from error
    if config.tls_cert:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, store.renew_certificate)
    _log.info("hot modules: %s", compiling.state())
    say(_ready_line(config, store, count))
    compiling.start()  # for this process and its servers: once for all
    calm_collector()
    trimming = asyncio.create_task(trim_memory_periodically())
    await stopping.wait()
    store.begin_stop()
    _log.info("stopping; a second signal stops at once")
    trimming.cancel()
    await compiling.stop()
    await store.stop()
    _log.info("stopped")
    return 0


def _ready_line(config: StandaloneConfig, store: Supervisor, count: int) -> str:
    host = f"[{config.host}]" if ":" in config.host else config.host
    data = os.path.abspath(config.data)
    thrift2 = f" thrift2={host}:{store.thrift2_port}" if store.thrift2_port is not None else ""
    return (
        f"columnar ready store={host}:{store.port} web={store.web_address}{thrift2} pid={os.getpid()} "
        f"servers={count} data={data}"
    )


if __name__ == "__main__":
    _settings = json.loads(sys.argv[1])
    _level, _count = _settings.pop("log_level"), _settings.pop("servers")
    _modules, _origins = tuple(_settings.pop("trigger_modules")), tuple(_settings.pop("allow_origins"))
    sys.exit(run(StandaloneConfig(trigger_modules=_modules, allow_origins=_origins, **_settings), _count, _level))
