"""The requests in a connection's bytes: what is refused, what is bounded, and that pieces make no difference."""

from __future__ import annotations

import gc
import random
import tracemalloc

import pytest

from columnar.wire.http.answers import HttpRefused, refused
from columnar.wire.http.incoming_request import HEADERS, Message
from columnar.wire.http.request_parser import HEAD_PIECE_BYTES, HEADER_BYTES, RequestParser
from tests.support.deep import seeds
from tests.support.hostile_http import hostile_bytes

KEPT, DRAINED = 100_000, 1_000_000
HEAD = b"POST /p?q HTTP/1.1\r\nHost: a\r\n"
SIMPLE = HEAD + b"Content-Length: 2\r\n\r\nab"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
SEEDS = seeds("hostile HTTP connections, parsed", deep=200_000, short=1_500)


def parser() -> RequestParser:
    return RequestParser(KEPT, DRAINED)


def received(parser: RequestParser, *pieces: bytes) -> tuple[list[Message], int]:
    """Return the requests, each answered at once, and the status of the refusal; 0 if there is none."""
    found: list[Message] = []
    try:
        for piece in pieces:
            parser.feed(piece)
            while (message := parser.next_message()) is not None or parser.has_yielded:
                if message is not None:
                    found.append(message)
                    parser.answered(is_last=message.is_last)
    except HttpRefused as fault:
        assert parser.has_ended
        assert parser.buffered_bytes == 0
        return found, int(fault.answer.split()[1])
    return found, 0


def status_of(*pieces: bytes) -> int:
    found, status = received(parser(), *pieces)
    assert found == []
    return status


def test_a_request_as_it_was_sent() -> None:
    found, _ = received(parser(), b"PUT /a%20b?c=d HTTP/1.1\r\nHost: h\r\nX-One: 1\r\nx-one: 2 \r\n\r\n")
    assert found == [Message("PUT", "/a%20b?c=d", {"host": "h", "x-one": "1, 2"}, False)]


def refusing() -> RequestParser:
    def check(_head: Message) -> None:
        raise refused(415, "nothing is taken")

    return RequestParser(KEPT, DRAINED, check)


@pytest.mark.parametrize("body", [b"Content-Length: 60000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\nEA60\r\n"])
def test_a_head_that_makes_its_body_useless_is_refused_when_the_client_has_sent_it(body: bytes) -> None:
    made = refusing()
    for piece in (HEAD, body, *[bytes(1_000)] * 59):
        assert received(made, piece) == ([], 0)
        assert made.buffered_bytes <= HEADER_BYTES, "nothing of it is kept"
    end = b"\r\n0\r\n\r\n" if b"chunked" in body else b""
    assert received(made, bytes(1_000) + end + SIMPLE) == ([], 415)


def test_a_body_that_nobody_sends_or_reads_to_its_end_is_refused_at_once() -> None:
    for rest in (
        b"\r\n",
        b"Content-Length: 0\r\n\r\n",
        b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n",
        b"Content-Length: %d\r\n\r\n" % (DRAINED + 1),
    ):
        assert received(refusing(), HEAD + rest) == ([], 415)
    assert received(refusing(), CHUNKED, *[b"2710\r\n" + bytes(10_000) + b"\r\n"] * 101) == ([], 415)


