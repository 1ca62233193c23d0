"""Calls that concern several servers, through real servers: scanners of another server, triggers, dead letters."""

from __future__ import annotations

import itertools
import json
import re
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import pytest

from columnar.client import Connection, Contribute, Expect, Increment, Put, RegionAdmin
from columnar.client.cluster import ClusterAdmin
from columnar.model import flow_status
from columnar.model.record_batch import ProducerMark, Record, pack_batch
from columnar.wire.idl import columnar, hbase
from tests.support.cluster_process import ClusterProcess, Rows
from tests.support.many_nodes import CLUSTERS, NodesCluster, cluster_of, until

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


def test_a_lease_is_one_lease_through_any_server(cluster: ClusterProcess | NodesCluster) -> None:
    """Names of leases that are names of tables, too, are no rows of these."""
    made(cluster, "led").close()
    one, other = cluster.rows_of_each()
    with one, other, ThreadPoolExecutor(1) as pool:
        for name in (b"led", b"r", b"import"):
            first = one.client.columnarLease(name, b"a", 60_000, 0, 0)
            assert (first.held, first.token) == (True, 1)
            second = other.client.columnarLease(name, b"b", 60_000, 0, 0)
            assert (second.held, second.token, second.holder) == (False, 1, b"a")
            waiting = pool.submit(other.client.columnarLease, name, b"b", 60_000, 0, 20_000)
            with closing(cluster.connection()) as operator:
                assert operator.leases.revoke(name).holder == "a"
            assert (waiting.result(30).held, waiting.result(30).token) == (True, 2)
            assert not one.client.columnarLease(name, b"a", 60_000, 1, 0).held, "its token is dead"
            for rows in (one, other):
                rows.client.columnarRoute(True)  # a client that calls owners itself knows none of this table
                assert rows.client.columnarLease(name, b"", 0, 0, 0).holder == b"b"
                rows.client.columnarRoute(False)


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
    admin = ClusterAdmin(found[0])
    servers = {server.name for server in admin.servers().servers}
    for server, region in zip(sorted(servers), admin.locations(b"counted"), strict=False):
        if region.server != server:
            admin.move(region.name, server)  # each server has a region, and so forwards calls on another's
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


def test_a_queue_goes_on_through_any_server_and_through_moves(cluster: ClusterProcess | NodesCluster) -> None:
    with closing(cluster.connection()) as connection:
        connection.queue("moved").push_many([b"%d" % n for n in range(50)])
        admin = ClusterAdmin(connection)
        counts: dict[bytes, int] = {}
        for turn in range(4):
            one, other = (closing(link) for link in cluster.rows_of_each())
            with one as first, other as second:
                answers = [link.client.columnarQueuePop(b"moved", 5, 0, 600_000) for link in (first, second)]
                for found in answers:
                    for message in found:
                        counts[message.body] = counts.get(message.body, 0) + 1
                receipts = [message.receipt for message in answers[0]]
                assert len(admin.move(admin.locations(b"columnar:queues")[0].name).moves) == 1
                assert second.client.columnarQueueSettle(b"moved", receipts, "commit", 0, b"") == [True] * 5, turn
        assert len(counts) == 40
        assert set(counts.values()) == {1}
        stats = connection.queue("moved").stats()
        assert (stats.messages, stats.in_flight, stats.ready, stats.committed) == (30, 20, 10, 20)


