"""``columnar standalone`` in a process of its own, at a port that it keeps over restarts, for tests that kill it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from columnar.client import Connection
from tests.support.forked_program import ForkedProgram, suits
from tests.support.ports import free_port

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
PROGRAM = [sys.executable, "-m", "columnar", "standalone"]
WAIT_S = 30.0  # generous: the machine may be busy
LOOK_S = 0.01
LAST_LINE_OF_START = b"hot modules: "
Dump = dict[bytes, list[tuple[bytes, dict[bytes, tuple[bytes, int]]]]]  # of each table: rows with cells


class StoreProcess:
    def __init__(self, folder: Path, *flags: str, port: int | None = None, is_forked: bool = True) -> None:
        """Take ``is_forked``: start it by ``forked_program``, unless a setting of the test needs a new interpreter."""
        self.port = free_port() if port is None else port
        self.log = folder.with_suffix(".log")
        self._command = [*PROGRAM, "--data", str(folder)]
        self._command += ["--port", str(self.port), "--web-port", "-1", *flags]
        self._is_forked = is_forked
        self.environment = dict(ENVIRONMENT)

    def __enter__(self) -> StoreProcess:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start the store; return when it serves."""
        self.begin()
        self.await_ready()

    def begin(self) -> None:
        self._logged_bytes = self.log.stat().st_size if self.log.exists() else 0
        self._process: subprocess.Popen[str] | ForkedProgram
        if self._is_forked and self._command[:4] == PROGRAM and suits(self.environment, ENVIRONMENT):
            self._process = ForkedProgram(self._command[3:], self.environment, self.log)
            return
        with self.log.open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=log, text=True, env=self.environment
            )

    def await_ready(self) -> None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("columnar ready "), f"it did not start: {line!r}; {self.log.read_text()}"

    def await_log(self) -> None:
        """Wait for the log's last line of a start, for who counts lines: a thread of its own writes them."""
        deadline = time.monotonic() + WAIT_S
        while LAST_LINE_OF_START not in self.log.read_bytes()[self._logged_bytes :]:
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(LOOK_S)

    @property
    def pid(self) -> int:
        return self._process.pid

    def has_ended(self, patience_s: float = 0) -> bool:
        """Return whether the store ended by itself; an ending process closes its sockets a moment before its end."""
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def shoot(self) -> None:
        """Kill the store from a thread other than the one that waits for it."""
        self._process.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def stop(self) -> int:
        self._process.terminate()
        status = self._process.wait(WAIT_S)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return status

    def worker_pid(self) -> int:
        """Return the store's trigger worker; waits for one that is starting."""
        deadline = time.monotonic() + WAIT_S
        while True:
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
            if children:
                return int(children[0])
            assert time.monotonic() < deadline, "there is no trigger worker"
            threading.Event().wait(LOOK_S)

    def kill_workers(self) -> int:
        """Kill the trigger workers; return their number."""
        killed = 0
        for child in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split():
            with suppress(ProcessLookupError):  # it ended by itself
                os.kill(int(child), signal.SIGKILL)
                killed += 1
        return killed

    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def forget_peak(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def peak_bytes(self) -> int:
        """Return the peak of resident memory since ``forget_peak``."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return 1024 * int(status.split("VmHWM:")[1].split()[0])

    def connection(self) -> Connection:
        return Connection("127.0.0.1", self.port, timeout=20_000)

    def dump(self, *tables: bytes) -> Dump:
        """All cells of the tables with their timestamps."""
        return dump_of(self.connection(), *tables)


def dump_of(connection: Connection, *tables: bytes) -> Dump:
    """All cells of the tables with their timestamps; closes the connection."""
    try:
        return {name: list(connection.table(name).scan(include_timestamp=True)) for name in tables}
    finally:
        connection.close()
