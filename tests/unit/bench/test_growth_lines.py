"""Lines of the growth measurement, against a peer that answers as it is told."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from benchmarks.growth_filling import is_columnar
from benchmarks.growth_lines import send_all
from benchmarks.growth_regions import by_regions, puts_over_regions
from benchmarks.growth_report import GrowthPlan
from columnar.bench import calls
from columnar.bench.address import Endpoint, EndpointFailed

Answer = Callable[[bytes], bytes | None]  # to a message; None: close the connection
GOOD = calls.good_begin("mutateRow", calls.VOID_SUCCESS)


@contextmanager
def peer(answer: Answer) -> Iterator[Endpoint]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_accept, args=(listener, answer))
        thread.start()
        try:
            yield Endpoint(*listener.getsockname())
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _accept(listener: socket.socket, answer: Answer) -> None:
    threads = []
    while True:
        try:
            sock, _ = listener.accept()
        except OSError:
            break
        threads.append(threading.Thread(target=_serve, args=(sock, answer)))
        threads[-1].start()
    for thread in threads:
        thread.join()


def _serve(sock: socket.socket, answer: Answer) -> None:
    with sock, sock.makefile("rb") as asked:
        while True:
            try:
                head = asked.read(4)
                if not head:
                    return
                reply = answer(asked.read(int.from_bytes(head, "big")))
                if reply is None:
                    return
                sock.sendall(struct.pack(">I", len(reply)) + reply)
            except ConnectionError:
                return  # whoever asked has gone, answers unread


def unknown_method(message: bytes) -> bytes:
    """As a server that has no such method: an application exception of type 1."""
    name = message[8 : 8 + int.from_bytes(message[4:8], "big")]
    text = b"Invalid method name"
    exception = b"\x0b\x00\x01" + struct.pack(">I", len(text)) + text + b"\x08\x00\x02" + struct.pack(">I", 1) + b"\x00"
    return b"\x80\x01\x00\x03" + struct.pack(">I", len(name)) + name + bytes(4) + exception


def puts(count: int) -> Iterator[calls.Exchange]:
    for number in range(count):
        yield calls.exchange("mutateRow", (b"t", b"%d" % number, []), calls.VOID_SUCCESS, units=2)


def test_all_calls_are_sent_and_their_units_counted() -> None:
    seen: list[bytes] = []
    advanced: list[int] = []

    def answer(message: bytes) -> bytes:
        seen.append(message)
        return GOOD + b"\x00"

    with peer(answer) as endpoint:
        send_all(endpoint, puts(25), advanced.append, in_flight=3)
    assert sorted(seen) == sorted(one.frame[calls.FRAME_HEAD :] for one in puts(25))
    assert sum(advanced) == 50


@pytest.mark.parametrize(
    ("answer", "said"), [(unknown_method, "Invalid method name"), (lambda _: None, "closed the connection")]
)
def test_a_bad_answer_ends_it_with_the_endpoint_s_own_words(answer: Answer, said: str) -> None:
    with peer(answer) as endpoint, pytest.raises(EndpointFailed, match=said):
        send_all(endpoint, puts(25), lambda _: None, in_flight=3)


class Silent:
    def began(self, what: str, total: int) -> None:
        pass

    def advance(self, count: int) -> None:
        pass


def test_a_plain_hbase_is_known_and_leaves_out_what_needs_regions() -> None:
    plan = GrowthPlan(1_000, 100, 10, 0.1, 4)
    with peer(unknown_method) as endpoint:
        assert not is_columnar(endpoint)
        for part in (by_regions, puts_over_regions):
            group = part(endpoint, plan, False, Silent())
            assert group.steps == ()
            assert "no Thrift 1 call" in group.left_out
