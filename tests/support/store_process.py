"""A store in a process of its own, with its trigger worker, that a test can kill and start again.

It is forked (``forked_program``).  The port is written, whole or not at all, once requests are served; SIGTERM stops it
in order.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from functools import partial
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import uvloop

from columnar.client import Connection
from columnar.config import StandaloneConfig
from columnar.master.catalogue import Catalogue
from columnar.model.region_info import RegionInfo
from columnar.roles.standalone import Standalone
from tests.support.forked_children import fork_children
from tests.support.forked_program import FORKS

START_S = 30.0
ROOT = Path(__file__).parents[2]


class StoreProcess:
    def __init__(self, folder: Path, *modules: str) -> None:
        self.folder = folder
        self.modules = modules
        self.port = 0
        self._process: ForkServerProcess | None = None

    def start(self) -> None:
        port_file = self.folder.with_name(self.folder.name + ".port")
        port_file.unlink(missing_ok=True)
        log = self.folder.with_name(self.folder.name + ".log")
        self._process = FORKS.Process(target=launched, args=(self.folder, port_file, self.modules, log), daemon=True)
        self._process.start()
        pause = threading.Event()
        for _ in range(int(START_S / 0.01)):
            if port_file.exists():
                self.port = int(port_file.read_text())
                return
            assert self._process.is_alive(), "the store ended while it started"
            pause.wait(0.01)
        raise AssertionError("the store did not start")

    @property
    def log(self) -> str:
        return self.folder.with_name(self.folder.name + ".log").read_text()

    @property
    def process_id(self) -> int:
        assert self._process is not None
        assert self._process.pid is not None
        return self._process.pid

    def workers(self) -> list[int]:
        """Process ids of the trigger workers."""
        children = Path(f"/proc/{self.process_id}/task/{self.process_id}/children")
        return [int(word) for word in children.read_text().split()]

    def kill_workers(self) -> None:
        for pid in self.workers():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:  # it ended by itself
                continue

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.join()

    def stop(self, patience_s: float = 30) -> int | None:
        """Stop the store; return its exit status, or None if it has not ended in time."""
        assert self._process is not None
        self._process.terminate()
        self._process.join(patience_s)
        return self._process.exitcode

    def connect(self) -> Connection:
        return Connection("127.0.0.1", self.port, timeout=60_000)


def die_where_told(order: Path, step: str) -> None:
    """Kill this process at the step named in the file: of a split or merge, of an added trigger, or of a start."""
    if order.exists() and order.read_text() == step:
        order.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def die_as_it_starts(order: Path) -> None:
    """Kill this process before or after the write that moves an older folder's triggers to the catalogue."""
    drop = Catalogue.drop

    async def dropped(self: Catalogue, name: str, *derivations: Any) -> list[RegionInfo]:
        die_where_told(order, "not moved")
        found = await drop(self, name, *derivations)
        die_where_told(order, "moved")
        return found

    Catalogue.drop = dropped  # type: ignore[method-assign]


async def serve(folder: str, port_file: Path, modules: tuple[str, ...]) -> None:
    order = Path(folder + ".die")
    die_as_it_starts(order)
    store = Standalone.locked(StandaloneConfig(folder, port=0, web_port=-1, trigger_modules=modules))
    await store.start()
    store.leading.region_changes.at = store.leading.triggers.at = partial(die_where_told, order)
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    fresh = port_file.with_suffix(".new")
    fresh.write_text(str(store.port))
    os.replace(fresh, port_file)
    await told.wait()
    await store.stop()


def launched(folder: Path, port_file: Path, modules: tuple[str, ...], log: Path) -> None:
    """Run the store's process; ``log`` gets its output."""
    said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(said, stream)
    os.close(said)
    os.chdir(ROOT)
    fork_children()
    os.environ["PYTHONPATH"] = str(ROOT)  # of its trigger worker
    logging.basicConfig(level=os.environ.get("COLUMNAR_LOG_LEVEL", "WARNING"))
    uvloop.run(serve(str(folder), port_file, modules))
