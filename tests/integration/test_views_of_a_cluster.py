"""A view over two servers: built under load, kept through a move and the death of a server, dropped."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator

import pytest
from thriftpy2.thrift import TException

from columnar.client import Connection, Put
from columnar.client.cluster import ClusterAdmin
from columnar.model.view_definition import Source, View, to_json
from tests.support.cluster_process import ClusterProcess
from tests.support.deep import cases
from tests.support.many_nodes import CLUSTERS, NodesCluster, cluster_of

SPLITS = [b"3", b"6"]
WAIT_MS = 60_000
VIEW = View("by_a", Source("t", ("f:a",), sums={"n": "f:n"}))


@pytest.fixture(
    params=cases("a view through a move and a kill, of servers and of nodes", deep=CLUSTERS, short=CLUSTERS[:1])
)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterProcess | NodesCluster]:
    with cluster_of(request.param, tmp_path_factory.mktemp("cluster") / "data", 2) as store:
        yield store


class Load:
    """Writes until it is stopped, again where a server died."""

    def __init__(self, cluster: ClusterProcess | NodesCluster) -> None:
        self._cluster = cluster
        self._rng = random.Random(7)
        self._stop = threading.Event()
        self.written = 0
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        connection = self._cluster.connection()
        while not self._stop.is_set():
            row = b"%d-%02d" % (self._rng.randrange(10), self._rng.randrange(20))
            puts = [Put(b"f:a", b"group-%d" % self._rng.randrange(5)), Put(b"f:n", b"%d" % self._rng.randrange(9))]
            try:
                connection.table("t").mutate(row, puts)
                self.written += 1
            except (TException, OSError, EOFError):
                connection.close()
                connection = self._cluster.connection()
        connection.close()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def check(connection: Connection) -> None:
    assert connection.call("columnarViewWait", "by_a", "", WAIT_MS), "not there in time"
    expected: dict[bytes, Counter[bytes]] = {}
    for _, cells in connection.table("t").scan():
        held = expected.setdefault(cells[b"f:a"], Counter())
        held[b"v:count"] += 1
        held[b"v:n"] += int(cells[b"f:n"])
    found = {
        row: {c: int.from_bytes(v, "big", signed=True) for c, v in cells.items()}
        for row, cells in connection.table("by_a").scan(columns=[b"v"])
        if cells
    }
    assert found == {row: {c: n for c, n in held.items() if n} for row, held in expected.items()}


def test_a_view_is_kept_through_a_move_and_a_kill(cluster: ClusterProcess | NodesCluster) -> None:
    connection = cluster.connection()
    connection.create_table("t", {"f": {}}, splits=SPLITS)
    for n in range(200):
        connection.table("t").mutate(b"%d-%02d" % (n % 10, n % 20), [Put(b"f:a", b"old"), Put(b"f:n", b"1")])
    load = Load(cluster)
    try:
        connection.call("columnarViewAdd", to_json(VIEW))
        admin = ClusterAdmin(connection)
        places = admin.locations(b"t") + admin.locations(b"by_a")
        names = [one.name for one in admin.servers().servers]
        for one in places:
            (other,) = [name for name in names if name != one.server]
            admin.move(one.name, other)
        cluster.kill_server()
    finally:
        load.stop()
    connection.close()
    connection = cluster.connection()
    assert load.written
    check(connection)
    (status,) = connection.views.list()
    assert status.built_rows
    assert status.rejected_rows == 0
    token = connection.table("t").mutate(b"z", [Put(b"f:a", b"last"), Put(b"f:n", b"3")]).sequence
    assert connection.call("columnarTriggerWait", "by_a", token, WAIT_MS)
    check(connection)
    with pytest.raises(TException, match="nobody but its maintainer writes"):
        connection.table("by_a").put(b"last", {b"v:count": b"1"})
    connection.call("columnarViewDrop", "by_a")
    assert b"by_a" not in connection.tables()
    assert connection.views.list() == []
    connection.close()
