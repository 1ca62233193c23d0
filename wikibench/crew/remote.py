"""A crew over machines: where its controller listens, who may join, and how a replay gets its workers.

The token is a file that both sides have; each proves it to the other before anything of the load is sent.  Without a
token the controller listens on this machine only.  The connection is not encrypted: if the network is not trusted, it
goes through ``ssh -L``.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import click

from wikibench.errors import CrewError, PlanError
from wikibench.live import LiveLine
from wikibench.pacing import Planned
from wikibench.summary import Replay
from wikibench.visits import Load

from .controller import Controller, conducted
from .controller_state import ControllerState
from .local import replay_shared

TOKEN_BYTES: Final = 16  # at least
MOST_TOKEN_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Workers:
    """The workers of replays: processes of this machine, or those that connect to ``listener``."""

    count: int
    is_all_or_nothing: bool = False
    listener: socket.socket | None = None
    token: bytes = b""
    requests: Path | None = None  # where processes of this machine log each request

    @classmethod
    def of_options(cls, given: dict[str, Any]) -> Self | None:
        """Return the workers that the options ask for; None if the replay needs no process of its own.

        Raises PlanError, and CrewError if the address cannot be listened on.
        """
        address, expected, count = given["listen"], given["expect"], given["workers"]
        if address is None:
            if expected is not None or given["token_file"] is not None:
                raise PlanError("--expect and --token-file are for --listen: where are the workers to connect?")
            return cls(count, given["all_or_nothing"], requests=given.get("requests")) if count > 1 else None
        if given.get("requests") is not None:
            raise PlanError("--requests is an option of each wikibench worker, where the workers are elsewhere")
        if expected is None or count > 1:
            raise PlanError("--listen needs --expect, the number of workers that connect, in place of --workers")
        token = b"" if given["token_file"] is None else token_of(given["token_file"])
        return cls(expected, given["all_or_nothing"], listening(address, has_token=bool(token)), token)

    def replay_plan(self, load: Load, plan: Iterable[Planned], line: LiveLine) -> Replay:
        """Replay the plan; block until its end.  Raises CrewError if the workers cannot begin."""
        if self.listener is None:
            ends = self.is_all_or_nothing
            return replay_shared(load, plan, self.count, line, is_all_or_nothing=ends, requests=self.requests)
        host, port = self.listener.getsockname()[:2]
        token = " --token-file FILE" if self.token else ""
        click.echo(f"waiting for {self.count} workers: wikibench worker {host}:{port}{token}", err=True)
        state = ControllerState(load, plan, self.count, token=self.token, is_all_or_nothing=self.is_all_or_nothing)
        state.prepare()
        return conducted(Controller(state, line), (), self.listener.dup())  # the next try listens on it, too


def address_of(text: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT.  Raises PlanError."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise PlanError(f"{text!r} is not of the form HOST:PORT, such as 0.0.0.0:48657")
    return host.removeprefix("[").removesuffix("]"), int(port)


def token_of(path: Path) -> bytes:
    """Return the token of a file, without blanks around it.  Raises PlanError."""
    with path.open("rb") as file:
        token = file.read(MOST_TOKEN_BYTES).strip()
    if len(token) < TOKEN_BYTES:
        raise PlanError(f"{path}: a token has {TOKEN_BYTES} bytes at least; make one: openssl rand -hex 32 > {path}")
    return token


def listening(address: str, *, has_token: bool) -> socket.socket:
    """Return a socket that listens.  Raises PlanError for an address of the network without a token, and CrewError."""
    host, port = address_of(address)
    try:
        family, kind, _, _, found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        if not has_token and not ipaddress.ip_address(found[0]).is_loopback:
            raise PlanError(f"--listen {address} is open to other machines: it needs --token-file")
        listener = socket.socket(family, kind)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(found)
        listener.listen()
    except OSError as error:
        raise CrewError(f"--listen {address}: {error.strerror or error}") from error
    return listener
