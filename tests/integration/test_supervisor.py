"""A supervisor and its servers as real processes: every server answers for every row, and nothing is lost by kills."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
import requests

from columnar.client import Admin, ClusterAdmin, RegionAdmin
from columnar.version import at_start, full, parts_of
from columnar.wire.idl import hbase
from tests.support.cluster_process import ClusterProcess, Rows, gone, until
from tests.support.standalone_store import WAIT_S

SPLITS = [b"d", b"h", b"m", b"r", b"v"]
ROWS = [bytes([letter]) + b"%d" % n for letter in b"abcdefghijklmnopqrstuvwxyz" for n in range(4)]


def create(store: ClusterProcess, table: str) -> None:
    connection = store.connection()
    connection.create_table(table, {"f": {}}, splits=SPLITS)
    connection.close()


def write(rows: Rows, table: bytes, value: bytes) -> None:
    for row in ROWS:
        rows.put(table, row, value + row)


def check(rows: Rows, table: bytes, value: bytes) -> None:
    assert {row: rows.get(table, row) for row in ROWS} == {row: value + row for row in ROWS}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path_factory.mktemp("cluster") / "data", 2, "--web-port", "0") as store:
        create(store, "shared")
        yield store


def test_every_server_answers_for_every_row(shared: ClusterProcess) -> None:
    one, other = shared.rows_of_each()
    with one, other:
        write(one, b"shared", b"1")
        check(other, b"shared", b"1")
        write(other, b"shared", b"2")
        check(one, b"shared", b"2")


def test_every_server_says_its_own_version(shared: ClusterProcess) -> None:
    """As each server says it: after a rolling restart of an upgrade servers are newer than their supervisor."""
    connection = shared.connection()
    found = ClusterAdmin(connection).servers().servers
    report = connection.status()
    connection.close()
    own = full(at_start())
    assert [one.version for one in found] == [own, own]
    assert (report.version.decode(), report.build.decode().removesuffix("-dirty")) == parts_of(own)
    assert sum(f"version {own}" in line for line in shared.log.read_text().splitlines()) >= 2


def test_tables_are_made_changed_and_dropped_through_any_server(shared: ClusterProcess) -> None:
    one, other = shared.rows_of_each()
    with one, other:
        one.client.createTable(b"made", [hbase.ColumnDescriptor(name=b"f:")])
        other.put(b"made", b"row", b"value")
        assert one.get(b"made", b"row") == b"value"
        assert b"made" in other.client.getTableNames()
        other.client.disableTable(b"made")
        with pytest.raises(Exception, match="TableNotEnabled"):
            one.get(b"made", b"row")
        one.client.deleteTable(b"made")
        assert b"made" not in other.client.getTableNames()
        with pytest.raises(Exception, match="exists already"):
            one.client.createTable(b"shared", [hbase.ColumnDescriptor(name=b"f:")])


def test_a_region_is_split_and_merged_on_request(shared: ClusterProcess) -> None:
    create(shared, "split")
    connection = shared.connection()
    with shared.rows() as rows:
        write(rows, b"split", b"1")
        regions = Admin(connection).regions("split")
        low, high = RegionAdmin(connection).split(b"split", b"b")
        assert len(Admin(connection).regions("split")) == len(regions) + 1
        check(rows, b"split", b"1")
        write(rows, b"split", b"2")
        until(lambda: all(one.state == "up" for one in ClusterAdmin(connection).servers().servers))
        ClusterAdmin(connection).move(high)  # its epoch is above that of its neighbour now
        owners = {one.name: one.server for one in ClusterAdmin(connection).locations(b"split")}
        assert owners[low] != owners[high]
        RegionAdmin(connection).merge(low, high)
        assert len(Admin(connection).regions("split")) == len(regions)
        check(rows, b"split", b"2")
    connection.close()


@pytest.mark.parametrize("moved", [0, 1])
def test_regions_of_different_epochs_are_merged(shared: ClusterProcess, moved: int) -> None:
    """One of them has had more owners than the other."""
    table = f"merged{moved}"
    create(shared, table)
    connection = shared.connection()
    with shared.rows() as rows:
        write(rows, table.encode(), b"1")
        neighbours = Admin(connection).regions(table)[1:3]
        for _ in range(2):
            ClusterAdmin(connection).move(neighbours[moved].name)
        RegionAdmin(connection).merge(*(region.name for region in neighbours))
        assert len(Admin(connection).regions(table)) == len(SPLITS)
        check(rows, table.encode(), b"1")
    connection.close()


def test_open_connections_count_and_closed_ones_do_not(shared: ClusterProcess) -> None:
    connection = shared.connection()
    admin = ClusterAdmin(connection)

    def counted() -> int:
        return sum(one.connections for one in admin.servers().servers)

    opened = [shared.rows() for _ in range(6)]
    until(lambda: counted() > 6)
    for rows in opened:
        rows.close()
    until(lambda: counted() < 6)
    connection.close()


def test_rows_of_a_killed_server_answer_again_and_nothing_is_lost(shared: ClusterProcess) -> None:
    with shared.rows() as rows:
        write(rows, b"shared", b"3")
    killed = shared.kill_server(0)
    with Rows(shared.port) as rows:
        check(rows, b"shared", b"3")
        write(rows, b"shared", b"4")
    shared.kill_server(-1)
    with Rows(shared.port) as rows:
        check(rows, b"shared", b"4")
    assert killed not in shared.servers()


def test_a_stopped_server_is_killed_and_replaced(shared: ClusterProcess) -> None:
    with shared.rows() as rows:
        write(rows, b"shared", b"5")
    stopped = shared.kill_server(0, signal.SIGSTOP)
    assert gone([stopped], WAIT_S)
    with Rows(shared.port) as rows:
        check(rows, b"shared", b"5")


def test_a_second_start_is_refused(shared: ClusterProcess) -> None:
    other = ClusterProcess(shared.folder, 1)
    other.begin()
    assert other.has_ended(WAIT_S)
    other.kill()
    assert f"is in use by process {shared.pid}" in other.log.read_text()


def test_the_pages_of_the_whole(shared: ClusterProcess) -> None:
    assert requests.get(f"{shared.web}health", timeout=WAIT_S).text == "ok\n"
    assert "/servers/s1" in requests.get(f"{shared.web}servers", timeout=WAIT_S).text
    metrics = requests.get(f"{shared.web}metrics", timeout=WAIT_S).text
    assert 'columnar_server_regions{server="s2"}' in metrics
