"""Options of accounts for commands and the wiki's start, and the accounts of a wiki without its web side."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from wikka_port.accounts.making import Accounts, make_accounts
from wikka_port.config import MailConfig, WikiConfig
from wikka_port.edit_buckets import EditBuckets
from wikka_port.pages import Wiki
from wikka_port.urls import site_path

_DEFAULTS: Final = WikiConfig()
F = TypeVar("F", bound=Callable[..., Any])

public_url_option = click.option(
    "--public-url",
    envvar="WIKKA_PUBLIC_URL",
    default="",
    metavar="URL",
    help=f"Where people reach the wiki, for links  [default: http://127.0.0.1:{_DEFAULTS.port}]",
)

ACCOUNT_OPTIONS: Final = (
    click.option(
        "--registration",
        default=_DEFAULTS.registration,
        show_default=True,
        type=click.Choice(["open", "approval", "invitation", "closed"]),
        help="Who may make an account.",
    ),
    click.option(
        "--user-names",
        default=_DEFAULTS.user_names,
        show_default=True,
        type=click.Choice(["any", "wikiwords"]),
        help="What a new account may be called.",
    ),
    public_url_option,
    click.option("--smtp", metavar="HOST:PORT", help="Server that takes the wiki's mail; without it none is sent."),
    click.option(
        "--smtp-tls",
        default="starttls",
        show_default=True,
        type=click.Choice(["starttls", "tls", "none"]),
        help="How the way to it is hidden.",
    ),
    click.option("--smtp-user", metavar="NAME", help="Name to sign in there with."),
    click.option(
        "--smtp-password-file",
        type=click.Path(exists=True, dir_okay=False),
        help="File whose first line is the password for it.",
    ),
    click.option("--mail-from", metavar="ADDRESS", help="Sender of the wiki's mail."),
    click.option("--sign-on-header", metavar="NAME", help="Header in which a proxy names who is signed in."),
    click.option(
        "--sign-on-from",
        multiple=True,
        metavar="ADDRESS",
        help="Address of such a proxy; repeatable  [default: 127.0.0.1 and ::1]",
    ),
)


def taken_accounts(given: dict[str, Any]) -> dict[str, Any]:
    """Return the values of ACCOUNT_OPTIONS taken out of ``given``, as fields of WikiConfig."""
    names = ("smtp", "smtp_tls", "smtp_user", "smtp_password_file", "mail_from", "sign_on_header", "sign_on_from")
    taken = {name: given.pop(name) for name in names}
    fields = {name: given.pop(name) for name in ("registration", "user_names", "public_url")}
    fields["mail"] = _mail(taken)
    if fields["mail"] is not None and not fields["public_url"]:
        raise click.UsageError("--smtp needs --public-url: links in mails lead there, as https://wiki.example")
    if taken["sign_on_header"]:
        fields["sign_on_header"] = taken["sign_on_header"]
        if taken["sign_on_from"]:
            fields["sign_on_from"] = taken["sign_on_from"]
    return fields


def _mail(taken: dict[str, Any]) -> MailConfig | None:
    if not taken["smtp"]:
        return None
    host, colon, port = taken["smtp"].rpartition(":")
    if not colon or not host or not port.isdigit():
        raise click.BadParameter(f"'{taken['smtp']}' is no address: write HOST:PORT, for example mail.example:587")
    if not taken["mail_from"]:
        raise click.UsageError("--smtp needs --mail-from: the address that the mails come from")
    password = ""
    if taken["smtp_password_file"]:
        password = Path(taken["smtp_password_file"]).read_text(encoding="utf-8").split("\n", 1)[0]
    return MailConfig(
        host=host.strip("[]"),
        port=int(port),
        tls=taken["smtp_tls"],
        user=taken["smtp_user"] or "",
        password=password,
        sender=taken["mail_from"],
    )


def accounts_of(wiki: Wiki) -> Accounts:
    """For a command: nothing is limited there, and no mail is sent."""
    return make_accounts(wiki.rows, _DEFAULTS, time.time, EditBuckets.opened(1))


def absolute_url(public_url: str, handler: str, **query: str) -> str:
    base = public_url or f"http://{_DEFAULTS.host}:{_DEFAULTS.port}"
    return base.rstrip("/") + site_path(handler, **query)
