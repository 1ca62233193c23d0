"""Clocks of machines 20 s apart, moved while nodes serve: no update is lost, no timestamp of a row steps back.

A clock that differs by more is refused at the node's start.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Final

import pytest

from columnar.client import ClusterAdmin, Connection
from columnar.client.errors import StoreIOError
from tests.support.many_nodes import ManyNodes, NodeProcess, many_nodes, until
from tests.support.shifted_clock import ShiftedClock

TABLE: Final = b"t"
ROWS: Final = (b"a", b"e", b"i", b"n")
SHIFTS_MS: Final = (0, 20_000, -5_000)  # of the three machines; at most 30 s between two
ROUNDS: Final = 24
STILL_MS: Final = 4_000  # a clock stands still for less, and not until a machine that is 20 s behind has caught up


class Machines:
    def __init__(self, cluster: ManyNodes, clocks: list[ShiftedClock]) -> None:
        self.cluster = cluster
        self.clocks = clocks


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    folder = tmp_path_factory.mktemp("clocks")
    clocks = [ShiftedClock.made(folder / f"clock-{n}", shift) for n, shift in enumerate(SHIFTS_MS)]

    def shift(node: NodeProcess) -> None:
        node.environment = clocks[int(node.name[1:]) - 1].environment(node.environment)

    with many_nodes(folder, prepare=shift) as cluster:
        connection = cluster.nodes[0].connection()
        connection.create_table(TABLE, {"f": {"max_versions": 1_000}, "n": {}}, splits=[b"d", b"h", b"m"])
        connection.close()
        yield Machines(cluster, clocks)


class Watcher:
    """Writes rows one after the other, and checks each answer."""

    def __init__(self, connection: Connection) -> None:
        self._table = connection.table(TABLE)
        self._written = dict.fromkeys(ROWS, 0)
        self._counted = dict.fromkeys(ROWS, 0)
        self._stamps = dict.fromkeys(ROWS, 0)
        self.still_since = dict.fromkeys(ROWS, (0, 0.0))  # the timestamp, and since when it is the same
        self.longest_still_s = 0.0

    def update(self, row: bytes) -> None:
        """Write, delete and count; whatever is written must be seen, at a timestamp that does not fall."""
        value = self._written[row] = self._written[row] + 1
        self._again(lambda: self._table.put(row, {b"f:q": b"%d" % value, b"f:gone": b"there"}))
        cells = self._table.row(row, include_timestamp=True)
        found, stamp = cells[b"f:q"]
        assert found == b"%d" % value, f"the update {value} of {row!r} is hidden by {found!r}"
        assert stamp >= self._stamps[row], f"{row!r} stepped back by {self._stamps[row] - stamp} ms"
        self._note(row, stamp)
        self._again(lambda: self._table.delete(row, [b"f:gone"]))
        assert b"f:gone" not in self._table.row(row)

    def count(self, row: bytes) -> None:
        self._counted[row] += 1
        assert self._table.counter_inc(row, b"n:q") == self._counted[row]

    def _note(self, row: bytes, stamp: int) -> None:
        self._stamps[row] = stamp
        last, since_s = self.still_since[row]
        now_s = time.monotonic()
        if stamp != last:
            self.still_since[row] = (stamp, now_s)
        else:
            self.longest_still_s = max(self.longest_still_s, now_s - since_s)

    def _again(self, write: object) -> None:
        """Repeat a write of unknown outcome; it is the same write."""
        assert callable(write)
        deadline = time.monotonic() + 30.0
        while True:
            try:
                write()
                return
            except StoreIOError:
                assert time.monotonic() < deadline


def move_all(admin: ClusterAdmin, rng: random.Random) -> None:
    """Move one region to a server of another node."""
    place = rng.choice(admin.locations(TABLE))
    servers = [server.name for server in admin.servers().servers if server.name != place.server.partition(".")[0]]
    admin.move(place.encoded_name.encode(), rng.choice(servers))


def test_clocks_apart_and_moved_lose_no_update(machines: Machines) -> None:
    rng = random.Random(35)
    connection = machines.cluster.nodes[0].connection()
    watcher, admin = Watcher(connection), ClusterAdmin(connection)
    shifts = [SHIFTS_MS, (0, 0, 0), (8_000, -5_000, 5_000), (-2_000, 10_000, 0)]
    for turn in range(ROUNDS):
        for clock, shift_ms in zip(machines.clocks, shifts[turn * len(shifts) // ROUNDS], strict=True):
            clock.move(shift_ms)
        for row in ROWS:
            watcher.update(row)
            watcher.count(row)
        move_all(admin, rng)
        for row in ROWS:
            watcher.update(row)
    connection.close()
    assert watcher.longest_still_s < STILL_MS / 1_000, "a row's clock stood still until its machine had caught up"


def test_a_row_of_a_dead_machine_goes_on_above_its_clock(machines: Machines) -> None:
    machines.clocks[1].move(20_000)
    machines.clocks[0].move(0)
    machines.clocks[2].move(0)
    fast = machines.cluster.nodes[1]
    connection = machines.cluster.nodes[0].connection()
    watcher, admin = Watcher(connection), ClusterAdmin(connection)
    for place in admin.locations(TABLE):
        if not place.server.startswith("n2-"):
            admin.move(place.encoded_name.encode(), "n2-s1")
    for row in ROWS:
        watcher.update(row)
    fast.kill()
    for row in ROWS:
        watcher.update(row)
    connection.close()
    fast.begin()
    fast.await_ready()


@pytest.mark.parametrize(("shift_ms", "text"), [(95_000, "ahead of"), (-95_000, "behind")])
def test_a_machine_whose_clock_is_wrong_is_refused(machines: Machines, shift_ms: int, text: str) -> None:
    node = machines.cluster.nodes[2]
    until(lambda: node.lives)
    assert node.stop() == 0
    machines.clocks[2].move(shift_ms)
    node.begin()
    assert node.has_ended(30.0)
    node.close_output()
    log = node.log.read_text().splitlines()[-1]
    assert "the clock of this machine is" in log
    assert f" s {text} that of node n" in log
    assert "chrony" in log
    machines.clocks[2].move(0)
    node.begin()
    node.await_ready()
