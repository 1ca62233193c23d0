"""python -m tests.proofs.effects: random effects on few rows, random refusals, several triggers and views, and kills.

Writers put rows whose text says what the triggers (``effecting``) yield for them: puts and deletes on few rows of one
table, two and more on one row; effects that the store refuses; functions that raise, die and ask to come later.  Two
views follow the writers' table, a third one the table that the triggers write.  The store and the workers are killed
meanwhile.

The proof holds if nothing stops and every change is delivered: at the end every trigger and view passes all changes,
never without progress for PATIENCE_S. Each row's last change has its effects in the table, or a dead letter if one of
the effects is refused; totals and views equal their recomputation; and the store's log has no unexpected exception.

The seed repeats what is written and the kinds of kills, not their moments.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from thriftpy2.thrift import TException

from columnar.client import Connection, Source, View
from columnar.model.flow_status import from_json
from columnar.views.contributions import rules_of
from tests.proofs import effecting
from tests.proofs.effecting import DO, EVEN, FED, GROUP, GROUPS, NUMBER, REFUSED, TRIGGERS, WORDS
from tests.support.cluster_process import ClusterProcess
from tests.support.recompute import recomputed
from tests.support.standalone_store import ROOT
from tests.support.view_contents import differences

ROWS: Final = tuple(b"r%d" % number for number in range(12))
KEYS: Final = ("a", "b", "c")
WRITERS: Final = 2
VIEWS: Final = (
    View("by_group", Source("fed", key=("f:g",), sums={"n": "f:n"})),
    View("by_text", Source("fed", key=("f:do",))),
    View("by_effect", Source("even", key=("each o:",))),
)
PATIENCE_S: Final = 60.0  # without a single further delivery
WAIT_MS: Final = 5_000
DIES: Final = 0.002  # of the changes: each costs the start of two workers
PAUSE_S: Final = 0.1  # between two writes of one writer: the store has to follow at the end
WORKERS_ALONE: Final = 0.6  # of the kills
ALL_OF_IT: Final = 0.5  # of the other kills of several servers
LOST: Final = (TException, OSError, EOFError)
UNEXPECTED: Final = re.compile(r".*(met an unexpected exception|Traceback|Exception in callback).*")
SHOWN: Final = 10

Tell = Callable[[str], None]


@dataclass(slots=True)
class Found:
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def text_of(rng: random.Random) -> bytes:
    """Return the text of a change: words of ``effecting``."""
    words = [f"{'put' if rng.random() < 0.8 else 'del'}:{rng.choice(KEYS)}" for _ in range(rng.randrange(1, 5))]
    chance = rng.random()
    if chance < 0.2:
        words.insert(rng.randrange(len(words) + 1), rng.choice(sorted(REFUSED)))
    elif chance < 0.4:
        words.insert(rng.randrange(len(words) + 1), rng.choice(["raise", "later"]))
    elif chance < 0.41:
        words.append("many")
    elif chance < 0.41 + DIES:
        words.insert(rng.randrange(len(words) + 1), "die")
    return " ".join(words).encode()


class Writers:
    """Threads that each write rows of their own until they are stopped."""

    def __init__(self, store: ClusterProcess, seed: int) -> None:
        self._store = store
        self._over = threading.Event()
        self.count = 0
        self._threads = [threading.Thread(target=self._write, args=(which, seed)) for which in range(WRITERS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _write(self, which: int, seed: int) -> None:
        rng, number = random.Random(f"{seed}/{which}"), 0
        while not self._over.is_set():
            with suppress(*LOST), closing(self._store.connection()) as connection:
                while not self._over.wait(PAUSE_S):
                    number += 1
                    row = rng.choice(ROWS[which::WRITERS])
                    group = b"g%d" % rng.randrange(3)
                    connection.table(FED).put(row, {DO: text_of(rng), NUMBER: b"%d" % number, GROUP: group})
                    self.count += 1
            self._over.wait(0.05)


class Proof:
    def __init__(self, folder: Path, servers: int, seed: int, tell: Tell) -> None:
        flags = ["--trigger-modules", effecting.__name__]
        self._store = ClusterProcess(folder / "data", servers, *flags)
        self._rng = random.Random(f"kills {seed}")
        self._seed = seed
        self._tell = tell
        self.found = Found()

    def run(self, seconds: float, kill_every_s: float) -> Found:
        with self._store as store:
            self._make(store)
            writers, ends_s = Writers(store, self._seed), time.monotonic() + seconds
            try:
                while (left_s := ends_s - time.monotonic()) > 0:
                    self._tell(f"{writers.count:,} changes, {self.found.counts['kills']} kills")
                    pause_s = kill_every_s * self._rng.uniform(0.3, 1.7) if kill_every_s else left_s
                    threading.Event().wait(min(left_s, pause_s))
                    if kill_every_s and time.monotonic() < ends_s:
                        self._kill(store)
            finally:
                writers.stop()
            self.found.counts["changes"] = writers.count
            with closing(store.connection()) as connection:
                self._judge(connection)
        self._look_into_the_log(store)
        return self.found

    def _make(self, store: ClusterProcess) -> None:
        with closing(store.connection()) as connection:
            connection.create_table(FED, {"f": {}}, splits=[b"r5"])
            connection.create_table(EVEN, {"o": {}}, attributes={"DELETE_MARKERS": "600000"})
            connection.create_table(WORDS, {"n": {}, "m": {}})
            connection.create_table(GROUPS, {"n": {}, "m": {}})
            connection.table(WORDS).put(b"w", {b"n:x": b"a word", b"n:y": b"another"})
            for view in VIEWS:
                connection.views.add(view)
        command = [sys.executable, "-m", "columnar", "trigger", "sync", effecting.__name__, "--yes"]
        address = {"COLUMNAR_STORE": f"127.0.0.1:{store.port}"}
        subprocess.run(command, env={**store.environment, **address}, cwd=ROOT, check=True, capture_output=True)

    def _kill(self, store: ClusterProcess) -> None:
        self.found.counts["kills"] += 1
        if self._rng.random() < WORKERS_ALONE:
            servers = store.servers() if store.count > 1 else [store.pid]
            self.found.counts["workers killed"] += store.kill_workers_of(self._rng.choice(servers))
        elif store.count > 1 and self._rng.random() > ALL_OF_IT:
            store.kill_server(self._rng.randrange(len(store.servers())))
        else:
            store.kill()
            store.start()

    # --- what must come of it ------------------------------------------------------------------------

    def _judge(self, connection: Connection) -> None:
        self._tell("waiting until all is delivered")
        for name in [*TRIGGERS, "groups"]:
            self._wait(connection, name, partial(connection.triggers.wait, name))
        for view in VIEWS:  # behind what the triggers write
            self._wait(connection, view.name, partial(connection.views.wait, view.name))
        for status in connection.triggers.list():
            if status.state != "running" or status.lag_changes:
                how = f"{status.state}, {status.lag_changes} behind"
                self._wrong(f"trigger {status.name} is {how}: {status.last_error}")
        self._judge_effects(connection)
        self._judge_groups(connection)
        for view in VIEWS:
            self._judge_view(connection, view)

    def _wait(self, connection: Connection, name: str, wait: Callable[..., bool]) -> None:
        """Wait as long as anything makes progress, because a view may wait for writes of triggers."""
        last, moved_s = -1, time.monotonic()
        while not wait(timeout_ms=WAIT_MS):
            looks, _ = from_json(connection.flows())
            done = sum(look.delivered + look.failed for look in looks)
            self._tell(f"waiting for {name}, {done:,} deliveries since the last start")
            if done != last:
                last, moved_s = done, time.monotonic()
            elif time.monotonic() > moved_s + PATIENCE_S:
                lag = sum(look.lag_changes for look in looks if look.name == name)
                self._wrong(f"nothing was delivered for {PATIENCE_S:g} s, and {name} is {lag:,} changes behind")
                return

    def _judge_effects(self, connection: Connection) -> None:
        fed = dict(connection.table(FED).scan())
        even = dict(connection.table(EVEN).scan())
        for trigger in TRIGGERS:
            letters = connection.triggers.dead_letters(trigger, limit=100_000)
            self.found.counts["dead letters"] += len(letters)
            dead = {letter.row for letter in letters}
            for row, cells in fed.items():
                if REFUSED.intersection(cells[DO].decode().split()):
                    if row not in dead:
                        self._wrong(f"{trigger} has no dead letter of {row!r}, {cells}")
                else:
                    self._judge_row(trigger, row, cells, even)

    def _judge_row(
        self, trigger: str, row: bytes, cells: Mapping[bytes, bytes], even: Mapping[bytes, Mapping[bytes, bytes]]
    ) -> None:
        last: dict[bytes, bool] = {}
        for word in cells[DO].decode().split():
            kind, _, key = word.partition(":")
            if kind in ("put", "del"):  # of one stamp: a delete covers the put, whichever comes first
                last[key.encode()] = last.get(key.encode(), True) and kind == "put"
            elif kind == "many":
                last.update({b"many%d" % at: True for at in range(7)})
        column = effecting.column(row, trigger)
        for key, is_put in last.items():
            self.found.counts["effects looked at"] += 1
            found = even.get(key, {}).get(column)
            if is_put and found != cells[NUMBER]:
                self._wrong(f"{trigger}, {row!r}, {cells}: row {key!r} of even has {found!r}")

    def _judge_groups(self, connection: Connection) -> None:
        wanted: dict[bytes, list[int]] = {}
        for cells in dict(connection.table(FED).scan()).values():
            held = wanted.setdefault(cells[GROUP], [0, 0])
            held[0], held[1] = held[0] + 1, held[1] + int(cells[NUMBER])
        table = connection.table(GROUPS)
        for group in sorted({*wanted, *(row for row, _ in table.scan())}):
            cells = table.row(group)
            found = [int.from_bytes(cells.get(name, b""), "big", signed=True) for name in (b"n:rows", b"n:sum")]
            if found != wanted.get(group, [0, 0]):
                self._wrong(f"the totals of group {group!r} are {found}, not {wanted.get(group)}")

    def _judge_view(self, connection: Connection, view: View) -> None:
        rules = rules_of(view)
        expected = recomputed([(one, list(connection.table(one.table).scan())) for one in rules])
        self.found.counts["groups of views"] += len(expected.groups)
        for problem in differences(rules, expected, dict(connection.table(view.name).scan())):
            self._wrong(f"view {view.name}: {problem}")

    def _look_into_the_log(self, store: ClusterProcess) -> None:
        for line in store.log.read_text(errors="replace").splitlines():
            if UNEXPECTED.match(line):
                self._wrong(f"in the store's log: {line[:300]}")

    def _wrong(self, problem: str) -> None:
        if len(self.found.problems) < SHOWN:
            self.found.problems.append(problem)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--seconds", default=60.0, show_default=True, type=click.FloatRange(1), help="Of writing.")
@click.option("--kill-every", default=8.0, show_default=True, help="Seconds between kills, on average; 0: none.")
@click.option("--servers", default=1, show_default=True, type=click.IntRange(1, 16), help="1: one process.")
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Where the store and its log are made; kept. Without it a temporary folder.",
)
def main(seconds: float, kill_every: float, servers: int, seed: int, folder: Path | None) -> None:
    """Show that effects, whatever becomes of them, stop no trigger and no view.

    \b
      python -m tests.proofs.effects --seconds 3600 --seed 7
      python -m tests.proofs.effects --seconds 600 --servers 3
    """
    console = Console(soft_wrap=True, highlight=False, markup=False)
    console.print(f"seed {seed}, {seconds:g} seconds, a kill every {kill_every:g} s, {servers} servers")
    made = tempfile.TemporaryDirectory(prefix="columnar-effects-") if folder is None else nullcontext(str(folder))
    with made as here, console.status("starting") as status:
        Path(here).mkdir(parents=True, exist_ok=True)
        found = Proof(Path(here), servers, seed, status.update).run(seconds, kill_every)
    console.print(", ".join(f"{count:,} {name}" for name, count in sorted(found.counts.items())))
    for problem in found.problems:
        console.print(f"WRONG  {problem}")
    console.print("effects: " + ("DOES NOT HOLD" if found.problems else "holds"))
    sys.exit(bool(found.problems))


if __name__ == "__main__":
    main()
