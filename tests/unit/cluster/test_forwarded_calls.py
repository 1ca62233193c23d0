"""Clients of a server that does not own the row: each method of a single row, however they speak, as at its owner."""

from __future__ import annotations

import asyncio
import random
import re
import ssl
from pathlib import Path
from typing import Any

import pytest

from columnar.cluster.method_routing import ROWS_OF, names_queue
from columnar.cluster.row_forms import THRIFT1, THRIFT2
from columnar.wire.detect import Speech
from columnar.wire.idl import SERVICE, columnar
from columnar.wire.idl import hbase as h1
from columnar.wire.idl2 import SERVICE2
from columnar.wire.idl2 import hbase2 as h2
from columnar.wire.server import WireServer
from columnar.wire.tls_context import ServerTls, TlsFiles
from columnar.wire.tls_protocol import Tls
from tests.support.certificates import Authority
from tests.support.peer_cluster import PeerCluster, clustered, put1
from tests.support.seeds import seed
from tests.support.thrift_calls import SPEECHES, Client

T = b"t"
_COUNT = re.compile(rb"-\d+")  # within the token of a change, which has another number for each row


def calls1(row: bytes) -> list[tuple[str, tuple[Any, ...]]]:
    """A session of each method of a single row, which see each other's work."""
    condition = columnar.Condition(column=b"a:q", value=b"2")
    operation = columnar.RowOperation(column=b"a:x", value=b"9")
    return [
        ("mutateRow", (T, row, put1(b"1"), {})),
        ("mutateRowTs", (T, row, put1(b"2"), 5_000, {})),
        ("get", (T, row, b"a:q", {})),
        ("getVer", (T, row, b"a:q", 3, {})),
        ("getVerTs", (T, row, b"a:q", 4_000, 3, {})),
        ("getRow", (T, row, {})),
        ("getRowWithColumns", (T, row, [b"a:q", b"a:none"], {})),
        ("getRowTs", (T, row, 4_000, {})),
        ("columnarRowSlice", (T, row, b"a", b"", b"", 10, True)),
        ("getRowWithColumnsTs", (T, row, [b"a"], 4_000, {})),
        ("atomicIncrement", (T, row, b"a:n", 5)),
        ("increment", (h1.TIncrement(table=T, row=row, column=b"a:n", ammount=2),)),
        ("get", (T, row, b"a:n", {})),
        ("append", (h1.TAppend(table=T, row=row, columns=[b"a:q"], values=[b"!"]),)),
        ("checkAndPut", (T, row, b"a:q", b"2!", put1(b"2")[0], {})),
        ("checkAndPut", (T, row, b"a:q", b"other", put1(b"3")[0], {})),
        ("columnarCheckAndMutate", (T, row, [condition], [operation], {})),
        ("columnarMutateGroup", (T, row, [columnar.CheckedRow(row, [], [operation])], [])),
        ("columnarMutateGroup", (T, row, [columnar.CheckedRow(row, [condition], [operation])], [])),
        ("columnarReadGroup", (T, row, [b"a:none"], [row])),
        ("deleteAllTs", (T, row, b"a:q", 4_500, {})),
        ("getRow", (T, row, {})),
        ("deleteAll", (T, row, b"a:q", {})),
        ("getRow", (T, row, {})),
        ("deleteAllRowTs", (T, row, 2_000, {})),
        ("deleteAllRow", (T, row, {})),
        ("getRow", (T, row, {})),
        ("get", (T, row, b"none:q", {})),  # the method's own error
        ("atomicIncrement", (T, row, b"a", 1)),
        ("mutateRow", (T, row, put1(b"1", b"b:q"), {})),
    ]


def put2(row: bytes, value: bytes, qualifier: bytes = b"q") -> Any:
    return h2.TPut(row=row, columnValues=[h2.TColumnValue(family=b"a", qualifier=qualifier, value=value)])


