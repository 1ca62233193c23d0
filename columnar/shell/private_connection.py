"""The connection to a store's private socket, on which the supervisor answers by itself, also while no server is up.

    with --data DIR      the command reaches the store that serves DIR by the socket that DIR's run file names
    without --data       a command that ends no process uses the port; a command that ends processes asks the store at
                         --store for its folder, and uses the socket if this user can read the run file of that
                         folder and the file belongs to that store; otherwise it uses the port, which answers such
                         commands only if it asks for certificates

A supervisor that hangs accepts connections and answers nothing, so a short call is made first.  A data folder that
stalls gives neither its run file nor an error, so a thread reads it, with a time limit; then the copy of the run file
beside the socket is used, if this user's temporary folder has it.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from typing import Any, Final, Self, TypeVar

import click
from thriftpy2.transport import TTransportException

from columnar.client import Connection
from columnar.errors import HostError
from columnar.shell.connecting import ANSWER_TIMEOUT_S, Server, Unreachable, output_of, report_errors, with_server
from columnar.storage import run_file
from columnar.storage.cluster_file import CLUSTER

T = TypeVar("T")
_OF_A_PORT: Final = (
    "store",
    "wanted",
    "tls_ca",
    "tls_client_cert",
    "tls_client_key",
    "user_name",
    "password_file",
    "token_file",
)  # options that --data replaces
LONGEST_S: Final = 900.0  # a server is emptied, stopped, started, and its regions come home
PING_S: Final = 10.0  # a loop that does not answer within it hangs: servers are killed for that after 3 to 10 s


SOON_S: Final = 0.7  # a folder that answers later may stall
FOLDER_S: Final = 2.0  # a folder that does not answer within it stalls
FOLDER: Final = "the data folder's answer"  # a thread's name


class _FolderOption(click.Path):
    """The path of a folder that may stall."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return _answer_of(value, partial(super().convert, value, param, ctx), partial(_served, value))


class _StalledFolder(str):
    """The path of a folder that does not answer, with the copy of its run file."""

    __slots__ = ("run",)
    run: run_file.RunFile

    def __new__(cls, path: str, run: run_file.RunFile) -> Self:
        self = super().__new__(cls, path)
        self.run = run
        return self


def _served(data: Any) -> _StalledFolder | None:
    """Return the folder if a process of this machine serves it."""
    copy = run_file.find_copy(os.fspath(data))
    return None if copy is None else _StalledFolder(os.fspath(data), copy)


def _answer_of(data: Any, call: Callable[[], T], otherwise: Callable[[], T | None] = lambda: None) -> T:
    """Return the result of a call on the data folder, or raise its error.

    After SOON_S without an answer the result of ``otherwise`` is returned unless it is None.  Raises Unreachable after
    FOLDER_S.  The thread of a call that is never answered ends with the process.
    """
    answer: Future[T] = Future()

    def answered() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            answer.set_exception(error)

    threading.Thread(target=answered, name=FOLDER, daemon=True).start()
    for limit_s in (SOON_S, FOLDER_S - SOON_S):
        try:
            return answer.result(limit_s)
        except TimeoutError:
            if answer.done():  # it is the folder's own error
                raise
        found = otherwise()
        if found is not None:
            return found
    text = f"the data folder {data} does not answer within {FOLDER_S:g} s"
    raise Unreachable(f"{text}; the pages of its store, and this command by --store, say since when")


