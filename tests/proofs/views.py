"""python -m tests.proofs.views: ``kill -9`` again and again while views of random definitions are built and kept.

A round has a definition of its own, of one table or a join of two.  Writers put and delete at timestamps of their own
that go back, some cells have values that the view cannot read, and regions of the tables and of the view split and
merge.  The view is added meanwhile.  The store is killed some times in a round; with several servers most kills hit one
of them.  At the end the view's table must equal what ``tests.support.recompute`` makes of the tables' rows, the number
of unreadable rows must agree, and ``view check`` must find nothing.

The seed repeats definitions and choices, not the moments of the kills.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from thriftpy2.thrift import TException

from columnar.client import Connection, Delete, Put, RegionAdmin
from columnar.model.view_definition import View, checked
from columnar.views.contributions import rules_of
from tests.model.test_views_model import VALUES, Side
from tests.support.cluster_process import ClusterProcess
from tests.support.recompute import recomputed
from tests.support.view_contents import differences

FAMILIES: Final = {b"f": {}, b"g": {"max_versions": 3}, b"h": {}}
ROWS: Final = tuple(b"%c/%d" % (letter, number) for letter in b"abcd" for number in range(8))
KILLS_OF_A_ROUND: Final = 5
WRITERS: Final = 3
WRITES: Final = (10, 150)  # before a kill
ALL_OF_IT: Final = 0.2  # of the kills of several servers hit the supervisor, too
WAIT_MS: Final = 120_000
TRIES: Final = 200
LOOK_S: Final = 0.05
LOST: Final = (TException, OSError, EOFError)
SHOWN: Final = 5  # differences of a round

Tell = Callable[[str], None]


class Writers:
    """Threads that write until they are stopped, and reconnect after a loss."""

    def __init__(self, store: ClusterProcess, tables: list[bytes], rng: random.Random) -> None:
        self._store, self._tables = store, tables
        self._over = threading.Event()
        self._count = 0
        self._written = threading.Condition()
        self._threads = [
            threading.Thread(target=self._write, args=(random.Random(rng.random()),)) for _ in range(WRITERS)
        ]
        for thread in self._threads:
            thread.start()

    def until_written(self, more: int) -> None:
        with self._written:
            goal = self._count + more
            assert self._written.wait_for(lambda: self._count >= goal, WAIT_MS / 1_000), "nobody can write"

    def stop(self) -> int:
        """Stop the writers; return the number of acknowledged writes."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        return self._count

    def _write(self, rng: random.Random) -> None:
        while not self._over.is_set():
            with suppress(*LOST), closing(self._store.connection()) as connection:
                while not self._over.is_set():
                    connection.table(rng.choice(self._tables)).mutate(rng.choice(ROWS), _operations(rng))
                    with self._written:
                        self._count += 1
                        self._written.notify_all()
            self._over.wait(0.01)


def _operations(rng: random.Random) -> list[Put | Delete]:
    found: list[Put | Delete] = []
    for _ in range(rng.choice((1, 1, 2, 4))):
        column = rng.choice(tuple(VALUES))
        at, kind = None if rng.random() < 0.3 else rng.randrange(20), rng.random()
        if kind < 0.75:
            found.append(Put(column, rng.choice(VALUES[column]), at))
        else:
            found.append(Delete(column if kind < 0.93 else column[:1], at))
    return found


