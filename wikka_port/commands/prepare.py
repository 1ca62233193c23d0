"""``wikka prepare``: tables, triggers, first pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from columnar.client import ClientTls
from wikka_port.commands.account_options import public_url_option
from wikka_port.commands.admin_link import first_admin_link
from wikka_port.commands.serving_options import languages_option, speak_the_language
from wikka_port.commands.store_options import open_wiki, store_options
from wikka_port.first_pages import write_first_pages


@click.command()
@store_options
@public_url_option
@click.option("--language", default="en", show_default=True, metavar="CODE", help="Of the first pages and their notes.")
@languages_option
@click.option("--first-pages/--no-first-pages", default=True, help="Write them if the wiki is empty.")
def prepare(
    store: str,
    indexes: Any,
    tls: ClientTls | None,
    public_url: str,
    language: str,
    languages: Path | None,
    first_pages: bool,
) -> None:
    """Create the tables and register the triggers; what is there already stays as it is."""
    speak_the_language({"language": language, "languages": languages})
    with open_wiki(store, indexes, tls) as wiki:
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
