"""The load generator: connections that each wait for an answer before the next request (closed loop).

A process drives its connections from one epoll loop and does the minimum for each answer: receive, compare the first
bytes, send the next packed call, note the time.  Its use of its core is reported beside the rates, so that a reader
sees whether the generator was the limit.
"""

from __future__ import annotations

import select
import time
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Final

from columnar.bench.address import Endpoint, EndpointFailed
from columnar.bench.connections import SILENCE_S, Connection
from columnar.bench.faults import failed
from columnar.bench.protocols import WIRES, BadReply
from columnar.bench.tls_connections import connector
from columnar.bench.workloads import MORE_CALLS, Session, Workload
from gauge.processes import cpu_s_of

WARM_UP_SHARE: Final = 0.2  # of a run, not counted
LATE_NS: Final = 10_000_000_000  # after the end of the time, for the first unit


@dataclass(frozen=True, slots=True)
class LoadRun:
    """A run of load, as a generator process gets it."""

    endpoint: Endpoint
    workload: Workload
    connections: int
    duration_s: float  # counted; the warm-up comes before it
    rows: int  # of the data set
    seed: int
    warm_up_s: float = 0.3
    server_pids: tuple[int, ...] = ()  # their processor time is read during the load; empty if not requested


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a generator's run."""

    latencies_us: Counter[int] = field(default_factory=Counter)
    units: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    servers_cpu_s: tuple[float, ...] = ()  # of each of the server's processes in the same stretch, if requested

    @property
    def calls(self) -> int:
        return self.latencies_us.total()

    @property
    def rate(self) -> float:
        return self.units / self.wall_s if self.wall_s else 0.0

    @property
    def cpu_share(self) -> float:
        return self.cpu_s / self.wall_s if self.wall_s else 0.0

    @property
    def server_us(self) -> float | None:
        """The processor time that the server's processes together spent on a unit of work, in microseconds."""
        return self._us_each(sum(self.servers_cpu_s))

    @property
    def busiest_us(self) -> float | None:
        """The processor time that the busiest server process spent on a unit of the work of all, in microseconds."""
        return self._us_each(max(self.servers_cpu_s, default=0.0))

    def _us_each(self, cpu_s: float) -> float | None:
        return cpu_s / self.units * 1e6 if self.servers_cpu_s and self.units else None


def run(load_run: LoadRun) -> Outcome:
    """Drive one run in this process.  Raises EndpointFailed."""
    return drive(
        load_run.endpoint, sessions_of(load_run), load_run.warm_up_s, load_run.duration_s, load_run.server_pids
    )


def sessions_of(load_run: LoadRun) -> list[Session]:
    """Return the session of each connection, with its packed requests."""
    wire = WIRES[load_run.endpoint.protocol]
    return load_run.workload.sessions(load_run.rows, Random(load_run.seed), load_run.connections, wire)


def drive(
    endpoint: Endpoint, sessions: list[Session], warm_up_s: float, duration_s: float, pids: tuple[int, ...] = ()
) -> Outcome:
    """Drive a connection for each session in closed loop, and return the outcome.  Raises EndpointFailed."""
    with connected(endpoint, sessions) as lines:
        return _drive(lines, warm_up_s, duration_s, pids)


@contextmanager
def connected(endpoint: Endpoint, sessions: list[Session]) -> Iterator[list[Connection]]:
    """Yield a connection for each session.  Raises EndpointFailed, also for errors in the body of the ``with``."""
    lines: list[Connection] = []
    try:
        try:
            opened = connector(endpoint)
            for session in sessions:
                lines.append(opened(session))
            yield lines
        finally:
            for line in lines:
                line.sock.close()
    except (OSError, BadReply, EndpointFailed) as error:
        raise failed(endpoint, error) from error


def _drive(lines: list[Connection], warm_up_s: float, duration_s: float, pids: tuple[int, ...]) -> Outcome:
    by_fd = {line.sock.fileno(): line for line in lines}
    epoll = select.epoll()
    for fd in by_fd:
        epoll.register(fd, select.EPOLLIN)
    try:
        for fd, line in by_fd.items():
            if not line.send(line.session.first()):
                epoll.modify(fd, select.EPOLLOUT)
        _answers(epoll, by_fd, time.perf_counter_ns() + int(warm_up_s * 1e9))
        before_s = cpu_s_of(pids) if pids else ()
        started, cpu = time.perf_counter_ns(), time.process_time()
        taken_ns, units = _answers(epoll, by_fd, started + int(duration_s * 1e9))
        wall_s, cpu_s = (time.perf_counter_ns() - started) / 1e9, time.process_time() - cpu
        after_s = cpu_s_of(pids) if pids else ()
    finally:
        epoll.close()
    served_s = tuple(after - before for before, after in zip(before_s, after_s, strict=True))
    return Outcome(Counter(taken // 1_000 for taken in taken_ns), units, wall_s, cpu_s, served_s)


def _answers(epoll: select.epoll, by_fd: dict[int, Connection], until_ns: int) -> tuple[array[int], int]:
    """Take answers and send requests until ``until_ns``; return the latencies in nanoseconds and the units of work.

    A unit that takes longer than the whole run (a scan of several calls, on a busy machine) is waited for, LATE_NS at
    most.
    """
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
            frame, worth = line.session.take_reply(reply)
            if worth > 0:
                taken.append(now - line.sent_ns)
                units += worth
            elif worth == MORE_CALLS:
                if not line.send_next(frame):
                    epoll.modify(fd, select.EPOLLOUT)
                continue
            if not line.send(frame):
                epoll.modify(fd, select.EPOLLOUT)
        now = clock()
        if now >= until_ns and (units or now >= until_ns + LATE_NS):
            return taken, units
