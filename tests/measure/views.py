"""Views: the changes a second that a view keeps up with, the times of a build and a check, and a check's memory.

    python -m tests.measure.views [--rows 20000] [--changes 20000] [--groups 1000] [--writes 500] [--folder DIR]
    python -m tests.measure.views --rows 1000000 --changes 200000            # the whole ("Done when" 4 of the flows)

Starts a store of its own.  The view counts and sums by group, over ROWS rows.

    build   rows are there; the view is added while ``--writes`` puts a second move rows between groups; the time runs
            until the view is live
    check   beside the same writes: its time, and how much more memory the store has at its peak than before
    kept    puts in batches by two clients, each moving a row to another group; the time runs from the first put to the
            moment at which the view shows the last, so it is that of writers and view together

LIMITS has the targets; those of times are in proportion to the rows.  The exit status is 1 if a target is missed, or a
check finds something.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from columnar.client import Connection, Put, Source, View
from gauge.machine import machine, now
from tests.support.standalone_store import StoreProcess

TABLE: Final = b"rows"
VIEW: Final = View("groups", Source("rows", key=("f:group",), sums={"size": "f:size"}))
BATCH: Final = 1_000
WRITERS: Final = 2  # of the changes that are kept
PATIENCE_S: Final = 3_600
STARTS_S: Final = 3.0  # that a short run is allowed beside its share
LIMITS: Final = {"build_s": 180.0, "check_s": 60.0, "check_mb": 50.0, "kept_per_s": 12_000.0}  # of 1,000,000 rows
WHOLE: Final = 1_000_000


def row_of(number: int) -> bytes:
    return b"row%08d" % number


def cells_of(rng: random.Random, groups: int) -> dict[bytes, bytes]:
    return {b"f:group": b"group%06d" % rng.randrange(groups), b"f:size": b"%d" % rng.randrange(10_000)}


def patient(store: StoreProcess) -> Connection:
    return Connection("127.0.0.1", store.port, timeout=1_000 * PATIENCE_S)


def load(store: StoreProcess, rows: int, groups: int) -> float:
    rng, begun = random.Random(1), time.monotonic()
    with closing(patient(store)) as connection:
        connection.create_table(TABLE, {"f": {}}, splits=[row_of(rows * n // 4) for n in (1, 2, 3)])
        with connection.table(TABLE).batch(batch_size=BATCH) as batch:
            for number in range(rows):
                batch.put(row_of(number), cells_of(rng, groups))
    return time.monotonic() - begun


class Writing:
    """A client that makes single puts at a given rate, over a connection of its own."""

    def __init__(self, store: StoreProcess, rows: int, groups: int, per_s: int) -> None:
        self._connection = patient(store)
        self._rng = random.Random(2)
        self._rows, self._groups, self._per_s = rows, groups, per_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.written = 0
        self.seconds = 0.0

    def _write(self) -> None:
        table, begun = self._connection.table(TABLE), time.monotonic()
        while not self._over.is_set():
            self.seconds = time.monotonic() - begun
            if self.written >= self.seconds * self._per_s:
                self._over.wait(1 / self._per_s)
                continue
            cells = cells_of(self._rng, self._groups)
            table.mutate(row_of(self._rng.randrange(self._rows)), [Put(*cell) for cell in cells.items()])
            self.written += 1

    def __enter__(self) -> Writing:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._connection.close()

    @property
    def rate(self) -> float:
        return self.written / max(self.seconds, 1e-9)


@contextmanager
def peak_of(store: StoreProcess) -> Iterator[list[float]]:
    """Yield a list that gets the MB by which the store's peak exceeds the memory before."""
    store.forget_peak()
    before, found = store.resident_bytes(), list[float]()
    yield found
    found.append((store.peak_bytes() - before) / 1e6)


def build(store: StoreProcess) -> float:
    begun = time.monotonic()
    with closing(patient(store)) as connection:
        connection.views.add(VIEW)
        while connection.views.status(VIEW.name).state != "live":
            connection.views.wait(VIEW.name, timeout_ms=600_000)
    return time.monotonic() - begun


