"""What the HTTP layer relies on of httptools: the strict mode of llhttp, and the order of its events.

The cases that pass are those which ``incoming_request`` and ``request_parser`` refuse or bound themselves.
"""

from __future__ import annotations

import httptools
import pytest

HEAD = b"POST /p?q HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


class Recorder:
    def __init__(self) -> None:
        self.events: list[object] = []
        self.parser = httptools.HttpRequestParser(self)

    def on_message_begin(self) -> None:
        self.events.append("begin")

    def on_url(self, url: bytes) -> None:
        if url:
            self.events.append(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.events.append((name, value))

    def on_headers_complete(self) -> None:
        self.events.append((self.parser.get_method(), self.parser.get_http_version(), self.parser.should_keep_alive()))

    def on_chunk_header(self) -> None:
        self.events.append("chunk")

    def on_body(self, data: bytes) -> None:
        self.events.append(data)

    def on_message_complete(self) -> None:
        self.events.append("end")


def events(*pieces: bytes) -> list[object]:
    recorder = Recorder()
    for piece in pieces:
        recorder.parser.feed_data(piece)
    return recorder.events


@pytest.mark.parametrize(
    ("wire", "why"),
    [
        (b"POST / HTTP/1.1\nHost: a\n\n", "CRLF"),
        (b"POST / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", "CR"),
        (b"POST / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n", "LF"),
        (b"POST / HTTP/1.1\r\nHost: a\r\n\n", "header"),
        (HEAD + b"X : y\r\n\r\n", "header token"),
        (HEAD + b" X: y\r\n\r\n", "whitespace"),
        (HEAD + b"X: y\r\n folded\r\n\r\n", "whitespace"),
        (HEAD + b"X: y\r\n\tfolded\r\n\r\n", "whitespace"),
        (HEAD + b": y\r\n\r\n", "header token"),
        (HEAD + b"X\x00: y\r\n\r\n", "header token"),
        (HEAD + b"X\xff: y\r\n\r\n", "header token"),
        (HEAD + b"X: a\x00b\r\n\r\n", "value char"),
        (HEAD + b"X: a\x01b\r\n\r\n", "value char"),
        (HEAD + b"X: a\x7fb\r\n\r\n", "value char"),
        (b"POST /a b HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/"),
        (b"POST /\x00 HTTP/1.1\r\nHost: a\r\n\r\n", "url"),
        (b"POST /\xff HTTP/1.1\r\nHost: a\r\n\r\n", "url"),
        (b"FOO / HTTP/1.1\r\nHost: a\r\n\r\n", "method"),
        (b"post / HTTP/1.1\r\nHost: a\r\n\r\n", "method"),
        (b"GET / http/1.1\r\nHost: a\r\n\r\n", "HTTP/"),
        (b"GET / HTTP/1.10\r\nHost: a\r\n\r\n", "CRLF"),
        (b"GET / HTTP/1.2\r\nHost: a\r\n\r\n", "^Invalid HTTP version$"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "^Pause on PRI/Upgrade$"),
        (HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nab", "Content-Length"),
        (HEAD + b"Content-Length: 2, 2\r\n\r\nab", "Content-Length"),
        (HEAD + b"Content-Length: +2\r\n\r\nab", "Content-Length"),
        (HEAD + b"Content-Length: -2\r\n\r\nab", "Content-Length"),
        (HEAD + b"Content-Length: 0x2\r\n\r\nab", "Content-Length"),
        (HEAD + b"Content-Length: 1 2\r\n\r\nab", "Content-Length"),
        (HEAD + b"Content-Length:\r\n\r\nab", "Content-Length"),
        (HEAD + b"Content-Length: 99999999999999999999999\r\n\r\nab", "^Content-Length overflow$"),
        (HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding"),
        (HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", "Transfer-Encoding"),
        (HEAD + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", "Transfer-Encoding"),
        (HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding"),
        (HEAD + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", "value char"),
        (HEAD + b"Transfer-Encoding:\r\n\r\n0\r\n\r\n", "Transfer-Encoding"),
        (HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding"),
        (CHUNKED + b"2\nab\r\n0\r\n\r\n", "chunk size"),
        (CHUNKED + b"2 ;x=y\r\nab\r\n0\r\n\r\n", "chunk size"),
        (CHUNKED + b"-2\r\nab\r\n0\r\n\r\n", "chunk size"),
        (CHUNKED + b"0x2\r\nab\r\n0\r\n\r\n", "chunk size"),
        (CHUNKED + b";x\r\nab\r\n0\r\n\r\n", "chunk size"),
        (CHUNKED + b"ffffffffffffffffff\r\nab", "[Cc]hunk size"),
        (CHUNKED + b"2;a\nb\r\nab\r\n0\r\n\r\n", "chunk extension"),
        (CHUNKED + b'2;a="\r\n"\r\nab\r\n0\r\n\r\n', "chunk extension"),
        (CHUNKED + b"2\r\nabc\r\n0\r\n\r\n", "chunk data"),
        (HEAD + b"Connection: close\r\n\r\nPOST", "close"),
    ],
)
def test_it_refuses(wire: bytes, why: str) -> None:
    with pytest.raises(httptools.HttpParserError, match=why):
        events(wire)


@pytest.mark.parametrize(
    ("wire", "found"),
    [
        (HEAD + b"Empty:\r\nLast: \r\n\r\n", [(b"Empty", b""), (b"Last", b"")]),
        (HEAD + b"X: \xff\r\n\r\n", [(b"X", b"\xff")]),
        (HEAD + b"X: y \r\n\r\n", [(b"X", b"y ")]),
        (HEAD + b"Host: b\r\n\r\n", [(b"Host", b"b")]),
        (HEAD + b"Content-Length: 2 \r\n\r\nab", [(b"Content-Length", b"2 "), b"ab"]),
        (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", [(b"Transfer-Encoding", b"gzip, chunked")]),
        (CHUNKED + b"2;x=y\r\nab\r\n0\r\nTrailer: t\r\n\r\n", [b"ab", (b"Trailer", b"t")]),
        (CHUNKED + b"0000000000000000000002\r\nab\r\n0\r\n\r\n", [b"ab"]),
        (b"\r\n\r\n" + HEAD + b"\r\n", [b"/p?q"]),
        (b"POST /p#f HTTP/1.1\r\nHost: a\r\n\r\n", [b"/p#f"]),
        (b"POST /\r\n\r\n", [(b"POST", "0.9", False)]),
        (b"POST / HTTP/2.0\r\n\r\n", [(b"POST", "2.0", False)]),
        (b"POST / HTTP/1.1\r\n\r\n", [(b"POST", "1.1", True)]),
        (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", [(b"POST", "1.0", False)]),
        (b"POST / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", [(b"POST", "1.0", True)]),
        (b"POST / HTTP/1.1\r\nConnection: close\r\n\r\n", [(b"POST", "1.1", False)]),
    ],
)
def test_it_lets_pass(wire: bytes, found: list[object]) -> None:
    """Each is received as written, so that what stands behind it can be judged."""
    all_events = events(wire)
    assert all(one in all_events for one in found)
    assert all_events[-1] == "end"
    bytewise = events(*(wire[at : at + 1] for at in range(len(wire))))
    assert [one for one in bytewise if isinstance(one, tuple)] == [one for one in all_events if isinstance(one, tuple)]


@pytest.mark.parametrize(
    "head",
    [
        b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
        HEAD + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n",
        HEAD + b"Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_it_stops_after_the_head_of_an_upgrade_and_can_begin_again(head: bytes) -> None:
    recorder = Recorder()
    with pytest.raises(httptools.HttpParserUpgrade) as stopped:
        recorder.parser.feed_data(head + b"rest")
    assert stopped.value.args == (len(head),)
    assert recorder.events[-1] == "end"
    recorder.parser.feed_data(HEAD + b"Content-Length: 4\r\n\r\nrest")
    assert recorder.events[-2:] == [b"rest", "end"]


def test_what_an_event_raises_ends_the_parser() -> None:
    recorder = Recorder()

    def fail(_name: bytes, _value: bytes) -> None:
        raise ValueError

    recorder.on_header = fail  # type: ignore[method-assign]
    recorder.parser = httptools.HttpRequestParser(recorder)
    for _ in range(2):
        with pytest.raises(httptools.HttpParserError):
            recorder.parser.feed_data(HEAD + b"\r\n")
    assert "end" not in recorder.events
