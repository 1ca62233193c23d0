"""What change streams cost writers, and how fast they are, in one run on one store.

    python -m tests.measure.stream_costs [--rounds 3] [--seconds 4] [--readers 0 1 10 200 1000] [--rate 500]
                                         [--servers 1]

    writers   puts of 100 bytes on 16 connections as fast as they go: into a plain table, one with CHANGE_LOG, one with
              a reader, and one with CHANGE_LOG_IMAGES; and the store's processor time for a put
    readers   puts at a steady rate (0: as fast as they go), with so many readers of the table: their pace, and the
              store's processor time
    latency   from before a put at 1,000 a second until one reader has its change
    backlog   changes of rows that change often, read singly and consolidated

With --servers the store has several, and most connections reach one that forwards their calls to the region's owner.
Readers and writers are processes of their own, so with two cores they take processor time from the store: compile first
(``make compile``), and compare within a run only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

from columnar.bench.calls import mutation
from columnar.client import Connection
from columnar.wire.idl import columnar
from gauge.machine import machine, now
from tests.measure.http_costs import used_s
from tests.proofs.region_clients import AsyncConnection, quantile
from tests.support.cluster_process import ClusterProcess
from tests.support.standalone_store import StoreProcess

CONNECTIONS: Final = 16
VALUE: Final = b"v" * 100
LATENCY_RATE: Final = 1_000.0
BACKLOG_ROWS: Final = 2_000
KEPT: Final = {"CHANGE_LOG": "36000"}
TABLES: Final[dict[str, dict[str, str]]] = {
    "plain": {},
    "CHANGE_LOG": KEPT,
    "one reader": KEPT,
    "CHANGE_LOG_IMAGES": {**KEPT, "CHANGE_LOG_IMAGES": "true"},
}


# --- processes beside the store ------------------------------------------------------------------------------


async def write(port: int, table: bytes, seconds: float, rate: float) -> dict[str, float]:
    """Put on all connections, as fast as it goes or ``rate`` times a second; return rate and latencies."""
    begun, taken_s = time.monotonic(), list[float]()

    async def writer(number: int) -> None:
        connection = AsyncConnection(lambda: port)
        for n in range(1 << 60):
            due_s = begun + (n * CONNECTIONS + number) / rate if rate else 0.0
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            at_s = time.monotonic()
            if at_s > begun + seconds:
                break
            row = b"%d-%06d" % (number, n % 5_000)
            await connection.ask("mutateRow", table, row, [mutation(b"f:v", VALUE)])
            taken_s.append(time.monotonic() - at_s)
        connection.close()

    await asyncio.gather(*(writer(number) for number in range(CONNECTIONS)))
    ms = [quantile(taken_s, share) * 1e3 for share in (0.5, 0.99)]
    return {"rate": len(taken_s) / seconds, "p50": ms[0], "p99": ms[1]}


async def read(port: int, table: bytes, seconds: float, count: int) -> dict[str, float]:
    """Follow the table on so many connections; say so when all have begun."""
    replies, begun = 0, 0
    until_s = time.monotonic() + seconds

    async def reader() -> None:
        nonlocal replies, begun
        connection, position = AsyncConnection(lambda: port), b""
        while time.monotonic() < until_s:
            request = columnar.ChangesRequest(position=position, start="now", waitMs=500 if position else 0)
            reply = await connection.ask("columnarChanges", table, request)
            if not position:
                begun += 1
                if begun == count:
                    print("ready", flush=True)
            position = reply.position
            replies += bool(reply.events)
        connection.close()

    await asyncio.gather(*(reader() for _ in range(count)))
    return {"rate": replies / max(1, count) / seconds}


class Beside:
    """A reader or writer process."""

    def __init__(self, role: str, port: int, table: str, seconds: float, number: float) -> None:
        command = [sys.executable, "-m", __spec__.name, "--role", role, str(port), table, str(seconds), str(number)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def until_ready(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == "ready"

    def result(self) -> dict[str, float]:
        said, _ = self._process.communicate()
        assert self._process.returncode == 0
        found: dict[str, float] = json.loads(said.splitlines()[-1])
        return found


# --- measures ------------------------------------------------------------------------------------------------


def used_by(store: StoreProcess) -> float:
    """Return the processor time in seconds that the store, or its servers, have taken."""
    return sum(used_s(pid) for pid in (store.servers() if isinstance(store, ClusterProcess) else (store.pid,)))


def writers(store: StoreProcess, rounds: int, seconds: float) -> None:
    rates: dict[str, list[float]] = {name: [] for name in TABLES}
    costs: dict[str, list[float]] = {name: [] for name in TABLES}  # in us
    for number in range(rounds):
        for name in sorted(TABLES, reverse=number % 2 == 0):
            table = name.replace(" ", "_")
            reader = Beside("read", store.port, table, seconds + 3, 1) if name == "one reader" else None
            if reader is not None:
                reader.until_ready()
            before_s = used_by(store)
            rate = Beside("write", store.port, table, seconds, 0).result()["rate"]
            rates[name].append(rate)
            costs[name].append((used_by(store) - before_s) * 1e6 / (rate * seconds))
            if reader is not None:
                reader.result()
    for name, found in rates.items():
        share = median(one / other for one, other in zip(rates["CHANGE_LOG"], found, strict=True))
        cost = median(one / other for one, other in zip(costs[name], costs["CHANGE_LOG"], strict=True))
        print(
            f"{name:18} {median(found):8,.0f} puts/s; CHANGE_LOG has {share:.3f} times as many; "
            f"{median(costs[name]):.1f} us of the store, {cost:.3f} times CHANGE_LOG's"
        )


def readers(store: StoreProcess, counts: list[int], seconds: float, rate: float) -> None:
    for count in counts:
        beside = Beside("read", store.port, "CHANGE_LOG", seconds + 12, count) if count else None
        if beside is not None:
            beside.until_ready()
        before_s = used_by(store)
        found = Beside("write", store.port, "CHANGE_LOG", seconds, rate).result()
        share = (used_by(store) - before_s) / seconds
        pace = f"; each reader {beside.result()['rate']:.1f} replies/s" if beside is not None else ""
        latency = f"p50 {found['p50']:.1f} ms, p99 {found['p99']:.1f} ms"
        print(f"{count:5} readers: {found['rate']:,.0f} puts/s, {latency}; store {share:.0%} of a core{pace}")


def latency(connection: Connection, store: StoreProcess, seconds: float) -> None:
    """Put at LATENCY_RATE in this process; a thread would share its interpreter lock."""

    async def trial() -> list[float]:
        writer, reader = AsyncConnection(lambda: store.port), AsyncConnection(lambda: store.port)
        sent: dict[bytes, float] = {}
        taken: list[float] = []
        position = (await reader.ask("columnarChanges", b"latency", columnar.ChangesRequest())).position

        async def follow() -> None:
            nonlocal position
            while True:
                request = columnar.ChangesRequest(position=position, waitMs=1_000)
                reply = await reader.ask("columnarChanges", b"latency", request)
                at_s, position = time.monotonic(), reply.position
                found = [row for row in list(sent) if row in reply.events]
                taken.extend(at_s - sent.pop(row) for row in found)

        following = asyncio.ensure_future(follow())
        begun = time.monotonic()
        for n in range(int(seconds * LATENCY_RATE)):
            await asyncio.sleep(max(0.0, begun + n / LATENCY_RATE - time.monotonic()))
            row = b"row-%09d" % n
            sent[row] = time.monotonic()
            await writer.ask("mutateRow", b"latency", row, [mutation(b"f:v", VALUE)])
        await asyncio.sleep(0.5)
        following.cancel()
        await asyncio.wait([following])
        writer.close()
        reader.close()
        assert not sent, "every change came"
        return taken

    connection.create_table("latency", {"f": {}}, attributes=KEPT)
    taken = asyncio.run(trial())
    ms = [quantile(taken, share) * 1e3 for share in (0.5, 0.99)]
    print(f"latency of {len(taken):,} changes: p50 {ms[0]:.2f} ms, p99 {ms[1]:.2f} ms")


def backlog(connection: Connection, changes: int, rounds: int) -> None:
    connection.create_table("backlog", {"f": {}}, attributes=KEPT)
    table = connection.table("backlog")
    stream = connection.changes("backlog")
    stream.poll(0)
    for n in range(changes // BACKLOG_ROWS):
        with table.batch() as batch:
            for row in range(BACKLOG_ROWS):
                batch.put(b"row%06d" % row, {b"f:v": b"%06d" % n + VALUE})
    rates: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(rounds):
        for merged in rates:
            begun = time.monotonic()
            one = connection.changes("backlog", start=stream.position, consolidate=merged, follow=False)
            count = sum(1 for _ in one)
            rates[merged].append(changes / (time.monotonic() - begun))
            assert merged or count == changes
    singly, merged_rate = median(rates[False]), median(rates[True])
    share = median(one / other for one, other in zip(rates[False], rates[True], strict=True))
    print(f"backlog: {singly:,.0f} changes/s singly, {merged_rate:,.0f} consolidated: {share:.2f} of the time")


def _store_of(folder: Path, servers: int) -> StoreProcess:
    if servers > 1:
        return ClusterProcess(folder, servers, "--log-level", "error")
    return StoreProcess(folder, "--log-level", "error", is_forked=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--readers", type=int, nargs="*", default=[0, 1, 10, 200, 1_000])
    parser.add_argument("--rate", type=float, default=500.0, help="puts a second beside the readers")
    parser.add_argument("--changes", type=int, default=200_000, help="of the backlog")
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--role", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.role is not None:
        role, port, table, seconds, number = given.role
        work: Any = (
            write(int(port), table.encode(), float(seconds), float(number))
            if role == "write"
            else read(int(port), table.encode(), float(seconds), int(float(number)))
        )
        print(json.dumps(asyncio.run(work)), flush=True)
        return
    print(f"{now()}, {machine()}", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="columnar-streams-") as folder,
        _store_of(Path(folder) / "data", given.servers) as store,
    ):
        connection = store.connection()
        for name, attributes in TABLES.items():
            connection.create_table(name.replace(" ", "_"), {"f": {}}, attributes=attributes)
        writers(store, given.rounds, given.seconds)
        readers(store, given.readers, given.seconds, given.rate)
        latency(connection, store, given.seconds)
        backlog(connection, given.changes, given.rounds)
        connection.close()


if __name__ == "__main__":
    main()
