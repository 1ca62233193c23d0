"""Clients that call owners directly, and clients that know several addresses, at real servers."""

from __future__ import annotations

import random
import re
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from thriftpy2.thrift import TException
from thriftpy2.transport import TTransportException

from columnar.client import ClusterAdmin, Connection, ConnectionPool, Expect, Increment, Put, RegionAdmin
from columnar.client.errors import IOError, hbase_class
from tests.support.certificates import Authority
from tests.support.cluster_process import ClusterProcess
from tests.support.deep import cases
from tests.support.group_scenario import GROUPS, scenario
from tests.support.many_nodes import CLUSTERS, NodesCluster, cluster_of, until
from tests.support.ports import free_port
from tests.support.shell import Shell
from tests.support.standalone_store import StoreProcess
from tests.support.store_thread import StoreThread
from wikka_port.store import Store

ROWS = [b"%02d" % n for n in range(100)]
SPLITS = [b"%d" % n for n in range(1, 10)]
LOST = (TTransportException, OSError, EOFError)
TIMEOUT_MS = 30_000


@pytest.fixture(
    scope="module", params=cases("routing clients, of servers and of nodes", deep=CLUSTERS, short=CLUSTERS[:1])
)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterProcess | NodesCluster]:
    folder = tmp_path_factory.mktemp("routing") / "data"
    with cluster_of(request.param, folder, 3) as store:
        yield store


def routing(store: StoreProcess | NodesCluster, **options: Any) -> Connection:
    return Connection("127.0.0.1", store.port, timeout=TIMEOUT_MS, routing=True, **options)


def forwarded(store: ClusterProcess | NodesCluster) -> int:
    """Return the calls that servers have forwarded so far."""
    with urllib.request.urlopen(f"{store.web}/metrics") as page:
        found = re.findall(r"^columnar_forwarded_total\{[^}]*\} (\d+)", page.read().decode(), re.MULTILINE)
    return sum(map(int, found))


def test_the_wiki_calls_owners(cluster: ClusterProcess | NodesCluster) -> None:
    """Or each of its views would take the processor of two servers."""
    with routing(cluster) as connection:
        connection.create_table("wikis", {"f": {}}, splits=SPLITS)
        with connection.table("wikis").batch() as batch:
            for row in ROWS:
                batch.put(row, {b"f:q": row})
        assert len({one.server for one in ClusterAdmin(connection).locations(b"wikis")}) == 3
    before = forwarded(cluster)
    with closing(Store("127.0.0.1", cluster.port)) as pages:
        for row in ROWS:
            assert pages.run(lambda connection, row=row: connection.table("wikis").row(row)) == {b"f:q": row}
    assert forwarded(cluster) == before


def test_groups_of_rows_answer_as_in_one_process(cluster: ClusterProcess | NodesCluster, tmp_path: Path) -> None:
    """Through servers that forward the calls, and by a client that calls the owners."""
    with StoreThread(tmp_path / "one") as store, store.connection() as one, store.connection() as other:
        expected = scenario(one, other, "groups")
    with closing(cluster.connection()) as one, closing(cluster.connection()) as other, routing(cluster) as owners:
        assert scenario(one, other, "groups") == expected
        one.delete_table("groups", disable=True)
        assert scenario(owners, owners, "groups") == expected
        before = forwarded(cluster)
        for group in GROUPS:
            owners.table("groups").group(group).rows()
            owners.table("groups").mutate_group({group: ((), [Put(b"f:x", b"1")])})
        assert forwarded(cluster) == before


