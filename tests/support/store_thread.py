"""A real store in a thread of the test's process: started in milliseconds, stopped in order, restarted in place."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import uvloop

from columnar.client import Connection
from columnar.config import StandaloneConfig
from columnar.roles.standalone import Standalone


class StoreThread:
    def __init__(self, folder: Path, *, trigger_modules: tuple[str, ...] = (), port: int = 0) -> None:
        self._config = StandaloneConfig(str(folder), port=port, web_port=-1, trigger_modules=trigger_modules)
        self._loop = uvloop.new_event_loop()
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.port = 0

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._store = Standalone.locked(self._config)
            self._loop.run_until_complete(self._store.start())
            self.port = self._store.port
        except BaseException as failure:  # noqa: BLE001 - raised again in the test's own thread
            self._failure = failure
            self._ready.set()
            return
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._store.stop())
        self._loop.close()

    def __enter__(self) -> StoreThread:
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    @property
    def inside(self) -> Standalone:
        """For what tests change of it: its own loop runs in the other thread."""
        return self._store

    def connection(self) -> Connection:
        return Connection("127.0.0.1", self.port, timeout=20_000)

    def dump(self, *tables: bytes) -> dict[bytes, list[tuple[bytes, dict[bytes, tuple[bytes, int]]]]]:
        """All cells of the tables with their timestamps."""
        connection = self.connection()
        try:
            return {name: list(connection.table(name).scan(include_timestamp=True)) for name in tables}
        finally:
            connection.close()