def with_cluster(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of ``with_server`` and ``--data``, with which the supervisor answers instead of a server."""
    return _with_data(command, with_server(command), ANSWER_TIMEOUT_S)


def with_supervisor(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of ``with_cluster`` to a command that ends processes; answers of the ``Server`` may take long."""

    @functools.wraps(command)
    def by_store(server: Server, **arguments: Any) -> Any:
        return _by_store(command, server, **arguments)

    return _with_data(command, with_server(by_store), LONGEST_S)


def _with_data(
    command: Callable[..., Any], with_store: Callable[..., Any], answer_timeout_s: float
) -> Callable[..., Any]:
    """Add ``--data``; without it ``with_store`` runs.  The supervisor has ``answer_timeout_s`` for an answer."""

    @click.option(
        "--data",
        metavar="DIR",
        type=_FolderOption(file_okay=False),
        help="Folder of a store of this machine and user: its supervisor answers, also while no server is up and the "
        "port does not answer.",
    )
    @functools.wraps(with_store)
    def connected(data: str | None, as_json: bool, **arguments: Any) -> Any:
        if data is None:
            return with_store(as_json=as_json, **arguments)
        for name in _OF_A_PORT:
            del arguments[name]
        with report_errors(data, "the log of its supervisor says more"):
            found = _serving(data)
            with closing(_connected(found, data, answer_timeout_s)) as connection:
                return command(Server(connection, output_of(as_json), data, unix_socket=found.socket), **arguments)

    return connected


def _serving(data: str) -> run_file.RunFile:
    if isinstance(data, _StalledFolder):
        return data.run
    found = _answer_of(data, partial(run_file.read_local, data), partial(run_file.find_copy, data))
    if found is None and _is_of_nodes(data):
        raise Unreachable(
            f"no node of this machine serves {data}; start one with 'columnar node', or name a node of another machine "
            "with --store"
        )
    if found is None:
        raise Unreachable(
            f"nobody serves {data} with several servers; start it with 'columnar standalone --servers N --data {data}'"
            ", or as 'columnar node' on this machine"
        )
    return found


def _is_of_nodes(data: str) -> bool:
    """Return whether the folder is one that nodes share; False if it stalls."""
    if isinstance(data, _StalledFolder):
        return False
    return _answer_of(data, partial(os.path.exists, os.path.join(data, CLUSTER)))


def _connected(found: run_file.RunFile, data: str, answer_timeout_s: float) -> Connection:
    try:
        with closing(Connection(unix_socket=found.socket, timeout=round(PING_S * 1_000))) as pinged:
            pinged.admin.namespaces()
        return Connection(unix_socket=found.socket, timeout=round(answer_timeout_s * 1_000))
    except (TTransportException, OSError) as error:
        # A hanging supervisor accepts no connections, so its queue fills, and then a connection is refused, too.
        if any(isinstance(one, TimeoutError | BlockingIOError) for one in _causes(error)):
            raise Unreachable(
                f"the supervisor (process {found.pid}) does not answer within {PING_S:g} s; end it with 'kill -9 "
                f"{found.pid}' and start the store again: no acknowledged write is lost"
            ) from error
        how = "'columnar node'" if _is_of_nodes(data) else f"'columnar standalone --servers N --data {data}'"
        raise Unreachable(f"process {found.pid} does not serve {data} any more; start it with {how}") from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and its causes, one after the other."""
    while error is not None:
        yield error
        error = error.__context__


def _by_store(command: Callable[..., Any], server: Server, **arguments: Any) -> Any:
    """Run the command by the private socket of the store if this user can use it, else by the port."""
    found = _own_run_file(server)
    connection = _connected(*found, LONGEST_S) if found is not None else server.patient(LONGEST_S)
    with closing(connection):
        return command(Server(connection, server.output, server.address, server.tls, server.user), **arguments)


def _own_run_file(server: Server) -> tuple[run_file.RunFile, str] | None:
    data = server.connection.status().dataFolder
    data = data.decode() if isinstance(data, bytes) else data
    try:
        found = _answer_of(data, partial(run_file.read_local, data))
    except HostError:
        return None  # another user's: the port refuses, and says what to do
    cluster_id = server.connection.call("getClusterId")
    cluster_id = cluster_id.decode() if isinstance(cluster_id, bytes) else cluster_id
    return (found, data) if found is not None and found.cluster_id == cluster_id else None
