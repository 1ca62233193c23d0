"""The tests' own wiki leaves nothing open: the collector would tell it in whatever test comes later, and fail that."""

from __future__ import annotations

import gc
import socket
import sys
from urllib.parse import urlsplit

import pytest

from tests.support.fake_wiki import FakeWiki


@pytest.mark.parametrize("asking", [b"", b"GET /Page HTTP/1.1\r\n\r\n", b"GET /Hang HTTP/1.1\r\n\r\n"])
def test_connections_that_come_at_the_end_are_closed(asking: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    left: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: left.append(told.exc_value))
    for _ in range(10):
        with FakeWiki() as wiki:
            where = urlsplit(wiki.url)
            clients = [socket.create_connection((where.hostname or "", where.port or 0)) for _ in range(3)]
            for client in clients:
                client.sendall(asking)
        for client in clients:
            client.close()
        del wiki
    gc.collect()
    assert left == []
