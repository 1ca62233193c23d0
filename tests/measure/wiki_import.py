"""The import of a wiki in this checkout and in an older one, in turn: seconds, and CPU of each process.

    python -m tests.measure.wiki_import --old FOLDER [--pages 3000] [--rounds 1] [--dump FILE ...]

Each run starts a store of its checkout with an empty folder, runs ``wikka synth`` (or ``wikka import FILE``), waits
until the triggers have delivered all, and then runs ``wikka check``.  ``wall`` ends when the triggers are done.  Fails
if a check finds a difference, or if this checkout is not ``--at-least`` times as quick.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from columnar.client import Connection
from gauge.processes import cpu_s_of
from tests.support.ports import free_port

HERE = Path(__file__).parents[2]
SETTLE_MS = 5_000
READY_S = 30.0
STORE = ("--web-port", "-1", "--trigger-modules", "wikka_port.triggers", "--log-level", "warning")


@dataclass(frozen=True, slots=True)
class Figures:
    checkout: str
    wall_s: float
    writing_s: float  # of it until the importer ended
    store_s: float  # CPU
    worker_s: float
    importer_s: float
    said: str
    differences: str

    def line(self) -> str:
        cpu = f"store {self.store_s:6.1f}  worker {self.worker_s:6.1f}  importer {self.importer_s:6.1f}"
        wall = f"{self.checkout:4} wall {self.wall_s:7.1f} s (importer {self.writing_s:7.1f})"
        return f"{wall}  CPU s: {cpu}  {self.differences}"


class Checkout:
    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder
        python = folder / ".venv" / "bin" / "python"
        self._python = str(python) if python.exists() else sys.executable

    def command(self, *arguments: str) -> list[str]:
        return [self._python, *(arguments if arguments[0] == "-c" else ("-m", *arguments))]

    def options(self) -> dict[str, object]:
        return {"cwd": self._folder, "env": {**os.environ, "PYTHONPATH": str(self._folder)}}

    @contextmanager
    def store(self, data: Path) -> Iterator[tuple[int, int]]:
        """Yield port and process id of a store of this checkout, which ends with this process, except after SIGKILL."""
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        port = free_port()
        where = ["--data", str(data), "--port", str(port)]
        command = self.command("columnar", "standalone", *where, *STORE)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **self.options()) as process:  # type: ignore[call-overload]
            assert process.stdout is not None, "it was started with a pipe"
            try:
                line = process.stdout.readline()
                if not line.startswith("columnar ready "):
                    raise SystemExit(f"the store of {self._folder} did not start: {line!r}")
                yield port, process.pid
            finally:
                process.terminate()
                process.wait()


def measure(checkout: Checkout, work: list[str], folder: Path) -> Figures:
    data = folder / "data"
    with checkout.store(data) as (port, pid):
        store = ["--store", f"127.0.0.1:{port}"]
        begun, before = time.monotonic(), _cpu_of(pid)
        importer_s, said = _run(checkout, ["wikka_port", *work, *store])
        writing_s = time.monotonic() - begun
        _wait_for_triggers(port)
        wall_s, after = time.monotonic() - begun, _cpu_of(pid)
        _, checked = _run(checkout, ["wikka_port", "check", *store], allowed=(0, 1))
    shutil.rmtree(data)
    store_s, worker_s = after[0] - before[0], after[1] - before[1]
    differences = checked.strip().splitlines()[-1]
    return Figures(checkout.name, wall_s, writing_s, store_s, worker_s, importer_s, said, differences)


def _cpu_of(store: int) -> tuple[float, float]:
    """Return the processor time of the store, and of its workers."""
    children = [int(pid) for pid in Path(f"/proc/{store}/task/{store}/children").read_text().split()]
    *workers, alone = cpu_s_of([*children, store])
    return alone, sum(workers)


def _run(checkout: Checkout, arguments: list[str], allowed: tuple[int, ...] = (0,)) -> tuple[float, str]:
    """Run a command; return its CPU seconds and its output."""
    process = subprocess.Popen(  # type: ignore[call-overload]
        checkout.command(*arguments), stdout=subprocess.PIPE, text=True, **checkout.options()
    )
    said: str = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in allowed:
        raise SystemExit(f"{' '.join(arguments)} ended with status {process.returncode}: {said}")
    return used.ru_utime + used.ru_stime, said


def _wait_for_triggers(port: int) -> None:
    connection = Connection("127.0.0.1", port)
    while not connection.triggers.wait(timeout_ms=SETTLE_MS):
        pass
    connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--old", type=Path, help="the other checkout, with an environment in .venv; none: this one alone"
    )
    parser.add_argument("--pages", type=int, default=3_000, help="of the synthetic wiki; 0: only the dumps")
    parser.add_argument("--dump", type=Path, action="append", default=[], help="a dump to import; may be repeated")
    parser.add_argument("--rounds", type=int, default=1, help="each of old and new, in turn")
    parser.add_argument(
        "--at-least", type=float, default=0.0, help="fail where this checkout is not so many times as quick"
    )
    given = parser.parse_args()
    works = [["synth", "--pages", str(given.pages)]] if given.pages else []
    works += [["import", str(dump.resolve())] for dump in given.dump]
    checkouts = [Checkout("old", given.old.resolve())] if given.old else []
    checkouts.append(Checkout("new", HERE))
    wrong = [problem for work in works for problem in _compare(checkouts, work, given.rounds, given.at_least)]
    raise SystemExit("; ".join(wrong) or None)


def _compare(checkouts: list[Checkout], work: list[str], rounds: int, at_least: float) -> list[str]:
    """Print a line for each run; return the faults."""
    print(" ".join(work), flush=True)
    wrong: list[str] = []
    walls: dict[str, list[float]] = {one.name: [] for one in checkouts}
    for _ in range(rounds):
        for checkout in checkouts:
            with tempfile.TemporaryDirectory(prefix="columnar-wiki-import-") as folder:
                found = measure(checkout, work, Path(folder))
            print("  " + found.line(), flush=True)
            walls[checkout.name].append(found.wall_s)
            if found.differences != "0 differences":
                wrong.append(f"{checkout.name}: {found.differences}")
    if "old" in walls:
        times = statistics.median(walls["old"]) / statistics.median(walls["new"])
        print(f"  {times:.2f} times as quick", flush=True)
        if times < at_least:
            wrong.append(f"{times:.2f} times as quick, not {at_least}")
    return wrong


if __name__ == "__main__":
    main()
