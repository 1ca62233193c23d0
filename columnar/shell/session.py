"""The state that the commands of one ``columnar shell`` share; a command finds it by its context.

The options of the connection are passed in the environment, like an ``export`` in the system's shell: every command
reads them there, also a command that makes its connections by itself.

``KeptConnection`` is the connection that the commands of one shell share.  It is lent to one command at a time, and
opened when a command needs it.

Invariants:
    K1. A connection is lent only while no other command uses it, and returned only with no answer under way: a command
        that was interrupted, or whose call broke off, closes the connection.
    K2. A connection that the store has closed meanwhile is replaced before it is lent, so no call is sent twice.

Used by the thread that runs the commands alone.
"""

from __future__ import annotations

import os
import selectors
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import click

from columnar.client import ClientTls, Connection
from columnar.client.errors import AlreadyExists, IllegalArgument, IOError, NotColumnar
from columnar.client.user_options import ClientUser
from columnar.errors import CallerError
from columnar.shell.store_names import StoreNames

Opened: TypeAlias = tuple[Connection, ssl.SSLContext | None]
_Place: TypeAlias = tuple[str, ClientTls | None, ClientUser | None]
# Answers of the store, or what a command found in them: after these the connection is between two calls.
_BETWEEN_CALLS: Final[tuple[Any, ...]] = (
    IOError, IllegalArgument, AlreadyExists, NotColumnar, CallerError, click.ClickException,
)  # fmt: skip


class KeptConnection:
    def __init__(self, connect: Callable[[str, ClientTls | None, ClientUser | None], Opened]) -> None:
        self._connect = connect
        self._idle_connection: Opened | None = None
        self._where: _Place | None = None  # of the kept connection

    @contextmanager
    def lent(self, store: str, tls: ClientTls | None, user: ClientUser | None = None) -> Iterator[Opened]:
        where = store, tls, user
        opened = self._taken(where)
        try:
            yield opened
        except _BETWEEN_CALLS:
            self._release(opened, where)
            raise
        except BaseException:
            opened[0].close()
            raise
        self._release(opened, where)

    def _taken(self, where: _Place) -> Opened:
        idle, self._idle_connection = self._idle_connection, None
        if idle is not None:
            if self._where == where and not _has_ended(idle[0]):
                return idle
            idle[0].close()
        return self._connect(*where)

    def _release(self, opened: Opened, where: _Place) -> None:
        self.close()
        self._idle_connection, self._where = opened, where

    def close(self) -> None:
        idle, self._idle_connection = self._idle_connection, None
        if idle is not None:
            idle[0].close()


def _has_ended(connection: Connection) -> bool:
    """Return whether the other side has closed the connection: between two calls nothing else can be readable."""
    if connection.knows_several:
        return not connection.transport.is_open()  # it looks for another server itself
    sock = connection.transport.sock
    if sock is None:
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))


@dataclass(frozen=True, slots=True)
class Session:
    connection: KeptConnection
    names: StoreNames
    pages: bool  # a person reads a terminal: text that is longer than the screen goes through a pager
    is_script: bool = False  # answers are as in a pipe, and no question is asked, also if a terminal is there


def session_of(ctx: click.Context | None) -> Session | None:
    """Return the session; None if the command was typed at the system's shell."""
    return ctx.find_object(Session) if ctx is not None else None


def in_script() -> bool:
    """Return whether the running command belongs to a script."""
    session = session_of(click.get_current_context(silent=True))
    return session is not None and session.is_script


@contextmanager
def exported(
    store: str, tls: ClientTls | None, user: ClientUser | None = None, settings: str | None = None
) -> Iterator[None]:
    """Put the options into the environment while the session lasts, and restore the environment afterwards.

    ``settings``: the file that the session's settings come from.
    """
    wanted = {
        **({"COLUMNAR_CONFIG": settings} if settings else {}),
        "COLUMNAR_STORE": store,
        "COLUMNAR_TLS": "1" if tls is not None else "",
        "COLUMNAR_TLS_CA": tls.ca if tls is not None else "",
        "COLUMNAR_TLS_CLIENT_CERT": tls.cert if tls is not None else "",
        "COLUMNAR_TLS_CLIENT_KEY": tls.key if tls is not None else "",
        "COLUMNAR_USER": user.name if user is not None else "",
        "COLUMNAR_PASSWORD_FILE": user.password_file if user is not None else "",
        "COLUMNAR_TOKEN_FILE": user.token_file if user is not None else "",
    }
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update({name: text for name, text in wanted.items() if text})
    for name in [name for name, text in wanted.items() if not text]:
        os.environ.pop(name, None)
    try:
        yield
    finally:
        for name, text in before.items():
            os.environ.pop(name, None)
            if text is not None:
                os.environ[name] = text
