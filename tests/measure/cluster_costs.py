"""The processor time of a request in a cluster of two servers, in two checkouts beside each other.

    python -m tests.measure.cluster_costs --base CHECKOUT [--servers 2] [--rounds 3] [--seconds 3] [--connections 1,64]
        [--workloads NAME,...]

CHECKOUT is a source tree of Columnar from before, whose modules are compiled (``make compile``) as those of this one.
Each tree serves a store of its own; the load of ``columnar bench run`` takes turns between them.  The time is that of
the supervisor and all servers together, in microseconds for a unit of work; the ratio is the median of the rounds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from columnar.bench.address import Endpoint, parse_endpoint
from columnar.bench.commands import measured, progress_bar
from columnar.bench.measuring import Line, Plan, measure
from columnar.bench.report import sides_of
from columnar.bench.workloads import STANDARD
from gauge.machine import machine, now
from tests.support.cluster_process import children

HERE: Final = Path(__file__).parents[2]
GOAL: Final = 1.03
STOP_S: Final = 60.0


@contextmanager
def store(tree: Path, servers: int) -> Iterator[tuple[Endpoint, int]]:
    """Yield the endpoint and the supervisor's process of a store that runs the program of ``tree``."""
    with tempfile.TemporaryDirectory(prefix="columnar-costs-") as data:
        options = ["--data", data, "--servers", str(servers), "--port", "0", "--web-port", "-1", "--log-level", "error"]
        command = [sys.executable, "-m", "columnar", "standalone", *options]
        process = subprocess.Popen(command, cwd=tree, env=_environment(tree), stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None, "it is a pipe"
            said = dict(word.split("=", 1) for word in process.stdout.readline().split() if "=" in word)
            if not any(map(_is_compiled, [process.pid, *children(process.pid)])):
                raise SystemExit(f"the modules of {tree} are not compiled: 'make compile' there")
            yield parse_endpoint(said["store"]), process.pid
        finally:
            process.terminate()
            process.wait(STOP_S)


def _is_compiled(pid: int) -> bool:
    return f"{os.sep}_compiled{os.sep}" in Path(f"/proc/{pid}/maps").read_text()


def _environment(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(tree), "COLUMNAR_COMPILED": ""}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--connections", default="1,64")
    parser.add_argument("--workloads", default=",".join(STANDARD))
    given = parser.parse_args()
    workloads = tuple(STANDARD[name] for name in given.workloads.split(","))
    connections = tuple(map(int, given.connections.split(",")))
    plan = Plan(workloads, connections, given.rounds, given.seconds, 1, 20_000)
    lines: list[Line] = []
    with ExitStack() as stack:
        stores = [stack.enter_context(store(tree, given.servers)) for tree in (HERE, given.base.resolve())]
        endpoints, pids = [one for one, _ in stores], [(pid,) for _, pid in stores]
        with progress_bar() as bar:
            began = bar.of_runs(len(workloads) * len(connections) * given.rounds * 2)
            take = partial(measure, endpoints, plan, began=began, servers=pids)
            measured(endpoints, pids, plan, bar, lines, take, keep=False, reuse=False)
    print(f"{now()}, {machine()}, {given.servers} servers")
    for line in lines:
        workload, count, (here, base) = sides_of(line)
        ratio = median(a / b for a, b in zip(here.server_us, base.server_us, strict=True))
        verdict = "" if ratio <= GOAL else f"  over {GOAL}"
        figures = f"{median(base.server_us):9.1f} us before {median(here.server_us):9.1f} us now"
        print(f"{workload.title:40} {count:4} connections {figures}  {ratio:.3f}{verdict}")


if __name__ == "__main__":
    main()
