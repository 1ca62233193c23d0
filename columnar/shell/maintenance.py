"""The maintenance lock of a store's commands, which restart, stop or drain servers one command at a time.

A command acquires the lock, and a thread of its own renews it while the command works, over a connection of its own.
The thread goes on through leaders that change and servers that restart.  The lock of a command that was killed ends a
minute after its last renewal (``coordination.maintenance_lock``).
"""

from __future__ import annotations

import getpass
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import click
from thriftpy2.protocol.cybin import ProtocolError
from thriftpy2.thrift import TException

from columnar.client import ClusterAdmin, Connection
from columnar.client.cluster import MaintenanceStatus
from columnar.client.errors import NotColumnar
from columnar.shell.connecting import Refused, Server
from columnar.shell.numbers import Seconds
from columnar.shell.private_connection import with_cluster
from columnar.shell.shell_output import plain_fields
from columnar.shell.text import age_text

WAIT_S: Final = 600.0  # for another holder, without a time
POLL_S: Final = 1.0  # of a command that waits
RENEW_S: Final = 10.0
RETRY_S: Final = 1.0  # after a renewal without an answer
RELEASE_S: Final = 5.0  # at the end of a command; the lock that could not be released ends a minute later
CLI: Final = "columnar"
_NO_ANSWER: Final = (TException, ProtocolError, OSError, EOFError)
T = TypeVar("T")

maintenance_wait_option = click.option(
    "--timeout", default=WAIT_S, show_default=True, type=Seconds(),
    help="Seconds to wait while another command restarts, stops or drains servers.",
)  # fmt: skip


def maintenance_text(found: MaintenanceStatus) -> str:
    what = f" for {found.what}" if found.what else ""
    return f"'{found.holder}' has the maintenance of this store{what}, since {age_text(found.age_ms)}"


class CommandLock:
    """The lock of one command, from ``acquire_lock`` to ``release_lock``."""

    def __init__(self, server: Server, holder: str, what: str) -> None:
        self._server = server
        self._holder = holder
        self._what = what
        self._nonce = secrets.token_hex(16)
        self._connection: Connection | None = None  # the thread's while it lives
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None
        self._successor: MaintenanceStatus | None = None  # who has the lock in this command's place; set by the thread

    def acquire_lock(self, until_s: float) -> None:
        """Wait for the lock until ``until_s`` of the monotonic clock, and begin to renew it.

        Raises Refused if another holder has it for longer, and the error of a first call that fails.  An older store,
        which has no such lock, is used without it.
        """
        try:
            found = self._request_lock()
        except NotColumnar:
            click.echo(
                "this store's program is older, and has no maintenance lock: see that nobody else works", err=True
            )
            return
        named = ""
        while not found.own:
            text = maintenance_text(found)
            if time.monotonic() >= until_s:
                raise Refused(f"{text}; nothing was done. '{CLI} maintenance --break' ends what nobody continues")
            if found.holder != named:
                named = found.holder
                click.echo(f"{text}; waiting for it", err=True)
            time.sleep(min(POLL_S, max(0.0, until_s - time.monotonic())))
            found = self._retry_until(until_s, self._request_lock) or found
        self._thread = threading.Thread(target=self._renew, name="renewal of the maintenance lock", daemon=True)
        self._thread.start()

    def check_lock(self) -> None:
        """Raise Refused if somebody has ended this command's lock, or taken it; call before each further step."""
        if self._successor is not None:
            who = (
                f"{maintenance_text(self._successor)} now"
                if self._successor.holder
                else "somebody has ended its maintenance"
            )
            raise Refused(f"this command stops before its next step: {who}")

    def release_lock(self) -> None:
        """Release the lock, within RELEASE_S."""
        thread, self._thread = self._thread, None
        if thread is None:
            self._close()
            return
        self._is_over.set()
        thread.join(RELEASE_S)
        if thread.is_alive() or self._retry_until(time.monotonic() + RELEASE_S, self._release) is None:
            click.echo("the maintenance of this store could not be ended; it ends by itself in a minute", err=True)
        if not thread.is_alive():  # else the connection is still the thread's
            self._close()

    # --- the thread ----------------------------------------------------------------------------------

    def _renew(self) -> None:
        pause_s = RENEW_S
        while not self._is_over.wait(pause_s):
            try:
                found = self._request_lock(renews=True)
            except _NO_ANSWER:  # the next leader is asked, or the next server
                self._close()
                pause_s = RETRY_S
                continue
            pause_s = RENEW_S
            if not found.own:
                self._successor = found
                return

    # --- calls ---------------------------------------------------------------------------------------

    def _retry_until(self, until_s: float, call: Callable[[], T]) -> T | None:
        """Return what ``call`` returns, or None if it was not answered before ``until_s``; called once at least."""
        while True:
            try:
                return call()
            except _NO_ANSWER:
                self._close()
            if time.monotonic() >= until_s:
                return None
            time.sleep(RETRY_S)

    def _admin(self) -> ClusterAdmin:
        if self._connection is None:
            self._connection = self._server.patient(0)
        return ClusterAdmin(self._connection)

    def _request_lock(self, *, renews: bool = False) -> MaintenanceStatus:
        return self._admin().acquire_maintenance(self._nonce, self._holder, self._what, renews=renews)

    def _release(self) -> MaintenanceStatus:
        return self._admin().release_maintenance(self._nonce)

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


@contextmanager
def maintenance_lock(
    server: Server, command: str, what: str = "", *, timeout_s: float = WAIT_S
) -> Iterator[CommandLock]:
    """Hold the store's maintenance lock; wait up to ``timeout_s`` for it, and say for whom.

    ``command`` is the command line without the program, ``what`` the node that is emptied or ended, if it is one.
    Raises Refused after ``timeout_s``.
    """
    lock = CommandLock(server, f"{CLI} {command} by {_user()} at {socket.gethostname()}", what)
    try:
        lock.acquire_lock(time.monotonic() + timeout_s)
        yield lock
    finally:
        lock.release_lock()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user of a container that has no name
        return "an unnamed user"


@click.command()
@click.option(
    "--break", "breaks", is_flag=True, help="End it, whoever has it; a command of its own stops at its next step."
)
@with_cluster
def maintenance(server: Server, breaks: bool) -> None:
    """Say which command restarts, stops or drains servers now, and keeps others waiting.

    The maintenance of a command that was killed ends by itself a minute later.

    \b
      columnar maintenance
      columnar maintenance --break
    """
    admin = ClusterAdmin(server.connection)
    found = admin.release_maintenance() if breaks else admin.maintenance()
    output = server.output
    if output.as_json:
        output.json(plain_fields(found, "holder", "what", "age_ms", "silent_ms"))
    elif not found.holder:
        output.line("nobody has the maintenance of this store")
    elif breaks:
        output.line(f"ended: {maintenance_text(found)}")
    else:
        output.line(f"{maintenance_text(found)}, and renewed it {age_text(found.silent_ms)} ago")