def check(store: StoreProcess) -> tuple[float, int, int]:
    """Check the view; return (seconds, wrong, unsure)."""
    begun = time.monotonic()
    with closing(patient(store)) as connection:
        report = connection.views.check(VIEW.name)
    return time.monotonic() - begun, report.wrong, report.unsure


def kept(store: StoreProcess, rows: int, groups: int, changes: int) -> tuple[float, float]:
    """Return the changes a second that the view kept, and that were written."""

    def write(first: int) -> None:
        rng = random.Random(first)
        with closing(patient(store)) as connection, connection.table(TABLE).batch(batch_size=BATCH) as batch:
            for number in range(first, changes, WRITERS):
                batch.put(row_of(number * 7919 % rows), cells_of(rng, groups))

    writers = [threading.Thread(target=write, args=(first,)) for first in range(WRITERS)]
    begun = time.monotonic()
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    written_s = time.monotonic() - begun
    with closing(patient(store)) as connection:
        while not connection.views.wait(VIEW.name, timeout_ms=600_000):
            pass
    return changes / (time.monotonic() - begun), changes / written_s


def run(store: StoreProcess, rows: int, changes: int, groups: int, per_s: int) -> dict[str, float]:
    print(f"{rows:,} rows are loaded in {load(store, rows, groups):.1f} s", flush=True)
    with Writing(store, rows, groups, per_s) as writing:
        with peak_of(store) as build_mb:
            build_s = build(store)
        built_at = writing.rate
        with peak_of(store) as check_mb:
            check_s, wrong, unsure = check(store)
    print(
        f"build: {build_s:.1f} s, {rows / build_s:,.0f} rows/s, beside {built_at:,.0f} writes/s; +{build_mb[0]:.0f} MB"
    )
    print(f"check under writes: {check_s:.1f} s, {wrong} wrong, {unsure} unsure; +{check_mb[0]:.0f} MB", flush=True)
    kept_per_s, written_per_s = kept(store, rows, groups, changes)
    print(f"kept: {kept_per_s:,.0f} changes/s; written: {written_per_s:,.0f}/s", flush=True)
    with peak_of(store) as quiet_mb:
        quiet_s, still_wrong, _ = check(store)
    print(f"check at rest: {quiet_s:.1f} s, {still_wrong} wrong; +{quiet_mb[0]:.0f} MB", flush=True)
    return {
        "build_s": build_s, "check_s": max(check_s, quiet_s), "check_mb": max(check_mb[0], quiet_mb[0]),
        "kept_per_s": kept_per_s, "wrong": wrong + still_wrong, "rows": rows,
    }  # fmt: skip


def failures(found: dict[str, float]) -> list[str]:
    share = found["rows"] / WHOLE
    missed = [
        f"{name} is {found[name]:.1f}, over {LIMITS[name] * share + STARTS_S:.1f}"
        for name in ("build_s", "check_s")
        if found[name] > LIMITS[name] * share + STARTS_S
    ]
    if found["check_mb"] > LIMITS["check_mb"]:
        missed.append(f"check takes {found['check_mb']:.0f} MB, over {LIMITS['check_mb']:.0f}")
    if found["kept_per_s"] < LIMITS["kept_per_s"]:
        missed.append(f"{found['kept_per_s']:,.0f} changes/s are kept, under {LIMITS['kept_per_s']:,.0f}")
    if found["wrong"]:
        missed.append(f"{found['wrong']:.0f} places of the view are wrong")
    return missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--changes", type=int, default=20_000, help="that are to be kept")
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--writes", type=int, default=500, help="a second, beside build and check")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    print(f"{now()}, {machine()}, {given.groups:,} groups", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="columnar-views-", dir=given.folder) as folder,
        StoreProcess(Path(folder) / "data") as store,
    ):
        found = run(store, given.rows, given.changes, given.groups, given.writes)
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1))
    missed = failures(found)
    print("good" if not missed else f"MISSED: {'; '.join(missed)}", flush=True)
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