@pytest.mark.parametrize(
    ("wire", "status"),
    [
        (HEAD + b"Host: a\r\n\r\n", 400),
        (HEAD + b"Authorization: x\r\nAuthorization: y\r\n\r\n", 400),
        (HEAD + b"Content-Type: x\r\nContent-Type: x\r\n\r\n", 400),
        (HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nab", 400),
        (HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        (HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
        (HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\n\r\n", 400),
        (b"POST /#f HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST /\r\n\r\n", 505),
        (b"POST / HTTP/0.9\r\n\r\n", 505),
        (b"POST / HTTP/1.2\r\n\r\n", 505),
        (b"POST / HTTP/2.0\r\n\r\n", 505),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\nraw", 501),
        (HEAD + b"X: y\r\n" * (HEADERS + 1), 431),
        (HEAD + b"X: " + b"y" * (HEADER_BYTES + HEAD_PIECE_BYTES), 431),
        (b"POST /" + b"y" * (HEADER_BYTES + HEAD_PIECE_BYTES), 431),
        (b"\r\n" * HEADER_BYTES, 431),
        (CHUNKED + b"1;" + b"x" * (HEADER_BYTES + HEAD_PIECE_BYTES), 431),
        (CHUNKED + b"0\r\nT: " + b"x" * (HEADER_BYTES + HEAD_PIECE_BYTES), 431),
        (CHUNKED + b"0\r\n" + b"T: x\r\n" * HEADERS, 431),
        (CHUNKED + (b"1;" + b"x" * 30_000 + b"\r\nx\r\n") * (DRAINED // 30_000 + 1), 413),
    ],
)
def test_refusals(wire: bytes, status: int) -> None:
    assert status_of(wire) == status
    assert status_of(*(wire[at : at + 1_000] for at in range(0, len(wire), 1_000))) == status


def test_a_fault_comes_after_the_requests_before_it_and_nothing_after_it() -> None:
    wire = SIMPLE + SIMPLE + b"POST / HTTP/1.1\nHost: a\n\n" + SIMPLE
    found, status = received(parser(), wire)
    assert ([one.body for one in found], status) == ([b"ab", b"ab"], 400)


def test_one_request_at_a_time() -> None:
    one = parser()
    one.feed(SIMPLE * 3)
    for _ in range(3):
        assert one.next_message() is not None
        assert one.next_message() is None
        assert not one.is_between
        one.answered(is_last=False)
    assert one.next_message() is None
    assert one.is_between


@pytest.mark.parametrize(
    "last", [HEAD + b"Connection: close\r\n\r\n", b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"]
)
def test_nothing_comes_after_the_last_request(last: bytes) -> None:
    found, status = received(parser(), SIMPLE + last + SIMPLE, SIMPLE)
    assert ([one.is_last for one in found], status) == ([False, True], 0)


def test_100_is_sent_once_after_the_answers_before_it() -> None:
    one = parser()
    one.feed(SIMPLE + HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert one.next_message() is not None
    assert one.take_interim() == b""
    one.answered(is_last=False)
    assert one.next_message() is None
    assert one.take_interim().startswith(b"HTTP/1.1 100 ")
    assert one.take_interim() == b""
    one.feed(b"ab")
    message = one.next_message()
    assert message is not None
    assert message.body == b"ab"


@pytest.mark.parametrize(
    "expecting",
    [
        HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\na",  # it did not wait
        HEAD + b"Expect: 100-continue\r\n\r\n",
        HEAD + b"Expect: something\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
    ],
)
def test_nothing_is_sent_to_who_does_not_wait(expecting: bytes) -> None:
    one = parser()
    one.feed(expecting)
    one.next_message()
    assert one.take_interim() == b""


@pytest.mark.parametrize("size", [0, 2, HEAD_PIECE_BYTES * 3])
@pytest.mark.parametrize("step", [1, 1_000_000])
@pytest.mark.parametrize("in_chunks", [False, True])
def test_an_upgrade_is_ignored(size: int, step: int, in_chunks: bool) -> None:
    body = b"x" * size
    framing = b"Transfer-Encoding: chunked" if in_chunks else b"Content-Length: %d" % size
    sent = (b"%x\r\n" % size + body + b"\r\n" if body else b"") + b"0\r\n\r\n" if in_chunks else body
    wire = HEAD + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" + framing + b"\r\n\r\n" + sent + SIMPLE
    found, status = received(parser(), *(wire[at : at + step] for at in range(0, len(wire), step)))
    assert status == 0
    assert [one.body for one in found] == [body, b"ab"]
    assert found[0].headers["upgrade"] == "h2c"


def test_what_waits_parsed_is_bounded() -> None:
    tiny = b"GET / HTTP/1.1\r\nHost:\r\n\r\n"
    one = parser()
    tracemalloc.start()
    try:
        one.feed(tiny * 10_000)
        wire_bytes = one.buffered_bytes
        before, _ = tracemalloc.get_traced_memory()
        assert one.next_message() is not None
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 60 * HEAD_PIECE_BYTES
    assert one.buffered_bytes > wire_bytes - HEAD_PIECE_BYTES


def test_what_is_half_received_is_freed_when_the_connection_ends() -> None:
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        one = parser()
        one.feed(HEAD + b"Content-Length: 99999\r\n\r\n" + bytes(90_000))
        assert one.next_message() is None
        one.stop()
        del one
        assert tracemalloc.get_traced_memory()[0] < 20_000
    finally:
        tracemalloc.stop()
        gc.enable()


def test_hostile_bytes_are_the_same_in_all_pieces() -> None:
    """Whole and in random pieces: the same requests, refused or not, and never more memory than sent.

    Of two faults in a head the pieces decide which is found first.
    """
    kinds = {"found": 0, "refused": 0}
    for seed in range(SEEDS):
        rng = random.Random(seed)
        wire = hostile_bytes(rng)
        whole = parser()
        found, status = received(whole, wire)
        assert whole.buffered_bytes <= len(wire) + HEAD_PIECE_BYTES, seed
        cuts = sorted(rng.randrange(len(wire) + 1) for _ in range(rng.randrange(12)))
        pieces = [wire[low:high] for low, high in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
        found_by_piece, status_by_piece = received(parser(), *pieces)
        assert (found_by_piece, status_by_piece != 0) == (found, status != 0), seed
        assert status in (0, 400, 413, 431, 501, 505), seed
        kinds["found"] += len(found)
        kinds["refused"] += status != 0
    assert min(kinds.values()) > SEEDS / 4, "both kinds are there"
