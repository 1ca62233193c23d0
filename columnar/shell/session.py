"""Things that the commands of one ``columnar shell`` share; a command finds them by its context.

The options of the connection are passed in the environment, as an ``export`` in the system's shell passes them:
every command reads them there, also one that makes its connections by itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import click

from columnar.client import ClientTls
from columnar.shell.kept_connection import KeptConnection
from columnar.shell.store_names import StoreNames


@dataclass(frozen=True, slots=True)
class Session:
    connection: KeptConnection
    names: StoreNames
    pages: bool  # a person reads a terminal: text that is longer than the screen goes through a pager
    is_script: bool = False  # answers are as in a pipe, and no question is asked, also if a terminal is there


def session_of(ctx: click.Context | None) -> Session | None:
    """None if the command was typed at the system's shell."""
    return ctx.find_object(Session) if ctx is not None else None


def in_script() -> bool:
    """Whether the command that runs is one of a script."""
    session = session_of(click.get_current_context(silent=True))
    return session is not None and session.is_script


@contextmanager
def exported(store: str, tls: ClientTls | None) -> Iterator[None]:
    """The options in the environment while the session lasts; afterwards it is as it was."""
    wanted = {
        "COLUMNAR_STORE": store,
        "COLUMNAR_TLS": "1" if tls is not None else "",
        "COLUMNAR_TLS_CA": tls.ca if tls is not None else "",
        "COLUMNAR_TLS_CLIENT_CERT": tls.cert if tls is not None else "",
        "COLUMNAR_TLS_CLIENT_KEY": tls.key if tls is not None else "",
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
