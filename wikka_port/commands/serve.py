"""``wikka serve`` and ``wikka prepare``: the wiki on a store that runs already."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from columnar.runtime.log_lines import log_to_stderr, say
from columnar.settings.configured import ARGUMENTS, FILE, ConfiguredCommand, config_option, resolved
from wikka_port.commands.serving_options import (
    languages_option,
    public_url_option,
    serving_options,
    speak_the_language,
    taken_accounts,
    taken_files,
    taken_metrics,
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
from wikka_port.served_settings import Reading, ServedSettings, UnusableSettings
from wikka_port.store import PREPARE_TIMEOUT_MS

_DEFAULTS = WikiConfig()
TAKES: Final = "wikka_port.takes_settings"  # key of ``ctx.meta``: a function that takes the settings; nothing is served


@click.command(cls=ConfiguredCommand)
@config_option(WIKKA, WIKI, CLIENT)
@store_address
@setting("--host", default=_DEFAULTS.host, show_default=True, help="Address to listen on.")
@setting("--port", default=_DEFAULTS.port, show_default=True, type=click.IntRange(0, 65535), help="0: any free one.")
@serving_options
def serve(store: StoreOptions, secret_file: Path | None, log_level: str, **given: Any) -> None:
    """Serve the wiki until Ctrl-C or SIGTERM; a second one ends it at once."""
    ctx = click.get_current_context()
    is_read_again = TAKES in ctx.meta
    if not is_read_again:
        log_to_stderr(log_level.upper())
    store_host, store_port = store.place
    speak_the_language(given)
    accounts, files, metrics_at = taken_accounts(given), taken_files(given), taken_metrics(given)
    if files.origin and files.origin == accounts["public_url"].lower().rstrip("/"):
        raise click.UsageError("--files-url is --public-url: it has to be another name, at which only files are served")
    secret = secret_from(secret_file) if secret_file else b""
    config = WikiConfig(
        store_host=store_host,
        store_port=store_port,
        store_tls=store.checked_tls(),
        indexes=store.indexes,
        secret=secret,
        files=files,
        **accounts,
        **given,
    )
    found = Reading(config, log_level.upper(), resolved(ctx))
    if is_read_again:
        ctx.meta[TAKES](found)
        return
    file = ctx.meta[FILE]
    settings = None if file is None else ServedSettings(file, found, partial(_read_again, ctx.meta[ARGUMENTS], file))
    try:
        status = serve_wiki(config, lambda url: say(f"wikka ready {url} store={store}"), settings, metrics_at)
    except (PortTaken, NewerFolder) as refused:
        raise click.ClickException(str(refused)) from None
    raise SystemExit(status)


def _read_again(words: tuple[str, ...], file: str) -> Reading:
    """Return the settings as a start with these words would have them now.  Raises UnusableSettings."""
    found: list[Reading] = []
    try:
        with serve.make_context("serve", [*words, "--config", file]) as ctx:
            ctx.meta[TAKES] = found.append
            serve.invoke(ctx)
    except click.ClickException as error:
        raise UnusableSettings(error.format_message()) from error
    except SystemExit as error:  # the command has said why
        raise UnusableSettings("the line before says why") from error
    return found[0]


@click.command()
@store_options
@public_url_option
@click.option("--language", default="en", show_default=True, metavar="CODE", help="Of the first pages and their notes.")
@languages_option
@click.option("--first-pages/--no-first-pages", default=True, help="Write them if the wiki is empty.")
def prepare(store: StoreOptions, public_url: str, language: str, languages: Path | None, first_pages: bool) -> None:
    """Create the tables and register the triggers; what is there already stays as it is."""
    speak_the_language({"language": language, "languages": languages})
    with store.open_wiki(pool=16, timeout_ms=PREPARE_TIMEOUT_MS) as wiki:
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
