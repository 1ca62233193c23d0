"""Load, clone, export, import, back up and restore a table of a gigabyte while others read and write it.

    python tests/measure/transfer_under_load.py [--mib 1024] [--folder DIR]

Prints each step's seconds, counts and digests, and the time of the load's slowest request meanwhile; fails if two
digests differ that must be equal.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.standalone_store import ENVIRONMENT, StoreProcess

VALUE_BYTES = 1_000
CELLS_A_ROW = 2
TABLE = b"big"


@dataclass
class Load:
    """Two clients, of which one overwrites rows of the table and reads them back, and one reads rows of the bulk."""

    store: StoreProcess
    rows: int
    stopped: threading.Event = field(default_factory=threading.Event)
    worst_s: float = 0.0
    requests: int = 0

    def start(self) -> None:
        self._threads = [threading.Thread(target=work) for work in (self._write, self._read)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self.stopped.set()
        for thread in self._threads:
            thread.join()

    def mark(self) -> tuple[float, int]:
        """Return the slowest request and the number of requests since the last mark."""
        found, self.worst_s, self.requests = (self.worst_s, self.requests), 0.0, 0
        return found

    def _timed(self, call: Any) -> Any:
        began = time.perf_counter()
        result = call()
        self.worst_s = max(self.worst_s, time.perf_counter() - began)
        self.requests += 1
        return result

    def _write(self) -> None:
        connection = self.store.connection()
        table, n = connection.table(TABLE), 0
        while not self.stopped.is_set():
            n += 1
            row, value = b"hot%d" % (n % 200), b"%d" % n
            self._timed(lambda row=row, value=value: table.put(row, {b"a:v": value, b"b:v": value}))
        connection.close()

    def _read(self) -> None:
        connection = self.store.connection()
        table, rng = connection.table(TABLE), random.Random(1)
        while not self.stopped.is_set():
            row = row_name(rng.randrange(self.rows))
            assert len(self._timed(lambda row=row: table.row(row))) in (0, CELLS_A_ROW)
        connection.close()


def row_name(n: int) -> bytes:
    return b"row%09d" % n


def write_lines(path: Path, rows: int) -> None:
    rng = random.Random(7)
    with path.open("wb") as file:
        for n in range(rows):
            for family in (b"a", b"b"):
                value = base64.b64encode(rng.randbytes(VALUE_BYTES * 3 // 8)) * 2  # text that packs to a half
                file.write(b"%s\t%s:v\t%s\t%d\n" % (row_name(n), family, value, 1_700_000_000_000 + n))


def command(port: int, *words: str) -> dict[str, Any]:
    environment = {**ENVIRONMENT, "COLUMNAR_STORE": f"127.0.0.1:{port}"}
    done = subprocess.run(
        [sys.executable, "-m", "columnar", *words, "--json"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout or "{}")
    return found


def step(load: Load | None, store: StoreProcess, *words: str) -> dict[str, Any]:
    if load is not None:
        load.mark()
    began = time.monotonic()
    found = command(store.port, *words)
    seconds = time.monotonic() - began
    keys = (
        "rows",
        "cells",
        "digest",
        "bytes",
        "copied_bytes",
        "ingested_regions",
        "written_regions",
        "errors",
        "findings",
    )
    said = " ".join(f"{key}={found[key]}" for key in keys if key in found)
    meanwhile = ""
    if load is not None:
        worst_s, requests = load.mark()
        meanwhile = f"; meanwhile {requests / seconds:.0f} requests/s, slowest {worst_s * 1_000:.0f} ms"
    print(f"{' '.join(Path(word).name for word in words):34} {seconds:6.1f} s  {said}{meanwhile}", flush=True)
    return found


def whole_rows(store: StoreProcess, name: bytes) -> None:
    """Check that each row that was overwritten meanwhile has one write in both families."""
    connection = store.connection()
    hot = list(connection.table(name).scan(row_prefix=b"hot"))
    assert hot, "nothing was written meanwhile"
    assert all(cells[b"a:v"] == cells[b"b:v"] for _, cells in hot), "a torn row"
    connection.close()


def run(folder: Path, mib: int) -> None:
    rows = mib * 1024 * 1024 // (CELLS_A_ROW * VALUE_BYTES)
    lines = folder / "lines.tsv"
    write_lines(lines, rows)
    print(f"{rows} rows, {lines.stat().st_size / 2**20:.0f} MiB of text, {os.cpu_count()} cores", flush=True)
    with StoreProcess(folder / "data") as store:
        connection = store.connection()
        splits = [row_name(rows * n // 4) for n in range(1, 4)]
        families = {"a": {"max_versions": 3}, "b": {"max_versions": 1}}
        connection.create_table(TABLE, families, splits=splits)
        step(None, store, "bulk-load", "big", str(lines))
        lines.unlink()
        load = Load(store, rows)
        load.start()
        try:
            transfer(folder, store, load)
        finally:
            load.stop()
        after_load(folder, store)
        connection.close()


def transfer(folder: Path, store: StoreProcess, load: Load) -> None:
    step(load, store, "snapshot", "take", "s1", "big")
    step(load, store, "snapshot", "clone", "s1", "cloned")
    cloned = step(load, store, "digest", "cloned")
    exported = step(load, store, "export", "cloned", str(folder / "x"))
    imported = step(load, store, "import", str(folder / "x"), "imported")
    again = step(load, store, "digest", "imported")
    assert cloned["digest"] == exported["digest"] == imported["digest"] == again["digest"]
    live = step(load, store, "export", "big", str(folder / "live"))
    back = step(load, store, "import", str(folder / "live"), "live")
    assert live["digest"] == back["digest"]
    for name in (b"cloned", b"imported", b"live"):
        whole_rows(store, name)
    step(load, store, "backup", str(folder / "backups"))
    step(load, store, "backup", str(folder / "backups"))
    step(load, store, "check")
    step(load, store, "snapshot", "restore", "s1", "--yes")


def after_load(folder: Path, store: StoreProcess) -> None:
    step(None, store, "snapshot", "restore", "s1", "--yes")
    restored = step(None, store, "digest", "big")
    cloned = step(None, store, "digest", "cloned")
    assert restored["digest"] == cloned["digest"], "restored from the snapshot that was cloned"
    began = time.monotonic()
    command(0, "restore-backup", str(folder / "backups"), "--data", str(folder / "restored"))
    print(f"{'restore-backup':34} {time.monotonic() - began:6.1f} s", flush=True)
    with StoreProcess(folder / "restored") as other:
        assert step(None, other, "digest", "cloned")["digest"] == cloned["digest"]
        whole_rows(other, b"big")
        assert step(None, other, "check")["errors"] == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="transfer-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        run(folder, given.mib)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
