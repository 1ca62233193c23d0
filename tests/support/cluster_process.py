"""``columnar standalone --servers N`` as real processes, and a client of single rows that reaches any server."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from socket import SHUT_RDWR
from typing import Any, Self

from thriftpy2.protocol import TCyBinaryProtocolFactory
from thriftpy2.thrift import TClient
from thriftpy2.transport import TCyBufferedTransportFactory, TSocket

from columnar.config import AHEAD
from columnar.roles.regionserver_process import SPARE
from columnar.wire.idl import SERVICE, hbase
from tests.support.standalone_store import LOOK_S, WAIT_S, StoreProcess


class ClusterProcess(StoreProcess):
    def __init__(self, folder: Path, servers: int, *flags: str, port: int | None = None) -> None:
        """Take the number of servers; 1 is a standalone."""
        super().__init__(folder, "--servers", str(servers), *flags, port=port)
        self.folder = folder
        self.count = servers
        self.web = ""  # the address of the pages, once it is ready
        self.thrift2_port = 0
        self.sqs_port = 0
        self.kafka_port = 0

    def await_ready(self) -> None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("columnar ready "), f"it did not start: {line!r}; {self.log.read_text()}"
        self.web = line.split(" web=")[1].split()[0]
        self.thrift2_port = thrift2_port_in(line)
        self.sqs_port = port_in(line, "sqs")
        self.kafka_port = port_in(line, "kafka")

    def servers(self) -> list[int]:
        """Return the processes of the servers, without the spare."""
        return [child for child in children(self.pid) if not is_nobody(child)]

    def family(self) -> list[int]:
        """Return the processes of the supervisor, its servers, and their trigger workers."""
        return family_of(self.pid)

    def kill_workers_of(self, server: int) -> int:
        """Kill the trigger workers of one server; return their number."""
        return kill_children(server)

    def kill_server(self, which: int = 0, number: int = signal.SIGKILL) -> int:
        """Send a signal to a server; return after a killed one was reaped, as it may get connections until then.

        The successor of one that was killed before may still be starting.
        """
        until(lambda: len(self.servers()) > (which if which >= 0 else -which - 1))
        pid = self.servers()[which]
        os.kill(pid, number)
        if number == signal.SIGKILL:
            reaped(pid)
        return pid

    def drop_all(self) -> None:
        """Drop all tables of users."""
        drop_tables(self.connection())

    def rows(self) -> Rows:
        return Rows(self.port)

    def rows_of_each(self) -> list[Rows]:
        """Return a connection to each server, as new connections go to the server with the fewest."""
        return [self.rows() for _ in range(self.count)]


class Rows:
    """A connection that reads and writes single rows."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        socket = TSocket(host, port)
        socket.set_timeout(int(WAIT_S * 1000))
        self._socket = socket
        self._transport = TCyBufferedTransportFactory().get_transport(socket)
        self._transport.open()
        self.client: Any = TClient(SERVICE, TCyBinaryProtocolFactory().get_protocol(self._transport))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    def abort(self) -> None:
        """End a call that waits in another thread, with an error."""
        with suppress(OSError):
            self._socket.sock.shutdown(SHUT_RDWR)

    def put(self, table: bytes, row: bytes, value: bytes) -> None:
        self.client.mutateRow(table, row, [hbase.Mutation(column=b"f:q", value=value)], {})

    def get(self, table: bytes, row: bytes) -> bytes | None:
        found = self.client.getRow(table, row, {})
        return found[0].columns[b"f:q"].value if found else None


def drop_tables(connection: Any) -> None:
    """Drop all tables of users, and close the connection."""
    try:
        for table in connection.tables():
            connection.delete_table(table, disable=True)
    finally:
        connection.close()


def thrift2_port_in(line: str) -> int:
    """Return the port of the Thrift 2 service, as the ready line of a store names it; 0 if it has none."""
    return port_in(line, "thrift2")


def port_in(line: str, name: str) -> int:
    """Return the port that a ready line has under this name, or 0."""
    return int(line.split(f" {name}=")[1].split()[0].rpartition(":")[2]) if f" {name}=" in line else 0


def shown_as(pid: int) -> str:
    """Return the name of a process in ps; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().rstrip("\n")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_nobody(pid: int) -> bool:
    """Return whether the process is a spare that waits for a server's death, or is about to become one."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return False
    name = shown_as(pid)
    return AHEAD.encode() in arguments and (name == SPARE or not name.startswith("columnar "))


def children(pid: int) -> list[int]:
    """Return the children that the process's main thread started; none if it has ended."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def family_of(pid: int) -> list[int]:
    """Return the processes of a supervisor or node, its servers and their trigger workers."""
    servers = children(pid)
    return [pid, *servers, *(child for server in servers for child in children(server))]


def kill_children(pid: int) -> int:
    """Kill the children of a server, which are its trigger workers; return their number."""
    killed = 0
    for child in children(pid):
        with suppress(ProcessLookupError):  # it ended by itself
            os.kill(child, signal.SIGKILL)
            killed += 1
    return killed


def reaped(pid: int) -> None:
    """Wait until the process is reaped: after its first thread's end others may hold its sockets open."""
    deadline = time.monotonic() + WAIT_S
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline, f"process {pid} is not reaped"
        threading.Event().wait(LOOK_S)


def gone(pids: list[int], within_s: float) -> bool:
    """Return whether all of these processes have ended in time."""
    deadline = time.monotonic() + within_s
    while any(_is_there(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(LOOK_S)
    return True


def _is_there(pid: int) -> bool:
    """Return whether a process still has threads, of which the last one closes its files at its end."""
    try:
        is_over = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        return not is_over or len(os.listdir(f"/proc/{pid}/task")) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(is_so: Callable[[], bool], within_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline, "it never becomes so"
        threading.Event().wait(LOOK_S)
