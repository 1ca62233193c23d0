"""HTTP around messages: whatever the pieces, the same bodies come out; what is wrong gets its status."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from columnar.wire.http.answers import HttpRefused
from columnar.wire.http.request_parser import EVENTS, HEADER_BYTES
from columnar.wire.http_transport import HttpTransport

LIMIT, DRAINED = 1_000, 10_000


def framing() -> HttpTransport:
    return HttpTransport(LIMIT, DRAINED)


def post(body: bytes, *headers: bytes, version: bytes = b"1.1") -> bytes:
    lines = [b"POST / HTTP/" + version, b"Host: store", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def chunked(body: bytes, size: int) -> bytes:
    head = b"POST /x HTTP/1.1\r\nHost: store\r\nTransfer-Encoding: chunked\r\n\r\n"
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return head + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def bodies(http: HttpTransport) -> list[bytes]:
    """Every body that is there, each answered with its own length."""
    found = []
    while True:
        body = http.next_body()
        if body is None:
            if http.has_yielded:
                continue
            return found
        found.append(body)
        http.answer(b"%d" % len(body))


def refusal(data: bytes) -> bytes:
    http = framing()
    http.feed(data)
    with pytest.raises(HttpRefused) as caught:
        bodies(http)
    return caught.value.answer


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=5), st.data())
@settings(max_examples=100)
def test_pipelined_in_any_pieces(sent: list[bytes], data: st.DataObject) -> None:
    wire = b"".join(
        post(body) if data.draw(st.booleans()) or not body else chunked(body, data.draw(st.integers(1, 64)))
        for body in sent
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=8)))
    http, found = framing(), []
    for low, high in zip([0, *cuts], [*cuts, len(wire)], strict=True):
        http.feed(wire[low:high])
        found += bodies(http)
    assert found == sent
    assert http.buffered_bytes == 0
    assert not http.is_within_message


def test_the_next_one_waits_for_the_answer() -> None:
    http = framing()
    http.feed(post(b"one") + post(b"two"))
    assert http.next_body() == b"one"
    assert http.next_body() is None
    http.answer(b"reply")
    assert http.next_body() == b"two"


def test_an_answer() -> None:
    http = framing()
    http.feed(post(b"one"))
    http.next_body()
    head, _, body = b"".join(http.answer(b"reply")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert b"content-type: application/x-thrift" in head.lower()
    assert b"content-length: 5" in head.lower()
    assert body == b"reply"


def test_an_empty_answer() -> None:
    http = framing()
    http.feed(post(b"oneway") + post(b"next"))
    http.next_body()
    assert b"content-length: 0" in b"".join(http.answer(b"")).lower()
    assert http.next_body() == b"next"


@pytest.mark.parametrize("wire", [post(b"x", version=b"1.0"), post(b"x", b"Connection: close")])
def test_closes_when_the_client_wants_it(wire: bytes) -> None:
    http = framing()
    http.feed(wire + post(b"never"))
    assert http.next_body() == b"x"
    assert b"connection: close" in b"".join(http.answer(b"y")).lower()
    assert http.has_ended
    assert http.next_body() is None
    http.feed(b"more")
    assert http.buffered_bytes == 0


def test_a_client_that_waits_for_100() -> None:
    http = framing()
    http.feed(post(b"body", b"Expect: 100-continue").removesuffix(b"body"))
    assert http.next_body() is None
    assert http.take_interim().startswith(b"HTTP/1.1 100 ")
    assert http.take_interim() == b""
    http.feed(b"body")
    assert http.next_body() == b"body"


@pytest.mark.parametrize(
    ("wire", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        (b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        (b"TRACE / HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        (b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcde", 405),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"POST / HTTP/1.1\r\nNo host\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (post(b"0\r\n\r\n", b"Transfer-Encoding: chunked"), 400),
        (chunked(b"x", 100).replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n", 1), 400),
        (chunked(b"x", 100).replace(b"HTTP/1.1", b"HTTP/1.0", 1), 400),
        (post(b"x", b"Content-Encoding: gzip"), 415),
        (b"POST / HTTP/1.1\r\nHost: x\r\nLong: " + b"x" * HEADER_BYTES * 2, 431),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\nExpect: 100-continue\r\n\r\n", 413),
        (post(bytes(LIMIT + 1)), 413),
        (chunked(bytes(LIMIT + 1), 100), 413),
        (chunked(bytes(DRAINED * 2), 100)[:-1_000], 413),
    ],
)
def test_refusals(wire: bytes, status: int) -> None:
    answer = refusal(wire)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert b"Connection: close" in head
    assert (b"Allow: POST" in head) == (status == 405)
    if wire.startswith(b"HEAD"):
        assert body == b""
    else:
        assert b"Content-Length: %d\r\n" % len(body) in head
        assert body.endswith(b"\n")


def test_a_body_over_the_bound_is_read_to_its_end_and_not_kept() -> None:
    http = framing()
    http.feed(post(bytes(5_000))[:-1])
    assert bodies(http) == []
    assert http.buffered_bytes == 0
    http.feed(b"\x00")
    with pytest.raises(HttpRefused, match="413"):
        http.next_body()


def test_nothing_is_held_for_a_length_that_is_only_claimed() -> None:
    http = framing()
    http.feed(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\nabc")
    assert http.next_body() is None
    assert http.buffered_bytes == 3
    assert http.is_within_message


def test_half_sent_headers_are_counted() -> None:
    http = framing()
    http.feed(b"POST / HTTP/1.1\r\nHost: x\r\nLong: " + b"x" * 30_000)
    assert http.next_body() is None
    assert http.buffered_bytes > 30_000


def test_shedding_a_body() -> None:
    http = framing()
    http.feed(b"POST / HTTP/1.1\r\nHost: x\r\n")
    assert http.next_body() is None
    assert not http.shed("no room"), "nothing is known of it yet"
    http.feed(b"Content-Length: 10\r\n\r\nabcdef")
    assert http.next_body() is None
    assert http.shed("no room")
    assert http.buffered_bytes == 0
    http.feed(b"ghij")
    with pytest.raises(HttpRefused, match="503: no room"):
        http.next_body()


def test_many_little_chunks_take_turns() -> None:
    body = b"x" * 20_000
    http = HttpTransport(len(body), len(body) * 100)
    http.feed(chunked(body, 1))
    turns = 0
    while (found := http.next_body()) is None:
        assert http.has_yielded
        turns += 1
    assert found == body
    assert turns >= 2 * len(body) // EVENTS - 1  # of each chunk its size and its bytes
