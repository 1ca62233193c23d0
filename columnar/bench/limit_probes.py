"""The probes of ``columnar bench limits``: processes that read the clock, fsyncs, a byte there and back."""

from __future__ import annotations

import os
import socket
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from time import perf_counter_ns
from typing import Final

from columnar.bench.latencies import percentiles_us
from columnar.bench.limits import Limit, stopped_share, waits_us

STOP_NS: Final = 100_000  # between two readings of the clock; less is the interpreter's own
PUT_BYTES: Final = 150  # of a log, for a put of 100 bytes
BATCH_BYTES: Final = 820_000  # for 100 rows of 8 KB
FSYNCS: Final = {PUT_BYTES: 2_000, BATCH_BYTES: 200}
ROUND_TRIPS: Final = 20_000
CORES: Final = 64  # at most so many are watched


def watched_cores() -> list[int]:
    """Return the cores that this process may use."""
    return sorted(os.sched_getaffinity(0))[:CORES]


def stops_of(core: int, duration_s: float) -> tuple[list[int], int]:
    """In a process of its own, on that core: (how long it was stopped each time, the time measured), in ns."""
    os.sched_setaffinity(0, {core})
    stops = []
    began = last = perf_counter_ns()
    until = began + int(duration_s * 1e9)
    while last < until:
        now = perf_counter_ns()
        if now - last > STOP_NS:
            stops.append(now - last)
        last = now
    return stops, last - began


def core_limits(duration_s: float) -> Iterator[Limit]:
    """Yield all cores at once: a machine with nothing to do stops no process."""
    cores = watched_cores()
    with ProcessPoolExecutor(len(cores), mp_context=get_context("spawn")) as pool:
        for core, (stops, measured_ns) in zip(cores, pool.map(stops_of, cores, [duration_s] * len(cores)), strict=True):
            share = stopped_share(stops, measured_ns)
            note = f"stopped {len(stops):,} times, {share:.2%} of the time"
            yield Limit(f"core {core}, reading the clock only", waits_us(stops, measured_ns), "core", note)


def fsync_limit(folder: str, size: int, advance: Callable[[int], None]) -> Limit:
    """Appends to a new file in ``folder``, each with an fsync of its data.  OSError if it cannot be written."""
    written = os.urandom(size)
    times = []
    with tempfile.NamedTemporaryFile(dir=folder, prefix="columnar-bench-", buffering=0) as file:
        for _ in range(FSYNCS[size]):
            began = perf_counter_ns()
            file.write(written)
            os.fdatasync(file.fileno())
            times.append(perf_counter_ns() - began)
            advance(1)
    return Limit(f"append of {size:,} bytes and its fsync", _figures(times), "fsync")


def round_trip_limit(advance: Callable[[int], None]) -> Limit:
    """Return a byte to another process over loopback and back."""
    times = []
    with _echoing() as line:
        for _ in range(ROUND_TRIPS):
            began = perf_counter_ns()
            line.send(b"?")
            line.recv(1)
            times.append(perf_counter_ns() - began)
            advance(1)
    return Limit("a byte to another process and back", _figures(times), "round trip")


def _figures(times_ns: list[int]) -> dict[str, int]:
    return percentiles_us(Counter(taken // 1_000 for taken in times_ns))


@contextmanager
def _echoing() -> Iterator[socket.socket]:
    """Connected to a process that sends back what it gets; that ends when the connection does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        process = get_context("spawn").Process(target=echo, args=(server.getsockname()[1],), daemon=True)
        process.start()
        server.settimeout(20)
        line, _ = server.accept()
    with line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield line
    process.join()


def echo(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while got := line.recv(1):
            line.send(got)
