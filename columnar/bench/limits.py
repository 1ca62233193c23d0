"""The limits of the machine, which no store can beat: stops of processes, fsyncs, a byte there and back.

A machine stops each of its processes now and then: the kernel's own threads run, and a virtual machine's host gives the
core to others.  A call that is due during such a stop waits until its end, so no store that needs the core has lower
percentiles than these waits.  ``waits_us`` computes from the stops the wait of a call that is due at a random moment:
the longer a stop, the more moments lie in it.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from time import perf_counter_ns
from typing import Final

from rich.table import Table

from columnar.bench.endpoint import Watcher
from gauge.histogram import PERCENTILES, percentiles_us

STOP_NS: Final = 100_000  # between two readings of the clock; less is the interpreter's own
PUT_BYTES: Final = 150  # of a log, for a put of 100 bytes
BATCH_BYTES: Final = 820_000  # for 100 rows of 8 KB
FSYNCS: Final = {PUT_BYTES: 2_000, BATCH_BYTES: 200}
ROUND_TRIPS: Final = 20_000
CORES: Final = 64  # more are not watched


@dataclass(frozen=True, slots=True)
class Limit:
    """A row of the table."""

    what: str
    figures_us: Mapping[str, float]  # by the name of the percentile, and ``max``
    kind: str  # "core", "fsync" or "round trip"
    note: str = ""


def waits_us(stops_ns: Sequence[int], measured_ns: int) -> dict[str, float]:
    """Return percentiles and ``max`` of the wait of a call that is due at a random measured moment, in us."""
    found = {f"p{share:g}": _waited(stops_ns, (1 - share / 100) * measured_ns) / 1_000 for share in PERCENTILES}
    return {**found, "max": max(stops_ns, default=0) / 1_000}


def _waited(stops_ns: Sequence[int], rest_ns: float) -> float:
    """Return the wait that calls exceed only in moments that make up ``rest_ns`` together."""
    longest = sorted(stops_ns, reverse=True)
    total = 0
    for count, stop in enumerate(longest, 1):
        total += stop
        level = (total - rest_ns) / count  # if only these stops are longer than the level
        if level >= (longest[count] if count < len(longest) else 0):
            return level
    return 0.0


def stopped_share(stops_ns: Sequence[int], measured_ns: int) -> float:
    return sum(stops_ns) / max(measured_ns, 1)


def watched_cores() -> list[int]:
    """Return the cores that this process may use."""
    return sorted(os.sched_getaffinity(0))[:CORES]


def stops_of(core: int, duration_s: float) -> tuple[list[int], int]:
    """Return the lengths of the stops of this process on ``core``, and the measured time, in ns.

    Runs in a process of its own, which it binds to the core.
    """
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
    """Measure all cores at once, because an idle machine stops no process; yield the limit of each."""
    cores = watched_cores()
    with ProcessPoolExecutor(len(cores), mp_context=get_context("spawn")) as pool:
        for core, (stops, measured_ns) in zip(cores, pool.map(stops_of, cores, [duration_s] * len(cores)), strict=True):
            share = stopped_share(stops, measured_ns)
            note = f"stopped {len(stops):,} times, {share:.2%} of the time"
            yield Limit(f"core {core}, reading the clock only", waits_us(stops, measured_ns), "core", note)


def fsync_limit(folder: str, size: int, advance: Callable[[int], None]) -> Limit:
    """Time appends to a new file in ``folder``, each with an fsync of its data.

    Raises OSError if the file cannot be written.
    """
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
    """Time a byte to another process over loopback and back."""
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
    """Yield a socket connected to a process that sends back all bytes and ends with the connection."""
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


def limits_of_machine(seconds: float, folder: str, watcher: Watcher) -> Iterator[Limit]:
    """Yield all limits.  Raises OSError if ``folder`` cannot be written."""
    watcher.began(f"watch the cores, {seconds:g} s", 0)
    yield from core_limits(seconds)
    watcher.began("a byte there and back", ROUND_TRIPS)
    yield round_trip_limit(watcher.advance)
    for size, count in FSYNCS.items():
        watcher.began(f"fsyncs of {size:,} bytes", count)
        yield fsync_limit(folder, size, watcher.advance)


def table_of_limits(limits: Sequence[Limit]) -> Table:
    table = Table(title="Milliseconds", title_justify="left")
    table.add_column("what")
    for share in PERCENTILES:
        table.add_column(f"p{share:g}", justify="right")
    table.add_column("longest", justify="right")
    for limit in limits:
        table.add_row(limit.what, *(f"{figure / 1_000:.2f}" for figure in limit.figures_us.values()))
    return table


def remarks_of_limits(limits: Sequence[Limit]) -> list[str]:
    """Return lines below the table."""
    found = [f"{limit.what}: {limit.note}" for limit in limits if limit.note]
    cores = [limit.figures_us["p99.9"] for limit in limits if limit.kind == "core"]
    if cores:
        found.append(
            f"Of calls to a server that keeps its core busy one in 1,000 waits {max(cores) / 1_000:.1f} ms for the"
            " machine alone, when it falls to the worst core; the store that is measured comes on top."
        )
    return found
