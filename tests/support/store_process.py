"""A store in a process of its own, with its trigger worker, that a test can kill and start again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from columnar.client import Connection

ROOT = Path(__file__).parents[2]
LAUNCHER = Path(__file__).with_name("launch_store.py")
START_S = 30.0


class StoreProcess:
    def __init__(self, folder: Path, *modules: str) -> None:
        self.folder = folder
        self.modules = modules
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        port_file = self.folder.with_name(self.folder.name + ".port")
        port_file.unlink(missing_ok=True)
        command = [sys.executable, str(LAUNCHER), str(self.folder), str(port_file), *self.modules]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        with open(self.folder.with_name(self.folder.name + ".log"), "ab") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log)
        pause = threading.Event()
        for _ in range(int(START_S / 0.01)):
            if port_file.exists():
                self.port = int(port_file.read_text())
                return
            assert self._process.poll() is None, "the store ended while it started"
            pause.wait(0.01)
        raise AssertionError("the store did not start")

    @property
    def log(self) -> str:
        return self.folder.with_name(self.folder.name + ".log").read_text()

    @property
    def process_id(self) -> int:
        assert self._process is not None
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
        self._process.wait()

    def stop(self, patience_s: float = 30) -> int:
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(patience_s)

    def connect(self) -> Connection:
        return Connection("127.0.0.1", self.port, timeout=60_000)