def calls2(row: bytes) -> list[tuple[str, tuple[Any, ...]]]:
    counter = h2.TColumnIncrement(family=b"a", qualifier=b"n", amount=4)
    both = [h2.TMutation(put=put2(row, b"5")), h2.TMutation(deleteSingle=h2.TDelete(row=row))]
    return [
        ("put", (T, put2(row, b"1"))),
        ("get", (T, h2.TGet(row=row))),
        ("get", (T, h2.TGet(row=row, filterString=b"ValueFilter(=, 'binary:1')"))),
        ("exists", (T, h2.TGet(row=row))),
        ("exists", (T, h2.TGet(row=row, filterString=b"ValueFilter(=, 'binary:2')"))),
        ("increment", (T, h2.TIncrement(row=row, columns=[counter]))),
        ("append", (T, h2.TAppend(row=row, columns=[h2.TColumnValue(family=b"a", qualifier=b"q", value=b"!")]))),
        ("checkAndPut", (T, row, b"a", b"q", b"1!", put2(row, b"2"))),
        ("checkAndMutate", (T, row, b"a", b"q", 2, b"2", h2.TRowMutations(row=row, mutations=both[:1]))),
        ("mutateRow", (T, h2.TRowMutations(row=row, mutations=both[:1]))),
        ("get", (T, h2.TGet(row=row, maxVersions=3))),
        ("checkAndDelete", (T, row, b"a", b"q", b"5", h2.TDelete(row=row, columns=[h2.TColumn(family=b"a")]))),
        ("deleteSingle", (T, h2.TDelete(row=row))),
        ("get", (T, h2.TGet(row=row))),
        ("put", (T, h2.TPut(row=row, columnValues=[h2.TColumnValue(family=b"b", qualifier=b"q", value=b"v")]))),
    ]


SESSIONS = {THRIFT1: (SERVICE, calls1), THRIFT2: (SERVICE2, calls2)}


@pytest.mark.parametrize("service", SESSIONS)
def test_the_sessions_have_every_method_of_a_single_row(service: int) -> None:
    methods = set(ROWS_OF[service]) - {"columnarLoadTarget", "columnarLease"}  # which have tests of their own
    methods = {name for name in methods if not names_queue(name)}  # tests/integration/test_cluster_calls.py
    assert {name for name, _ in SESSIONS[service][1](b"r")} == methods


@pytest.mark.parametrize("service", SESSIONS)
@clustered()
async def test_a_gateway_does_not_ask_its_handler_for_a_row_of_another_server(
    cluster: PeerCluster, service: int
) -> None:
    """The handler's error would cost more than all the rest."""
    gateway = cluster.houses[0]
    handlers: Any = (gateway.service if service == THRIFT1 else gateway.service2).handlers
    asked: list[str] = []
    definition, calls = SESSIONS[service]
    client = await gateway.client(service=definition)
    session = calls(b"z")
    for name, _ in session:
        handlers[name] = lambda _ctx, *_args, name=name: asked.append(name)
    for name, args in session:
        await client.call(name, *args)
    assert asked == []
    name, args = calls(b"a")[0]
    await client.call(name, *args)
    assert asked == [name], "a row of its own"


@pytest.mark.parametrize("service", SESSIONS)
@pytest.mark.parametrize("speech", SPEECHES, ids=str)
@clustered()
async def test_a_gateway_answers_every_byte_as_the_owner_does(
    cluster: PeerCluster, speech: Speech, service: int
) -> None:
    gateway, owner = cluster.houses
    definition, calls = SESSIONS[service]
    there, here = await gateway.client(speech, definition), await owner.client(speech, definition)
    for (name, args), (_, args_here) in zip(calls(b"x1"), calls(b"x2"), strict=True):
        there.send(name, *args)
        here.send(name, *args_here)
        forwarded, direct = await there.message(), await here.message()
        assert _COUNT.sub(b"-n", forwarded.replace(b"x1", b"x2")) == _COUNT.sub(b"-n", direct), name
    assert gateway.forwarding.forwarded >= len(calls(b"")) - 3, "errors of the schema are found at the gateway"
    assert owner.forwarding.forwarded == 0
    assert gateway.forwarding.in_flight == {}


@clustered()
async def test_replies_of_pipelined_calls_come_in_their_order(cluster: PeerCluster) -> None:
    client = await cluster.houses[0].client()
    rows = [b"%c%d" % (b"bx"[n % 2], n) for n in range(40)]
    for row in rows:
        client.send("mutateRow", T, row, put1(b"v" + row), {})
        client.send("get", T, row, b"a:q", {})
    client._seqid = 0
    for row in rows:
        client._seqid += 1
        assert (await client.reply()).value is None
        client._seqid += 1
        assert [cell.value for cell in (await client.reply()).value] == [b"v" + row]


@pytest.mark.parametrize("size", [60 * 1024, 64 * 1024, 20 * 1024 * 1024])
@pytest.mark.parametrize("speech", [SPEECHES[0], SPEECHES[3], SPEECHES[4]], ids=str)
@clustered()
async def test_large_rows_go_both_ways(cluster: PeerCluster, size: int, speech: Speech) -> None:
    gateway = cluster.houses[0]
    client = await gateway.client(speech)
    columns = [b"a:%d" % n for n in range(1 + (size >> 22))]
    value = random.Random(size).randbytes(size // len(columns))
    await client("mutateRow", T, b"x", [one for column in columns for one in put1(value, column)], {})
    (row,) = await client("getRow", T, b"x", {})
    assert {column: cell.value for column, cell in row.columns.items()} == dict.fromkeys(columns, value)
    assert gateway.forwarding.forwarded == 2
    assert (cluster.houses[1].me in gateway.peers._large) == (size >= 64 * 1024)
    assert cluster.houses[1].answering.serving_bytes == 0


def tls_of(folder: Path) -> tuple[Tls, ssl.SSLContext]:
    authority = Authority(folder, "ours")
    server = authority.sign("store")
    return Tls(ServerTls.read(TlsFiles(server.cert, server.key, ""))), ssl.create_default_context(cafile=authority.ca)


@clustered()
async def test_replies_go_on_to_clients_of_a_port_with_tls(cluster: PeerCluster, tmp_path: Path) -> None:
    gateway = cluster.houses[0]
    tls, context = tls_of(tmp_path)
    door = WireServer(gateway.service, tls=tls)
    await door.start("127.0.0.1", 0)
    client = await Client.connected(door.port, tls=context)
    value = random.Random(3).randbytes(3 << 20)
    await client("mutateRow", T, b"x", put1(b"v", b"a:small") + put1(value), {})
    assert [cell.value for cell in await client("get", T, b"x", b"a:small", {})] == [b"v"]
    assert [cell.value for cell in await client("get", T, b"x", b"a:q", {})] == [value]
    assert gateway.forwarding.forwarded == 3
    await client.close()
    await door.close(5)


@clustered(3, (b"h", b"q"))
async def test_no_write_is_lost_or_doubled_while_regions_move(cluster: PeerCluster) -> None:
    """Counters at each gateway, incremented by calls of which none fails, while regions go round."""
    rng = random.Random(seed(17))
    clients = [await house.client() for house in cluster.houses for _ in range(3)]
    counted, is_over = dict.fromkeys([b"b", b"k", b"t"], 0), False

    async def load(client: Client) -> None:
        while not is_over:
            row = rng.choice(list(counted))
            counted[row] += 1
            await client("atomicIncrement", T, row, b"a:n", 1)
            (cell,) = await client("get", T, row, b"a:n", {})
            assert 0 < int.from_bytes(cell.value, "big") <= counted[row]

    loads = [asyncio.ensure_future(load(client)) for client in clients]
    for _ in range(30):
        info = rng.choice(cluster.infos)
        others = [house for house in cluster.houses if house.me != cluster.catalogue[info.region_id].server]
        await cluster.move(info, rng.choice(others).me)
        for _ in range(rng.randrange(5)):
            await asyncio.sleep(0)
    is_over = True
    await asyncio.gather(*loads)
    for row, count in counted.items():
        (cell,) = await clients[0]("get", T, row, b"a:n", {})
        assert int.from_bytes(cell.value, "big") == count
    assert sum(house.forwarding.forwarded for house in cluster.houses) > 0
    assert sum(house.answering.misdirected for house in cluster.houses) > 0
