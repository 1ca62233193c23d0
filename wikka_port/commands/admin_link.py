"""``wikka admin-link``: the link that makes an administrator."""

from __future__ import annotations

import json
from typing import Any

import click

from columnar.client import ClientTls
from wikka_port.commands.account_options import absolute_url, accounts_of, public_url_option
from wikka_port.commands.store_options import open_wiki, store_options
from wikka_port.pages import Wiki


@click.command("admin-link")
@store_options
@public_url_option
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def admin_link(store: str, indexes: Any, tls: ClientTls | None, public_url: str, as_json: bool) -> None:
    """Print a link, good once within 24 hours, that makes whoever opens it an administrator."""
    with open_wiki(store, indexes, tls, pool=2) as wiki:
        link = new_admin_link(wiki, public_url)
    click.echo(json.dumps({"link": link}) if as_json else link)


def new_admin_link(wiki: Wiki, public_url: str) -> str:
    accounts = accounts_of(wiki)
    token = accounts.registration.links.issue("administrator")
    accounts.audit.note("administrator's link", user="", by="command")
    return absolute_url(public_url, "register", administrator=token)


def first_admin_link(wiki: Wiki, public_url: str) -> str | None:
    """None if the wiki has an administrator."""
    return None if accounts_of(wiki).directory.has_administrator() else new_admin_link(wiki, public_url)