class Round:
    def __init__(self, number: int, seed: int) -> None:
        rng = self.rng = random.Random(f"{seed}/{number}")
        parts = rng.choice((1, 1, 2))
        is_join = rng.random() < 0.3
        spread = 4 if not is_join and rng.random() < 0.2 else 1
        names = [f"t{number}", rng.choice((f"t{number}", f"u{number}"))] if is_join else [f"t{number}"]
        letters = (b"l", b"r") if is_join else (b"",)
        sides = [Side(rng, table, letter, parts, spread).source for table, letter in zip(names, letters, strict=True)]
        self.view = checked(View(f"v{number}", sides[0], sides[1] if is_join else None, spread))
        self.tables = [name.encode() for name in dict.fromkeys(names)]
        self.counts: Counter[str] = Counter()

    def play(self, store: ClusterProcess, kills: int) -> list[str]:
        """Run a round; return the differences."""
        with closing(store.connection()) as connection:
            for table in self.tables:
                connection.create_table(table, FAMILIES, splits=[b"b", b"c"])
        writers = Writers(store, self.tables, self.rng)
        try:
            writers.until_written(self.rng.randrange(*WRITES))
            for _ in range(kills):
                self._add(store)
                self._change_regions(store)
                writers.until_written(self.rng.randrange(*WRITES))
                self._kill(store)
            self._add(store)
        finally:
            self.counts["writes"] += writers.stop()
        return self._differences(store)

    def _add(self, store: ClusterProcess) -> None:
        """Add the view, again after a kill cut the addition off; to add the same view twice changes nothing."""
        for tries in range(1, TRIES + 1):
            try:
                with closing(store.connection()) as connection:
                    connection.views.add(self.view)
                    return
            except LOST:
                if tries == TRIES:
                    raise
                threading.Event().wait(LOOK_S)

    def _change_regions(self, store: ClusterProcess) -> None:
        table = self.rng.choice([*self.tables, self.view.name.encode()])
        with suppress(*LOST), closing(store.connection()) as connection:
            regions = connection.admin.regions(table)
            admin = RegionAdmin(connection)
            if len(regions) < 4:
                admin.split(regions[self.rng.randrange(len(regions))].name)
                self.counts["splits"] += 1
            else:
                at = self.rng.randrange(len(regions) - 1)
                admin.merge(regions[at].name, regions[at + 1].name)
                self.counts["merges"] += 1

    def _kill(self, store: ClusterProcess) -> None:
        self.counts["kills"] += 1
        if store.count > 1 and self.rng.random() > ALL_OF_IT:
            store.kill_server(self.rng.randrange(len(store.servers())))
            return
        store.kill()
        store.start()

    # --- what must come of it ------------------------------------------------------------------------

    def _differences(self, store: ClusterProcess) -> list[str]:
        with closing(store.connection()) as connection:
            self._wait(connection)
            rules = rules_of(self.view)
            sides = [(one, list(connection.table(one.table).scan())) for one in rules]
            expected = recomputed(sides)
            self.counts["groups"] += len(expected.groups)
            self.counts["unreadable rows"] += len(expected.rejected)
            found = differences(rules, expected, dict(connection.table(self.view.name).scan()))
            unreadable = self._unreadable(connection, len(expected.rejected))
            if unreadable != len(expected.rejected):
                found.append(f"{unreadable} rows count as unreadable, not {len(expected.rejected)}")
            report = connection.views.check(self.view.name)
            if report.wrong or report.unsure:
                found.append(f"the check finds {report.wrong} wrong and {report.unsure} unsure: {report.findings[:3]}")
            if not found:
                connection.views.drop(self.view.name)
                for table in self.tables:
                    connection.delete_table(table, disable=True)
        return [f"{self.view.name}: {one}" for one in found[:SHOWN]] + ([f"{self.view}"] if found else [])

    def _wait(self, connection: Connection) -> None:
        """Wait until all changes are in the view, and the view is live."""
        name, deadline_s = self.view.name, time.monotonic() + WAIT_MS / 1_000
        assert connection.views.wait(name, timeout_ms=WAIT_MS), f"{name} is behind"
        while connection.views.status(name).state != "live":
            assert time.monotonic() < deadline_s, f"{name} is not live"
            threading.Event().wait(LOOK_S)

    def _unreadable(self, connection: Connection, expected: int) -> int:
        """Return the number of unreadable rows; wait for the expected one, as a split begins the count again."""
        for _ in range(TRIES):
            found = connection.views.status(self.view.name).rejected_rows
            if found == expected:
                break
            threading.Event().wait(LOOK_S)
        return found


@contextmanager
def _told(kills: int, console: Console) -> Iterator[Callable[[int], None]]:
    columns = (TextColumn("kills"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=kills)
        yield lambda done: progress.update(bar, completed=done)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--kills", default=50, show_default=True, type=click.IntRange(1))
@click.option("--servers", default=1, show_default=True, type=click.IntRange(1, 16), help="1: one process.")
@click.option("--seed", default=1, show_default=True)
def main(kills: int, servers: int, seed: int) -> None:
    """Kill a store under load while views of random definitions are built and kept; each is what recomputing gives.

    \b
      python -m tests.proofs.views --kills 1000
      python -m tests.proofs.views --kills 200 --servers 3
    """
    console = Console(soft_wrap=True, highlight=False, markup=False)
    console.print(f"seed {seed}, {kills} kills, {servers} servers")
    counts: Counter[str] = Counter()
    problems: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="columnar-views-") as folder,
        ClusterProcess(Path(folder) / "data", servers) as store,
        _told(kills, console) as tell,
    ):
        number = 0
        while counts["kills"] < kills and not problems:
            number += 1
            one = Round(number, seed)
            problems += one.play(store, min(KILLS_OF_A_ROUND, kills - counts["kills"]))
            counts.update(one.counts)
            tell(counts["kills"])
    console.print(f"{number} views: " + ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items())))
    for problem in problems:
        console.print(f"WRONG  {problem}")
    console.print("0 differences" if not problems else f"round {number} of seed {seed} DIFFERS")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
