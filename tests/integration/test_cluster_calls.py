"""Calls that concern several servers, through real servers: scanners of another server, triggers, dead letters."""

from __future__ import annotations

import itertools
import re
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import pytest

from columnar.client import Connection, Contribute, Expect, Increment, Put
from columnar.client.cluster import ClusterAdmin
from columnar.model import flow_status
from columnar.wire.idl import columnar, hbase
from tests.support.cluster_process import ClusterProcess, Rows
from tests.support.many_nodes import CLUSTERS, NodesCluster, cluster_of

SPLITS = [b"d", b"h", b"m", b"r", b"v"]
ROWS = [bytes([letter]) for letter in b"abcdefghijklmnopqrstuvwxyz"]
MODULE = "tests.support.trigger_functions"


@pytest.fixture(scope="module", params=CLUSTERS)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterProcess | NodesCluster]:
    folder = tmp_path_factory.mktemp("cluster") / "data"
    with cluster_of(request.param, folder, 2, "--trigger-modules", MODULE) as store:
        yield store


def made(cluster: ClusterProcess | NodesCluster, table: str, family: str = "f") -> Connection:
    connection = cluster.connection()
    connection.create_table(table, {family: {}}, splits=SPLITS)
    return connection


def test_a_scanner_goes_on_through_any_server(cluster: ClusterProcess | NodesCluster) -> None:
    made(cluster, "scanned").close()
    one, other = cluster.rows_of_each()
    with one, other:
        for row in ROWS:
            one.put(b"scanned", row, b"v")
        scanner = one.client.scannerOpenWithScan(b"scanned", hbase.TScan(), {})
        found = [found.row for found in one.client.scannerGetList(scanner, 5)]
        while more := other.client.scannerGetList(scanner, 5):
            found += [one.row for one in more]
        assert found == ROWS
        other.client.scannerClose(scanner)
        with pytest.raises(hbase.IllegalArgument):
            one.client.scannerGetList(scanner, 5)


def test_contributions_arrive_through_any_server(cluster: ClusterProcess | NodesCluster) -> None:
    connection = cluster.connection()
    connection.create_table("authors", {"n": {}, "m": {}, "o": {}}, splits=SPLITS)
    one, other = connection.table("authors"), cluster.connection().table("authors")
    rows = ROWS[::5]
    for n, gateway in enumerate([one, other, one, other]):
        for row in rows:
            said = Contribute(b"page", 2 - n % 3, {b"n:edits": 10 - n}, order=b"%d" % n, carry={b"f:t": b"x"})
            gateway.mutate(row, [said])
    assert {other.counter_get(row, b"n:edits") for row in rows} == {10}
    for row in rows:
        other.mutate(row, [Contribute(b"page", 3, None)])
    assert dict(one.scan(columns=[b"n", b"o"])) == {}
    assert [one.members(row) for row in rows] == [{}] * len(rows)
    for table in (one, other):
        table.connection.close()


def test_conditional_writes_of_rows_of_all_servers_through_any(cluster: ClusterProcess | NodesCluster) -> None:
    """A row of another server is left by the call and asked for alone: each is one step, done once."""
    with closing(made(cluster, "checked")) as one, closing(cluster.connection()) as other:
        with one.table("checked").batch() as batch:  # regions open when they are first asked for something
            for row in ROWS:
                batch.put(row, {b"f:other": b"0"})
        fresh = ([Expect.absent(b"f:n")], [Put(b"f:n", b"first"), Increment(b"f:count", 1)])
        for gateway in (one, other):
            answers = gateway.call("columnarCheckAndMutateRows", b"checked", checked_rows(b"f:other"))
            left = [answer.result is None for answer in answers]
            assert any(left), "rows of the other server are left"
            assert not all(left), "its own are written"
        found = one.table("checked").check_and_mutate_rows(dict.fromkeys(ROWS[::2], fresh))
        assert list(found) == ROWS[::2]
        assert all((row.applied, row.counters) == (True, [1]) for row in found.values())
        again = other.table("checked").check_and_mutate_rows(dict.fromkeys(ROWS, fresh))
        assert [row for row, said in again.items() if said.applied] == ROWS[1::2]
        assert {said.failed_condition for said in again.values() if not said.applied} == {0}
        table = other.table("checked")
        assert [table.counter_get(row, b"f:count") for row in ROWS] == [1] * len(ROWS)
        assert [cells for _, cells in table.scan(columns=[b"f:n"])] == [{b"f:n": b"first"}] * len(ROWS)


