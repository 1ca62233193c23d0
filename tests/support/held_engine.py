"""An engine whose fsyncs the test lets through, holds, or fails."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from columnar.errors import HostError
from columnar.memory_plan import ordinary
from columnar.storage.api import Engine, SpaceOptions, Store
from columnar.storage.dead_logs import DeadLogs
from columnar.storage.ownership import Ownership
from columnar.storage.rocks import RocksEngine
from columnar.storage.server_log_files import ServerLog


class Gate:
    """The gate that every ``sync`` passes.  The test's thread moves it, and the committer's threads wait at it."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._open.set()
        self._failing = False
        self.entered = threading.Event()  # a sync has begun and waits, or is through
        self.syncs = 0

    def hold(self) -> None:
        self.entered.clear()
        self._open.clear()

    def release(self) -> None:
        self._failing = False
        self._open.set()

    def fail(self) -> None:
        """Let every waiting sync, and every later one until ``release``, end in an error of the disk."""
        self._failing = True
        self._open.set()

    def pass_through(self) -> None:
        self.syncs += 1
        self.entered.set()
        if not self._open.wait(20):
            raise HostError("the test never opened the gate")
        if self._failing:
            raise HostError("the disk is gone")


class HeldStore:
    """A store of a real engine behind the gate."""

    def __init__(self, store: Store, gate: Gate) -> None:
        self._store = store
        self._gate = gate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def sync(self) -> None:
        self._gate.pass_through()
        self._store.sync()


class HeldEngine:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.gate = Gate()
        self.plan = ordinary()

    def used_bytes(self) -> dict[str, int]:
        return {}

    def open_store(
        self,
        path: str,
        spaces: frozenset[str],
        options: Mapping[str, SpaceOptions] | None = None,
        ownership: Ownership | None = None,
    ) -> Any:
        return HeldStore(self._engine.open_store(path, spaces, options, ownership), self.gate)

    def use_logs(self, dead_logs: DeadLogs, server_log: ServerLog | None = None) -> None:
        assert isinstance(self._engine, RocksEngine)
        self._engine.use_logs(dead_logs, server_log)

    def open_reading(self, path: str) -> Store:
        return self._engine.open_reading(path)

    def has_unreplayed_writes(self, store: Store, ownership: Ownership) -> bool:
        return self._engine.has_unreplayed_writes(store, ownership)

    def make_folders(self, paths: Sequence[str]) -> None:
        self._engine.make_folders(paths)

    def has_folder(self, path: str) -> bool:
        return self._engine.has_folder(path)

    def is_untouched(self, path: str) -> bool:
        return self._engine.is_untouched(path)

    def is_emptied(self, path: str) -> bool:
        return self._engine.is_emptied(path)

    def destroy(self, path: str) -> None:
        self._engine.destroy(path)

    def exists(self, path: str) -> bool:
        return self._engine.exists(path)


class FakeClock:
    def __init__(self, now_ms: int = 1_000) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms

    def observe(self, moment_ms: int) -> None:
        self.now_ms = max(self.now_ms, moment_ms)
