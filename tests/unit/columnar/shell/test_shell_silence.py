"""A store that is not there, does not answer, or ends the connection: one line each, with the step that helps."""

from __future__ import annotations

import errno
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest
from thriftpy2.transport import TTransportException

from columnar.client.errors import IOError
from columnar.client.store_socket import NoAnswer, StoreSocket
from columnar.shell import connecting
from columnar.shell.connecting import Refused, Unreachable, report_errors
from tests.support.shell import Shell

ENDED = "ended the connection before it answered, so the outcome is unknown; look at the store's log, and at --store"
START_ONE = "start one with 'columnar standalone', or say where with --store HOST:PORT"


def _look(client: socket.socket) -> None:
    """Answers the look of a command, whether a store is there, with the beginning of an answer."""
    client.recv(100)
    client.sendall(b"\x80")


@contextmanager
def store(serve: Callable[[socket.socket], object]) -> Iterator[str]:
    """Its address; ``serve`` gets the connection of the command."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            for each in (_look, serve):
                with listener.accept()[0] as client:
                    each(client)

        thread = threading.Thread(target=run)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def never(client: socket.socket) -> None:
    while client.recv(65_536):
        pass


def test_a_store_that_does_not_answer_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "ANSWER_TIMEOUT_S", 0.25)
    with store(never) as address:
        assert Shell(address).error("tables", status=2) == (
            f"{address} did not answer within 0.25 s, so the outcome is unknown; 'columnar servers', with --data DIR "
            "where no server is up, and the store's log say what keeps it"
        )


@pytest.mark.parametrize("length", [1, 65_536])  # with bytes that are not read it is a reset, else an end of the stream
def test_a_store_that_ends_the_connection_while_a_command_waits(length: int) -> None:
    with store(lambda client: client.recv(length)) as address:
        assert Shell(address).error("tables", status=2) == f"{address} {ENDED}"


def test_a_store_that_ends_the_connection_while_a_command_sends() -> None:
    """Not as the reader of our own output that has left, which ends a command without a word."""
    ours, theirs = socket.socketpair()
    theirs.close()
    with (
        closing(StoreSocket(sock=ours)) as ending,
        pytest.raises(Unreachable, match=f"^there {ENDED}$"),
        report_errors("there"),
    ):
        ending.write(b"call")
    with pytest.raises(BrokenPipeError), report_errors("there"):
        raise BrokenPipeError(errno.EPIPE, "of stdout")


def test_a_store_that_does_not_read_in_time() -> None:
    ours, theirs = socket.socketpair()
    with theirs, closing(StoreSocket(sock=ours, socket_timeout=50)) as stuck:
        ours.settimeout(0.05)
        with pytest.raises(NoAnswer, match=r"no answer within 0.05 s"):
            stuck.write(b"x" * 64_000_000)


def _of_a_handshake() -> TTransportException:
    error = TTransportException(TTransportException.NOT_OPEN, "no TLS with there: wrong version number")
    error.__cause__ = ssl.SSLError(1, "wrong version number")
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionRefusedError(111, "Connection refused"), f"cannot talk to there: Connection refused; {START_ONE}"),
        (
            TTransportException(TTransportException.NOT_OPEN, "Could not connect"),
            f"cannot talk to there: Could not connect; {START_ONE}",
        ),
        (OSError(errno.EHOSTUNREACH, "No route to host"), f"cannot talk to there: No route to host; {START_ONE}"),
        (
            _of_a_handshake(),
            "cannot talk to there: no TLS with there: wrong version number; look at --store and --tls-ca",
        ),
        (ssl.SSLEOFError(8, "EOF occurred in violation of protocol"), f"there {ENDED}"),
        (TimeoutError(errno.ETIMEDOUT, "Connection timed out"), f"there {ENDED}"),
    ],
)
def test_starting_a_store_is_the_next_step_only_where_nobody_took_the_connection(error: Exception, said: str) -> None:
    with pytest.raises(Unreachable) as raised, report_errors("there"):
        raise error
    assert raised.value.message == said


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("NamespaceNotFoundException: team", "NamespaceNotFoundException: team; 'columnar namespace list' shows {}"),
        (
            "NamespaceNotFoundException: team; columnar namespace list shows those there are",
            "NamespaceNotFoundException: team; columnar namespace list shows {}",
        ),
    ],
)
def test_a_refusal_has_its_next_step_once(message: str, said: str) -> None:
    with pytest.raises(Refused) as raised, report_errors("there"):
        raise IOError(message=message)
    assert raised.value.message == said.format("those there are")
