"""A connection to one server of several: when it may be used, and what a failure says of the call."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.transport import TCyBufferedTransport

from columnar.client.addresses import Address
from columnar.client.errors import IOError
from columnar.client.store_link import BROKEN, EXTENSION, HBASE, Call, LinkSettings, NotSent, StoreLink
from columnar.client.store_socket import NoAnswer, NotConnected
from columnar.wire.idl import SERVICE, hbase

GET = Call(HBASE, "getRow", (b"t", b"r", {}))


def settings(timeout_ms: int | None = None) -> LinkSettings:
    return LinkSettings(TCyBufferedTransport, TCyBinaryProtocol, timeout_ms, None)


class Pair:
    """A link, and the server's side of its connection."""

    def __init__(self, listener: socket.socket, timeout_ms: int | None = None) -> None:
        self.link = StoreLink(Address("127.0.0.1", listener.getsockname()[1]), settings(timeout_ms), 5_000)
        self.link.connect()
        self.there, _ = listener.accept()

    def answer(self, **result: Any) -> None:
        """Answer the call that the link has sent."""
        assert self.there.recv(4096)
        server = Answers(self.there)
        protocol = TCyBinaryProtocol(TCyBufferedTransport(server))
        protocol.write_message_begin("getRow", 2, 0)
        protocol.write_struct(SERVICE.getRow_result(**result))  # type: ignore[attr-defined]
        protocol.write_message_end()
        protocol.trans.flush()

    def reset(self) -> None:
        self.there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.there.close()


class Answers:
    def __init__(self, there: socket.socket) -> None:
        self.write = there.sendall

    def flush(self) -> None:
        pass


MakePair = Callable[..., Pair]


@pytest.fixture
def make_pair() -> Iterator[MakePair]:
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as closing:

        def make(**options: Any) -> Pair:
            pair = Pair(listener, **options)
            closing.callback(pair.link.close)
            closing.callback(pair.there.close)
            return pair

        yield make


def test_a_call_in_two_steps(make_pair: MakePair) -> None:
    pair = make_pair()
    assert pair.link.is_usable
    pair.link.send(GET)
    assert pair.link.waits
    assert not pair.link.is_usable, "an answer is to be read first"
    pair.answer(success=[hbase.TRowResult(row=b"r", columns={})])
    assert [one.row for one in pair.link.receive(GET)] == [b"r"]
    assert pair.link.is_usable
    pair.link.send(GET)
    pair.answer(io=hbase.IOError(message="NotServingRegionException: no"))
    with pytest.raises(IOError, match="NotServingRegionException: no"):
        pair.link.receive(GET)
    assert pair.link.is_usable, "an error is an answer"
    pair.link.close()
    assert not pair.link.is_usable


def test_an_ended_connection_is_not_usable(make_pair: MakePair) -> None:
    """Nothing is sent over it, so nothing is unknown."""
    pair = make_pair()
    pair.there.shutdown(socket.SHUT_WR)
    assert not pair.link.is_usable


def test_a_connection_that_was_reset_did_not_take_the_call(make_pair: MakePair) -> None:
    pair = make_pair()
    pair.reset()
    with pytest.raises(NotSent) as caught:
        pair.link.send(GET)
    assert isinstance(caught.value.cause, OSError)
    assert not pair.link.is_usable


def test_an_end_before_the_answer_is_unknown(make_pair: MakePair) -> None:
    pair = make_pair()
    pair.link.send(GET)
    assert pair.there.recv(4096)
    pair.there.close()
    with pytest.raises(NotConnected) as caught:
        pair.link.receive(GET)
    assert isinstance(caught.value, BROKEN)
    assert pair.link._socket.sock is None, "it is closed"


def test_an_answer_that_is_late_belongs_to_no_later_call(make_pair: MakePair) -> None:
    pair = make_pair(timeout_ms=50)
    pair.link.send(GET)
    with pytest.raises(NoAnswer):
        pair.link.receive(GET)
    assert not pair.link.is_usable


def test_an_answer_that_is_no_answer(make_pair: MakePair) -> None:
    pair = make_pair()
    pair.link.send(GET)
    pair.there.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(BROKEN):
        pair.link.receive(GET)
    assert not pair.link.is_usable


def test_arguments_that_cannot_be_encoded_end_the_connection(make_pair: MakePair) -> None:
    """A part of the call may have gone out, and the next call must not continue it."""
    pair = make_pair()
    with pytest.raises(Exception) as caught:
        pair.link.send(Call(HBASE, "getRow", (b"t", object(), {})))
    assert not isinstance(caught.value, NotSent)
    assert not pair.link.is_usable


def test_an_interrupted_receipt_ends_the_connection(make_pair: MakePair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = make_pair()
    pair.link.send(Call(EXTENSION, "columnarStatus", ()))

    def interrupted(_method: str) -> None:
        raise KeyboardInterrupt

    for client in pair.link._clients:
        monkeypatch.setattr(client, "receive_answer", interrupted)
    with suppress(KeyboardInterrupt):
        pair.link.receive(Call(EXTENSION, "columnarStatus", ()))
    assert not pair.link.is_usable


def test_the_time_for_connecting_is_not_that_of_answers(make_pair: MakePair) -> None:
    pair = make_pair()
    assert pair.link._socket.sock.gettimeout() is None
    assert make_pair(timeout_ms=700).link._socket.sock.gettimeout() == 0.7


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    link = StoreLink(Address("127.0.0.1", port), settings(), 5_000)
    assert not link.is_usable
    with pytest.raises(NotConnected, match="Connection refused"):
        link.connect()
    assert not link.is_usable
    link.close()


def test_an_address_of_the_other_kind() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:
        link = StoreLink(Address("::1", listener.getsockname()[1]), settings(), 5_000)
        link.connect()
        assert link.is_usable
        link.close()
