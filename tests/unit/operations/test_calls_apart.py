"""Calls on rows of several servers, and what becomes of them where a server fails or a region moves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from columnar.cluster import peer_requests, scatter_gather
from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.errors import (
    ClientGone,
    IllegalArgument,
    NoSuchColumnFamily,
    NotALong,
    NotServingRegion,
    OutcomeUnknown,
    RegionNotLocal,
    RegionTooBusy,
    RequestTooBig,
    TableNotEnabled,
    Throttled,
)
from columnar.model.mutation import Delete, Increment, Put, RowMutation, RowPuts
from columnar.model.owner import Incarnation
from columnar.model.region_messages import Message
from columnar.operations import distributed_reads, distributed_writes, writes
from columnar.operations.writes import OTHERS_WRITTEN, RowWrites, partly
from columnar.regions.write.ingestion import IncomingRows
from columnar.wire.idl import hbase
from columnar.wire.idl2 import hbase2
from columnar.wire.service import CallContext
from tests.support.calls_apart import CTX, ROWS, a_while, batches, in_cluster, info_of, names, only, put
from tests.support.owned_servers import OwnedServers

# --- rows ------------------------------------------------------------------------------------------


def test_rows_of_all_servers_come_in_the_order_asked_from_any_server() -> None:
    async def play(cluster: OwnedServers) -> None:
        await put(cluster, *ROWS)
        for at in range(3):
            assert await names(cluster, b"x", b"none", b"c", b"q", b"h", b"q", at=at) == [b"x", b"c", b"q", b"h", b"q"]

    in_cluster(play)


def test_each_owner_is_asked_once_and_nobody_passes_an_ask_on() -> None:
    async def play(cluster: OwnedServers) -> None:
        await put(cluster, *ROWS)
        cluster.asks.clear()
        await names(cluster, *ROWS * 50)
        assert [(str(server), type(ask)) for _, server, ask in cluster.asks] == [
            ("b.21", peer_requests.Rows),
            ("c.22", peer_requests.Rows),
        ]
        assert {str(asking) for asking, _, _ in cluster.asks} == {"a.20"}

    in_cluster(play)


def test_large_rows_come_in_rounds_and_together_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed_reads, "STEP_BYTES", 3_000)

    async def play(cluster: OwnedServers) -> None:
        rows = [b"%c%d" % (head, n) for n in range(10) for head in b"chq"]
        await put(cluster, *rows, value=b"v" * 500)
        cluster.asks.clear()
        assert await names(cluster, *rows) == rows
        assert len(cluster.asks) > 4, "some rounds"
        largest = max(len(ask.groups[0].rows) for _, _, ask in cluster.asks if isinstance(ask, peer_requests.Rows))
        assert largest == 10
        monkeypatch.setattr(distributed_reads, "ROWS_BYTES", 10_000)
        with pytest.raises(RequestTooBig, match="over 10000 bytes"):
            await names(cluster, *rows)
        gathering = cluster.servers[0].operations.access.reply_memory
        assert (gathering.calls, gathering.total_bytes) == (0, 0)

    in_cluster(play)


@pytest.mark.parametrize("failure", [NotSent(), LinkBroke()])
def test_a_read_whose_link_breaks_goes_on_at_the_next_owner(failure: Exception) -> None:
    async def play(cluster: OwnedServers) -> None:
        await put(cluster, *ROWS)
        cluster.after = lambda server, _: failure if server.name == "b" else None
        reading = asyncio.ensure_future(names(cluster, *ROWS))
        await a_while()
        assert not reading.done()
        await cluster.move(cluster.infos[1], cluster.servers[2])
        assert await reading == ROWS

    in_cluster(play)


def test_a_region_without_an_owner_is_waited_for_and_then_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scatter_gather, "UNAVAILABLE_TIMEOUT_S", 0.05)

    async def play(cluster: OwnedServers) -> None:
        await put(cluster, *ROWS)
        cluster.before = only(peer_requests.Rows, NotSent())
        with pytest.raises(NotServingRegion, match="not served by any server in time; nothing was done"):
            await names(cluster, *ROWS)
        cluster.before = only(peer_requests.Apply, NotSent())
        with pytest.raises(NotServingRegion, match=f"in time.*{OTHERS_WRITTEN}"):
            await put(cluster, *ROWS)
        with pytest.raises(NotServingRegion) as caught:
            await put(cluster, b"h", b"h1")
        assert OTHERS_WRITTEN not in caught.value.text
        cluster.before = only(peer_requests.Scan, NotSent())
        services = cluster.servers[0].services
        scanner = await services.call("scannerOpen", CTX, b"t", b"h", [], {})
        with pytest.raises(NotServingRegion):
            await services.call("scannerGetList", CTX, scanner, 9)

    in_cluster(play)


def test_a_server_that_hears_late_of_a_move_finds_the_owner_when_it_hears(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scatter_gather, "FIRST_PAUSE_S", 9.0)  # no pause ends in time: the change itself is the event
    monkeypatch.setattr(scatter_gather, "LONGEST_PAUSE_S", 9.0)

    async def play(cluster: OwnedServers) -> None:
        await put(cluster, *ROWS)
        gateway = cluster.servers[0]
        gateway.late = []
        await cluster.move(cluster.infos[1], cluster.servers[2])
        reading = asyncio.ensure_future(names(cluster, *ROWS))
        writing = asyncio.ensure_future(put(cluster, *ROWS, value=b"w"))
        await a_while()
        assert not reading.done()
        assert not writing.done()
        gateway.hear()
        async with asyncio.timeout(5):
            assert await reading == ROWS
            await writing

    in_cluster(play)


def test_a_call_whose_client_has_gone_asks_no_further() -> None:
    async def play(cluster: OwnedServers) -> None:
        await put(cluster, *ROWS)
        gone = [False]
        ctx = CallContext(2, "gone", CTX.protocol, lambda: gone[0])
        cluster.before = lambda _server, _message: NotSent()
        reading = asyncio.ensure_future(cluster.servers[0].services.call("getRows", ctx, b"t", ROWS, {}))
        writing = asyncio.ensure_future(put(cluster, *ROWS, ctx=ctx))
        await a_while()
        gone[0] = True
        for call in (reading, writing):
            with pytest.raises(ClientGone):
                await call
        before = len(cluster.asks)
        await asyncio.sleep(0.02)
        assert len(cluster.asks) == before

    in_cluster(play)


# --- writes ----------------------------------------------------------------------------------------


def test_a_write_whose_link_breaks_is_unknown_and_never_sent_again() -> None:
    async def play(cluster: OwnedServers) -> None:
        cluster.after = lambda server, _: LinkBroke() if server.name == "b" else None
        with pytest.raises(OutcomeUnknown, match=r"server b\.21 did not answer.*2 rows from h to h2 of table t"):
            await put(cluster, b"c", b"h", b"q", b"h2")
        assert [str(server) for _, server, _ in cluster.asks] == ["b.21", "c.22"]
        cluster.after = lambda _server, _message: None
        assert await names(cluster, b"c", b"h", b"q", b"h2", at=1) == [b"c", b"h", b"q", b"h2"]

    in_cluster(play)


def test_a_write_that_was_not_sent_is_sent_to_the_next_owner() -> None:
    async def play(cluster: OwnedServers) -> None:
        cluster.before = lambda server, _: NotSent() if server.name == "b" else None
        writing = asyncio.ensure_future(put(cluster, *ROWS))
        await a_while()
        assert not writing.done()
        await cluster.move(cluster.infos[1], cluster.servers[0])
        await writing
        assert await names(cluster, *ROWS) == ROWS

    in_cluster(play)


def test_everything_is_checked_before_anything_is_sent() -> None:
    async def play(cluster: OwnedServers) -> None:
        bad = [*batches(*ROWS), *batches(b"y" * 40_000)]
        with pytest.raises(IllegalArgument):
            await cluster.servers[0].services.call("mutateRows", CTX, b"t", bad, {})
        assert not cluster.asks
        assert await names(cluster, *ROWS) == []

    in_cluster(play)


def test_one_row_of_a_call_for_many_is_sent_as_a_row() -> None:
    async def play(cluster: OwnedServers) -> None:
        await put(cluster, b"h")
        assert [type(ask) for _, _, ask in cluster.asks] == [peer_requests.Apply]
        assert await names(cluster, b"h", at=1) == [b"h"]
        with pytest.raises(RegionNotLocal):
            await cluster.servers[0].services.call("mutateRow", CTX, b"t", b"h", batches(b"h")[0].mutations, {})

    in_cluster(play)


def test_where_one_owner_refuses_the_error_says_that_others_may_have_written() -> None:
    async def play(cluster: OwnedServers) -> None:
        cluster.before = lambda server, _: RegionTooBusy("its log is full") if server.name == "c" else None
        with pytest.raises(RegionTooBusy, match=f"its log is full{OTHERS_WRITTEN}"):
            await put(cluster, *ROWS)
        assert await names(cluster, b"c", b"h", b"x", at=1) == [b"c", b"h", b"x"]
        with pytest.raises(RegionTooBusy) as caught:
            await put(cluster, b"q", b"q1")
        assert OTHERS_WRITTEN not in caught.value.text

    in_cluster(play)


def test_an_unknown_outcome_goes_before_a_refusal() -> None:
    async def play(cluster: OwnedServers) -> None:
        failures = {"b": RegionTooBusy("busy"), "c": LinkBroke()}
        cluster.before = lambda server, _: failures.get(server.name)
        with pytest.raises(OutcomeUnknown, match=r"c\.22"):
            await put(cluster, *ROWS)

    in_cluster(play)


def test_a_row_named_again_and_again_is_written_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    from columnar.operations import row_plan

    monkeypatch.setattr(row_plan, "ROW_OPERATIONS", 2)

    async def play(cluster: OwnedServers) -> None:
        named = [batch for n in range(7) for batch in batches(*ROWS, value=b"%d" % n)]
        await cluster.servers[0].services.call("mutateRows", CTX, b"t", named, {})
        for row in ROWS:
            found = await cluster.servers[1].services.call("2existsAll", CTX, b"t", [hbase2.TGet(row=row)])
            assert found == [True]
        gets = [hbase2.TGet(row=row, columns=[hbase2.TColumn(family=b"a", qualifier=b"q")]) for row in ROWS]
        found = await cluster.owner(cluster.infos[0]).services.call("2getMultiple", CTX, b"t", gets)
        assert [one.data.count(b"6") for one in found.results] == [1] * 4, "the last value"
        applied = [ask for _, _, ask in cluster.asks if isinstance(ask, peer_requests.Apply)]
        assert len(applied) == 8, "four steps of a row at each of two owners"

    in_cluster(play)


def test_large_writes_are_cut_into_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed_writes, "BATCH_BYTES", 2_000)

    async def play(cluster: OwnedServers) -> None:
        rows = [b"h%d" % n for n in range(10)]
        await put(cluster, *rows, value=b"v" * 600)
        assert [len(ask.rows) for _, _, ask in cluster.asks if isinstance(ask, peer_requests.Apply)] == [2] * 5
        assert await names(cluster, *rows) == rows

    in_cluster(play)


def test_increments_of_several_rows_are_done_once_each() -> None:
    async def play(cluster: OwnedServers) -> None:
        one = [hbase.TIncrement(table=b"t", row=row, column=b"b:n", ammount=5) for row in (*ROWS, *ROWS, b"h")]
        await cluster.servers[2].services.call("incrementRows", CTX, one)
        for row, total in ((b"c", 10), (b"h", 15), (b"q", 10), (b"x", 10)):
            owner = next(server for server in cluster.servers if cluster.owner(info_of(cluster, row)) is server)
            ((value, _),) = await owner.services.call("get", CTX, b"t", row, b"b:n", {})
            assert int.from_bytes(value, "big") == total

    in_cluster(play)


def test_an_increment_that_is_refused_takes_none_before_it_along() -> None:
    async def play(cluster: OwnedServers) -> None:
        first, second = b"ha", b"hb"
        assert info_of(cluster, first) == info_of(cluster, second), "one owner is asked for both"
        owner = cluster.owner(info_of(cluster, first))
        gateway = next(server for server in cluster.servers if server is not owner)
        await owner.services.call(
            "mutateRow", CTX, b"t", second, [hbase.Mutation(column=b"b:n", value=b"no number")], {}
        )
        one = [hbase.TIncrement(table=b"t", row=row, column=b"b:n", ammount=5) for row in (first, second)]
        for times, server in enumerate((gateway, owner), 1):
            with pytest.raises(NotALong, match=f"wide{OTHERS_WRITTEN}$"):
                await server.services.call("incrementRows", CTX, one)
            ((value, _),) = await owner.services.call("get", CTX, b"t", first, b"b:n", {})
            assert int.from_bytes(value, "big") == 5 * times, "each is a step of its own, wherever the call came"
            with pytest.raises(NotALong) as caught:
                await server.services.call("incrementRows", CTX, one[1:])
            assert OTHERS_WRITTEN not in caught.value.text, "repeating it does nothing twice"

    in_cluster(play)


def test_an_owner_that_refuses_a_later_ask_says_that_others_may_have_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed_writes, "BATCH_BYTES", 2_000)

    async def play(cluster: OwnedServers) -> None:
        rows, sent = [b"h%d" % n for n in range(4)], [0]

        def refuses_second(_server: Incarnation, _message: Message[Any]) -> Exception | None:
            sent[0] += 1
            return Throttled("t", "writes exceeded", 100, "9req/sec") if sent[0] == 2 else None

        cluster.before = refuses_second
        with pytest.raises(Throttled, match=OTHERS_WRITTEN):
            await put(cluster, *rows, value=b"v" * 600)
        cluster.before = lambda _server, _message: None
        assert await names(cluster, *rows) == rows[:2]

    in_cluster(play)


@pytest.mark.parametrize("step_s", [0.0, 9.0])
def test_a_later_batch_that_is_refused_here_says_that_others_may_have_written(
    step_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "STEP_S", step_s)

    async def play(cluster: OwnedServers) -> None:
        await put(cluster, b"x")  # it is open
        (region,) = cluster.servers[0].server.all_open()
        region.refuse_writes(busy := RegionTooBusy("its disk is full"))
        with pytest.raises(RegionTooBusy, match=OTHERS_WRITTEN):
            await put(cluster, b"c", b"x")
        with pytest.raises(RegionTooBusy) as caught:
            await put(cluster, b"x")
        assert caught.value.text == busy.text == "its disk is full", "the next call has written nothing"
        region.refuse_writes(None)

    in_cluster(play)


def test_an_error_after_others_were_written_keeps_its_fields() -> None:
    error = NotALong(3)
    said = partly(partly(error))
    assert isinstance(said, NotALong)
    assert (said.width_bytes, said.text, str(said)) == (3, error.text + OTHERS_WRITTEN, error.text + OTHERS_WRITTEN)
    assert OTHERS_WRITTEN not in error.text


def test_an_owner_that_has_not_the_family_says_so() -> None:
    """It was dropped there while the rows were on their way, or is to come; the gateway checked them by its schema."""
    writes = (Put(b"d", b"q", b"v"), Put(b"d", b"q", b"v", 5), Delete(b"d", None), Increment(b"d", b"q", 1))
    rows = [RowMutation(b"h", (one,)) for one in writes]

    async def play(cluster: OwnedServers) -> None:
        asked = cluster.owner(info_of(cluster, b"h"))
        for row in (*rows, RowPuts(b"h", ((b"d", b"q"),), [b"v"])):
            with pytest.raises(NoSuchColumnFamily, match=r"Column family d does not exist in table t$"):
                await asked.handle(peer_requests.Apply("t", (row,)))

    in_cluster(play)


def test_a_table_that_is_disabled_meanwhile_ends_calls() -> None:
    async def play(cluster: OwnedServers) -> None:
        await put(cluster, *ROWS)
        cluster.before = lambda _server, _message: NotSent()
        reading = asyncio.ensure_future(names(cluster, *ROWS))
        await a_while()
        served = cluster.servers[0].server.tables.known(b"t")
        served.enabled = False
        with pytest.raises(TableNotEnabled):
            await reading

    in_cluster(play)


def test_of_large_writes_those_that_were_not_sent_go_to_the_next_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed_writes, "BATCH_BYTES", 2_000)

    async def play(cluster: OwnedServers) -> None:
        rows = [b"h%d" % n for n in range(10)]
        sent: list[Message[Any]] = []

        def fails_third(server: Incarnation, message: Message[Any]) -> Exception | None:
            sent.append(message)
            return NotSent() if server.name == "b" and len(sent) >= 3 else None

        cluster.before = fails_third
        writing = asyncio.ensure_future(put(cluster, *rows, value=b"v" * 600))
        await a_while()
        await cluster.move(cluster.infos[1], cluster.servers[2])
        await writing
        assert await names(cluster, *rows, at=2) == rows
        written = [write.row for ask in sent[:2] if isinstance(ask, peer_requests.Apply) for write in ask.rows]
        assert written == rows[:4]
        again = [ask for _, server, ask in cluster.asks if server.name == "c" and isinstance(ask, peer_requests.Apply)]
        assert {write.row for ask in again for write in ask.rows} == set(rows[4:]), "what was written is not sent again"

    in_cluster(play)


def test_a_region_that_leaves_between_plan_and_write_is_named_elsewhere() -> None:
    async def play(cluster: OwnedServers) -> None:
        await put(cluster, *ROWS)
        owner, info = cluster.servers[0], cluster.infos[0]
        writes = tuple(RowMutation(row, (Put(b"a", b"q", b"w"),)) for row in (b"x", b"c", b"c1"))
        asking = asyncio.ensure_future(owner.handle(peer_requests.Apply("t", writes)))
        await asyncio.sleep(0)  # planned, and waits for its turn
        (region,) = [one for one in owner.server.all_open() if one.info == info]
        owner.server.eviction.evict(region)
        owner.server.hosting.state.give_up(info.region_id)
        applied = await asking
        assert applied.not_local_rows == (1, 2)
        assert applied.sequence is not None
        owner.server.hosting.state.own(info.region_id, 2)
        assert await names(cluster, b"c1", b"c", b"x") == [b"c", b"x"]

    in_cluster(play)


@pytest.mark.parametrize("failure", [None, RegionTooBusy("its log is full")])
def test_a_region_that_leaves_between_two_steps_of_a_call_gets_the_rest_from_its_next_owner(
    failure: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "STEP_S", 0.0)

    async def play(cluster: OwnedServers) -> None:
        await put(cluster, *ROWS)
        owner, info = cluster.servers[0], cluster.infos[3]
        cluster.asks.clear()
        writing = asyncio.ensure_future(put(cluster, b"c9", b"x8", b"x9"))
        await asyncio.sleep(0)  # the first batch is written, the second waits for its turn
        (region,) = [one for one in owner.server.all_open() if one.info == info]
        await owner.server.hosting.quiesce(region)
        owner.server.eviction.evict(region)
        await cluster.move(info, cluster.servers[1])
        cluster.before = lambda _server, _message: failure
        if failure is not None:
            with pytest.raises(RegionTooBusy, match=OTHERS_WRITTEN):
                await writing
            return
        await writing
        assert {type(ask) for _, _, ask in cluster.asks} == {peer_requests.Apply}
        assert await names(cluster, b"c9", b"x8", b"x9", at=2) == [b"c9", b"x8", b"x9"]

    in_cluster(play)


@pytest.mark.parametrize("failure", [None, NotSent(), LinkBroke()])
def test_sorted_files_come_in_at_the_owner_of_their_rows(failure: Exception | None) -> None:
    async def play(cluster: OwnedServers) -> None:
        incoming = IncomingRows(b"h1", b"h2", 5, 2, {})
        gateway = cluster.servers[0].operations.access
        served = gateway.table(b"t")
        assert await RowWrites(gateway).ingest(served, incoming)
        await put(cluster, b"h1")
        assert not await RowWrites(gateway).ingest(served, incoming), "something stands among them"
        cluster.asks.clear()
        cluster.after = lambda server, _: failure if server.name == "b" else None
        loading = asyncio.ensure_future(RowWrites(gateway).ingest(served, incoming))
        await a_while()
        if isinstance(failure, LinkBroke):
            with pytest.raises(OutcomeUnknown, match="2 rows from h1 to h2 of table t"):
                await loading
            assert len(cluster.asks) == 1
            return
        assert loading.done() == (failure is None)
        await cluster.move(cluster.infos[1], cluster.servers[2])
        assert not await loading

    in_cluster(play)
