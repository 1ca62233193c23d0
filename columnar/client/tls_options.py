"""The options with which our commands connect to a store that speaks TLS; all commands use the same names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from columnar.client.tls import ClientTls
from columnar.settings.option_kinds import Setting

setting = functools.partial(click.option, cls=Setting)


def tls_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which receives ``tls``: a ``ClientTls``, or None for plain TCP."""

    @setting("--tls", "wanted", is_flag=True, envvar="COLUMNAR_TLS", help="The store speaks TLS.")
    @setting(
        "--tls-ca",
        metavar="FILE",
        default="",
        envvar="COLUMNAR_TLS_CA",
        help="It does, and this authority signed its certificate; without it those that the system trusts.",
    )
    @setting(
        "--tls-client-cert",
        metavar="FILE",
        default="",
        envvar="COLUMNAR_TLS_CLIENT_CERT",
        help="Certificate to show to the store, where it asks for one.",
    )
    @setting("--tls-client-key", metavar="FILE", default="", envvar="COLUMNAR_TLS_CLIENT_KEY", help="Its key.")
    @functools.wraps(command)
    def with_tls(wanted: bool, tls_ca: str, tls_client_cert: str, tls_client_key: str, **arguments: Any) -> Any:
        files = (tls_ca, tls_client_cert, tls_client_key)
        return command(tls=ClientTls(*files) if wanted or any(files) else None, **arguments)  # fmt: skip

    return with_tls