def checked_rows(column: bytes) -> list[Any]:
    operation = columnar.RowOperation(kind=0, column=column, value=b"1")  # a put
    return [columnar.CheckedRow(row=row, conditions=[], operations=[operation]) for row in ROWS]


def test_triggers_of_all_servers_are_waited_for_listed_and_retried_at_any(
    cluster: ClusterProcess | NodesCluster,
) -> None:
    gateways = [made(cluster, "orders"), made(cluster, "audit", "a")]  # connections to different servers
    gateways[0].triggers.add("obeys", b"orders", f"{MODULE}:obey", [b"f"], attempts=1)
    for row in ROWS:
        gateways[0].table("orders").put(row, {b"f:do": b"raise"})
    assert gateways[1].triggers.wait("obeys", timeout_ms=60_000)
    letters = gateways[0].triggers.dead_letters("obeys")
    assert sorted(letter.row for letter in letters) == ROWS, "each server buries in the one table"

    def found(which: int) -> tuple[int, int, tuple[str, ...]]:
        (status,) = gateways[which].triggers.list()
        assert "RuntimeError: as told" in status.last_error
        return status.dead_letters, status.lag_changes, status.silent_servers

    assert found(0) == found(1) == (len(ROWS), 0, ())
    for page in ("flows", "triggers"):
        with urllib.request.urlopen(f"{cluster.web}{page}") as answer:
            text = answer.read().decode()
        assert "obeys" in text
        assert "did not answer" not in text, "the part of every server"
    (letter,) = gateways[1].triggers.show_dead("obeys", ROWS[0])
    assert letter.change is not None
    assert [(one.column, one.value) for one in letter.change.steps] == [(b"f:do", b"raise")]
    assert gateways[1].triggers.retry("obeys", as_it_was=True) == len(ROWS), "rows of both servers"
    assert gateways[0].triggers.wait("obeys", timeout_ms=60_000)
    assert found(0) == found(1) == (len(ROWS), 0, ()), "they failed again"
    assert gateways[1].triggers.retry("obeys") == len(ROWS), "at each row's owner, as they are now"
    assert gateways[0].triggers.wait("obeys", timeout_ms=60_000)
    assert found(0) == found(1) == (len(ROWS), 0, ())
    assert gateways[0].triggers.skip_dead("obeys", ROWS[0]) == 1
    assert gateways[1].triggers.purge_dead("obeys") == len(ROWS) - 1
    gateways[0].triggers.replay("obeys")
    assert gateways[1].triggers.wait("obeys", timeout_ms=60_000)
    assert found(0) == found(1) == (len(ROWS), 0, ()), "each row was shown again, wherever it is"
    looks, silent = flow_status.from_json(gateways[0].flows())
    (flow,) = [one for one in looks if one.name == "obeys"]
    assert (flow.reads, flow.dead, flow.failed, silent) == (("orders/f",), len(ROWS), 4 * len(ROWS), [])
    for gateway in gateways:
        gateway.close()


MOST_CONNECTIONS = 64  # far more than earlier tests can have left open at one server


