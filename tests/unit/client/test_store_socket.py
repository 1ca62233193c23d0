"""A client's socket: what its errors say, and that they are thriftpy2's all the same."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from thriftpy2.transport import TTransportException

from columnar.client import Connection
from columnar.client.store_socket import NotConnected


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def _refused(caught: pytest.ExceptionInfo[TTransportException]) -> str:
    error = caught.value
    assert isinstance(error, NotConnected)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.type) == (str(error), error.type)
    assert repr(error) == f"NotConnected({str(error)!r})"
    return str(error)


def test_a_port_where_nobody_listens(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    listener.close()
    with pytest.raises(TTransportException) as caught:
        Connection("127.0.0.1", port)
    assert _refused(caught) == f"cannot connect to 127.0.0.1:{port}: Connection refused"


def test_a_socket_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TTransportException) as caught:
        Connection(unix_socket=str(tmp_path / "none"))
    assert _refused(caught) == f"cannot connect to {tmp_path}/none: No such file or directory"


def test_a_connection_that_was_closed(listener: socket.socket) -> None:
    connection = Connection("127.0.0.1", listener.getsockname()[1])
    connection.close()
    for work in (connection.tables, connection.status, lambda: connection.table("t").row(b"r")):
        with pytest.raises(TTransportException) as caught:
            work()
        assert caught.value.type == TTransportException.NOT_OPEN
        assert _refused(caught) == "the connection is closed; open() opens it again"


def test_a_connection_that_the_other_side_has_ended(listener: socket.socket) -> None:
    connection = Connection("127.0.0.1", listener.getsockname()[1])
    there, _ = listener.accept()
    there.shutdown(socket.SHUT_WR)
    with there, pytest.raises(TTransportException) as caught:
        connection.tables()
    assert caught.value.type == TTransportException.END_OF_FILE
    assert _refused(caught) == "the other side has ended the connection (TSocket read 0 bytes)"
