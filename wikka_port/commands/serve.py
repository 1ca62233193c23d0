"""``wikka serve``: the wiki in a browser, from a store that runs already."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from columnar.client import ClientTls
from columnar.runtime.log_lines import log_to_stderr, say
from wikka_port.commands.account_options import taken_accounts
from wikka_port.commands.serving_options import serving_options, speak_the_language
from wikka_port.commands.store_options import address_of, checked_tls, store_options
from wikka_port.config import WikiConfig
from wikka_port.folder_format import NewerFolder
from wikka_port.secret_file import secret_from
from wikka_port.serve import PortTaken
from wikka_port.serve import serve as serve_wiki

_DEFAULTS = WikiConfig()


@click.command()
@store_options
@click.option("--host", default=_DEFAULTS.host, show_default=True, help="Address to listen on.")
@click.option("--port", default=_DEFAULTS.port, show_default=True, type=click.IntRange(0, 65535))
@serving_options
def serve(
    store: str, indexes: Any, tls: ClientTls | None, secret_file: Path | None, log_level: str, **given: Any
) -> None:
    """Serve the wiki until Ctrl-C or SIGTERM; a second one ends it at once."""
    log_to_stderr(log_level.upper())
    store_host, store_port = address_of(store)
    speak_the_language(given)
    accounts = taken_accounts(given)
    secret = secret_from(secret_file) if secret_file else b""
    config = WikiConfig(
        store_host=store_host,
        store_port=store_port,
        store_tls=checked_tls(tls),
        indexes=indexes,
        secret=secret,
        **accounts,
        **given,
    )
    try:
        status = serve_wiki(config, lambda url: say(f"wikka ready {url} store={store}"))
    except (PortTaken, NewerFolder) as refused:
        raise click.ClickException(str(refused)) from None
    raise SystemExit(status)
