"""The generator's connection over TLS, against a peer whose every byte the test sends by hand."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import pytest

from columnar.bench.address import Endpoint, EndpointFailed, Misaddressed, parse_endpoint, spoken_to
from columnar.bench.connections import Connection, plain_socket
from columnar.bench.tls_connections import RECORD_BYTES, TlsConnection, TlsStream, connector, context_of
from columnar.bench.workloads import Session
from columnar.client.tls import ClientTls
from tests.support.certificates import Authority, Pair

WAIT_S = 20.0


class Peer:
    """The server's side of one connection: what is encrypted goes out only when the test sends it."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        sock.settimeout(WAIT_S)
        self.sock = sock
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        self.last_words = b""  # of the handshake; of TLS 1.3 they are tickets, for which nobody waits

    def shake_hands(self) -> None:
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.sock.sendall(self.outgoing.read())
            self.incoming.write(self.sock.recv(1 << 16))
        self.last_words = self.outgoing.read()

    def encrypted(self, data: bytes) -> bytes:
        view = memoryview(data)
        while view:
            view = view[self.tls.write(view) :]
        return self.outgoing.read()

    def heard(self, count: int) -> bytes:
        """So many bytes of what the client said."""
        found = b""
        while len(found) < count:
            try:
                found += self.tls.read(1 << 16)
            except ssl.SSLWantReadError:
                self.incoming.write(self.sock.recv(1 << 16))
        return found


@dataclass
class Both:
    client: TlsConnection
    peer: Peer

    @property
    def has_more(self) -> bool:
        """Whether the client's socket would wake its loop."""
        self.stream._sock.settimeout(0)
        try:
            return bool(self.stream._sock.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False

    @property
    def stream(self) -> TlsStream:
        return cast(TlsStream, self.client.sock)

    def received(self) -> bytes | None:
        """As the loop: whenever the socket has something."""
        self.stream._sock.settimeout(WAIT_S)
        return self.client.receive()


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"), "ours")


@pytest.fixture(scope="module")
def pair(ours: Authority) -> Pair:
    return ours.sign("store")


@contextmanager
def joined(ours: Authority, pair: Pair, version: str, tickets: int = 0) -> Iterator[Both]:
    mine, theirs = context_of(ours.client()), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    mine.maximum_version = ssl.TLSVersion[version]
    theirs.load_cert_chain(pair.cert, pair.key)
    theirs.num_tickets = tickets
    peers: list[Peer] = []

    def accept() -> None:
        peers.append(Peer(listener.accept()[0], theirs))
        peers[0].shake_hands()
        if not tickets:
            peers[0].sock.sendall(peers[0].last_words)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept)
        thread.start()
        stream = TlsStream.begun(plain_socket("127.0.0.1", listener.getsockname()[1]), mine, "127.0.0.1")
        thread.join()
    yield Both(TlsConnection(stream, cast(Session, None)), peers[0])
    stream.close()
    peers[0].sock.close()


@pytest.fixture(params=["TLSv1_2", "TLSv1_3"])
def both(request: pytest.FixtureRequest, ours: Authority, pair: Pair) -> Iterator[Both]:
    with joined(ours, pair, request.param) as found:
        assert found.stream._tls.version() == request.param.replace("_", ".")
        yield found


def framed(size: int) -> bytes:
    return size.to_bytes(4, "big") + (bytes(range(251)) * (size // 251 + 1))[:size]


@pytest.mark.parametrize("piece", [1, 7, 40])
def test_an_answer_in_pieces_is_whole_with_the_last_one(both: Both, piece: int) -> None:
    reply = framed(60)
    sent = both.peer.encrypted(reply[:3]) + both.peer.encrypted(reply[3:])  # the frame's head in two records
    for at in range(0, len(sent), piece):
        both.peer.sock.sendall(sent[at : at + piece])
        assert both.received() == (reply if at + piece >= len(sent) else None)
    assert not both.has_more


def test_many_records_that_come_at_once_are_all_taken(both: Both) -> None:
    reply = framed(3 * RECORD_BYTES + 5)
    both.peer.sock.sendall(both.peer.encrypted(reply))
    while (found := both.received()) is None:
        pass
    assert found == reply
    assert (both.has_more, both.stream._tls.pending(), both.stream._incoming.pending) == (False, 0, 0)


def test_an_answer_and_a_part_of_the_next_record(both: Both) -> None:
    first, second = framed(50), framed(70)
    sent = both.peer.encrypted(first)
    further = both.peer.encrypted(second)
    both.peer.sock.sendall(sent + further[:9])
    assert both.received() == first
    both.peer.sock.sendall(further[9:])
    assert both.received() == second


def test_what_the_socket_does_not_take_is_sent_on(both: Both) -> None:
    frame = framed(12_000_000)
    assert both.client.send(frame) is False
    began_ns = both.client.sent_ns
    heard: list[bytes] = []
    listening = threading.Thread(target=lambda: heard.append(both.peer.heard(len(frame) + 64)))
    listening.start()
    both.stream._sock.settimeout(WAIT_S)
    while not both.client.send_on():
        pass
    assert both.client.sent_ns == began_ns
    assert both.client.send(framed(60)) is True
    listening.join()
    assert heard == [frame + framed(60)]


def test_tickets_are_nobodys_answer(ours: Authority, pair: Pair) -> None:
    with joined(ours, pair, "TLSv1_3", tickets=2) as both:
        assert both.peer.last_words
        both.peer.sock.sendall(both.peer.last_words)
        assert both.received() is None
        both.peer.sock.sendall(both.peer.encrypted(framed(9)))
        assert both.received() == framed(9)


@pytest.mark.parametrize("says_farewell", [True, False])
def test_an_endpoint_that_closes_is_noticed(both: Both, says_farewell: bool) -> None:
    if says_farewell:
        with pytest.raises(ssl.SSLWantReadError):
            both.peer.tls.unwrap()
        both.peer.sock.sendall(both.peer.outgoing.read())
    both.peer.sock.close()
    with pytest.raises(EndpointFailed, match="closed the connection"):
        both.received()


def test_the_client_says_farewell(both: Both) -> None:
    both.client.sock.close()
    both.peer.incoming.write(both.peer.sock.recv(1 << 16))
    assert both.peer.tls.read(1) == b""  # not the SSLEOFError of one who is cut off


def test_plain_and_tls_are_told_apart_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        line = connector(Endpoint(*listener.getsockname()))(cast(Session, None))
        assert type(line) is Connection
        assert type(line.sock) is socket.socket
        line.sock.close()


def test_files_that_are_not_there_are_said_with_their_option() -> None:
    with pytest.raises(Misaddressed, match="--tls-ca must name a PEM file"):
        connector(Endpoint("127.0.0.1", 1, tls=ClientTls("/no/such/file")))


def test_which_endpoints_speak_tls() -> None:
    secured, plain = parse_endpoint("tls://a:1"), parse_endpoint("b:2")
    assert (secured.tls, plain.tls) == (ClientTls(), None)
    assert (str(secured), str(plain)) == ("tls://a:1", "b:2")
    ours = ClientTls("ca.crt")
    told: list[tuple[Any, ...]] = [
        tuple(endpoint.tls for endpoint in spoken_to(pair, tls))
        for pair in ([secured, plain], [plain, plain], [secured, secured])
        for tls in (ours, None)
    ]
    assert told == [(ours, None), (ClientTls(), None), (ours, ours), (None, None), (ours, ours), (ClientTls(),) * 2]
    for bad in ("ssl://a:1", "tls://a", "tls://:1"):
        with pytest.raises(ValueError, match="tls://HOST:PORT"):
            parse_endpoint(bad)