def test_all_that_a_table_does_goes_to_the_owners(cluster: ClusterProcess | NodesCluster) -> None:
    with routing(cluster) as connection:
        connection.create_table("all", {"f": {}}, splits=SPLITS)
        table = connection.table("all")
        with table.batch() as batch:
            for row in ROWS:
                batch.put(row, {b"f:q": row})
        owners = {one.server for one in ClusterAdmin(connection).locations(b"all")}
        assert len(owners) == 3
        before = forwarded(cluster)
        for row in ROWS[::7]:
            table.put(row, {b"f:more": b"1"})
            assert table.row(row) == {b"f:q": row, b"f:more": b"1"}
            assert table.cells(row, b"f:q") == [row]
            assert table.counter_inc(row, b"f:n") == 1
            assert table.check_and_mutate(row, [Expect(b"f:q", row)], [Increment(b"f:n", 2)]).counters == [3]
            assert table.slice(row, b"f", b"m", b"n") == [(b"more", b"1")]
            table.delete(row, [b"f:more", b"f:n"])
        wanted = [*ROWS[::-3], b"none", ROWS[5], ROWS[5]]
        assert [row for row, _ in table.rows(wanted)] == [row for row in wanted if row != b"none"]
        checked = table.check_and_mutate_rows({row: ([Expect.exists(b"f:q")], [Put(b"f:c", b"1")]) for row in ROWS})
        assert [(row, one.applied) for row, one in checked.items()] == [(row, True) for row in ROWS]
        table.mutate_rows({row: [Put(b"f:l", b"1")] for row in ROWS})
        cells = {row: {b"f:q": row, b"f:c": b"1", b"f:l": b"1"} for row in ROWS}
        assert dict(table.scan(batch_size=7)) == cells
        assert list(dict(table.scan(row_start=b"15", row_stop=b"62", limit=30))) == ROWS[15:45]
        assert list(dict(table.scan(row_prefix=b"3", columns=[b"f:q"]))) == ROWS[30:40]
        assert list(dict(table.scan(filter=b"PrefixFilter('4')"))) == ROWS[40:50]
        assert forwarded(cluster) == before
        assert list(dict(table.scan(reverse=True))) == ROWS[::-1]
        assert list(dict(table.scan(filter=b"PageFilter(42)"))) == ROWS[:42], "of the whole, not of each region"
        with pytest.raises(IOError) as refused:
            connection.table("none").row(b"a")
        assert hbase_class(refused.value) == "TableNotFoundException"
        with pytest.raises(IOError, match="there is no filter 'NoFilter'"):
            next(table.scan(filter=b"NoFilter("))
        with closing(cluster.connection()) as plain:
            assert all(plain.table("all").row(row) for row in ROWS)
        assert forwarded(cluster) > before + 30, "what others are forwarded is counted"


def test_a_table_that_is_made_anew_is_found(cluster: ClusterProcess | NodesCluster) -> None:
    with routing(cluster) as connection:
        for splits in (SPLITS, [b"5"], [b"%02d" % n for n in range(3, 90, 7)]):
            connection.create_table("anew", {"f": {}}, splits=splits)
            table = connection.table("anew")
            for row in ROWS[::5]:
                table.put(row, {b"f:q": row})
            assert dict(table.scan()) == {row: {b"f:q": row} for row in ROWS[::5]}
            connection.delete_table("anew", disable=True)


class Writer(threading.Thread):
    """Counts each of its rows up, and reads what it counted: by single calls, batches and scans."""

    def __init__(self, store: ClusterProcess | NodesCluster, number: int, stop: threading.Event) -> None:
        super().__init__(name=f"writer {number}")
        self._connection = routing(store)
        self._table = self._connection.table("moved")
        self._rng = random.Random(f"routing {number}")
        self._rows = [b"%02d" % n for n in range(number, 100, 4)]
        self.possible: dict[bytes, set[int]] = {row: {0} for row in self._rows}
        self._stopping = stop
        self._column = b"f:n"
        self.calls = self.lost = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._step()
                self.calls += 1
        except BaseException as failure:  # noqa: BLE001 - the test raises it
            self.failure = failure
        finally:
            self._connection.close()

    def _step(self) -> None:
        row = self._rng.choice(self._rows)
        chance = self._rng.random()
        try:
            if chance < 0.5:
                value = self._table.counter_inc(row, self._column)
                assert value - 1 in self.possible[row], (row, value, self.possible[row])
                self.possible[row] = {value}
            elif chance < 0.8:
                self._saw([row], {row: self._table.row(row, [self._column])})
            elif chance < 0.9:
                self._saw(self._rows, dict(self._table.rows(self._rows, [self._column])))
            else:
                mine = {one: cells for one, cells in self._table.scan(columns=[self._column]) if one in self.possible}
                self._saw(self._rows, mine)
        except LOST:
            self._unsure(row, is_write=chance < 0.5)
        except IOError as error:
            if hbase_class(error) not in {"CallTimeoutException", "NotServingRegionException"}:
                raise
            self._unsure(row, is_write=chance < 0.5 and hbase_class(error) == "CallTimeoutException")

    def _unsure(self, row: bytes, *, is_write: bool) -> None:
        self.lost += 1
        if is_write:
            self.possible[row] |= {value + 1 for value in self.possible[row]}

    def _saw(self, rows: list[bytes], found: dict[bytes, dict[bytes, bytes]]) -> None:
        for row in rows:
            value = int.from_bytes(found.get(row, {}).get(self._column, b""), "big")
            assert value in self.possible[row], (row, value, self.possible[row])
            self.possible[row] = {value}