def test_status_and_metrics_are_those_of_all_servers(cluster: ClusterProcess | NodesCluster) -> None:
    made(cluster, "counted").close()
    found = [cluster.connection() for _ in range(2)]
    servers = {server.name for server in ClusterAdmin(found[0]).servers().servers}
    with ExitStack() as opened:
        count, text = 0, ""
        # A new connection goes to the server with the fewest, and connections of earlier tests may still count as open.
        while not all(f'columnar_forwarded_total{{method="mutateRow",server="{one}"}}' in text for one in servers):
            assert count < MOST_CONNECTIONS, f"a server forwarded nothing: {servers}"
            for rows in [opened.enter_context(rows) for rows in cluster.rows_of_each()]:
                count += 1
                for row in ROWS:
                    rows.put(b"counted", row, b"v")
            with urllib.request.urlopen(f"{cluster.web}metrics") as page:
                text = page.read().decode()
        reports = [connection.status() for connection in found]
        assert all(report.requests[b"mutateRow"] >= count * len(ROWS) for report in reports)
        assert all(report.silentServers == [] for report in reports)
        assert reports[0].openRegions == reports[1].openRegions >= len(SPLITS) + 1
        assert all(report.connections >= count for report in reports)
    for server in servers:
        for name in (
            f'columnar_server_told{{server="{server}"}}',
            f'columnar_requests_total{{method="mutateRow",outcome="ok",server="{server}"}}',
            f'columnar_forwarded_total{{method="mutateRow",server="{server}"}}',
            f'process_resident_memory_bytes{{server="{server}"}}',
        ):
            values = re.findall(rf"^{re.escape(name)} (.*)$", text, flags=re.M)
            assert [float(value) > 0 for value in values] == [True], name
    assert "columnar_plan_seconds_count" in text
    for connection in found:
        connection.close()


SLOW_ROWS = 2_500  # a call that writes or filters them all takes about as long as a move of their region
MOVES = 4


def answers_amid_moves(admin: ClusterAdmin, table: bytes, calls: list[Callable[[], Any]]) -> list[Any]:
    """Return the answers of the calls, each of which is repeated while the table's region moves."""
    over = threading.Event()

    def repeat(call: Callable[[], Any]) -> list[Any]:
        answers = [call()]
        while not over.is_set():
            answers.append(call())
        return answers

    with ThreadPoolExecutor(len(calls)) as pool:
        found = [pool.submit(repeat, call) for call in calls]
        try:
            for _ in range(MOVES):
                assert len(admin.move(admin.locations(table)[0].name).moves) == 1
        finally:
            over.set()
        return [answer for one in found for answer in one.result()]


def test_a_slow_call_is_answered_rightly_though_its_region_moves(cluster: ClusterProcess | NodesCluster) -> None:
    """The owner changes under a write of many rows, and under a filter that looks at them all, at each gateway."""
    names = [b"%05d" % number for number in range(SLOW_ROWS)]
    with closing(cluster.connection()) as connection, ExitStack() as undo:
        connection.create_table("slow", {"f": {}})
        admin, gateways = ClusterAdmin(connection), [undo.enter_context(rows) for rows in cluster.rows_of_each()]
        numbers = itertools.count(1)

        def write(rows: Rows, column: bytes) -> tuple[bytes, bytes]:
            value = b"%d" % next(numbers)
            mutations = [hbase.Mutation(column=column, value=value)]
            rows.client.mutateRows(b"slow", [hbase.BatchMutation(row=row, mutations=mutations) for row in names], {})
            return column, value

        def search(rows: Rows) -> list[bytes]:
            scan = hbase.TScan(filterString=b"ValueFilter(=, 'regexstring:^[0-9]+$')")
            scanner = rows.client.scannerOpenWithScan(b"slow", scan, {})
            return [row.row for row in rows.client.scannerGetList(scanner, SLOW_ROWS)]

        writes = [partial(write, rows, b"f:%d" % number) for number, rows in enumerate(gateways)]
        acknowledged = dict(answers_amid_moves(admin, b"slow", writes))  # the last one of each column
        searched = answers_amid_moves(admin, b"slow", [partial(search, rows) for rows in gateways])
        assert [found == names for found in searched] == [True] * len(searched), "each row once, and in order"
        assert all(cells == acknowledged for _, cells in connection.table("slow").scan())
        connection.delete_table("slow", disable=True)  # its load would send regions of other tests to one server
