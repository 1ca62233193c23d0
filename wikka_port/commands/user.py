"""``wikka user`` and ``wikka admin-link``, by which the operator of the wiki shows and changes accounts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NoReturn

import click
from rich.console import Console
from rich.table import Table

from wikka_port.accounts.administration import SETTABLE, AccountChanges, NotChanged
from wikka_port.accounts.api_keys import DAYS_MAX, SCOPES, KeyNotMade, StoredKey
from wikka_port.accounts.audit import KINDS
from wikka_port.accounts.factory import Accounts
from wikka_port.accounts.links import LIFE_S
from wikka_port.accounts.records import STATUSES, Account
from wikka_port.commands.serving_options import absolute_url, accounts_of, public_url_option
from wikka_port.commands.store_options import StoreOptions, json_option, store_options
from wikka_port.feeds import iso_time
from wikka_port.pages import Wiki
from wikka_port.visitors import COMMAND

REFUSED: Final = 1  # exit status
_HASH_CHARS_MIN: Final = 4  # of a key's hash, to name it


@dataclass(frozen=True, slots=True)
class _Said:
    """An account as a command prints it, with a link to pass on."""

    account: Account
    link: str = ""

    def print_account(self, as_json: bool) -> None:
        if as_json:
            click.echo(json.dumps(_as_data(self.account) | ({"link": self.link} if self.link else {})))
            return
        click.echo(f"{self.account.name}: {self.account.status}{', administrator' if self.account.admin else ''}")
        if self.link:
            click.echo(f"This address sets the password, once:\n{self.link}")


@contextmanager
def _accounts(store: StoreOptions) -> Iterator[Accounts]:
    with store.open_wiki() as wiki:
        yield accounts_of(wiki)


@contextmanager
def _changes(store: StoreOptions) -> Iterator[AccountChanges]:
    """Open the wiki for changes of accounts; a refused one ends the command with a line."""
    with store.open_wiki() as wiki:
        try:
            yield AccountChanges(wiki, accounts_of(wiki), COMMAND)
        except NotChanged as refused:
            _refuse(str(refused))


@click.group()
def user() -> None:
    """Accounts: make, list and change them, and give out links."""


@user.command("list")
@store_options
@click.option("--status", type=click.Choice(sorted(STATUSES)), help="These alone.")
@json_option
def list_users(store: StoreOptions, status: str | None, as_json: bool) -> None:
    """All accounts, by name."""
    with _accounts(store) as accounts:
        found = [one for one in accounts.directory.all() if status in (None, one.status)]
    if as_json:
        click.echo(json.dumps([_as_data(one) for one in found], indent=1))
        return
    table = Table("name", "status", "", "mail", "since")
    for one in found:
        row = (one.name, one.status, "administrator" if one.admin else "", one.email, iso_time(one.created_ms)[:10])
        table.add_row(*row)
    Console(highlight=False).print(table)


@user.command("add")
@store_options
@public_url_option
@click.argument("name")
@click.option("--email", default="", help="Their mail address.")
@click.option("--admin", is_flag=True, help="As an administrator.")
@json_option
def add(store: StoreOptions, public_url: str, name: str, email: str, admin: bool, as_json: bool) -> None:
    """Make an account, and a link with which its owner sets the password within 14 days."""
    with _changes(store) as changes:
        account = changes.add(name, email=email, admin=admin)
        token = changes.reset_token(account, LIFE_S["invitation"])
        _Said(account, _reset_link(changes, token, public_url)).print_account(as_json)


@user.command("set")
@store_options
@click.argument("name")
@click.option("--status", type=click.Choice(sorted(SETTABLE)), help="deleted: erased, its edits get a neutral name.")
@click.option("--admin/--no-admin", default=None, help="Make or unmake an administrator.")
@click.option("--email", help='Their mail address, without a confirmation; "" takes it away.')
@json_option
def set_user(store: StoreOptions, name: str, status: Any, admin: bool | None, email: str | None, as_json: bool) -> None:
    """Change an account; who is not active any more is signed out everywhere."""
    with _changes(store) as changes:
        account = _named(changes.accounts, name)
        if email is not None:
            account = changes.set_email(account, email)
        if admin is not None:
            account = changes.set_administrator(account, admin)
        if status is not None:
            account = changes.set_status(account, status)
        _Said(account).print_account(as_json)


@user.command("reset")
@store_options
@public_url_option
@click.argument("name")
@json_option
def reset(store: StoreOptions, public_url: str, name: str, as_json: bool) -> None:
    """A link with which the account's owner sets a new password within 30 minutes; the old one stays till then."""
    with _changes(store) as changes:
        account = _named(changes.accounts, name)
        _Said(account, _reset_link(changes, changes.reset_token(account), public_url)).print_account(as_json)


@user.command("invite")
@store_options
@public_url_option
@json_option
def invite(store: StoreOptions, public_url: str, as_json: bool) -> None:
    """A link with which somebody registers within 14 days, whatever the wiki's registration is."""
    with _changes(store) as changes:
        link = absolute_url(changes.accounts.rows, public_url, "register", invitation=changes.invitation())
    click.echo(json.dumps({"link": link}) if as_json else link)


@user.command("audit")
@store_options
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 100_000))
@click.option("--what", type=click.Choice(tuple(KINDS)), help="Entries of this kind alone.")
@click.option("--user", "who", default="", help="Of this user, or by this user.")
@json_option
def audit(store: StoreOptions, limit: int, what: str | None, who: str, as_json: bool) -> None:
    """The log of accounts, newest first."""
    with _accounts(store) as accounts:
        entries = list(islice(accounts.audit.filtered(what or "", who), limit))
    for one in entries:
        fields = {"what": one.what, "user": one.user, "by": one.by, "network": one.network, "note": one.note}
        if as_json:
            click.echo(json.dumps({"time": iso_time(one.time_ms), **fields}))
        else:
            click.echo("  ".join((iso_time(one.time_ms), *(value for value in fields.values() if value))))