def test_dead_messages_go_to_a_queue_of_another_server_through_moves(cluster: ClusterProcess | NodesCluster) -> None:
    with closing(cluster.connection()) as connection:
        source, target = connection.queue("a-source"), connection.queue("z-target")
        source.configure(attempts=1, dead_to="z-target")
        target.configure(lease_ms=600_000)
        admin = ClusterAdmin(connection)
        if len(admin.locations(b"columnar:queues")) == 1:
            RegionAdmin(connection).split(b"columnar:queues", b"n\x00")
        where = {one.server for one in admin.locations(b"columnar:queues")}
        if len(where) == 1:
            admin.move(admin.locations(b"columnar:queues")[0].name)
        assert len({one.server for one in admin.locations(b"columnar:queues")}) == 2
        bodies = [b"%d" % number for number in range(60)]
        source.push_many(bodies)
        for turn in range(6):
            found = source.pop(10)
            source.settle(found, "rollback", 0, "broken")
            if turn % 2:
                admin.move(admin.locations(b"columnar:queues")[turn % 4 // 2].name)
        found = []
        while len(found) < len(bodies):
            source.stats()
            found += target.pop(100, wait_ms=5_000)
        assert sorted(one.body for one in found) == sorted(bodies)
        assert {one.headers[b"dead-error"] for one in found} == {b"broken"}
        assert target.stats().pushed == len(bodies)
        until(lambda: source.stats().dead == 0)  # they are removed here after they are there


def test_a_topic_goes_on_through_any_server_and_through_moves(cluster: ClusterProcess | NodesCluster) -> None:
    """Each partition has an owner; records are appended and read at any server, once, whichever server has them."""
    with closing(cluster.connection()) as connection:
        assert connection.topics.create("moved", 3)
        admin, topic = ClusterAdmin(connection), connection.topic("moved")
        table = b"columnar:topics"
        connection.call("columnarSplit", table, topic.description.key(1))
        keys = [topic.description.key(number) for number in range(3)]
        producer = connection.call("columnarTopicProducer")
        for sequence in range(4):
            one, other = (closing(link) for link in cluster.rows_of_each())
            with one as first, other as second:
                for number, key in enumerate(keys):
                    record = Record(0, sequence, None, b"%d" % number)
                    batch = pack_batch([record], ProducerMark(producer, 0, sequence))
                    answers = [link.client.columnarPartitionProduce(key, batch) for link in (first, second, first)]
                    assert [(answer.error, answer.baseOffset) for answer in answers] == [(0, sequence)] * 3
                for place in admin.locations(table):
                    assert len(admin.move(place.name).moves) == 1
                found = [link.client.columnarPartitionFetch(keys[0], 0, 1 << 20) for link in (first, second)]
                assert found[0].batches == found[1].batches
                assert found[0].highWatermark == sequence + 1
                waited = second.client.columnarPartitionWait(keys[2], sequence, 1, 10_000)
                assert (waited.error, waited.bytes, waited.highWatermark) == (0, 1, sequence + 1)
        assert [record.value for record in topic.read(1, 0)] == [b"1"] * 4
        assert connection.topics.drop_topic("moved")
        assert [list(cells) for _, cells in connection.table(table.decode()).scan()] == [[b"h:\x00"]], "a counter"


def test_a_feed_goes_on_through_moves_of_its_table_and_of_its_topic(cluster: ClusterProcess | NodesCluster) -> None:
    """Each change is in the topic once, in the order of its row, whichever servers have the two."""
    with closing(cluster.connection()) as connection:
        connection.create_table("fed", {"m": {}})
        assert connection.feeds.add("fed", "fed.changes", partitions=3)
        admin, table, keys = ClusterAdmin(connection), connection.table("fed"), [b"a", b"m", b"z"]
        RegionAdmin(connection).split(b"fed", b"k")
        for number in range(12):
            for key in keys:
                table.put(key, {b"m:a": b"%d" % number})
            if number % 3 == 0:
                for name in (b"fed", b"columnar:topics"):
                    admin.move(admin.locations(name)[number % len(admin.locations(name))].name)
        expected = {key: [b"%d" % number for number in range(12)] for key in keys}

        def sent() -> dict[bytes, list[bytes]]:
            found: dict[bytes, list[bytes]] = {}
            for record in connection.topic("fed.changes").records(wait_ms=1):
                found.setdefault(record.key, []).append(json.loads(record.value)["after"]["m:a"].encode())
            return found

        until(lambda: sum(map(len, sent().values())) >= 36)
        assert sent() == expected
        (feed,) = connection.feeds.list()
        assert (feed.state, feed.error, feed.silent_servers) == ("running", "", ())
        connection.feeds.drop("fed.changes")
        assert connection.topics.drop_topic("fed.changes")
        connection.admin.drop(b"fed", disable=True)
