"""``columnar completion``: the script that lets a shell complete our commands with Tab; names of tables come from
the store, if it answers at once."""

from __future__ import annotations

import os
from typing import Any, Final

import click
from click.shell_completion import CompletionItem, get_completion_class

ANSWER_S: Final = 0.5  # a person waits for it


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


def complete_table(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of tables; none where no store answers within ``ANSWER_S``: a Tab says nothing of errors."""
    from columnar.shell.connecting import DEFAULT_STORE, table_names

    store = ctx.params.get("store") or os.environ.get("COLUMNAR_STORE") or DEFAULT_STORE
    names = table_names(str(store), _tls_of(ctx.params), ANSWER_S)
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _tls_of(given: dict[str, Any]) -> tuple[bool, tuple[str, ...]]:
    """Whether TLS is wanted, and its files, from the options or else the environment."""
    options = ("tls_ca", "tls_client_cert", "tls_client_key")
    files = tuple(given.get(name) or os.environ.get(f"COLUMNAR_{name.upper()}", "") for name in options)
    return bool(given.get("wanted") or os.environ.get("COLUMNAR_TLS") or any(files)), files


table_argument = click.argument("table", shell_complete=complete_table)
