"""Scans, deletes of ranges and upkeep over regions of several servers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from columnar.cluster import peer_requests, row_forms
from columnar.cluster.link_errors import LinkBroke
from columnar.model.read import ReadSpec, ScanSpec, projection
from columnar.operations import distributed_calls
from columnar.operations.row_deletes import Deleted
from columnar.operations.scanner_table import slot_of, slot_of_server
from columnar.wire.idl import hbase
from columnar.wire.idl2 import hbase2
from tests.support.calls_apart import CTX, ROWS, TABLE, a_while, in_cluster, names, put
from tests.support.owned_servers import OwnedServers

# --- scans, ranges, upkeep ---------------------------------------------------------------------------


def test_a_scan_goes_over_all_servers_with_few_asks() -> None:
    async def play(cluster: OwnedServers) -> None:
        rows = [b"%c%03d" % (head, n) for head in b"chqx" for n in range(100)]
        await put(cluster, *rows)
        for at, expected in ((0, 2), (1, 3), (2, 3)):
            cluster.asks.clear()
            services = cluster.servers[at].services
            scanner = await services.call("scannerOpen", CTX, b"t", b"", [], {})
            assert slot_of(scanner) == slot_of_server(cluster.servers[at].here)
            assert (await services.call("scannerGetList", CTX, scanner, 1_000)).size() == (400, 400, b"x099")
            assert len(cluster.asks) == expected
            assert (await services.call("scannerGetList", CTX, scanner, 10)).size()[0] == 0

    in_cluster(play)


def test_a_filter_that_remembers_sees_all_rows_of_all_servers() -> None:
    async def play(cluster: OwnedServers) -> None:
        await put(cluster, *ROWS)
        services = cluster.servers[0].services
        for text, count in ((b"PageFilter(3)", 3), (b"WHILE RowFilter(<, 'binary:h1')", 2), (b"KeyOnlyFilter()", 4)):
            cluster.asks.clear()
            scan = hbase.TScan(filterString=text)
            scanner = await services.call("scannerOpenWithScan", CTX, b"t", scan, {})
            assert (await services.call("scannerGetList", CTX, scanner, 100)).size()[0] == count
            sent = [ask for _, _, ask in cluster.asks if isinstance(ask, peer_requests.Scan)]
            assert {ask.versions for ask in sent} == {text != b"KeyOnlyFilter()"}
            assert {ask.spec.filter_string for ask in sent} == {text if text == b"KeyOnlyFilter()" else None}

    in_cluster(play)


def test_a_filter_that_remembers_sees_rows_without_visible_cells_too() -> None:
    async def play(cluster: OwnedServers) -> None:
        await put(cluster, b"h1", b"h3")
        mutations = [hbase.Mutation(column=b"c:q", value=b"v")]
        batch = hbase.BatchMutation(row=b"h2", mutations=mutations)
        await cluster.servers[1].services.call("mutateRows", CTX, b"t", [batch], {})
        cluster.clock.observe(5_000)
        for at in range(3):
            services = cluster.servers[at].services
            scan = hbase.TScan(filterString=b"WHILE RowFilter(!=, 'binary:h2')")
            scanner = await services.call("scannerOpenWithScan", CTX, b"t", scan, {})
            assert (await services.call("scannerGetList", CTX, scanner, 100)).size() == (1, 1, b"h1")

    in_cluster(play)


def test_a_filter_that_remembers_sees_older_versions_too() -> None:
    async def play(cluster: OwnedServers) -> None:
        await put(cluster, b"h1", b"h2", value=b"old")
        cluster.clock.observe(2_000)
        await put(cluster, b"h1", value=b"new")
        for text in (b"PageFilter(9) AND ValueFilter(=, 'binary:old')", b"ValueFilter(=, 'binary:old')"):
            for at in range(3):
                services = cluster.servers[at].services
                scan = hbase.TScan(columns=[b"a"], filterString=text)
                scanner = await services.call("scannerOpenWithScan", CTX, b"t", scan, {})
                assert (await services.call("scannerGetList", CTX, scanner, 100)).size() == (2, 2, b"h2")

    in_cluster(play)


@pytest.mark.parametrize(
    ("text", "servers", "rows"),
    [
        (b"PrefixFilter('h')", {1}, [b"h1", b"h2"]),
        (b"PrefixFilter('h') AND PageFilter(5)", {1}, [b"h1", b"h2"]),
        (b"RowFilter(=, 'binary:q1')", {2}, [b"q1"]),
        (b"PrefixFilter('c') OR RowFilter(=, 'binary:q1')", {0, 2}, [b"c1", b"c2", b"q1"]),
        (b"RowFilter(=, 'binary:nowhere') AND PrefixFilter('q')", set(), []),
        (b"InclusiveStopFilter('h1') AND RowFilter(>, 'binary:g')", {1}, [b"h1"]),
    ],
)
@pytest.mark.parametrize("backwards", [False, True])
def test_only_owners_of_rows_that_a_filter_may_let_through_are_asked(
    text: bytes, servers: set[int], rows: list[bytes], *, backwards: bool
) -> None:
    if backwards and text.startswith(b"Inclusive"):
        text, servers, rows = b"InclusiveStopFilter('h2') AND RowFilter(<, 'binary:p')", {1}, [b"h2"]

    async def play(cluster: OwnedServers) -> None:
        await put(cluster, b"c1", b"c2", b"h1", b"h2", b"q1", b"q2")
        for at in range(3):
            cluster.asks.clear()
            services = cluster.servers[at].services
            scan = hbase.TScan(filterString=text, reversed=backwards)
            scanner = await services.call("scannerOpenWithScan", CTX, b"t", scan, {})
            found = await services.call("scannerGetList", CTX, scanner, 100)
            assert found.size()[0] == len(rows)
            asked = {server for _, server, ask in cluster.asks if isinstance(ask, peer_requests.Scan)}
            assert asked == {cluster.servers[one].here for one in servers - {at}}

    in_cluster(play)


def test_a_filter_that_hides_values_is_sent_none() -> None:
    async def play(cluster: OwnedServers) -> None:
        await put(cluster, *ROWS, value=b"v" * 1_000)
        services = cluster.servers[0].services
        for text, has_values in ((b"PageFilter(9) AND KeyOnlyFilter()", False), (b"PageFilter(9)", True)):
            cluster.asks.clear()
            scanner = await services.call("scannerOpenWithScan", CTX, b"t", hbase.TScan(filterString=text), {})
            await services.call("scannerGetList", CTX, scanner, 100)
            sent = [ask for _, _, ask in cluster.asks if isinstance(ask, peer_requests.Scan)]
            assert {ask.values for ask in sent} == {has_values}
            answer = await cluster.servers[1].handle(
                peer_requests.Scan("t", sent[0].spec, row_forms.Place(b"g"), 9, 99, 9_999, None, True, None, has_values)
            )
            assert [len(cells[0][1]) for _, cells in answer.rows] == [1_000 * has_values]

    in_cluster(play)


def test_a_scan_of_a_region_that_is_not_owned_reads_nothing() -> None:
    async def play(cluster: OwnedServers) -> None:
        await put(cluster, *ROWS)
        spec = ScanSpec(b"", b"", ReadSpec(projection(TABLE, [])))
        of_b = await cluster.servers[1].handle(peer_requests.Scan("t", spec, row_forms.Place(b""), 9, 9_999, 9_999))
        assert of_b == peer_requests.Scanned(is_not_local=True)
        of_a = await cluster.servers[0].handle(peer_requests.Scan("t", spec, row_forms.Place(b""), 9, 9_999, 9_999))
        assert [row for row, _ in of_a.rows] == [b"c"]
        assert of_a.place == row_forms.Place(b"g", False), "it stops where another's region begins"

    in_cluster(play)


def test_a_limit_counts_rows_of_all_servers() -> None:
    async def play(cluster: OwnedServers) -> None:
        await put(cluster, *ROWS, b"h1", b"h2", b"q1")
        for at in range(3):
            services = cluster.servers[at].services
            for limit in (1, 2, 3, 6):
                scanner = await services.call("2openScanner", CTX, b"t", hbase2.TScan(limit=limit))
                total = 0
                for _ in range(8):
                    found = await services.call("2getScannerRows", CTX, scanner, 2)
                    total += sum(getattr(one, "row_count", 1) for one in found.results)
                assert total == limit
                found = await services.call("2getScannerResults", CTX, b"t", hbase2.TScan(limit=limit), 100)
                assert sum(getattr(one, "row_count", 1) for one in found.results) == limit

    in_cluster(play)


def test_a_scan_whose_owner_ends_goes_on_at_the_next_without_a_hole() -> None:
    async def play(cluster: OwnedServers) -> None:
        rows = [b"h%03d" % n for n in range(100)]
        await put(cluster, *rows)
        services = cluster.servers[0].services
        scanner = await services.call("scannerOpen", CTX, b"t", b"", [], {})
        first = await services.call("scannerGetList", CTX, scanner, 40)
        cluster.after = lambda server, _: LinkBroke() if server.name == "b" else None
        rest = asyncio.ensure_future(services.call("scannerGetList", CTX, scanner, 100))
        await a_while()
        assert not rest.done()
        await cluster.move(cluster.infos[1], cluster.servers[2])
        assert first.size() == (40, 40, b"h039")
        assert (await rest).size() == (60, 60, b"h099")

    in_cluster(play)


def test_ranges_are_deleted_over_all_servers() -> None:
    async def play(cluster: OwnedServers) -> None:
        for at in range(3):
            await put(cluster, *ROWS)
            services = cluster.servers[at].services
            assert await services.call("delete_rows", CTX, b"t", b"d", b"x") == Deleted(None, None)
            assert await names(cluster, *ROWS, at=at) == [b"c", b"x"]

    in_cluster(play)


def test_a_table_is_flushed_and_described_by_the_owners_of_its_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed_calls, "STATUS_TIMEOUT_S", 0.05)

    async def play(cluster: OwnedServers) -> None:
        await put(cluster, *ROWS)
        operations = cluster.servers[0].operations
        await operations.upkeep.flush(b"t")
        await operations.upkeep.major_compact(b"t")
        tended = [(str(server), ask.work) for _, server, ask in cluster.asks if isinstance(ask, peer_requests.Tend)]
        assert sorted(tended) == [(name, work) for name in ("b.21", "c.22") for work in ("flush", "major_compact")]
        states, silent = await operations.descriptions.everywhere([operations.descriptions.known(b"t")])
        assert [(state.info, state.is_open, state.writes) for state in states] == [
            (info, True, 1) for info in cluster.infos
        ]
        assert silent == []

        async def never(_message: Any) -> Any:
            await asyncio.sleep(60)

        monkeypatch.setitem(cluster.servers[2].asked.answers, peer_requests.RegionStates, never)
        states, silent = await operations.descriptions.everywhere([operations.descriptions.known(b"t")])
        assert [state.is_open for state in states] == [True, True, False, True]
        assert silent == ["c.22"]

    in_cluster(play)


def test_a_region_that_moves_is_tended_by_its_next_owner() -> None:
    async def play(cluster: OwnedServers) -> None:
        await put(cluster, *ROWS)
        cluster.servers[0].late = []
        await cluster.move(cluster.infos[1], cluster.servers[2])
        tending = asyncio.ensure_future(cluster.servers[0].operations.upkeep.flush(b"t"))
        await a_while()
        assert not tending.done()
        cluster.servers[0].hear()
        await tending
        assert [str(server) for _, server, ask in cluster.asks if isinstance(ask, peer_requests.Tend)][-1] == "c.22"

    in_cluster(play)
