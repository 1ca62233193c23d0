"""``wikka serve`` and ``wikka prepare``: the wiki on a store that runs already."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from columnar.runtime.log_lines import log_to_stderr, say
from columnar.settings.configured import ConfiguredCommand, config_option
from wikka_port.commands.serving_options import (
    languages_option,
    public_url_option,
    serving_options,
    speak_the_language,
    taken_accounts,
)
from wikka_port.commands.settings import CLIENT, WIKI, WIKKA, setting
from wikka_port.commands.store_options import StoreOptions, store_address, store_options
from wikka_port.commands.user import first_admin_link
from wikka_port.config import WikiConfig
from wikka_port.first_pages import write_first_pages
from wikka_port.folder_format import NewerFolder
from wikka_port.secret_file import secret_from
from wikka_port.serve import PortTaken
from wikka_port.serve import serve as serve_wiki

_DEFAULTS = WikiConfig()


@click.command(cls=ConfiguredCommand)
@config_option(WIKKA, WIKI, CLIENT)
@store_address
@setting("--host", default=_DEFAULTS.host, show_default=True, help="Address to listen on.")
@setting("--port", default=_DEFAULTS.port, show_default=True, type=click.IntRange(0, 65535), help="0: any free one.")
@serving_options
def serve(store: StoreOptions, secret_file: Path | None, log_level: str, **given: Any) -> None:
    """Serve the wiki until Ctrl-C or SIGTERM; a second one ends it at once."""
    log_to_stderr(log_level.upper())
    store_host, store_port = store.place
    speak_the_language(given)
    accounts = taken_accounts(given)
    secret = secret_from(secret_file) if secret_file else b""
    config = WikiConfig(
        store_host=store_host,
        store_port=store_port,
        store_tls=store.checked_tls(),
        indexes=store.indexes,
        secret=secret,
        **accounts,
        **given,
    )
    try:
        status = serve_wiki(config, lambda url: say(f"wikka ready {url} store={store}"))
    except (PortTaken, NewerFolder) as refused:
        raise click.ClickException(str(refused)) from None
    raise SystemExit(status)


@click.command()
@store_options
@public_url_option
@click.option("--language", default="en", show_default=True, metavar="CODE", help="Of the first pages and their notes.")
@languages_option
@click.option("--first-pages/--no-first-pages", default=True, help="Write them if the wiki is empty.")
def prepare(store: StoreOptions, public_url: str, language: str, languages: Path | None, first_pages: bool) -> None:
    """Create the tables and register the triggers; what is there already stays as it is."""
    speak_the_language({"language": language, "languages": languages})
    with store.open_wiki(pool=16) as wiki:
        stay = wiki.prepare()
        written = write_first_pages(wiki, language) if first_pages else 0
        if stay:
            names = ", ".join(stay)
            click.echo(f"Triggers of an older wiki stay until they have delivered what they have: {names}.")
            click.echo("Run wikka prepare again then; columnar trigger list shows how far they are.")
        link = first_admin_link(wiki, public_url)
        click.echo(f"Ready{f'; wrote {written} pages' if written else ''}.")
    if link:
        click.echo(f"No administrator yet. A person who opens this address becomes one, once:\n  {link}")
