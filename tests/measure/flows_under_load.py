"""Gets and puts while a trigger works off a backlog, beside the same load without it.

    python -m tests.measure.flows_under_load [--changes 200000] [--rounds 3] [--seconds 2] [--rows 20000] [--folder DIR]

A round writes the changes while the trigger is paused, measures gets and puts, resumes the trigger, measures gets and
puts again, and waits for the rest of the backlog without load.  The trigger yields one put for each change.  Prints
each round's figures and the medians; fails if gets or puts keep less than KEPT of their rate, or if the p99 of gets is
over GETS_P99_MS ("Done when" 3 of the design of flows).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import median

from benchmarks.flows_app import length_of
from columnar.bench.address import Endpoint
from columnar.bench.commands import progress_bar
from columnar.bench.dataset import TABLES
from columnar.bench.endpoint import prepare
from columnar.bench.generator import Outcome
from columnar.bench.measuring import Generators, Plan, generators
from columnar.bench.workloads import STANDARD, Workload
from columnar.client import Connection
from columnar.triggers.api import Change, Effect, Put
from gauge.histogram import percentiles_us
from gauge.machine import machine, now
from tests.support.standalone_store import StoreProcess

KEPT = 0.6
GETS_P99_MS = 15.0
CONNECTIONS = 16
OPERATIONS = {"gets": STANDARD["get-cell"], "puts": STANDARD["put"]}
MODULE = "tests.measure.flows_under_load"  # as the worker imports it; here it is __main__
SOURCE, TARGET, TRIGGER = b"changed", b"derived", "derive"
CALLS = "FLOWS_UNDER_LOAD_CALLS"  # in the worker's environment: the file that grows by a byte with each call
WAIT_S = 600.0
BATCH = 2_000


def derive(change: Change) -> Iterator[Effect]:
    os.write(_calls(), b".")  # the trigger's lag is exact only to a thousand changes
    yield Put(TARGET, change.row, {b"f:c": change.changes[0].value})


@cache
def _calls() -> int:
    return os.open(os.environ[CALLS], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


@dataclass(frozen=True)
class Side:
    """The figures of an operation, with or without a backlog."""

    rate: float
    p50_ms: float
    p99_ms: float
    longest_ms: float
    drained: float  # changes per second meanwhile
    is_valid: bool  # there was a backlog to the end, where there was to be one


def side_of(outcome: Outcome, drained: float, is_valid: bool) -> Side:
    found = percentiles_us(outcome.latencies_us)
    return Side(outcome.rate, found["p50"] / 1e3, found["p99"] / 1e3, found["max"] / 1e3, drained, is_valid)


class Measurement:
    def __init__(self, store: StoreProcess, pool: Generators, changes: int, seconds: float, rows: int) -> None:
        self._store = store
        self._endpoint = Endpoint("127.0.0.1", store.port)
        self._connection: Connection = store.connection()
        self._pool = pool
        self._changes = changes
        self._plan = Plan(tuple(OPERATIONS.values()), (CONNECTIONS,), 1, seconds, 1, rows)
        self._turns = 0
        self._due = 0  # changes written so far

    def prepare(self) -> None:
        with progress_bar() as bar:
            prepare(self._endpoint, TABLES, self._plan.rows, bar)
        for table in (SOURCE, TARGET):
            self._connection.admin.create_table(table, {b"f": {}})
        self._connection.triggers.add(TRIGGER, SOURCE, f"{MODULE}:derive", [b"f"], row=False)

    def round(self, number: int) -> dict[str, tuple[Side, Side]]:
        """Run a round; return for each operation the figures without and with a backlog."""
        triggers = self._connection.triggers
        triggers.pause(TRIGGER)
        self._write(number)
        quiet = {name: self._turn(workload) for name, workload in OPERATIONS.items()}
        triggers.resume(TRIGGER)
        busy = {name: self._turn(workload, beside=True) for name, workload in OPERATIONS.items()}
        left, begun = self._left(), time.monotonic()
        while not triggers.wait(TRIGGER, timeout_ms=10_000):
            if time.monotonic() - begun > WAIT_S:
                raise SystemExit(f"not delivered within {WAIT_S:.0f} s")
        seconds = time.monotonic() - begun
        print(f"round {number}: the last {left:,} changes without load: {left / max(seconds, 1e-9):,.0f}/s", flush=True)
        return {name: (quiet[name], busy[name]) for name in OPERATIONS}

    def _write(self, number: int) -> None:
        self._due += self._changes
        with self._connection.table(SOURCE).batch(batch_size=BATCH) as batch:
            for row in range(self._changes):
                batch.put(b"%08d" % row, {b"f:v": b"%d" % number})

    def _turn(self, workload: Workload, beside: bool = False) -> Side:
        self._turns += 1
        before, begun = self._left(), time.monotonic()
        outcome = self._pool.run_load(self._endpoint, workload, CONNECTIONS, self._plan, (), self._turns)
        seconds, after = time.monotonic() - begun, self._left()
        return side_of(outcome, (before - after) / seconds, after > 0 or not beside)

    def _left(self) -> int:
        return self._due - length_of(self._store.environment[CALLS])


def line(name: str, quiet: Side, busy: Side) -> str:
    valid = "" if busy.is_valid else "; NOT VALID: the backlog was gone before the turn's end, take more --changes"
    return (
        f"{name}: {quiet.rate:,.0f}/s, p50 {quiet.p50_ms:.2f}, p99 {quiet.p99_ms:.1f},"
        f" longest {quiet.longest_ms:.1f} ms;"
        f" while {busy.drained:,.0f} changes/s drain {busy.rate:,.0f}/s ({busy.rate / quiet.rate:.0%}),"
        f" p50 {busy.p50_ms:.2f}, p99 {busy.p99_ms:.1f}, longest {busy.longest_ms:.1f} ms{valid}"
    )


def run(folder: Path, changes: int, rounds: int, seconds: float, rows: int) -> list[dict[str, tuple[Side, Side]]]:
    store = StoreProcess(folder / "data", "--trigger-modules", MODULE)
    store.environment[CALLS] = str(folder / "calls")
    with store, generators(1) as pool:
        measurement = Measurement(store, pool, changes, seconds, rows)
        measurement.prepare()
        found = []
        for number in range(1, rounds + 1):
            found.append(measurement.round(number))
            for name, sides in found[-1].items():
                print(f"round {number}: {line(name, *sides)}", flush=True)
        return found


def failures(found: list[dict[str, tuple[Side, Side]]]) -> list[str]:
    """Print the medians; return their failures in words."""
    missed = []
    for name in OPERATIONS:
        kept = median(each[name][1].rate / each[name][0].rate for each in found)
        p99_ms = median(each[name][1].p99_ms for each in found)
        print(f"median: {name} keep {kept:.0%} of their rate, p99 {p99_ms:.1f} ms", flush=True)
        if kept < KEPT:
            missed.append(f"{name} keep {kept:.0%}, not {KEPT:.0%}")
        if name == "gets" and p99_ms > GETS_P99_MS:
            missed.append(f"gets have a p99 of {p99_ms:.1f} ms, not {GETS_P99_MS:.0f}")
        if not all(each[name][1].is_valid for each in found):
            missed.append(f"{name}: the backlog was gone too early")
    return missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--changes", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rows", type=int, default=20_000, help="that gets and puts have")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    print(f"{now()}, {machine()}, {given.changes:,} changes, {CONNECTIONS} connections", flush=True)
    with tempfile.TemporaryDirectory(prefix="flows-under-load-", dir=given.folder) as folder:
        found = run(Path(folder), given.changes, given.rounds, given.seconds, given.rows)
    if given.json is not None:
        plain = [{name: [asdict(side) for side in sides] for name, sides in each.items()} for each in found]
        given.json.write_text(json.dumps(plain, indent=1))
    missed = failures(found)
    print("good" if not missed else f"MISSED: {'; '.join(missed)}", flush=True)
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
