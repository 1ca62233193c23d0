"""What clients that call the owners of rows themselves save, beside clients whose calls are forwarded.

    python -m tests.measure.routing_costs [--servers 3] [--rounds 3] [--seconds 3]

Starts a store of its own with a table of REGIONS regions.  Processes of clients with threads, each with a connection of
``columnar.client``, make calls in closed loops; the two kinds of clients take turns.  The machine's cores are shared by
servers and clients, so the processor time for a call says more than the rate: that of the busiest server, of all
servers, and of the clients.  Exits with 1 if routing takes more of the busiest server than MOST_RATIO times of what
forwarding takes, for single rows.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from statistics import median
from typing import Any, Final

from columnar.client import Connection
from tests.support.cluster_process import ClusterProcess

REGIONS: Final = 6
ROWS: Final = 6_000
ROWS_OF_BATCH: Final = 60
ROWS_OF_SCAN: Final = 2_000
PROCESSES: Final = 2
THREADS: Final = 8
TIMEOUT_MS: Final = 30_000
TABLE: Final = b"routed"
MOST_RATIO: Final = 0.9
HEAD: Final = (
    "us for each unit, of clients that do not route and of clients that do: the busiest server, all servers, the\n"
    "clients; then the ratio of the busiest server, and units per second"
)
TICKS: Final = os.sysconf("SC_CLK_TCK")

Work = Callable[[Any, random.Random], int]  # a call; returns the units that it did


def row(number: int) -> bytes:
    return b"%06d" % number


def get(table: Any, rng: random.Random) -> int:
    assert table.row(row(rng.randrange(ROWS)))
    return 1


def put(table: Any, rng: random.Random) -> int:
    table.put(row(rng.randrange(ROWS)), {b"f:put": b"x" * 100})
    return 1


def read_batch(table: Any, rng: random.Random) -> int:
    return len(table.rows([row(rng.randrange(ROWS)) for _ in range(ROWS_OF_BATCH)]))


def write_batch(table: Any, rng: random.Random) -> int:
    with table.batch() as batch:
        for _ in range(ROWS_OF_BATCH):
            batch.put(row(rng.randrange(ROWS)), {b"f:put": b"x" * 100})
    return ROWS_OF_BATCH


def scan(table: Any, rng: random.Random) -> int:
    start = rng.randrange(ROWS - ROWS_OF_SCAN)
    return sum(1 for _ in table.scan(row_start=row(start), row_stop=row(start + ROWS_OF_SCAN)))


WORKS: Final[dict[str, Work]] = {
    "get a row": get,
    "put a row": put,
    f"read {ROWS_OF_BATCH} rows, each": read_batch,
    f"write {ROWS_OF_BATCH} rows, each": write_batch,
    f"scan {ROWS_OF_SCAN:,} rows, each": scan,
}
OF_ROWS: Final = ("get a row", "put a row")


def run_clients(pipe: Pipe, port: int, work: str, seed: int, *, routing: bool, seconds: float) -> None:
    """Run the threads of one process; sends the units that they did and the processor time that they took."""
    connections = [Connection("127.0.0.1", port, timeout=TIMEOUT_MS, routing=routing) for _ in range(THREADS)]
    counts = [0] * THREADS
    for connection in connections:
        WORKS[work](connection.table(TABLE), random.Random(seed))  # locations and links are there
    pipe.send("ready")
    pipe.recv()
    until, begun = time.monotonic() + seconds, time.process_time()

    def loop(n: int) -> None:
        table, rng = connections[n].table(TABLE), random.Random(f"{seed} {n}")
        while time.monotonic() < until:
            counts[n] += WORKS[work](table, rng)

    threads = [threading.Thread(target=loop, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pipe.send((sum(counts), time.process_time() - begun))
    for connection in connections:
        connection.close()


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one round, for each unit."""

    rate: float
    busiest_us: float
    servers_us: float
    clients_us: float


def measure(store: ClusterProcess, work: str, seed: int, *, routing: bool, seconds: float) -> Cost:
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for n in range(PROCESSES):
        pipe, theirs = context.Pipe()
        options = {"routing": routing, "seconds": seconds}
        args = (theirs, store.port, work, seed * 100 + n)
        processes.append(context.Process(target=run_clients, args=args, kwargs=options))
        pipes.append(pipe)
        processes[-1].start()
    for pipe in pipes:
        assert pipe.recv() == "ready"
    pids = store.servers() if store.count > 1 else [store.pid]
    before = [cpu_s(pid) for pid in pids]
    for pipe in pipes:
        pipe.send("go")
    found = [pipe.recv() for pipe in pipes]
    spent = [cpu_s(pid) - earlier for pid, earlier in zip(pids, before, strict=True)]
    for process in processes:
        process.join()
    units = sum(count for count, _ in found)
    of_clients = sum(taken for _, taken in found)
    return Cost(units / seconds, *(1e6 * total / units for total in (max(spent), sum(spent), of_clients)))


def fill(store: ClusterProcess) -> None:
    with store.connection() as connection:
        splits = [row(ROWS * n // REGIONS) for n in range(1, REGIONS)]
        connection.create_table(TABLE, {"f": {}}, splits=splits)
        with connection.table(TABLE).batch(batch_size=1_000) as batch:
            for number in range(ROWS):
                batch.put(row(number), {b"f:q": b"v" * 100})


def report(work: str, forwarded: list[Cost], routed: list[Cost]) -> float:
    """Print a row; returns the ratio of the busiest server's time."""

    def both(field: str, form: str) -> str:
        return " ".join(format(median(getattr(one, field) for one in costs), form) for costs in (forwarded, routed))

    ratio = median(one.busiest_us / other.busiest_us for one, other in zip(routed, forwarded, strict=True))
    times = " ".join(both(field, "9.1f") for field in ("busiest_us", "servers_us", "clients_us"))
    print(f"{work:26} {times}   {ratio:5.2f}   {both('rate', '9,.0f')}", flush=True)
    return ratio


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    given = parser.parse_args()
    missed = False
    with (
        tempfile.TemporaryDirectory(prefix="routing") as folder,
        ClusterProcess(Path(folder) / "data", given.servers) as store,
    ):
        fill(store)
        print(HEAD)
        for work in WORKS:
            costs: dict[bool, list[Cost]] = {False: [], True: []}
            for n in range(given.rounds):
                for routing in (False, True) if n % 2 == 0 else (True, False):
                    costs[routing].append(measure(store, work, n, routing=routing, seconds=given.seconds))
            ratio = report(work, costs[False], costs[True])
            missed |= work in OF_ROWS and ratio > MOST_RATIO
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
