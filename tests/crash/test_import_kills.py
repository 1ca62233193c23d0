"""Store, trigger worker and importer die by ``kill -9`` during an import: it ends in the same tables.

Every row, column and value of the wiki's tables is compared with those of an undisturbed import; timestamps are
compared too, except in tables that triggers write.  ``imports`` is compared too, and must be empty.  Rows of ``wanted``
whose page exists are superfluous, and are left out.

COLUMNAR_SEED repeats a run (new: draws one).  COLUMNAR_IMPORT_KILLS says how often each of the three dies (1).
COLUMNAR_IMPORT_DUMP names the imported dump: a file, or a name in ``../shared/data`` beside the checkout; by default a
dump is made here.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from thriftpy2.transport import TTransportException

from tests.support.seeds import seed
from tests.support.standalone_store import ENVIRONMENT, ROOT, StoreProcess
from wikka_port import schema
from wikka_port.consistency import check
from wikka_port.pages import Wiki

SEED = seed(1601)
KILLS = int(os.environ.get("COLUMNAR_IMPORT_KILLS", "1"))
DUMP = os.environ.get("COLUMNAR_IMPORT_DUMP", "")
TABLES = tuple(table.name for table in schema.TABLES)
MOST_S = 900.0
LOOK_S = 0.02
MADE_PAGES = 60
MADE_REVISIONS = 5


def made_dump(folder: Path) -> Path:
    """Return a dump of pages that begin and cease to link to each other and to missing pages."""
    rng = random.Random(7)
    pages = []
    for n in range(MADE_PAGES):
        revisions = []
        for r in range(rng.randint(1, MADE_REVISIONS)):
            linked = [f"[[{rng.choice(('Page', 'Missing'))} {rng.randrange(MADE_PAGES)}|a word]]" for _ in range(8)]
            text = f"#REDIRECT [[Page {n - 1}]]" if n % 11 == 10 else f"== Page {n}, {r} ==\n{' and '.join(linked)}"
            revisions.append(
                f"<revision><id>{n * 10 + r}</id><timestamp>20{10 + r}-03-04T05:06:{n:02}Z</timestamp>"
                f"<contributor><username>Ada {r}</username></contributor><comment>step {r}</comment>"
                f'<text xml:space="preserve">{text}</text></revision>'
            )
        pages.append(f"<page><title>Page {n}</title><ns>0</ns><id>{n}</id>{''.join(revisions)}</page>")
    file = folder / "made.xml"
    begin = '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10">'
    site = "<siteinfo><sitename>Made</sitename><base>https://made.example/wiki/Page_0</base></siteinfo>"
    file.write_text(f"{begin}{site}{''.join(pages)}</mediawiki>")
    return file


def _without_times(rows: list[tuple[bytes, dict[bytes, tuple[bytes, int]]]]) -> list[Any]:
    return [(row, {column: value for column, (value, _) in cells.items()}) for row, cells in rows]


def dump_file(folder: Path) -> Path:
    if not DUMP:
        return made_dump(folder)
    beside = ROOT.parent / "shared" / "data" / DUMP
    return beside if beside.exists() else Path(DUMP)


def new_store(folder: Path) -> StoreProcess:
    return StoreProcess(folder, "--trigger-modules", "wikka_port.triggers")


@dataclass
class Importing:
    """``wikka import``, repeated until it says that everything is done."""

    store: StoreProcess
    dump: Path
    said: str = ""
    starts: int = 0
    killed: int = 0
    gave_up: int = 0  # the store was away for longer than it waits
    process: subprocess.Popen[str] | None = None
    deadline: float = field(default_factory=lambda: time.monotonic() + MOST_S)

    def begin(self) -> None:
        command = [sys.executable, "-m", "wikka_port", "import", str(self.dump)]
        command += ["--store", f"127.0.0.1:{self.store.port}"]
        self.starts += 1
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT
        )

    def is_done(self) -> bool:
        """Return whether the import is done; restart an import that gave up."""
        assert self.process is not None
        status = self.process.poll()
        if status is None:
            return False
        self.said = self._end()
        if status == 0:
            return True
        assert status == 2, f"the importer ended with status {status}: {self.said}"
        assert "does not answer" in self.said, self.said
        self.gave_up += 1
        self.begin()
        return False

    def look_after(self) -> None:
        assert time.monotonic() < self.deadline, f"it takes too long; {self.said}"
        assert not self.is_done(), "the import ended before all were shot"

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self._end()
        self.killed += 1
        self.begin()

    def _end(self) -> str:
        assert self.process is not None
        said, _ = self.process.communicate()
        return said

    def finish(self) -> None:
        while not self.is_done():
            assert time.monotonic() < self.deadline, f"it takes too long; {self.said}"
            threading.Event().wait(LOOK_S)
        assert "indexes complete" in self.said, self.said

    def abandon(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self._end()


def pages_stored(store: StoreProcess) -> int:
    """Return the number of pages stored so far."""
    try:
        connection = store.connection()
    except TTransportException:
        return 0
    try:
        if schema.PAGES not in connection.tables():
            return 0
        return sum(1 for _ in connection.table(schema.PAGES).scan(columns=[schema.HEAD], filter=b"KeyOnlyFilter()"))
    finally:
        connection.close()


def differences(store: StoreProcess) -> int:
    wiki = Wiki("127.0.0.1", store.port)
    try:
        return len(check(wiki).differences)
    finally:
        wiki.store.close()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the trigger worker is found by /proc")
@pytest.mark.timeout(2 * MOST_S)
def test_an_import_that_is_shot_ends_in_the_same_tables(tmp_path: Path) -> None:
    print(f"COLUMNAR_SEED={SEED} COLUMNAR_IMPORT_KILLS={KILLS} COLUMNAR_IMPORT_DUMP={DUMP}")
    rng = random.Random(SEED)
    dump = dump_file(tmp_path)
    begun = time.monotonic()
    with new_store(tmp_path / "undisturbed") as store:
        importing = Importing(store, dump)
        importing.begin()
        importing.finish()
        expected = store.dump(*TABLES)
        assert store.stop() == 0
    undisturbed_s = time.monotonic() - begun
    pages = len(expected[schema.PAGES])
    with new_store(tmp_path / "shot") as store:
        begun = time.monotonic()
        importing = Importing(store, dump)
        importing.begin()
        try:
            shots = shoot(store, importing, pages, rng)
            importing.finish()
        finally:
            importing.abandon()
        shot_s = time.monotonic() - begun
        found = store.dump(*TABLES)
        left = differences(store)
    for name in TABLES:
        seen, wanted = found[name], expected[name]
        if name in schema.DERIVED:  # their times are those at which the triggers ran
            seen, wanted = _without_times(seen), _without_times(wanted)
        if name == schema.WANTED:  # candidates whose page came at the same time are spare: readers pass over them
            there = {row for row, _ in expected[schema.PAGES]}
            seen, wanted = ([row for row in rows if row[0] not in there] for rows in (seen, wanted))
        assert seen == wanted, f"table {name.decode()} differs"
    assert left == 0
    cells = sum(len(row) for rows in found.values() for _, row in rows)
    print(f"{pages} pages, {len(found[schema.REVISIONS])} revisions, {cells} cells in {len(TABLES)} tables: the same")
    print(f"undisturbed {undisturbed_s:.1f} s, shot {shot_s:.1f} s, the importer gave up {importing.gave_up} times")
    print("killed: " + ", ".join(shots))


def shoot(store: StoreProcess, importing: Importing, pages: int, rng: random.Random) -> list[str]:
    """Kill each of the three KILLS times in random order, spread over the import; return each victim with its page."""
    victims = ["store", "worker", "importer"] * KILLS
    rng.shuffle(victims)
    shots = []
    # None at the very end: a kill behind the last page would show nothing.
    for victim, at in zip(victims, sorted(rng.randrange(int(pages * 0.9)) for _ in victims), strict=True):
        while pages_stored(store) < at:
            importing.look_after()
            threading.Event().wait(LOOK_S)
        threading.Event().wait(rng.uniform(0, 0.03))
        importing.look_after()
        if victim == "store":
            store.kill()
            store.start()
        elif victim == "worker":
            os.kill(store.worker_pid(), 9)
        else:
            importing.kill()
        shots.append(f"{victim} at {pages_stored(store)}")
    return shots
