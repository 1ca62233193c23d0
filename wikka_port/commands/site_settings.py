"""``wikka config site``: the settings of the site that lie in the store, and their changes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from wikka_port.accounts.signing_in import Refused
from wikka_port.commands.store_options import StoreOptions, json_option, store_options
from wikka_port.config import WikiConfig
from wikka_port.feeds import iso_time
from wikka_port.handlers.site_settings import FIELDS, store_settings
from wikka_port.site import Site, make_site
from wikka_port.site_settings import KEPT, MENUS, BadSetting, SiteSettings, changed_settings, fields_of, set_values
from wikka_port.visitors import OPERATOR

REFUSED: Final = 1  # exit status


@contextmanager
def _site(store: StoreOptions) -> Iterator[Site]:
    with store.open_wiki() as wiki:
        yield make_site(wiki, WikiConfig(), time.time).for_visitor(OPERATOR)


@click.group("site")
def site_settings() -> None:
    """Settings that lie in the store: the name, logo, colour and menus, registration, format of new pages.

    \b
    Show and change them; the serving wiki has a change within a second:
      wikka config site show
      wikka config site set name="River wiki" colour=#0a6c74
      wikka config site set menu_visitors="Start | HomePage; Changes | /-/recentchanges"
    List the changes:
      wikka config site history
    A flag of wikka serve, its variable or its file wins over the stored setting.
    """


@site_settings.command()
@json_option
@store_options
def show(store: StoreOptions, as_json: bool) -> None:
    """Show what is set."""
    with store.open_wiki() as wiki:
        settings = KEPT.read(wiki.rows).value
    _print_settings(settings, as_json)


@site_settings.command("set")
@click.argument("changes", nargs=-1, required=True, metavar="NAME=VALUE...")
@json_option
@store_options
def set_settings(store: StoreOptions, changes: tuple[str, ...], as_json: bool) -> None:
    """Change settings; an empty VALUE takes one away, and the entries of a menu stand between semicolons."""
    given: dict[str, Any] = {}
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals or name not in FIELDS:
            raise click.BadParameter(f"'{change}' is no change: write NAME=VALUE, with one of {', '.join(FIELDS)}")
        given[name] = value.replace(";", "\n") if name in MENUS else value
    with _site(store) as site:
        stored = KEPT.read(site.accounts.rows)
        try:
            settings = changed_settings(stored.value, given)
            store_settings(site, stored.revision, stored.value, settings)
        except (BadSetting, Refused) as refused:
            click.echo(f"wikka: {refused}", err=True)
            raise SystemExit(REFUSED) from None
    _print_settings(settings, as_json)


@site_settings.command()
@json_option
@store_options
def history(store: StoreOptions, as_json: bool) -> None:
    """List the changes, the newest first."""
    with store.open_wiki() as wiki:
        found = KEPT.history(wiki.rows)
    for one in found:
        kept = set_values(one.value)
        if as_json:
            click.echo(json.dumps({"time": iso_time(one.time_ms), "by": one.by, **kept}, ensure_ascii=False))
        else:
            words = "; ".join(f"{key}: {value[:200]}" for key, value in kept.items()) or "all as at first"
            click.echo(f"{iso_time(one.time_ms)}  {one.by}  {words}")


def _print_settings(settings: SiteSettings, as_json: bool) -> None:
    values = fields_of(settings)
    if as_json:
        menus = {key: list(getattr(settings, key)) for key in MENUS}
        click.echo(json.dumps({**values, **menus}, indent=1, ensure_ascii=False))
        return
    for key, value in values.items():
        shown = value.replace("\n", "; ")
        click.echo(f"{key} = {shown}" if shown else f"{key}  (not set)")
