"""The options by which a command finds its store, as settings of clients: the table ``client`` of ``columnar.toml``."""

from __future__ import annotations

from typing import Final

import click

from columnar.client.tls import ClientTls
from columnar.client.tls_options import tls_options
from columnar.client.user_options import ClientUser, user_options
from columnar.settings.configured import config_option, own_table
from columnar.settings.option_kinds import Setting
from columnar.settings.settings_file import COLUMNAR, Table

DEFAULT_STORE: Final = "127.0.0.1:9090"


def _client() -> click.Command:
    return client


CLIENT: Final[Table] = own_table("client", _client)
client_settings: Final = config_option(COLUMNAR, CLIENT, is_client=True)

store_option = click.option(
    "--store", cls=Setting, envvar="COLUMNAR_STORE", default=DEFAULT_STORE, show_default=True, metavar="HOST:PORT",
    help="Server to talk to, or several with commas: the first that answers; or unix:PATH; also from COLUMNAR_STORE.",
)  # fmt: skip


@click.command()
@client_settings
@store_option
@tls_options
@user_options
def client(store: str, tls: ClientTls | None, user: ClientUser | None) -> None:
    """Do nothing: the command stands for all commands that talk to a store."""
