"""``columnar completion``: the script by which the system's shell completes commands, and the completion of arguments.

The functions here complete arguments with names of the store, for ``columnar shell`` too.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from click.shell_completion import CompletionItem, get_completion_class

if TYPE_CHECKING:
    from columnar.client import ClientTls
    from columnar.client.user_options import ClientUser

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands with Tab, and names of tables where a store answers.

    \b
      columnar completion bash > ~/.local/share/bash-completion/completions/columnar
      columnar completion zsh > ~/.zfunc/_columnar
      columnar completion fish > ~/.config/fish/completions/columnar.fish
    """
    found = get_completion_class(shell)
    assert found is not None, "click knows these three"
    click.echo(found(ctx.find_root().command, {}, "columnar", "_COLUMNAR_COMPLETE").source())


def completing(*kinds: str, suffix: str = "") -> Complete:
    """Return a completer for names of these kinds (``store_names.KINDS``).

    Each name is followed by ``suffix``; after a comma the next name is completed.
    """

    def complete(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",")
        names = [name + suffix for kind in kinds for name in names_in_store(ctx, kind)]
        return _items(names, before + comma, last)

    return complete


def complete_filter(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of filters that complete the word at the end of the string."""
    from columnar.model.filter_language import FILTERS

    last = re.search(r"\w*$", incomplete)
    assert last is not None, "an empty match is one"
    return _items([f"{name.decode()}(" for name in FILTERS], incomplete[: last.start()], last[0])


def _items(names: Iterable[str], before: str, last: str) -> list[CompletionItem]:
    return [CompletionItem(before + name) for name in names if name.startswith(last)]


def names_in_store(ctx: click.Context, kind: str) -> list[str]:
    """Return the names of a kind, within the command's table if the kind is a part of a table.

    Returns no names if no store answers at once.
    """
    from columnar.client.store_options import DEFAULT_STORE
    from columnar.shell.session import session_of
    from columnar.shell.store_names import StoreNames

    session = session_of(ctx)
    names = session.names if session is not None else StoreNames(time.monotonic)
    store = ctx.params.get("store") or os.environ.get("COLUMNAR_STORE") or DEFAULT_STORE
    table = _table_of(ctx)
    if kind == "family" and not table:
        return []
    of = table if kind in ("family", "region") else ""
    return names.of(str(store), _tls_of(ctx.params), kind, of, user=_user_of(ctx.params, str(store)))


def _table_of(ctx: click.Context) -> str:
    """Return the table that the command names, or '' without a table.

    While an option lacks its value, click has parsed no arguments, so the words in ``args`` are searched.
    """
    names = [one.name for one in ctx.command.params if isinstance(one, click.Argument)]
    if ctx.params.get("table"):
        return str(ctx.params["table"])
    place = names.index("table") if "table" in names else len(ctx.args)
    return ctx.args[place] if place < len(ctx.args) else ""


def _tls_of(given: dict[str, Any]) -> ClientTls | None:
    """Return the TLS of the options, or else of the environment."""
    from columnar.client import ClientTls

    options = ("tls_ca", "tls_client_cert", "tls_client_key")
    files = tuple(given.get(name) or os.environ.get(f"COLUMNAR_{name.upper()}", "") for name in options)
    is_wanted = bool(given.get("wanted") or os.environ.get("COLUMNAR_TLS") or any(files))
    return ClientTls(*files) if is_wanted else None


def _user_of(given: dict[str, Any], store: str) -> ClientUser | None:
    """Return the user of the options, or else of the environment."""
    from columnar.client.addresses import UNIX
    from columnar.client.user_options import ClientUser

    password, token = (str(given.get(name) or "") for name in ("password_file", "token_file"))
    if not (password or token):
        password, token = (os.environ.get(f"COLUMNAR_{name}_FILE", "") for name in ("PASSWORD", "TOKEN"))
    name = str(given.get("user_name") or os.environ.get("COLUMNAR_USER", ""))
    return ClientUser(name, password, token, store.startswith(UNIX)) if name else None


table_argument = click.argument("table", shell_complete=completing("table"))
complete_column = completing("family", suffix=":")
