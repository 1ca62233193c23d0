"""Stores under one committer with a server log, as in a data folder, which are cut by a power cut and opened anew."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

from columnar.storage.api import SpaceOptions
from columnar.storage.commit import Committer
from columnar.storage.ownership import Ownership
from columnar.storage.recovery import recover, recovering
from columnar.storage.region_folders import RegionFolders
from columnar.storage.rocks import RocksEngine
from columnar.storage.rocks_store import RocksStore
from columnar.storage.server_log_files import begin_run
from columnar.storage.synced_bound import SYNCED

SPACES = frozenset({"a", "b"})


class EngineAtRest(RocksEngine):
    """An engine without merges: a merge during a copy would give the copy a MANIFEST that names missing files."""

    def space_options(self, options: SpaceOptions) -> Any:
        made = super().space_options(options)
        made.set_disable_auto_compactions(True)
        return made


def copied(root: Path, target: Path) -> Path:
    """Copy open stores of an ``EngineAtRest`` that get no writes, as of one moment, while threads sync."""
    while True:
        bounds = _bounds(root)
        try:
            shutil.copytree(root, target, ignore=shutil.ignore_patterns("LOCK"))
        except shutil.Error:
            pass  # the engine removed a log meanwhile that it needs no more
        else:
            if _bounds(root) == bounds:
                return target
        shutil.rmtree(target)


def _bounds(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob(SYNCED)}


class LoggedStores:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.regions = root / "regions"
        self.regions.mkdir(exist_ok=True)
        self.engine = EngineAtRest(cache_bytes=1 << 20)
        self.log, self.logs = begin_run(str(root / "server-log"))
        self.engine.server_log, self.engine.dead_logs = self.log, self.logs
        self.epoch = 1 + max(
            (part.epoch for region in self.logs.left for part in self.logs.unreplayed_parts(region)), default=0
        )
        for _ in recovering(self.engine, self.logs, RegionFolders(str(self.regions), self.engine), self.epoch):
            pass
        self.log.prepare()
        self.committer = Committer(asyncio.get_running_loop(), threads=2, log=self.log)
        self.stores = [self.open(f"r{number}") for number in range(3)]

    def open(self, name: str) -> RocksStore:
        behind = self.logs.unreplayed_parts(name) + self.log.unreplayed_parts(name)
        ownership = Ownership(name, self.epoch, behind, is_sole=True)
        return self.engine.open_store(str(self.regions / name), SPACES, None, ownership)

    async def put(self, number: int, key: bytes, value: bytes = b"v") -> None:
        store = self.stores[number]
        batch = store.batch()
        batch.put("a", key, value)
        store.gather(batch)
        await self.committer.durable(store)

    async def put_all(self, key: bytes, value: bytes = b"v") -> None:
        await asyncio.gather(*(self.put(number, key, value) for number in range(len(self.stores))))

    def engine_log(self, number: int) -> Path:
        """Return the path of the newest engine log of a store."""
        return max((self.regions / f"r{number}").glob("*.log"))

    @property
    def segments(self) -> list[str]:
        return sorted(path.name for path in self.root.rglob("*.segment"))

    def logged(self, number: int) -> list[bytes]:
        """Return the keys of one store in the server log of this run."""
        found = self.log.so_far().records(f"r{number}", frozenset({self.epoch})).found
        return [one[1] for _, record in found for one in record.operations]

    def cut(self) -> Path:
        """Return a folder as after a power cut: it has the server log, but no unsynced writes of the stores."""
        target = self.copied()
        for store in self.stores:
            newest = max((target / "regions" / os.path.basename(store._path)).glob("*.log"))
            newest.write_bytes(b"")
        self.close()
        return target

    def copied(self) -> Path:
        return copied(self.root, self.root.with_name(self.root.name + "-cut"))

    async def put_to_flush(self) -> None:
        """Write into the second space of the first store, whose flush makes the engine begin a new log."""
        batch = self.stores[0].batch()
        batch.put("b", b"something", b"to flush")
        self.stores[0].gather(batch)
        await self.committer.durable(self.stores[0])

    def begin_another_log(self) -> None:
        before = self.engine_log(0)
        self.stores[0]._dicts["b"].flush(True)
        assert self.engine_log(0).name > before.name

    def bring_newest(self, target: Path) -> None:
        """Copy the first store's newest log and the server log beside the earlier copies."""
        shutil.copy(self.engine_log(0), target / "regions" / "r0")
        shutil.copytree(self.root / "server-log", target / "server-log", dirs_exist_ok=True)

    def close(self) -> None:
        self.committer.close()
        for store in self.stores:
            store.close()
        self.log.close()


class Started:
    """A server at its start, before it recovers anything."""

    def __init__(self, root: Path) -> None:
        self.regions = root / "regions"
        self.engine = RocksEngine(cache_bytes=1 << 20)
        self.log, self.logs = begin_run(str(root / "server-log"))
        self.engine.server_log, self.engine.dead_logs = self.log, self.logs

    def ownership(self, name: str) -> Ownership:
        return Ownership(name, 1, self.logs.unreplayed_parts(name), is_sole=True)

    def open(self, name: str) -> RocksStore:
        return self.engine.open_store(str(self.regions / name), SPACES, None, self.ownership(name))

    def recover(self) -> None:
        recover(self.engine, self.logs, RegionFolders(str(self.regions), self.engine))

    @property
    def left(self) -> dict[str, int]:
        return self.logs.left


def opened(root: Path) -> Started:
    return Started(root)
