"""A password is taken only where nobody on the network reads it: TLS, a Unix socket, this machine."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from columnar.security.sign_in import SignIn
from columnar.wire.sasl import BAD, COMPLETE, OK, PLAIN, SCRAM, START, sasl_message
from columnar.wire.sign_in_protocol import SignInProtocol


class Transport:
    """A transport of a client at this address."""

    def __init__(self, host: str, *, is_tls: bool = False) -> None:
        self.sent = b""
        self._facts = {"peername": (host, 4711), "ssl_object": _NoCertificate() if is_tls else None}

    def get_extra_info(self, name: str) -> Any:
        return self._facts.get(name)

    def write(self, data: bytes) -> None:
        self.sent += data

    def close(self) -> None:
        pass


class _NoCertificate:
    def getpeercert(self, binary_form: bool) -> None:
        assert binary_form


class Connection:
    """The part of a connection that sign-in uses."""

    def connection_made(self, transport: Any) -> None:
        pass

    def set_user(self, user: str) -> None:
        pass


CHANNELS = [("10.0.0.9", False, False), ("10.0.0.9", True, True), ("127.0.0.1", False, True), ("::1", False, True)]


@pytest.mark.parametrize(("host", "is_tls", "is_private"), CHANNELS)
def test_plain_is_for_channels_that_nobody_reads(host: str, is_tls: bool, is_private: bool) -> None:
    async def answer(mechanism: bytes) -> tuple[SignInProtocol, bytes]:
        protocol, transport = SignInProtocol(SignIn(), Connection()), Transport(host, is_tls=is_tls)  # type: ignore[arg-type]
        protocol.connection_made(transport)  # type: ignore[arg-type]
        protocol.data_received(sasl_message(START, mechanism))
        return protocol, transport.sent

    protocol, sent = asyncio.run(answer(PLAIN))
    assert protocol.is_private is is_private
    assert (sent[:1] == bytes([BAD])) is not is_private
    assert asyncio.run(answer(SCRAM))[1] == b"", "SCRAM shows no password, on any channel"
    assert COMPLETE not in sent[:1]
    assert OK not in sent[:1]


def test_a_unix_socket_is_private() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    transport = Transport("")
    transport._facts["socket"] = ours
    protocol = SignInProtocol(SignIn(), Connection())  # type: ignore[arg-type]
    protocol.connection_made(transport)  # type: ignore[arg-type]
    assert protocol.is_private
    ours.close()
    theirs.close()
