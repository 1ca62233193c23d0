"""``wikibench worker``: a worker of a replay whose controller runs elsewhere."""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path
from typing import Final

import click

from wikibench.crew.remote import address_of, token_of
from wikibench.crew.worker import CLOSED, work
from wikibench.errors import CrewError
from wikibench.options import Duration
from wikibench.request_log import request_log, require_free
from wikibench.statuses import CONTEXT, MET, report_errors
from wikibench.targets.target import require_loopback
from wikibench.visits import Load

RETRY_S: Final = 0.5
CONNECT_S: Final = 10.0


@click.command(context_settings=CONTEXT)
@click.argument("address", metavar="HOST:PORT")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with the token that the controller has, too.",
)
@click.option(
    "--allow-remote",
    is_flag=True,
    help="Load a wiki that is not on this worker's machine. Only for a site that is yours.",
)
@click.option(
    "--wait", type=Duration(), default=60.0, show_default=True, help="How long the controller may take to listen."
)
@click.option(
    "--requests",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write a line for each request into requests-N.csv.gz here, for the N-th replay.",
)
def worker(address: str, token_file: Path | None, allow_remote: bool, wait: float, requests: Path | None) -> None:
    """Send what a controller deals, on this or another machine.

    \b
    A token, once, on all machines; then the controller, and a worker on each of the others:
      openssl rand -hex 32 > token
      wikibench replay day.trace --target http://wiki:8080 --allow-remote --listen 0.0.0.0:48657 --expect 2 \\
                       --token-file token
      wikibench worker controller:48657 --token-file token --allow-remote

    A worker needs no trace. It serves replay after replay (a search has many) and ends with its controller. It
    refuses a target that is not on its own machine unless its own command line has --allow-remote.
    The connection is not encrypted: through a network that is not trusted, use ssh -L 48657:localhost:48657.
    """

    def check(load: Load) -> None:
        if not allow_remote:
            require_loopback(load.target)

    with report_errors():
        if requests is not None:
            require_free(requests)
        host, port = address_of(address)
        token = b"" if token_file is None else token_of(token_file)
        connection = _connected(host, port, time.monotonic() + wait)
        served = 0
        while connection is not None:
            with request_log(requests, served + 1) as log:
                why = work(connection, socket.gethostname(), token, check, log)
            if why != "done":
                if served and why == CLOSED:
                    break  # it listened until its end, and no further replay came
                raise CrewError(f"{address}: {why}")
            served += 1
            click.echo(f"served {served}", err=True)
            connection = _connected(host, port, None)
    sys.exit(MET)


def _connected(host: str, port: int, until_s: float | None) -> socket.socket | None:
    """Return a connection; None if nobody listens and ``until_s`` is None.  Raises CrewError after ``until_s``."""
    while True:
        try:
            connection = socket.create_connection((host, port), CONNECT_S)
        except OSError as error:
            if until_s is None:
                return None
            if time.monotonic() >= until_s:
                raise CrewError(f"{host}:{port}: no controller ({error.strerror or error})") from error
            time.sleep(RETRY_S)
            continue
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection
