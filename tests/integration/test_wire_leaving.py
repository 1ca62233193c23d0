"""Clients whose server leaves go on at another one in the same connection, whatever is on its way at that moment."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator

import happybase
import pytest

from columnar.coordination.connection_channel import READ_BYTES
from columnar.wire.server import WireLimits, WireServer
from tests.support.seeds import seed
from tests.support.toy_wire import (
    EMPTY_GET,
    Running,
    call,
    close_gate,
    framed,
    get,
    increment,
    open_socket,
    receive,
    reply_of,
    serves,
    text,
    until_closed,
)

SEED = seed(20261123)
CHANGES = 100
ROUND = 50  # requests of a client that are on their way at once
Pair = tuple[Running, Running]


@pytest.fixture
def pair() -> Iterator[Pair]:
    running = Running(), Running()
    yield running
    for server in running:
        server.stop()


def leave(one: Running, other: Running) -> asyncio.Future[None]:
    """Have every client of ``one`` go on at ``other``; done when none is left."""

    def give(connection: socket.socket, read: bytes) -> None:
        asyncio.run_coroutine_threadsafe(other.server.take_connection(connection, read), other.loop)

    return asyncio.run_coroutine_threadsafe(one.server.leave(give), one.loop)  # type: ignore[return-value]


def value_put(seqid: int, row: bytes, value: bytes) -> bytes:
    mutation = text(2, b"f:q") + text(3, value) + b"\0"
    batch = text(1, row) + b"\x0f\x00\x02\x0c" + struct.pack(">I", 1) + mutation + b"\0"
    return call(b"mutateRows", seqid, text(1, b"t") + b"\x0f\x00\x02\x0c" + struct.pack(">I", 1) + batch)


@pytest.mark.parametrize("transport", ["buffered", "framed"])
@pytest.mark.parametrize("protocol", ["binary", "compact"])
def test_an_idle_client_goes_on_whatever_it_speaks(pair: Pair, transport: str, protocol: str) -> None:
    one, other = pair
    client = happybase.Connection("127.0.0.1", one.port, transport=transport, protocol=protocol, timeout=10_000)
    assert client.tables() == [b"t1", b"t2"]
    leave(one, other).result(10)
    assert client.table("t").counter_inc(b"there", b"f:c", 41) == 42
    assert other.service.calls == [b"there"]
    assert one.service.closed, "scanners of the connection have a shorter lease from now on"
    client.close()


def test_a_client_that_has_said_nothing_goes_on(pair: Pair) -> None:
    one, other = pair
    with open_socket(one) as sock:
        assert serves(one)  # it was accepted before
        leave(one, other).result(10)
        sock.sendall(framed(get(5)))
        assert reply_of(sock)[2] == 5


def test_clients_that_wait_to_be_accepted_go_on(pair: Pair) -> None:
    """The loop is busy while they connect, and the first it hears is that the server leaves."""
    one, other = pair
    busy = threading.Event()
    one.loop.call_soon_threadsafe(busy.wait)
    clients = [open_socket(one) for _ in range(20)]
    gone = leave(one, other)
    busy.set()
    gone.result(10)
    for n, sock in enumerate(clients):
        with sock:
            sock.sendall(get(n))
            assert receive(sock, 24) == EMPTY_GET % struct.pack(">i", n)
    assert (one.service.calls, len(other.service.calls)) == ([], len(clients))


def test_a_call_under_way_is_answered_first_and_what_came_behind_it_is_answered_there(pair: Pair) -> None:
    one, other = pair
    one.call(close_gate(one.service))
    behind = framed(get(3, b"third"))
    with open_socket(one) as sock:
        sock.sendall(framed(increment(1, b"slow")) + framed(get(2, b"second")) + behind[:7])
        assert serves(one)
        gone = leave(one, other)
        assert serves(other)
        assert not gone.done()
        one.loop.call_soon_threadsafe(one.service.gate.set_result, None)
        gone.result(10)
        assert [reply_of(sock)[2] for _ in range(2)] == [1, 2]
        sock.sendall(behind[7:] + framed(get(4, b"fourth")))
        assert [reply_of(sock)[2] for _ in range(2)] == [3, 4]
    assert one.service.calls == [b"slow", b"r", b"second"]
    assert other.service.calls == [b"r", b"third", b"fourth"]


@pytest.mark.parametrize("wrap", [bytes, framed])
def test_a_large_message_that_has_begun_to_come_is_answered_here(pair: Pair, wrap: type[bytes]) -> None:
    one, other = pair
    message = wrap(value_put(1, b"large", b"x" * (2 * READ_BYTES)))
    with open_socket(one) as sock:
        sock.sendall(message[: READ_BYTES + 1000])
        while one.server.input_bytes <= READ_BYTES:
            assert serves(one)
        gone = leave(one, other)
        assert serves(other)
        assert not gone.done()
        sock.sendall(message[READ_BYTES + 1000 :])
        gone.result(10)
        assert set(one.service.rows) == {b"large"}
        sock.sendall(wrap(value_put(2, b"small", b"y")))
        while not other.service.rows:
            assert serves(other)
    assert set(other.service.rows) == {b"small"}


def test_a_message_over_the_bound_is_refused_here(pair: Pair) -> None:
    other = pair[1]
    one = Running(WireLimits(message_bytes=10_000))
    message = framed(value_put(1, b"large", b"x" * 20_000))
    with open_socket(one) as sock:
        sock.sendall(message[:15_000])
        assert serves(one)
        gone = leave(one, other)
        assert serves(other)
        assert not gone.done(), "its beginning is gone: nobody else can go on"
        sock.sendall(message[15_000:])
        assert b"the limit is 10000" in reply_of(sock)[3]
        gone.result(10)
        sock.sendall(framed(get(2, b"there")))
        assert reply_of(sock)[2] == 2
    assert (one.service.calls, other.service.calls) == ([b"r"], [b"r", b"there"])
    one.stop()


def test_replies_that_a_client_is_slow_to_read_are_sent_first(pair: Pair) -> None:
    one, other = pair
    value = b"v" * 1_000_000
    one.service.rows[b"large"] = {b"f:q": (value, 5)}
    with open_socket(one) as sock:
        sock.sendall(b"".join(framed(get(n, b"large")) for n in range(20)))
        while not one.server.output_bytes:
            assert serves(one)
        gone = leave(one, other)
        assert serves(other)
        assert not gone.done()
        for n in range(20):
            kind, _, seqid, rest = reply_of(sock)
            assert (kind, seqid) == (2, n)
            assert value in rest
        gone.result(10)
        sock.sendall(framed(get(20, b"there")))
        assert reply_of(sock)[2] == 20
    assert other.service.calls == [b"r", b"there"]


def brought(server: Running) -> socket.socket:
    """A client that connected to another process, which handed its connection on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname(), timeout=20)
        accepted, _ = listening.accept()
    server.call(server.server.take_connection(accepted))
    return client


def part_with(
    one: Running, other: Running, most: int, within_s: float = 10, stays: Callable[[int], bool] = lambda _: False
) -> asyncio.Future[int]:
    def give(connection: socket.socket, read: bytes) -> None:
        asyncio.run_coroutine_threadsafe(other.server.take_connection(connection, read), other.loop)

    parting = one.server.part_with(most, give, stays, within_s)
    return asyncio.run_coroutine_threadsafe(parting, one.loop)  # type: ignore[return-value]


def test_a_surplus_goes_and_the_server_serves_on(pair: Pair) -> None:
    one, other = pair
    clients = [brought(one) for _ in range(5)]
    assert part_with(one, other, 3).result(10) == 3
    with open_socket(one) as new:
        for sock in [*clients, new]:
            with sock:
                sock.sendall(framed(get(7)))
                assert reply_of(sock)[2] == 7
    assert (len(one.service.calls), len(other.service.calls)) == (3, 3)
    assert one.server.leaving is None


def test_clients_that_chose_this_server_or_read_slowly_or_wait_for_an_answer_stay(pair: Pair) -> None:
    one, other = pair
    one.service.rows[b"large"] = {b"f:q": (b"v" * 1_000_000, 5)}
    one.call(close_gate(one.service))
    with open_socket(one) as own, brought(one) as slow, brought(one) as waits:
        assert serves(one)
        slow.sendall(b"".join(framed(get(n, b"large")) for n in range(20)))
        while not one.server.output_bytes:
            assert serves(one)
        waits.sendall(framed(increment(1, b"slow")))
        while b"slow" not in one.service.calls:
            assert serves(one)
        assert part_with(one, other, 3, within_s=0.05).result(10) == 0
        assert part_with(one, other, 3, within_s=0.05, stays=lambda _: True).result(10) == 0
        one.loop.call_soon_threadsafe(one.service.gate.set_result, None)
        assert reply_of(waits)[2] == 1
        own.sendall(framed(get(5)))
        assert reply_of(own)[2] == 5
        assert [reply_of(slow)[2] for _ in range(20)] == [*range(20)]
    assert not other.service.calls


