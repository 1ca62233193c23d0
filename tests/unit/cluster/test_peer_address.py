"""The text forms of a peer's address."""

from __future__ import annotations

import pytest

from columnar.cluster.peer_address import PeerAddress, TcpAddress, UnixAddress, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("unix:/run/columnar-4f/s1.4", UnixAddress("/run/columnar-4f/s1.4")),
        ("10.0.0.1:9096", TcpAddress("10.0.0.1", 9096)),
        ("store-0.columnar:0", TcpAddress("store-0.columnar", 0)),
        ("[fe80::1]:65535", TcpAddress("fe80::1", 65_535)),
    ],
)
def test_an_address_and_its_text(text: str, address: PeerAddress) -> None:
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "host",
        "host:",
        ":9096",
        "host:65536",
        "host:-1",
        "host:9o96",
        "host:٣",
        "::1:9096",
        "[host]:9",
        "[]:9",
        "unix:",
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match=r"write|brackets"):
        parse_address(text)
