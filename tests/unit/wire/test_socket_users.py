"""SASL ``EXTERNAL`` over a Unix socket: the operating system's user, given or not, and root as another."""

from __future__ import annotations

import asyncio
import pwd
import socket
from typing import Any

import pytest

from columnar.security import sign_in as sign_in_module
from columnar.security.sign_in import SignIn
from columnar.wire import sign_in_protocol
from columnar.wire.sasl import BAD, COMPLETE, EXTERNAL, OK, START, sasl_message
from columnar.wire.sign_in_protocol import SignInProtocol

DAEMON = pwd.getpwuid(1)
UNNAMED = 4_000_000_000


class Transport:
    """The server's end of a Unix socket."""

    def __init__(self) -> None:
        self.sent = b""
        self.socket, self._other_end = socket.socketpair(socket.AF_UNIX)

    def get_extra_info(self, name: str) -> Any:
        return self.socket if name == "socket" else None

    def write(self, data: bytes) -> None:
        self.sent += data

    def set_protocol(self, protocol: object) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        self.socket.close()
        self._other_end.close()


class Connection:
    user = ""

    def connection_made(self, transport: Any) -> None:
        pass

    def set_user(self, user: str) -> None:
        self.user = user


def signed_in(uid: int, name: str, monkeypatch: pytest.MonkeyPatch, *, is_background: bool = False) -> tuple[int, str]:
    """Return the status of the answer to EXTERNAL with ``name``, and the connection's user."""
    monkeypatch.setattr(sign_in_protocol, "uid_of", lambda _transport: uid)

    async def main() -> tuple[int, str]:
        connection, transport = Connection(), Transport()
        protocol = SignInProtocol(SignIn(own_uid=4711), connection, is_background=is_background)  # type: ignore[arg-type]
        protocol.connection_made(transport)  # type: ignore[arg-type]
        protocol.data_received(sasl_message(START, EXTERNAL) + sasl_message(OK, name.encode()))
        if protocol._task is not None:  # asks the system for the name
            await protocol._task
            await asyncio.sleep(0)
        transport.close()
        return transport.sent[0], connection.user

    return asyncio.run(main())


@pytest.mark.parametrize("remembered", [1_000, 0])
@pytest.mark.parametrize("name", ["", DAEMON.pw_name])
def test_a_user_of_the_system_is_that_user_however_many_were_before(
    name: str, remembered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in_module, "OS_USERS", remembered)
    assert signed_in(DAEMON.pw_uid, name, monkeypatch) == (COMPLETE, DAEMON.pw_name)
    assert signed_in(DAEMON.pw_uid, "ann", monkeypatch) == (BAD, DAEMON.pw_name), "only root may act as another"


@pytest.mark.parametrize("is_background", [False, True])
@pytest.mark.parametrize("name", ["", "ann"])
def test_root_may_act_as_another(name: str, is_background: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for uid in (0, 4711):
        found = signed_in(uid, name, monkeypatch, is_background=is_background)
        assert found == (COMPLETE, name or "root")


@pytest.mark.parametrize("name", ["", "ann", "root"])
def test_a_uid_without_a_name_is_nobody(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert signed_in(UNNAMED, name, monkeypatch) == (BAD, "")
