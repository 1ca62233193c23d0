"""Connections that say nothing are kept, and the dead among them are found by the system."""

from __future__ import annotations

import socket

from columnar.wire import sockets


def test_dead_peers_are_found_by_keepalive() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as peer:
        accepted, _ = server.accept()
        with accepted:
            sockets.tune(accepted)
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == sockets.KEEPALIVE_IDLE_S
            assert accepted.gettimeout() is None
        assert peer.recv(1) == b""