@user.command("sessions")
@store_options
@click.argument("name")
@click.option("--end", is_flag=True, help="End all of them: the account is signed out everywhere.")
@json_option
def sessions(store: StoreOptions, name: str, end: bool, as_json: bool) -> None:
    """The sessions of NAME, the one seen last first."""
    with _changes(store) as changes:
        account = _named(changes.accounts, name)
        found = [one.session for one in changes.accounts.sessions.of(account.row)]
        if end:
            changes.end_sessions(account)
    rows = [
        {
            "browser": one.browser,
            "network": one.network,
            "since": iso_time(one.created_ms),
            "seen": iso_time(one.seen_ms),
            "ended": end,
        }
        for one in found
    ]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        click.echo(f"{row['browser']}  {row['network']}  since {row['since']}  last seen {row['seen']}")
    click.echo(f"{len(rows)} sessions{' are ended' if end else ''}.")


@user.command("key")
@store_options
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(tuple(SCOPES)),
    default=("read",),
    show_default=True,
    help="What it may do; several times for several.",
)
@click.option("--days", type=click.IntRange(1, DAYS_MAX), default=90, show_default=True, help="When it ends.")
@click.option("--label", default="", help="What it is for.")
@click.option("--end", metavar="HASH", help="End the key whose hash begins so, instead of making one.")
@click.option("--list", "lists", is_flag=True, help="List the keys, instead of making one.")
@json_option
def key(
    store: StoreOptions,
    name: str,
    scopes: tuple[str, ...],
    days: int,
    label: str,
    end: str | None,
    lists: bool,
    as_json: bool,
) -> None:
    """Make, list or end keys of NAME, with which programs call the wiki's API.

    \b
    A key to read and write for a month; it is printed once, and the store does not have it:
      wikka user key Ada --scope read --scope write --days 30 --label "nightly report"
      curl -H "Authorization: Bearer $KEY" 'http://localhost:8080/api/v1/me'
    Which keys there are, and the end of one:
      wikka user key Ada --list
      wikka user key Ada --end 3f2a9c
    """
    with _accounts(store) as accounts:
        account = _named(accounts, name)
        found = accounts.keys.of(account.row)
        if lists:
            _print_keys(found, as_json)
            return
        if end is not None:
            ended = [one for one in found if len(end) >= _HASH_CHARS_MIN and one.id.startswith(end)]
            if len(ended) != 1:
                _refuse(f"{len(ended)} keys of {name} have a hash that begins with {end!r}; see --list")
            accounts.keys.end_key(account.row, ended[0].id)
            accounts.audit.note("key ended", user=account.name, by=COMMAND, note=ended[0].id[:8])
            return
        if account.status != "active":
            _refuse(f"{name} is {account.status}: only an active account has keys")
        try:
            token = accounts.keys.issue(account, label=label, scopes=scopes, days=days)
        except KeyNotMade as refused:
            _refuse(str(refused))
        accounts.audit.note("key made", user=account.name, by=COMMAND, note=f"{' '.join(scopes)}, {days} days")
        click.echo(json.dumps({"key": token}) if as_json else token)


def _print_keys(found: list[StoredKey], as_json: bool) -> None:
    rows = [
        {
            "hash": one.id[:12],
            "label": one.key.label,
            "scopes": " ".join(sorted(one.key.scopes)),
            "made": iso_time(one.key.created_ms),
            "ends": iso_time(one.key.expires_ms),
            "used": iso_time(one.key.seen_ms) if one.key.seen_ms else "",
        }
        for one in found
    ]
    if as_json:
        click.echo(json.dumps(rows))
        return
    table = Table("hash", "label", "scopes", "made", "ends", "last used", box=None)
    for row in rows:
        table.add_row(*row.values())
    Console(highlight=False).print(table)


def _named(accounts: Accounts, name: str) -> Account:
    account = accounts.directory.account(name)
    if account is None:
        _refuse(f"there is no account '{name}'; all of them: wikka user list")
    return account


def _reset_link(changes: AccountChanges, token: str, public_url: str) -> str:
    return absolute_url(changes.accounts.rows, public_url, "reset", token=token)


def _as_data(account: Account) -> dict[str, Any]:
    return {
        "name": account.name,
        "status": account.status,
        "administrator": account.admin,
        "email": account.email,
        "created": iso_time(account.created_ms),
    }


def _refuse(message: str) -> NoReturn:
    click.echo(f"wikka: {message}", err=True)
    raise SystemExit(REFUSED)


@click.command("admin-link")
@store_options
@public_url_option
@json_option
def admin_link(store: StoreOptions, public_url: str, as_json: bool) -> None:
    """Print a link, good once within 24 hours, that makes whoever opens it an administrator."""
    with store.open_wiki() as wiki:
        link = new_admin_link(wiki, public_url)
    click.echo(json.dumps({"link": link}) if as_json else link)


def new_admin_link(wiki: Wiki, public_url: str) -> str:
    accounts = accounts_of(wiki)
    token = accounts.registration.links.issue("administrator")
    accounts.audit.note("administrator's link", user="", by=COMMAND)
    return absolute_url(wiki.rows, public_url, "register", administrator=token)


def first_admin_link(wiki: Wiki, public_url: str) -> str | None:
    """Return a link for the first administrator, or None if the wiki has one."""
    return None if accounts_of(wiki).directory.has_administrator() else new_admin_link(wiki, public_url)
