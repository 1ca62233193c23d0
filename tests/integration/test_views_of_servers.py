"""Views over two servers: read, checked, rebuilt and swapped while readers read and writers write."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest
from thriftpy2.transport import TTransportException

from columnar.client import Connection, NotYet, Put, RegionAdmin, Source, View
from columnar.client.errors import IOError as Refused
from tests.support.cluster_process import ClusterProcess
from tests.support.deep import cases
from tests.support.many_nodes import CLUSTERS, NodesCluster, cluster_of

PAGES = 300
AUTHORS = [b"ann", b"bob", b"cid", b"mia", b"zoe"]
SUMS = View("authors", Source("pages", key=("meta:author",), sums={"size": "meta:size"}, order="meta:size desc"))
OTHER = View("authors", Source("pages", key=("meta:author",), sums={"half": "meta:half"}))
WAIT_MS = 60_000
LOST = (TTransportException, OSError, EOFError)  # the connection, with its server


@pytest.fixture(scope="module", params=cases("views, of servers and of nodes", deep=CLUSTERS, short=CLUSTERS[:1]))
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterProcess | NodesCluster]:
    with cluster_of(request.param, tmp_path_factory.mktemp("views") / "data", 2) as store:
        with closing(store.connection()) as connection:
            connection.create_table("pages", {"meta": {}}, splits=[b"page100", b"page200"])
            with connection.table("pages").batch(batch_size=100) as batch:
                for number in range(PAGES):
                    batch.put(b"page%03d" % number, cells_of(number))
            connection.views.add(SUMS)
            built(connection, "authors")
            RegionAdmin(connection).split(b"authors", b"c")  # so that both servers have groups
        yield store


def cells_of(number: int) -> dict[bytes, bytes]:
    return {
        b"meta:author": AUTHORS[number % len(AUTHORS)],
        b"meta:size": b"%d" % number,
        b"meta:half": b"%d" % (number // 2),
    }


def built(connection: Connection, table: str) -> None:
    while not any(one.table == table and one.state == "live" for one in connection.views.list()):
        assert connection.views.wait(table.replace(".", "@"), timeout_ms=WAIT_MS)


def test_reads_see_what_was_written(cluster: ClusterProcess | NodesCluster) -> None:
    with closing(cluster.connection()) as connection:
        authors = connection.view("authors")
        numbers = range(1, PAGES, len(AUTHORS))
        bob = authors.get(b"bob")
        assert (bob.count, bob.sums, bob.lowest, bob.highest) == (len(numbers), {"size": sum(numbers)}, 1, numbers[-1])
        assert [one.row for one in authors.top(b"bob", 2)] == [b"page296", b"page291"]
        assert [one.key for one in authors.groups()] == AUTHORS
        wrote = connection.table("pages").mutate(b"page999", [Put(b"meta:author", b"new"), Put(b"meta:size", b"7")])
        assert authors.get(b"new", after=wrote.sequence, timeout_ms=WAIT_MS).sums["size"] == 7
        beyond = f"{wrote.sequence.rpartition('-')[0]}-{int(wrote.sequence.rpartition('-')[2]) + 1_000_000}"
        reads = (
            lambda token, wait: authors.groups(b"", written=token, timeout_ms=wait),
            lambda token, wait: authors.members(b"new", written=token, timeout_ms=wait),
        )
        for read in reads:
            assert read(wrote.sequence, WAIT_MS)
            with pytest.raises(NotYet):
                read(beyond, 1)
        origin, _, number = wrote.sequence.rpartition("-")
        with pytest.raises(NotYet):
            authors.get(b"new", after=f"{origin}-{int(number) + 1_000_000}", timeout_ms=1)


def test_a_check_finds_nothing_while_writers_write(cluster: ClusterProcess | NodesCluster) -> None:
    with closing(cluster.connection()) as connection:
        sound = connection.views.check("authors")
        assert (sound.wrong, sound.unsure, sound.findings) == (0, 0, ())
        assert sound.members == sound.source_rows >= PAGES
        with writing(cluster):
            assert connection.views.check("authors").wrong == 0
            repaired = connection.views.check("authors", repair=True)
            assert (repaired.wrong, repaired.repaired) == (0, 0)


def test_a_swap_leaves_no_reader_without_an_answer(cluster: ClusterProcess | NodesCluster) -> None:
    with closing(cluster.connection()) as connection, writing(cluster):
        assert connection.views.rebuild("authors", OTHER) == "authors.2"
        built(connection, "authors.2")
        with reading(cluster) as seen:
            assert connection.views.swap("authors") == ("authors.2", "authors")
            assert connection.views.rollback("authors") == ("authors", "authors.2")
            assert connection.views.rollback("authors") == ("authors.2", "authors")
        assert seen
        assert connection.view("authors").get(b"ann").sums.keys() == {"half"}
        assert b"v:half" in connection.table("authors").row(b"ann", [b"v"])
        assert [one.role for one in connection.views.list()] == ["kept", "live"]
        with pytest.raises(Refused, match="no next generation"):
            connection.views.swap("authors")
    with writing(cluster, through_deaths=True), reading(cluster, through_deaths=True) as seen:
        for server in range(2):
            killing = threading.Thread(target=cluster.kill_server, args=(server,))
            killing.start()
            swap_through(cluster)
            killing.join()
        before = len(seen)
        while len(seen) < before + 5:
            threading.Event().wait(0.01)
    with closing(cluster.connection()) as connection:
        assert connection.views.check("authors").wrong == 0
        connection.views.drop("authors")
        assert b"authors" not in connection.tables()


def swap_through(cluster: ClusterProcess | NodesCluster) -> None:
    """There and back, through the death of the server that is asked: a change whose answer is lost is done or not."""
    for table in ("authors", "authors.2"):
        while live(cluster) != table:
            with suppress(*LOST), closing(cluster.connection()) as connection:
                connection.views.rollback("authors")


def live(cluster: ClusterProcess | NodesCluster) -> str:
    while True:
        with suppress(*LOST), closing(cluster.connection()) as connection:
            return next(one.table for one in connection.views.list() if one.role == "live")


class Running:
    """A thread that does one thing until the end of the block, which raises what went wrong."""

    def __init__(self, cluster: ClusterProcess | NodesCluster, work: object, *, through_deaths: bool = False) -> None:
        self._connection = cluster.connection()
        self._cluster = cluster
        self._through_deaths = through_deaths
        self._work = work
        self._is_over = threading.Event()
        self._failures: list[BaseException] = []
        self.seen: list[object] = []
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        number = 0
        try:
            while not self._is_over.is_set():
                try:
                    self.seen.append(self._work(self._connection, number))  # type: ignore[operator]
                except LOST:
                    if not self._through_deaths:
                        raise
                    self._connection.close()
                    self._connection = self._cluster.connection()
                number += 1
        except BaseException as error:  # noqa: BLE001 - raised in the test's thread
            self._failures.append(error)

    def __enter__(self) -> list[object]:
        self._thread.start()
        return self.seen

    def __exit__(self, *_: object) -> None:
        while self._thread.is_alive() and len(self.seen) < 5:
            self._is_over.wait(0.01)
        self._is_over.set()
        self._thread.join()
        self._connection.close()
        if self._failures:
            raise self._failures[0]


def writing(cluster: ClusterProcess | NodesCluster, *, through_deaths: bool = False) -> Running:
    def write(connection: Connection, number: int) -> None:
        try:
            connection.table("pages").put(b"page%03d" % (number * 7 % PAGES), cells_of(number))
        except Refused as error:  # the owner died, which a gateway that lives says: written or not
            if not (through_deaths and error.message.startswith(b"CallTimeoutException")):
                raise

    return Running(cluster, write, through_deaths=through_deaths)


def reading(cluster: ClusterProcess | NodesCluster, *, through_deaths: bool = False) -> Running:
    """By the view's API and as any HBase client does: each read answers for one generation as a whole."""

    def read(connection: Connection, number: int) -> None:
        group = connection.view("authors").get(AUTHORS[number % len(AUTHORS)])
        assert group.count > 0
        row = connection.table("authors").row(AUTHORS[number % len(AUTHORS)], [b"v"])
        assert (b"v:half" in row) != (b"v:size" in row), row
        scanned = [key for key, _ in connection.table("authors").scan(columns=[b"v:count"])]
        assert set(AUTHORS) <= set(scanned)

    return Running(cluster, read, through_deaths=through_deaths)