def _open_locations(admin: ClusterAdmin) -> list[Any]:
    """Return the open regions; right after a kill there may be none for a moment."""
    found: list[Any] = []

    def some() -> bool:
        found[:] = [one for one in admin.locations(b"moved") if one.state == "OPEN"]
        return bool(found)

    until(some)
    return found


def _upheaval(
    store: ClusterProcess | NodesCluster, connection: Connection, rng: random.Random, *, kills: int, rounds: int
) -> None:
    admin, regions = ClusterAdmin(connection), RegionAdmin(connection)
    for n in range(rounds):
        locations = _open_locations(admin)
        chosen = rng.choice(locations)
        try:
            if n % 4 == 1:
                regions.split(chosen.name)
            elif n % 4 == 3 and len(locations) > 6:
                at = rng.randrange(len(locations) - 1)
                regions.merge(locations[at].name, locations[at + 1].name)
            else:
                admin.move(chosen.name)
        except (TException, OSError):
            pass  # the region is in transition already, or its server was killed meanwhile
        if kills and n % (rounds // kills) == rounds // kills - 1:
            store.kill_server(rng.randrange(2))


def _moved(store: ClusterProcess | NodesCluster, *, kills: int, rounds: int) -> list[Writer]:
    with closing(routing(store)) as connection:
        connection.create_table("moved", {"f": {}}, splits=SPLITS)
        stop = threading.Event()
        writers = [Writer(store, n, stop) for n in range(4)]
        for writer in writers:
            writer.start()
        try:
            _upheaval(store, connection, random.Random(5), kills=kills, rounds=rounds)
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        for writer in writers:
            if writer.failure is not None:
                raise writer.failure
        found = {row: int.from_bytes(cells[b"f:n"], "big") for row, cells in connection.table("moved").scan()}
        for writer in writers:
            for row, possible in writer.possible.items():
                assert found.get(row, 0) in possible
        connection.delete_table("moved", disable=True)
        return writers


def test_moves_splits_and_merges_fail_no_call(cluster: ClusterProcess | NodesCluster) -> None:
    writers = _moved(cluster, kills=0, rounds=30)
    assert sum(writer.calls for writer in writers) > 100
    assert sum(writer.lost for writer in writers) == 0


def test_no_answer_is_wrong_whichever_server_is_killed(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path / "data", 3) as store:
        writers = _moved(store, kills=4, rounds=24)
        assert sum(writer.calls for writer in writers) > 100


def test_a_rolling_restart_fails_no_call(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path / "data", 2) as store, closing(store.connection()) as connection:
        connection.create_table("moved", {"f": {}}, splits=SPLITS)
        stop = threading.Event()
        writers = [Writer(store, n, stop) for n in range(3)]
        for writer in writers:
            writer.start()
        Shell(f"127.0.0.1:{store.port}").out("restart", "--rolling", "--data", str(store.folder))
        stop.set()
        for writer in writers:
            writer.join()
        assert [writer.failure for writer in writers] == [None] * 3
        assert sum(writer.lost for writer in writers) == 0


# --- several addresses -------------------------------------------------------------------------------


def test_the_first_address_that_answers(cluster: ClusterProcess | NodesCluster) -> None:
    addresses = [f"127.0.0.1:{free_port()}", f"127.0.0.1:{cluster.port}"]
    for hosts in (addresses, ",".join(addresses)):
        for options in ({}, {"routing": True}, {"transport": "framed", "protocol": "compact"}):
            with Connection(hosts, timeout=TIMEOUT_MS, **options) as connection:  # type: ignore[arg-type]
                assert connection.is_columnar
                assert str(connection.address) == addresses[1]
    with pytest.raises(TTransportException, match=r"cannot connect to .*: Connection refused; cannot connect to "):
        Connection([f"127.0.0.1:{free_port()}" for _ in range(2)])


@pytest.mark.parametrize("killed", [0, 1])
def test_the_next_address_once_a_server_is_killed(tmp_path: Path, killed: int) -> None:
    with ClusterProcess(tmp_path / "data", 2) as store, closing(store.connection()) as admin:
        admin.create_table("t", {"f": {}}, splits=[b"5"])
        ports = {one.host.encode() + b":%d" % one.port for one in ClusterAdmin(admin).locations(b"t")}
        assert len(ports) == 2, "each server's own"
        with Connection(sorted(port.decode() for port in ports), timeout=TIMEOUT_MS) as connection:
            table = connection.table("t")
            table.put(b"1", {b"f:q": b"1"})
            store.kill_server(killed)
            for n in range(20):  # no call is sent to a server that has ended, so each goes to the other one
                table.put(b"%d" % n, {b"f:q": b"1"})
                assert table.row(b"1") == {b"f:q": b"1"}


def test_a_pool_has_our_connections(cluster: ClusterProcess | NodesCluster) -> None:
    addresses = f"127.0.0.1:{free_port()},127.0.0.1:{cluster.port}"
    pool = ConnectionPool(2, host=addresses, timeout=TIMEOUT_MS, routing=True)
    with pool.connection() as connection:
        connection.create_table("pooled", {"f": {}})
        connection.table("pooled").put(b"r", {b"f:q": b"v"})
        assert type(connection) is Connection
    with pytest.raises(IOError), pool.connection() as connection:
        connection.table("none").row(b"r")
    with pool.connection() as connection:
        assert connection.table("pooled").row(b"r") == {b"f:q": b"v"}


def test_one_process_is_routed_to_as_it_is(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "data") as store, routing(store) as connection:
        connection.create_table("t", {"f": {}}, splits=SPLITS)
        table = connection.table("t")
        with table.batch() as batch:
            for row in ROWS:
                batch.put(row, {b"f:q": row})
        assert dict(table.scan()) == {row: {b"f:q": row} for row in ROWS}
        assert table.row(b"33") == {b"f:q": b"33"}
        assert connection.status().connections == 1


def test_owners_are_reached_over_tls(tmp_path: Path) -> None:
    ours = Authority(tmp_path, "ours")
    own, client = ours.sign("store"), ours.sign("client")
    flags = ["--tls-cert", own.cert, "--tls-key", own.key, "--tls-client-ca", ours.ca]
    tls = {"tls_ca": ours.ca, "tls_cert": client.cert, "tls_key": client.key}
    with ClusterProcess(tmp_path / "data", 2, *flags) as store:
        addresses = f"127.0.0.1:{free_port()},127.0.0.1:{store.port}"
        with Connection(addresses, timeout=TIMEOUT_MS, routing=True, **tls) as connection:  # type: ignore[arg-type]
            connection.create_table("t", {"f": {}}, splits=SPLITS)
            table = connection.table("t")
            with table.batch() as batch:
                for row in ROWS:
                    batch.put(row, {b"f:q": row})
            assert dict(table.scan()) == {row: {b"f:q": row} for row in ROWS}
            assert [table.row(row) for row in ROWS] == [{b"f:q": row} for row in ROWS]
            assert connection._calls is not None
            assert connection._calls._owners is not None
            assert len(connection._calls._owners._links) == 2
