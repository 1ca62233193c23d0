"""The time in which rows of a store with many open regions have no answer: after kill -9 of a server, and at a stop.

    python -m tests.measure.failover --regions 1000,3000 --servers 3

Each region has a row and is open.  Then one server is killed; clients request a row of each region, all at once, until
each region has answered.  A second kill follows, because the remaining servers then have more than their share of
regions.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from columnar.wire.idl import hbase
from tests.support.cluster_process import ClusterProcess, Rows
from tests.support.readme_blocks import await_that

CLIENTS = 8
BATCH = 100
TABLE = b"many"


def rows_of(regions: int) -> list[bytes]:
    return [b"%06d" % number for number in range(regions)]


def made(store: ClusterProcess, regions: int) -> float:
    """Make the table; return the seconds until each region has its row."""
    connection = store.connection()
    rows, begun = rows_of(regions), time.monotonic()
    connection.create_table(TABLE, {"f": {}}, splits=rows[1:])
    connection.close()
    with store.rows() as client:
        for at in range(0, regions, BATCH):
            batch = [
                hbase.BatchMutation(row=row, mutations=[hbase.Mutation(column=b"f:q", value=row)])
                for row in rows[at : at + BATCH]
            ]
            client.client.mutateRows(TABLE, batch, {})
    return time.monotonic() - begun


def answered(store: ClusterProcess, rows: list[bytes], begun: float) -> list[float]:
    """Return for each row the seconds from ``begun`` to its first answer."""

    def ask(part: list[bytes]) -> list[float]:
        found = []
        client = Rows(store.port)
        for row in part:
            while True:
                try:
                    value = client.get(TABLE, row)
                    break
                except Exception:  # noqa: BLE001 - a connection that is lost with its server has many errors
                    client.close()
                    client = Rows(store.port)
            assert value == row, "an acknowledged row is gone"
            found.append(time.monotonic() - begun)
        client.close()
        return found

    with ThreadPoolExecutor(CLIENTS) as pool:
        return sorted(at for part in pool.map(ask, [rows[n::CLIENTS] for n in range(CLIENTS)]) for at in part)


def cpu_s(pid: int) -> float:
    """Return the processor time of all threads of a process; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> float:
    """Return the memory of a process that no file backs."""
    found = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("RssAnon")]
    return int(found[0].split()[1]) / 1024 if found else 0.0


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


class Spent:
    """The processor time of the master, and of the servers together, from now on.

    On a machine that does other work wall times say little, but processor times show the store's own work.
    """

    def __init__(self, store: ClusterProcess) -> None:
        self._store = store
        self._before = {pid: cpu_s(pid) for pid in store.family()}

    def __str__(self) -> str:
        master = self._store.pid
        spent = {pid: cpu_s(pid) - self._before.get(pid, 0.0) for pid in self._store.family()}
        of_master = spent.pop(master, 0.0)
        return f"CPU {of_master:.2f} s of the master, {sum(spent.values()):.2f} s of the servers"


def measured(regions: int, servers: int, folder: Path) -> None:
    with ClusterProcess(folder / f"data-{regions}", servers) as store:
        took = made(store, regions)
        rows = rows_of(regions)
        print(f"{regions} regions on {servers} servers: made and written in {took:.1f} s", flush=True)
        for which in ("first", "second"):
            answered(store, rows, time.monotonic())  # all are open, or were
            victim = store.servers()[0]
            sizes = ", ".join(f"{memory_mib(pid):.0f} MiB, {descriptors(pid)} files" for pid in store.servers())
            print(f"  servers: {sizes}", flush=True)
            begun = time.monotonic()
            store.kill_server(0, signal.SIGKILL)
            spent = Spent(store)
            times = answered(store, rows, begun)
            half, whole = times[len(times) // 2], times[-1]
            print(f"  {which} kill: half of the rows after {half:.2f} s, all after {whole:.2f} s; {spent}", flush=True)
            await_that(lambda gone=victim: len(store.servers()) == servers and gone not in store.servers(), 60.0, str)
        begun = time.monotonic()
        status = store.stop()
        print(f"  stop in {time.monotonic() - begun:.1f} s, status {status}", flush=True)
        killed = store.log.read_text().count("does not stop; it is killed")
        if killed:
            print(f"  {killed} servers did not stop in time and were killed", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--regions", default="1000", help="numbers of regions, with commas")
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="for the data; default: a temporary one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="columnar-failover-", dir=given.folder) as folder:
        for regions in map(int, given.regions.split(",")):
            measured(regions, given.servers, Path(folder))


if __name__ == "__main__":
    main()
