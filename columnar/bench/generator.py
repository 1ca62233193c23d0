"""The load generator: connections that each wait for an answer before they ask again (closed loop).

One process drives its connections from one epoll loop and does as little as can be for each answer:
receive, compare the first bytes, send the next packed call, note the time.  What it used of its
core is reported beside the rates, so that a reader sees whether the generator was the limit.
"""

from __future__ import annotations

import select
import socket
import time
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Final

from columnar.bench.dataset import DataSet
from columnar.bench.protocols import BINARY, FRAME_HEAD, WIRES, BadReply
from columnar.bench.sessions import GOES_ON, Session
from columnar.bench.workloads import WORKLOADS

RECEIVE_BYTES: Final = 64 * 1024
LARGE_RECEIVE_BYTES: Final = 1024 * 1024  # once an answer is known to be longer
SILENCE_S: Final = 30.0  # without any answer: the endpoint hangs
WARM_UP_SHARE: Final = 0.2  # of a turn, not counted


class EndpointFailed(Exception):
    """The endpoint closed a connection, fell silent or answered wrongly."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One stretch of load, as it is told to a generator process."""

    host: str
    port: int
    workload: str
    connections: int
    duration_s: float  # counted; the warm-up comes before it
    data: DataSet
    seed: int
    warm_up_s: float = 0.3
    protocol: str = BINARY.name


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a generator saw in its turn."""

    latencies_us: Counter[int] = field(default_factory=Counter)
    units: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def calls(self) -> int:
        return self.latencies_us.total()

    @property
    def rate(self) -> float:
        return self.units / self.wall_s if self.wall_s else 0.0

    @property
    def cpu_share(self) -> float:
        return self.cpu_s / self.wall_s if self.wall_s else 0.0


class Connection:
    """To the endpoint; what is not sent or not received yet."""

    __slots__ = ("have", "parts", "sent_ns", "session", "sock", "unsent")

    def __init__(self, host: str, port: int, session: Session) -> None:
        self.sock = socket.create_connection((host, port), timeout=SILENCE_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)
        self.session = session
        self.parts: list[bytes] = []
        self.have = 0  # bytes in ``parts``
        self.unsent = memoryview(b"")
        self.sent_ns = 0

    def send(self, frame: bytes) -> bool:
        """Begin the next operation; False if a part of it must wait until the socket takes more."""
        self.sent_ns = time.perf_counter_ns()
        try:
            done = self.sock.send(frame)
        except BlockingIOError:
            done = 0
        if done == len(frame):
            return True
        self.unsent = memoryview(frame)[done:]
        return False

    def send_next(self, frame: bytes) -> bool:
        """The next call of an operation that began earlier: its time runs on."""
        began_ns = self.sent_ns
        whole = self.send(frame)
        self.sent_ns = began_ns
        return whole

    def send_on(self) -> bool:
        self.unsent = self.unsent[self.sock.send(self.unsent) :]
        return not self.unsent

    def receive(self) -> bytes | None:
        """The next answer, its frame's head before it, once it is whole."""
        data = self.sock.recv(LARGE_RECEIVE_BYTES if self.parts else RECEIVE_BYTES)
        if not data:
            raise EndpointFailed("the endpoint closed the connection")
        if not self.parts and len(data) == FRAME_HEAD + int.from_bytes(data[:FRAME_HEAD], "big"):
            return data
        self.parts.append(data)
        self.have += len(data)
        if len(self.parts[0]) < FRAME_HEAD:
            self.parts = [b"".join(self.parts)]
        head = self.parts[0][:FRAME_HEAD]
        if len(head) < FRAME_HEAD or self.have < FRAME_HEAD + int.from_bytes(head, "big"):
            return None
        whole = b"".join(self.parts)
        self.parts = []
        self.have = 0
        return whole


def run(turn: Turn) -> Outcome:
    """Drive one turn in this process; EndpointFailed."""
    return drive(turn.host, turn.port, sessions_of(turn), turn.warm_up_s, turn.duration_s)


def sessions_of(turn: Turn) -> list[Session]:
    """What its connections ask, packed."""
    make = WORKLOADS[turn.workload].sessions
    return make(turn.data, Random(turn.seed), turn.connections, WIRES[turn.protocol])


def drive(host: str, port: int, sessions: list[Session], warm_up_s: float, duration_s: float) -> Outcome:
    """A connection for each session, in closed loop, from this process; EndpointFailed."""
    with connected(host, port, sessions) as lines:
        return _drive(lines, warm_up_s, duration_s)


@contextmanager
def connected(host: str, port: int, sessions: list[Session]) -> Iterator[list[Connection]]:
    """A connection for each session; EndpointFailed, for what goes wrong within, too."""
    lines: list[Connection] = []
    try:
        try:
            lines += [Connection(host, port, session) for session in sessions]
            yield lines
        finally:
            for line in lines:
                line.sock.close()
    except (OSError, BadReply, EndpointFailed) as error:
        raise EndpointFailed(f"{host}:{port}: {error}") from error


def _drive(lines: list[Connection], warm_up_s: float, duration_s: float) -> Outcome:
    by_fd = {line.sock.fileno(): line for line in lines}
    epoll = select.epoll()
    for fd in by_fd:
        epoll.register(fd, select.EPOLLIN)
    try:
        for fd, line in by_fd.items():
            if not line.send(line.session.first()):
                epoll.modify(fd, select.EPOLLOUT)
        _answers(epoll, by_fd, time.perf_counter_ns() + int(warm_up_s * 1e9))
        started, cpu = time.perf_counter_ns(), time.process_time()
        taken_ns, units = _answers(epoll, by_fd, started + int(duration_s * 1e9))
        wall_s, cpu_s = (time.perf_counter_ns() - started) / 1e9, time.process_time() - cpu
    finally:
        epoll.close()
    return Outcome(Counter(taken // 1_000 for taken in taken_ns), units, wall_s, cpu_s)


def _answers(epoll: select.epoll, by_fd: dict[int, Connection], until_ns: int) -> tuple[array[int], int]:
    """Take answers and ask on until the time is over: nanoseconds of each counted call, and their units."""
    taken: array[int] = array("q")
    units, clock = 0, time.perf_counter_ns
    while True:
        events = epoll.poll(SILENCE_S)
        if not events:
            raise EndpointFailed(f"no answer within {SILENCE_S:.0f} s")
        for fd, event in events:
            line = by_fd[fd]
            if event & select.EPOLLOUT:
                if line.send_on():
                    epoll.modify(fd, select.EPOLLIN)
                continue
            reply = line.receive()
            if reply is None:
                continue
            now = clock()
            frame, worth = line.session.answered(reply)
            if worth > 0:
                taken.append(now - line.sent_ns)
                units += worth
            elif worth == GOES_ON:
                if not line.send_next(frame):
                    epoll.modify(fd, select.EPOLLOUT)
                continue
            if not line.send(frame):
                epoll.modify(fd, select.EPOLLOUT)
        if clock() >= until_ns:
            return taken, units
