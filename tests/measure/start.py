"""python -m tests.measure.start: the time until a store is ready, and the memory of its processes at rest.

A store is started on a new folder, ``--times`` times for each number of servers.  The time counts from the command to
its ready line.  Memory (VmRSS) is read when the spare process is running, too.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final

import click

from columnar.roles.regionserver_process import SPARE
from tests.support.cluster_process import children, shown_as, until
from tests.support.standalone_store import ENVIRONMENT

ROOT: Final = Path(__file__).parents[2]


def memory_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def start(servers: int) -> tuple[float, list[tuple[str, float]]]:
    """Start a store; return the seconds until it is ready, and its processes with their megabytes."""
    command = [sys.executable, "-m", "columnar", "standalone", "--servers", str(servers), "--port", "0"]
    with tempfile.TemporaryDirectory(prefix="columnar-start-") as folder:
        began_s = time.monotonic()
        process = subprocess.Popen(
            [*command, "--web-port", "-1", "--data", f"{folder}/data"],
            cwd=ROOT,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("columnar ready"), "it did not start"
            took_s = time.monotonic() - began_s
            if servers > 1:
                until(lambda: SPARE in map(shown_as, children(process.pid)))
            pids = [process.pid, *children(process.pid)]
            return took_s, [(shown_as(pid), memory_mb(pid)) for pid in pids]
        finally:
            process.terminate()
            process.wait()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--servers", default="1,2,3", show_default=True, help="Stores of so many servers.")
@click.option("--times", default=5, show_default=True, type=click.IntRange(1))
def main(servers: str, times: int) -> None:
    """Time the start of a store, and look at the memory of its processes at rest."""
    for count in map(int, servers.split(",")):
        found = [start(count) for _ in range(times)]
        seconds = sorted(took for took, _ in found)
        click.echo(f"--servers {count}: ready after {median(seconds):.2f} s (median), {seconds[-1]:.2f} s (longest)")
        click.echo("  " + ", ".join(f"{name} {size:.0f} MB" for name, size in found[-1][1]))


if __name__ == "__main__":
    main()
