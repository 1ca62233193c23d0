"""Stores of this program that a measurement starts, with one server or several, and what it knows of their servers."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from thriftpy2.thrift import TException

from columnar.bench.address import Endpoint, EndpointFailed, parse_endpoint
from columnar.bench.faults import failed
from columnar.bench.processes import Started
from columnar.client import ClusterAdmin, Connection
from columnar.client.cluster import ClusterStatus, RegionLocation

SETTLED_S: Final = 60.0  # in which every region has its owner, and none is in transition
_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class OwnServer:
    name: str
    endpoint: Endpoint  # its own port, past the one that all servers share
    pid: int


@dataclass(frozen=True, slots=True)
class OwnStore:
    """Constant while it runs: no server is replaced, no region moves by itself."""

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
        """Wait until every region has its owner.  EndpointFailed: not within SETTLED_S."""
        with _admin(self.endpoint) as admin:
            _seen(admin, lambda found: not found.transitions and not found.unassigned, "regions without a server")


@contextmanager
def own_store(servers: int, folder: str) -> Iterator[OwnStore]:
    """A store in a new folder within ``folder``, which goes with it; balancing and splits by load are off.

    EndpointFailed.
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
    """Return the command that starts a store of this program on the folder ``data``, which says only errors."""
    finds_modules_here = sys.path[:1] == [os.getcwd()]  # as this process was started, ``python -m`` or a script
    program = [sys.executable, *([] if finds_modules_here else ["-P"]), "-m", "columnar", "standalone"]
    ports = ["--port", str(port), "--web-port", "-1", "--log-level", "error"]
    return [*program, "--data", data, *ports, *options]


def _seen(admin: ClusterAdmin, is_so: Callable[[ClusterStatus], bool], obstacle: str) -> ClusterStatus:
    """Return the cluster as soon as it ``is_so``.  EndpointFailed: not within SETTLED_S, for the ``obstacle``."""
    until_s = time.monotonic() + SETTLED_S
    while not is_so(found := admin.servers()):
        if time.monotonic() > until_s:
            raise EndpointFailed(f"after {SETTLED_S:.0f} s there are {obstacle} still")
        time.sleep(_POLL_S)
    return found


@contextmanager
def _admin(endpoint: Endpoint) -> Iterator[ClusterAdmin]:
    """EndpointFailed, for what goes wrong within, too."""
    connection = None
    try:
        connection = Connection(endpoint.host, endpoint.port, timeout=int(SETTLED_S * 1_000))
        yield ClusterAdmin(connection)
    except (TException, OSError) as error:
        raise failed(endpoint, error) from error
    finally:
        if connection is not None:
            connection.close()