def test_one_that_waits_for_an_answer_goes_once_it_has_it(pair: Pair) -> None:
    one, other = pair
    one.call(close_gate(one.service))
    with brought(one) as sock:
        sock.sendall(framed(increment(1, b"slow")))
        while not one.service.calls:
            assert serves(one)
        going = part_with(one, other, 1)
        assert serves(one)
        assert not going.done()
        one.loop.call_soon_threadsafe(one.service.gate.set_result, None)
        assert going.result(10) == 1
        assert reply_of(sock)[2] == 1
        sock.sendall(framed(get(2, b"there")))
        assert reply_of(sock)[2] == 2
    assert other.service.calls == [b"there"]


def test_a_server_that_leaves_meanwhile_gives_all_away(pair: Pair) -> None:
    one, other = pair
    one.call(close_gate(one.service))
    with brought(one) as waits, brought(one) as idle, open_socket(one) as own:
        waits.sendall(framed(increment(1, b"slow")))
        while not one.service.calls:
            assert serves(one)
        part_with(one, other, 3)
        gone = leave(one, other)
        assert part_with(one, other, 1).result(10) == 0, "it leaves"
        one.loop.call_soon_threadsafe(one.service.gate.set_result, None)
        gone.result(10)
        assert reply_of(waits)[2] == 1
        for sock in (waits, idle, own):
            sock.sendall(framed(get(2)))
            assert reply_of(sock)[2] == 2
    assert len(other.service.calls) == 3


def post(body: bytes) -> bytes:
    return b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def http_reply(sock: socket.socket) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += receive(sock, 1)
    assert head.startswith(b"HTTP/1.1 200")
    (length,) = (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    return receive(sock, length)


def test_http_goes_on_between_two_requests(pair: Pair) -> None:
    one, other = pair
    with open_socket(one) as sock:
        sock.sendall(post(get(1)))
        assert http_reply(sock) == EMPTY_GET % struct.pack(">i", 1)
        second = post(get(2))
        sock.sendall(post(get(11)) + second[:30])  # the parser has these bytes
        assert http_reply(sock) == EMPTY_GET % struct.pack(">i", 11)
        gone = leave(one, other)
        assert serves(other)
        assert not gone.done()
        sock.sendall(second[30:])
        assert http_reply(sock) == EMPTY_GET % struct.pack(">i", 2)
        gone.result(10)
        sock.sendall(post(get(3, b"there")))
        assert http_reply(sock) == EMPTY_GET % struct.pack(">i", 3)
    assert other.service.calls == [b"r", b"there"]


def test_a_client_that_has_gone_is_no_hindrance(pair: Pair) -> None:
    one, other = pair
    with open_socket(one) as sock:
        assert serves(one)
        sock.shutdown(socket.SHUT_WR)
        leave(one, other).result(10)
        assert until_closed(sock) == b""
    assert other.server.connections == 0


def test_connections_come_and_go_all_the_time_and_no_reply_is_lost_or_out_of_order(pair: Pair) -> None:
    """Each client has many requests on their way, in pieces of any size, until there were CHANGES of server."""
    print(f"COLUMNAR_SEED={SEED}")
    rng = random.Random(SEED)
    failures: list[BaseException] = []
    over = threading.Event()

    def talk(sock: socket.socket, wrap: type[bytes], rng: random.Random) -> None:
        try:
            with sock:
                while not over.is_set():
                    stream = b"".join(wrap(get(n)) for n in range(ROUND))
                    sender = threading.Thread(target=send, args=(sock, stream, rng))
                    sender.start()
                    for n in range(ROUND):
                        expected = wrap(EMPTY_GET % struct.pack(">i", n))
                        assert receive(sock, len(expected)) == expected
                    sender.join()
        except BaseException as failure:  # noqa: BLE001 - raised by the test's thread
            failures.append(failure)

    def send(sock: socket.socket, stream: bytes, rng: random.Random) -> None:
        while stream:
            size = rng.choice((1, 3, 10, 100, 1000))
            sock.sendall(stream[:size])
            stream = stream[size:]

    threads = []
    for n in range(6):
        sock = socket.create_connection(("127.0.0.1", pair[0].port), timeout=20)
        arguments = (sock, framed if n % 2 else bytes, random.Random(rng.random()))
        threads.append(threading.Thread(target=talk, args=arguments))
    for thread in threads:
        thread.start()
    here, there = pair
    try:
        for _ in range(CHANGES):
            there.call(_stays(there.server))
            leave(here, there).result(20)
            here, there = there, here
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not failures, failures[0]


async def _stays(server: WireServer) -> None:
    """It takes connections again; a server that has left never does."""
    server.leaving = None
