r"""Splits and merges under a running load with a trigger: nothing lost, nothing twice, no request fails.

The full form has 50 tables, 1,000 regions and 200 changes, and prints what it saw:
    COLUMNAR_LOAD_TABLES=50 COLUMNAR_LOAD_REGIONS=1000 COLUMNAR_LOAD_CHANGES=200 COLUMNAR_LOAD_QUIET=50000 \
        pytest -s tests/integration/test_regions_under_load.py
COLUMNAR_SEED repeats a run's choices.
"""

from __future__ import annotations

import json
import os
import random
import re
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from columnar.cli import main
from columnar.client import Connection
from tests.support import trigger_functions
from tests.support.region_load import SOURCE, Changer, Client, Timed, base_rows, even_points, holes
from tests.support.store_process import StoreProcess

TABLES = int(os.environ.get("COLUMNAR_LOAD_TABLES", "3"))
REGIONS = int(os.environ.get("COLUMNAR_LOAD_REGIONS", "12"))  # of all tables together
CHANGES = int(os.environ.get("COLUMNAR_LOAD_CHANGES", "8"))
SEED = int(os.environ.get("COLUMNAR_SEED", "20261121"))
LONGEST_S = float(os.environ.get("COLUMNAR_LOAD_LONGEST_S", "20"))  # of one request; the machine may be busy
QUIET_REQUESTS = int(os.environ.get("COLUMNAR_LOAD_QUIET", "300"))  # before the first change, to compare with
WRITERS, READERS = 4, 2
DRAIN_MS = 120_000


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreProcess]:
    monkeypatch.setenv("COLUMNAR_LOG_LEVEL", "INFO")  # it says how long requests waited
    store = StoreProcess(tmp_path / "data", trigger_functions.MODULE)
    store.start()
    yield store
    assert store.stop(300) == 0  # each of 1,000 open regions is flushed and closed
    checked = CliRunner().invoke(main, ["check", "--data", str(tmp_path / "data"), "--json"])
    report = json.loads(checked.stdout)
    print(f"columnar check: exit {checked.exit_code}, findings {report['findings'][:5]}")
    assert checked.exit_code == 0, report["findings"][:5]


def make(connection: Connection) -> list[bytes]:
    """The tables; the source has the trigger and its own rows."""
    names = [SOURCE, *(b"t%03d" % n for n in range(1, TABLES))]
    points = even_points(max(2, REGIONS // TABLES))
    for name in names:
        connection.create_table(name, {b"f": {}}, attributes={}, splits=points)
    connection.create_table(b"index", {b"i": {}}, attributes={"DELETE_MARKERS": "3600000"}, splits=[b"value-2"])
    connection.create_table(b"audit", {b"a": {}}, attributes={"DURABILITY": "ASYNC_WAL"})
    batch = connection.table(SOURCE).batch()
    for row in base_rows():
        batch.put(row, {b"f:base": b"1"})
    batch.send()
    connection.triggers.add(
        "index", SOURCE, f"{trigger_functions.MODULE}:index_and_note", [b"f"], before=True, attempts=1_000
    )
    return names


def check(connection: Connection, writers: list[Client], tables: list[bytes]) -> str:
    """What was acknowledged against what is there; returns the counts."""
    assert holes(connection, tables) == []
    counted: Counter[tuple[bytes, bytes]] = Counter()
    wanted: set[tuple[bytes, bytes]] = set()
    sequences: dict[bytes, list[str]] = {}
    for writer in writers:
        counted += writer.counted
        wanted |= {(value, row) for row, value in writer.values.items() if value is not None}
        sequences |= writer.sequences
    found: Counter[tuple[bytes, bytes]] = Counter()
    for table in tables:
        for row, cells in connection.table(table).scan():
            if b"f:n" in cells:
                found[table, row] = int.from_bytes(cells[b"f:n"], "big")
            if b"f:b" in cells:
                found[table, b"b" + row] = counted[table, b"b" + row]
    assert found == counted, "rows or increments are lost, or there twice"
    derived = {(value, column[2:]) for value, cells in connection.table(b"index").scan() for column in cells}
    assert derived == wanted, "the derived table is not what its source gives"
    delivered = {
        row: [line.split(b";")[0].decode() for line in cells[b"a:log"].splitlines()]
        for row, cells in connection.table(b"audit").scan()
    }
    assert delivered == sequences, "a change was not delivered once, in its row's order"
    changes = sum(map(len, sequences.values()))
    return (
        f"{sum(counted.values())} writes, {changes} changes of the source delivered once each, {len(derived)} derived"
    )


def longest_of(clients: list[Client]) -> dict[str, float]:
    longest: dict[str, float] = {}
    for client in clients:
        for kind, seconds in client.timed.longest_s.items():
            longest[kind] = max(seconds, longest.get(kind, 0.0))
    return longest


@pytest.mark.timeout(1_200)
def test_nothing_is_lost_and_nothing_twice(store: StoreProcess) -> None:
    print(f"COLUMNAR_SEED={SEED} tables={TABLES} regions={REGIONS} changes={CHANGES}")
    rng = random.Random(SEED)
    connection = store.connect()
    tables = make(connection)
    stop = threading.Event()
    writers = [Client(store.connect, n, tables, rng.random()) for n in range(WRITERS)]
    readers = [Client(store.connect, 15, tables, rng.random()) for _ in range(READERS)]
    clients = [*writers, *readers]
    threads = [threading.Thread(target=c.run, args=(stop, Client.write)) for c in writers]
    threads += [threading.Thread(target=c.run, args=(stop, Client.read)) for c in readers]
    for thread in threads:
        thread.start()
    changer = Changer(connection, tables, rng)
    try:
        while sum(c.timed.counts.total() for c in clients) < QUIET_REQUESTS and not stop.wait(0.02):
            pass
        quiet = longest_of(clients)
        for client in clients:
            client.timed = Timed()
        while changer.done.total() < CHANGES and not stop.is_set():
            changer.change()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    for client in clients:
        if client.failure is not None:
            raise client.failure
    assert connection.triggers.wait(timeout_ms=DRAIN_MS), "not delivered in time"
    print(check(connection, writers, tables))
    assert connection.triggers.dead_letters() == []
    longest = longest_of(clients)
    counts = sum((client.timed.counts for client in clients), Counter[str]())
    away = sorted(int(ms) for ms in re.findall(r"requests waited (\d+) ms", store.log))
    if away:  # what the store said so far: its log may be behind its answers
        print(f"regions were away {away[len(away) // 2]} ms in the median, {away[-1]} ms at most")
    assert changer.done.total() >= CHANGES
    print(
        f"changes {dict(changer.done)}, called off {len(changer.called_off)}, longest {changer.longest_s * 1e3:.0f} ms"
    )
    for line in changer.called_off[:5]:
        print("  ", line)
    for kind, seconds in longest.items():
        print(
            f"{kind}: {counts[kind]} requests, the longest {1e3 * seconds:.0f} ms; "
            f"of those before the first change {1e3 * quiet.get(kind, 0.0):.0f} ms"
        )
    status = connection.status()
    print(f"regions {sum(table.regions for table in status.tables)}, open {status.openRegions}")
    assert max(longest.values()) < LONGEST_S
    connection.close()
