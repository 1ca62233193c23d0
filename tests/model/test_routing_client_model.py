"""A client of several servers over random histories: moves, splits, merges, deaths, and links that break at any step.

Counters show what was done how often: a call that succeeds was done once, one that fails was done once or not at all,
and a read shows what was done before it.  Each history is made from one seed, which it prints.
``python -m tests.model.test_routing_client_model --seeds 20000`` runs more.
"""

from __future__ import annotations

import random
from collections import Counter
from types import SimpleNamespace
from typing import Any

from columnar.client.addresses import Address
from columnar.client.locations import KEPT_S
from columnar.client.owner_links import MOST_LINKS
from columnar.client.store_calls import StoreCalls
from columnar.client.store_link import BROKEN
from columnar.wire.idl import hbase
from tests.support.deep import seeds
from tests.support.fake_servers import FakeLink, FakeStore
from tests.support.many_seeds import Left, Tell, main, runs, step_seed, untold
from tests.support.seeds import seed

SEED = seed(20261127)
STEPS = 60
ROWS = [b"%c%d" % (letter, n) for letter in b"aeimqu" for n in range(4)]
SERVERS = 4
SHORT, DEEP = 300, 5_000


class History:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.now_s = 0.0
        self.store = FakeStore(SERVERS)
        for start in rng.sample([b"c", b"g", b"k", b"o", b"s"], rng.randrange(6)):
            self.store.split(start)
        for at in range(len(self.store.starts)):
            self.store.move(at, rng.choice(self.store.addresses))
        self.fault_rate = rng.choice([0.0, 0.0, 0.02, 0.1])
        self.routing = rng.random() < 0.8
        gateways = self.store.addresses if rng.random() < 0.5 else self.store.addresses[:1]
        self.calls = StoreCalls(gateways, self._link, routing=self.routing, now_s=lambda: self.now_s)
        self.calls.open()
        self.store.next_fault = self._fault
        self.possible: dict[bytes, set[int]] = {row: {0} for row in ROWS}  # the counter's values; 0: no cell
        self.seen: Counter[str] = Counter()

    def _link(self, address: Address) -> Any:
        return FakeLink(self.store, address)

    def _fault(self) -> str:
        return self.rng.choice(["unsent", "undone", "done"]) if self.rng.random() < self.fault_rate else ""

    # --- what a client does ------------------------------------------------------------------------

    def increment(self) -> None:
        row = self.rng.choice(ROWS)
        try:
            value = self._hbase("atomicIncrement", b"t", row, b"f:n", 1)
        except BROKEN:
            self._unsure([row])
        else:
            assert value - 1 in self.possible[row], row
            self.possible[row] = {value}

    def get(self) -> None:
        row = self.rng.choice(ROWS)
        self._read(lambda: self._hbase("getRow", b"t", row, {}), [row])

    def write_batch(self) -> None:
        rows = self.rng.sample(ROWS, self.rng.randrange(1, 12))
        try:
            self._hbase("mutateRows", b"t", [SimpleNamespace(row=row, amount=1) for row in rows], {})
        except BROKEN:
            self._unsure(rows)
            self.seen["unsure batches"] += 1
        else:
            for row in rows:
                self.possible[row] = {value + 1 for value in self.possible[row]}

    def read_batch(self) -> None:
        rows = [self.rng.choice(ROWS) for _ in range(self.rng.randrange(1, 12))]
        self._read(lambda: self._hbase("getRows", b"t", rows, {}), rows)

    def checked_batch(self) -> None:
        rows = self.rng.sample(ROWS, self.rng.randrange(1, 12))
        try:
            answers = self._ours("columnarCheckAndMutateRows", b"t", [SimpleNamespace(row=row) for row in rows])
        except BROKEN:
            return
        assert [one.row for one in answers] == rows

    def scan(self) -> None:
        is_reversed = self.rng.random() < 0.3
        first, last = sorted(self.rng.sample([b"", *ROWS], 2))
        scan = hbase.TScan(startRow=first, stopRow=self.rng.choice([None, last]), reversed=False)
        if is_reversed:
            scan = hbase.TScan(startRow=self.rng.choice([None, last]), stopRow=first, reversed=True)
        if self.rng.random() < 0.2:
            scan.filterString = b"PageFilter(100)"
        wanted = [row for row in ROWS if _within(row, scan)]
        self._read(lambda: self._scanned(scan), wanted[::-1] if is_reversed else wanted)

    def _rows_of(self, scan: Any) -> list[Any]:
        self.store.scanners.clear()  # what was lost on the way expires
        scanner, found = self._hbase("scannerOpenWithScan", b"t", scan, {}), []
        while rows := self._hbase("scannerGetList", scanner, 10):
            found += rows
        self._hbase("scannerClose", scanner)
        assert self.store.scanners == {}, "each is closed at its server"
        return found

    def _scanned(self, scan: Any) -> list[Any]:
        found: list[Any] = []
        scanner = self._hbase("scannerOpenWithScan", b"t", scan, {})
        try:
            while rows := self._hbase("scannerGetList", scanner, self.rng.choice([1, 2, 10])):
                found += rows
                if self.rng.random() < 0.2:
                    self.happen()
        finally:
            self._hbase("scannerClose", scanner)
        self.seen["scans"] += 1
        return found

    def _read(self, read: Any, rows: list[bytes]) -> None:
        """Compare what a read finds with what may be there; the counters are certain afterwards."""
        try:
            found = read()
        except BROKEN:
            self.seen["failed reads"] += 1
            return
        self.seen["reads"] += 1
        following = iter(found)
        one = next(following, None)
        for row in rows:
            value = one.value if one is not None and one.row == row else 0
            assert value in self.possible[row], (row, value, self.possible[row])
            self.possible[row] = {value}
            if value:
                one = next(following, None)
        assert one is None, f"{one.row!r} is not wanted, or not in its place"

    def _unsure(self, rows: list[bytes]) -> None:
        for row in rows:
            self.possible[row] |= {value + 1 for value in self.possible[row]}

    def _hbase(self, method: str, *args: Any) -> Any:
        return getattr(self.calls.clients[0], method)(*args)

    def _ours(self, method: str, *args: Any) -> Any:
        return getattr(self.calls.clients[1], method)(*args)

    # --- what happens to the store -----------------------------------------------------------------

    def happen(self) -> None:
        store, rng = self.store, self.rng
        what = rng.choice(["move", "move", "split", "merge", "kill", "revive", "time"])
        if what == "move":
            store.move(rng.randrange(len(store.starts)), rng.choice(sorted(store.living)))
        elif what == "split":
            store.split(rng.choice(ROWS))
        elif what == "merge":
            store.merge(rng.randrange(len(store.starts)))
        elif what == "kill" and len(store.living) > 1:
            victim = rng.choice(sorted(store.living))
            if victim != store.addresses[0]:  # the only address of some clients
                store.kill(victim)
        elif what == "revive":
            store.revive(rng.choice(store.addresses))
        self.now_s += rng.choice([0.0, 0.05, 1.0, KEPT_S])

    def check(self) -> None:
        owners = self.calls._owners
        if owners is not None:
            owners._locations.check_invariants()
            assert len(owners._links) <= min(SERVERS, MOST_LINKS)
            links = owners._links._links.values()
            assert not any(link.waits for link in links), "each answer was read"
            assert all(link.routes for link in links if isinstance(link, FakeLink)), "their servers forward no row"

    def quiet(self) -> None:
        """Without faults and changes everything succeeds, and goes to owners only."""
        self.fault_rate = 0.0
        for server in self.store.addresses:
            self.store.revive(server)
        self.now_s += KEPT_S + 10
        self._read(lambda: self._hbase("getRows", b"t", ROWS, {}), ROWS)
        self.store.forwarded = 0
        for row in ROWS:
            assert self._hbase("atomicIncrement", b"t", row, b"f:n", 1) - 1 in self.possible[row]
            self.possible[row] = {value + 1 for value in self.possible[row]}
        self._read(lambda: self._hbase("getRows", b"t", ROWS, {}), ROWS)
        self._read(lambda: self._rows_of(hbase.TScan()), ROWS)
        assert not self.routing or self.store.forwarded == 0, "no server forwards for a client that routes"


