"""Everything in one process: a master that leads, a server that serves, and the ports of both.

The order of the start is lock, format, catalogue, system tables, port.  The order of the stop is trigger worker, port
(calls in flight are answered, or cancelled after a time of grace), regions (synced and closed), threads, lock.  Each
step is finished before the next begins, so that this process does not use the folder when another may lock it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from columnar.config import StandaloneConfig
from columnar.model.system_tables import SYSTEM_TABLES
from columnar.roles.leading import Leading
from columnar.roles.ports import ServerPorts, read_tls, take_settings
from columnar.roles.serving import Serving
from columnar.runtime.stop_limit import THREADS_S, StopLimit
from columnar.storage.data_folder import DataFolder
from columnar.storage.process_stores import ProcessStores
from columnar.storage.rocks import RocksEngine
from columnar.webui.status import Sources

if TYPE_CHECKING:
    from columnar.model.node_messages import JudgeVisitor, LiveSettings, Verdict
    from columnar.wire.tls_protocol import Tls


class Standalone:
    """The standalone store.  Call ``locked``, ``start``, then serve until ``stop``.  Owned by one event loop."""

    def __init__(self, config: StandaloneConfig, engine: RocksEngine, folder: DataFolder, ports: ServerPorts) -> None:
        self.config = config
        self._engine = engine
        self.folder = folder
        self.ports = ports

    @classmethod
    def locked(cls, config: StandaloneConfig) -> Standalone:
        """Lock the data folder and read the certificate.  Raises HostError, with the folder unlocked."""
        engine = RocksEngine.planned(config.memory_plan())
        folder = DataFolder.locked(config.data)
        try:
            return cls(config, engine, folder, ServerPorts(config, folder, read_tls(config)))
        except BaseException:
            folder.close()
            raise

    async def start(self) -> None:
        """Start to serve.  Raises HostError or DamagedData; then no store is open, but the folder is still locked."""
        self.stores = ProcessStores(self.folder, self._engine)
        self.stores.open()
        async with AsyncExitStack() as undo:
            undo.callback(self.stores.close)
            self.leading = Leading(self.stores)
            epoch = await self.leading.open()
            self.serving = Serving(self.config, self.stores, epoch)
            self.serving.server.openings.ownership_at = self.stores.ownership
            undo.push_async_callback(self._close_regions)
            self.leading.lead(self.serving.owner, self.config.trigger_modules, self.config.rights)
            self.serving.follow_master(self.leading, self.leading.region_changes)
            await self.leading.prepare()
            await self.leading.start(SYSTEM_TABLES)
            await self.serving.load()
            self.ports.make(self.serving, self.leading)
            private = await self.ports.listen()
            self.serving.deliver(self.ports.port, private, self.ports.answered, self.ports.has_waiting)
            await self.leading.begin_background_work()
            self.serving.begin_background_work()
            undo.pop_all()

    async def _close_regions(self) -> None:
        await self.serving.close()
        await self.leading.close(self.serving.server.hosting.quiesce)

    async def stop(self) -> None:
        await self.serving.stop_triggers()
        await self.ports.close_others()
        self.leading.stop_copies()
        await self.ports.close()
        await self.leading.stop_changes()
        await self._close_regions()
        with StopLimit(THREADS_S):
            self.stores.close()
            await asyncio.get_running_loop().shutdown_default_executor()  # no thread works after the stop
        self.folder.close()

    @property
    def port(self) -> int:
        return self.ports.port

    @property
    def thrift2_port(self) -> int | None:
        return self.ports.thrift2_port

    @property
    def sqs_port(self) -> int | None:
        return self.ports.protocol_ports.sqs_port

    @property
    def kafka_port(self) -> int | None:
        return self.ports.protocol_ports.kafka_port

    @property
    def tls(self) -> Tls | None:
        return self.ports.tls

    def take_settings(self, live: LiveSettings) -> None:
        """Take the settings that change while the store serves, and read the certificate again."""
        take_settings(self.ports, live)
        self.serving.trigger_manager.dispatcher.sender.send_levels()

    def begin_stop(self) -> None:
        pass  # nothing is replaced meanwhile

    async def judge_visitor(self, visitor: JudgeVisitor) -> Verdict:
        """Decide whether a request for a page is answered, if rights are on."""
        return await self.serving.judge_visitor(visitor)

    def pages(self, hot_modules: Callable[[], str] = str) -> Sources:
        """Return the sources of the status page and the metrics.  Call after ``start``.

        ``hot_modules`` returns a text on how the hot modules run.
        """
        serving, ports = self.serving, self.ports
        return replace(
            ports.sources(serving, lambda: self.stores.committer.syncs),
            address=f"{self.config.host}:{ports.port}",
            data_folder=os.path.abspath(self.folder.path),
            triggers=serving.trigger_manager.trigger_statuses,
            flows=serving.trigger_manager.hub.flow_statuses,
            hot_modules=hot_modules,
            cluster_source=lambda: ports.alone(serving.operations.descriptions),
        )
