"""A real store in a thread of the test's process: started in milliseconds, stopped in order, restarted in place."""

from __future__ import annotations

from pathlib import Path

from columnar.client import Connection
from columnar.roles.standalone import Standalone
from tests.support.serving import Serving
from tests.support.standalone_store import Dump, dump_of


class StoreThread(Serving):
    def __init__(self, folder: Path, *, trigger_modules: tuple[str, ...] = (), port: int = 0) -> None:
        super().__init__(folder, trigger_modules=trigger_modules, port=port)

    def __enter__(self) -> StoreThread:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def port(self) -> int:
        return self.store.port

    @property
    def inside(self) -> Standalone:
        """The store's object, for tests that change it; its loop runs in a thread of its own."""
        return self.store

    def connection(self) -> Connection:
        return Connection("127.0.0.1", self.port, timeout=20_000)

    def dump(self, *tables: bytes) -> Dump:
        """All cells of the tables with their timestamps."""
        return dump_of(self.connection(), *tables)
