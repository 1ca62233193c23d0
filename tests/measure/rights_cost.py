"""The processor time of a get at a store that checks rights, beside one that does not, by turns.

    python -m tests.measure.rights_cost [--rounds 9] [--gets 30000]

One client reads rows of 100 bytes over the Unix socket; with rights on it is root, whose rights are looked up as any
user's.  The time is the store's, in microseconds a get; ``paired`` is the median of the rounds' ratios.  Compile first
(``make compile``).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

from columnar.client import Connection
from gauge.machine import machine, now

ROWS: Final = 100
GOAL: Final = 1.05
STOP_S: Final = 60.0
_TICKS_S: Final = os.sysconf("SC_CLK_TCK")


@contextmanager
def client(*flags: str) -> Iterator[tuple[int, Any]]:
    """Yield a store's process and a client."""
    with tempfile.TemporaryDirectory(prefix="columnar-rights-") as folder, ExitStack() as stack:
        path = f"{folder}/clients"
        options = [
            "--data",
            f"{folder}/data",
            "--port",
            "0",
            "--web-port",
            "-1",
            "--socket",
            path,
            "--log-level",
            "error",
        ]
        command = [sys.executable, "-m", "columnar", "standalone", *options, *flags]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        stack.callback(process.wait, STOP_S)
        stack.callback(process.terminate)
        assert process.stdout is not None, "it is a pipe"
        process.stdout.readline()
        with Connection(unix_socket=path) as connection:
            connection.create_table("t", {"a": {}})
            for row in range(ROWS):
                connection.table("t").put(b"%03d" % row, {b"a:1": b"v" * 100})
            yield process.pid, connection.client


def used_s(pid: int) -> float:
    """Return the processor time that the process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_S


def microseconds_per_get(pid: int, get: Any, gets: int) -> float:
    before_s = used_s(pid)
    for number in range(gets):
        get(b"t", b"%03d" % (number % ROWS), b"a:1", {})
    return (used_s(pid) - before_s) / gets * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="of both stores")
    parser.add_argument("--gets", type=int, default=30_000, help="in a round, of each store")
    given = parser.parse_args()
    with client() as off, client("--rights", "on") as on:
        sides = {"off": off, "on": on}
        found: dict[str, list[float]] = {name: [] for name in sides}
        for number in range(-1, given.rounds):  # the first round warms up
            for name in sorted(sides, reverse=number % 2 == 0):
                pid, calls = sides[name]
                us = microseconds_per_get(pid, calls.get, given.gets)
                if number >= 0:
                    found[name].append(us)
    print(f"{now()}, {machine()}")
    for name, values in found.items():
        print(f"rights {name:3}  {median(values):6.2f} us a get  ({min(values):.2f} to {max(values):.2f})")
    ratio = median(found["on"]) / median(found["off"])
    paired = median(one / other for one, other in zip(found["on"], found["off"], strict=True))
    print(f"ratio {ratio:.3f}, paired {paired:.3f}; at most {GOAL}: {'met' if ratio <= GOAL else 'missed'}")


if __name__ == "__main__":
    main()