def _within(row: bytes, scan: Any) -> bool:
    if scan.reversed:
        return (not scan.startRow or row <= scan.startRow) and row > (scan.stopRow or b"")
    return row >= (scan.startRow or b"") and (not scan.stopRow or row < scan.stopRow)


def play(seed: int, left: Left = frozenset(), tell: Tell = untold) -> Counter[str]:
    history = History(random.Random(f"{seed}/start"))
    works = [
        history.increment,
        history.get,
        history.write_batch,
        history.read_batch,
        history.checked_batch,
        history.scan,
        history.happen,
        history.happen,
    ]
    for step in range(STEPS):
        if step in left:
            continue
        history.rng = random.Random(step_seed(seed, step))
        work = history.rng.choice(works)
        tell(work.__name__)
        work()
        history.check()
    tell("quiet")
    history.quiet()
    history.seen["histories"] += 1
    return history.seen


def test_what_succeeds_was_done_once_and_reads_show_it() -> None:
    seen = runs(play, SEED, seeds("histories of a routing client", deep=DEEP, short=SHORT))
    assert seen["scans"] > seen["histories"]
    assert seen["reads"] > 10 * seen["failed reads"] > 0
    assert seen["unsure batches"] > 0


if __name__ == "__main__":
    main("tests.model.test_routing_client_model", play, STEPS, SEED)
