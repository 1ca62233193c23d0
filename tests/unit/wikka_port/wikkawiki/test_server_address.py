"""Addresses of servers with a WikkaWiki, and their passwords, which no text shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wikka_port.wikkawiki.server_rows import Server, ServerError, parse_address


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("mysql://wikka@db.example/w", Server("db.example", 3306, "wikka", "w")),
        ("mariadb://a%40b@[::1]:3307/w", Server("::1", 3307, "a@b", "w")),
        ("mysql://u@localhost/w?socket=/run/my.sock", Server("localhost", 3306, "u", "w", "/run/my.sock")),
    ],
)
def test_addresses(text: str, server: Server) -> None:
    found = parse_address(text)
    assert found == server
    secret = replace(found, password="s3cret")
    assert "s3cret" not in f"{secret!r} {secret.address}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mysql://u:s3cret@h/w", "WIKKA_MYSQL_PASSWORD"),
        ("mysql://h/w", "write mysql://USER@HOST/DATABASE"),
        ("mysql://u@h", "write mysql://USER@HOST/DATABASE"),
        ("http://u@h/w", "write mysql://USER@HOST/DATABASE"),
        ("mysql://u@h:x/w", "no number"),
    ],
)
def test_what_is_no_address_is_refused_without_its_password(text: str, said: str) -> None:
    with pytest.raises(ServerError, match=said) as refused:
        parse_address(text)
    assert "s3cret" not in str(refused.value)
