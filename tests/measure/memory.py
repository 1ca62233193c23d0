"""python -m tests.measure.memory: a store within a control group of so much memory, as a unit with MemoryMax has it.

    load   the workloads of ``columnar bench run``, again and again for --minutes: the store must not be ended, and must
           use what it was given
    gets   gets of whole rows, drawn evenly from a table of --rows rows of 8 KiB, with each amount of memory

The store is started with ``--memory`` of the group's limit less 5 % for the kernel's own.  Its files lie on the disk
under the temporary folder.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import click

from columnar.client import Connection
from columnar.limits import MIB
from columnar.memory_plan import parse_bytes, readable_bytes
from tests.support.control_group import ControlGroup, why_no_groups
from tests.support.standalone_store import ENVIRONMENT, PROGRAM, ROOT

KERNEL: Final = 0.05  # of a group: tables of pages, sockets
WORKLOADS: Final = "get-cell,get-row,put,increment,mixed,scan-rows,load"
SAMPLE_S: Final = 1.0
BENCH: Final = [sys.executable, "-m", "columnar", "bench", "run"]


class Store:
    """A store within a group, and the most of each part that was seen in use."""

    def __init__(self, group: ControlGroup, folder: Path, limit_bytes: int, *flags: str) -> None:
        self._group = group
        memory = f"{int(limit_bytes * (1 - KERNEL)) // MIB}MiB"
        command = [*PROGRAM, "--data", str(folder / "data"), "--port", "0", "--web-port", "-1", "--memory", memory]
        self.log = folder / "store.log"
        with self.log.open("a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                group.command([*command, *flags]),
                cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("columnar ready"):
            raise click.ClickException(f"the store did not start: {self.log.read_text()[-2_000:]}")
        self.address = line.split("store=")[1].split()[0]
        self.most: dict[str, int] = {}
        self.limits: dict[str, int] = {}
        self.resident_bytes = 0
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._sample, name="memory", daemon=True)
        self._watch.start()

    def _sample(self) -> None:
        connection = Connection.at(self.address, timeout=60_000)
        while not self._over.wait(SAMPLE_S):
            self.resident_bytes = max(self.resident_bytes, self._group.resident_bytes)
            try:
                parts = connection.status().memory
            except OSError:
                return  # it has ended: the caller says so
            for part in parts:
                name = part.name if isinstance(part.name, str) else part.name.decode()
                self.most[name] = max(self.most.get(name, 0), part.usedBytes)
                self.limits[name] = part.limitBytes
        connection.close()

    def requests(self) -> int:
        """Return the number of requests that the store has answered."""
        with closing(Connection.at(self.address, timeout=60_000)) as connection:
            return sum(connection.status().requests.values())

    def stop(self) -> int:
        """Stop the store; return its exit status."""
        self._over.set()
        self._watch.join()
        self.process.terminate()
        return self.process.wait()


@contextmanager
def store_within(folder: Path, limit_bytes: int, *flags: str) -> Iterator[tuple[Store, ControlGroup]]:
    with ControlGroup(limit_bytes) as group:
        store = Store(group, folder, limit_bytes, *flags)
        try:
            yield store, group
        finally:
            status = store.stop()
            click.echo(f"  ended with status {status}, killed for want of memory: {group.kills}")


def bench(address: str, *flags: str) -> list[str]:
    """Run a benchmark; return a line for each workload."""
    with tempfile.NamedTemporaryFile(suffix=".json") as figures:
        command = [*BENCH, address, "--json", figures.name, *flags]
        ran = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=False)
        if ran.returncode:
            raise click.ClickException(f"the benchmark ended with status {ran.returncode}")
        lines = json.loads(Path(figures.name).read_text())["lines"]
    return [_line(one["workload"], one["unit"], next(iter(one["endpoints"].values()))) for one in lines]


def _line(workload: str, unit: str, side: dict[str, Any]) -> str:
    latency = ", ".join(f"{name} {us / 1_000:,.1f} ms" for name, us in side["latency_us"].items())
    return f"{workload}: {side['rate']:,.0f} {unit}/s, {latency}"


def say_use(store: Store, group: ControlGroup) -> None:
    click.echo(
        f"  resident {store.resident_bytes / MIB:,.0f} MiB, with the kernel's cache {group.peak_bytes / MIB:,.0f}"
    )
    for name, limit in store.limits.items():
        click.echo(f"  {name:<16} {store.most[name] / MIB:>8,.1f} of {limit / MIB:>8,.1f} MiB")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Measure a store within a bound on its memory."""
    if why := why_no_groups():
        raise click.ClickException(why)


@main.command()
@click.option("--limits", default="512MiB,4GiB", show_default=True)
@click.option("--minutes", default=10.0, show_default=True, type=click.FloatRange(0.1))
@click.option("--rows", default=200_000, show_default=True, help="Of 8 KiB, of the data set.")
@click.option("--servers", default="1", show_default=True)
def load(limits: str, minutes: float, rows: int, servers: str) -> None:
    """Serve the benchmark's load for some minutes."""
    for limit in map(parse_bytes, limits.split(",")):
        click.echo(f"{readable_bytes(limit)}:")
        with tempfile.TemporaryDirectory(prefix="columnar-memory-") as made:
            with store_within(Path(made), limit, "--servers", servers) as (store, group):
                ends_s, rounds = time.monotonic() + minutes * 60, 0
                keeps = ["--keep"]
                while time.monotonic() < ends_s:
                    flags = ["-w", WORKLOADS, "-c", "64", "--rounds", "1", "--rows", str(rows), *keeps]
                    bench(store.address, *flags)
                    keeps, rounds = ["--keep", "--reuse"], rounds + 1
                click.echo(f"  {rounds} rounds of {WORKLOADS} in {minutes:g} minutes")
                say_use(store, group)
            if group_kills := store.process.returncode:
                raise click.ClickException(f"the store ended with {group_kills}: {store.log.read_text()[-2_000:]}")


@main.command()
@click.option("--limits", default="512MiB,2GiB,6GiB,14GiB", show_default=True)
@click.option("--rows", default=1_250_000, show_default=True, help="Of 8 KiB: 10 GB.")
@click.option("--connections", default="64", show_default=True)
@click.option("--seconds", default=60.0, show_default=True)
@click.option("--folder", type=click.Path(path_type=Path), help="Keeps the table here, or takes that of a run before.")
def gets(limits: str, rows: int, connections: str, seconds: float, folder: Path | None) -> None:
    """Get rows of a large table with each amount of memory; once for the caches, and once for the figures."""
    with tempfile.TemporaryDirectory(prefix="columnar-memory-") as made:
        folder = folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        reuse = (folder / "data").exists()
        for limit in map(parse_bytes, limits.split(",")):
            with store_within(folder, limit) as (store, group):
                flags = ["--rows", str(rows), "--rounds", "1", "-c", connections, "--keep"]
                kept = ["--reuse"] if reuse else []
                bench(store.address, "-w", "get-any-row", "--seconds", str(seconds), *kept, *flags)
                reuse = True
                answered, read = store.requests(), group.read_bytes
                found = bench(store.address, "-w", "get-any-row", "--seconds", str(seconds), "--reuse", *flags)
                each = (group.read_bytes - read) / (store.requests() - answered)
                click.echo(f"{readable_bytes(limit)}: {'; '.join(found)}; {each / 1_024:,.1f} KiB read from disk each")
                say_use(store, group)


if __name__ == "__main__":
    main()
