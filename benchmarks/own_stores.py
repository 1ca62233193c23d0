"""Servers that a measurement starts and ends: by a command of the operator, or as stores of this program."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from thriftpy2.thrift import TException

from columnar.bench.address import Endpoint, EndpointFailed, Misaddressed, parse_endpoint
from columnar.bench.endpoint import client_of
from columnar.bench.faults import failed
from columnar.client import ClusterAdmin, Connection
from columnar.client.cluster import ClusterStatus, RegionLocation

SETTLED_S: Final = 60.0  # in which every region has its owner, and none is in transition
START_TIMEOUT_S: Final = 300.0
STOP_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.05
_PAUSE_S: Final = 0.02  # between two calls of a server that starts


def wait_for_answer(endpoint: Endpoint, timeout_s: float, gave_up: Callable[[], str | None]) -> float:
    """Call until the endpoint answers; return the seconds it took.  ``gave_up`` says why to stop earlier, or None."""
    started = time.monotonic()
    while True:
        try:
            with client_of(endpoint, 5.0) as client:
                client.getTableNames()
            return time.monotonic() - started
        except Misaddressed:
            raise
        except EndpointFailed as failure:
            why = gave_up()
            if why is not None or time.monotonic() - started > timeout_s:
                raise EndpointFailed(why or str(failure)) from None
            time.sleep(_PAUSE_S)


class Started:
    """A server that was started for the measurement, by a command of the operator."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Take a process that has a session of its own."""
        self._process = process
        self.start_s = 0.0  # from its start to the first answer

    @classmethod
    def answering(cls, command: str, endpoint: Endpoint) -> Started:
        """Start the server and wait until the endpoint answers.  Raises EndpointFailed if it never answers."""
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
        """Start a Columnar store; return it with the fields of its ready line (``store`` is host and port).

        Blocks until the store is ready.  Raises EndpointFailed if the store ended instead.  ``environment`` is added to
        the environment of this process.
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
        """Return the processes of the command while it runs; a command may start other processes and end."""
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
        """Send ``kill -9`` to the process alone or to its whole session.  Does nothing if the process has ended."""
        self._close_output()
        if self._process.poll() is None:
            (os.killpg if with_children else os.kill)(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _close_output(self) -> None:
        if self._process.stdout is not None:
            self._process.stdout.close()


@dataclass(frozen=True, slots=True)
class OwnServer:
    name: str
    endpoint: Endpoint  # its own port, past the one that all servers share
    pid: int


@dataclass(frozen=True, slots=True)
class OwnStore:
    """A store that a measurement started.  While it runs no server is replaced, and no region moves by itself."""

    endpoint: Endpoint  # the port of the whole
    servers: tuple[OwnServer, ...]
    start_s: float

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(server.pid for server in self.servers)

    def locations(self, table: bytes) -> list[RegionLocation]:
        """EndpointFailed."""
        with _admin(self.endpoint) as admin:
            return admin.locations(table)

    def settle(self) -> None:
        """Wait until every region has its owner.  Raises EndpointFailed after SETTLED_S."""
        with _admin(self.endpoint) as admin:
            _seen(admin, lambda found: not found.transitions and not found.unassigned, "regions without a server")


@contextmanager
def own_store(servers: int, folder: str) -> Iterator[OwnStore]:
    """Yield a store in a temporary folder within ``folder``; balancing and splits by load are off.

    Raises EndpointFailed.
    """
    with tempfile.TemporaryDirectory(prefix="columnar-bench-", dir=folder) as data:
        started, said = Started.with_ready_line(store_command(data, "--servers", str(servers)))
        try:
            endpoint = parse_endpoint(said["store"])
            with _admin(endpoint) as admin:
                if servers > 1:
                    admin.switch("balancer", on=False)
                    admin.switch("auto-split", on=False)
                found = _seen(admin, lambda found: all(one.address for one in found.servers), "servers without a port")
            known = tuple(OwnServer(one.name, parse_endpoint(one.address), one.pid) for one in found.servers)
            yield OwnStore(endpoint, known, started.start_s)
        finally:
            started.stop()


def store_command(data: str, *options: str, port: int = 0) -> list[str]:
    """Return the command that starts a store of this program on the folder ``data``; the store logs only errors."""
    finds_modules_here = sys.path[:1] == [os.getcwd()]  # as this process was started, ``python -m`` or a script
    program = [sys.executable, *([] if finds_modules_here else ["-P"]), "-m", "columnar", "standalone"]
    ports = ["--port", str(port), "--web-port", "-1", "--log-level", "error"]
    return [*program, "--data", data, *ports, *options]


def _seen(admin: ClusterAdmin, is_so: Callable[[ClusterStatus], bool], obstacle: str) -> ClusterStatus:
    """Return the cluster's status as soon as ``is_so`` holds.

    Raises EndpointFailed, which names the ``obstacle``, after SETTLED_S.
    """
    until_s = time.monotonic() + SETTLED_S
    while not is_so(found := admin.servers()):
        if time.monotonic() > until_s:
            raise EndpointFailed(f"after {SETTLED_S:.0f} s there are {obstacle} still")
        time.sleep(_POLL_S)
    return found


@contextmanager
def _admin(endpoint: Endpoint) -> Iterator[ClusterAdmin]:
    """Yield an ``Admin``.  Raises EndpointFailed, also for errors in the body of the ``with``."""
    connection = None
    try:
        connection = Connection(endpoint.host, endpoint.port, timeout=int(SETTLED_S * 1_000))
        yield ClusterAdmin(connection)
    except (TException, OSError) as error:
        raise failed(endpoint, error) from error
    finally:
        if connection is not None:
            connection.close()
