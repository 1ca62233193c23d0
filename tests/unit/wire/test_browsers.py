"""Which HTTP requests come from web pages, and for which hosts a port on loopback answers."""

from __future__ import annotations

import socket

import pytest

from columnar.wire.browsers import Visitors, checked_origin
from columnar.wire.http.answers import HttpRefused
from columnar.wire.http_transport import HttpTransport

APP = "https://app.example"
LOOPBACK = Visitors.of("127.0.0.1", [APP])


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:9090", "localhost.", "127.0.0.1", "127.9.9.9:80", "[::1]:9090", "[::1]", "app.example"],
)
def test_hosts_of_this_machine(host: str) -> None:
    assert LOOPBACK.refuses_host(host) is None


@pytest.mark.parametrize(
    "host",
    ["rebound.example", "localhost.rebound.example", "127.0.0.1.evil.example", "8.8.8.8", "[2001:db8::1]", "", "x:y:z"],
)
def test_hosts_of_others(host: str) -> None:
    assert "--allow-origin" in (LOOPBACK.refuses_host(host) or "")
    assert Visitors.of("0.0.0.0", []).refuses_host(host) is None


def test_an_address_of_this_machine_that_is_not_on_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            pytest.skip("this machine has loopback alone")
        own = probe.getsockname()[0]
    assert LOOPBACK.refuses_host(f"{own}:9090") is None


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, None),
        ({"content-type": "application/x-thrift"}, None),
        ({"content-type": "application/vnd.apache.thrift.binary"}, None),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "Text/Plain; charset=utf-8"}, 415),
        ({"content-type": "multipart/form-data; boundary=x"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"sec-fetch-site": "same-origin"}, 403),
        ({"sec-fetch-mode": "no-cors"}, 403),
        ({"origin": APP, "sec-fetch-site": "cross-site", "content-type": "text/plain"}, None),
        ({"origin": APP + ".evil.example"}, 403),
        ({"origin": APP.replace("https", "http")}, 403),
    ],
)
def test_requests_of_pages(headers: dict[str, str], status: int | None) -> None:
    found = LOOPBACK.refuses_page(headers)
    assert (found[0] if found is not None else None) == status


@pytest.mark.parametrize(
    "text", ["app.example", "https://", "ftp://app.example", "https://app.example/path", "*", "null"]
)
def test_what_is_no_origin_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="is no origin"):
        checked_origin(text)


def asked(method: bytes, *headers: bytes, visitors: Visitors = LOOPBACK) -> HttpTransport:
    http = HttpTransport(1_000, 10_000, visitors)
    lines = [method + b" / HTTP/1.1", b"Host: 127.0.0.1:9090", *headers]
    http.feed(b"\r\n".join(lines) + b"\r\n\r\n" + b"body")
    return http


def test_an_allowed_page_may_ask_and_read() -> None:
    origin, other = b"Origin: " + APP.encode(), b"Origin: https://evil.example"
    with pytest.raises(HttpRefused) as told:
        asked(b"OPTIONS", origin, b"Access-Control-Request-Method: POST").next_body()
    assert told.value.answer.startswith(b"HTTP/1.1 204 ")
    assert b"Access-Control-Allow-Origin: https://app.example\r\n" in told.value.answer
    http = asked(b"POST", origin, b"Content-Length: 4")
    assert http.next_body() == b"body"
    assert b"access-control-allow-origin: https://app.example\r\n" in b"".join(http.answer(b"reply")).lower()
    for method in (b"OPTIONS", b"POST"):
        with pytest.raises(HttpRefused) as told:
            asked(method, other, b"Content-Length: 4").next_body()
        assert told.value.answer.startswith(b"HTTP/1.1 403 ")
        assert b"Access-Control" not in told.value.answer
    http = asked(b"POST", b"Content-Length: 4")
    assert http.next_body() == b"body"
    assert b"access-control" not in b"".join(http.answer(b"reply")).lower()
