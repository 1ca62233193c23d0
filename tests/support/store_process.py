"""A store in a process of its own, with its trigger worker, that a test can kill and start again.

It is forked from a process that has imported the store and done nothing else: a start costs a tenth of the import.
"""

from __future__ import annotations

import os
import signal
import threading
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from columnar.client import Connection
from tests.support.launch_store import launched

START_S = 30.0
_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.support.launch_store"])


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
        self._process = _FORKS.Process(target=launched, args=(self.folder, port_file, self.modules, log), daemon=True)
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
        """The exit status; None: it has not ended in time."""
        assert self._process is not None
        self._process.terminate()
        self._process.join(patience_s)
        return self._process.exitcode

    def connect(self) -> Connection:
        return Connection("127.0.0.1", self.port, timeout=60_000)
