"""A store inside the test's process, its loop in a thread, its trigger worker a real process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from columnar.client import Connection
from columnar.client.triggers import Triggers
from columnar.config import ProtocolSettings, StandaloneConfig
from columnar.roles.standalone import Standalone
from columnar.triggers import trigger_manager
from tests.support import trigger_functions
from tests.support.forked_worker import ForkedWorkerProcess

T = TypeVar("T")
trigger_manager.WorkerProcess = ForkedWorkerProcess  # type: ignore[misc]  # of all stores in the test's process


class _PatientTriggers(Triggers):
    """Triggers whose waits are longer by default, because a worker needs seconds to start on a busy machine."""

    def wait(self, name: str = "", sequence: str = "", timeout_ms: int = 50_000) -> bool:
        return super().wait(name, sequence, timeout_ms)


class _Patient(Connection):
    @property
    def triggers(self) -> Triggers:
        return _PatientTriggers(self)


class Serving:
    """The store; start and stop block, and ``do`` runs in the loop's thread."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        config = StandaloneConfig(str(folder), port=0, web_port=-1, trigger_modules=(trigger_functions.MODULE,))
        names = [field.name for field in fields(ProtocolSettings)]
        protocols = ProtocolSettings(**{name: settings.pop(name) for name in names if name in settings})
        self._config = replace(config, protocols=protocols, **settings)
        self._connections: list[Connection] = []

    def start(self) -> Serving:
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="store", daemon=True)
        self._thread.start()
        try:
            self.store = self.do(self._make)
            try:
                self.run(self.store.start())
            except BaseException:
                self.store.folder.close()
                raise
        except BaseException:
            self._end_loop()
            raise
        return self

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _make(self) -> Standalone:
        return Standalone.locked(self._config)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def do(self, work: Callable[[], T]) -> T:
        async def inside() -> T:
            return work()

        return self.run(inside())

    def connect(self, **options: Any) -> Connection:
        connection = _Patient("127.0.0.1", self.store.port, timeout=60_000, **options)
        self._connections.append(connection)
        return connection

    def stop(self) -> None:
        for connection in self._connections:
            connection.close()
        self._connections.clear()
        self.run(self.store.stop())
        self._end_loop()
