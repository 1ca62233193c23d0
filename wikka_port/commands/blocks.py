"""``wikka block``: accounts and networks that may read and write nothing until a moment."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from wikka_port.commands.store_options import StoreOptions, json_option, store_options
from wikka_port.config import WikiConfig
from wikka_port.feeds import iso_time
from wikka_port.handlers.blocks import add_block, lift_block, new_block
from wikka_port.rights.blocks import BadBlock, Block
from wikka_port.site import Site, make_site
from wikka_port.visitors import OPERATOR

REFUSED: Final = 1  # exit status


@contextmanager
def _site(store: StoreOptions) -> Iterator[Site]:
    with store.open_wiki() as wiki:
        yield make_site(wiki, WikiConfig(), time.time).for_visitor(OPERATOR)


@click.group()
def block() -> None:
    """Let an account or a network read, and write nothing, until a moment.

    \b
    A block counts within a second, and its target sees the reason:
      wikka block add 203.0.113.0/24 --until "3 days" --reason "a farm of links"
      wikka block add "Mallory" --reason "spam"
    See what is blocked, and lift it:
      wikka block list
      wikka block remove Mallory
    """


@block.command("add")
@click.argument("target")
@click.option("--until", default="", help="3 days, 12 h, 2 weeks, or 2026-12-24; nothing: for good.")
@click.option("--reason", default="", help="It is shown to who is blocked.")
@click.option("--accounts", is_flag=True, help="Of a network: also people who are signed in.")
@json_option
@store_options
def add(store: StoreOptions, target: str, until: str, reason: str, accounts: bool, as_json: bool) -> None:
    """Block TARGET: a user's name, an address, or a range of addresses (CIDR)."""
    with _site(store) as site:
        try:
            made = new_block(site, target, until, reason, accounts=accounts)
            add_block(site, made)
        except BadBlock as bad:
            click.echo(f"wikka: {bad}", err=True)
            raise SystemExit(REFUSED) from None
    click.echo(json.dumps(_as_data(made), ensure_ascii=False) if as_json else _line(made))


@block.command("list")
@json_option
@store_options
def list_blocks(store: StoreOptions, as_json: bool) -> None:
    """List the blocks in force, the newest first."""
    with _site(store) as site:
        found = sorted(site.wiki.rights.blocks().all, key=lambda one: -one.made_ms)
    if as_json:
        click.echo(json.dumps([_as_data(one) for one in found], indent=1, ensure_ascii=False))
        return
    for one in found:
        click.echo(_line(one))
    if not found:
        click.echo("Nobody is blocked.")


@block.command("remove")
@click.argument("target")
@json_option
@store_options
def remove(store: StoreOptions, target: str, as_json: bool) -> None:
    """Lift all blocks of TARGET, as the list names it, or the block of that id."""
    with _site(store) as site:
        wanted = target.casefold()
        found = [one for one in site.wiki.rights.blocks().all if wanted in (one.target.casefold(), one.id)]
        for one in found:
            lift_block(site, one.id)
    if not found:
        click.echo(f"wikka: {target} is not blocked; see: wikka block list", err=True)
        raise SystemExit(REFUSED)
    for one in found:
        click.echo(json.dumps(_as_data(one), ensure_ascii=False) if as_json else f"lifted: {_line(one)}")


def _line(one: Block) -> str:
    until = iso_time(one.until_ms) if one.until_ms else "for good"
    return "  ".join((one.id, one.target, until, one.by, one.reason)).rstrip()


def _as_data(one: Block) -> dict[str, Any]:
    return {
        "id": one.id,
        "user": one.user,
        "network": one.network,
        "accounts": one.accounts,
        "until": iso_time(one.until_ms) if one.until_ms else None,
        "reason": one.reason,
        "by": one.by,
        "made": iso_time(one.made_ms),
    }
