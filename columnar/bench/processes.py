"""The processes behind an endpoint: their memory and processor time, starting one and ending it (Linux)."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from columnar.bench.address import Endpoint, EndpointFailed
from columnar.bench.endpoint import wait_for_answer

START_TIMEOUT_S: Final = 300.0
STOP_TIMEOUT_S: Final = 30.0


def resident_mb(pids: Iterable[int]) -> float:
    """Resident memory of these processes and all their descendants; those that are gone count nothing."""
    return sum(_resident_bytes(pid) for family in _families(pids) for pid in family) / (1 << 20)


def cpu_s_of(pids: Iterable[int]) -> tuple[float, ...]:
    """Seconds of processor time of each of these processes with all its descendants, to a clock tick (10 ms).

    A descendant of several of them counts with the first; one that ended with the parent that waited for it.
    """
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    return tuple(sum(_ticks(pid) for pid in family) * tick_s for family in _families(pids))


def children_of(pid: int) -> list[int]:
    """Return the processes that it started and that run; none if it is gone itself."""
    found = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as children:
                found += [int(child) for child in children.read().split()]
    return found


def _families(pids: Iterable[int]) -> list[set[int]]:
    """Return each of these processes with those of its descendants that are in no family before."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            children.setdefault(_parent_of(int(name)), []).append(int(name))
    known: set[int] = set()
    found = []
    for first in pids:
        family: set[int] = set()
        left = [first]
        while left:
            pid = left.pop()
            if pid not in known:
                known.add(pid)
                family.add(pid)
                left += children.get(pid, [])
        found.append(family)
    return found


def _parent_of(pid: int) -> int:
    stat = _stat(pid)
    return int(stat[1]) if stat else 0


def _ticks(pid: int) -> int:
    """User and system time, its own and that of the children it waited for; 0 if the process is gone."""
    return sum(int(field) for field in _stat(pid)[11:15])


def _stat(pid: int) -> list[bytes]:
    """Return the fields of the kernel's line from the third on, the state; none if the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()  # the name before it may hold blanks
    except OSError:
        return []


def _resident_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class Started:
    """A server that was started for the measurement, by a command of the operator."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """``process``: in a session of its own."""
        self._process = process
        self.start_s = 0.0  # from its start to the first answer

    @classmethod
    def answering(cls, command: str, endpoint: Endpoint) -> Started:
        """Start it and wait until the endpoint answers; EndpointFailed where it never does."""
        began = time.monotonic()
        started = cls(
            subprocess.Popen(
                shlex.split(command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
            )
        )
        try:
            wait_for_answer(endpoint, START_TIMEOUT_S, started._failed)
        except BaseException:
            started.stop()
            raise
        started.start_s = time.monotonic() - began
        return started

    @classmethod
    def with_ready_line(
        cls, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> tuple[Started, dict[str, str]]:
        """Return a store of ours, and what its ready line says, as ``store``: host and port.  Blocks until it is ready.

        EndpointFailed: it ended instead.  ``environment``: beside that of this process.
        """
        began = time.monotonic()
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, start_new_session=True, env={**os.environ, **(environment or {})}
        )
        started = cls(process)
        try:
            assert process.stdout is not None, "it is a pipe"
            line = process.stdout.readline().decode()
            if not line:
                raise EndpointFailed("the store did not start; it says why above")
        except BaseException:
            started.stop()
            raise
        started.start_s = time.monotonic() - began
        return started, dict(word.split("=", 1) for word in line.split() if "=" in word)

    def _failed(self) -> str | None:
        status = self._process.poll()
        return None if not status else f"the start command ended with status {status} before the endpoint answered"

    @property
    def pids(self) -> list[int]:
        """The processes of the command, while it runs: some only start others and end."""
        return [self._process.pid] if self._process.poll() is None else []

    def stop(self) -> None:
        self._close_output()
        if self._process.poll() is not None:
            return
        os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def kill(self, *, with_children: bool) -> None:
        """``kill -9``, of it alone or of its whole session at once.  Does nothing if it has ended."""
        self._close_output()
        if self._process.poll() is None:
            (os.killpg if with_children else os.kill)(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _close_output(self) -> None:
        if self._process.stdout is not None:
            self._process.stdout.close()
